"""The page of benchmarks: sections by group that are replaced one by one."""

from __future__ import annotations

import json
import sys

import pytest

pytest.importorskip("rich", reason="nox -s bench installs rich")

from integration_tests.benchmarks import __main__ as benchmarks, page, report
from integration_tests.benchmarks.case import Case

ON = {
    "date": "2026-01-02", "python": "3.12.1", "machine": "x86_64", "processor": "A CPU",
    "cores": 4, "load": 0.1, "versions": {"jax": "0.12.0", "absent": None},
}  # fmt: skip


def run(*figures: tuple[str, str, float | None, float | None], **on: object) -> dict:
    """The document of a run: cases with their groups and figures of both sides, in seconds."""
    rows = []
    for name, group, theirs, ours in figures:
        sides = [[{"missing": "absent"} if s is None else {"value": s}] for s in (theirs, ours)]
        rows.append(report.make_row(Case(name, group, "µs", 0.5, lambda ns: 0.0), *sides))
    return report.document(rows, "jax", "primax", 3, {**ON, **on})


def test_one_group_is_replaced_and_the_others_stay():
    first = page.update("", run(("a", "A", 4e-6, 1e-6), ("b", "B", 2e-6, 2e-6)), ["A", "B"], "AB")
    assert "| A | 1 | 0.25 | 0 | 2026-01-02 |\n| B | 1 | 1.00 | 1 | 2026-01-02 |\n" in first
    assert "| a | 4 µs | 1 µs | 0.25 | 0.5 | 0.25 to 0.25 |\n" in first
    assert "2026-01-02: jax 0.12.0; Python 3.12.1; A CPU, 4 cores; 3 rounds. Command:" in first
    second = page.update(first, run(("b", "B", 2e-6, 1e-6), date="2026-03-04"), ["B"], "AB")
    assert "| A | 1 | 0.25 | 0 | 2026-01-02 |\n| B | 1 | 0.50 | 0 | 2026-03-04 |\n" in second
    assert page.sections(second)["A"] == page.sections(first)["A"]
    assert page.text_of(page.sections(second)) == second


def test_missing_figures_and_a_busy_machine_are_stated():
    text = page.update("", run(("a", "A", None, 1e-6), load=3.0), ["A"], "A")
    assert (
        "| a | - µs | 1 µs | - | 0.5 | - to - |\n\nNot measured:\n\n- a: reference: absent" in text
    )
    assert "The machine was not quiet: its load was 3.0 at the beginning." in text
    assert "| A | 1 | nan | 0 |" in text


def test_recorded_figures_come_last_and_count_rows_of_two():
    table = "| Case | jax | Primax | Ratio | Budget |\n|---|---|---|---|---|\n"
    rows = "| x | 1 | 2 | 2.0 | 1.0 |\n| y / z | 1 / 2 | 2 / 1 | 0.5 / 0.5 | - / 0.4 |\n"
    design = f"# B\n\nWords. The table is for jax 1,\ntwo cores.\n\nMore.\n\n{table}{rows}\nMore.\n"
    parts = {page.RECORDED: page.recorded(design)}
    text = page.update(page.text_of(parts), run(("a", "A", 4e-6, 1e-6)), ["A"], "AB")
    assert text.index("## A") < text.index(f"## {page.RECORDED}")
    assert "with jax 1, two cores. This" in text
    assert f"| {page.RECORDED} | 2 | 0.79 | 2 | - |" in text
    assert page.RECORDED not in page.update(text, run(("b", "B", 1e-6, 1e-6)), ["B"], "AB")


def test_command_writes_complete_groups_of_an_earlier_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(page, "PAGE", tmp_path / "benchmarks.md")
    cases = {group: cases for (_, group), cases in benchmarks.groups("").items()}
    some = [(case.name, "dispatch", 2e-6, 1e-6) for case in cases["dispatch"]]
    part = (cases["eager"][0].name, "eager", 2e-6, 1e-6)
    (tmp_path / "run.json").write_text(json.dumps(run(*some, part)))
    command = ["benchmarks", "--from-json", str(tmp_path / "run.json"), "--write"]
    monkeypatch.setattr(sys, "argv", command)
    benchmarks.main()
    assert [*page.sections(page.PAGE.read_text("utf-8"))] == ["dispatch"]
    assert capsys.readouterr().err.startswith("eager is not written: ")


def test_environment_has_what_the_page_states():
    assert {*report.environment()} == {*ON}


def test_page_in_the_documentation_has_the_current_form():
    text = page.PAGE.read_text("utf-8")
    assert page.text_of(page.sections(text)) == text
