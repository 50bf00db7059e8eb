"""Steady time of the NumPy layer's functions against the reference's and NumPy's, by size.

``python -m integration_tests.benchmarks.numpy_operations [--only PART] [--jitted] [--json FILE]``.
Both libraries run in one process, batch by batch in turn, so that a slow moment of the machine
falls on both; NumPy runs after them. Calls are eager unless ``--jitted`` is given.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from .case import Namespace

SIZES = (1_000, 100_000, 1_000_000)
BUDGET = 1.05


@dataclass
class Function:
    """A call of one module's functions, and its operands for a number of elements.

    Attributes:
      call: ``(module, *arrays)``, where the module is a NumPy layer or NumPy.
      operands: from a number of elements.
      numpy: NumPy's side, if it has another signature.
      jitted: whether the call can be compiled as it stands.
    """

    call: Callable[..., Any]
    operands: Callable[[int], list[np.ndarray]]
    numpy: Callable[..., Any] | None = None
    jitted: bool = True


RNG = np.random.default_rng(0)


def floats(n: int) -> np.ndarray:
    """A vector of random floats."""
    return RNG.standard_normal(n).astype(np.float32)


def square(n: int) -> np.ndarray:
    """A square matrix of random floats, of about so many elements."""
    side = int(n**0.5)
    return floats(side * side).reshape(side, side)


def integers(n: int, high: int | None = None) -> np.ndarray:
    """A vector of random integers."""
    return RNG.integers(0, high or n, n).astype(np.int32)


FUNCTIONS: dict[str, Function] = {}


def plain(name: str, operands: Callable[[int], list[np.ndarray]], **params: Any) -> None:
    """Adds a function that has one signature everywhere."""
    label = " ".join([name, *(f"{k}={v}" for k, v in params.items())])
    FUNCTIONS[label] = Function(lambda m, *xs: getattr(m, name)(*xs, **params), operands)


for _name in ("sort", "argsort", "cumsum", "median", "sum", "max", "mean", "var", "std"):
    plain(_name, lambda n: [floats(n)])
    plain(_name, lambda n: [square(n)], axis=0)
for _name in (
    "all", "any", "argmax", "count_nonzero", "cumprod", "diff", "gradient", "nanmax", "nanmean",
    "nanmedian", "nansum", "ptp", "trapezoid",
):  # fmt: skip
    plain(_name, lambda n: [floats(n)])
plain("sort", lambda n: [square(n)], axis=1)
plain("argsort", lambda n: [square(n)], axis=1)
plain("quantile", lambda n: [floats(n), np.float32(0.3)])
plain("histogram", lambda n: [floats(n)], bins=50)
plain("searchsorted", lambda n: [np.sort(floats(n)), floats(n)])
plain("digitize", lambda n: [floats(n), np.sort(floats(50))])
plain("cov", lambda n: [floats(n).reshape(10, -1)])
plain("polyval", lambda n: [floats(5), floats(n)])
plain("isin", lambda n: [integers(n), integers(max(10, n // 1000))])
FUNCTIONS["sort of integers"] = Function(lambda m, x: m.sort(x), lambda n: [integers(n)])
FUNCTIONS["argsort of integers"] = Function(lambda m, x: m.argsort(x), lambda n: [integers(n)])
FUNCTIONS["sort descending"] = Function(
    lambda m, x: m.sort(x, descending=True), lambda n: [floats(n)], lambda x: np.sort(x)[::-1]
)
FUNCTIONS["lexsort"] = Function(
    lambda m, x, y: m.lexsort((x, y)), lambda n: [floats(n), integers(n, 100)]
)
FUNCTIONS["histogram of edges"] = Function(
    lambda m, x, e: m.histogram(x, e), lambda n: [floats(n), np.sort(floats(40))]
)
FUNCTIONS["bincount"] = Function(lambda m, x: m.bincount(x), lambda n: [integers(n)], jitted=False)
FUNCTIONS["bincount with length"] = Function(
    lambda m, x: m.bincount(x, length=1000), lambda n: [integers(n, 1000)], np.bincount
)
FUNCTIONS["unique"] = Function(lambda m, x: m.unique(x), lambda n: [floats(n)], jitted=False)
FUNCTIONS["unique of integers"] = Function(
    lambda m, x: m.unique(x), lambda n: [integers(n)], jitted=False
)
FUNCTIONS["unique with all results"] = Function(
    lambda m, x: m.unique(x, True, True, True), lambda n: [integers(n, 1000)], jitted=False
)
FUNCTIONS["unique with size"] = Function(
    lambda m, x: m.unique(x, size=1000), lambda n: [integers(n, 1000)], np.unique
)
FUNCTIONS["unique rows"] = Function(
    lambda m, x: m.unique(x, axis=0), lambda n: [integers(n, 20).reshape(-1, 4)], jitted=False
)
for _mode, _numpy in (("largest", -10), ("smallest", 10)):
    FUNCTIONS[f"top_k 10 {_mode}"] = Function(
        lambda m, x, mode=_mode: m.top_k(x, 10, mode=mode),
        lambda n: [floats(n)],
        lambda x, k=_numpy: np.partition(x, k),
    )


@dataclass
class Row:
    """One function at one size: microseconds, and the ratio of medians of paired batches."""

    name: str
    size: int
    reference: float | None = None
    candidate: float | None = None
    numpy: float | None = None
    ratio: float | None = None
    error: str = ""


def _batch(call: Callable[[], Any], wait: Callable[[Any], Any], number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        out = call()
    wait(out)
    return (time.perf_counter() - start) / number


def compare(name: str, size: int, sides: tuple[Namespace, Namespace], jitted: bool) -> Row:
    """Times both libraries in turn, then NumPy."""
    row, function = Row(name, size), FUNCTIONS[name]
    operands = function.operands(size)
    calls = []
    for ns in sides:
        arrays = [ns.jax.device_put(x) for x in operands]
        fun = lambda *xs, m=ns.jnp: function.call(m, *xs)
        if jitted and function.jitted:
            fun = ns.jax.jit(fun)
        call = lambda fun=fun, arrays=arrays: fun(*arrays)
        try:
            for _ in range(3):
                ns.jax.block_until_ready(call())
        except Exception as error:
            row.error = f"{ns.root}: {type(error).__name__}: {str(error).splitlines()[0][:60]}"
            return row
        calls.append((call, ns.jax.block_until_ready))
    number = max(1, int(0.004 / max(_batch(*calls[0], 2), 1e-6)))
    pairs = [[_batch(*c, number) for c in calls] for _ in range(11)]
    row.reference, row.candidate = (1e6 * statistics.median(p[i] for p in pairs) for i in (0, 1))
    row.ratio = statistics.median(p[1] / p[0] for p in pairs)
    on_numpy = function.numpy or (lambda *xs: function.call(np, *xs))
    times = [_batch(lambda: on_numpy(*operands), lambda out: out, number) for _ in range(3)]
    row.numpy = 1e6 * min(times)
    return row


def main() -> None:
    """Measures and prints the table, slowest ratios last."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.benchmarks.numpy_operations")
    parser.add_argument("--only", default="")
    parser.add_argument("--jitted", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options = parser.parse_args()
    sides = Namespace("jax"), Namespace("primax")
    wanted = [(n, s) for n in FUNCTIONS if options.only in n for s in options.sizes]
    rows = []
    for name, size in track(wanted, "measuring", console=Console(stderr=True), transient=True):
        row = compare(name, size, sides, options.jitted)
        if row.ratio is not None and row.ratio > BUDGET:  # one of the two may have been unlucky
            again = compare(name, size, sides, options.jitted)
            row = min(row, again, key=lambda r: r.ratio if r.ratio is not None else np.inf)
        rows.append(row)
    table = Table("function", "elements", "jax µs", "primax µs", "numpy µs", "ratio")
    for row in sorted(rows, key=lambda r: r.ratio or 0):
        times = (row.reference, row.candidate, row.numpy)
        shown = [f"{v:.3g}" if v is not None else "-" for v in times]
        mark = "[red]" if row.ratio and row.ratio > BUDGET else ""
        ratio = f"{mark}{row.ratio:.2f}" if row.ratio is not None else row.error
        table.add_row(row.name, str(row.size), *shown, ratio)
    Console(width=120 if not sys.stdout.isatty() else None).print(table)
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in rows], indent=1), "utf-8")


if __name__ == "__main__":
    main()
