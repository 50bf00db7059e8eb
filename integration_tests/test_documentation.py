"""Tests that the Python code of the documentation and the READMEs runs.

The introduction also applies to JAX: its pages also run with every ``primax`` replaced by ``jax``,
under ``primax.as_jax`` and on the real jax.
"""

from __future__ import annotations

import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from primax_core import errors
from primax_core._base.errors import DOCS_FOLDER
from primax_core._base.identity import DOCS_URL

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
ERROR_PAGES = sorted((DOCS / "errors").glob("*.md"))
# The import path of the class that a page explains, and its base classes.
CLASS = re.compile(
    r"^\*\*Class\.\*\* `([\w.]+)`,\s+a\s+subclass\s+of\s+((?:`[\w.]+`(?:\s+and\s+)?)+)", re.M
)
ALL_PAGES = sorted({*DOCS.rglob("*.md")} - {DOCS / "index.md"})
READMES = [ROOT / "README.md", *sorted(ROOT.glob("packages/*/README.md"))]
PAGES = [
    p
    for p in [*ALL_PAGES, *READMES]
    if p.parent.name not in ("design", "errors") and BLOCK.search(p.read_text("utf-8"))
]
# Pages about a wheel that is built only where there is a C++ compiler.
NATIVE = (DOCS / "native_kernels.md", ROOT / "packages/ffi_cpu/README.md")
INTRODUCTION = [p for p in PAGES if p.parent.name == "introduction"]
AS_JAX = ("-m", "primax.as_jax")


FAILS = """
def fails(line, source, base, name, texts):
    import builtins, pkgutil
    expected = pkgutil.resolve_name(name)
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
        name, _ = class_of(text)
        base, source, message = block.groups()
        code[first] = f"fails({first}, {source!r}, {base!r}, {name!r}, {lines(message)!r})"
    return "\n".join(code)


def line_of(text: str, block: re.Match[str]) -> int:
    """Index of the first line of the code of a block."""
    return text[: block.start()].count("\n") + 1


def class_of(text: str) -> tuple[str, list[str]]:
    """The import path of the class that a page explains, and the names of its base classes."""
    match = CLASS.search(text)
    assert match, f"no line about the class: {text[:200]}"
    return match[1], re.findall(r"`([\w.]+)`", match[2])


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


@pytest.mark.rotate(every=2, whole=True)
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_of_the_page_runs(page, tmp_path):
    if page in NATIVE and find_spec("primax_ffi_cpu") is None:
        pytest.skip("native kernels need the wheel primax-ffi-cpu, and a C++ compiler")
    run(page, code_of(page), tmp_path)


@pytest.mark.rotate(every=4, whole=True)
@pytest.mark.parametrize("options", [AS_JAX, ()], ids=["primax as jax", "the real jax"])
@pytest.mark.parametrize("page", INTRODUCTION, ids=lambda p: p.stem)
def test_introduction_runs_on_jax(page, options, tmp_path):
    if not options and find_spec("jax") is None:
        pytest.skip("jax is not installed")
    run(page, re.sub(r"\bprimax\b", "jax", code_of(page)), tmp_path, *options)


def test_error_pages_run(tmp_path):
    """All in one process, each with its own globals; some need several devices."""
    script = "import runpy, primax\nprimax.config.update('num_cpu_devices', 4)\n"
    for page in ERROR_PAGES:
        part = tmp_path / f"{page.stem}.py"
        part.write_text(code_of(page), "utf-8")
        script += f"runpy.run_path({str(part)!r}, run_name='__main__')\n"
    run(ERRORS, script, tmp_path)


def test_failing_examples_are_checked(tmp_path):
    page = tmp_path / "page.md"
    start = "# Page\n\n**Class.** `primax.errors.PrimaxTypeError`, a subclass of `TypeError`.\n\n"
    failing = "```python raises=TypeError\n{}\n```\n\n```text\n{}\n```\n"
    unexpected = "from primax_core.errors import KeyReuseError; raise KeyReuseError('{}')"
    page.write_text(start + failing.format(unexpected.format("used twice"), "used twice"))
    run(page, code_of(page), tmp_path)
    for source, text, complaint in [
        ("1 + 1", "", "the example on line 5 does not raise primax.errors.PrimaxTypeError"),
        (unexpected.format("once"), "twice", "line 5: 'twice' is not in the message once"),
        ("{}[1]", "", "KeyError: 1"),
        ("raise TypeError('a')", "", "TypeError: a"),
    ]:
        page.write_text(start + failing.format(source, text))
        with pytest.raises(AssertionError, match=re.escape(complaint)):
            run(page, code_of(page), tmp_path)
    page.write_text(start.replace("Primax", "Prim") + failing.format("1 + 1", ""))
    with pytest.raises(AssertionError, match=r"AttributeError: .*'PrimTypeError'"):
        run(page, code_of(page), tmp_path)
    page.write_text("# Page\n\n" + failing.format("1 + 1", ""))
    with pytest.raises(AssertionError, match="no line about the class"):
        code_of(page)


def test_output_blocks_are_compared_in_order(tmp_path):
    page = tmp_path / "page.md"
    text = "```python\nprint('a'); print('b')\n```\n\n```output\n{}\n```\n\n```output\n{}\n```\n"
    page.write_text(text.format("a", "b"))
    run(page, code_of(page), tmp_path)
    for first, second in [("b", "a"), ("a", "a"), ("a", "c")]:
        page.write_text(text.format(first, second))
        with pytest.raises(AssertionError, match=r"shows\n *[ac]\n *\n *but its code prints"):
            run(page, code_of(page), tmp_path)


@pytest.mark.parametrize("page", ERROR_PAGES, ids=lambda p: p.stem)
def test_error_page_has_all_parts(page):
    text = page.read_text("utf-8")
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    assert parts[0].startswith(f"# {page.stem}\n")
    assert parts[1::2] == ["Example", "Causes", "Solutions", "Related pages"]
    assert len(FAILING.findall(parts[2])) == 1
    assert BLOCK.search(parts[6]), "a page without a solution that runs"
    name, bases = class_of(text)
    cls = pkgutil.resolve_name(name)
    assert name.endswith(f".{page.stem}")
    assert {b.rpartition(".")[2] for b in bases} <= {c.__name__ for c in cls.__mro__[1:]}
    assert bases


def test_index_of_errors_has_every_page_and_its_old_address():
    text = ERRORS.read_text("utf-8")
    rows = re.findall(r'^\| <a id="(\w+)"></a>\[`(\w+)`\]\(errors/(\w+)\.md\) \|', text, re.M)
    assert sorted(page for _, _, page in rows) == [p.stem for p in ERROR_PAGES]
    for anchor, name, page in rows:
        assert name == page and anchor == name.lower()


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


def test_errors_link_to_their_pages():
    text = str(errors.PrimaxTypeError("What happened."))
    address = text.rpartition("See ")[2]
    assert address == f"{DOCS_FOLDER}PrimaxTypeError.html"
    page = address.removeprefix(DOCS_URL)
    assert (DOCS / page).with_suffix(".md") in ERROR_PAGES
    classes = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert classes <= {p.stem for p in ERROR_PAGES}


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
    assert {*ALL_PAGES} - contents - {*ERROR_PAGES} == linked - {DOCS / "../README.md"}
