"""Every name of the extension API is on the page of its module."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from primax_core import extend

DOCS = Path(__file__).resolve().parent.parent / "docs" / "extending"
MODULES = (
    "",
    "elementwise",
    "traces",
    "lowering",
    "runtime",
    "references",
    "portable_modules",
    "native",
)


def public_names(module: str) -> set[str]:
    """Names that a module defines or re-exports, and those that it imports on first use."""
    found = importlib.import_module(f"{extend.__name__}.{module}".rstrip("."))
    names = set(getattr(found, "_HOMES", ())) | set(getattr(found, "_OWN", ()))
    for node in ast.parse(Path(found.__file__).read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names |= {a.asname for a in node.names if a.asname == a.name}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


def documented_names(module: str) -> set[str]:
    """Names in the first column of the table of a module."""
    text = (DOCS / "names.md").read_text("utf-8")
    heading = f"## extend.{module}" if module else "## extend"
    section = re.split(rf"^{re.escape(heading)}$", text, flags=re.MULTILINE)[1]
    section = re.split(r"^## ", section, flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize("module", MODULES)
def test_the_page_has_the_names_of_the_module(module):
    assert documented_names(module) == public_names(module)


def test_the_page_of_placements_has_their_names():
    rows = re.findall(r"^\| (`[^|]*) \|", (DOCS / "placements.md").read_text("utf-8"), re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert public_names("placements") <= documented


def test_the_page_of_dimensions_has_their_names():
    text = (DOCS / "jaxprs.md").read_text("utf-8")
    from primax_core.extend import dimensions

    assert [n for n in dimensions.__all__ if not re.search(rf"`{n}\b", text)] == []


@pytest.mark.parametrize("module", [m for m in MODULES if m])
def test_names_of_the_pages_can_be_imported(module):
    found = importlib.import_module(f"{extend.__name__}.{module}")
    assert [name for name in documented_names(module) if not hasattr(found, name)] == []


def test_every_rule_kind_of_the_core_is_in_the_table():
    text = (DOCS / "rules.md").read_text("utf-8")
    kinds = {k for k, v in vars(extend).items() if isinstance(v, extend.RuleKind)}
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    assert kinds == {name for row in rows for name in re.findall(r"^`(\w+)`", row)} - {
        "cost",
        "error_checks",
        "faults",
        "taylor",
    }
