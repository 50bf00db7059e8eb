"""Steady-state time of the NumPy layer's functions against the reference and NumPy, by size.

``python -m integration_tests.benchmarks.numpy_operations [--only PART] [--jitted] [--json FILE]``.
Both libraries run in one process, NumPy after them. Calls are eager unless ``--jitted`` is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .case import Namespace
from .table import Row, compare, options, report

SIZES = (1_000, 100_000, 1_000_000)


@dataclass
class Function:
    """A call of one module's functions, and its operands for a number of elements.

    Attributes:
      call: ``(module, *arrays)``, where the module is a NumPy layer or NumPy.
      operands: a function of the number of elements.
      numpy: NumPy's version of the call, if the signature differs.
      jitted: whether the call can be jitted.
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
    """A square matrix of random floats with about ``n`` elements."""
    side = int(n**0.5)
    return floats(side * side).reshape(side, side)


def integers(n: int, high: int | None = None) -> np.ndarray:
    """A vector of random integers."""
    return RNG.integers(0, high or n, n).astype(np.int32)


FUNCTIONS: dict[str, Function] = {}


def plain(name: str, operands: Callable[[int], list[np.ndarray]], **params: Any) -> None:
    """Add a function with the same signature in all modules."""
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


def prepared(ns: Namespace, function: Function, operands: Any, jitted: bool) -> Callable[[], Any]:
    """Prepare a call of a function on device arrays."""
    arrays = [ns.jax.device_put(x) for x in operands]
    fun = partial(function.call, ns.jnp)
    if jitted and function.jitted:
        fun = ns.jax.jit(fun)
    return lambda: fun(*arrays)


def main() -> None:
    """Measure and print the table."""
    args = options("integration_tests.benchmarks.numpy_operations", SIZES)
    sides = Namespace("jax"), Namespace("primax")

    def measure(name: str, size: int) -> Row:
        function = FUNCTIONS[name]
        operands = function.operands(size)
        on_numpy = function.numpy or partial(function.call, np)
        return compare(
            name, size, sides, lambda ns: prepared(ns, function, operands, args.jitted),
            lambda: on_numpy(*operands),
        )  # fmt: skip

    report(args, FUNCTIONS, measure)


if __name__ == "__main__":
    main()
