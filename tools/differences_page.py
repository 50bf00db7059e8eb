"""Page of differences from the reference, ``docs/differences.md``, from the tables of the tests.

    python -m tools.differences_page            # writes the page
    python -m tools.differences_page --check    # exit status 1 if it is not current

The tables are those of the wheels' tests (``Case.differs``, ``Case.derivative_differs``) and
``integration_tests/oracle/oracle_differences.py``. The reference itself is not imported.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "differences.md"
COMMAND: Final = "python -m tools.differences_page"
# Tables of cases: the section of the page, the folder, the module, its function or list.
TABLES: Final = (
    ("numpy", "packages/numpy/tests", "function_cases", "all_cases"),
    ("nn", "packages/nn/tests", "nn_cases", "all_cases"),
    ("scipy.special", "packages/scipy/tests", "special_cases", "CASES"),
)
FOLDERS: Final = (
    "packages/core/tests",
    "integration_tests",
    "integration_tests/oracle",
    *(folder for _, folder, _, _ in TABLES),
)
_DRAWN: Final = r"(, )?\b(make|low|high)=(<function .*? at \w+>|[-+.\w]+)"
_ARRAY: Final = r"array\((\[[^\]]*\])(?:, dtype=\w+)?\)"
HEAD: Final = f"""# Differences from JAX

`{COMMAND}` writes this page from the tables of the tests. The tests compare
Primax with JAX, and a difference that is not in a table fails a test. Last bits of results, texts
of errors, and functions that JAX does not have are not listed. Some differences exist only for the
oldest or newest jax that the tests use (0.10 and 0.12).

`f32(2, 3)` is an array of `float32` with this shape. A sentence without a subject is about Primax.
"""
TAIL: Final = """## Other pages

Differences that follow from a design, and are not single calls:

- [Neural networks](design/nn.md#differences-from-the-reference): values at infinity, attention
- [SciPy functions](design/scipy.md#differences-from-the-reference): functions, solvers, signals
- [Sparse arrays](sparse.md#differences-from-the-reference-implementation)
- [Export](export.md#differences-from-jax)
- [Status](design/STATUS.md): what is not implemented, and known faults
"""


def tables() -> Any:
    """The module of differences of programs, and the folders of all tables on the path."""
    for folder in FOLDERS:
        if str(ROOT / folder) not in sys.path:
            sys.path.insert(0, str(ROOT / folder))
    return importlib.import_module("oracle_differences")


def page() -> str:
    """The text of the page."""
    programs = tables()
    sections = {title: list(_calls(*table)) for title, *table in TABLES}
    lines = [HEAD]
    for title, rows in sections.items():
        lines += [f"## `{title}`", "", "| Call | Difference |", "|---|---|", *rows, ""]
    for title in ("lax", "random"):
        statements = [text for module, text, _ in programs.STATEMENTS if module == title]
        lines += [f"## `{title}`", "", *[f"- {_plain(text)}" for text in statements], ""]
    lines += ["## References", "", *_references(programs), ""]
    lines += ["## Symbolic shapes", "", *_symbolic(programs), ""]
    lines += ["## Explicit axes of meshes", "", *_explicit(programs), ""]
    lines += ["## Weak types", "", *_weak_types(programs), ""]
    lines += ["## Parameters without effect", "", *_parameters(), "", TAIL]
    return "\n".join(lines)


def _calls(folder: str, module: str, name: str) -> Iterator[str]:
    """A row for each function and reason, with its first call."""
    del folder  # it is on the path
    cases = getattr(importlib.import_module(module), name)
    calls: dict[tuple[str, str], list[str]] = {}
    for case in cases() if callable(cases) else cases:
        reasons = {"": case.differs, "derivative: ": case.derivative_differs}
        for start, reason in reasons.items():
            if reason:
                calls.setdefault((case.name, start + _plain(reason)), []).append(_call(case))
    for (_, reason), texts in sorted(calls.items()):
        more = f" and {len(texts) - 1} more" if len(texts) > 1 else ""
        yield f"| `{texts[0]}`{more} | {reason} |"


def _call(case: Any) -> str:
    """A call without the functions and bounds that draw its values."""
    text = re.sub(_DRAWN, "", f"{case!r}").replace("(, ", "(")
    return re.sub(_ARRAY, r"\1", text).replace("|", "\\|")


def _plain(text: str) -> str:
    """A reason in the words of the page."""
    text = text.replace("The reference", "JAX").replace("the reference", "JAX")
    return text.replace("|", "\\|")


def _names(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _references(programs: Any) -> Iterator[str]:
    ways: dict[str, list[str]] = {}
    for name, way in sorted(programs.REFERENCES_ACCEPTED):
        ways.setdefault(name, []).append(way)
    yield "Functions with references inside can be transformed where JAX has no rule:"
    yield ""
    for name, transformations in ways.items():
        yield f"- {name}: {_names(transformations)}"


def _symbolic(programs: Any) -> Iterator[str]:
    yield "Names are those of the functions in `integration_tests/oracle/symbolic_programs.py`."
    yield ""
    reasons: dict[str, list[str]] = {}
    for name, reason in programs.SYMBOLIC_SHAPES.items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        yield f"- {_sentence(reason)}: {_names(names)}"


def _explicit(programs: Any) -> Iterator[str]:
    yield "Names are those of the programs in `integration_tests/oracle/explicit_programs.py`."
    yield "Programs that JAX refuses and that have types in Primax:"
    yield ""
    for reason, names in programs.EXPLICIT_AXES_ACCEPTED.items():
        yield f"- {_sentence(reason)}: {_names(names)}"
    yield ""
    yield "Programs whose types differ:"
    yield ""
    for name, reason in programs.EXPLICIT_AXES_DIFFERENT.items():
        yield f"- {_sentence(reason)}: {_names([name])}"


def _weak_types(programs: Any) -> Iterator[str]:
    yield "Results with equal values and dtypes that are weakly typed in one library only:"
    yield ""
    yield f"- {_names(sorted(programs.WEAK_TYPES_OF_PROGRAMS))} of the programs of the tests"
    yield f"- {len(programs.WEAK_TYPES_OF_NESTS)} of 320 random nests of transformations"


def _parameters() -> Iterator[str]:
    """The parameters that are accepted without an effect, by reason."""
    tests = importlib.import_module("test_parameters")
    reasons: dict[str, list[str]] = {}
    tables = {f"lax.{'.'.join(names)}": why for names, why in tests.WITHOUT_EFFECT_IN_LAX.items()}
    for name, reason in {**tables, **tests.UNREAD}.items():
        if not name.endswith("._"):  # an argument of a protocol
            reasons.setdefault(reason, []).append(name if "." in name else f"sparse.*.{name}")
    yield "Parameters that are accepted, and change nothing, as `module.function.parameter`, or as"
    yield "`module.parameter` for all functions of a module:"
    yield ""
    for reason, names in reasons.items():
        yield f"- {_sentence(reason)}: {_names(dict.fromkeys(names))}"


def _sentence(text: str) -> str:
    text = _plain(text)
    return text[:1].upper() + text[1:]


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description="Page of differences from the reference.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    current = page()
    if not parser.parse_args().check:
        PAGE.write_text(current, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == current:
        return 0
    print(f"{PAGE.relative_to(ROOT)} is not current: run {COMMAND}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
