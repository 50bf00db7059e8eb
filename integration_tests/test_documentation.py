"""Tests that the Python code of the documentation and the READMEs runs.

The introduction also applies to JAX: its pages also run with every ``primax`` replaced by ``jax``,
under ``primax.as_jax`` and on the real jax.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FRAGMENTS = {DOCS / "errors.md"}  # failing examples beside their corrections
ALL_PAGES = sorted({*DOCS.rglob("*.md")} - {DOCS / "index.md"})
READMES = [ROOT / "README.md", *sorted(ROOT.glob("packages/*/README.md"))]
PAGES = [
    p
    for p in [*ALL_PAGES, *READMES]
    if p not in FRAGMENTS and p.parent.name != "design" and BLOCK.search(p.read_text("utf-8"))
]
INTRODUCTION = [p for p in PAGES if p.parent.name == "introduction"]
AS_JAX = ("-m", "primax.as_jax")


def code_of(page: Path) -> str:
    """The code blocks of a page at their original line numbers, so that tracebacks match."""
    text = page.read_text("utf-8")
    code = ["" for _ in text.splitlines()]
    for block in BLOCK.finditer(text):
        first = text[: block.start()].count("\n") + 1
        for i, line in enumerate(block.group(1).splitlines()):
            code[first + i] = line
    return "\n".join(code)


def run(page: Path, code: str, folder: Path, *options: str) -> None:
    """Run the code of a page in a separate process."""
    script = folder / f"page_{page.stem}.py"  # the prefix avoids module names, such as random
    script.write_text(code, "utf-8")
    command = [sys.executable, *options, str(script)]
    env = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    process = subprocess.run(command, text=True, capture_output=True, env=env)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_of_the_page_runs(page, tmp_path):
    run(page, code_of(page), tmp_path)


@pytest.mark.parametrize("options", [AS_JAX, ()], ids=["primax as jax", "the real jax"])
@pytest.mark.parametrize("page", INTRODUCTION, ids=lambda p: p.stem)
def test_introduction_runs_on_jax(page, options, tmp_path):
    if not options and find_spec("jax") is None:
        pytest.skip("jax is not installed")
    run(page, re.sub(r"\bprimax\b", "jax", code_of(page)), tmp_path, *options)


def test_pages_include_tutorials_and_readmes():
    names = {p.name for p in PAGES if p.parent.name == "extending"}
    assert {"primitive.md", "interpreter.md", "rules.md", "jaxprs.md"} <= names
    assert len(INTRODUCTION) >= 6
    wheels = {p.parent.name for p in PAGES if p in READMES}
    assert {"core", "interpreters", "numpy", "nn", "scipy"} <= wheels


def test_index_links_every_page():
    index = (DOCS / "index.md").read_text("utf-8")
    linked = {DOCS / link for link in re.findall(r"\]\(([^)#]+\.md)\)", index)}
    assert {*ALL_PAGES} == linked - {DOCS / "../README.md"}
