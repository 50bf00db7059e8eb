"""Operands and derivatives of functions with several real operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from primax_core import custom_jvp, jvp, lax, tree
from primax_core.custom_derivatives import SymbolicZero
from primax_core.extend import typeof
from primax_numpy.declaring import strong

from .._functions import at_least_single, like
from ._gammas import matched


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


def in_blocks(fun: Callable[..., Any]) -> Callable[..., Any]:
    """An elementwise function of arrays of one shape and dtype, computed in blocks of elements."""

    @wraps(fun)
    def outer(*xs: Any) -> Any:
        shape = typeof(xs[0]).shape
        if not all(isinstance(n, int) for n in shape) or math.prod(shape) < 2 * BLOCK:
            return fun(*xs)
        size = math.prod(shape)
        rows = -(-size // BLOCK)

        def blocks(x: Any) -> Any:
            flat = lax.reshape(x, (size,))
            # The last element is repeated, so that no other value is computed.
            rest = lax.broadcast_in_dim(flat[-1:], (rows * BLOCK - size,), (0,))
            return lax.reshape(lax.concatenate([flat, rest], 0), (rows, BLOCK))

        outs = lax.map(lambda block: fun(*block), tuple(map(blocks, xs)))
        back = lambda y: lax.reshape(lax.reshape(y, (rows * BLOCK,))[:size], shape)
        return tree.map(back, outs)

    return outer


def _own(fun: Callable[..., Any], i: int, primals: Any) -> Any:
    """The derivative of the operations of a function with respect to one operand."""
    alone = lambda p: fun(*primals[:i], p, *primals[i + 1 :])
    return jvp(alone, (primals[i],), (lax.full_like(primals[i], 1.0),))[1]
