"""Tests that the Python code of the documentation and the READMEs runs.

The introduction also applies to JAX: its pages also run with every ``primax`` replaced by ``jax``,
under ``primax.as_jax`` and on the real jax.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from primax_core._base.errors import DOCS_PAGE
from primax_core._base.identity import DOCS_URL
from primax_core.errors import PrimaxTypeError

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Text that the code of the page prints, in the order of the blocks.
OUTPUT = re.compile(r"^```output\n(.*?)^```", re.MULTILINE | re.DOTALL)
# An example that raises an error, and the lines that its message contains.
FAILING = re.compile(
    r"^```python raises=(\w+)\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
ERRORS = DOCS / "errors.md"
SECTION = re.compile(r"^## (\w+)$", re.MULTILINE)
ALL_PAGES = sorted({*DOCS.rglob("*.md")} - {DOCS / "index.md"})
READMES = [ROOT / "README.md", *sorted(ROOT.glob("packages/*/README.md"))]
PAGES = [
    p
    for p in [*ALL_PAGES, *READMES]
    if p.parent.name != "design" and BLOCK.search(p.read_text("utf-8"))
]
# Pages about a wheel that is built only where there is a C++ compiler.
NATIVE = (DOCS / "native_kernels.md", ROOT / "packages/ffi_cpu/README.md")
INTRODUCTION = [p for p in PAGES if p.parent.name == "introduction"]
AS_JAX = ("-m", "primax.as_jax")


FAILS = """
def fails(line, source, base, name, texts):
    import builtins, primax_core.dtypes, primax_core.errors
    classes = {**vars(primax_core.errors), **vars(primax_core.dtypes)}
    expected = classes[name]
    try:
        exec(compile("\\n" * line + source, __file__, "exec"), globals())
    except expected as error:
        assert isinstance(error, getattr(builtins, base)), (line, type(error).__mro__)
        assert type(error) is expected or expected.__subclasses__(), (line, type(error))
        for text in texts:
            assert text in str(error), f"line {line}: {text!r} is not in the message {error}"
    else:
        raise AssertionError(f"the example on line {line} does not raise {name}")
"""


def code_of(page: Path) -> str:
    """The code blocks of a page at their original line numbers, so that tracebacks match."""
    text = page.read_text("utf-8")
    code = ["" for _ in text.splitlines()]
    for block in BLOCK.finditer(text):
        first = line_of(text, block)
        for i, line in enumerate(block.group(1).splitlines()):
            code[first + i] = line
    for block in FAILING.finditer(text):
        code[0] = f"exec({FAILS!r})"
        first = line_of(text, block)
        section = SECTION.findall(text[: block.start()])[-1]
        base, source, message = block.groups()
        code[first] = f"fails({first}, {source!r}, {base!r}, {section!r}, {lines(message)!r})"
    return "\n".join(code)


def line_of(text: str, block: re.Match[str]) -> int:
    """Index of the first line of the code of a block."""
    return text[: block.start()].count("\n") + 1


def lines(message: str | None) -> list[str]:
    return (message or "").splitlines()


def run(page: Path, code: str, folder: Path, *options: str) -> None:
    """Run the code of a page in a separate process, and compare what it prints."""
    script = folder / f"page_{page.stem}.py"  # the prefix avoids module names, such as random
    script.write_text(code, "utf-8")
    command = [sys.executable, *options, str(script)]
    env = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    process = subprocess.run(command, text=True, capture_output=True, env=env)
    assert process.returncode == 0, process.stderr
    rest = process.stdout
    for block in OUTPUT.findall(page.read_text("utf-8")):
        text, (_, expected, rest) = rest, rest.partition(block)
        assert expected, f"{page} shows\n{block}\nbut its code prints\n{text}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_of_the_page_runs(page, tmp_path):
    if page in NATIVE and find_spec("primax_ffi_cpu") is None:
        pytest.skip("native kernels need the wheel primax-ffi-cpu, and a C++ compiler")
    run(page, code_of(page), tmp_path)


@pytest.mark.parametrize("options", [AS_JAX, ()], ids=["primax as jax", "the real jax"])
@pytest.mark.parametrize("page", INTRODUCTION, ids=lambda p: p.stem)
def test_introduction_runs_on_jax(page, options, tmp_path):
    if not options and find_spec("jax") is None:
        pytest.skip("jax is not installed")
    run(page, re.sub(r"\bprimax\b", "jax", code_of(page)), tmp_path, *options)


def test_failing_examples_are_checked(tmp_path):
    page = tmp_path / "page.md"
    start = "# Page\n\n## PrimaxTypeError\n\n"
    failing = "```python raises=TypeError\n{}\n```\n\n```text\n{}\n```\n"
    unexpected = "from primax_core.errors import KeyReuseError; raise KeyReuseError('{}')"
    page.write_text(start + failing.format(unexpected.format("used twice"), "used twice"))
    run(page, code_of(page), tmp_path)
    for source, text, complaint in [
        ("1 + 1", "", "the example on line 5 does not raise PrimaxTypeError"),
        (unexpected.format("once"), "twice", "line 5: 'twice' is not in the message once"),
        ("{}[1]", "", "KeyError: 1"),
        ("raise TypeError('a')", "", "TypeError: a"),
    ]:
        page.write_text(start + failing.format(source, text))
        with pytest.raises(AssertionError, match=re.escape(complaint)):
            run(page, code_of(page), tmp_path)
    page.write_text(start.replace("Primax", "Prim") + failing.format("1 + 1", ""))
    with pytest.raises(AssertionError, match="KeyError: 'PrimTypeError'"):
        run(page, code_of(page), tmp_path)


def test_output_blocks_are_compared_in_order(tmp_path):
    page = tmp_path / "page.md"
    text = "```python\nprint('a'); print('b')\n```\n\n```output\n{}\n```\n\n```output\n{}\n```\n"
    page.write_text(text.format("a", "b"))
    run(page, code_of(page), tmp_path)
    for first, second in [("b", "a"), ("a", "a"), ("a", "c")]:
        page.write_text(text.format(first, second))
        with pytest.raises(AssertionError, match=r"shows\n *[ac]\n *\n *but its code prints"):
            run(page, code_of(page), tmp_path)


def test_every_section_of_the_errors_has_an_example_that_raises_it():
    text = ERRORS.read_text("utf-8")
    starts = [SECTION.findall(text[: block.start()])[-1] for block in FAILING.finditer(text)]
    assert starts == SECTION.findall(text)
    for section in SECTION.split(text)[2::2]:
        assert BLOCK.search(section), "a section without a solution that runs"


def test_links_of_the_wheels_to_the_documentation():
    """They work on an index of packages: they are absolute, and each page exists."""
    for readme in sorted(ROOT.glob("packages/*/README.md")):
        links = re.findall(r"\]\(([^)]*)\)", readme.read_text("utf-8"))
        assert links, readme
        for link in links:
            assert link.startswith(DOCS_URL), f"{readme}: {link}"
            page = link.removeprefix(DOCS_URL).partition("#")[0] or "index.html"
            assert (DOCS / page).with_suffix(".md").is_file(), f"{readme}: {link}"


def test_addresses_of_the_documentation_are_equal():
    for project in sorted(ROOT.glob("packages/*/pyproject.toml")):
        urls = tomllib.loads(project.read_text("utf-8"))["project"]["urls"]
        assert urls["Documentation"] == DOCS_URL, project
    page = DOCS_PAGE.removeprefix(DOCS_URL)
    assert (DOCS / page).with_suffix(".md") == ERRORS


def test_errors_link_to_their_sections():
    text = str(PrimaxTypeError("What happened."))
    address, _, anchor = text.rpartition("See ")[2].partition("#")
    assert address == DOCS_PAGE
    assert anchor in {name.lower() for name in SECTION.findall(ERRORS.read_text("utf-8"))}


def test_pages_include_tutorials_and_readmes():
    names = {p.name for p in PAGES if p.parent.name == "extending"}
    assert {"primitive.md", "interpreter.md", "rules.md", "jaxprs.md"} <= names
    assert len(INTRODUCTION) >= 6
    assert {*NATIVE} <= {*PAGES}
    wheels = {p.parent.name for p in PAGES if p in READMES}
    assert {"core", "distributed", "ffi", "interpreters", "kernels", "numpy", "nn"} <= wheels


def test_index_links_every_page():
    index = (DOCS / "index.md").read_text("utf-8")
    linked = {DOCS / link for link in re.findall(r"\]\(([^)#]+\.md)\)", index)}
    # Tables of contents of the site's sections
    contents = {p for p in ALL_PAGES if "```{tableofcontents}" in p.read_text("utf-8")}
    assert {*ALL_PAGES} - contents == linked - {DOCS / "../README.md"}
