"""Checks the English and the names of clean folders: ``python tools/words.py [FOLDER...]``.

A folder is added to ``CLEAN`` when its docstrings, comments and names follow CONTRIBUTING. The
rules cover the mistakes that a pattern finds reliably; they do not replace a reader. Run by
``nox -s lint``. Exit status 0 if there are no findings.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLEAN = (
    "packages/core",
    "packages/distributed",
    "packages/ffi",
    "packages/ffi_cpu",
    "packages/interpreters",
    "packages/kernels",
    "packages/numpy",
    "packages/nn",
    "packages/scipy",
)
OPENINGS = ("What", "Who", "Where", "How", "Whether", "Which")
VARIABLES = frozenset(("found", "given", "made", "wanted", "kept"))
# Patterns in docstrings, comments and messages, with their replacements.
PHRASES = {
    r"short roads?": "fast path",
    r"held programs?": "sub-jaxpr",
    r"\bthe door\b": "extension API",
    # Not the attribute ``slope`` of SciPy's results, in code, quotes or a list of attributes
    r"(?<![.`\"'])\bslopes?\b(?![:`\"'])": "derivative",
    r"\bturned (round|back)\b": "flipped, reversed",
    r"\btold apart\b": "distinguished",
    r"\bof the user's\b": "the user's",
    r"\b(is|are|was|were) told\b": "the name of the component, and what it receives",
    r"\bhas to say\b": "the noun",
    r"\b(nobody|somebody|whoever|strangers?)\b": "the name of the component",
    r"\b(shall|anew|any more|lest|whom)\b": "present-day English",
}
_PHRASES = [(re.compile(p, re.IGNORECASE), better) for p, better in PHRASES.items()]
_DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def findings(source: str) -> list[tuple[int, str]]:
    """Line numbers and messages of the findings in a module, in order."""
    tree = ast.parse(source)
    return sorted({*_of_docstrings(tree), *_of_names(tree), *_of_phrases(source)})


def _of_docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS):
            text = ast.get_docstring(node)
            opening = text.split(maxsplit=1)[0] if text else ""
            if text and opening in OPENINGS:
                yield node.body[0].lineno, f"docstring begins with {opening!r}: begin with the noun"


def _of_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "_" and node.decorator_list:
            yield node.lineno, "decorated function is named '_': name it after the rule, as '_jvp'"
        name = _bound_name(node)
        if name in VARIABLES:
            line = getattr(node, "lineno", 0)
            yield line, f"variable is named {name!r}: name it after its value"


def _bound_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return None


def _of_phrases(source: str) -> Iterator[tuple[int, str]]:
    texts = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in texts:
            continue
        for offset, line in enumerate(token.string.splitlines()):
            for pattern, better in _PHRASES:
                match = pattern.search(line)
                if match:
                    yield token.start[0] + offset, f"{match[0]!r}: write {better}"


def check(folders: Iterable[str]) -> list[str]:
    """Findings in the Python files of folders, as ``path:line: message``."""
    out = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for line, message in findings(path.read_text(encoding="utf-8")):
                out.append(f"{path.relative_to(ROOT)}:{line}: {message}")
    return out


def main() -> int:
    """Print the findings; the exit status."""
    messages = check(sys.argv[1:] or CLEAN)
    for message in messages:
        print(message)
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
