"""Comparison of library test runs, and their table, with fake processes."""

from __future__ import annotations

import argparse
import shutil
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from integration_tests.ecosystem import (
    __main__ as command,
    catalogue,
    choice,
    compare,
    parts,
    report,
)
from integration_tests.ecosystem.outcomes import (
    Outcome,
    compare as outcomes,
    junit_name,
    read_junit,
)
from integration_tests.ecosystem.sides import NoResult, Side
from integration_tests.ecosystem.values import differences
from tools.steps import PERIOD, Step

PASSED, SKIPPED, FAILED = Outcome.PASSED, Outcome.SKIPPED, Outcome.FAILED
XML = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="a.b_test.Case" name="test_fine"/>
<testcase classname="a.b_test.Case" name="test_left_out"><skipped message="one device"/></testcase>
<testcase classname="a.b_test.Case" name="test_wrong"><failure message="1 != 2"/></testcase>
<testcase classname="a.b_test.Case" name="test_subtests"/>
<testcase classname="a.b_test.Case" name="test_subtests"><failure message="one of them"/></testcase>
<testcase classname="a.b_test.Case" name="test_setup"><error message="no fixture"/></testcase>
<testcase classname="" name="a.c_test"><error message="collection failure"/></testcase>
</testsuite></testsuites>"""
ROW = report.Row("part", "library", "1.0", "its test suite", 9, 10, 1.0, 2.0, 0.5, 2.0)
PROGRAM = parts.Script("program", "pytest", rtol=1e-3, atol=0.0)


def test_outcomes_from_junit(tmp_path):
    path = tmp_path / "junit.xml"
    path.write_text(XML)
    assert read_junit(path) == {
        "a.b_test.Case::test_fine": PASSED,
        "a.b_test.Case::test_left_out": SKIPPED,
        "a.b_test.Case::test_wrong": FAILED,
        "a.b_test.Case::test_subtests": FAILED,
        "a.b_test.Case::test_setup": FAILED,
        "a.c_test": FAILED,
    }


@pytest.mark.parametrize(
    "node, name",
    [
        ("a/b_test.py::Case::test_fine", "a.b_test.Case::test_fine"),
        ("b_test.py::test_fine[1/2]", "b_test::test_fine[1/2]"),
    ],
)
def test_pytest_and_junit_names(node, name):
    assert junit_name(node) == name


def test_regressions_are_differences():
    theirs = {"::a": PASSED, "::b": PASSED, "::c": PASSED, "::d": FAILED, "::e": SKIPPED}
    ours = {"::a": PASSED, "::b": SKIPPED, "::d": FAILED, "::e": PASSED, "::f": FAILED}
    comparison = outcomes(ours, theirs, {})
    assert comparison.differences == {"::b": "skipped", "::c": "not found"}
    assert not comparison.stale and not comparison.unread
    assert comparison.here[PASSED] == 2 and comparison.there[PASSED] == 3


def test_unimported_modules_are_reported():
    comparison = outcomes({"a.b_test": FAILED}, {"a.b_test": FAILED}, {})
    assert comparison.unread == ["a.b_test"] and not comparison.differences


def test_allowed_and_stale_differences():
    theirs = {"a": PASSED, "b": PASSED, "c": FAILED}
    ours = {"a": FAILED, "b": PASSED, "c": FAILED}
    comparison = outcomes(ours, theirs, dict.fromkeys("abcd", "a reason"))
    assert not comparison.differences
    assert comparison.stale == {"b": "passes here", "c": "is failed there too", "d": "is not there"}


def test_numbers_agree_within_the_tolerances():
    ours = {"x": [1.0, 2.001, float("nan"), float("inf")], "n": 3, "s": "text"}
    theirs = {"x": [1.0, 2.0, float("nan"), float("inf")], "n": 3, "s": "text"}
    assert not list(differences(ours, theirs, rtol=1e-3, atol=0.0))
    assert list(differences(ours, theirs, rtol=1e-4, atol=0.0)) == [".x[1]: 2.001 here, 2.0 there"]


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (1, 2),
        (1, 1.0),
        (True, 1),
        ([1.0], [1.0, 1.0]),
        ({"a": 1.0}, {"b": 1.0}),
        (float("nan"), 1.0),
        (1.0, float("nan")),
        (float("inf"), float("-inf")),
    ],
)
def test_exact_values(ours, theirs):
    assert len(list(differences(ours, theirs, rtol=0.5, atol=0.5))) == 1


def test_allowed_differences_have_reasons(tmp_path):
    for part in catalogue.PARTS:
        if isinstance(part, parts.Suite):
            assert all(part.allowed().values())
    path = tmp_path / "differences.toml"
    path.write_text('[[allowed]]\nreason = "why"\ntests = ["a", "a"]\n')
    with pytest.raises(ValueError, match="a is listed twice"):
        parts.read_allowed(path)
    path.write_text('[[allowed]]\ntests = ["a"]\n')
    with pytest.raises(ValueError, match="without a reason"):
        parts.read_allowed(path)


def test_every_script_is_a_part():
    folder = parts.HERE / "scripts"
    programs = [part for part in catalogue.PARTS if isinstance(part, parts.Script)]
    assert {p.path for p in programs} == {*folder.glob("*.py")}
    pinned = choice.REQUIREMENTS.read_text()
    on_demand = pinned + choice.REQUIREMENTS_ON_DEMAND.read_text()
    for part in catalogue.PARTS:
        pins = on_demand if part in catalogue.ON_DEMAND else pinned
        for library in (part.library, *part.needs):
            assert library == "jax" or f"\n{library}==" in pins


def options(*arguments):
    """Parse the options that choose parts."""
    parser = argparse.ArgumentParser()
    choice.add_options(parser)
    return parser.parse_args(arguments)


def test_parts_are_chosen_by_name():
    assert [p.name for p in choice.named(["optax", "chex"])] == ["chex", "optax"]
    assert choice.chosen(options()) == [*catalogue.OF_EVERY_COMMIT]
    assert choice.chosen(options("--all")) == [*catalogue.PARTS]
    with pytest.raises(ValueError, match="no part named numpy; there are blackjax, "):
        choice.chosen(options("--only", "numpy"))


def test_a_period_of_commits_visits_every_part_once(monkeypatch):
    steps = [Step(number) for number in range(PERIOD)]
    visited = [part for step in steps for part in choice.of_step(step)]
    left = {p.name for p in catalogue.ON_DEMAND} - {p.name for p in visited}
    assert left == {"torch_dlpack"} and len(visited) == len({p.name for p in visited})
    assert max(len(choice.of_step(step)) for step in steps) <= -(-len(visited) // PERIOD)
    assert choice.of_step(None) == []
    monkeypatch.setattr(choice, "step_of_commit", lambda: Step(3))
    everyday = choice.chosen(options())
    assert choice.chosen(options("--quick")) == [*everyday, *choice.of_step(Step(3))]
    assert choice.chosen(options("--quick", choice.NO_TURNS)) == everyday


def test_libraries_of_parts_on_demand_are_installed_if_they_run(monkeypatch):
    monkeypatch.setattr(choice, "step_of_commit", lambda: None)
    always = ["-r", str(choice.REQUIREMENTS)]
    assert choice.to_install(["--quick"]) == choice.to_install(["--only", "chex"]) == always
    versions = ["-c", str(choice.REQUIREMENTS_ON_DEMAND)]
    on_demand = ["--only", "chex", "torch_dlpack", "tinygp", "--rounds", "3"]
    assert choice.to_install(on_demand) == [*always, *versions, "tinygp", "torch"]
    monkeypatch.setattr(choice, "step_of_commit", lambda: Step(0))
    visited = {part.library for part in choice.of_step(Step(0))}
    assert visited - {"jax"} <= {*choice.to_install(["--quick"])}


def test_names_of_parts_differ():
    names = [part.name for part in catalogue.PARTS]
    assert len(names) == len({*names})


def test_markdown_table():
    slow = replace(ROW, name="slow", what="`slow.py`", cold_here=3.0, where="in its loop")
    unmeasured = replace(ROW, cold_there=None, warm_here=None, passed_there=None)
    text = report.markdown([ROW, slow, unmeasured])
    lines = text.splitlines()
    assert lines[2] == (
        "| library | 1.0 | its test suite | 9 | 10 | 1.0 s | 2.0 s | 0.50 | 0.5 s | 2.0 s | 0.25 |"
    )
    assert "| 3.0 s | 2.0 s | 1.50 |" in lines[3]
    assert "| 9 | - | 1.0 s | - | - | - | 2.0 s | - |" in lines[4]
    assert len({line.count("|") for line in lines[:5]}) == 1
    assert text.endswith("- library, `slow.py`: in its loop")
    assert "slower" not in report.markdown([ROW]).lower()


def test_table_markers():
    page = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    new = report.put_into(page, "| table |")
    assert new == f"before\n{report.BEGIN}\n\n| table |\n\n{report.END}\nafter\n"
    assert report.put_into(new, "| table |") == new
    for text in ("nothing", report.END + report.BEGIN, page + page):
        with pytest.raises(ValueError, match="no place for the table"):
            report.put_into(text, "| table |")
    report.put_into(command.PAGE.read_text("utf-8"), "| table |")


def test_earlier_rows_remain(tmp_path):
    path = tmp_path / "rows.json"
    order = ["first", "part"]
    report.merge(path, [ROW], order)
    report.merge(path, [replace(ROW, name="first"), replace(ROW, name="gone")], order)
    newer = replace(ROW, passed_here=10)
    assert report.merge(path, [newer], order) == [replace(ROW, name="first"), newer]


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """A plan with fake processes."""
    here, there = Side("here", sys.executable, True), Side("there", sys.executable, False)
    return compare.Plan(here, there, tmp_path)


def answer(monkeypatch, here, there):
    """Set the outputs of the fake processes."""
    sides = {"here": iter(here), "there": iter(there)}
    monkeypatch.setattr(Side, "run_script", lambda self, path, cache: (next(sides[self.name]), 1.0))


def test_matching_script(plan, monkeypatch):
    answer(monkeypatch, [{"x": 1.0001}] * 2, [{"x": 1.0}] * 2)
    result = compare.run_script(plan, PROGRAM)
    assert not result.faults
    assert result.row.passed_here == result.row.passed_there == 1
    assert result.row.cold_here == result.row.warm_there == 1.0


def test_differing_script(plan, monkeypatch):
    answer(monkeypatch, [{"x": 1.1}] * 2, [{"x": 1.0}] * 2)
    result = compare.run_script(plan, PROGRAM)
    assert result.faults == [".x: 1.1 here, 1.0 there"]
    assert result.row.passed_here == 0


def test_script_with_a_different_warm_result(plan, monkeypatch):
    answer(monkeypatch, [{"x": 1.0}, {"x": 1.0001}], [{"x": 1.0}] * 2)
    result = compare.run_script(plan, PROGRAM)
    assert result.faults == ["compiled programs from the cache give another answer"]


def test_script_whose_answers_vary(plan, monkeypatch):
    varying = replace(PROGRAM, varies=True)
    answer(monkeypatch, [{"x": 1.0}, {"x": 1.0001}], [{"x": 1.0}] * 2)
    assert not compare.run_script(plan, varying).faults
    answer(monkeypatch, [{"x": 1.0}, {"x": 1.1}], [{"x": 1.0}] * 2)
    faults = compare.run_script(plan, varying).faults
    assert faults == ["compiled programs from the cache give another answer"]


def test_quick_run_skips_warm_runs_of_the_reference(plan, monkeypatch):
    answer(monkeypatch, [{"x": 1.0}] * 2, [{"x": 1.0}])
    row = compare.run_script(replace(plan, whole=False), PROGRAM).row
    assert row.warm_there is None and row.warm_here == 1.0


def test_missing_results(tmp_path):
    side = Side("there", sys.executable, False)
    silent = tmp_path / "silent.py"
    silent.write_text("")
    with pytest.raises(NoResult, match=r"there: silent.py printed no line of JSON"):
        side.run_script(silent, tmp_path)
    silent.write_text("raise SystemExit('the reason')")
    with pytest.raises(NoResult, match="there: exit status 1\nthe reason"):
        side.run_script(silent, tmp_path)


SUITE = """
import pytest

def test_fine():
    pass

def test_wrong():
    assert {wrong}

@pytest.mark.skip
def test_left_out():
    pass
"""


def suites(plan, monkeypatch, **modules):
    """Create a package with one test module for each side; both sides run the real pytest."""
    for name, text in modules.items():
        folder = plan.scratch / "packages" / name
        folder.mkdir(parents=True)
        (folder / "some_test.py").write_text(text)
    monkeypatch.setattr(Side, "folder_of", lambda self, _: plan.scratch / "packages" / self.name)
    return replace(plan, here=replace(plan.here, as_jax=False), workers=0)


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "quick"])
def test_suite(plan, monkeypatch, whole):
    plan = suites(plan, monkeypatch, here=SUITE.format(wrong=0), there=SUITE.format(wrong=1))
    plan = replace(plan, whole=whole)
    result = compare.run_suite(plan, parts.Suite("pytest", "pytest"))
    assert result.faults == ["some_test::test_wrong passes there, failed here"]
    assert result.row.passed_here == 1
    assert result.row.passed_there == (2 if whole else None)


MANY = """
import pytest

@pytest.mark.parametrize("i", range(24))
def test_fine(i):
    pass
"""


def test_turns_visit_all_shares(plan, monkeypatch):
    plan = replace(suites(plan, monkeypatch, here=MANY, there=MANY), whole=False)
    suite = parts.Suite("pytest", "pytest", shares=2)
    passed = []
    for turn in (6, 7):
        monkeypatch.setattr(compare, "turn_of_shares", lambda _, turn=turn: turn)
        result = compare.run_suite(plan, suite)
        assert not result.faults
        passed.append(result.row.passed_here)
    assert sum(passed) == 24 and min(passed) > 0
    monkeypatch.setattr(compare, "turn_of_shares", lambda _: None)
    assert compare.run_suite(plan, suite).row.passed_here == 24


def test_shares_of_parts_on_demand_change_with_each_of_their_turns(monkeypatch):
    everyday, on_demand = choice.named(["optax", "quax"])
    turns = []
    for count in (40, 41, 59, 60):
        monkeypatch.setattr(choice, "commits", lambda count=count: count)
        turns.append((choice.turn_of_shares(everyday), choice.turn_of_shares(on_demand)))
    assert turns == [(40, 2), (41, 2), (59, 2), (60, 3)]
    monkeypatch.setattr(choice, "commits", lambda: None)
    assert choice.turn_of_shares(everyday) is choice.turn_of_shares(on_demand) is None


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "quick"])
def test_suite_with_missing_requirements(plan, monkeypatch, whole):
    plan = suites(plan, monkeypatch, here=SUITE.format(wrong=1), there="import not_installed")
    result = command.run(replace(plan, whole=whole), parts.Suite("pytest", "pytest"))
    if whole:
        result = "\n".join(result.faults)
    assert "some_test could not be imported there" in result or "some_test.py" in result


def test_ignored_modules(plan, monkeypatch):
    plan = suites(plan, monkeypatch, here=MANY, there=MANY)
    for side in ("here", "there"):
        (plan.scratch / "packages" / side / "other_test.py").write_text("import not_installed")
    suite = parts.Suite("pytest", "pytest", ignored=("other_test.py",))
    result = compare.run_suite(replace(plan, whole=False), suite)
    assert not result.faults and result.row.passed_here == 24


MODULE = """
import os

def test_environment():
    assert os.environ["SOME_OPTION"] == "1"
"""


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "quick"])
def test_chosen_modules_and_environment(plan, monkeypatch, whole):
    plan = suites(plan, monkeypatch, here="import not_installed", there="import not_installed")
    for side in ("here", "there"):
        (plan.scratch / "packages" / side / "chosen_test.py").write_text(MODULE)
    suite = parts.Suite(
        "pytest", "pytest", modules=("chosen_test.py",), environment=(("SOME_OPTION", "1"),)
    )
    result = compare.run_suite(replace(plan, whole=whole), suite)
    assert not result.faults and result.row.passed_here == 1


def test_suite_in_a_source_distribution(plan, monkeypatch):
    commands = []

    def run(self, arguments, cache, statuses=(0,)):
        commands.append(arguments)
        target = Path(arguments[arguments.index("--dest") + 1])
        (target / "made" / "a-1.0" / "tests").mkdir(parents=True)
        (target / "made" / "a-1.0" / "tests" / "some_test.py").write_text(MANY)
        with tarfile.open(target / "a-1.0.tar.gz", "w:gz") as file:
            file.add(target / "made" / "a-1.0", "a-1.0")
        shutil.rmtree(target / "made")

    with monkeypatch.context() as patched:
        patched.setattr(Side, "run", run)
        patched.setattr(Side, "version_of", lambda self, distribution: "1.0")
        suite = parts.Suite("a", "a", tests="tests")
        folders = compare._folders(plan, suite)
        assert compare._folders(plan, suite) == folders
    assert len(commands) == 1 and commands[0][-1] == "a==1.0"
    assert folders["here"] == folders["there"] and folders["here"].name == "tests"
    assert [path.name for path in folders["here"].iterdir()] == ["some_test.py"]


def test_exit_status(monkeypatch, tmp_path, capsys):
    outcome: list[compare.Result | str] = [compare.Result(ROW)]
    monkeypatch.setattr(command, "run", lambda plan, part: outcome[0])
    arguments = ["--only", "chex", "--json", str(tmp_path / "rows.json")]
    assert command.main(arguments) == 0
    outcome[0] = compare.Result(ROW, ["x differs"])
    assert command.main(arguments) == 1
    assert "chex: x differs" in capsys.readouterr().out
    outcome[0] = "there: exit status 3"
    assert command.main(arguments) == 1


def test_table_needs_both_sides():
    with pytest.raises(SystemExit):
        command.parse(["--quick", "--write"])


def test_page_exists():
    assert command.PAGE == Path(__file__).resolve().parents[1] / "docs" / "compatibility.md"
