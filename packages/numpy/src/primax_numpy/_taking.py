"""Gathering of elements and rows along an axis, and the corresponding updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, FastPath, Tracer, cast, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays, check_out, one_axis
from ._creation import asarray
from ._functions import compiled
from ._reading import as_position, counted_from_start, fill_number, mode_of
from ._shapes import ravel

_IN_BOUNDS: Final = lax.GatherScatterMode.PROMISE_IN_BOUNDS
_FILL: Final = lax.GatherScatterMode.FILL_OR_DROP
_CLIP: Final = lax.GatherScatterMode.CLIP


@compiled("axis", name="take")
def rows_at(a, index, *, axis):
    """Rows at indices in bounds."""
    return _rows(a, as_position(index), axis, mode=_IN_BOUNDS)


def _rows(a, index, axis: int, **hints: Any):
    shape, n = typeof(a).shape, typeof(index).ndim
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(*range(axis), *range(axis + n, len(shape) - 1 + n)),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    sizes = (*shape[:axis], min(1, shape[axis]), *shape[axis + 1 :])
    return lax.gather(a, lax.expand_dims(index, (n,)), numbers, sizes, **hints)


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Elements or rows at indices along an axis.

    Args:
      a: an array or a number.
      indices: integers of any shape, which replaces the axis in the shape of the result. Negative
        ones count from the end.
      axis: the axis; ``None`` flattens the array.
      out: unsupported.
      mode: the treatment of indices out of bounds: ``"fill"`` (the default) returns
        ``fill_value``, ``"clip"`` clamps (negative indices to 0), ``"wrap"`` takes indices modulo
        the size, ``"promise_in_bounds"`` is undefined.
      unique_indices, indices_are_sorted: declarations about the indices that permit faster code.
      fill_value: by default NaN, the smallest signed or largest unsigned integer, or true.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      IndexError: if the axis is empty and ``indices`` is not.

    >>> take(np.array([10, 20, 30]), np.array([2, 0])).tolist()
    [30, 10]
    >>> take(np.array([1.0, 2.0]), np.array([1, 5])).tolist()
    [2.0, nan]
    """
    plain = fill_value is out is None and unique_indices is indices_are_sorted is False
    key = (type(axis), axis, mode) if plain else None
    if key is not None:
        fast: Array | None = _taking.lookup(key, a, indices)
        if fast is not None:
            return fast
    check_arrays("take", a, indices)
    check_out("take", out)
    if mode == "raise":
        raise NotImplementedError(
            "take: mode='raise' is not supported, because compiled code cannot raise: use "
            "'fill', 'clip' or 'wrap'"
        )
    if mode not in (None, "fill", "clip", "wrap", "promise_in_bounds"):
        raise ValueError(
            f"Invalid mode {mode!r} for take: use 'fill', 'clip', 'wrap' or 'promise_in_bounds'"
        )
    kind = typeof(indices).dtype
    if kind != np.bool_ and not dtypes.issubdtype(kind, np.integer):
        raise ValueError(f"take: indices must have an integer type, got {kind}")
    own = typeof(a)
    at = None if axis is None else one_axis(axis, own.ndim)
    if not (own.size if at is None else own.shape[at]) and typeof(indices).size:
        raise IndexError("Cannot do a non-empty take() from an empty axis.")
    static = {
        "axis": at,
        "mode": mode or "fill",
        "unique": bool(unique_indices),
        "in_order": bool(indices_are_sorted),
        "fill": fill_number(fill_value),
    }
    if key is None:
        return _take(a, indices, **static)
    return _taking.call(key, (a, indices), **static)


@compiled("axis", "mode", "unique", "in_order", "fill")
def _take(a, indices, *, axis, mode, unique, in_order, fill):
    if axis is None:
        a, axis = lax.reshape(a, (typeof(a).size,)), 0
    shape = typeof(a).shape
    if not typeof(indices).size or 0 in shape:
        sizes = (*shape[:axis], *typeof(indices).shape, *shape[axis + 1 :])
        return lax.full_like(a, 0, shape=sizes)
    if mode == "wrap":
        index = modulo(_numbers(indices), shape[axis])
    elif mode == "clip":
        index = positions_of(indices)
    else:
        index = counted_from_start(positions_of(indices), shape[axis])
    chosen = {"fill": _FILL, "clip": _CLIP}.get(mode, _IN_BOUNDS)
    return _rows(
        a, index, axis, mode=chosen, unique_indices=unique, indices_are_sorted=in_order,
        fill_value=fill,
    )  # fmt: skip


_taking: Final = FastPath(_take)


def _numbers(indices):
    bools = typeof(indices).dtype == np.bool_
    return lax.convert_element_type(indices, np.dtype(np.int32)) if bools else asarray(indices)


def positions_of(indices):
    """Indices as integers; unsigned ones that exceed the index dtype become its maximum."""
    dtype = typeof(indices).dtype
    if dtype == np.bool_:
        return _numbers(indices)
    if dtypes.issubdtype(dtype, np.unsignedinteger) and dtype.itemsize >= 4:
        signed = np.dtype(np.int64 if dtype.itemsize == 8 else np.int32)
        most = lax.full_like(indices, np.iinfo(signed).max)
        return lax.convert_element_type(lax.min(indices, most), signed)
    return as_position(indices)


def modulo(index, size: int):
    """Indices modulo a size."""
    aval = typeof(index)
    if dtypes.issubdtype(aval.dtype, np.unsignedinteger) and aval.dtype.itemsize >= 4:
        return as_position(lax.rem(index, lax.full_like(index, size)))
    index = as_position(index)
    n = lax.full_like(index, size)
    r = lax.rem(index, n)
    return lax.select(lax.lt(r, lax.full_like(r, 0)), lax.add(r, n), r)


# Along an axis, batched over the others


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool = True,
) -> Array:
    """Elements at indices along an axis, with separate indices for each row.

    Args:
      arr: an array with at least one axis.
      indices: integers of the rank of ``arr``, with the same sizes or 1 except along ``axis``.
      axis: the axis, by default the last; ``None`` flattens both.
      mode: the treatment of indices out of bounds: ``"fill"`` (the default) returns
        ``fill_value``, ``"clip"`` clamps, ``"promise_in_bounds"`` is undefined. ``"one_hot"``
        returns 0 for them.
      fill_value: by default NaN, the smallest signed or largest unsigned integer, or true.
      wrap_negative_indices: negative indices count from the end.

    Returns:
      An array of the dtype of ``arr``, of the size of ``indices`` along the axis.

    >>> x = np.array([[3, 1], [2, 4]])
    >>> take_along_axis(x, np.argsort(x, axis=1), axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    if isinstance(mode, str) and mode == "one_hot":
        mode, fill_value = "fill", 0
    plain = fill_value is None and (mode is None or type(mode) is str)
    key = (type(axis), axis, mode, bool(wrap_negative_indices)) if plain else None
    if key is not None:
        fast: Array | None = _along.lookup(key, arr, indices)
        if fast is not None:
            return fast
    check_arrays("take_along_axis", arr, indices)
    kind = typeof(indices).dtype
    if not dtypes.issubdtype(kind, np.integer):
        raise TypeError(f"take_along_axis indices must be of integer type, got {kind}")
    x, index, at = _aligned("take_along_axis", arr, indices, axis)
    static = {
        "axis": at,
        "mode": mode_of(mode) or _FILL,
        "fill": fill_number(fill_value),
        "wrap": bool(wrap_negative_indices),
    }
    if key is None or axis is None:
        return _take_along_axis(x, index, **static)
    return _along.call(key, (x, index), **static)


def _aligned(name: str, arr: Any, indices: Any, axis: Any) -> tuple[Any, Any, int]:
    """Array, indices and nonnegative axis, after checking that the other axes broadcast."""
    if axis is None:
        if typeof(indices).ndim != 1:
            raise ValueError(
                f"{name}: with axis=None, indices must have one axis, got shape "
                f"{typeof(indices).shape}"
            )
        return ravel(arr), asarray(indices), 0
    x, index = asarray(arr), asarray(indices)
    if x.ndim != index.ndim:
        raise ValueError(
            f"{name}: indices and arr must have the same number of dimensions; got shapes "
            f"{index.shape} and {x.shape}"
        )
    at = one_axis(axis, x.ndim)
    for shape in (x.shape, index.shape):
        lax.broadcast_shapes((*shape[:at], *shape[at + 1 :]), (*x.shape[:at], *x.shape[at + 1 :]))
    lax.broadcast_shapes(
        (*x.shape[:at], *x.shape[at + 1 :]), (*index.shape[:at], *index.shape[at + 1 :])
    )
    return x, index, at


@compiled("axis", "mode", "fill", "wrap")
def _take_along_axis(x, index, *, axis, mode, fill, wrap):
    own, index_shape = typeof(x).shape, typeof(index).shape
    others = [i for i in range(len(own)) if i != axis]
    outer = {
        i: max(own[i], index_shape[i]) if 0 not in (own[i], index_shape[i]) else 0 for i in others
    }
    result = tuple([index_shape[i] if i == axis else outer[i] for i in range(len(own))])
    if 0 in result or not own[axis]:
        if not own[axis] and 0 not in result:
            raise IndexError(f"take_along_axis: axis {axis} of shape {own} is empty")
        return lax.full_like(x, 0, shape=result)
    index = counted_from_start(index, own[axis]) if wrap else as_position(index)
    # Axes of size 1 in one of the two become windows or are squeezed; the others are batch axes.
    windows = [i for i in others if index_shape[i] == 1 and own[i] != 1]
    single = [i for i in others if own[i] == 1]
    steps = [i for i in others if i not in windows and i not in single]
    index = lax.squeeze(index, tuple(windows))
    left = [i for i in range(len(own)) if i not in windows]
    x = lax.squeeze(x, tuple(single))
    operand_axes = [i for i in range(len(own)) if i not in single]
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(windows),
        collapsed_slice_dims=(operand_axes.index(axis),),
        start_index_map=(operand_axes.index(axis),),
        operand_batching_dims=tuple([operand_axes.index(i) for i in steps]),
        start_indices_batching_dims=tuple([left.index(i) for i in steps]),
    )
    sizes = [own[i] if i in windows else 1 for i in operand_axes]
    index = lax.expand_dims(index, (len(left),))
    return lax.gather(x, index, numbers, sizes, mode=mode, fill_value=fill)


_along: Final = FastPath(_take_along_axis)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """A copy of an array with elements set at indices along an axis, separately for each row.

    Args:
      arr: an array with at least one axis.
      indices: integers of the rank of ``arr``, with the same sizes or 1 except along ``axis``.
      values: values that broadcast to the shape of the indices.
      axis: the axis; ``None`` flattens both.
      inplace: must be ``False``: arrays are immutable.
      mode: ``"clip"`` clamps indices out of bounds; otherwise they are dropped.

    Returns:
      An array of the shape and dtype of ``arr``.

    Raises:
      ValueError: if ``inplace`` is true, which is the default.

    >>> x, places = np.array([[3, 1], [2, 4]]), np.array([[0], [1]])
    >>> put_along_axis(x, places, 9, axis=1, inplace=False).tolist()
    [[9, 1], [2, 9]]
    """
    _check_inplace("put_along_axis", inplace)
    check_arrays("put_along_axis", arr, indices, values)
    kind = typeof(indices).dtype
    if not dtypes.issubdtype(kind, np.integer):
        raise TypeError(f"put_along_axis indices must be of integer type, got {kind}")
    x, index, at = _aligned("put_along_axis", arr, indices, axis)
    out = _put_along_axis(x, index, values, axis=at, mode=mode_of(mode))
    return out if axis is not None else lax.reshape(out, typeof(arr).shape)


def _check_inplace(name: str, inplace: Any) -> None:
    if inplace:
        raise ValueError(
            f"{name}: arrays are immutable: pass inplace=False and use the array it returns"
        )


@compiled("axis", "mode")
def _put_along_axis(x, index, values, *, axis, mode):
    shape = typeof(x).shape
    index_shape = typeof(index).shape
    full = tuple([index_shape[i] if i == axis else shape[i] for i in range(len(shape))])
    index = lax.broadcast_in_dim(index, full, tuple(range(len(shape))))
    places = [
        index if i == axis else lax.broadcasted_iota(np.int32, full, i) for i in range(len(shape))
    ]
    return x.at[tuple(places)].set(values, mode=mode)


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """A copy of an array with elements set at flat indices.

    Args:
      a: an array or a number.
      ind: integers, indices in the flattened array.
      v: values, repeated cyclically as necessary.
      mode: the treatment of indices out of bounds: ``"wrap"`` takes them modulo the size,
        ``"clip"`` clamps them, negative ones to 0. By default they are clamped, and negative
        indices count from the end.
      inplace: must be ``False``: arrays are immutable.

    Returns:
      An array of the shape and dtype of ``a``.

    Raises:
      ValueError: if ``inplace`` is true, which is the default.

    >>> put(np.array([1, 2, 3]), np.array([0, -1]), 9, inplace=False).tolist()
    [9, 2, 9]
    """
    _check_inplace("put", inplace)
    check_arrays("put", a, ind, v)
    if mode == "raise":
        raise NotImplementedError(
            "put: mode='raise' is not supported, because compiled code cannot raise"
        )
    if mode not in (None, "wrap", "clip"):
        raise ValueError(f"put: mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    kind = typeof(ind).dtype
    if not dtypes.issubdtype(kind, np.integer):
        raise TypeError(f"put: ind must have an integer type, got {kind}")
    if not typeof(v).size or not typeof(ind).size or not typeof(a).size:
        return asarray(a)
    return _put(a, ind, v, mode=mode)


@compiled("mode")
def _put(a, ind, v, *, mode):
    size = typeof(a).size
    flat = lax.reshape(ind, (typeof(ind).size,))
    if mode == "wrap":
        index = modulo(flat, size)
    elif mode == "clip":
        index = positions_of(flat)
    else:
        index = counted_from_start(positions_of(flat), size)
    # Clamped here, because the scatter would drop them.
    low, high = lax.full_like(index, 0, shape=()), lax.full_like(index, size - 1, shape=())
    index = lax.clamp(low, index, high)
    times = -(-index.shape[0] // typeof(v).size)
    values = lax.tile(lax.reshape(v, (typeof(v).size,)), (times,))
    line = lax.reshape(a, (size,))
    changed = line.at[index].set(lax.slice_in_dim(values, 0, index.shape[0]))
    return lax.reshape(changed, typeof(a).shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """A copy of an array with consecutive values set where a mask is true.

    Args:
      arr: an array or a number.
      mask: an array of the size of ``arr``.
      vals: values, repeated cyclically as necessary.
      inplace: must be ``False``: arrays are immutable.

    Returns:
      An array of the shape and dtype of ``arr``.

    Raises:
      ValueError: if ``inplace`` is true, which is the default.

    >>> x = np.array([1, 2, 3, 4])
    >>> place(x, x > 2, np.array([8, 9]), inplace=False).tolist()
    [1, 2, 8, 9]
    """
    _check_inplace("place", inplace)
    check_arrays("place", arr, mask, vals)
    if typeof(arr).size != typeof(mask).size:
        raise ValueError(
            "place: arr and mask must be the same size, got shapes "
            f"{typeof(arr).shape} and {typeof(mask).shape}"
        )
    if not typeof(vals).size:
        raise ValueError("Cannot place values from an empty array")
    return _place(arr, mask, vals)


@compiled()
def _place(arr, mask, vals):
    own, vals_aval = typeof(arr), typeof(vals)
    flags = lax.reshape(truth(mask), own.shape)
    line = lax.reshape(flags, (own.size,))
    number = lax.cumsum(lax.convert_element_type(line, np.dtype(np.int32))) - np.int32(1)
    index = lax.reshape(modulo(number, vals_aval.size), own.shape)
    # Values are cast to the dtype of the array, not promoted.
    values = cast(vals, vals_aval, own.dtype, own.weak_type)
    return lax.select(flags, _rows(lax.reshape(values, (vals_aval.size,)), index, 0), asarray(arr))


def truth(x):
    """True where elements are nonzero."""
    if typeof(x).dtype == np.bool_:
        return asarray(x)
    return lax.ne(x, lax.full_like(x, 0))


def choose(
    a: ArrayLike | Sequence[Any],
    choices: ArrayLike | Sequence[Any],
    out: None = None,
    mode: str = "raise",
) -> Array:
    """Elements selected from several arrays by an array of choices.

    Args:
      a: the index of the choice for each element, an integer array.
      choices: a sequence of arrays, or an array of rows; they broadcast together and with ``a``.
      out: unsupported.
      mode: the treatment of invalid choices: ``"raise"`` an error (``a`` must be concrete),
        ``"wrap"`` takes them modulo the number of arrays, ``"clip"`` clamps them.

    Returns:
      An array of the common shape and of the promoted dtype of the choices.

    >>> choose(np.array([1, 0]), [np.array([1, 2]), np.array([10, 20])]).tolist()
    [10, 2]
    """
    check_out("choose", out)
    parts = tuple(choices) if isinstance(choices, (list, tuple)) else _rows_of(choices)
    check_arrays("choose", a, *parts)
    if not dtypes.issubdtype(typeof(a).dtype, np.integer):
        raise ValueError(f"choose: `a` array must be integer typed, got {typeof(a).dtype}")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    if mode == "raise":
        check_range("choose", a, len(parts), "choices")
    if not parts:
        raise ValueError("choose: there are no arrays to choose from")
    return _choose(a, *parts, mode=mode)


def _rows_of(choices: Any) -> tuple[Any, ...]:
    check_arrays("choose", choices)
    if not typeof(choices).ndim:
        raise ValueError("choose: choices must be several arrays, got one number")
    return tuple([choices[i] for i in range(typeof(choices).shape[0])])


def check_range(name: str, index: Any, size: int, what: str) -> None:
    """Check that indices are concrete and in bounds."""
    if isinstance(index, Tracer):
        raise ConcretizationTypeError(
            index,
            f"{name}: mode='raise' needs concrete indices, because compiled code cannot raise: "
            "pass mode='clip' or mode='wrap'.",
        )
    known = np.asarray(index)
    if known.size and not (0 <= known.min() and known.max() < size):
        raise ValueError(
            f"{name}: invalid entry: numbers from {known.min()} to {known.max()} for {size} "
            f"{what}; mode='clip' or mode='wrap' allow them"
        )


@compiled("mode")
def _choose(a, *parts, mode):
    avals = [typeof(p) for p in parts]
    dtype, _ = dtypes.lattice_result(tuple([(p.dtype, p.weak_type) for p in avals]))
    shape = lax.broadcast_shapes(typeof(a).shape, *[p.shape for p in avals])

    def spread(x):
        n = typeof(x).ndim
        return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - n, len(shape))))

    count = len(parts)
    index = modulo(a, count) if mode == "wrap" else positions_of(a)
    low, high = (lax.full_like(index, i, shape=()) for i in (0, count - 1))
    index = lax.clamp(low, index, high)
    rows = [spread(lax.convert_element_type(p, dtype)) for p in parts]
    if count == 1:
        return rows[0]
    return lax.select_n(spread(lax.convert_element_type(index, np.dtype(np.int32))), *rows)
