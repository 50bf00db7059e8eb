"""Steady-state time of neural-network functions against the reference, by size.

``python -m integration_tests.benchmarks.nn_operations [--only PART] [--jitted] [--json FILE]``.
Both libraries run in one process. Calls are eager unless ``--jitted`` is given. Gradients are
always compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .case import Namespace
from .table import Row, compare, options, report

SIZES = (1_000, 100_000, 1_000_000)
HEADS, FEATURES = 8, 64

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    """Random floats."""
    return RNG.standard_normal(shape).astype(np.float32)


def rows(n: int) -> list[np.ndarray]:
    """A matrix with about ``n`` elements and rows of up to 256."""
    width = min(n, 256)
    return [floats(n // width, width)]


def heads(n: int, groups: int = HEADS, batch: int = 1) -> list[np.ndarray]:
    """Queries, keys and values with about ``n`` elements each."""
    length = max(8, n // (batch * HEADS * FEATURES))
    shapes = [(batch, length, h, FEATURES) for h in (HEADS, groups, groups)]
    return [floats(*s) for s in shapes]


def square_mask(n: int) -> list[np.ndarray]:
    """As ``heads``, with a mask that hides a third of the keys."""
    q, k, v = heads(n)
    return [q, k, v, RNG.random((1, 1, q.shape[1], k.shape[1])) < 0.7]


Function = tuple[Callable[..., Any], Callable[[int], list[np.ndarray]]]
FUNCTIONS: dict[str, Function] = {}
for _name in (
    "relu", "relu6", "leaky_relu", "elu", "celu", "selu", "hard_silu", "hard_tanh", "sigmoid",
    "silu", "mish", "softplus", "log_sigmoid", "gelu", "squareplus", "soft_sign", "glu",
):  # fmt: skip
    FUNCTIONS[_name] = (lambda m, x, name=_name: getattr(m, name)(x), rows)
FUNCTIONS |= {
    "gelu exact": (lambda m, x: m.gelu(x, approximate=False), rows),
    "softmax": (lambda m, x: m.softmax(x), rows),
    "softmax axis=0": (lambda m, x: m.softmax(x, axis=0), rows),
    "softmax where": (lambda m, x: m.softmax(x, where=x > 0), rows),
    "log_softmax": (lambda m, x: m.log_softmax(x), rows),
    "logsumexp": (lambda m, x: m.logsumexp(x, axis=-1), rows),
    "logsumexp of all": (lambda m, x: m.logsumexp(x), rows),
    "logmeanexp": (lambda m, x: m.logmeanexp(x, axis=-1), rows),
    "standardize": (lambda m, x: m.standardize(x), rows),
    "standardize stable": (lambda m, x: m.standardize(x, algorithm="stable"), rows),
    "one_hot": (
        lambda m, x: m.one_hot(x, 100),
        lambda n: [RNG.integers(0, 100, max(1, n // 100)).astype(np.int32)],
    ),
    "attention": (lambda m, *a: m.dot_product_attention(*a), heads),
    "attention of a batch": (
        lambda m, *a: m.dot_product_attention(*a), lambda n: heads(n, batch=4),
    ),
    "attention causal": (lambda m, *a: m.dot_product_attention(*a, is_causal=True), heads),
    "attention masked": (
        lambda m, q, k, v, mask: m.dot_product_attention(q, k, v, mask=mask), square_mask,
    ),
    "attention of groups": (
        lambda m, *a: m.dot_product_attention(*a), lambda n: heads(n, groups=2),
    ),
}  # fmt: skip
DIFFERENTIATED = (
    "relu", "silu", "gelu", "gelu exact", "softplus", "mish", "softmax", "log_softmax", "logsumexp",
    "standardize", "attention", "attention causal", "attention of groups",
)  # fmt: skip


FUNCTIONS |= {f"grad of {name}": FUNCTIONS[name] for name in DIFFERENTIATED}


def prepared(ns: Namespace, name: str, operands: list[np.ndarray], jitted: bool) -> Any:
    """Prepare a call of a function, or of its gradient, on device arrays."""
    fun, _ = FUNCTIONS[name]
    arrays = [ns.jax.device_put(x) for x in operands]

    def call(*xs: Any) -> Any:
        return fun(ns.nn, *xs)

    if name.startswith("grad of "):
        floating = tuple(i for i, x in enumerate(operands) if x.dtype == np.float32)
        run = ns.jax.jit(ns.jax.grad(lambda *xs: (call(*xs) ** 2).sum(), floating))
    else:
        run = ns.jax.jit(call) if jitted else call
    return lambda: run(*arrays)


def main() -> None:
    """Measure and print the table."""
    args = options("integration_tests.benchmarks.nn_operations", SIZES)
    sides = Namespace("jax"), Namespace("primax")

    def measure(name: str, size: int) -> Row:
        operands = FUNCTIONS[name][1](size)
        return compare(name, size, sides, lambda ns: prepared(ns, name, operands, args.jitted))

    report(args, FUNCTIONS, measure)


if __name__ == "__main__":
    main()
