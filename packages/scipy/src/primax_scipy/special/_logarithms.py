"""Logarithms of sums of exponentials, and shares of such sums."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import custom_jvp, lax
from primax_core.extend import Array, ShortRoads, inexact, promoted, same_rank, typeof
from primax_numpy.declaring import axes_of, check_arrays, compiled, is_complex, refuse_bool, strong


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
    top = _greatest(a, axes)
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


def _repeated(x: Any, other: Any) -> Any:
    return pnp.broadcast_to(x, typeof(other).shape)


def _greatest(x: Any, axes: tuple[int, ...]) -> Any:
    """The greatest elements along axes, which are kept; constants for derivatives."""
    x = lax.real(x) if is_complex(x) else x
    top = lax.stop_gradient(lax.reduce_max(lax.stop_gradient(x), axes))
    return lax.expand_dims(top, axes) if axes else top


def _check_mask(where: Any, shape: tuple[int, ...]) -> None:
    check_arrays("logsumexp", where)
    aval = typeof(where)
    if aval.dtype != np.bool_:
        raise ValueError(
            f"logsumexp: where must be None or a boolean array, got dtype {aval.dtype.name}"
        )
    tail = shape[len(shape) - aval.ndim :] if aval.ndim <= len(shape) else None
    if tail is None or any(m not in (1, n) for m, n in zip(aval.shape, tail)):
        raise ValueError(
            f"logsumexp: where has shape {aval.shape}, which does not broadcast to the operand's "
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
    if where is not None:
        _check_mask(where, shape)
    arrays = (a, b, where) if where is not None else operands
    static = {"axes": axes_of(axis, len(shape)), "keepdims": keepdims, "signed": signed}
    if simple:
        return _logsumexps.slow((axis, keepdims), (a,), **static)
    return _logsumexp(*arrays, **static)


_logsumexps: Final = ShortRoads(_logsumexp)


def _summed(x: Any, axes: tuple[int, ...]) -> Any:
    total = lax.reduce_sum(x, axes)
    return lax.expand_dims(total, axes) if axes else total


def _shifted(x: Any, axes: tuple[int, ...]) -> Any:
    return x - lax.convert_element_type(_greatest(x, axes), typeof(x).dtype)


@partial(custom_jvp, nondiff_argnums=(1,))
def _shares(x: Any, axes: tuple[int, ...]) -> Any:
    terms = lax.exp(_shifted(x, axes))
    return terms / _summed(terms, axes)


@_shares.defjvp
def _(axes, primals, tangents):
    (x,), (t,) = primals, tangents
    y = _shares(x, axes)
    return y, y * (t - _summed(y * t, axes))


@partial(custom_jvp, nondiff_argnums=(1,))
def _log_shares(x: Any, axes: tuple[int, ...]) -> Any:
    shifted = _shifted(x, axes)
    return shifted - lax.log(_summed(lax.exp(shifted), axes))


@_log_shares.defjvp
def _(axes, primals, tangents):
    (x,), (t,) = primals, tangents
    y = _log_shares(x, axes)
    return y, t - _summed(lax.exp(y) * t, axes)


@compiled("axes", name="softmax")
def _softmax(x, *, axes):
    refuse_bool("softmax", x)
    return _shares(strong(x), axes)


@compiled("axes", name="log_softmax")
def _log_softmax(x, *, axes):
    refuse_bool("log_softmax", x)
    return _log_shares(strong(x), axes)


def softmax(x: Any, /, *, axis: Any = None) -> Array:
    """Exponentials divided by their sum, ``exp(x) / sum(exp(x))``, without overflow.

    Args:
      x: an array; integers become floats.
      axis: the axis or axes that are summed over; all by default.

    Raises:
      ValueError: if an axis does not exist.
      TypeError: for booleans, and for what is no array.

    >>> softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    return _over_axes(_softmaxes, x, axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Array:
    """Logarithm of :func:`softmax`, accurate where that is small; arguments are the same.

    >>> log_softmax(np.array([-1000.0, 0.0])).tolist()
    [-1000.0, 0.0]
    """
    return _over_axes(_log_softmaxes, x, axis)


_softmaxes: Final = ShortRoads(_softmax)
_log_softmaxes: Final = ShortRoads(_log_softmax)


def _over_axes(roads: ShortRoads, x: Any, axis: Any) -> Array:
    simple = axis is None or type(axis) is int
    if simple:
        found: Array | None = roads.quick(axis, x)
        if found is not None:
            return found
    check_arrays(roads.function.__name__, x)
    axes = axes_of(axis, typeof(x).ndim)
    if simple:
        return roads.slow(axis, (x,), axes=axes)
    out: Array = roads.function(x, axes=axes)
    return out
