"""Means and variances over axes."""

from __future__ import annotations

import numbers
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, FastPath, dtypes, is_operand, typeof
from primax_core.extend.dimensions import size_as

from ._checks import axes_of, check_arrays, check_out, wanted_dtype
from ._functions import compiled, given
from ._promotion import repeated
from ._reducing import (
    check_where,
    count,
    float_of,
    is_complex_dtype,
    is_inexact,
    kept,
    masked,
    real_of,
    short_key,
    spread_back,
    squares,
    wide_of,
)


def scalar(value: Any, dtype: Any) -> Any:
    """A known number, or the value of a symbolic dimension, in a dtype."""
    return size_as(value, dtype)


def counted(where: Any, shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any) -> Any:
    """How many elements count, in a real dtype: a known number if there is no mask."""
    if where is None:
        return scalar(count(shape, axes), dtype)
    ones = lax.convert_element_type(repeated(where, shape), dtypes.default_int())
    return lax.convert_element_type(lax.reduce_sum(ones, axes), dtype)


def quotient(total: Any, n: Any) -> Any:
    """A sum divided by a number of elements, which is real."""
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
    return kept(lax.convert_element_type(out, dtype), axes, keepdims)


_mean: Final = FastPath(_mean_of)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *,
    where: Any = None,
) -> Array:  # fmt: skip
    """Arithmetic mean over axes (all by default); NaN where there is no element.

    Args:
      a: an array; integers give floats.
      dtype: of the sum and of the result; narrow floats are summed in ``float32``.
      keepdims: whether the reduced axes are kept, with size 1.
      where: a mask that broadcasts to ``a``; only elements where it holds count.

    >>> float(mean(np.array([1, 2, 4, 5])))
    3.0
    """
    key = short_key(axis, keepdims) if dtype is out is where is None else None
    if key is not None:
        found: Array | None = _mean.lookup(key, a)
        if found is not None:
            return found
    check_arrays("mean", a)
    check_out("mean", out)
    aval = typeof(a)
    wanted = wanted_dtype(dtype, "mean") or float_of(aval.dtype)
    static = {"axes": axes_of(axis, aval.ndim), "dtype": wanted, "keepdims": bool(keepdims)}
    if key is not None:
        return _mean.call(key, (a,), **static)
    check_where("mean", where, aval.shape)
    average: Array = _mean.function(*given(a, where), **static)
    return average


def deviations(x: Any, where: Any, centre: Any, axes: tuple[int, ...]) -> Any:
    """Distances from the mean, zero where the mask does not hold."""
    shape = typeof(x).shape
    if centre is None:
        n = counted(where, shape, axes, real_of(typeof(x).dtype))
        centre = quotient(lax.reduce_sum(masked(x, where, 0), axes), n)
        centre = spread_back(centre, axes, shape)
    else:
        centre = repeated(lax.convert_element_type(centre, typeof(x).dtype), shape)
    return masked(lax.sub(x, centre), where, 0)


def variance_of(a, less, where, centre, *, axes, dtype, keepdims, result):
    """The compiled part of variances; ``less`` is subtracted from the number of elements."""
    x = lax.convert_element_type(a, wide_of(dtype))
    d = deviations(x, where, centre, axes)
    total = lax.reduce_sum(squares(d), axes)
    real = typeof(total).dtype
    n = counted(where, typeof(a).shape, axes, real)
    n = lax.sub(n, repeated(lax.convert_element_type(less, real), typeof(n).shape))
    n = lax.select(lax.gt(n, lax.full_like(n, 0)), n, lax.full_like(n, np.nan))
    return kept(lax.convert_element_type(quotient(total, n), result), axes, keepdims)


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
    """Check the arguments that variances share; the static ones in their one form."""
    check_arrays(name, a)
    check_out(name, out)
    aval = typeof(a)
    wanted = wanted_dtype(dtype, name)
    if wanted is not None and not is_inexact(wanted):
        raise ValueError(f"dtype argument to {name} must be inexact; got {wanted.name}")
    if wanted is not None and is_complex_dtype(aval.dtype) and not is_complex_dtype(wanted):
        raise ValueError(
            f"{name} does not support a real dtype for the variance of complex numbers: got "
            f"{wanted.name} for an operand of {aval.dtype.name}; leave it out, and convert after"
        )
    check_where(name, where, aval.shape)
    if not is_operand(ddof) or typeof(ddof).ndim:
        raise TypeError(f"{name}: ddof (or correction) must be a number, got {ddof!r}")
    axes = axes_of(axis, aval.ndim)
    if mean is not None:
        _check_mean(name, mean, aval.shape, axes)
    computed = float_of(aval.dtype) if wanted is None else wanted
    result = real_of(computed) if wanted is None or is_complex_dtype(aval.dtype) else wanted
    return {"axes": axes, "dtype": computed, "result": result}


def _check_mean(name: str, mean: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    check_arrays(f"{name}'s mean", mean)
    found = typeof(mean).shape
    if not found:
        return
    expected = tuple([1 if i in axes else n for i, n in enumerate(shape)])
    if len(found) != len(shape) or any(f not in (1, n) for f, n in zip(found, shape)):
        raise TypeError(
            f"{name}: mean has shape {found}, where {expected} is expected for an operand of "
            f"shape {shape}: compute it with keepdims=True"
        )


def correction_of(name: str, ddof: Any, correction: Any) -> Any:
    """What is subtracted from the number of elements."""
    if correction is None:
        return ddof
    if not (isinstance(ddof, numbers.Number) and ddof == 0):
        raise ValueError(
            f"{name}: ddof and correction can't be provided simultaneously, for they are the same"
        )
    return correction


def _spread(
    roads: FastPath, a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any,
    where: Any, mean: Any, correction: Any,
) -> Array:  # fmt: skip
    simple = dtype is out is where is mean is correction is None and type(ddof) is int
    key = short_key(axis, keepdims) if simple else None
    if key is not None:
        key = (*key, ddof)
        found: Array | None = roads.lookup(key, a)
        if found is not None:
            return found
    name = roads.function.__name__
    less = correction_of(name, ddof, correction)
    static = check_variance(name, a, axis, dtype, out, less, where, mean)
    known = type(less) in (int, float)
    static |= {"keepdims": bool(keepdims), "less": float(less) if known else None}
    if key is not None:
        return roads.call(key, (a,), **static)
    spread: Array = roads.function(*given(a, where, mean, None if known else less), **static)
    return spread


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0,
    keepdims: bool = False, *, where: Any = None, mean: Any = None, correction: Any = None,
) -> Array:  # fmt: skip
    """Variance over axes: the mean squared distance from the mean.

    Args:
      a: an array; integers give floats, complex numbers the variance of their distances.
      dtype: of the sums and of the result; narrow floats are summed in ``float32``.
      ddof: the sum of squares is divided by ``n - ddof``; NaN if that is not positive.
      keepdims: whether the reduced axes are kept, with size 1.
      where: a mask that broadcasts to ``a``; only elements where it holds count.
      mean: the mean if it is known, computed with ``keepdims=True``.
      correction: another name for ``ddof``.

    >>> float(var(np.array([1.0, 2.0, 3.0]), correction=1))
    1.0
    """
    return _spread(_var, a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def std(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0,
    keepdims: bool = False, *, where: Any = None, mean: Any = None, correction: Any = None,
) -> Array:  # fmt: skip
    """Standard deviation over axes: the square root of :func:`var`, with its arguments.

    Its derivative where all elements are equal is NaN.
    """
    return _spread(_std, a, axis, dtype, out, ddof, keepdims, where, mean, correction)
