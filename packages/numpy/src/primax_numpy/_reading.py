"""Indexing for reads: ``x[...]`` and ``x.at[...].get()``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, FastPath, Tracer, dtypes, state
from primax_core.extend.dimensions import (
    broadcast_shapes,
    is_size,
    is_static,
    max_dim,
    size_as,
    slice_length,
)
from primax_core.extend.elementwise import argument_type as typeof

from ._functions import compiled
from ._index_plans import Plan, plan_of, position_array, with_axes_of_flags

_MODES: Final[dict[str | None, Any]] = {
    None: None,
    "clip": lax.GatherScatterMode.CLIP,
    "fill": lax.GatherScatterMode.FILL_OR_DROP,
    "drop": lax.GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": lax.GatherScatterMode.PROMISE_IN_BOUNDS,
}


def mode_of(mode: Any) -> Any:
    """The gather mode of a mode name.

    Raises:
      ValueError: if the name is unknown.
    """
    if isinstance(mode, lax.GatherScatterMode):
        return mode
    if mode not in _MODES:
        raise ValueError(
            f"Unknown gather mode {mode!r}: use one of {sorted(m for m in _MODES if m)}"
        )
    return _MODES[mode]


def getitem(x: Array, index: Any) -> Array:
    """``x[index]`` with NumPy semantics; positions out of bounds are clamped."""
    try:
        entry = _fast_key(index) if state.trace is None else None
    except OverflowError:
        if not any(map(is_beyond_int32, x.shape)):
            raise
        entry = None
    if entry is not None:
        out: Array | None = _path.lookup(entry[0], x, *entry[1])
        if out is not None:
            return out
    plan, operands = plan_of(index, x.shape)
    if all(p[0] == "all" for p in plan.parts):
        return x
    if entry is None or any(p[0] == "at" for p in plan.parts):
        return planned(x, operands, plan)
    return _path.call(entry[0], (x, *operands), plan=plan, mode=None, fill_value=None)


def _fast_key(index: Any) -> tuple[Any, Sequence[Array]] | None:
    """Dispatch cache key of an index made of integers and slices, and the arrays of its
    positions."""
    kind = type(index)
    if kind is int:
        return int, (position_array(index),)
    if kind is slice:
        key = _slice_key(index)
        return None if key is None else (key, ())
    if index is None:
        return (None,), ()
    if kind is not tuple:
        return None
    keys: list[Any] = []
    positions: list[Array] = []
    for e in index:
        kind = type(e)
        if kind is int:
            keys.append(int)
            positions.append(position_array(e))
        elif kind is slice:
            key = _slice_key(e)
            if key is None:
                return None
            keys.append(key)
        elif e is None or e is Ellipsis:
            keys.append(e)
        else:
            return None
    return tuple(keys), positions


_BOUNDS: Final = (int, type(None))


def _slice_key(s: slice) -> tuple[Any, Any, Any] | None:
    start, stop, step = s.start, s.stop, s.step
    if type(start) in _BOUNDS and type(stop) in _BOUNDS and type(step) in _BOUNDS:
        return start, stop, step
    return None


_NAN: Final = float("nan")


def fill_number(value: Any) -> Any:
    """A fill value as a hashable number; all NaNs are one object, so that the cache finds them."""
    if value is None:
        return None
    if isinstance(value, Tracer) or np.ndim(value):
        raise TypeError(f"fill_value must be a concrete number, got {value!r}")
    number = np.asarray(value).item()
    return _NAN if isinstance(number, float) and number != number else number


def planned(
    x: Array,
    operands: Sequence[Any],
    plan: Plan,
    *,
    mode: Any = None,
    fill_value: Any = None,
    sorted_: bool = False,
    unique: bool = False,
    wrap: bool = True,
) -> Array:
    """The elements that a plan selects.

    Args:
      mode: the gather mode for positions out of bounds; by default they are clamped.
      sorted_, unique: declare the positions sorted or unique.
      wrap: negative positions count from the end.
    """
    return _take(
        x, *operands, plan=plan, mode=mode, fill_value=fill_value, sorted_=sorted_,
        unique=unique, wrap=wrap,
    )  # fmt: skip


_COMPUTED: Final = frozenset(("at", "scalar", "window"))
_MOVED: Final = (lax.GatherScatterMode.CLIP, lax.GatherScatterMode.PROMISE_IN_BOUNDS)


@compiled("plan", "mode", "fill_value", "sorted_", "unique", "wrap", name="getitem")
def _take(x, *operands, plan, mode, fill_value, sorted_=False, unique=False, wrap=True):
    kinds = {p[0] for p in plan.parts}
    if "flag" in kinds:
        plan, new = with_axes_of_flags(plan)
        x, kinds = lax.expand_dims(x, new), kinds | {"array"}
    slices = "array" not in kinds and (wrap or not kinds & _COMPUTED)
    # Dynamic slices clamp their starts, as only some of the modes do.
    if slices and (mode is None or mode in _MOVED or not kinds & _COMPUTED):
        return _basic(x, operands, plan)
    if "window" in kinds:
        x, plan = _windows_first(x, plan, operands, mode, fill_value, wrap)
    x, plan = _slices_first(x, plan)
    if all(p[0] == "all" for p in plan.parts):
        return x
    return _gathered(x, operands, plan, mode, fill_value, sorted_, unique, wrap)


_path: Final = FastPath(_take)


def _basic(x, operands, plan: Plan):
    """Slices and single positions: slice, then squeeze and expand axes."""
    x, plan = _symbolic_strides_first(x, plan)
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
            start, size = _nearest(part[1], shape[axis]), 1
            drop.append(axis)
        elif kind == "window":
            start, size, dynamic = operands[part[1]], part[2], True
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
        stops = [s + _reach(n, k) for s, n, k in zip(starts, sizes, strides)]
        x = lax.slice(x, starts, stops, None if all(k == 1 for k in strides) else strides)
    if flip:
        x = lax.rev(x, tuple(flip))
    if drop:
        x = lax.squeeze(x, tuple(drop))
    return _with_new_axes(x, plan)


def _symbolic_strides_first(x, plan: Plan):
    """Apply slices with symbolic bounds or strides; the result's plan has none of them."""
    parts, axis = [], 0
    for part in plan.parts:
        if part[0] == "slice" and part[3] not in (1, -1) and not is_static(part[1:]):
            _, start, stop, step = part
            if step < 0:
                last = typeof(x).shape[axis] - 1
                x, start, stop, step = lax.rev(x, (axis,)), last - start, last - stop, -step
            x, part = lax.slice_in_dim(x, start, stop, step, axis), ("all",)
        parts.append(part)
        axis += part[0] not in ("new", "none")
    return x, plan._replace(parts=tuple(parts))


def _nearest(i: int, size: int) -> int:
    """A concrete position, nonnegative and clamped to the axis."""
    return min(max(i + size if i < 0 else i, 0), size - 1)


def _forward(part: tuple[Any, ...]) -> tuple[int, int, int, bool]:
    """Start, length and stride of a slice in ascending order, and a flag for reversal."""
    _, start, stop, step = part
    n = slice_length(start, stop, step)
    if step > 0:
        return start, n, step, False
    return (start + (n - 1) * step if n != 0 else 0), n, -step, True


def _reach(n: Any, stride: int) -> Any:
    """The extent of ``n`` elements with a stride."""
    return n if stride == 1 else max_dim((n - 1) * stride + 1, 0)


def _dynamic(x, starts, sizes, strides):
    """Static slices first, then the dynamic slice."""
    shape = typeof(x).shape
    known = [not is_size(s) or (n == d) for s, n, d in zip(starts, sizes, shape)]
    if not all(known) or any(k != 1 for k in strides):
        lo = [s if is_size(s) else 0 for s in starts]
        hi = [
            s + _reach(n, k) if is_size(s) else d
            for s, n, k, d in zip(starts, sizes, strides, shape)
        ]
        x = lax.slice(x, lo, hi, strides)
        starts = [0 if is_size(s) else s for s in starts]
    computed = [s for s in starts if not is_size(s)]
    unsigned = all(typeof(s).dtype == _UNSIGNED for s in computed)
    kind = _UNSIGNED if unsigned else np.dtype(np.int32)
    kind = np.dtype(np.int64) if any(_is_long(s) for s in computed) else kind
    index = [kind.type(0) if is_size(s) else as_position(s, kind) for s in starts]
    return lax.dynamic_slice(x, index, sizes)


def _is_long(s: Any) -> bool:
    return typeof(s).dtype.itemsize == 8


def as_position(s: Any, wide: np.dtype | None = None) -> Any:
    """Positions converted to ``wide``, or to the index dtype that represents them."""
    aval = typeof(s)
    if wide is None:
        wide = np.dtype(np.int64) if _is_long(s) else np.dtype(np.int32)
    return lax.convert_element_type(s, wide) if aval.dtype != wide or aval.weak_type else s


_UNSIGNED: Final = np.dtype(np.uint32)


def is_beyond_int32(size: Any) -> bool:
    """Return True if an axis has positions that int32 does not represent."""
    return type(size) is int and size > 2**31


def _with_new_axes(x, plan: Plan):
    """Insert the new axes of a plan among the remaining axes."""
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
    """Apply slices and new axes; the remaining parts refer to axes of the result."""
    basic, parts = [], []
    for part in plan.parts:
        if part[0] in ("slice", "new", "all", "none"):
            basic.append(part)
            if part[0] != "none":
                parts.append(("all",))
        else:
            basic.append(("all",))
            parts.append(part)
    return _basic(x, (), Plan(tuple(basic))), plan._replace(parts=tuple(parts))


def _windows_first(x, plan: Plan, operands, mode, fill_value, wrap: bool):
    """Apply dynamic slices; the remaining parts refer to axes of the result."""
    parts, axis = [], 0
    for part in plan.parts:
        if part[0] == "window":
            n, size = typeof(x).shape[axis], part[2]
            start = plan_positions(part, operands, n, wrap)
            if mode == lax.GatherScatterMode.FILL_OR_DROP:
                places = lax.add(start, lax.iota(typeof(start).dtype, size))
                x = _filled_rows(x, places, axis, start, fill_value)
            else:
                x = lax.dynamic_slice_in_dim(x, start, size, axis, allow_negative_indices=False)
            part = ("all",)
        parts.append(part)
        axis += part[0] not in ("new", "none")
    return x, plan._replace(parts=tuple(parts))


def _filled_rows(x, places, axis: int, start, fill_value):
    """Rows at consecutive positions; all are filled unless all are in bounds."""
    shape, count = typeof(x).shape, typeof(places).shape[0]
    last = lax.full_like(start, shape[axis] - count)
    fits = lax.bitwise_and(lax.ge(start, lax.full_like(start, 0)), lax.le(start, last))
    fits = lax.broadcast_in_dim(fits, (count,), ())
    places = lax.select(fits, places, lax.full_like(places, shape[axis]))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple([i for i in range(len(shape)) if i != axis]),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    sizes = tuple([1 if i == axis else d for i, d in enumerate(shape)])
    index = lax.expand_dims(places, (1,))
    return lax.gather(x, index, numbers, sizes, mode="fill", fill_value=fill_value)


def _positions(x, operands, plan: Plan, wrap: bool):
    """The stacked index array of the advanced axes, and the position of its axes in the result."""
    shape = typeof(x).shape
    axes = [i for i, p in enumerate(plan.parts) if p[0] != "all"]
    arrays = [plan_positions(plan.parts[i], operands, shape[i], wrap) for i in axes]
    joint = broadcast_shapes(*(typeof(a).shape for a in arrays))
    n = len(joint)
    together = [lax.broadcast_in_dim(a, joint, tuple(range(n - typeof(a).ndim, n))) for a in arrays]
    wide = max((typeof(a).dtype for a in together), key=lambda d: (d.itemsize, d.kind))
    rows = [lax.expand_dims(lax.convert_element_type(a, wide), (n,)) for a in together]
    index = rows[0] if len(rows) == 1 else lax.concatenate(rows, n)
    adjacent = not plan.separated and axes == list(range(axes[0], axes[0] + len(axes)))
    first = axes[0] if adjacent else 0
    return axes, index, joint, first


def plan_positions(part: tuple[Any, ...], operands: Sequence[Any], size: int, wrap: bool) -> Any:
    """Nonnegative positions of a plan part along an axis of a given size."""
    a = np.asarray(part[1], np.int32) if part[0] == "at" else operands[part[1]]
    return counted_from_start(a, size) if wrap else as_position(a)


def counted_from_start(a, size: int):
    """Positions with negative ones counted from the end."""
    if isinstance(a, np.ndarray):
        wide = np.int64 if a.dtype.itemsize == 8 and state.enable_x64 else np.int32
        if is_beyond_int32(size) and wide is np.int32:
            far = np.where(a < 0, a + np.int64(size), a)
            return np.where(far < 0, 2**32 - 1, far).astype(_UNSIGNED)
        a = a.astype(wide)
        if is_size(size) and not is_static((size,)):
            return _from_symbolic_end(a, size)
        return np.where(a < 0, a + wide(size), a)
    unsigned = dtypes.issubdtype(typeof(a).dtype, np.unsignedinteger)
    if is_beyond_int32(size) and not _is_long(a):
        far = lax.convert_element_type(a, _UNSIGNED)
        if unsigned:
            return far
        # 32 bits without a sign: the addition modulo 2**32 gives the position from the start.
        return lax.select(lax.lt(a, lax.full_like(a, 0)), lax.add(far, np.uint32(size)), far)
    a = as_position(a)
    if unsigned:
        return a
    n = size_as(size, typeof(a).dtype)
    zero = np.zeros((), typeof(a).dtype)[()]
    return lax.select(lax.lt(a, zero), lax.add(a, n), a)


def _from_symbolic_end(a: np.ndarray, size: Any) -> Any:
    """Concrete positions, negative ones counted from the end of a symbolic axis."""
    if not (a < 0).any():
        return a
    return lax.add(a, lax.mul((a < 0).astype(a.dtype), size_as(size, a.dtype)))


def _gathered(x, operands, plan: Plan, mode, fill_value, sorted_, unique, wrap):
    axes, index, joint, first = _positions(x, operands, plan, wrap)
    shape = typeof(x).shape
    offset_axes = [i for i in range(len(shape)) if i not in axes]
    n = len(joint)
    # The batch axes of the indices are inserted at `first` among the offset axes.
    before = sum(1 for i in offset_axes if i < first)
    offset = tuple(range(before)) + tuple(range(before + n, before + n + len(offset_axes) - before))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=offset, collapsed_slice_dims=tuple(axes), start_index_map=tuple(axes)
    )
    sizes = tuple(1 if i in axes else d for i, d in enumerate(shape))
    result = tuple([shape[i] for i in offset_axes])
    result = result[:before] + joint + result[before:]
    if 0 in result:
        return lax.full(result, 0, typeof(x).dtype)
    for i in axes:
        if not shape[i]:
            raise IndexError(f"index is out of bounds for axis {i} with size 0")
    return lax.gather(
        x, index, numbers, sizes, unique_indices=unique, indices_are_sorted=sorted_,
        mode=mode or lax.GatherScatterMode.PROMISE_IN_BOUNDS, fill_value=fill_value,
    )  # fmt: skip
