"""Arrays from values, shapes and ranges."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from primax_core import device_put, lax
from primax_core.extend import Array, Literal, ShapedArray, Tracer, dtypes, finished, typeof

from ._checks import wanted_dtype

_FLOAT = dtypes.default_float


def _shape(shape: Any) -> tuple[int, ...]:
    return (operator.index(shape),) if hasattr(shape, "__index__") else tuple(shape)


def asarray(
    a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None, device: Any = None
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
        raise NotImplementedError("Only implemented for order in {None, 'C', 'A', 'K'}.")
    wanted = wanted_dtype(dtype, "asarray")
    out = _as_array(a, wanted)
    if wanted is not None and (out.dtype != wanted or out.weak_type):
        out = lax.convert_element_type(out, wanted)
    if device is not None:
        return device_put(out, device)
    return lax_copy(out) if copy and out is a else out


def lax_copy(x: Array) -> Array:
    """A new array of the same values."""
    return x if isinstance(x, Tracer) else x.__copy__()


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
        return _placed(_checked(a))
    if isinstance(a, (list, tuple)):
        return _from_sequence(a, dtype)
    if hasattr(a, "__array__") or hasattr(a, "__buffer__"):
        return _placed(_checked(np.asarray(a)))
    raise TypeError(f"Value {a!r} with type {type(a)} is not a valid JAX array type.")


def _checked(a: Any) -> np.ndarray:
    a = np.asarray(a)
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


def _placed(value: np.ndarray) -> Array:
    """The array of NumPy values; inside a trace, a constant of the program."""
    return device_put(value)


def _placed_as(value: Any, aval: ShapedArray) -> Array:
    """The array of a number, of a given weakness."""
    return finished(Literal(np.asarray(value).astype(aval.dtype)[()], aval))


def _from_sequence(a: Any, dtype: Any) -> Array:
    leaves = list(_leaves(a))
    if not any(isinstance(x, Array) for x in leaves):
        value = np.array(a) if leaves else np.zeros(np.shape(a), _FLOAT())
        value = _checked(value)
        if dtype is None and not any(isinstance(x, (np.ndarray, np.generic)) for x in leaves):
            value = value.astype(dtypes.canonicalize_dtype(value.dtype)) if value.dtype.kind in "fc" else _fitting(value)
        elif dtype is not None and value.dtype.kind in "iu" and np.issubdtype(dtype, np.integer):
            value = np.array(a, dtype)
        return _placed(value)
    parts = [x if isinstance(x, Array) else _as_array(x, dtype) for x in a]
    shapes = {p.shape for p in parts}
    if len(shapes) > 1:
        raise ValueError(
            f"the elements of a nested sequence must have one shape, got {sorted(shapes)}"
        )
    joint, _ = dtypes.lattice_result(
        tuple((typeof(p).dtype, typeof(p).weak_type) for p in parts)
    )
    rows = [lax.expand_dims(lax.convert_element_type(p, joint), (0,)) for p in parts]
    return lax.concatenate(rows, 0)


def _fitting(value: np.ndarray) -> np.ndarray:
    if value.dtype.kind in "iu":
        target = dtypes.default_int()
        info = np.iinfo(target)
        if value.size and not (info.min <= value.min() and value.max() <= info.max):
            bad = next(int(v) for v in value.ravel() if not info.min <= v <= info.max)
            raise OverflowError(f"Python integer {bad} out of bounds for {target.name}")
        return value.astype(target)
    return value


def _leaves(a: Any):
    for x in a:
        if isinstance(x, (list, tuple)):
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


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None) -> Array:
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
        out = _placed(np.arange(length) * by + first).astype(wanted)
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
    wanted = wanted_dtype(dtype, "linspace")
    computed, _ = dtypes.lattice_result(
        (*((typeof(v).dtype, typeof(v).weak_type) for v in (start, stop)), (_FLOAT(), True))
    )
    a = asarray(start, computed)
    b = asarray(stop, computed)
    shape = np.broadcast_shapes(a.shape, b.shape)
    steps = num - 1 if endpoint else num
    step = (b - a) / steps if steps > 0 else full(shape, np.nan, computed)
    ramp = lax.iota(computed, num) / np.asarray(max(steps, 1), computed)[()]
    ramp = lax.reshape(ramp, (num,) + (1,) * len(shape))
    out = a * (np.ones((), computed)[()] - ramp) + b * ramp
    out = lax.broadcast_in_dim(out, (num, *shape), tuple(range(1 + len(shape))))
    if endpoint and num > 1:
        last = lax.broadcast_in_dim(b, (1, *shape), tuple(range(1 + len(shape) - b.ndim, 1 + len(shape))))
        out = lax.concatenate([lax.slice_in_dim(out, 0, num - 1), last], 0)
    if axis:
        order = list(range(1, out.ndim))
        order.insert(axis % out.ndim, 0)
        out = lax.transpose(out, tuple(order))
    if wanted is not None:
        out = lax.convert_element_type(
            lax.floor(out) if np.issubdtype(wanted, np.integer) else out, wanted
        )
    return (out, step) if retstep else out
