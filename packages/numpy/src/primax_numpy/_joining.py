"""Concatenation, stacking and repetition of arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, FastPath, Tracer, cast, dtypes, one_call
from primax_core.extend.dimensions import Dimension
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike

from ._checks import check_arrays, check_out, dtype_argument, not_integers, one_axis
from ._creation import asarray
from ._functions import compiled
from ._shapes import atleast_1d, atleast_2d, atleast_3d, ravel
from ._taking import rows_at


def _alike(arrays: Sequence[Any], dtype: Any) -> list[Any]:
    """Operands converted to a dtype: the requested or the promoted one."""
    if dtype is not None:
        return [lax.convert_element_type(x, dtype) for x in arrays]
    avals = [typeof(x) for x in arrays]
    if all(a.dtype == avals[0].dtype and isinstance(a.dtype, dtypes.ExtendedDType) for a in avals):
        return list(arrays)
    joint, weak = dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in avals]))
    return [cast(x, a, joint, weak) for x, a in zip(arrays, avals)]


def concatenate(
    arrays: ArrayLike | Sequence[Any], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Arrays joined along an axis.

    Args:
      arrays: a sequence of arrays, or an array whose rows are joined.
      axis: the axis, the first by default; ``None`` flattens the arrays first.
      dtype: the dtype of the result, by default the promoted one.

    Returns:
      An array whose size along the axis is the sum of those of the arrays.

    Raises:
      ValueError: if there are no arrays, or an array has no such axis.
      TypeError: if the ranks or the sizes of other axes differ.

    >>> concatenate([np.array([1, 2]), np.array([3])]).tolist()
    [1, 2, 3]
    >>> concatenate([np.zeros((2, 1)), np.ones((2, 2))], axis=1).tolist()
    [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    if axis is None:
        return concatenate([ravel(a) for a in arrays], 0, dtype)
    return _joined(_concatenation, arrays, axis, dtype)


def concat(arrays: ArrayLike | Sequence[Any], /, *, axis: int | None = 0) -> Array:
    """Arrays joined along an axis; :func:`concatenate` under the name in the array API standard.

    Args:
      arrays: a sequence of arrays, or an array whose rows are joined.
      axis: the axis, the first by default; ``None`` flattens the arrays first.

    Returns:
      An array whose size along the axis is the sum of those of the arrays.

    Raises:
      ValueError: if there are no arrays, or an array has no such axis.
      TypeError: if the ranks or the sizes of other axes differ.

    >>> concat([np.array([1, 2]), np.array([3])]).tolist()
    [1, 2, 3]
    """
    return concatenate(arrays, axis)


def stack(
    arrays: ArrayLike | Sequence[Any],
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Arrays of one shape joined along a new axis.

    Args:
      arrays: a sequence of arrays of one shape, or an array whose rows are stacked.
      axis: the position of the new axis in the result, the first by default.
      out: unsupported.
      dtype: the dtype of the result, by default the promoted one.

    Returns:
      An array with one axis more than the arrays.

    Raises:
      ValueError: if there are no arrays, or their shapes differ.

    The inverse is :func:`unstack`.

    >>> stack([np.array([1, 2]), np.array([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    >>> stack([np.array([1, 2]), np.array([3, 4])], axis=-1).tolist()
    [[1, 3], [2, 4]]
    """
    check_out("stack", out)
    return _joined(_stacking, arrays, axis, dtype)


def _joined(path: FastPath, arrays: Any, axis: int, dtype: Any) -> Array:
    if type(arrays) in (list, tuple) and type(axis) is int and dtype is None:
        out: Array | None = path.lookup(axis, *arrays)
        if out is not None:
            return out
    name = path.function.__name__
    parts, axis = _parts(name, arrays), operator.index(axis)
    return path.call(axis, parts, axis=axis, dtype=dtype_argument(dtype, name))


def _parts(name: str, arrays: Any) -> tuple[Any, ...]:
    """The arrays to join: those of a sequence, or the rows of an array."""
    if isinstance(arrays, (Array, np.ndarray)):
        parts = tuple([arrays[i] for i in range(arrays.shape[0])])
    elif isinstance(arrays, (list, tuple)) or hasattr(arrays, "__iter__"):
        parts = tuple(arrays)
    else:
        raise TypeError(f"{name} requires a sequence of arrays, got {type(arrays)}.")
    check_arrays(name, *parts)
    return parts


_JOINING: Final = ("axis", "dtype")


@compiled(*_JOINING)
def _concatenate(*arrays, axis, dtype):
    if not arrays:
        raise ValueError("Need at least one array to concatenate.")
    parts = _alike(arrays, dtype)
    if not typeof(parts[0]).ndim:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    return lax.concatenate(parts, one_axis(axis, typeof(parts[0]).ndim))


@compiled(*_JOINING)
def _stack(*arrays, axis, dtype):
    if not arrays:
        raise ValueError("Need at least one array to stack.")
    shapes = {typeof(x).shape for x in arrays}
    if len(shapes) > 1:
        raise ValueError(f"All input arrays must have the same shape, got {sorted(shapes)}.")
    at = one_axis(axis, typeof(arrays[0]).ndim + 1)
    rows = [lax.expand_dims(x, (at,)) for x in _alike(arrays, dtype)]
    return lax.concatenate(rows, at)


_concatenation: Final = FastPath(_concatenate)
_stacking: Final = FastPath(_stack)


def hstack(tup: ArrayLike | Sequence[Any], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the second axis; vectors and numbers along the first.

    Args:
      tup: a sequence of arrays or numbers, or an array whose rows are joined.
      dtype: the dtype of the result, by default the promoted one.

    Returns:
      An array of the rank of the arrays, at least 1.

    Raises:
      ValueError: if there are no arrays.
      TypeError: if the ranks or the sizes of other axes differ.

    >>> hstack([np.array([1, 2]), 3]).tolist()
    [1, 2, 3]
    >>> hstack([np.array([[1], [2]]), np.array([[3], [4]])]).tolist()
    [[1, 3], [2, 4]]
    """
    return _side_by_side("hstack", tup, dtype, atleast_1d, 1)


def vstack(tup: ArrayLike | Sequence[Any], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the first axis; vectors are rows.

    Args:
      tup: a sequence of arrays or numbers, or an array whose rows are joined.
      dtype: the dtype of the result, by default the promoted one.

    Returns:
      An array of the rank of the arrays, at least 2.

    Raises:
      ValueError: if there are no arrays.
      TypeError: if the ranks or the sizes of other axes differ.

    >>> vstack([np.array([1, 2]), np.array([[3, 4], [5, 6]])]).tolist()
    [[1, 2], [3, 4], [5, 6]]
    """
    return _side_by_side("vstack", tup, dtype, atleast_2d, 0)


def dstack(tup: ArrayLike | Sequence[Any], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the third axis.

    Vectors of size ``n`` are first expanded to ``(1, n, 1)``, matrices to ``(m, n, 1)``.

    Args:
      tup: a sequence of arrays or numbers, or an array whose rows are joined.
      dtype: the dtype of the result, by default the promoted one.

    Returns:
      An array of the rank of the arrays, at least 3.

    Raises:
      ValueError: if there are no arrays.
      TypeError: if the ranks or the sizes of other axes differ.

    >>> dstack([np.array([1, 2]), np.array([3, 4])]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return _side_by_side("dstack", tup, dtype, atleast_3d, 2)


def column_stack(tup: ArrayLike | Sequence[Any]) -> Array:
    """Arrays joined along the second axis; vectors are columns.

    Args:
      tup: a sequence of arrays or numbers, or an array whose rows become columns.

    Returns:
      An array of the rank of the arrays, at least 2.

    Raises:
      ValueError: if there are no arrays.
      TypeError: if the ranks or the sizes of other axes differ.

    See :func:`stack` with ``axis=1`` for vectors only.

    >>> column_stack([np.array([1, 2]), np.array([[3, 4], [5, 6]])]).tolist()
    [[1, 3, 4], [2, 5, 6]]
    """
    return _side_by_side("column_stack", tup, None, None, 1)


def _side_by_side(
    name: str, tup: Any, dtype: Any, raised: Callable[..., Any] | None, axis: int
) -> Array:
    parts = _parts(name, tup)
    if not parts:
        raise ValueError(f"{name}: Need at least one array to concatenate.")
    requested = dtype_argument(dtype, name)
    return _stacked(*parts, raised=raised, axis=axis, dtype=requested)


@compiled("raised", "axis", "dtype")
def _stacked(*parts, raised, axis, dtype):
    if raised is None:
        raised = _as_column
    rows = [raised(x) for x in _alike(parts, dtype)]
    return lax.concatenate(rows, min(axis, typeof(rows[0]).ndim - 1))


def _as_column(x):
    x = asarray(x)
    return lax.reshape(x, (x.size, 1)) if x.ndim < 2 else x


@one_call("axis")
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """An array with values appended along an axis.

    Args:
      arr: an array or a number.
      values: an array of the rank of ``arr``, of equal sizes except along the axis. Any shape
        without ``axis``.
      axis: the axis; by default both are flattened.

    Returns:
      A new array of the promoted dtype.

    Raises:
      ValueError: if an array has no such axis.
      TypeError: if the ranks or the sizes of other axes differ.

    Appending in a loop compiles for each size: collect a list and call :func:`concatenate`
    instead.

    >>> append(np.array([1, 2]), np.array([[3], [4]])).tolist()
    [1, 2, 3, 4]
    """
    check_arrays("append", arr, values)
    return concatenate([arr, values], axis) if axis is not None else _append(arr, values)


@compiled()
def _append(arr, values):
    return lax.concatenate([ravel(x) for x in _alike([arr, values], None)], 0)


def block(arrays: ArrayLike | Sequence[Any]) -> Array:
    """Arrays assembled from nested lists of blocks.

    The innermost lists are joined along the last axis, the enclosing lists along the second to
    last, and so on. Leading axes are added to arrays of lower rank.

    Args:
      arrays: an array or a number, or lists of them, nested to equal depths.

    Returns:
      An array of the promoted dtype.

    Raises:
      ValueError: for empty lists, tuples, and lists nested unevenly.
      TypeError: if the sizes of blocks do not match.

    >>> a, b = np.eye(2, dtype=np.int32), np.full((2, 1), 7, np.int32)
    >>> block([[a, b], [b.T, 0]])
    Array([[1, 0, 7],
           [0, 1, 7],
           [7, 7, 0]], dtype=int32)
    """
    return _block(arrays, depth=_depth(arrays))


def _depth(arrays: Any) -> int:
    if isinstance(arrays, tuple):
        raise ValueError(f"block: takes lists, not tuples: got {arrays!r}")
    if not isinstance(arrays, list):
        check_arrays("block", arrays)
        return 0
    if not arrays:
        raise ValueError("block: does not take empty lists")
    depths = {_depth(a) for a in arrays}
    if len(depths) > 1:
        raise ValueError(f"block: Mismatched list depths: {sorted(depths)} in {arrays!r}")
    return 1 + depths.pop()


@compiled("depth")
def _block(arrays, *, depth):
    leaves: list[Any] = []
    _collect(arrays, leaves)
    rank = max(depth, *[typeof(x).ndim for x in leaves])
    alike = iter(_alike(leaves, None))
    return _laid(arrays, depth, rank, alike)


def _collect(arrays: Any, leaves: list[Any]) -> None:
    if isinstance(arrays, list):
        for a in arrays:
            _collect(a, leaves)
    else:
        leaves.append(arrays)


def _laid(arrays, depth: int, rank: int, leaves):
    if not isinstance(arrays, list):
        x = asarray(next(leaves))
        return lax.expand_dims(x, tuple(range(rank - x.ndim)))
    return lax.concatenate([_laid(a, depth - 1, rank, leaves) for a in arrays], rank - depth)


# Repeating


def tile(A: ArrayLike, reps: ShapeLike) -> Array:
    """An array repeated along its axes.

    Args:
      A: an array or a number.
      reps: the number of repetitions along each axis, aligned with the last axes. Leading axes are
        added to the array if there are more. They must be concrete.

    Returns:
      An array whose sizes are the products of those of ``A`` and ``reps``.

    Raises:
      TypeError: if a number of repetitions is not a concrete integer.
      ValueError: if a number of repetitions is negative.

    >>> tile(np.array([1, 2]), 2).tolist()
    [1, 2, 1, 2]
    >>> tile(np.array([1, 2]), (2, 1)).tolist()
    [[1, 2], [1, 2]]
    """
    check_arrays("tile", A)
    times = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    try:
        counts = tuple([operator.index(r) for r in times])
    except TypeError:
        message = f"tile: reps must be concrete integers, got {reps!r}"
        raise not_integers(message, *times) from None
    if min(counts, default=0) < 0:
        raise ValueError(f"tile: reps must not be negative, got {counts}")
    return _tile(A, reps=counts)


@compiled("reps")
def _tile(a, *, reps):
    x = lax.expand_dims(a, tuple(range(max(len(reps) - typeof(a).ndim, 0))))
    rank = typeof(x).ndim
    full = (1,) * (rank - len(reps)) + reps
    return lax.tile(x, full) if rank else x


def repeat(
    a: ArrayLike,
    repeats: ArrayLike | Dimension,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Elements, or rows along an axis, repeated consecutively.

    Args:
      a: an array or a number.
      repeats: the number of repetitions, one for all elements or one for each.
      axis: the axis; ``None`` flattens the array.
      total_repeat_length: the size of the result along the axis: the result is truncated, or
        padded with the last element. Required if ``repeats`` is traced.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      ConcretizationTypeError: if ``repeats`` is traced and ``total_repeat_length`` is ``None``.
      ValueError: if ``repeats`` has another length, or is negative.

    >>> repeat(np.array([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    >>> repeat(np.array([[1, 2], [3, 4]]), np.array([1, 2]), axis=0).tolist()
    [[1, 2], [3, 4], [3, 4]]
    """
    if out_sharding is not None:
        return with_out_sharding(
            repeat, out_sharding, a, repeats, axis, total_repeat_length=total_repeat_length
        )
    check_arrays("repeat", a, repeats)
    kind = typeof(repeats).dtype
    if kind != np.bool_ and not dtypes.issubdtype(kind, np.integer):
        raise TypeError(f"repeat: repeats must be integers, got {repeats!r}")
    x = asarray(a) if axis is not None and typeof(a).ndim else ravel(a)
    at = one_axis(0 if axis is None else axis, x.ndim)
    n = x.shape[at]
    if not isinstance(repeats, Tracer):
        out = _repeated(x, np.asarray(repeats), at, total_repeat_length)
    elif total_repeat_length is None:
        raise ConcretizationTypeError(
            repeats,
            "repeat: the size of the result must be static. Pass "
            "total_repeat_length= for the sum of repeats, or repeats that are not traced.",
        )
    else:
        _check_length(typeof(repeats).shape, n)
        out = _repeat_traced(x, repeats, axis=at, total=int(total_repeat_length))
    return out


def _check_length(shape: tuple[int, ...], n: int) -> None:
    if len(shape) > 1 or shape not in ((), (1,), (n,)):
        raise ValueError(
            f"repeat: repeats of shape {shape} do not match an axis of size {n}: pass one number "
            f"or {n} of them"
        )


def _repeated(x: Array, repeats: np.ndarray, axis: int, total: int | None) -> Array:
    n = x.shape[axis]
    _check_length(repeats.shape, n)
    if repeats.size and repeats.min() < 0:
        raise ValueError(f"repeat: repeats may not be negative, got {repeats}")
    if repeats.size == 1 and total is None:
        return _repeat(x, times=int(repeats.item()), axis=axis)
    if not n:
        return x
    rows = np.repeat(np.arange(n, dtype=np.int32), repeats.reshape(-1))
    if total is not None:
        missing = int(total) - len(rows)
        rows = np.append(rows[: int(total)], np.full(max(missing, 0), n - 1, np.int32))
    return rows_at(x, rows, axis=axis)


@compiled("times", "axis")
def _repeat(x, *, times, axis):
    shape = typeof(x).shape
    spread = (*shape[: axis + 1], times, *shape[axis + 1 :])
    operand_axes = tuple([i for i in range(len(spread)) if i != axis + 1])
    out = lax.broadcast_in_dim(x, spread, operand_axes)
    return lax.reshape(out, (*shape[:axis], shape[axis] * times, *shape[axis + 1 :]))


@compiled("axis", "total", name="repeat")
def _repeat_traced(x, repeats, *, axis, total):
    n = typeof(x).shape[axis]
    if not n:
        return x
    index = np.dtype(np.int32)
    times = lax.broadcast_in_dim(
        lax.reshape(lax.convert_element_type(repeats, index), (typeof(repeats).size,)), (n,), (0,)
    )
    # The source row of a position is the number of rows that end at or before it.
    ends = lax.slice_in_dim(lax.cumsum(times), 0, n - 1)
    starts = lax.full((total,), 0, index).at[ends].add(np.int32(1), indices_are_sorted=True)
    return rows_at(x, lax.cumsum(starts), axis=axis)
