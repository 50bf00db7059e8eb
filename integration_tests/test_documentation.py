"""The Python on the documentation's pages runs, in the order in which it is read."""

from __future__ import annotations

import re
import subprocess
import sys
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


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_code_on_the_page_runs(page, tmp_path):
    text = page.read_text("utf-8")
    code = ["" for _ in text.splitlines()]
    for block in BLOCK.finditer(text):  # at its own line, so that errors point into the page
        first = text[: block.start()].count("\n") + 1
        for i, line in enumerate(block.group(1).splitlines()):
            code[first + i] = line
    script = tmp_path / f"page_{page.stem}.py"  # not the name of a module, such as random
    script.write_text("\n".join(code), "utf-8")
    done = subprocess.run([sys.executable, str(script)], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_the_tutorials_are_among_the_pages():
    names = {p.name for p in PAGES if p.parent.name == "extending"}
    assert {"primitive.md", "interpreter.md", "rules.md", "programs.md"} <= names
