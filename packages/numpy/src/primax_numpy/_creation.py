"""Arrays from numbers, nested sequences, and objects of other libraries."""

from __future__ import annotations

from array import array as typed_array
from copy import copy as copy_of
from itertools import chain
from typing import Any, Final

import numpy as np

from primax_core import device_put, lax
from primax_core.extend import (
    Array,
    Literal,
    ShapedArray,
    Tracer,
    as_operand,
    as_result,
    dtypes,
    typeof,
)
from primax_core.extend.dimensions import Dimension
from primax_core.extend.elementwise import argument_type
from primax_core.extend.traces import is_valid_type
from primax_core.typing import DTypeLike, PlacementLike, ShardingLike

from ._checks import check_arrays, converted, converts_itself, dtype_argument
from ._functions import compiled

_SEQUENCES: Final = (list, tuple, range)
_ROWS: Final = frozenset(_SEQUENCES)
_NUMBERS: Final = frozenset((bool, int, float, complex))
_FLOATS: Final = frozenset((float,))


def asarray(
    a: Any, dtype: DTypeLike | None = None, order: str | None = None, *, copy: bool | None = None,
    device: PlacementLike | None = None, out_sharding: ShardingLike | None = None,
) -> Array:  # fmt: skip
    """An array of the same values; an array is returned unchanged.

    Args:
      a: an array, a number, or nested sequences of them.
      dtype: the dtype of the result; without it numbers become weakly typed arrays. Numbers in
        texts (``"1.5"``) and in NumPy arrays of objects can be converted only to a named dtype.
      order: ``"C"``, ``"A"`` or ``"K"``, which are equivalent: arrays are row-major.
      copy: ``True`` always creates a new array; otherwise an array is copied only if necessary.
      device, out_sharding: placement of the result.

    Raises:
      TypeError: if a value is not a number.
      OverflowError: if an integer does not fit the dtype.
      ValueError: for ``None``, and for sequences of unequal lengths.

    >>> asarray([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    if order not in (None, "C", "A", "K"):
        raise NotImplementedError(
            f"arrays have no memory order: use None, 'C', 'A' or 'K', got order={order!r}"
        )
    requested = dtype_argument(dtype, "asarray")
    out = _as_array(a, requested)
    if requested is not None and (out.dtype != requested or out.weak_type):
        out = lax.convert_element_type(out, requested)
    if device is not None or out_sharding is not None:
        out = placed(out, device, out_sharding)
    return _copied(out) if copy and out is a else out


def placed(out: Array, device: Any, out_sharding: Any = None) -> Array:
    """The array on a device or with a sharding; unchanged if both are ``None``."""
    where = out_sharding if device is None else device
    return out if where is None else device_put(out, where)


def _copied(x: Array) -> Array:
    return x if isinstance(x, Tracer) else copy_of(x)


def _as_array(a: Any, dtype: Any) -> Array:
    if isinstance(a, Array):
        return a
    if isinstance(a, (np.ndarray, np.generic)):
        return _from_host(a, dtype)
    if isinstance(a, Literal):
        return _number(a.scalar, a.aval)
    if a is None:
        raise ValueError("None is not a valid value for primax.numpy.array")
    if converts_itself(a):
        return _as_array(a.__jax_array__(), dtype)
    if isinstance(a, (bool, int, float, complex)):
        return _scalar(a, dtype)
    if isinstance(a, _SEQUENCES):
        return _from_sequence(a, dtype)
    if isinstance(a, (str, bytes)) and dtype is not None:
        return _from_host(np.asarray(a), dtype)
    if isinstance(a, Dimension):
        value: Array = a.as_value()
        return value
    if hasattr(a, "aval"):
        typeof(a)  # raises for tracers of other libraries
    if hasattr(a, "__array__") or _has_buffer(a):
        return _from_host(np.asarray(a), dtype)
    if is_valid_type(a) and isinstance(typeof(a), ShapedArray):  # its class is registered
        return as_operand(a)
    raise TypeError(f"Value {a!r} with type {type(a)} is not a valid Primax array type.")


def _has_buffer(a: Any) -> bool:
    try:
        memoryview(a).release()
    except TypeError:
        return False
    return True


def _checked(a: Any) -> Any:
    if a.dtype.kind in "OSUMmT":
        raise TypeError(
            f"Value {a!r} with dtype {a.dtype} is not a valid Primax array type. Only arrays of "
            "numeric types are supported."
        )
    return a


def _scalar(a: Any, dtype: Any) -> Array:
    if dtype is not None and type(a) is int and dtypes.issubdtype(dtype, np.integer):
        dtypes.check_python_int(a, dtype)
        return _from_host(np.asarray(a, dtype))
    if type(a) is float and dtype is not None and dtypes.issubdtype(dtype, np.integer):
        return _from_floats(np.asarray(a), dtype)
    aval = typeof(a)
    if type(a) is int and dtype is None:
        dtypes.check_default_int(a)
    return _number(np.asarray(a, aval.dtype if dtype is None else None), aval)


def _from_host(value: Any, dtype: Any = None) -> Array:
    """The array of a NumPy value in a dtype; inside a trace, a constant of the jaxpr."""
    if dtype is not None and value.dtype.kind in "OSU":
        value = _parsed(value, dtype)
    value = _checked(value)
    if dtype is not None and value.dtype != dtype:
        with np.errstate(all="ignore"):
            value = value.astype(dtype)
    out: Array = as_operand(value)
    return out


def _parsed(value: Any, dtype: Any) -> Any:
    """Texts or objects as the numbers that NumPy reads from them."""
    known_to_numpy = dtype.kind != "V" and dtype.isbuiltin == 1
    with np.errstate(all="ignore"):
        out = np.array(value.tolist(), dtype if known_to_numpy else np.float64)
    if out.shape != value.shape and out.size:
        raise ValueError(
            f"an array of objects of shape {value.shape} cannot be converted to {dtype}: its "
            f"elements are sequences, and make an array of shape {out.shape}. Convert it with "
            "asarray(a.tolist(), dtype)"
        )
    return out.reshape(value.shape)


def _number(value: Any, aval: ShapedArray) -> Array:
    """The array of a number with the weak type of ``aval``."""
    return as_result(Literal(np.asarray(value).astype(aval.dtype)[()], aval))


# Sequences


def _from_sequence(a: Any, dtype: Any) -> Array:
    if set(map(type, a)) == _FLOATS:
        # The fastest conversion of Python floats to a buffer.
        return _from_floats(np.frombuffer(typed_array("d", a)), dtype)
    if _only_numbers(a):
        return _from_numbers(a, dtype)
    leaves = list(_leaves(a))
    if any(isinstance(x, (Array, Dimension)) or converts_itself(x) for x in leaves):
        return _from_arrays(a, dtype)
    numpy_dtypes = [np.asarray(x).dtype for x in leaves if isinstance(x, (np.ndarray, np.generic))]
    if not numpy_dtypes:
        empty = np.zeros(np.shape(a), dtypes.default_float())
        return _from_numbers(a, dtype) if leaves else _from_host(empty, dtype)
    if dtype is None and len(numpy_dtypes) < len(leaves):
        # Python numbers among NumPy values keep their weak types.
        pairs = tuple([(typeof(x).dtype, typeof(x).weak_type) for x in leaves])
        dtype, _ = dtypes.lattice_result(pairs)
    if any(d.kind == "V" or d.char == "E" for d in numpy_dtypes):
        # NumPy cannot promote these dtypes.
        joint = dtype or dtypes.lattice_result(tuple([(typeof(x).dtype, False) for x in leaves]))[0]
        return _from_host(_rows_on_host(a, joint), dtype)
    return _from_host(np.array(a), dtype)


def _rows_on_host(a: Any, dtype: Any) -> np.ndarray:
    if isinstance(a, _SEQUENCES):
        return np.stack([_rows_on_host(x, dtype) for x in a])
    return np.asarray(a).astype(dtype)


_MOST_AXES: Final = 64  # of a NumPy array


def _only_numbers(a: Any) -> bool:
    """True if all leaves of nested sequences are Python numbers, tested without a Python loop over
    the leaves.
    """
    level = a
    for _ in range(_MOST_AXES + 1):
        kinds = set(map(type, level))
        if kinds <= _NUMBERS:
            return bool(kinds)
        if not kinds <= _ROWS:
            return False
        level = list(chain.from_iterable(level))
    raise ValueError(
        f"nested sequences can have at most {_MOST_AXES} levels: a sequence is nested deeper, or "
        "contains itself"
    )


def _from_numbers(a: Any, dtype: Any) -> Array:
    value = np.array(a)
    if value.dtype == object:
        return _from_host(np.array(a, dtypes.default_int() if dtype is None else dtype))
    if value.dtype.kind in "iu" and (dtype is None or dtypes.issubdtype(dtype, np.integer)):
        return _from_host(_fitting(value, dtypes.default_int() if dtype is None else dtype))
    return _from_floats(value, dtype) if value.dtype.kind == "f" else _from_host(value, dtype)


def _from_floats(value: np.ndarray, dtype: Any) -> Array:
    if dtype is not None and dtypes.issubdtype(dtype, np.integer):
        value = _fitting(np.trunc(value), dtype)
    return _from_host(value, dtype)


def _fitting(value: np.ndarray, dtype: Any) -> np.ndarray:
    """Integral values converted to an integer dtype, with a range check."""
    info = dtypes.iinfo(dtype)
    if value.size and not (info.min <= value.min() and value.max() <= info.max):
        bad = next(v for v in value.ravel().tolist() if not info.min <= v <= info.max)
        raise OverflowError(f"Python integer {bad:.0f} out of bounds for {np.dtype(dtype).name}")
    return value.astype(dtype)


def _leaves(a: Any) -> Any:
    for x in a:
        if isinstance(x, _SEQUENCES):
            yield from _leaves(x)
        else:
            if x is None:
                raise ValueError("None is not a valid value for primax.numpy.array")
            yield x


def _from_arrays(a: Any, dtype: Any) -> Array:
    """Nested sequences that contain arrays, joined by one executable for each level."""
    leaves = [x.__jax_array__() if converts_itself(x) else x for x in _leaves(a)]
    avals = [typeof(x) for x in leaves]
    if dtype is None:
        dtype, _ = dtypes.lattice_result(tuple([(v.dtype, v.weak_type) for v in avals]))
    if len(leaves) > _MANY and _on_hosts(leaves):
        # Compiling for that many operands takes longer than fetching the values.
        return _from_host(np.array(_fetched(a)), dtype)
    return _stacked_rows(a, dtype)


_MANY: Final = 64


def _on_hosts(leaves: list[Any]) -> bool:
    return not any(
        isinstance(x, Tracer)
        or (isinstance(x, Array) and (x.committed or isinstance(x.dtype, dtypes.ExtendedDType)))
        for x in leaves
    )


def _fetched(a: Any) -> Any:
    if isinstance(a, _SEQUENCES):
        return [_fetched(x) for x in a]
    return np.asarray(a.__jax_array__() if converts_itself(a) else a)


def _stacked_rows(a: Any, dtype: Any) -> Array:
    rows = [_stacked_rows(x, dtype) if _holds_arrays(x) else _row(x, dtype) for x in a]
    shapes = {typeof(x).shape for x in rows}
    if len(shapes) > 1:
        raise ValueError(
            f"the elements of a nested sequence must have one shape, got {sorted(shapes)}"
        )
    return _stacked(*rows, dtype=dtype)


def _holds_arrays(a: Any) -> bool:
    return isinstance(a, _SEQUENCES) and not _only_numbers(a) and len(a) > 0


def _row(x: Any, dtype: Any) -> Any:
    if isinstance(x, _SEQUENCES):
        return _from_sequence(x, dtype)
    return x.__jax_array__() if converts_itself(x) else x


@compiled("dtype", name="array")
def _stacked(*rows, dtype):
    parts = [lax.expand_dims(lax.convert_element_type(x, dtype), (0,)) for x in rows]
    return lax.concatenate(parts, 0)


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: PlacementLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """A new array of the values of an array, a number or nested sequences.

    Args:
      object: an array, a number, or nested sequences of them of equal lengths.
      dtype: the dtype of the result; without it numbers become weakly typed arrays.
      copy: copy the operand even if it is an array.
      order: ``"C"``, ``"A"`` or ``"K"``, which are equivalent: arrays are row-major.
      ndmin: minimum number of axes; missing ones are prepended.
      device, out_sharding: placement of the result.

    Returns:
      An array, which shares no memory with ``object`` if ``copy`` is true.

    Raises:
      TypeError: if a value is not a number.
      OverflowError: if an integer does not fit the dtype.
      ValueError: for ``None``, and for sequences of unequal lengths.

    >>> array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    >>> array([1, 2], dtype=float, ndmin=2)
    Array([[1., 2.]], dtype=float32)
    """
    out = asarray(object, dtype, order, copy=copy or None, device=device, out_sharding=out_sharding)
    missing = ndmin - out.ndim
    return lax.expand_dims(out, tuple(range(missing))) if missing > 0 else out


def copy(a: Any, order: str | None = None) -> Array:
    """A new array with the values, the dtype and the weak type of another.

    Args:
      a: an array or a number. Sequences are not accepted: use :func:`array`.
      order: ``None``, ``"C"``, ``"A"`` or ``"K"``, which are equivalent.

    Returns:
      An array of the shape of ``a``.

    Raises:
      TypeError: if ``a`` is not an array or a number.
      NotImplementedError: for another ``order``.

    Arrays are immutable, so that a copy is needed only before donation (``donate_argnums``) or for
    a NumPy array that will change.

    >>> copy(np.array([1, 2], np.int32))
    Array([1, 2], dtype=int32)
    """
    check_arrays("copy", a)
    return array(a, copy=True, order=order)


def astype(
    x: Any, dtype: DTypeLike, /, *, copy: bool = False, device: PlacementLike | None = None
) -> Array:
    """The elements converted to another dtype; the array itself if it already has the dtype.

    Floats are converted to integers by truncation, clamped to the range of the dtype; NaN becomes
    0. Complex numbers lose their imaginary part.

    Args:
      x: an array or a number.
      dtype: the dtype of the result; the default float for ``None``.
      copy: create a new array in any case.
      device: placement of the result.

    Returns:
      An array of the shape of ``x``, not weakly typed.

    Raises:
      TypeError: if ``x`` is not an array or a number, or the dtype is unknown.

    Derivatives are converted to the dtype of ``x``; they are 0 if either dtype is discrete.

    >>> astype(np.array([1.7, -1.7, np.nan]), int)
    Array([ 1, -1,  0], dtype=int32)
    """
    check_arrays("astype", x)
    requested = dtype_argument(float if dtype is None else dtype, "astype")
    aval = argument_type(x)
    if aval.dtype == requested and not aval.weak_type and isinstance(x, Array):
        out = _copied(x) if copy else x
    else:
        out = lax.convert_element_type(converted(x), requested)
    return placed(out, device)
