"""Softmax, log-softmax and standardization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import custom_jvp, lax
from primax_core.extend import Array, FastPath, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import (
    axes_of,
    check_arrays,
    check_not_bool,
    compiled,
    is_complex,
    strong,
)
from primax_numpy.exponentials import check_mask, greatest


def _summed(x: Any, axes: tuple[int, ...]) -> Any:
    total = lax.reduce_sum(x, axes)
    return lax.expand_dims(total, axes) if axes else total


def _masked(x: Any, where: Any, fill: float) -> Any:
    return x if where is None else lax.select(where, x, lax.full_like(x, fill))


@partial(custom_jvp, nondiff_argnums=(1,))
def _softmax_of(x: Any, axes: tuple[int, ...]) -> Any:
    terms = lax.exp(x - _greatest(x, axes))
    return terms / _summed(terms, axes)


@_softmax_of.defjvp
def _softmax_of_jvp(axes, primals, tangents):
    (x,), (t,) = primals, tangents
    y = _softmax_of(x, axes)
    return y, y * (t - _summed(y * t, axes))


@partial(custom_jvp, nondiff_argnums=(1,))
def _log_softmax_of(x: Any, axes: tuple[int, ...]) -> Any:
    shifted = x - _greatest(x, axes)
    return shifted - lax.log(_summed(lax.exp(shifted), axes))


@_log_softmax_of.defjvp
def _log_softmax_of_jvp(axes, primals, tangents):
    (x,), (t,) = primals, tangents
    y = _log_softmax_of(x, axes)
    return y, t - _summed(lax.exp(y) * t, axes)


def _greatest(x: Any, axes: tuple[int, ...]) -> Any:
    top = greatest(lax.real(x) if is_complex(x) else x, axes)
    return lax.convert_element_type(top, typeof(x).dtype)


@compiled("axes", name="softmax")
def _softmax(x, where=None, *, axes):
    return _normalized("softmax", x, where, axes, _softmax_of, 0.0)


@compiled("axes", name="log_softmax")
def _log_softmax(x, where=None, *, axes):
    return _normalized("log_softmax", x, where, axes, _log_softmax_of, -np.inf)


def _normalized(name: str, x: Any, where: Any, axes: Any, fun: Any, fill: float) -> Any:
    check_not_bool(name, x)
    x = strong(x)
    if where is not None:
        where = pnp.broadcast_to(where, typeof(x).shape)
    return _masked(fun(_masked(x, where, -np.inf), axes), where, fill)


_softmaxes: Final = FastPath(_softmax)
_log_softmaxes: Final = FastPath(_log_softmax)


def _over_axis(path: FastPath, x: Any, axis: Any, where: Any) -> Array:
    key = axis if where is None and type(axis) is int else None
    if key is not None:
        fast: Array | None = path.lookup(key, x)
        if fast is not None:
            return fast
    name = path.function.__name__
    check_arrays(name, x)
    shape = typeof(x).shape
    axes = axes_of(axis, len(shape))
    if key is not None:
        return path.call(key, (x,), axes=axes)
    check_mask(name, where, shape)
    arrays = (x,) if where is None else (x, where)
    out: Array = path.function(*arrays, axes=axes)
    return out


def softmax(
    x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None
) -> Array:
    """Exponentials divided by their sum, ``exp(x) / sum(exp(x))``, without overflow.

    Args:
      x: an array; integers become floats.
      axis: the axis or axes to sum over; all for ``None``.
      where: a mask that broadcasts to ``x``; elements where it is false are excluded from the sum,
        and their results are 0, also if all are excluded.

    Returns:
      The probabilities, NaN if the maximum is infinite or NaN.

    Raises:
      ValueError: if an axis does not exist, or the mask is not boolean or does not broadcast.
      TypeError: if the dtype is boolean.

    >>> softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    return _over_axis(_softmaxes, x, axis, where)


def log_softmax(
    x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None
) -> Array:
    """Logarithm of :func:`softmax`, accurate for small probabilities.

    Args:
      x: an array; integers become floats.
      axis: the axis or axes to sum over; all for ``None``.
      where: a mask that broadcasts to ``x``; elements where it is false are excluded from the sum,
        and their results are ``-inf``.

    Returns:
      The logarithms, an array of the shape of ``x``; NaN if the maximum is infinite or NaN.

    Raises:
      ValueError: if an axis does not exist, or the mask is not boolean or does not broadcast.
      TypeError: if the dtype is boolean.

    >>> log_softmax(np.array([-1000.0, 0.0])).tolist()
    [-1000.0, 0.0]
    """
    return _over_axis(_log_softmaxes, x, axis, where)


_ALGORITHMS: Final = ("fast", "stable")


@compiled("axes", "stable", "offset", name="standardize")
def _standardize(x, where=None, mean=None, variance=None, epsilon=None, *, axes, stable, offset):
    x = strong(x)
    dtype = typeof(x).dtype
    x = lax.convert_element_type(x, dtypes.f32 if dtype.itemsize < 4 else dtype)
    if where is not None:
        where = pnp.broadcast_to(where, typeof(x).shape)
    if mean is None:
        mean = _mean(x, where, axes)
    if variance is None:
        about = lax.square(x - mean) if stable else lax.square(x)
        variance = _mean(about, where, axes)
        if not stable:
            variance = variance - lax.square(mean)
            variance = lax.select(variance < 0, lax.full_like(variance, 0), variance)
    out = (x - mean) * lax.rsqrt(variance + (offset if epsilon is None else epsilon))
    return lax.convert_element_type(out, dtype)


def _mean(x: Any, where: Any, axes: tuple[int, ...]) -> Any:
    total = _summed(_masked(x, where, 0.0), axes)
    if where is None:
        return total / math.prod([typeof(x).shape[i] for i in axes])
    counted = _summed(lax.convert_element_type(where, np.int32), axes)
    return total / lax.convert_element_type(counted, typeof(total).dtype)


def standardize(
    x: ArrayLike,
    axis: int | Sequence[int] | None = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Elements shifted and scaled to mean 0 and variance 1 along axes.

    Args:
      x: real numbers; integers become floats, narrow floats are computed in ``float32``.
      axis: the axis or axes to normalize over; all for ``None``.
      mean: the precomputed mean, broadcast with ``x``.
      variance: the precomputed variance, broadcast with ``x``.
      epsilon: a number added to the variance.
      where: a mask that broadcasts to ``x``; elements where it is false are excluded from the mean
        and the variance, which are NaN if all are excluded.
      algorithm: ``"fast"`` computes the variance as the mean of squares minus the squared mean, in
        one pass, which is inaccurate if the mean is 100 times the standard deviation or more;
        ``"stable"`` as the mean of squared deviations. A precomputed ``mean`` is used in both.

    Returns:
      An array of the shape of ``x``, in its dtype for floats.

    Raises:
      ValueError: if ``x`` is complex, the algorithm is unknown, an axis does not exist, or the
        mask is not boolean or does not broadcast.

    >>> standardize(np.array([1.0, 3.0]), epsilon=0.0).tolist()
    [-1.0, 1.0]
    """
    if algorithm not in _ALGORITHMS:
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    known = isinstance(epsilon, (int, float))
    key = None
    if type(axis) is int and type(epsilon) is float and mean is variance is where is None:
        key = (axis, epsilon, algorithm)
        fast: Array | None = _standardized.lookup(key, x)
        if fast is not None:
            return fast
    operands = (x, mean, variance, None if known else epsilon)
    check_arrays("standardize", *[v for v in operands if v is not None])
    if any(v is not None and is_complex(v) for v in operands):
        raise ValueError("standardize does not support complex numbers: take their parts first")
    shape = typeof(x).shape
    axes = axes_of(axis, len(shape))
    check_mask("standardize", where, shape)
    arrays = [x, where, *operands[1:]]
    while arrays[-1] is None:
        arrays.pop()
    offset = float(epsilon) if known else None
    static = {"axes": axes, "stable": algorithm == "stable", "offset": offset}
    if key is not None:
        return _standardized.call(key, (x,), **static)
    out: Array = _standardize(*arrays, **static)
    return out


_standardized: Final = FastPath(_standardize)
