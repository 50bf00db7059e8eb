"""Indexing: ``x[...]`` and ``x.at[...]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from primax_core import lax
from primax_core.extend import Array, cast, dtypes, library_function, typeof

from ._index_plans import Plan, plan_of

_MODES = {
    None: None,
    "clip": lax.GatherScatterMode.CLIP,
    "fill": lax.GatherScatterMode.FILL_OR_DROP,
    "drop": lax.GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": lax.GatherScatterMode.PROMISE_IN_BOUNDS,
}


def mode_of(mode: Any) -> Any:
    """The gather mode of a name.

    Raises:
      ValueError: for an unknown name.
    """
    if isinstance(mode, lax.GatherScatterMode):
        return mode
    if mode not in _MODES:
        raise ValueError(f"Unknown gather mode {mode!r}: use one of {sorted(m for m in _MODES if m)}")
    return _MODES[mode]


def getitem(x: Array, index: Any) -> Array:
    """``x[index]`` with NumPy's meaning; positions out of bounds take the nearest element."""
    plan, operands = plan_of(index, x.shape)
    if all(p[0] == "all" for p in plan.parts):
        return x
    return _take(x, *operands, plan=plan, mode=None, fill_value=None)


def _take_of(x, *operands, plan: Plan, mode, fill_value, sorted_=False, unique=False, wrap=True):
    if not any(p[0] == "array" for p in plan.parts) and mode is None and wrap:
        return _basic(x, operands, plan)
    x, parts = _slices_first(x, plan)
    return _gathered(x, operands, parts, mode, fill_value, sorted_, unique, wrap)


_take_of.__name__ = "getitem"
_take = library_function(
    _take_of, static_argnames=("plan", "mode", "fill_value", "sorted_", "unique", "wrap")
)


def _basic(x, operands, plan: Plan):
    """Slices and single positions: slicing, then dropping and adding axes."""
    shape = typeof(x).shape
    starts: list[Any] = []
    sizes, strides, drop, flip = [], [], [], []
    axis, dynamic = 0, False
    for part in plan.parts:
        kind = part[0]
        if kind in ("new", "none"):
            continue
        start, size, stride = 0, shape[axis], 1
        if kind == "slice":
            start, size, stride, reverse = _forward(part)
            if reverse:
                flip.append(axis)
        elif kind == "at":
            start, size = part[1], 1
            drop.append(axis)
        elif kind == "scalar":
            start, size, dynamic = operands[part[1]], 1, True
            drop.append(axis)
            if not shape[axis]:
                raise IndexError(f"index is out of bounds for axis {axis} with size 0")
        starts.append(start)
        sizes.append(size)
        strides.append(stride)
        axis += 1
    if dynamic:
        x = _dynamic(x, starts, sizes, strides)
    elif tuple(sizes) != shape or any(s != 1 for s in strides):
        stops = [
            s + (n - 1) * k + 1 if n else s for s, n, k in zip(starts, sizes, strides)
        ]
        x = lax.slice(x, starts, stops, None if all(k == 1 for k in strides) else strides)
    if flip:
        x = lax.rev(x, tuple(flip))
    if drop:
        x = lax.squeeze(x, tuple(drop))
    return _with_new_axes(x, plan)


def _forward(part: tuple) -> tuple[int, int, int, bool]:
    """First position, number, stride of a slice read forward, and whether to reverse it."""
    _, start, stop, step = part
    n = len(range(start, stop, step))
    if step > 0:
        return start, n, step, False
    return (start + (n - 1) * step if n else 0), n, -step, True


def _dynamic(x, starts, sizes, strides):
    """Static slices first, then the window at computed positions."""
    shape = typeof(x).shape
    known = [not isinstance(s, int) or (n == d) for s, n, d in zip(starts, sizes, shape)]
    if not all(known) or any(k != 1 for k in strides):
        lo = [s if isinstance(s, int) else 0 for s in starts]
        hi = [
            (s + (n - 1) * k + 1 if n else s) if isinstance(s, int) else d
            for s, n, k, d in zip(starts, sizes, strides, shape)
        ]
        x = lax.slice(x, lo, hi, strides)
        starts = [0 if isinstance(s, int) else s for s in starts]
    index = [
        np.int32(0) if isinstance(s, int) else _as_position(s) for s in starts
    ]
    return lax.dynamic_slice(x, index, sizes)


def _as_position(s):
    aval = typeof(s)
    wide = np.dtype(np.int64) if aval.dtype.itemsize == 8 else np.dtype(np.int32)
    return lax.convert_element_type(s, wide) if aval.dtype != wide or aval.weak_type else s


def _with_new_axes(x, plan: Plan):
    """New axes where the plan has them among the axes that are left."""
    places, at = [], 0
    empty = []
    for part in plan.parts:
        if part[0] == "new":
            places.append(at)
            at += 1
        elif part[0] == "none":
            empty.append(at - 1)
        elif part[0] not in ("at", "scalar"):
            at += 1
    if places:
        x = lax.expand_dims(x, tuple(places))
    for axis in empty:
        x = lax.slice_in_dim(x, 0, 0, axis=axis)
    return x


def _slices_first(x, plan: Plan):
    """Apply slices and new axes; the rest of the plan names axes of the result."""
    basic, parts = [], []
    for part in plan.parts:
        if part[0] in ("slice", "new", "all", "none"):
            basic.append(part)
            if part[0] != "none":
                parts.append(("all",))
        else:
            basic.append(("all",))
            parts.append(part)
    return _basic(x, (), Plan(tuple(basic))), parts


def _positions(x, operands, parts, wrap: bool):
    """Index arrays of the advanced axes, broadcast together, and where their axes go."""
    shape = typeof(x).shape
    axes = [i for i, p in enumerate(parts) if p[0] != "all"]
    arrays = [
        np.asarray(parts[i][1], np.int32) if parts[i][0] == "at" else operands[parts[i][1]]
        for i in axes
    ]
    arrays = [_wrapped(a, shape[i]) if wrap else _as_position(a) for a, i in zip(arrays, axes)]
    joint = np.broadcast_shapes(*(typeof(a).shape for a in arrays))
    n = len(joint)
    together = [
        lax.broadcast_in_dim(a, joint, tuple(range(n - typeof(a).ndim, n))) for a in arrays
    ]
    wide = max((typeof(a).dtype for a in together), key=lambda d: d.itemsize)
    rows = [lax.expand_dims(lax.convert_element_type(a, wide), (n,)) for a in together]
    index = rows[0] if len(rows) == 1 else lax.concatenate(rows, n)
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    first = axes[0] if adjacent else 0
    return axes, index, joint, first


def _wrapped(a, size: int):
    """Negative positions counted from the end."""
    aval = typeof(a)
    a = _as_position(a)
    if dtypes.issubdtype(aval.dtype, np.unsignedinteger):
        return a
    if isinstance(a, np.ndarray):
        return np.where(a < 0, a + np.asarray(size, a.dtype), a)
    n = np.asarray(size, typeof(a).dtype)[()]
    zero = np.zeros((), typeof(a).dtype)[()]
    return lax.select(lax.lt(a, zero), lax.add(a, n), a)


def _gathered(x, operands, parts, mode, fill_value, sorted_, unique, wrap):
    axes, index, joint, first = _positions(x, operands, parts, wrap)
    shape = typeof(x).shape
    kept = [i for i in range(len(shape)) if i not in axes]
    n = len(joint)
    # The axes of the positions stand together at `first` among the kept ones.
    before = sum(1 for i in kept if i < first)
    offset = tuple(range(before)) + tuple(range(before + n, before + n + len(kept) - before))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=offset, collapsed_slice_dims=tuple(axes), start_index_map=tuple(axes)
    )
    sizes = tuple(1 if i in axes else d for i, d in enumerate(shape))
    return lax.gather(
        x, index, numbers, sizes, unique_indices=unique, indices_are_sorted=sorted_,
        mode=mode or lax.GatherScatterMode.PROMISE_IN_BOUNDS, fill_value=fill_value,
    )  # fmt: skip


# Updates


class _At:
    """``x.at``: gives the updates of the positions that it is indexed with."""

    __slots__ = ("_array",)

    def __init__(self, array: Array):
        self._array = array

    def __getitem__(self, index: Any) -> Updates:
        return Updates(self._array, index)

    def __repr__(self):
        return f"_At({self._array!r})"


class Updates:
    """Copies of an array with some positions changed."""

    __slots__ = ("_array", "_index")

    def __init__(self, array: Array, index: Any):
        self._array = array
        self._index = index

    def get(
        self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        fill_value: Any = None, wrap_negative_indices: bool = True, out_sharding: Any = None,
    ) -> Array:  # fmt: skip
        """The elements at the positions; ``mode`` tells what is given out of bounds."""
        plan, operands = plan_of(self._index, self._array.shape)
        found = mode_of(mode)
        return _take(
            self._array, *operands, plan=plan, mode=found, fill_value=fill_value,
            sorted_=indices_are_sorted, unique=unique_indices, wrap=wrap_negative_indices,
        )  # fmt: skip

    def set(self, values: Any, **hints: Any) -> Array:
        """``x[index] = values``."""
        return self._update(values, "set", hints)

    def add(self, values: Any, **hints: Any) -> Array:
        """``x[index] += values``; repeated positions add up."""
        return self._update(values, "add", hints)

    def subtract(self, values: Any, **hints: Any) -> Array:
        """``x[index] -= values``."""
        return self._update(values, "subtract", hints)

    def multiply(self, values: Any, **hints: Any) -> Array:
        """``x[index] *= values``."""
        return self._update(values, "multiply", hints)

    mul = multiply

    def min(self, values: Any, **hints: Any) -> Array:
        """``x[index] = minimum(x[index], values)``."""
        return self._update(values, "min", hints)

    def max(self, values: Any, **hints: Any) -> Array:
        """``x[index] = maximum(x[index], values)``."""
        return self._update(values, "max", hints)

    def divide(self, values: Any, **hints: Any) -> Array:
        """``x[index] /= values``."""
        ones = lax.full_like(self._array, 1)
        return self._array / Updates(ones, self._index).multiply(values, **hints)

    def power(self, values: Any, **hints: Any) -> Array:
        """``x[index] **= values``."""
        ones = lax.full_like(self._array, 1)
        return self._array ** Updates(ones, self._index).multiply(values, **hints)

    def _update(self, values: Any, how: str, hints: dict[str, Any]) -> Array:
        mode = mode_of(hints.pop("mode", None))
        sorted_ = hints.pop("indices_are_sorted", False)
        unique = hints.pop("unique_indices", False)
        wrap = hints.pop("wrap_negative_indices", True)
        hints.pop("out_sharding", None)
        if hints:
            raise TypeError(f"unexpected keyword arguments {sorted(hints)}")
        if values is None:
            raise ValueError("None is not a valid value to set array elements to")
        plan, operands = plan_of(self._index, self._array.shape)
        return _put(
            self._array, values, *operands, plan=plan, how=how, mode=mode, sorted_=sorted_,
            unique=unique, wrap=wrap,
        )  # fmt: skip


_SCATTERS: dict[str, Callable] = {
    "set": lax.scatter,
    "add": lax.scatter_add,
    "subtract": lax.scatter_sub,
    "multiply": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}


def _put_of(x, values, *operands, plan: Plan, how, mode, sorted_, unique, wrap):
    dtype, weak = typeof(x).dtype, typeof(x).weak_type
    values = cast(values, typeof(values), dtype, weak)
    if how == "set" and mode is None and _is_window(plan):
        return _window_set(x, values, operands, plan)
    parts, extra = _window_parts(plan, typeof(x).shape)
    operands = [*operands, *extra]
    return _scattered(x, values, operands, parts, plan, how, mode, sorted_, unique, wrap)


_put_of.__name__ = "setitem"
_put = library_function(
    _put_of, static_argnames=("plan", "how", "mode", "sorted_", "unique", "wrap")
)


def _is_window(plan: Plan) -> bool:
    """Whether all positions form one window that surely lies inside the array."""
    return all(
        p[0] in ("all", "at", "new") or (p[0] == "slice" and p[3] == 1) for p in plan.parts
    )


def _window_set(x, values, operands, plan: Plan):
    """Set a contiguous window."""
    shape = typeof(x).shape
    starts, sizes, result = [], [], []
    axis = 0
    for p in plan.parts:
        if p[0] == "new":
            result.append(1)
            continue
        start, size = 0, shape[axis]
        if p[0] == "slice":
            start, size = p[1], p[2] - p[1]
            result.append(size)
        elif p[0] == "at":
            start, size = p[1], 1
        else:
            result.append(size)
        starts.append(start)
        sizes.append(size)
        axis += 1
    window = lax.reshape(_fitted(values, tuple(result)), tuple(sizes))
    if 0 in sizes:
        return x
    return lax.dynamic_update_slice(x, window, [np.int32(s) for s in starts])


def _fitted(values, shape: tuple[int, ...]):
    """Values broadcast to the shape of the positions.

    Raises:
      ValueError: if they have more axes, or sizes that do not fit.
    """
    have = typeof(values).shape
    while len(have) > len(shape) and have[0] == 1:
        values = lax.squeeze(values, (0,))
        have = have[1:]
    if len(have) > len(shape):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={have} shape={shape}"
        )
    if have == shape:
        return values
    tail = shape[len(shape) - len(have) :]
    if any(h not in (1, t) for h, t in zip(have, tail)):
        raise ValueError(
            f"Incompatible types for broadcasting: values of shape {have} cannot be put in "
            f"positions of shape {shape}"
        )
    return lax.broadcast_in_dim(values, shape, tuple(range(len(shape) - len(have), len(shape))))


def _window_parts(plan: Plan, shape: tuple[int, ...]):
    """The plan with strided and partial slices turned into positions of their own axis."""
    parts, extra, axis = [], [], 0
    for p in plan.parts:
        if p[0] in ("new", "none"):
            parts.append(p)
            continue
        if p[0] == "slice":
            extra.append(np.arange(*p[1:], dtype=np.int32))
            p = ("range", len(extra) - 1)
        parts.append(p)
        axis += 1
    return parts, extra


def _scattered(x, values, operands, parts, plan, how, mode, sorted_, unique, wrap):
    """The general update: every indexed axis gets an index, whole axes are windows."""
    shape = typeof(x).shape
    n_given = len(operands) - sum(1 for p in parts if p[0] == "range")
    entries = []  # (axis, index array, kind)
    layout = []  # the axes of the result, in order: ("new",), ("all", axis), ("range", axis)
    axis = 0
    for p in parts:
        if p[0] == "new":
            layout.append(("new",))
            continue
        if p[0] == "none":
            return x
        if p[0] == "all":
            layout.append(("all", axis))
        elif p[0] == "range":
            entries.append((axis, operands[n_given + p[1]], "range"))
            layout.append(("range", axis))
        else:
            a = np.asarray(p[1], np.int32) if p[0] == "at" else operands[p[1]]
            a = _wrapped(a, shape[axis]) if wrap else _as_position(a)
            entries.append((axis, a, "given"))
            layout.append(("given", axis))
        axis += 1
    given = [(i, a) for i, a, kind in entries if kind == "given"]
    ranges = [(i, a) for i, a, kind in entries if kind == "range"]
    joint = np.broadcast_shapes(*(typeof(a).shape for _, a in given)) if given else ()
    # Axes of the index array: those of the given positions together, then one for each range.
    batch = joint + tuple(len(a) for _, a in ranges)
    index = _index_array(given, ranges, joint, batch)
    result, order = _result_layout(layout, joint, ranges, shape)
    values = _fitted(values, result)
    values = lax.squeeze(values, tuple(i for i, kind in enumerate(order) if kind == "new"))
    order = [k for k in order if k != "new"]
    # Bring the values' axes into the order: index axes first, then windows.
    target = [("joint", k) for k in range(len(joint))] + [("range", i) for i, _ in ranges]
    windows = [("all", i) for i in range(len(shape)) if ("all", i) in order]
    perm = [order.index(k) for k in [*target, *windows]]
    values = lax.transpose(values, tuple(perm))
    axes = tuple(i for i, _ in given) + tuple(i for i, _ in ranges)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(len(batch), len(batch) + len(windows))),
        inserted_window_dims=tuple(sorted(axes)),
        scatter_dims_to_operand_dims=axes,
    )
    return _SCATTERS[how](
        x, index, values, numbers, indices_are_sorted=sorted_, unique_indices=unique,
        mode=mode or lax.GatherScatterMode.FILL_OR_DROP,
    )  # fmt: skip


def _index_array(given, ranges, joint, batch):
    rows = []
    n = len(batch)
    wide = max([typeof(a).dtype for _, a in [*given, *ranges]] or [np.dtype(np.int32)],
               key=lambda d: d.itemsize)  # fmt: skip
    for _, a in given:
        rank = typeof(a).ndim
        rows.append(lax.broadcast_in_dim(
            lax.convert_element_type(a, wide), batch,
            tuple(range(len(joint) - rank, len(joint))),
        ))  # fmt: skip
    for k, (_, a) in enumerate(ranges):
        rows.append(
            lax.broadcast_in_dim(lax.convert_element_type(a, wide), batch, (len(joint) + k,))
        )
    if not rows:
        return lax.full((*batch, 0), 0, np.dtype(np.int32))
    rows = [lax.expand_dims(r, (n,)) for r in rows]
    return rows[0] if len(rows) == 1 else lax.concatenate(rows, n)


def _result_layout(layout, joint, ranges, shape):
    """Shape of the positions as NumPy lays them out, and what each axis is."""
    sizes = {i: len(a) for i, a in ranges}
    given_at = [k for k, e in enumerate(layout) if e[0] == "given"]
    result: list[int] = []
    order: list[Any] = []
    adjacent = given_at == list(range(given_at[0], given_at[0] + len(given_at))) if given_at else True

    def put_joint():
        result.extend(joint)
        order.extend(("joint", k) for k in range(len(joint)))

    if given_at and not adjacent:
        put_joint()
    for k, e in enumerate(layout):
        if e[0] == "given":
            if adjacent and k == given_at[0]:
                put_joint()
        elif e[0] == "new":
            result.append(1)
            order.append("new")
        elif e[0] == "range":
            result.append(sizes[e[1]])
            order.append(("range", e[1]))
        else:
            result.append(shape[e[1]])
            order.append(("all", e[1]))
    return tuple(result), order


at = property(_At, doc="Updates of a copy: ``x.at[index].set(values)`` and its relatives.")
