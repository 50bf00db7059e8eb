"""The page of differences from the reference is written from the tables of the tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from primax_core.extend import f32
from test_support import case
from tools import differences_page

ROOT = Path(__file__).resolve().parent.parent


def test_page_is_current():
    assert differences_page.PAGE.read_text("utf-8") == differences_page.page(), (
        f"run {differences_page.COMMAND}"
    )


def test_a_new_difference_changes_the_page(monkeypatch):
    programs = differences_page.tables()
    monkeypatch.setitem(programs.EXPLICIT_AXES_DIFFERENT, "planted program", "the reference errs")
    import nn_cases

    planted = case("planted", f32(2, 3, low=1)).set(differs="the reference is wrong")
    monkeypatch.setattr(nn_cases, "all_cases", lambda: [planted, planted.set(differs="")])
    text = differences_page.page()
    assert "- JAX errs: `planted program`\n" in text
    assert "| `planted(f32(2, 3))` | JAX is wrong |\n" in text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (case("f", f32(low=-1.5, high=2)), "f(f32())"),
        (case("f", f32(3, make=lambda rng, shape: 0), 1, mode="a"), "f(f32(3), 1, mode='a')"),
        (case("f", [f32(2), f32(low=1)], axis=None), "f([f32(2), f32()], axis=None)"),
    ],
)
def test_calls_are_shown_without_drawn_values(call, text):
    assert differences_page._call(call) == text


def test_statements_name_tests_that_exist():
    for module, text, test in differences_page.tables().STATEMENTS:
        file, name = test.split("::")
        source = (ROOT / "integration_tests/oracle" / file).read_text("utf-8")
        assert re.search(rf"^def {name}\(", source, re.MULTILINE), test
        assert module in {"lax", "random"} and text.endswith(".")
