"""Sums of exponentials and the logistic function, which several wheels share.

They are stable, and their derivatives are accurate where results are small.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import FastPath, inexact, promoted, same_rank, typeof

from ._shapes import broadcast_arrays, broadcast_to
from .declaring import axes_of, check_arrays, compiled, is_complex, strong


@compiled("axes", "keepdims", "signed", name="logsumexp")
def log_sum(
    a: Any, b: Any = None, where: Any = None, *, axes: Any, keepdims: bool, signed: bool
) -> Any:
    """:func:`logsumexp` of arguments that were checked, in compiled functions."""
    if b is None:
        a = strong(a)
    else:
        a, b = same_rank("logsumexp", *map(strong, promoted("logsumexp", a, b, inexact)))
        a, b = broadcast_arrays(a, b)
        counted = b != 0
        where = counted if where is None else lax.bitwise_and(counted, _repeated(where, counted))
    if where is not None:
        where = _repeated(where, a)
        a = lax.select(where, a, lax.full_like(a, -np.inf))
    top = greatest(lax.real(a) if is_complex(a) else a, axes)
    top = lax.select(lax.abs(top) == np.inf, lax.full_like(top, 0), top)
    terms = lax.exp(a - lax.convert_element_type(top, typeof(a).dtype))
    if b is not None:
        terms = lax.select(where, terms * b, lax.full_like(terms, 0))
    total = lax.reduce_sum(terms, axes)
    kept = lax.expand_dims(total, axes) if axes else total
    if signed:
        size = lax.abs(kept)
        out, sign = lax.log(size) + top, lax.sign(lax.stop_gradient(kept))
        shape = typeof(kept).shape if keepdims else typeof(total).shape
        return lax.reshape(out, shape), lax.reshape(sign, shape)
    out = lax.log(kept) + lax.convert_element_type(top, typeof(kept).dtype)
    return out if keepdims else lax.reshape(out, typeof(total).shape)


def _repeated(x: Any, like: Any) -> Any:
    return broadcast_to(x, typeof(like).shape)


def greatest(x: Any, axes: tuple[int, ...]) -> Any:
    """The greatest elements along axes, which are kept; constants for derivatives."""
    top = lax.stop_gradient(lax.reduce_max(lax.stop_gradient(x), axes))
    return lax.expand_dims(top, axes) if axes else top


def check_mask(name: str, where: Any, shape: tuple[int, ...]) -> None:
    """Refuse a mask that is not boolean or does not broadcast to the operand.

    Raises:
      ValueError: naming the function, and the shapes.
    """
    if where is None:
        return
    check_arrays(name, where)
    aval = typeof(where)
    if aval.dtype != np.bool_:
        raise ValueError(
            f"{name}: where must be None or a boolean array, got dtype {aval.dtype.name}"
        )
    tail = shape[len(shape) - aval.ndim :] if aval.ndim <= len(shape) else None
    if tail is None or any(m not in (1, n) for m, n in zip(aval.shape, tail)):
        raise ValueError(
            f"{name}: where has shape {aval.shape}, which does not broadcast to the operand's "
            f"shape {shape}"
        )


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False,
    where: Any = None,
) -> Any:  # fmt: skip
    """Logarithm of a sum of exponentials, ``log(sum(b * exp(a)))``, without overflow.

    Args:
      a: an array; integers become floats.
      axis: an axis or several; all by default.
      b: factors of the exponentials, which broadcast with ``a``. A factor 0 leaves its element out,
        whatever that is.
      keepdims: whether the reduced axes are kept, with size 1.
      return_sign: give a pair, the logarithm of the sum's absolute value and its sign (of complex
        numbers, its direction). Without it the result is NaN where a sum of reals is negative.
      where: a mask that broadcasts to ``a``; only elements where it holds count.

    Returns:
      The logarithms, ``-inf`` where there is nothing to sum; or the pair.

    Raises:
      ValueError: if an axis does not exist, or shapes do not broadcast.
      TypeError: for what is no array.

    >>> f"{float(logsumexp(np.array([1000.0, 1000.0]))):.3f}"
    '1000.693'
    """
    signed, keepdims = bool(return_sign), bool(keepdims)
    simple = b is where is None and not signed and (axis is None or type(axis) is int)
    if simple:
        found: Any = _logsumexps.lookup((axis, keepdims), a)
        if found is not None:
            return found
    operands = [a] if b is None else [a, b]
    check_arrays("logsumexp", *operands)
    shape = lax.broadcast_shapes(*[typeof(x).shape for x in operands])
    check_mask("logsumexp", where, shape)
    arrays = (a, b, where) if where is not None else operands
    static = {"axes": axes_of(axis, len(shape)), "keepdims": keepdims, "signed": signed}
    if simple:
        return _logsumexps.call((axis, keepdims), (a,), **static)
    return log_sum(*arrays, **static)


_logsumexps: Final = FastPath(log_sum)


# The logistic function


@custom_jvp
def logistic_sides(x: Any) -> Any:
    """The logistic function of ``x`` and of ``-x``, of which the smaller is not 1 minus the other,
    which would be 0 from 17 on."""
    e = lax.exp(-lax.abs(x))
    larger = 1 / (1 + e)
    smaller = e * larger
    right = x >= 0
    return lax.select(right, larger, smaller), lax.select(right, smaller, larger)


@logistic_sides.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    y, z = logistic_sides(x)
    slope = t * (y * z)
    return (y, z), (slope, -slope)


@custom_jvp
def logistic(x: Any) -> Any:
    """The logistic function, whose derivatives are accurate on both sides."""
    return lax.logistic(x)


@logistic.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    y, z = logistic_sides(x)
    return y, t * (y * z)
