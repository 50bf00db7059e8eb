"""CPU time of the SciPy layer's functions, next to SciPy and to the reference where it has them.

``python -m integration_tests.benchmarks.scipy_operations [--only PART] [--dtypes float32 float64]
[--size N] [--compile] [--json FILE]``. Calls are compiled; figures are CPU time of all threads, the
least of several calls that alternate between the libraries. With ``--compile``, the operations of
the lowered module and the CPU time of its compilation are printed next to the reference's, for
special functions and distributions that the reference has, in the first dtype. Functions of
matrices and of whole problems have sizes of their own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

Draw = Callable[[np.random.Generator, int], np.ndarray]
SIZE: Final = 100_000
SIDES: Final = ("primax", "scipy", "jax")
MANY: Final = 40
"""Calls of products of matrices, whose threads take CPU time while they wait on a busy machine."""
_OPERATION: Final = re.compile(r"\b(?:stablehlo|chlo|mhlo)\.(?!return\b)\w+")


@dataclass(frozen=True)
class Operation:
    """A call in three libraries.

    Attributes:
      call: ``(library, *arrays)``, where the library is a :class:`Library`.
      draws: a function for each operand.
      size: the number of elements, if it is not the command's.
      scipy: SciPy's version of the call, if it differs.
      calls: how many calls are timed.
    """

    call: Callable[..., Any]
    draws: tuple[Draw, ...]
    size: int | None = None
    scipy: Callable[..., Any] | None = None
    calls: int = 5


@dataclass
class Row:
    """Milliseconds by library, and compilation: operations and milliseconds by library."""

    name: str
    dtype: str
    ms: dict[str, float] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    compile_ms: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Time here, over SciPy's."""
        return self.ms["primax"] / self.ms["scipy"]


class Library:
    """A library whose modules are found by SciPy's paths."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.scipy = root if root == "scipy" else f"{root}.scipy"

    def __getattr__(self, name: str) -> Any:
        return importlib.import_module(f"{self.scipy}.{name}")

    def function(self, path: str) -> Callable[..., Any]:
        """The function ``module.name`` or ``module.name.name``."""
        module, *names = path.split(".")
        out = getattr(self, module)
        for name in names:
            out = getattr(out, name)
        return out


def linear(low: float, high: float) -> Draw:
    """Uniform numbers."""
    return lambda rng, n: rng.uniform(low, high, n)


def scaled(low: float, high: float) -> Draw:
    """Positive numbers with uniform logarithms."""
    return lambda rng, n: np.exp(rng.uniform(np.log(low), np.log(high), n))


def whole(low: int, high: int) -> Draw:
    """Integers, ends included."""
    return lambda rng, n: rng.integers(low, high + 1, n).astype(np.int32)


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    """Normal numbers."""
    return rng.normal(size=n)


def matrix(rng: np.random.Generator, n: int) -> np.ndarray:
    """A square matrix of ``n`` elements with eigenvalues around 1."""
    side = int(n**0.5)
    return np.eye(side) + rng.normal(size=(side, side)) / (2 * side**0.5)


def image(rng: np.random.Generator, n: int) -> np.ndarray:
    """A square image of about ``n`` elements."""
    side = int(n**0.5)
    return rng.normal(size=(side, side))


OPERATIONS: dict[str, Operation] = {}


def plain(
    path: str, *draws: Draw, elements: int | None = None, calls: int = 5, **options: Any
) -> None:
    """Add a function with the same signature in all libraries."""

    def call(library: Library, *xs: Any) -> Any:
        return library.function(path)(*xs, **options)

    OPERATIONS[path] = Operation(call, draws, elements, calls=calls)


UNIT: Final = linear(0, 1)
SHAPE: Final = scaled(0.3, 30)

plain("special.erf", linear(-4, 4))
plain("special.erfcinv", linear(0, 2))
plain("special.ndtri", UNIT)
plain("special.log_ndtr", linear(-20, 5))
plain("special.gammaln", scaled(0.1, 100))
plain("special.gamma", linear(0.1, 30))
plain("special.digamma", linear(0.1, 30))
plain("special.gammainc", SHAPE, SHAPE)
plain("special.betainc", SHAPE, SHAPE, UNIT)
plain("special.zeta", linear(1.1, 20), scaled(0.1, 50))
plain("special.i0", linear(-20, 20))
plain("special.expi", linear(-20, 40))
plain("special.hyp2f1", linear(0.5, 3), linear(0.5, 3), linear(3, 6), linear(-0.9, 0.9),
      calls=2)  # fmt: skip
plain("special.j0", linear(-40, 40))
plain("special.y1", linear(0, 40))
plain("special.k0", linear(0, 60))
plain("special.jv", linear(0, 20), scaled(0.05, 80), calls=3)
plain("special.iv", linear(0, 20), scaled(0.05, 80), calls=3)
plain("special.kv", linear(0, 20), scaled(0.05, 80), calls=3)
plain("special.airy", linear(-12, 12), calls=3)
plain("special.ellipk", linear(-3, 1))
plain("special.ellipkinc", linear(-1.5, 1.5), linear(-3, 1))
plain("special.ellipj", linear(-3, 3), UNIT)
plain("special.eval_legendre", whole(0, 20), linear(-1, 1))
plain("special.lambertw", scaled(1e-6, 1e6))
plain("special.owens_t", linear(-4, 4), linear(-3, 3))
OPERATIONS["special.wofz"] = Operation(
    lambda library, x, y: library.special.wofz(x + 1j * y), (linear(-5, 5), linear(-5, 5))
)

plain("stats.norm.cdf", linear(-8, 8))
plain("stats.norm.ppf", UNIT)
plain("stats.gamma.logpdf", SHAPE, SHAPE)
plain("stats.gamma.cdf", SHAPE, SHAPE)
plain("stats.gamma.ppf", UNIT, SHAPE, calls=3)
plain("stats.t.cdf", normal, SHAPE)
plain("stats.beta.logpdf", UNIT, SHAPE, SHAPE)
plain("stats.beta.ppf", UNIT, SHAPE, SHAPE, calls=3)
plain("stats.binom.logpmf", whole(0, 40), whole(40, 60), UNIT)
plain("stats.poisson.cdf", whole(0, 40), SHAPE)
plain("stats.vonmises.logpdf", linear(-3, 3), SHAPE)

plain("fft.dct", normal)
plain("fft.dctn", image)
plain("ndimage.gaussian_filter", image, sigma=3.0)
plain("ndimage.median_filter", image, size=3)
plain("linalg.expm", matrix, elements=10_000, calls=MANY)
plain("linalg.sqrtm", matrix, elements=10_000, calls=MANY)
plain("linalg.solve", matrix, lambda rng, n: normal(rng, int(n**0.5)), elements=40_000)


def _kernel(rng: np.random.Generator, n: int) -> np.ndarray:
    return normal(rng, 500)


def _numerator(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.array([0.0048, 0.0193, 0.0289, 0.0193, 0.0048])


def _denominator(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.array([1.0, -2.3695, 2.3140, -1.0547, 0.1874])


def _diagonals(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=(5, n)) + np.array([0, 0, 9, 0, 0])[:, None]


plain("signal.convolve", normal, _kernel)
plain("signal.lfilter", _numerator, _denominator, normal, calls=MANY)
plain("signal.welch", normal, nperseg=256)
plain("signal.stft", normal, nperseg=256)
plain("linalg.solve_triangular", matrix, lambda rng, n: normal(rng, int(n**0.5)), elements=40_000)
OPERATIONS["signal.sosfilt"] = Operation(
    lambda library, x: library.signal.sosfilt(_sections(x.dtype), x), (normal,), calls=MANY
)
OPERATIONS["linalg.solve_banded"] = Operation(
    lambda library, a, b: library.linalg.solve_banded((2, 2), a, b), (_diagonals, normal)
)
OPERATIONS["integrate.simpson"] = Operation(
    lambda library, y: library.integrate.simpson(y, dx=0.1), (normal,)
)


def _sections(dtype: Any) -> np.ndarray:
    signal = importlib.import_module("scipy.signal")
    return signal.butter(8, 0.2, output="sos").astype(dtype)


def _rosenbrock(library: Library, x: Any) -> Any:
    def value(x: Any) -> Any:
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    return library.optimize.minimize(value, x, method="BFGS").x


OPERATIONS["optimize.minimize"] = Operation(_rosenbrock, (linear(0, 2),), size=10, calls=3)


def prepared(root: str, operation: Operation, arrays: list[np.ndarray]) -> Callable[[], Any]:
    """A call of a library: compiled, on its own arrays, waiting for the result."""
    library = Library(root)
    if root == "scipy":
        fun = operation.scipy or operation.call
        return lambda: fun(library, *arrays)
    lib = importlib.import_module(root)
    compiled = lib.jit(lambda *xs: operation.call(library, *xs))
    operands = [lib.device_put(x) for x in arrays]
    return lambda: lib.block_until_ready(compiled(*operands))


def _seconds(call: Callable[[], Any]) -> float:
    start = time.process_time_ns()
    call()
    return (time.process_time_ns() - start) / 1e9


def timed(operation: Operation, arrays: list[np.ndarray]) -> dict[str, float]:
    """Milliseconds by library; a library that lacks the function is absent."""
    calls = {}
    for root in SIDES:
        try:
            calls[root] = prepared(root, operation, arrays)
            calls[root]()
        except (AttributeError, ModuleNotFoundError, NotImplementedError):
            calls.pop(root, None)
    samples: dict[str, list[float]] = {root: [] for root in calls}
    for _ in range(operation.calls):
        for root, call in calls.items():
            # Repeated, because the clock of a process has a step of about a microsecond.
            number = 1 if not samples[root] else max(1, int(0.003 / max(samples[root][0], 1e-5)))
            samples[root].append(_seconds(lambda: [call() for _ in range(number)]) / number)  # noqa: B023
    return {root: 1e3 * min(s) for root, s in samples.items()}


def compiled(root: str, operation: Operation, arrays: list[np.ndarray]) -> tuple[int, float]:
    """Operations of the lowered module, and milliseconds of its compilation, the least of 2."""
    lib = importlib.import_module(root)
    library = Library(root)
    times = []
    for _ in range(2):
        lib.clear_caches()
        lowered = lib.jit(lambda *xs: operation.call(library, *xs)).lower(*arrays)
        times.append(_seconds(lowered.compile))
    return len(_OPERATION.findall(lowered.as_text())), 1e3 * min(times)


def measured(name: str, dtype: str, size: int, with_compilation: bool) -> Row:
    """All figures of one function."""
    operation = OPERATIONS[name]
    rng = np.random.default_rng(0)
    drawn = [draw(rng, operation.size or size) for draw in operation.draws]
    arrays = [x.astype(dtype) if x.dtype.kind == "f" else x for x in drawn]
    row = Row(name, dtype, timed(operation, arrays))
    if with_compilation and "jax" in row.ms:
        for root in ("jax", "primax"):
            row.operations[root], row.compile_ms[root] = compiled(root, operation, arrays)
    return row


def lines(rows: list[Row], dtypes: list[str]) -> list[str]:
    """The table of times in Markdown: for each dtype milliseconds by library, and the ratio."""
    headings = ["function"]
    for dtype in dtypes:
        headings += [f"{dtype} Primax", "SciPy", "jax", "ratio to SciPy"]
    out = [headings, ["---", *["---:"] * (len(headings) - 1)]]
    for name in dict.fromkeys(row.name for row in rows):
        cells = [f"`{name}`"]
        for row in (r for r in rows if r.name == name):
            cells += [f"{row.ms[s]:.3g}" if s in row.ms else "-" for s in SIDES]
            cells.append(f"{row.ratio:.2f}")
        out.append(cells)
    return [f"| {' | '.join(cells)} |" for cells in out]


def compile_lines(rows: list[Row]) -> list[str]:
    """The table of compilations in Markdown."""
    out = [
        "| function | operations, Primax | jax | compile ms, Primax | jax |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for r in rows:
        if r.operations:
            counts = f"{r.operations['primax']} | {r.operations['jax']}"
            times = f"{r.compile_ms['primax']:.0f} | {r.compile_ms['jax']:.0f}"
            out.append(f"| `{r.name}` ({r.dtype}) | {counts} | {times} |")
    return out


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.benchmarks.scipy_operations")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of names")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--compile", action="store_true", help="also compile times")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    for root in ("primax", "jax"):
        lib = importlib.import_module(root)
        lib.config.update("jax_enable_compilation_cache", False)
        lib.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    rows = []
    for name in OPERATIONS:
        if any(part in name for part in args.only):
            for dtype in args.dtypes:
                compiles = args.compile and dtype == args.dtypes[0] and name[:2] in ("sp", "st")
                rows.append(measured(name, dtype, args.size, compiles))
            print(lines(rows[-len(args.dtypes) :], args.dtypes)[-1], file=sys.stderr, flush=True)
    print("\n".join(lines(rows, args.dtypes)))
    if args.compile:
        print("\n".join(["", *compile_lines(rows)]))
    if args.json:
        args.json.write_text(json.dumps([asdict(r) for r in rows], indent=1), "utf-8")


if __name__ == "__main__":
    main()
