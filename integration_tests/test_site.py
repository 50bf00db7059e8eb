"""The documentation site, which ``nox -s docs`` builds."""

from __future__ import annotations

import functools
import http.server
import importlib
import inspect
import shutil
import subprocess
import threading
from collections.abc import Iterator
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


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PAGES = ["index", "gallery/index", "learn/from_scratch", "api/primax.numpy"]


@pytest.fixture(scope="module")
def address(names: set[str]) -> Iterator[str]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    handler = functools.partial(Handler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def in_browser(url: str, folder: Path) -> tuple[str, list[str]]:
    """The document of a page after its scripts have run, and the errors of its console."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--disable-background-networking", "--no-first-run", "--enable-logging=stderr"]
    command += [f"--user-data-dir={folder}", "--virtual-time-budget=10000", url]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    errors = [line for line in process.stderr.splitlines() if ":ERROR:CONSOLE" in line]
    return process.stdout, errors


@pytest.mark.parametrize("page", PAGES)
def test_page_renders_without_console_errors(page: str, address: str, tmp_path: Path) -> None:
    document, errors = in_browser(f"{address}/{page}.html", tmp_path)
    assert errors == []
    assert "</h1>" in document or "<h1>" in document


def test_search_finds_a_function_and_a_page(address: str, tmp_path: Path) -> None:
    document, errors = in_browser(f"{address}/search.html?q=vmap", tmp_path)
    assert errors == []
    assert "api/primax.html#primax.vmap" in document
    assert "pages matching the search query" in document
