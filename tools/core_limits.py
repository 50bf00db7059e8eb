"""Limits of the core that no linter knows: the number of hooks, and the size of the sources.

Docstrings do not count, so that a limit is no reason against one. Comments count.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final

MOST_HOOKS: Final = 5
"""Hooks by which a lower layer calls a higher one; ``docs/design/core.md`` lists them."""

LOADED: Final = 1_020_000
"""Bytes of code that ``import primax_core`` may load."""

GROWTH: Final[dict[str, int]] = {
    "copies of the core in other packages (vendor)": 42_000,
    "checks of what rules return": 20_000,
    "the extension API on jaxprs checks its arguments; staged functions, overrides": 20_000,
    "checks of the conformance kit for rules of every kind": 13_000,
    "references in the extension API, indices under jvp and vmap, scalar jaxprs": 35_000,
    "native functions, tokens, callbacks with buffers, absent devices (extend.native)": 55_000,
    "rules of trusted packages in keys of the disk cache, arguments of other libraries": 14_000,
    "documentation of rule kinds": 8_000,
    "names and source locations of operations, names of arguments and results": 18_000,
    "checks of untrusted modules, limits of memory mappings and of cache files": 16_000,
    "loop-invariant code of loops": 12_000,
    "arguments of vjp among its residuals, checks of custom rules, collectives over names": 20_000,
    "eager functions of other wheels found by their arguments (extend.one_call)": 5_000,
    "placements in types, lowering of collectives over the axes of a mesh": 45_000,
    "carries that loops do not change": 7_000,
    "logs of backward rules, views as arguments, attributes of operations": 20_000,
    "executables and arrays on several devices, their parts, callbacks in them": 118_000,
    "operations that a function divides over devices (rules of the kind partition)": 10_000,
    "export over several devices and abstract meshes, checks of untrusted shardings": 17_000,
    "meshes and partitions of compiled calls": 3_000,
    "explicit axes in types: rules of axes, sharding of results, divided axes of vmap": 14_000,
    "several processes: their service, members and clients": 32_000,
    "elements of given ranks (order_statistics)": 4_500,
    "native functions that are loaded when needed; NaNs in regions; memory kinds of exports": 5_000,
    "exp2 and erfc by polynomials; classes that vmap splits by functions of their own": 10_500,
    "signatures for type checkers, a line about long compilations, remedies in errors": 10_000,
    "bytes of TPU kernels, classes of tree nodes in files, targets of absent devices": 9_000,
    "decompositions on NVIDIA GPUs (cuSOLVER), texts of the scatter functions": 14_000,
    "checks of cuSOLVER's calls in artifacts, of arguments and of options": 6_000,
    "arrays and jaxprs in notebooks; collectives in several modules": 9_000,
    "types of arguments: trees, shardings, placements, accuracies": 5_000,
    "custom_vjp: forward mode within rules, backward rules of results without cotangents": 3_000,
    "values of several arrays; formats as constraints; addresses of the errors of wheels": 10_000,
    "zeta functions in one loop, logarithms for powers": 1_300,
    "unreduced values in loops": 1_500,
    "executables with callbacks on disk, pages of errors, references to divided arrays": 2_200,
    "partial values that are read, moved and requested": 1_200,
    "types without values as arguments of calls, conversions of classes of values": 1_700,
}
"""What the core got since it was limited to 2 MB with docstrings; the reasons are in
``docs/design/core.md``."""

WHOLE: Final = 1_536_000 + sum(GROWTH.values())
"""Bytes of code of the core."""

_HOOK: Final = re.compile(r"^def (install_\w+)\(", re.MULTILINE)
_LOADED_MODULES: Final = """
import sys, primax_core
names = [name for name in sys.modules if name.partition(".")[0] == "primax_core"]
print(*[getattr(sys.modules[name], "__file__", None) or "" for name in names], sep="\\n")
"""


@dataclass(frozen=True)
class Measure:
    """A quantity of the core's sources and its limit."""

    name: str
    value: int
    limit: int
    details: str = ""

    @property
    def kept(self) -> bool:
        """Whether the value is within the limit."""
        return self.value <= self.limit

    def __str__(self) -> str:
        state = "kept" if self.kept else "BROKEN"
        return f"{self.name}: {self.value:,} of {self.limit:,} {state} {self.details}".rstrip()


def code_size(path: Path) -> int:
    """Bytes of a Python file without its docstrings (strings that are statements)."""
    source = path.read_bytes()
    starts = [0, *accumulate(len(line) for line in source.splitlines(keepends=True))]
    size = len(source)
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(ast.Constant(str()), lineno=line, end_lineno=int(end)):
                assert node.end_col_offset is not None
                size -= starts[end - 1] + node.end_col_offset - starts[line - 1] - node.col_offset
    return size


def hooks(core: Path) -> Measure:
    """Count the functions ``install_*`` in the sources of the core."""
    names = [n for p in sorted(core.rglob("*.py")) for n in _HOOK.findall(p.read_text("utf-8"))]
    return Measure("hooks of the core", len(names), MOST_HOOKS, f"({', '.join(names)})")


def whole(core: Path) -> Measure:
    """Add up the code of the core, with the stubs."""
    files = [p for p in core.rglob("*.py*") if p.suffix in (".py", ".pyi")]
    parts: dict[str, int] = {}
    for path in files:
        part = path.relative_to(core).parts[0].removesuffix(path.suffix)
        parts[part] = parts.get(part, 0) + code_size(path)
    largest = sorted(parts.items(), key=lambda item: -item[1])[:8]
    shown = ", ".join(f"{part} {size:,}" for part, size in largest)
    return Measure("bytes of code of the core", sum(parts.values()), WHOLE, f"({shown})")


def loaded(core: Path) -> Measure:
    """Add up the code that ``import primax_core`` loads, in a process of its own."""
    env = dict(os.environ, PYTHONPATH=str(core.parent))
    command = [sys.executable, "-c", _LOADED_MODULES]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    paths = [Path(line) for line in done.stdout.splitlines() if line.endswith(".py")]
    size = sum(code_size(path) for path in paths)
    return Measure(
        "bytes of code that import primax_core loads", size, LOADED, f"({len(paths)} modules)"
    )
