"""Operands and derivatives of functions with several real operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, jvp, lax, tree
from primax_core.custom_derivatives import SymbolicZero
from primax_core.extend import typeof
from primax_numpy.declaring import strong

from .._elementary import any_of
from .._functions import at_least_single, floats, like


def same_shape(*xs: Any) -> list[Any]:
    """The operands, broadcast to their common shape."""
    shape = lax.broadcast_shapes(*[typeof(x).shape for x in xs])
    n = len(shape)
    return [
        x if typeof(x).shape == shape
        else lax.broadcast_in_dim(x, shape, tuple(range(n - typeof(x).ndim, n)))
        for x in xs
    ]  # fmt: skip


def matched(name: str, *xs: Any) -> list[Any]:
    """Real operands promoted to one floating-point dtype and shape."""
    return same_shape(*floats(name, *xs))


def called(name: str, fun: Callable[..., Any], *xs: Any) -> Any:
    """A function of real operands of one dtype and shape; narrow floats compute in ``float32``."""
    operands = [strong(x) for x in matched(name, *xs)]
    outs = fun(*map(at_least_single, operands))
    return tree.map(lambda y: like(y, operands[0]), outs)


def differentiable(*partials: Callable[..., Any] | None) -> Callable[[Callable[..., Any]], Any]:
    """Decorator for a function of arrays with explicit partial derivatives.

    Args:
      partials: for each operand a function of the operands and the result that returns the
        derivative of the result, or of each result as a tuple. ``None``
        differentiates the function's own operations, in reverse mode only once. Only derivatives
        that are needed are computed.
    """

    def declare(fun: Callable[..., Any]) -> Any:
        function = custom_jvp(fun)

        def _rule(primals: Any, tangents: Any) -> Any:
            out = function(*primals)
            total = tree.map(lambda y: lax.full_like(y, 0), out)
            for i, (partial, t) in enumerate(zip(partials, tangents, strict=True)):
                if isinstance(t, SymbolicZero):
                    continue
                slopes = _own(fun, i, primals) if partial is None else partial(*primals, out)
                total = tree.map(lambda a, d: a + d * t, total, slopes)  # noqa: B023
            return out, total

        function.defjvp(_rule, symbolic_zeros=True)
        return function

    return declare


BLOCK: Final = 2048
"""Elements of an array that loops process together: their intermediate values stay in the cache,
and each block has its own number of cycles."""


LEVELS: Final = 64
"""Number of levels of expected work by which elements are sorted."""
_INDEX_BITS: Final = 25


def in_blocks(
    fun: Callable[..., Any], work: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """An elementwise function of arrays of one shape and dtype, computed in blocks of elements.

    Args:
      work: a function of the operands that returns a :func:`level` for each element. The elements
        are sorted by it before they are divided into blocks, so that the elements of a block need
        the same branches and about as many cycles.
    """

    @wraps(fun)
    def outer(*xs: Any) -> Any:
        shape = typeof(xs[0]).shape
        if not all(isinstance(n, int) for n in shape) or math.prod(shape) < 2 * BLOCK:
            return fun(*xs)
        size = math.prod(shape)
        rows = -(-size // BLOCK)
        flat = tuple(lax.reshape(x, (size,)) for x in xs)
        order = None
        if work is not None and size <= 1 << _INDEX_BITS:
            order = _sorted_by(work(*flat))
            flat = tuple(x[order] for x in flat)

        def blocks(x: Any) -> Any:
            # The last element is repeated, so that no other value is computed.
            rest = lax.broadcast_in_dim(x[-1:], (rows * BLOCK - size,), (0,))
            return lax.reshape(lax.concatenate([x, rest], 0), (rows, BLOCK))

        def back(y: Any) -> Any:
            y = lax.reshape(y, (rows * BLOCK,))[:size]
            if order is not None:
                y = lax.full_like(y, 0).at[order].set(y, unique_indices=True)
            return lax.reshape(y, shape)

        return tree.map(back, lax.map(lambda block: fun(*block), tuple(map(blocks, flat))))

    return outer


def _sorted_by(levels: Any) -> Any:
    """Positions in the order of their levels: a level and a position are sorted as one integer."""
    aval = typeof(levels)
    (size,) = aval.shape
    step = 1 << (size - 1).bit_length()
    merged = levels * lax.full_like(levels, step) + lax.iota(aval.dtype, size)
    return lax.bitwise_and(lax.sort(merged), lax.full_like(levels, step - 1))


def level(x: Any) -> Any:
    """An integer of 32 bits in [0, ``LEVELS``) for each element, rounded down; 0 for NaN."""
    zero, top = lax.full_like(x, 0.0), lax.full_like(x, LEVELS - 1)
    return lax.convert_element_type(lax.clamp(zero, lax.select(x == x, x, zero), top), np.int32)


def if_any(condition: Any, count: int, fun: Callable[..., Any], *xs: Any) -> tuple[Any, ...]:
    """The ``count`` arrays of ``fun(*xs)`` if any element satisfies the condition, otherwise zeros.

    The arrays have the shape and dtype of the first operand.
    """
    none = lambda *ys: (lax.full_like(ys[0], 0.0),) * count
    out: tuple[Any, ...] = lax.cond(any_of(condition), lambda *ys: tuple(fun(*ys)), none, *xs)
    return out


def _own(fun: Callable[..., Any], i: int, primals: Any) -> Any:
    """The derivative of the operations of a function with respect to one operand."""
    alone = lambda p: fun(*primals[:i], p, *primals[i + 1 :])
    return jvp(alone, (primals[i],), (lax.full_like(primals[i], 1.0),))[1]
