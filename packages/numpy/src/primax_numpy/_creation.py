"""Arrays from values, shapes and ranges."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from copy import copy as copy_of
from typing import Any, Final

import numpy as np

from primax_core import device_put, lax
from primax_core.extend import (
    Array,
    Literal,
    ShapedArray,
    Tracer,
    as_operand,
    dtypes,
    finished,
    library_function,
    typeof,
)

from ._checks import check_arrays, one_axis, wanted_dtype

_FLOAT: Final = dtypes.default_float
_SEQUENCES: Final = (list, tuple, range)


def _shape(shape: Any) -> tuple[int, ...]:
    return (operator.index(shape),) if hasattr(shape, "__index__") else tuple(shape)


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
) -> Array:
    """An array of the same values; arrays are returned as they are.

    Args:
      a: an array, a number, or nested sequences of them.
      dtype: wanted element type; numbers become weakly typed arrays without it.
      copy: make a new array in any case.
      device: where to put it.

    Raises:
      TypeError: for values that are no numbers.
      OverflowError: for integers that the dtype cannot hold.

    >>> asarray([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    if order not in (None, "C", "A", "K"):
        raise NotImplementedError("arrays have no memory order: use None, 'C', 'A' or 'K'")
    wanted = wanted_dtype(dtype, "asarray")
    out = _as_array(a, wanted)
    if wanted is not None and (out.dtype != wanted or out.weak_type):
        out = lax.convert_element_type(out, wanted)
    if device is not None:
        return device_put(out, device)
    return _copied(out) if copy and out is a else out


def _copied(x: Array) -> Array:
    return x if isinstance(x, Tracer) else copy_of(x)


def _as_array(a: Any, dtype: Any) -> Array:
    if isinstance(a, Array):
        return a
    if isinstance(a, Literal):
        return _placed_as(a.val, a.aval)
    if a is None:
        raise ValueError("None is not a valid value for jnp.array")
    if hasattr(a, "__jax_array__"):
        return _as_array(a.__jax_array__(), dtype)
    if isinstance(a, (bool, int, float, complex)):
        return _scalar(a, dtype)
    if isinstance(a, (np.ndarray, np.generic)):
        return _placed(a, dtype)
    if isinstance(a, _SEQUENCES):
        return _from_sequence(a, dtype)
    if hasattr(a, "__array__") or _has_buffer(a):
        return _placed(np.asarray(a), dtype)
    raise TypeError(f"Value {a!r} with type {type(a)} is not a valid JAX array type.")


def _has_buffer(a: Any) -> bool:
    try:
        memoryview(a).release()
    except TypeError:
        return False
    return True


def _checked(a: Any) -> Any:
    if a.dtype.kind in "OSUMm":
        raise TypeError(
            f"Value {a!r} with dtype {a.dtype} is not a valid JAX array type. Only arrays of "
            "numeric types are supported."
        )
    return a


def _scalar(a: Any, dtype: Any) -> Array:
    if dtype is not None and type(a) is int and np.issubdtype(dtype, np.integer):
        dtypes.check_python_int(a, dtype)
        return _placed(np.asarray(a, dtype))
    aval = typeof(a)
    if type(a) is int and dtype is None:
        dtypes.check_default_int(a)
    return _placed_as(np.asarray(a, aval.dtype if dtype is None else None), aval)


def _placed(value: Any, dtype: Any = None) -> Array:
    """The array of NumPy values in a dtype; inside a trace, a constant of the program."""
    value = _checked(value)
    if dtype is not None and value.dtype != dtype:
        with np.errstate(all="ignore"):
            value = value.astype(dtype)
    out: Array = as_operand(value)
    return out


def _placed_as(value: Any, aval: ShapedArray) -> Array:
    """The array of a number, of a given weakness."""
    return finished(Literal(np.asarray(value).astype(aval.dtype)[()], aval))


def _from_sequence(a: Any, dtype: Any) -> Array:
    leaves = list(_leaves(a))
    if not any(isinstance(x, Array) for x in leaves):
        value = np.array(a) if leaves else np.zeros(np.shape(a), _FLOAT())
        value = _checked(value)
        if dtype is None and not any(isinstance(x, (np.ndarray, np.generic)) for x in leaves):
            value = _fitting(value)
        elif dtype is not None and value.dtype.kind in "iu" and np.issubdtype(dtype, np.integer):
            value = np.array(a, dtype)
        return _placed(value, dtype)
    parts = [x if isinstance(x, Array) else _as_array(x, dtype) for x in a]
    shapes = {p.shape for p in parts}
    if len(shapes) > 1:
        raise ValueError(
            f"the elements of a nested sequence must have one shape, got {sorted(shapes)}"
        )
    avals = [typeof(p) for p in parts]
    joint, _ = dtypes.lattice_result(tuple([(p.dtype, p.weak_type) for p in avals]))
    rows = [lax.expand_dims(lax.convert_element_type(p, joint), (0,)) for p in parts]
    return lax.concatenate(rows, 0)


def _fitting(value: np.ndarray) -> np.ndarray:
    """Values of Python numbers in their default dtype."""
    if value.dtype.kind in "fc":
        return value.astype(dtypes.canonicalize_dtype(value.dtype))
    if value.dtype.kind in "iu":
        target = dtypes.default_int()
        info = np.iinfo(target)
        if value.size and not (info.min <= value.min() and value.max() <= info.max):
            bad = next(int(v) for v in value.ravel() if not info.min <= v <= info.max)
            raise OverflowError(f"Python integer {bad} out of bounds for {target.name}")
        return value.astype(target)
    return value


def _leaves(a: Any) -> Iterator[Any]:
    for x in a:
        if isinstance(x, _SEQUENCES):
            yield from _leaves(x)
        else:
            if x is None:
                raise ValueError("None is not a valid value for jnp.array")
            yield x


def array(
    object: Any, dtype: Any = None, copy: bool = True, order: str | None = "K", ndmin: int = 0,
    *, device: Any = None,
) -> Array:  # fmt: skip
    """A new array of the values; arguments as :func:`asarray`.

    Args:
      ndmin: least number of axes; missing ones are added in front.
    """
    out = asarray(object, dtype, order, copy=copy, device=device)
    missing = ndmin - out.ndim
    return lax.expand_dims(out, tuple(range(missing))) if missing > 0 else out


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of zeros, of floats by default."""
    return full(shape, 0, wanted_dtype(dtype, "zeros") or _FLOAT(), device=device)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of ones, of floats by default."""
    return full(shape, 1, wanted_dtype(dtype, "ones") or _FLOAT(), device=device)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array of one value.

    Args:
      fill_value: a number or an array that broadcasts to ``shape``.
      dtype: by default that of ``fill_value``, weak if it is a number.
    """
    wanted = wanted_dtype(dtype, "full")
    if np.ndim(fill_value) == 0:
        out = lax.full(_shape(shape), fill_value, wanted)
    else:
        value = asarray(fill_value, wanted)
        target = _shape(shape)
        out = lax.broadcast_in_dim(
            value, target, tuple(range(len(target) - value.ndim, len(target)))
        )
    return out if device is None else device_put(out, device)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Array:
    """Zeros of another array's shape and type."""
    return full_like(a, 0, dtype, shape, device=device)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Array:
    """Ones of another array's shape and type."""
    return full_like(a, 1, dtype, shape, device=device)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None
) -> Array:
    """An array of one value, of another array's shape and type."""
    wanted = wanted_dtype(dtype, "full_like")
    target = None if shape is None else _shape(shape)
    out = lax.full_like(a, fill_value, wanted, target)
    return out if device is None else device_put(out, device)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None
) -> Array:
    """Ones on a diagonal, zeros elsewhere.

    Args:
      N, M: numbers of rows and columns (``M`` is ``N`` by default).
      k: which diagonal; positive ones lie above the main one.
    """
    wanted = wanted_dtype(dtype, "eye") or _FLOAT()
    columns = N if M is None else M
    rows = lax.broadcasted_iota(np.int32, (N, columns), 0)
    cols = lax.broadcasted_iota(np.int32, (N, columns), 1)
    out = lax.convert_element_type(rows + np.int32(k) == cols, wanted)
    return out if device is None else device_put(out, device)


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None
) -> Array:
    """Evenly spaced numbers from ``start`` (0 if only one is given) up to, not including, ``stop``.

    Raises:
      ConcretizationTypeError: if a bound is traced: the length must be known.
      ZeroDivisionError: if ``step`` is 0.

    >>> arange(3)
    Array([0, 1, 2], dtype=int32)
    """
    wanted = wanted_dtype(dtype, "arange")
    if stop is None:
        start, stop = 0, start
    first, last, by = (_known(v) for v in (start, stop, 1 if step is None else step))
    if wanted is None:
        given = [v for v in (start, stop, step) if v is not None]
        wanted, _ = dtypes.lattice_result(
            tuple((typeof(v).dtype, typeof(v).weak_type) for v in given)
        )
    length = max(math.ceil((last - first) / by), 0)
    if first == 0 and by == 1:
        out = lax.iota(wanted, length)
    else:
        out = _placed(np.arange(length) * by + first, wanted)
    return out if device is None else device_put(out, device)


def _known(v: Any) -> Any:
    if isinstance(v, Tracer):
        v.__index__()
    return np.asarray(v).item()


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """``num`` evenly spaced numbers from ``start`` to ``stop``.

    Args:
      endpoint: whether ``stop`` is the last one.
      retstep: give ``(numbers, step)``.
      axis: where the new axis goes, for array bounds.
    """
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    check_arrays("linspace", start, stop)
    bounds = [typeof(start), typeof(stop)]
    pairs = [(b.dtype, b.weak_type) for b in bounds]
    computed, _ = dtypes.lattice_result((*pairs, (_FLOAT(), True)))
    wanted = wanted_dtype(dtype, "linspace") or computed
    rank = len(np.broadcast_shapes(*[b.shape for b in bounds]))
    numbers, step = _linspace(
        start, stop, num=num, endpoint=bool(endpoint), computed=computed, dtype=wanted,
        axis=one_axis(axis, rank + 1),
    )  # fmt: skip
    out = (numbers, step) if retstep else numbers
    return out if device is None else device_put(out, device)


def _linspace_of(start, stop, *, num, endpoint, computed, dtype, axis):
    a = lax.convert_element_type(start, computed)
    b = lax.convert_element_type(stop, computed)
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = (lax.broadcast_in_dim(v, shape, _last(v.ndim, len(shape))) for v in (a, b))
    gaps = num - 1 if endpoint else num
    # A step of one sample is the distance itself, and that of none is not a number.
    step = (b - a) / gaps if gaps > 0 else lax.full(shape, np.nan, computed)
    count = gaps if num > 1 else num
    real = dtypes.finfo(computed).dtype
    places = lax.reshape(lax.iota(real, count), (count,) + (1,) * len(shape))
    ramp = lax.convert_element_type(places / np.asarray(max(gaps, 1), real)[()], computed)
    one = np.ones((), computed)[()]
    ascent = (b / np.asarray(max(gaps, 1), computed)[()]) * lax.convert_element_type(
        places, computed
    )
    out = a * (one - ramp) + ascent
    if endpoint and num > 1:
        out = lax.concatenate([out, lax.expand_dims(b, (0,))], 0)
    if axis:
        order = list(range(1, out.ndim))
        order.insert(axis, 0)
        out = lax.transpose(out, tuple(order))
    if dtypes.issubdtype(dtype, np.integer):
        out = lax.floor(out)
    return lax.convert_element_type(out, dtype), step


_linspace_of.__name__ = "linspace"
_linspace = library_function(
    _linspace_of, static_argnames=("num", "endpoint", "computed", "dtype", "axis")
)


def _last(n: int, rank: int) -> tuple[int, ...]:
    """The last ``n`` of ``rank`` axes."""
    return tuple(range(rank - n, rank))
