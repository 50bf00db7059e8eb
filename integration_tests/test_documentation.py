"""The Python on the documentation's pages runs, in the order in which it is read.

The introduction is written so that it holds for JAX too: its pages also run with every ``primax``
turned into ``jax``, on Primax in jax's place and on the real jax.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FRAGMENTS = {DOCS / "errors.md"}  # programs that fail, beside their cures
PAGES = [
    p
    for p in sorted({*DOCS.rglob("*.md")} - FRAGMENTS - {*DOCS.glob("design/*.md")})
    if BLOCK.search(p.read_text("utf-8"))
]
INTRODUCTION = [p for p in PAGES if p.parent.name == "introduction"]
AS_JAX = ("-m", "primax.as_jax")


def code_of(page: Path) -> str:
    """The page's blocks, each at its own line, so that errors point into the page."""
    text = page.read_text("utf-8")
    code = ["" for _ in text.splitlines()]
    for block in BLOCK.finditer(text):
        first = text[: block.start()].count("\n") + 1
        for i, line in enumerate(block.group(1).splitlines()):
            code[first + i] = line
    return "\n".join(code)


def run(page: Path, code: str, folder: Path, *how: str) -> None:
    """Runs the page's code in a process of its own."""
    script = folder / f"page_{page.stem}.py"  # not the name of a module, such as random
    script.write_text(code, "utf-8")
    command = [sys.executable, *how, str(script)]
    env = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    done = subprocess.run(command, text=True, capture_output=True, env=env)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_code_on_the_page_runs(page, tmp_path):
    run(page, code_of(page), tmp_path)


@pytest.mark.parametrize("how", [AS_JAX, ()], ids=["primax as jax", "the real jax"])
@pytest.mark.parametrize("page", INTRODUCTION, ids=lambda p: p.stem)
def test_the_introduction_holds_for_jax(page, how, tmp_path):
    if not how and find_spec("jax") is None:
        pytest.skip("jax is not installed")
    run(page, re.sub(r"\bprimax\b", "jax", code_of(page)), tmp_path, *how)


def test_the_tutorials_are_among_the_pages():
    names = {p.name for p in PAGES if p.parent.name == "extending"}
    assert {"primitive.md", "interpreter.md", "rules.md", "programs.md"} <= names
    assert len(INTRODUCTION) >= 6


def test_every_page_is_linked_from_the_index():
    index = (DOCS / "index.md").read_text("utf-8")
    linked = {DOCS / link for link in re.findall(r"\]\(([^)#]+\.md)\)", index)}
    assert {p for p in PAGES if p.parent != DOCS / "design"} <= linked
