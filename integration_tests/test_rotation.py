"""The rotation of test cases: every kind in each run, every case within twenty commits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from tools.rotation import LARGE, chosen, kind_of
from tools.steps import PERIOD, Step, commits, step_of_commit

ROOT = Path(__file__).resolve().parent.parent

cases = st.lists(
    st.tuples(st.sampled_from(["f", "g", "h"]), st.sampled_from(["", "sin", "cos", "tan"])),
    max_size=150,
)


@settings(max_examples=100)
@given(cases)
def test_a_period_visits_every_case_and_each_run_every_kind(listed):
    runs = [chosen(listed, Step(n)) for n in range(PERIOD)]
    assert all(any(run) for run in zip(*runs))
    for run in runs:
        assert {group for group, runs_now in zip(listed, run) if runs_now} == set(listed)


def test_a_case_that_is_no_first_one_runs_once_in_a_period():
    listed = [("f", f"kind {n % 7}") for n in range(300)]
    times = [sum(run) for run in zip(*[chosen(listed, Step(n)) for n in range(PERIOD)])]
    assert times == [PERIOD] * 7 + [1] * 293
    sizes = [sum(chosen(listed, Step(n))) for n in range(PERIOD)]
    assert max(sizes) - min(sizes) <= 7


def test_small_functions_and_complete_runs_are_whole():
    listed = [("f", "sin")] * (LARGE - 1)
    assert all(chosen(listed, Step(0)))
    runs = [chosen(listed, Step(n), marked={"f": PERIOD}) for n in range(PERIOD)]
    assert sum(map(sum, runs)) == PERIOD + LARGE - 2
    assert all(chosen([("f", "sin")] * 100, None))


@pytest.mark.parametrize("every", [4, 20, 100])
@pytest.mark.parametrize("period", [20, 10])
def test_marked_functions_may_rotate_faster(every, period):
    listed = [("f", "kind")] * 100
    runs = [chosen(listed, Step(n, period), marked={"f": every}) for n in range(period)]
    assert all(any(run) for run in zip(*runs))
    steps = min(every, period)
    assert all(abs(sum(run) - 100 / steps) <= 1 for run in runs)
    if period % steps == 0:
        assert all(any(run) for run in zip(*runs[:steps]))


@pytest.mark.parametrize("period", [20, 10])
def test_functions_that_take_long_rotate_as_a_whole(period):
    listed = [("f", ""), *[("g", f"kind {n}") for n in range(50)], ("h", "")]
    marked = {"f": 5, "g": 5}
    runs = [chosen(listed, Step(n, period), marked=marked, whole={"f", "g"}) for n in range(period)]
    assert [sum(run) for run in zip(*runs)] == [period // 5] * 51 + [period]
    assert all(any(run) for run in zip(*runs[:5]))
    assert all(sum(run[1:-1]) < 20 for run in runs)
    assert all(chosen(listed, None, whole={"f", "g"}))
    assert chosen(listed, None, True, whole={"f", "g"}) == [True, True, *[False] * 49, True]


def test_a_smoke_run_has_one_case_of_each_function():
    assert chosen([("f", "a"), ("f", "b"), ("g", ""), ("f", "a")], None, smoke=True) == [
        True, False, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("case, kind", [
    ("12-softmax-float32", "softmax"),
    ("reduce_sum3", "reduce_sum"),
    ("cumsum-4-nested_batching", "cumsum-nested_batching"),
    ("shape0-0-bfloat16", ""),
    ("log softmax along -1", "log softmax along"),
])  # fmt: skip
def test_kinds(case, kind):
    assert kind_of(case) == kind


@pytest.mark.parametrize(
    "text, step",
    [("all", None), ("3", Step(3)), ("23", Step(3)), ("3/10", Step(3, 10)), ("13/10", Step(3, 10))],
)
def test_steps_are_read(text, step):
    assert Step.parse(text) == step


class TestSteps:
    """The step of a commit."""

    @pytest.fixture
    def repository(self, tmp_path):
        self.git(tmp_path, "init", "--quiet")
        return tmp_path

    def git(self, folder, *args):
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(folder), *who, *args], check=True, capture_output=True)

    def commit(self, folder):
        self.git(folder, "commit", "--quiet", "--allow-empty", "-m", "a")

    def test_consecutive_commits_visit_every_step(self, repository):
        steps, halves = [], []
        for number in range(PERIOD):
            self.commit(repository)
            steps.append(step_of_commit(root=repository))
            if number % 2:
                halves.append(step_of_commit(turns=2, root=repository))
        assert sorted(s.number for s in steps) == list(range(PERIOD))
        assert sorted(s.number for s in halves) == list(range(PERIOD // 2))
        assert {s.period for s in halves} == {PERIOD // 2}

    def test_a_merge_is_one_commit(self, repository):
        self.commit(repository)
        self.git(repository, "checkout", "-b", "side")
        for _ in range(3):
            self.commit(repository)
        self.git(repository, "checkout", "-")
        self.git(repository, "merge", "--no-ff", "--quiet", "-m", "b", "side")
        assert commits(repository) == 2

    def test_a_shallow_clone_uses_the_hash(self, repository, tmp_path_factory):
        self.commit(repository)
        self.commit(repository)
        clone = tmp_path_factory.mktemp("clone")
        self.git(clone, "clone", "--quiet", "--depth", "1", repository.as_uri(), "copy")
        assert commits(clone / "copy") > 1_000

    def test_without_a_repository_all_cases_run(self, tmp_path, monkeypatch):
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
        assert step_of_commit(root=tmp_path) is None


SUITE = """
import pytest

@pytest.mark.parametrize("n", range(50))
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_named(name, n):
    pass

@pytest.mark.rotate()
@pytest.mark.parametrize("name", "abcdefghijklmnopqrstuvwxyz")
def test_marked(name):
    pass

@pytest.mark.rotate(every=2, whole=True)
def test_one_that_takes_long():
    pass

@pytest.mark.rotate("name")
@pytest.mark.parametrize("n", [f"x{chr(n)}" for n in range(97, 123)])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_by_parameter(name, n):
    pass
"""


def run_suite(folder: Path, *options: str) -> set[str]:
    """The ids of the tests that pytest runs."""
    path = folder / "test_suite.py"
    path.write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-p", "tools.rotation", "-p", "no:cacheprovider"]
    command += ["--rootdir", str(folder), "-c", str(ROOT / "pyproject.toml"), "-v", *options]
    done = subprocess.run(
        [*command, str(path)], cwd=ROOT, capture_output=True, text=True, env={**os.environ}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if "PASSED" in line]
    return {word for line in lines for word in line.split() if "::" in word}


def test_pytest_runs_the_share_of_a_step_also_on_workers(tmp_path):
    alone = run_suite(tmp_path, "--rotation", "3")
    assert run_suite(tmp_path, "--rotation", "3", "-n", "2") == alone
    assert len([t for t in alone if "::test_named" in t]) in range(2 + 4, 2 + 7)
    assert len([t for t in alone if "::test_marked" in t]) in range(1 + 1, 1 + 3)
    assert len([t for t in alone if "::test_by_parameter" in t]) in range(2 + 2, 2 + 5)
    next_one = run_suite(tmp_path, "--rotation", "4")
    assert len([t for t in alone | next_one if "takes_long" in t]) == 1
    assert not [t for t in alone & next_one if "takes_long" in t]


def test_one_kind_runs_a_smaller_share(tmp_path):
    share = run_suite(tmp_path, "--rotation", "3", "--one-kind")
    assert share < run_suite(tmp_path, "--rotation", "3") | share
    assert len([t for t in share if "::test_named" in t]) in range(1 + 4, 1 + 7)
    assert len([t for t in share if "::test_by_parameter" in t]) in range(1 + 2, 1 + 5)


def test_pytest_runs_all_that_is_asked_for(tmp_path):
    assert len(run_suite(tmp_path, "--rotation", "all")) == 100 + 26 + 52 + 1
    assert len(run_suite(tmp_path, "-k", "test_marked")) == 26
    assert len(run_suite(tmp_path, "--rotation", "smoke")) == 4
