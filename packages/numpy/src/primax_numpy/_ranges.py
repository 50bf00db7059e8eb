"""Evenly spaced numbers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, FastPath, Tracer, as_operand, dtypes
from primax_core.extend.dimensions import (
    Dimension,
    broadcast_shapes,
    decided,
    index,
    is_size,
    is_static,
    max_dim,
    size_as,
)
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, PlacementLike, ShardingLike

from ._checks import check_arrays, dtype_argument, one_axis
from ._creation import placed
from ._functions import compiled

_FLOAT: Final = dtypes.default_float


def arange(
    start: ArrayLike | Dimension,
    stop: ArrayLike | Dimension | None = None,
    step: ArrayLike | Dimension | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: PlacementLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Evenly spaced numbers from ``start`` (0 by default) up to, not including, ``stop``.

    One positional bound is ``stop``, as for ``range``.

    Args:
      start, stop, step: concrete real numbers; ``step`` is 1 by default and may be negative.
      dtype: the promoted dtype of the bounds by default.
      device: a device or a sharding for the result; by default the default device.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      A vector of ``max(0, ceil((stop - start) / step))`` numbers.

    Raises:
      ConcretizationTypeError: if a bound is traced: the length must be static.
      ZeroDivisionError: if ``step`` is 0.
      TypeError: for booleans.
      ValueError: for complex bounds.

    >>> arange(3)
    Array([0, 1, 2], dtype=int32)
    >>> arange(1, 0, -0.25)
    Array([1.  , 0.75, 0.5 , 0.25], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(arange, out_sharding, start, stop, step, dtype, device=device)
    result_dtype = dtype_argument(dtype, "arange")
    bounds = [v for v in (start, stop, step) if v is not None]
    if stop is None:
        start, stop = 0, start
    first, last, by = (_known(v) for v in (start, stop, 1 if step is None else step))
    symbolic = not is_static((first, last, by))
    if result_dtype is None:
        result_dtype, _ = dtypes.lattice_result(
            tuple([(typeof(v).dtype, typeof(v).weak_type) for v in bounds])
        )
    if result_dtype == np.bool_:
        raise TypeError("arange does not support booleans: pass a numeric dtype, such as dtype=int")
    length = _symbolic_length(first, last, by) if symbolic else _length(first, last, by)
    if symbolic:
        places = lax.iota(result_dtype, length)
        if by != 1:
            places = lax.mul(places, size_as(by, result_dtype))
        out = places if first == 0 else lax.add(places, size_as(first, result_dtype))
    elif first == 0 and by == 1:
        out = lax.iota(result_dtype, length)
    else:
        out = _of_host(np.arange(length) * by + first, result_dtype)
    return placed(out, device)


def _length(first: Any, last: Any, by: Any) -> int:
    return max(math.ceil((last - first) / by), 0)


def _symbolic_length(first: Any, last: Any, by: Any) -> Any:
    """The number of elements if a bound is a symbolic dimension."""
    if by == 0:
        raise ZeroDivisionError("division by zero")
    if not all(map(is_size, (first, last, by))):
        raise TypeError(
            f"arange: bounds {first}, {last} and step {by} mix symbolic dimensions with "
            "numbers that are not integers: the length is not a dimension"
        )
    distance = last - first
    up = decided(lambda: by > 0, True)
    count = (distance + by - 1) // by if up else (-distance - by - 1) // -by
    return max_dim(count, 0)


def _known(v: Any) -> Any:
    if isinstance(v, Tracer):
        raise ConcretizationTypeError(
            v,
            "arange: the bounds must be concrete, because they determine the length: take "
            "them from shapes, or mark their arguments as static (static_argnums)",
        )
    if is_size(v) and not isinstance(v, int):
        return v
    value = np.asarray(v).item()
    if isinstance(value, complex):
        raise ValueError(f"arange: bounds must be real, got {v!r}")
    return value


def _of_host(value: np.ndarray, dtype: Any) -> Array:
    out: Array = as_operand(value.astype(dtype))
    return out


def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: DTypeLike | None = None, axis: int = 0, *, device: PlacementLike | None = None,
) -> Any:  # fmt: skip
    """``num`` evenly spaced numbers from ``start`` to ``stop``.

    Args:
      start, stop: numbers or arrays that broadcast together. They may be traced.
      num: the number of values, a concrete integer.
      endpoint: include ``stop`` as the last number.
      retstep: return ``(numbers, step)``.
      dtype: floats by default; integers are rounded down.
      axis: the position of the new axis for array bounds.
      device: a device or a sharding for the result; by default the default device.

    Returns:
      An array with an axis of size ``num`` inserted in the common shape of the bounds.

    Raises:
      ValueError: if ``num`` is negative.

    The values are differentiable with respect to both bounds.

    >>> linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    >>> linspace(0, 1, 4, endpoint=False, retstep=True)
    (Array([0.  , 0.25, 0.5 , 0.75], dtype=float32), Array(0.25, dtype=float32))
    """
    if retstep:
        numbers, step = _evenly("linspace", (start, stop), num, endpoint, dtype, axis)
        return placed(numbers, device), step
    plain = type(num) is int and type(endpoint) is bool and axis == 0 and dtype is None
    if not plain or type(start) not in _NUMBERS or type(stop) not in _NUMBERS:
        return placed(_evenly("numbers", (start, stop), num, endpoint, dtype, axis), device)
    # Bounds as arrays: their types are the key of the dispatch cache.
    bounds = as_operand(start), as_operand(stop)
    key = (num, endpoint)
    out = _numbers_path.lookup(key, *bounds)
    if out is None:
        static = _static("linspace", bounds, num, endpoint, dtype, axis)
        out = _numbers_path.call(key, bounds, **static)
    return placed(out, device)


def _evenly(
    name: str, bounds: tuple[Any, ...], num: Any, endpoint: Any, dtype: Any, axis: Any
) -> Any:
    shown = "linspace" if name == "numbers" else name
    static = _static(shown, bounds, num, endpoint, dtype, axis)
    return _SPACED[name](*bounds, **static)


def _static(
    name: str, bounds: tuple[Any, ...], num: Any, endpoint: Any, dtype: Any, axis: Any
) -> dict[str, Any]:
    """The static parameters of the compiled functions."""
    count = index(num)
    if count < 0:
        raise ValueError(f"{name}: Number of samples, {count}, must be non-negative.")
    check_arrays(name, *bounds)
    avals = [typeof(b) for b in bounds]
    pairs = [(b.dtype, b.weak_type) for b in avals]
    joint = dtypes.lattice_result(tuple(pairs))
    # Integer bounds become floats also under strict promotion.
    computed, _ = dtypes.lattice_result((joint, (_FLOAT(), True)), mode="standard")
    rank = len(broadcast_shapes(*[b.shape for b in avals[:2]]))
    return {
        "num": count,
        "endpoint": bool(endpoint),
        "computed": computed,
        "dtype": dtype_argument(dtype, name) or computed,
        "axis": one_axis(axis, rank + 1),
    }


_STATIC: Final = ("num", "endpoint", "computed", "dtype", "axis")


@compiled(*_STATIC)
def _linspace(start, stop, *, num, endpoint, computed, dtype, axis):
    a, b = _bounds(start, stop, computed)
    gaps = num - 1 if endpoint else num
    # The step of a single gap is the distance; it is NaN without gaps.
    step = (b - a) / gaps if gaps > 0 else lax.full(a.shape, np.nan, computed)
    static = {"num": num, "endpoint": endpoint, "computed": computed, "dtype": dtype, "axis": axis}
    return _numbers(start, stop, **static), step


@compiled(*_STATIC, name="linspace")
def _numbers(start, stop, *, num, endpoint, computed, dtype, axis):
    a, b = _bounds(start, stop, computed)
    out = _axis_last(_from_to(a, b, num, endpoint), axis)
    if dtypes.issubdtype(dtype, np.integer):
        out = lax.floor(out)
    return lax.convert_element_type(out, dtype)


_NUMBERS: Final = (int, float)
_numbers_path: Final = FastPath(_numbers)


def _bounds(start, stop, computed):
    shape = broadcast_shapes(typeof(start).shape, typeof(stop).shape)
    pair = (lax.convert_element_type(v, computed) for v in (start, stop))
    return [
        lax.broadcast_in_dim(v, shape, tuple(range(len(shape) - v.ndim, len(shape)))) for v in pair
    ]


def _from_to(a, b, num: int, endpoint: bool):
    """Evenly spaced numbers along a new first axis; the last one is exact."""
    last = lax.expand_dims(b, (0,))
    if a.ndim:
        a, b = lax.expand_dims(a, (0,)), last
    gaps = max_dim(num - 1 if endpoint else num, 1)
    count = num - 1 if endpoint and num > 1 else num
    real = dtypes.finfo(a.dtype).dtype
    places = lax.reshape(lax.iota(real, count), (count,) + (1,) * (last.ndim - 1))
    ramp = lax.convert_element_type(places / size_as(gaps, real), a.dtype)
    one = np.ones((), a.dtype)[()]
    ascent = (b / size_as(gaps, a.dtype)) * lax.convert_element_type(places, a.dtype)
    out = a * (one - ramp) + ascent
    if endpoint and num > 1:
        out = lax.concatenate([out, last], 0)
    return out


def _axis_last(out, axis: int):
    """The first axis moved to position ``axis``."""
    if not axis:
        return out
    order = list(range(1, out.ndim))
    order.insert(axis, 0)
    return lax.transpose(out, tuple(order))


def logspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None, axis: int = 0,
) -> Array:  # fmt: skip
    """Powers of ``base`` with exponents evenly spaced from ``start`` to ``stop``.

    Args:
      start, stop: the exponents, numbers or arrays that broadcast together. They may be traced.
      num: the number of values, a concrete integer.
      endpoint: include the exponent ``stop`` as the last one.
      base: a number, or an array that broadcasts with the bounds.
      dtype: floats by default.
      axis: the position of the new axis for array bounds.

    Returns:
      An array with an axis of size ``num`` inserted in the common shape of the bounds.

    Raises:
      ValueError: if ``num`` is negative.

    >>> logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    return _evenly("logspace", (start, stop, base), num, endpoint, dtype, axis)


@compiled(*_STATIC)
def _logspace(start, stop, base, *, num, endpoint, computed, dtype, axis):
    exponents = _from_to(*_bounds(start, stop, computed), num, endpoint)
    base = lax.convert_element_type(base, computed)
    shape = broadcast_shapes(exponents.shape, base.shape)
    pair = [
        lax.broadcast_in_dim(v, shape, tuple(range(len(shape) - v.ndim, len(shape))))
        for v in (base, exponents)
    ]
    return lax.convert_element_type(_axis_last(lax.pow(*pair), axis), dtype)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """``num`` numbers in geometric progression from ``start`` to ``stop``.

    Real bounds of different signs, or of zero, give NaN. Complex numbers follow a spiral.

    Args:
      start, stop: numbers or arrays that broadcast together. They may be traced.
      num: the number of values, a concrete integer.
      endpoint: include ``stop`` as the last number.
      dtype: floats by default.
      axis: the position of the new axis for array bounds.

    Returns:
      An array with an axis of size ``num`` inserted in the common shape of the bounds.

    Raises:
      ValueError: if ``num`` is negative.

    >>> geomspace(1, 8, 4)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    return _evenly("geomspace", (start, stop), num, endpoint, dtype, axis)


@compiled(*_STATIC)
def _geomspace(start, stop, *, num, endpoint, computed, dtype, axis):
    a, b = _bounds(start, stop, computed)
    sign = lax.sign(a)
    if dtypes.issubdtype(computed, np.complexfloating):
        log, power = lax.log, lax.exp
    else:
        log, power = lax.log2, lax.exp2
    exponents = _from_to(log(a / sign), log(b / sign), num, endpoint)
    out = power(exponents) * lax.expand_dims(sign, (0,))
    # The bounds are exact, unless the computed values are NaN.
    if num > 0:
        rows = [lax.expand_dims(_defined(a, out[0]), (0,)), out[1:]]
        if endpoint and num > 1:
            rows = [rows[0], out[1:-1], lax.expand_dims(_defined(b, out[-1]), (0,))]
        out = lax.concatenate(rows, 0)
    return lax.convert_element_type(_axis_last(out, axis), dtype)


def _defined(bound, computed):
    """The bound where the computed value is not NaN."""
    return lax.select(lax.eq(computed, computed), bound, computed)


_SPACED: Final = {
    "linspace": _linspace,
    "numbers": _numbers,
    "logspace": _logspace,
    "geomspace": _geomspace,
}
