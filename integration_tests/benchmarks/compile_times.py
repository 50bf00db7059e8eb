"""Size and compile time of every function's module, and of its gradient's, against the reference.

``python -m integration_tests.benchmarks.compile_times [--only PART] [--above RATIO] [--json FILE]``
with ``packages/core/tests`` on the path. The cases are those of the wheels' tests. Both libraries
run in one process, without their caches on disk, and compile in turn; the time is that of all
threads (CPU). Rows above the ratio are printed, the slowest last, and the sums over all cases.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
# The module of the cases, below a wheel's tests, and the module of the functions.
TABLES: Final = {
    "numpy": ("function_cases", ".numpy"),
    "nn": ("nn_cases", ".nn"),
    "scipy": ("special_cases", ".scipy.special"),
}
ROUNDS: Final = 3
# A difference that a user notices, in seconds; smaller ones are mostly noise.
NOTICEABLE: Final = 0.004
_OPERATION: Final = re.compile(r"\b(?:stablehlo|chlo|mhlo)\.(?!return\b)\w+")


@dataclass
class Row:
    """A function: operations and compile seconds, of the reference and of Primax."""

    name: str
    operations: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Compile time here, over the reference's."""
        return self.seconds[1] / self.seconds[0]


def cases(only: str) -> Iterator[tuple[str, Callable[[Any], Callable[..., Any]], list[Any]]]:
    """Names, calls by root module, and operands of the cases with a part in their name."""
    for wheel, (module, path) in TABLES.items():
        sys.path.append(str(ROOT / "packages" / wheel / "tests"))
        table = importlib.import_module(module)
        for case in table.all_cases() if hasattr(table, "all_cases") else table.CASES:
            if case.compiled and not case.differs and only in case.name:
                for name, build, by in _forms(case, path):
                    args = case.draw()
                    yield name, _fixed(build, args, by), [args[i] for i in by]


def _forms(case: Any, path: str) -> Iterator[tuple[str, Callable[[Any], Any], tuple[int, ...]]]:
    def function(root: str) -> Callable[..., Any]:
        return case.on(importlib.import_module(root + path))

    yield repr(case), function, case.positions()
    if case.order and case.differentiated() and not case.derivative_differs:

        def pulled_back(root: str) -> Callable[..., Any]:
            lib = importlib.import_module(root)

            def total(*args: Any) -> Any:
                outs = lib.tree_util.tree_leaves(function(root)(*args))
                return sum(o.real.sum() for o in outs if o.dtype.kind in "fc")

            return total

        yield f"grad {case!r}", pulled_back, case.differentiated()


def _fixed(build: Any, args: list[Any], by: tuple[int, ...]) -> Callable[[str], Callable[..., Any]]:
    from test_support import fixing

    return lambda root: fixing(build(root), args, by)


def lowered_by(root: str, call: Any, operands: list[Any], derive: bool) -> Callable[[], Any]:
    """A function that traces and lowers the call anew."""
    lib = importlib.import_module(root)

    def lower() -> Any:
        fun = call(root)
        if derive:
            fun = lib.grad(fun, tuple(range(len(operands))))
        return lib.jit(lambda *xs: fun(*xs)).lower(*operands)

    return lower


def measure(name: str, call: Any, operands: list[Any], roots: tuple[str, str]) -> Row | None:
    """Compile both modules in turn; ``None`` if one library refuses the case."""
    lowers = [lowered_by(root, call, operands, name.startswith("grad ")) for root in roots]
    row = Row(name)
    try:
        modules = [lower() for lower in lowers]
        row.operations = [len(_OPERATION.findall(m.as_text())) for m in modules]
        samples: list[list[float]] = [[], []]
        for turn in range(ROUNDS):
            for side, lower in enumerate(lowers):
                module = modules[side] if turn == 0 else lower()
                importlib.import_module(roots[side]).clear_caches()
                start = time.process_time()
                module.compile()
                samples[side].append(time.process_time() - start)
            if turn and not _differs([min(s) for s in samples]):
                break
    except Exception:
        return None
    row.seconds = [min(s) for s in samples]
    return row


def _differs(seconds: list[float]) -> bool:
    return seconds[1] > 1.05 * seconds[0] + NOTICEABLE


def main() -> None:
    """Measure all cases, and print those above the ratio and the sums."""
    from rich.console import Console
    from rich.progress import track

    parser = argparse.ArgumentParser(prog="python -m integration_tests.benchmarks.compile_times")
    parser.add_argument("--only", default="", help="part of a function's name")
    parser.add_argument("--above", type=float, default=1.05, help="smallest ratio to print")
    parser.add_argument("--reference", default="jax")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    roots = (args.reference, "primax")
    for root in roots:
        importlib.import_module(root).config.update("jax_enable_compilation_cache", False)
    warnings.simplefilter("ignore")
    console = Console(stderr=True)
    rows = []
    for name, call, operands in track(list(cases(args.only)), "compiling", console=console):
        row = measure(name, call, operands, roots)
        if row is not None:
            rows.append(row)
    show(rows, args.above)
    if args.json:
        args.json.write_text(json.dumps([asdict(r) for r in rows], indent=1), "utf-8")


def show(rows: list[Row], above: float) -> None:
    """Print the table and the sums."""
    from rich.console import Console

    from .table import Table

    table = Table("case", "operations there", "here", "compile ms there", "here", "ratio")
    slow = [r for r in rows if r.ratio > above and _differs(r.seconds)]
    for r in sorted(slow, key=lambda r: r.ratio):
        ms = [f"{1e3 * s:.1f}" for s in r.seconds]
        table.add_row(r.name, *map(str, r.operations), *ms, f"{r.ratio:.2f}")
    console = Console(width=120 if not sys.stdout.isatty() else None)
    console.print(table)
    operations = [sum(r.operations[i] for r in rows) for i in (0, 1)]
    seconds = [sum(r.seconds[i] for r in rows) for i in (0, 1)]
    console.print(
        f"{len(rows)} cases: {operations[1]:,} operations, there {operations[0]:,}; compiled in "
        f"{seconds[1]:.1f} s, there {seconds[0]:.1f} s; {len(slow)} above {above}"
    )


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main()
