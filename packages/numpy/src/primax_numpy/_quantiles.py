"""Quantiles, percentiles and medians."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from primax_core import device_put, lax
from primax_core.extend import Array, FastPath, Tracer, dtypes, one_call, state
from primax_core.extend.dimensions import is_static, is_symbolic_dim
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, ShardingLike

from ._checks import axes_of, check_arrays
from ._functions import compiled
from ._promotion import repeated
from ._quantile_methods import METHODS, at_places, between, known_places, traced_places
from ._reduction_helpers import count, float_of, is_complex_dtype, wide_of
from ._statistics import scalar


def _rows(x: Any, axes: tuple[int, ...]) -> Any:
    """The reduced axes flattened into one last axis."""
    aval = typeof(x)
    others = [i for i in range(aval.ndim) if i not in axes]
    x = lax.transpose(x, (*others, *axes)) if (*others, *axes) != tuple(range(aval.ndim)) else x
    return lax.reshape(x, (*[aval.shape[i] for i in others], count(aval.shape, axes)))


def _laid_out(out: Any, axes: tuple[int, ...], rank: int, keepdims: bool, single: bool) -> Any:
    """Transpose ``[..., q]`` so that the quantiles come first, and restore reduced axes."""
    last = typeof(out).ndim - 1
    if single:
        out = lax.squeeze(out, (last,))
    else:
        out = lax.transpose(out, (last, *range(last)))
    if keepdims and axes:
        first = 0 if single else 1
        out = lax.expand_dims(out, tuple([i + first for i in axes]))
    return out


def _wide_rows(a: Any, axes: tuple[int, ...], dtype: Any) -> Any:
    # Conversion to 32 bits preserves the order of narrow floats. Interpolation needs the precision.
    return _rows(lax.convert_element_type(a, wide_of(dtype)), axes)


def _at_ranks(x: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Elements of ranks, and the greatest of each row, which is NaN if any is."""
    last, shape = typeof(low).ndim - 1, typeof(low).shape
    greatest = lax.full((*shape[:-1], 1), scalar(typeof(x).shape[-1] - 1, np.int32))
    elements = lax.order_statistics(x, lax.concatenate([low, high, greatest], last))
    first, second, third = lax.split(elements, (shape[-1], shape[-1], 1), typeof(x).ndim - 1)
    return first, second, third


def _with_nan(out: Any, x: Any) -> Any:
    """NaN for rows that contain NaN, which sorts last."""
    n = typeof(x).shape[-1]
    last = lax.slice_in_dim(x, n - 1, n, axis=typeof(x).ndim - 1)
    bad = repeated(lax.ne(last, last), typeof(out).shape)
    return lax.select(bad, lax.full_like(out, np.nan), out)


@compiled("axes", "dtype", "keepdims", "single")
def _quantile_at(a, i, w, *, axes, dtype, keepdims, single):
    """Quantiles at precomputed indices."""
    x = _wide_rows(a, axes, dtype)
    last = scalar(typeof(x).shape[-1] - 1, np.int32)
    low, high, greatest = _at_ranks(x, i, lax.min(lax.add(i, scalar(1, np.int32)), last))
    w = repeated(lax.convert_element_type(w, typeof(x).dtype), typeof(low).shape)
    out = lax.convert_element_type(_with_nan(between(low, high, w), greatest), dtype)
    return _laid_out(out, axes, typeof(a).ndim, keepdims, single)


@compiled("axes", "dtype", "keepdims", "method", "percent", "skip_nan")
def _quantile(a, q, *, axes, dtype, keepdims, method, percent, skip_nan):
    """Quantiles whose indices are computed from traced levels."""
    x = _wide_rows(a, axes, dtype)
    rows = typeof(x).shape[:-1]
    kind = dtypes.f64 if dtypes.f64 in (typeof(q).dtype, typeof(x).dtype) else dtypes.f32
    single = not typeof(q).ndim
    q = lax.reshape(lax.convert_element_type(q, kind), (typeof(q).size,))
    if percent:
        q = lax.div(q, scalar(100, kind))
    n = typeof(x).shape[-1]
    if skip_nan:
        shape = (*rows, typeof(q).size)
        ones = lax.convert_element_type(lax.eq(x, x), np.int32)
        counts = lax.reduce_sum(ones, (len(rows),))
        there = lax.broadcast_in_dim(counts, shape, tuple(range(len(rows))))
        i, w = traced_places(repeated(q, shape), lax.convert_element_type(there, kind), method)
        last = lax.max(lax.sub(there, lax.full_like(there, 1)), lax.full_like(there, 0))
    else:
        i, w = traced_places(q, lax.full_like(q, n), method)
        last = lax.full_like(i, n - 1)
    low, high, greatest = _at_ranks(x, i, lax.min(lax.add(i, lax.full_like(i, 1)), last))
    w = repeated(lax.convert_element_type(w, typeof(x).dtype), typeof(low).shape)
    out = between(low, high, w)
    out = out if skip_nan else _with_nan(out, greatest)
    return _laid_out(lax.convert_element_type(out, dtype), axes, typeof(a).ndim, keepdims, single)


@compiled("axes", "dims", "dtype", "keepdims", "percent", "skip_nan")
def _weighted(a, q, weights, *, axes, dims, dtype, keepdims, percent, skip_nan):
    """The smallest element whose cumulative weight reaches a fraction ``q`` of the total."""
    shape = typeof(a).shape
    kind = dtypes.f64 if dtypes.f64 in (typeof(q).dtype, typeof(a).dtype) else dtypes.f32
    order = sorted(range(len(dims)), key=lambda i: dims[i])
    weights = lax.transpose(lax.convert_element_type(weights, kind), tuple(order))
    weights = _rows(lax.broadcast_in_dim(weights, shape, tuple(sorted(dims))), axes)
    x = _rows(lax.convert_element_type(a, wide_of(dtype)), axes)
    if skip_nan:
        weights = lax.select(lax.eq(x, x), weights, lax.full_like(weights, 0))
    x, weights = lax.sort((x, weights), num_keys=1)
    last = typeof(x).ndim - 1
    sums = lax.cumsum(weights, last)
    n = typeof(x).shape[-1]
    total = lax.slice_in_dim(sums, n - 1, n, axis=last)
    single = not typeof(q).ndim
    q = lax.reshape(lax.convert_element_type(q, kind), (typeof(q).size,))
    if percent:
        q = lax.div(q, scalar(100, kind))
    places = (*typeof(x).shape[:-1], typeof(q).size, n)
    operand_axes = (*range(last), last + 1)
    needed = lax.mul(
        lax.broadcast_in_dim(q, places, (last,)),
        lax.broadcast_in_dim(lax.squeeze(total, (last,)), places, tuple(range(last))),
    )
    every = lax.broadcast_in_dim(sums, places, operand_axes)
    positive = lax.gt(every, lax.full_like(every, 0))
    enough = lax.bitwise_and(lax.ge(every, needed), positive)
    i = lax.argmax(enough, last + 1, np.int32)
    i = lax.reshape(i, (typeof(i).size,)) if last == 0 else i
    out = at_places(x, i)
    out = out if skip_nan else _with_nan(out, x)
    return _laid_out(lax.convert_element_type(out, dtype), axes, len(shape), keepdims, single)


def _checked(name: str, a: Any, q: Any, axis: Any, out: Any, overwrite: Any) -> tuple[int, ...]:
    check_arrays(name, a, q)
    if overwrite or out is not None:
        raise ValueError(f"{name} does not support overwrite_input=True or out: leave them out")
    level = typeof(q)
    if is_complex_dtype(level.dtype):
        raise TypeError(f"{name}: q must be real, got dtype {level.dtype.name}")
    if level.ndim > 1:
        raise ValueError(f"{name}: q must have rank 0 or 1, got shape {level.shape}")
    return _checked_axes(name, typeof(a), axis)


def _checked_axes(name: str, aval: Any, axis: Any) -> tuple[int, ...]:
    if is_complex_dtype(aval.dtype):
        raise ValueError(f"{name} does not support complex input: its elements have no order")
    axes = axes_of(axis, aval.ndim)
    if not count(aval.shape, axes):
        raise ValueError(f"{name} of no element: shape {aval.shape}, axes {axes}")
    return axes


def _call(
    name: str, a: Any, q: Any, axis: Any, out: Any, overwrite_input: Any, method: str,
    keepdims: Any, weights: Any, percent: bool,
) -> Array:  # fmt: skip
    if type(q) in (float, int) and weights is None and out is None and not overwrite_input:
        spec = getattr(a, "_spec", None)
        if spec is not None and method in METHODS and name in _OF_ALL and type(axis) in _PLAIN:
            axes, dtype = _checked_type(name, spec.aval, axis)
            return _at_levels(
                a, (q,), method, percent, single=True, axes=axes, dtype=dtype,
                keepdims=bool(keepdims),
            )  # fmt: skip
    axes = _checked(name, a, q, axis, out, overwrite_input)
    if method not in METHODS:
        raise ValueError(f"{name}: method {method!r} is unknown: use one of {', '.join(METHODS)}")
    dtype = float_of(typeof(a).dtype)
    static = {"axes": axes, "dtype": dtype, "keepdims": bool(keepdims)}
    skip_nan = name.startswith("nan")
    if weights is not None:
        dims = _weight_dims(name, a, weights, axis, axes, method)
        weights_aval = typeof(weights)
        joint = dtypes.lattice_result(
            ((dtype, False), (weights_aval.dtype, weights_aval.weak_type))
        )
        static["dtype"] = joint[0]
        return _weighted(a, q, weights, dims=dims, percent=percent, skip_nan=skip_nan, **static)
    if skip_nan or isinstance(q, Tracer) or is_symbolic_dim(count(typeof(a).shape, axes)):
        return _quantile(a, q, method=method, percent=percent, skip_nan=skip_nan, **static)
    single = not typeof(q).ndim
    levels = [q] if isinstance(q, (int, float)) else np.asarray(q).reshape(-1).tolist()
    return _at_levels(a, tuple(levels), method, percent, single=single, **static)


_OF_ALL: Final = ("quantile", "percentile")
_PLAIN: Final = (int, type(None))
_MOST_LEVELS: Final = 64
_path: Final = FastPath(_quantile_at)


def _at_levels(
    a: Any, levels: tuple[Any, ...], method: str, percent: bool, *, single: bool,
    axes: tuple[int, ...], dtype: Any, keepdims: bool,
) -> Array:  # fmt: skip
    """Quantiles at known levels; eagerly, indices and weights of few levels are kept on device."""
    n = count(typeof(a).shape, axes)
    static = {"axes": axes, "dtype": dtype, "keepdims": keepdims, "single": single}
    out: Array | None
    if state.trace is not None or len(levels) > _MOST_LEVELS:
        i, w = _places(levels, n, method, percent, dtype)
        out = _quantile_at(a, i, w, **static)
        return out
    i, w = _placed(levels, n, method, percent, dtype, state.key)
    key = (axes, dtype, keepdims, single)
    out = _path.lookup(key, a, i, w)
    return _path.call(key, (a, i, w), **static) if out is None else out


def _places(levels: tuple[Any, ...], n: int, method: str, percent: bool, dtype: Any) -> Any:
    """Indices and weights of the elements next to each level."""
    level = np.asarray(levels, np.float64)
    i, w = known_places(level / 100 if percent else level, n, method)
    return i, w.astype(np.float32) if dtype != dtypes.f64 else w


@functools.lru_cache(256)
def _placed(
    levels: tuple[Any, ...], n: int, method: str, percent: bool, dtype: Any, key: Hashable
) -> tuple[Array, Array]:
    """Cached device arrays of :func:`_places`; the key contains the default placement."""
    i, w = _places(levels, n, method, percent, dtype)
    return device_put(i), device_put(w)


@functools.lru_cache(256)
def _checked_type(name: str, aval: Any, axis: Any) -> tuple[tuple[int, ...], Any]:
    """The axes and the dtype of quantiles of an array."""
    return _checked_axes(name, aval, axis), float_of(aval.dtype)


def _weight_dims(
    name: str, a: Any, weights: Any, axis: Any, axes: tuple[int, ...], method: str
) -> tuple[int, ...]:
    """The axes of ``a`` that correspond to the axes of the weights."""
    if method != "inverted_cdf":
        raise ValueError(
            f"{name}: weights are supported by the method 'inverted_cdf' only, got {method!r}"
        )
    check_arrays(name, a, weights)
    shape, weights_shape = typeof(a).shape, typeof(weights).shape
    if weights_shape == shape:
        return tuple(range(len(shape)))
    if axis is None:
        raise ValueError(
            f"{name}: axis must be specified when shapes of a and weights differ: a has shape "
            f"{shape}, weights {weights_shape}"
        )
    if weights_shape != tuple([shape[i] for i in axes]):
        raise ValueError(
            f"{name}: weights must have the sizes of the axes: a has shape {shape}, axes {axes}, "
            f"weights have shape {weights_shape}"
        )
    return axes


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Quantiles of the elements over axes.

    Args:
      a: real numbers; integers give floats. NaN in a row gives NaN.
      q: a level in ``[0, 1]`` or a vector of levels; others are clamped.
      axis: the reduced axis or axes; all by default.
      out, overwrite_input: unsupported.
      method: the interpolation between elements: one of ``linear``, ``lower``, ``higher``,
        ``midpoint``, ``nearest``, ``inverted_cdf``, ``averaged_inverted_cdf``,
        ``closest_observation``, ``interpolated_inverted_cdf``, ``hazen``, ``weibull``,
        ``median_unbiased`` and ``normal_unbiased`` (Hyndman and Fan, 1996).
      keepdims: keep the reduced axes with size 1.
      weights: nonnegative weights of the shape of ``a`` or of the sizes of ``axis``; only with
        ``method="inverted_cdf"``.

    Returns:
      The quantiles; for a vector ``q`` along a new first axis.

    The result is differentiable with respect to the selected elements, and to ``q`` if the method
    interpolates. Positions are computed in double precision for a concrete ``q``, in its own
    precision for a traced one.

    >>> quantile(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.75])).tolist()
    [2.0, 2.5]
    """
    return _call("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, False)


def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Percentiles over axes: :func:`quantile` with ``q`` in ``[0, 100]``.

    Args:
      a: real numbers; integers give floats. NaN in a row gives NaN.
      q: a level in ``[0, 100]`` or a vector of levels; others are clamped.
      axis: the reduced axis or axes; all by default.
      out, overwrite_input: unsupported.
      method: the interpolation between elements, as for :func:`quantile`.
      keepdims: keep the reduced axes with size 1.
      weights: nonnegative weights, as for :func:`quantile`.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      The quantiles; for a vector ``q`` along a new first axis.

    >>> percentile(np.array([1.0, 2.0, 3.0]), np.array([50.0, 75.0])).tolist()
    [2.0, 2.5]
    """
    if out_sharding is not None:
        return with_out_sharding(
            percentile,
            out_sharding,
            a,
            q,
            axis,
            out,
            overwrite_input,
            method,
            keepdims,
            weights=weights,
        )
    return _call("percentile", a, q, axis, out, overwrite_input, method, keepdims, weights, True)


def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Quantiles over axes that ignore NaN; NaN if all elements are NaN.

    Args:
      a: real numbers; integers give floats. NaN is ignored.
      q: a level in ``[0, 1]`` or a vector of levels; others are clamped.
      axis: the reduced axis or axes; all by default.
      out, overwrite_input: unsupported.
      method: the interpolation between elements, as for :func:`quantile`.
      keepdims: keep the reduced axes with size 1.
      weights: nonnegative weights, as for :func:`quantile`.

    Returns:
      The quantiles; for a vector ``q`` along a new first axis.

    >>> float(nanquantile(np.array([1.0, np.nan, 3.0]), 0.5))
    2.0
    """
    return _call("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights, False)


def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Percentiles over axes that ignore NaN; NaN if all elements are NaN.

    Args:
      a: real numbers; integers give floats. NaN is ignored.
      q: a level in ``[0, 100]`` or a vector of levels; others are clamped.
      axis: the reduced axis or axes; all by default.
      out, overwrite_input: unsupported.
      method: the interpolation between elements, as for :func:`quantile`.
      keepdims: keep the reduced axes with size 1.
      weights: nonnegative weights, as for :func:`quantile`.

    Returns:
      The quantiles; for a vector ``q`` along a new first axis.

    >>> float(nanpercentile(np.array([1.0, np.nan, 3.0]), 50.0))
    2.0
    """
    return _call("nanpercentile", a, q, axis, out, overwrite_input, method, keepdims, weights, True)


@compiled("axes", "dtype", "keepdims")
def _median(a, *, axes, dtype, keepdims):
    x = _wide_rows(a, axes, dtype)
    n, last = typeof(x).shape[-1], typeof(x).ndim - 1
    if is_static((n,)) and n < 2**31:
        ranks = np.array([(n - 1) // 2, n // 2, n - 1], np.int32)
        x, first, second = lax.order_statistics(x, ranks), 0, 1
    else:
        x, first, second = lax.sort(x), (n - 1) // 2, n // 2
    low = lax.slice_in_dim(x, first, first + 1, axis=last)
    if not is_static((n,)) or n % 2 == 0:  # for odd n the mean is the middle element
        high = lax.slice_in_dim(x, second, second + 1, axis=last)
        half = lax.full_like(low, 0.5)
        low = lax.add(lax.mul(low, half), lax.mul(high, half))
    out = lax.convert_element_type(_with_nan(low, x), dtype)
    return _laid_out(out, axes, typeof(a).ndim, keepdims, True)


@one_call("axis", "keepdims")
def median(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median over axes: the middle element in order, or the mean of the middle two.

    Args:
      a: real numbers; integers give floats. NaN in a row gives NaN.
      axis: the reduced axis or axes; all by default.
      out, overwrite_input: unsupported.
      keepdims: keep the reduced axes with size 1.

    Returns:
      An array without the reduced axes.

    The derivative is divided between the two middle elements.

    >>> float(median(np.array([3, 1, 2, 10])))
    2.5
    >>> median(np.array([[3, 1, 2], [6, 4, 5]]), axis=1).tolist()
    [2.0, 5.0]
    """
    axes = _checked("median", a, 0.5, axis, out, overwrite_input)
    dtype = float_of(typeof(a).dtype)
    middle: Array = _median(a, axes=axes, dtype=dtype, keepdims=bool(keepdims))
    return middle


@one_call("axis", "keepdims")
def nanmedian(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median over axes that ignores NaN; NaN if all elements are NaN.

    Args:
      a: real numbers; integers give floats. NaN is ignored.
      axis: the reduced axis or axes; all by default.
      out, overwrite_input: unsupported.
      keepdims: keep the reduced axes with size 1.

    Returns:
      An array without the reduced axes.

    >>> float(nanmedian(np.array([3.0, 1.0, np.nan])))
    2.0
    """
    axes = _checked("nanmedian", a, 0.5, axis, out, overwrite_input)
    middle: Array = _quantile(
        a, 0.5, axes=axes, dtype=float_of(typeof(a).dtype), keepdims=bool(keepdims),
        method="midpoint", percent=False, skip_nan=True,
    )  # fmt: skip
    return middle
