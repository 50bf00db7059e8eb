"""Means and variances over axes."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, FastPath, dtypes, is_operand
from primax_core.extend.dimensions import size_as
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, DTypeLike

from ._checks import axes_of, check_arrays, check_out, dtype_argument
from ._functions import compiled, trim_none
from ._promotion import repeated
from ._reduction_helpers import (
    check_where,
    count,
    float_of,
    is_complex_dtype,
    is_inexact,
    masked,
    real_of,
    restore_axes,
    short_key,
    spread_back,
    squares,
    wide_of,
)


def scalar(value: Any, dtype: Any) -> Any:
    """A concrete number, or the value of a symbolic dimension, in a dtype."""
    return size_as(value, dtype)


def counted(where: Any, shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any) -> Any:
    """The number of reduced elements, in a real dtype; concrete without a mask."""
    if where is None:
        return scalar(count(shape, axes), dtype)
    ones = lax.convert_element_type(repeated(where, shape), dtypes.default_int())
    return lax.convert_element_type(lax.reduce_sum(ones, axes), dtype)


def quotient(total: Any, n: Any) -> Any:
    """A sum divided by a real number of elements."""
    shape, dtype = typeof(total).shape, typeof(total).dtype
    if typeof(n).dtype != dtype:
        n = lax.convert_element_type(n, dtype)
    return lax.div(total, repeated(n, shape) if typeof(n).ndim else n)


@compiled("axes", "dtype", "keepdims", name="mean")
def _mean_of(a, where=None, *, axes, dtype, keepdims):
    wide = wide_of(dtype)
    total = lax.reduce_sum(masked(lax.convert_element_type(a, wide), where, 0), axes)
    exact = float_of(wide)
    n = counted(where, typeof(a).shape, axes, real_of(exact))
    out = quotient(lax.convert_element_type(total, exact), n)
    return restore_axes(lax.convert_element_type(out, dtype), axes, keepdims)


_mean: Final = FastPath(_mean_of)


def mean(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Arithmetic mean over axes (all by default); NaN for empty reductions.

    Args:
      a: an array or a number; integers give floats.
      axis: an axis or a sequence of axes; all by default.
      dtype: the dtype of the sum and of the result; narrow floats are summed in ``float32``.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.

    Returns:
      An array without the reduced axes.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    >>> float(mean(np.array([1, 2, 4, 5])))
    3.0
    >>> mean(np.array([[1.0, 3.0], [5.0, 7.0]]), axis=0).tolist()
    [3.0, 5.0]
    """
    key = short_key(axis, keepdims) if dtype is out is where is None else None
    if key is not None:
        fast: Array | None = _mean.lookup(key, a)
        if fast is not None:
            return fast
    check_arrays("mean", a)
    check_out("mean", out)
    aval = typeof(a)
    result_dtype = dtype_argument(dtype, "mean") or float_of(aval.dtype)
    static = {"axes": axes_of(axis, aval.ndim), "dtype": result_dtype, "keepdims": bool(keepdims)}
    if key is not None:
        return _mean.call(key, (a,), **static)
    check_where("mean", where, aval.shape)
    average: Array = _mean.function(*trim_none(a, where), **static)
    return average


def deviations(x: Any, where: Any, centre: Any, axes: tuple[int, ...]) -> Any:
    """Deviations from the mean, zero where the mask is false."""
    shape = typeof(x).shape
    if centre is None:
        n = counted(where, shape, axes, real_of(typeof(x).dtype))
        centre = quotient(lax.reduce_sum(masked(x, where, 0), axes), n)
        centre = spread_back(centre, axes, shape)
    else:
        centre = repeated(lax.convert_element_type(centre, typeof(x).dtype), shape)
    return masked(lax.sub(x, centre), where, 0)


def variance_of(a, less, where, centre, *, axes, dtype, keepdims, result):
    """The compiled part of variances; ``less`` is the delta degrees of freedom."""
    x = lax.convert_element_type(a, wide_of(dtype))
    d = deviations(x, where, centre, axes)
    total = lax.reduce_sum(squares(d), axes)
    real = typeof(total).dtype
    n = counted(where, typeof(a).shape, axes, real)
    n = lax.sub(n, repeated(lax.convert_element_type(less, real), typeof(n).shape))
    n = lax.select(lax.gt(n, lax.full_like(n, 0)), n, lax.full_like(n, np.nan))
    return restore_axes(lax.convert_element_type(quotient(total, n), result), axes, keepdims)


def _var_of(a, where=None, centre=None, ddof=None, *, less, **static):
    return variance_of(a, less if ddof is None else ddof, where, centre, **static)


def _std_of(*arrays, **static):
    return lax.sqrt(_var_of(*arrays, **static))


_STATIC: Final = ("axes", "dtype", "keepdims", "result", "less")
_var: Final = FastPath(compiled(*_STATIC, name="var")(_var_of))
_std: Final = FastPath(compiled(*_STATIC, name="std")(_std_of))


def check_variance(
    name: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, where: Any, mean: Any
) -> dict[str, Any]:
    """Check the arguments shared by variances, and return the static ones in normal form."""
    check_arrays(name, a)
    check_out(name, out)
    aval = typeof(a)
    requested = dtype_argument(dtype, name)
    if requested is not None and not is_inexact(requested):
        raise ValueError(f"dtype argument to {name} must be inexact; got {requested.name}")
    if requested is not None and is_complex_dtype(aval.dtype) and not is_complex_dtype(requested):
        raise ValueError(
            f"{name} does not support a real dtype for the variance of complex numbers: got "
            f"{requested.name} for an operand of {aval.dtype.name}; leave it out, and convert after"
        )
    check_where(name, where, aval.shape)
    if not is_operand(ddof) or typeof(ddof).ndim:
        raise TypeError(f"{name}: ddof (or correction) must be a number, got {ddof!r}")
    axes = axes_of(axis, aval.ndim)
    if mean is not None:
        _check_mean(name, mean, aval.shape, axes)
    computed = float_of(aval.dtype) if requested is None else requested
    result = real_of(computed) if requested is None or is_complex_dtype(aval.dtype) else requested
    return {"axes": axes, "dtype": computed, "result": result}


def _check_mean(name: str, mean: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    check_arrays(f"{name}'s mean", mean)
    mean_shape = typeof(mean).shape
    if not mean_shape:
        return
    expected = tuple([1 if i in axes else n for i, n in enumerate(shape)])
    if len(mean_shape) != len(shape) or any(f not in (1, n) for f, n in zip(mean_shape, shape)):
        raise TypeError(
            f"{name}: mean has shape {mean_shape}, where {expected} is expected for an operand of "
            f"shape {shape}: compute it with keepdims=True"
        )


def correction_of(name: str, ddof: Any, correction: Any) -> Any:
    """The delta degrees of freedom."""
    if correction is None:
        return ddof
    if not (isinstance(ddof, numbers.Number) and ddof == 0):
        raise ValueError(
            f"{name}: ddof and correction can't be provided simultaneously: they are synonyms"
        )
    return correction


def _spread(
    path: FastPath, a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any,
    where: Any, mean: Any, correction: Any,
) -> Array:  # fmt: skip
    simple = dtype is out is where is mean is correction is None and type(ddof) is int
    key = short_key(axis, keepdims) if simple else None
    if key is not None:
        key = (*key, ddof)
        fast: Array | None = path.lookup(key, a)
        if fast is not None:
            return fast
    name = path.function.__name__
    less = correction_of(name, ddof, correction)
    static = check_variance(name, a, axis, dtype, out, less, where, mean)
    known = type(less) in (int, float)
    static |= {"keepdims": bool(keepdims), "less": float(less) if known else None}
    if key is not None:
        return path.call(key, (a,), **static)
    spread: Array = path.function(*trim_none(a, where, mean, None if known else less), **static)
    return spread


def var(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:
    """Variance over axes: the mean squared deviation from the mean.

    Args:
      a: an array; integers give floats. The variance of complex numbers uses absolute deviations.
      axis: an axis or a sequence of axes; all by default.
      dtype: the dtype of the sums and of the result; narrow floats are summed in ``float32``.
      out: unsupported.
      ddof: the sum of squares is divided by ``n - ddof``; NaN if that is not positive.
      keepdims: keep the reduced axes with size 1.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.
      mean: the precomputed mean, with ``keepdims=True``.
      correction: a synonym of ``ddof``.

    Returns:
      A real array without the reduced axes.

    Raises:
      ValueError: if an axis does not exist, or both ``ddof`` and ``correction`` are specified.

    >>> float(var(np.array([1.0, 2.0, 3.0]), correction=1))
    1.0
    """
    return _spread(_var, a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def std(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:
    """Standard deviation over axes: the square root of the variance.

    Args:
      a: an array; integers give floats. The variance of complex numbers uses absolute deviations.
      axis: an axis or a sequence of axes; all by default.
      dtype: the dtype of the sums and of the result; narrow floats are summed in ``float32``.
      out: unsupported.
      ddof: the sum of squares is divided by ``n - ddof``; NaN if that is not positive.
      keepdims: keep the reduced axes with size 1.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.
      mean: the precomputed mean, with ``keepdims=True``.
      correction: a synonym of ``ddof``.

    Returns:
      A real array without the reduced axes.

    Raises:
      ValueError: if an axis does not exist, or both ``ddof`` and ``correction`` are specified.

    The derivative is NaN if all elements are equal.

    >>> float(std(np.array([1.0, 2.0, 3.0]), correction=1))
    1.0
    """
    return _spread(_std, a, axis, dtype, out, ddof, keepdims, where, mean, correction)
