"""Logarithms of sums, means and differences of exponentials."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import custom_jvp, lax
from primax_core.extend import Array, ShortRoads, inexact, promoted, same_rank, typeof
from primax_numpy.declaring import (
    as_inexact,
    axes_of,
    check_arrays,
    compiled,
    is_complex,
    refuse_bool,
    strong,
)


@compiled("axes", "keepdims", "signed", name="logsumexp")
def _logsumexp(a, b=None, where=None, *, axes, keepdims, signed):
    if b is None:
        a = strong(a)
    else:
        a, b = same_rank("logsumexp", *map(strong, promoted("logsumexp", a, b, inexact)))
        a, b = pnp.broadcast_arrays(a, b)
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
    return pnp.broadcast_to(x, typeof(like).shape)


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
        found: Any = _logsumexps.quick((axis, keepdims), a)
        if found is not None:
            return found
    operands = [a] if b is None else [a, b]
    check_arrays("logsumexp", *operands)
    shape = lax.broadcast_shapes(*[typeof(x).shape for x in operands])
    check_mask("logsumexp", where, shape)
    arrays = (a, b, where) if where is not None else operands
    static = {"axes": axes_of(axis, len(shape)), "keepdims": keepdims, "signed": signed}
    if simple:
        return _logsumexps.slow((axis, keepdims), (a,), **static)
    return _logsumexp(*arrays, **static)


_logsumexps: Final = ShortRoads(_logsumexp)


@compiled("axes", "keepdims", name="logmeanexp")
def _logmeanexp(x, where=None, *, axes, keepdims):
    total = _logsumexp(x, None, where, axes=axes, keepdims=keepdims, signed=False)
    shape = typeof(x).shape
    if where is None:
        n = math.prod([shape[i] for i in axes])
        return total - (math.log(n) if n else -math.inf)
    counted = lax.convert_element_type(pnp.broadcast_to(where, shape), np.int32)
    counted = lax.reduce_sum(counted, axes)
    counted = lax.expand_dims(counted, axes) if keepdims and axes else counted
    return total - lax.log(lax.convert_element_type(counted, typeof(total).dtype))


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Array:
    """Logarithm of a mean of exponentials, without overflow.

    Args:
      x: an array; integers become floats.
      axis: an axis or several; all by default.
      where: a mask that broadcasts to ``x``; only elements where it holds count.
      keepdims: whether the reduced axes are kept, with size 1.

    Returns:
      The logarithms, NaN where there is no element.

    >>> float(logmeanexp(np.array([1000.0, 1000.0])))
    1000.0
    """
    keepdims = bool(keepdims)
    simple = where is None and (axis is None or type(axis) is int)
    if simple:
        found: Array | None = _logmeanexps.quick((axis, keepdims), x)
        if found is not None:
            return found
    check_arrays("logmeanexp", x)
    shape = typeof(x).shape
    static = {"axes": axes_of(axis, len(shape)), "keepdims": keepdims}
    if simple:
        return _logmeanexps.slow((axis, keepdims), (x,), **static)
    check_mask("logmeanexp", where, shape)
    out: Array = _logmeanexp(*((x,) if where is None else (x, where)), **static)
    return out


_logmeanexps: Final = ShortRoads(_logmeanexp)


@custom_jvp
def _log1mexp(x: Any) -> Any:
    # Maechler, 2012: each form is accurate on its side of log(2).
    small = x < math.log(2.0)
    return lax.select(small, lax.log(-lax.expm1(-x)), lax.log1p(-lax.exp(-x)))


@_log1mexp.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return _log1mexp(x), t * (lax.exp(-x) / -lax.expm1(-x))


def log1mexp(x: Any) -> Array:
    """``log(1 - exp(-x))`` of positive numbers, accurate for small and for large ones.

    The formula is that of Mächler (2012). The result is ``-inf`` at 0 and NaN left of it.

    Raises:
      TypeError: for booleans.

    >>> f"{float(log1mexp(1e-30)):.4f}"
    '-69.0776'
    """
    check_arrays("log1mexp", x)
    out: Array = _log1mexp_of(x)
    return out


@compiled(name="log1mexp")
def _log1mexp_of(x):
    refuse_bool("log1mexp", x)
    x = as_inexact(x)
    if is_complex(x):
        return lax.log(-lax.expm1(-x))
    return _log1mexp(x)
