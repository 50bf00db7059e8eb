"""The documentation site, which ``nox -s docs`` builds."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="nox -s docs installs Sphinx")
pytest.importorskip("griffe", reason="nox -s docs installs griffe")

from sphinx.util.inventory import InventoryFile

from tools import api_pages

SITE = Path(__file__).resolve().parent.parent / "build" / "site"
MODULES = [name for names in api_pages.MODULES.values() for name in names]


@pytest.fixture(scope="module")
def names() -> set[str]:
    if not (SITE / "objects.inv").exists():
        pytest.skip("the site is not built: nox -s docs")
    with (SITE / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: path)
    return {name for kind, entries in inventory.items() if kind[:3] == "py:" for name in entries}


@pytest.mark.parametrize("module", MODULES)
def test_each_public_name_has_an_entry(module: str, names: set[str]) -> None:
    public = api_pages.public(importlib.import_module(module))
    assert {f"{module}.{name}" for name in public} <= names


def test_docstrings_become_markdown() -> None:
    docstring = """Summary with `code`.

    Args:
      x: an array
        of floats.

    Raises:
      ValueError: if it is empty.

    >>> f(1)
    2
    """
    lines = "\n".join(api_pages._sections(inspect.cleandoc(docstring)))
    assert "**Parameters**\n\n- `x`: an array\n  of floats." in lines
    assert "**Raises**\n\n- `ValueError`: if it is empty." in lines
    assert "```pycon\n>>> f(1)\n2\n```" in lines


def test_signatures_have_no_annotations_and_no_addresses() -> None:
    sentinel = object()

    def f(x: int, *, y: float = 1.0, z: object = sentinel) -> int:
        return x

    assert api_pages._signature(f) == "(x, *, y=1.0, z=object)"
