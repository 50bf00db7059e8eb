"""Functional updates of arrays: ``x.at[...].set(values)`` and related methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import lax, vmap
from primax_core.extend import Array, cast, dtypes, inexact, is_operand, state
from primax_core.extend.dimensions import broadcast_shapes, is_static, size_as, slice_length
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.placements import is_placed, placed_like
from primax_core.extend.runtime import with_out_sharding

from ._creation import asarray
from ._functions import compiled
from ._index_plans import Plan, plan_of, with_axes_of_flags
from ._reading import fill_number, mode_of, plan_positions, planned
from ._windows import changed, window_of


class _At:
    """The ``at`` property of an array: indexing it returns the :class:`Updates` of the indexed
    positions.
    """

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Updates:
        return Updates(self._array, index)

    def __repr__(self) -> str:
        return f"_At({self._array!r})"


class Updates:
    """Copies of an array with updated positions.

    Every update takes ``values`` that broadcast to the shape of the positions, and the keyword
    arguments ``indices_are_sorted`` and ``unique_indices`` (declarations that permit faster code),
    ``mode`` (positions out of bounds are dropped, unless it is ``"clip"``) and
    ``wrap_negative_indices`` (negative positions count from the end; true by default).

    The update is computed in the promoted dtype of values and array, and the result is cast to the
    dtype of the array. A warning is issued if the cast is unsafe.
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: Array, index: Any) -> None:
        self._array = array
        self._index = index

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        wrap_negative_indices: bool = True,
        out_sharding: Any = None,
    ) -> Array:
        """The elements at the positions; ``mode`` is the treatment of positions out of bounds."""
        plan, operands = plan_of(self._index, self._array.shape)
        hints = {
            "mode": mode_of(mode),
            "fill_value": fill_number(fill_value),
            "sorted_": indices_are_sorted,
            "unique": unique_indices,
            "wrap": wrap_negative_indices,
        }
        if out_sharding is not None:
            return with_out_sharding(get, out_sharding, self._array, *operands, plan=plan, **hints)
        return planned(self._array, operands, plan, **hints)

    def set(self, values: Any, **hints: Any) -> Array:
        """``x[index] = values``; for repeated positions, one of the values is stored."""
        return self._update(values, "set", hints)

    def add(self, values: Any, **hints: Any) -> Array:
        """``x[index] += values``; updates of repeated positions accumulate."""
        return self._update(values, "add", hints)

    def subtract(self, values: Any, **hints: Any) -> Array:
        """``x[index] -= values``; updates of repeated positions accumulate."""
        return self._update(values, "subtract", hints)

    def multiply(self, values: Any, **hints: Any) -> Array:
        """``x[index] *= values``; updates of repeated positions accumulate."""
        return self._update(values, "multiply", hints)

    mul = multiply

    def min(self, values: Any, **hints: Any) -> Array:
        """``x[index] = minimum(x[index], values)``."""
        return self._update(values, "min", hints)

    def max(self, values: Any, **hints: Any) -> Array:
        """``x[index] = maximum(x[index], values)``."""
        return self._update(values, "max", hints)

    def divide(self, values: Any, **hints: Any) -> Array:
        """``x[index] /= values``; updates of repeated positions accumulate. The division is
        inexact."""
        return self._update(values, "divide", hints)

    def power(self, values: Any, **hints: Any) -> Array:
        """``x[index] **= values``; updates of repeated positions accumulate."""
        return self._update(values, "power", hints)

    def apply(self, func: Callable[[Array], Array], **hints: Any) -> Array:
        """``x[index] = func(x[index])``, applied once for each occurrence of a position.

        Args:
          func: a function of scalars. The result is not differentiable if positions are arrays.
        """
        static = _hints_of("apply", hints)
        plan, operands = plan_of(self._index, self._array.shape)
        zero = np.zeros((), self._array.dtype)
        return _changed_by(self._array, zero, operands, plan, func, **static)

    def _update(self, values: Any, operation: str, hints: dict[str, Any]) -> Array:
        if hints.get("out_sharding") is not None:
            rest = {**hints, "out_sharding": None}
            return with_out_sharding(
                updated, hints["out_sharding"], self._array, self._index, values, operation, rest
            )
        static = _hints_of(operation, hints)
        array = self._array
        values = _operand_of(values, array.dtype)
        plan, operands = plan_of(self._index, array.shape)
        _warn_of_loss(array.aval, values)
        out = _put(array, values, *operands, plan=plan, operation=operation, **static)
        return placed_like(out, array.aval) if is_placed(array.aval) else out


def get(array: Array, *operands: Any, plan: Any, **hints: Any) -> Array:
    """The elements at the positions of a plan."""
    return planned(array, operands, plan, **hints)


def updated(array: Array, index: Any, values: Any, operation: str, hints: dict[str, Any]) -> Array:
    """An array with updated positions."""
    return Updates(array, index)._update(values, operation, hints)


def _hints_of(operation: str, hints: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of an update as static parameters.

    Raises:
      TypeError: if an argument is unknown.
      ValueError: if the mode is unknown.
    """
    if not hints:
        return _NO_HINTS
    remaining = dict(hints)
    static = {
        "mode": mode_of(remaining.pop("mode", None)),
        "sorted_": bool(remaining.pop("indices_are_sorted", False)),
        "unique": bool(remaining.pop("unique_indices", False)),
        "wrap": bool(remaining.pop("wrap_negative_indices", True)),
    }
    remaining.pop("out_sharding", None)
    for name in remaining:
        raise TypeError(f"x.at[...].{operation}() got an unexpected keyword argument {name!r}")
    return static


def _operand_of(values: Any, dtype: Any) -> Any:
    if type(values) is bool and dtype.kind in "iu":
        return dtype.type(values)
    if type(values) is int and not -(2**31) <= values < 2**31 and dtype.kind in "iu":
        info = np.iinfo(dtype)
        return dtype.type(values) if info.min <= values <= info.max else values
    return values if is_operand(values) else asarray(values)


_NO_HINTS: Final = {"mode": None, "sorted_": False, "unique": False, "wrap": True}


def _warn_of_loss(array: Any, values: Any) -> None:
    values_aval = typeof(values)
    if values_aval.dtype == array.dtype:
        return
    if type(values) is int and array.dtype.kind in "iu":
        return
    pair = ((array.dtype, False), (values_aval.dtype, values_aval.weak_type))
    if dtypes.lattice_result(pair)[0] != array.dtype:
        warnings.warn(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={values_aval.dtype} to dtype={array.dtype} with numpy_dtype_promotion="
            f"{state.numpy_dtype_promotion}: convert the values with astype, or the array",
            FutureWarning,
            stacklevel=4,
        )


_SCATTERS: Final[dict[str, Callable[..., Any]]] = {
    "set": lax.scatter,
    "add": lax.scatter_add,
    "subtract": lax.scatter_sub,
    "multiply": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}


@compiled("plan", "operation", "mode", "sorted_", "unique", "wrap", name="setitem")
def _put(x, values, *operands, plan: Plan, operation, mode, sorted_, unique, wrap):
    own, values_aval = typeof(x), typeof(values)
    result = own.dtype
    if operation == "divide":
        result, _ = inexact(own.dtype, own.weak_type)
    pair = ((own.dtype, own.weak_type), (values_aval.dtype, values_aval.weak_type))
    # An assignment involves no arithmetic, so that the array is not promoted.
    dtype, weak = (own.dtype, False) if operation == "set" else dtypes.lattice_result(pair)
    if operation == "divide":
        dtype, weak = inexact(dtype, weak)
    values = cast(values, values_aval, dtype, weak)
    out = _changed_by(
        cast(x, own, dtype, weak and own.weak_type), values, operands, plan, operation, mode=mode,
        sorted_=sorted_, unique=unique, wrap=wrap,
    )  # fmt: skip
    return cast(out, typeof(out), result, own.weak_type)


def _changed_by(x, values, operands, plan: Plan, operation, *, mode, sorted_, unique, wrap):
    """The updated array: windows by dynamic slices, others by a scatter."""
    if any(p[0] == "flag" for p in plan.parts):
        plan, new = with_axes_of_flags(plan)
        x = lax.expand_dims(x, new)
        hints = {"mode": mode, "sorted_": sorted_, "unique": unique, "wrap": wrap}
        return lax.squeeze(_changed_by(x, values, operands, plan, operation, **hints), new)
    shape = typeof(x).shape
    layout = _layout_of(plan, operands, shape)
    values = _fitted(values, layout.result)
    if 0 in layout.result or 0 in shape:
        return x
    window = window_of(plan, operands, shape, wrap)
    extended = isinstance(typeof(x).dtype, dtypes.ExtendedDType)
    # Strided windows need padding values, which extended dtypes (keys) do not have.
    if window is not None and not (extended and any(k != 1 for k in window.steps)):
        change = _of_scalars(operation) if callable(operation) else _CHANGES[operation]
        guarded = mode is None or mode == lax.GatherScatterMode.FILL_OR_DROP
        return changed(x, values, window, change, guarded)
    places = _places_of(layout, operands, shape, wrap)
    hints = {"mode": mode, "sorted_": sorted_, "unique": unique}
    if operation in ("divide", "power"):
        ones = lax.full_like(x, 1)
        factors = _scattered(ones, values, layout, places, "multiply", **hints)
        return x / factors if operation == "divide" else x**factors
    return _scattered(x, values, layout, places, operation, **hints)


def _of_scalars(func: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def change(old, values):
        dtype = typeof(old).dtype
        updated = vmap(lambda v: lax.convert_element_type(func(v), dtype))(old.reshape(-1))
        return lax.reshape(updated, typeof(old).shape)

    return change


_CHANGES: Final[dict[str, Callable[..., Any] | None]] = {
    "set": None,
    "add": lax.add,
    "subtract": lax.sub,
    "multiply": lax.mul,
    "divide": lambda x, y: x / y,
    "power": lambda x, y: x**y,
    "min": lax.min,
    "max": lax.max,
}


def _fitted(values, shape: tuple[int, ...]):
    """Values broadcast to the shape of the positions.

    Raises:
      ValueError: if the shapes are incompatible.
    """
    own_shape = typeof(values).shape
    if own_shape == shape:
        return values
    if len(own_shape) > len(shape):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={own_shape} shape={shape}"
        )
    tail = shape[len(shape) - len(own_shape) :]
    if any(h not in (1, t) for h, t in zip(own_shape, tail)):
        raise ValueError(
            f"Incompatible types for broadcasting: values of shape {own_shape} cannot be put in "
            f"positions of shape {shape}"
        )
    return lax.broadcast_in_dim(
        values, shape, tuple(range(len(shape) - len(own_shape), len(shape)))
    )


# The general update


class _Layout(NamedTuple):
    """The layout of the positions of an update.

    Attributes:
      indexed: axes indexed by positions, with their plan parts; the positions broadcast together.
      ranges: axes indexed by slices, with their plan parts; each is an axis of the result.
      joint: broadcast shape of the positions in ``indexed``.
      result: shape of the indexed elements, in NumPy's axis order.
      order: the source of each result axis: a tuple of its kind and number, or ``"new"``
        or ``"empty"`` for a new axis of size 1 or 0.
    """

    indexed: list[tuple[int, Any]]
    ranges: list[tuple[int, Any]]
    joint: tuple[int, ...]
    result: tuple[int, ...]
    order: list[Any]


def _layout_of(plan: Plan, operands: Sequence[Any], shape: tuple[int, ...]) -> _Layout:
    indexed, ranges, kinds = [], [], []
    lengths: dict[int, int] = {}
    axis = 0
    for p in plan.parts:
        if p[0] == "none":
            kinds[-1] = "empty"
            continue
        if p[0] == "new":
            kinds.append("new")
            continue
        if p[0] == "all":
            kinds.append(("all", axis))
        elif p[0] in ("slice", "window"):
            ranges.append((axis, p))
            lengths[axis] = p[2] if p[0] == "window" else slice_length(*p[1:])
            kinds.append(("range", axis))
        else:
            indexed.append((axis, p))
            kinds.append("indexed")
        axis += 1
    shapes = [() if p[0] == "at" else typeof(operands[p[1]]).shape for _, p in indexed]
    joint = broadcast_shapes(*shapes)
    together = [("joint", k) for k in range(len(joint))]
    at = [k for k, kind in enumerate(kinds) if kind == "indexed"]
    order = [kind for kind in kinds if kind != "indexed"]
    if at:
        # Axes of non-adjacent advanced indices come first.
        adjacent = not plan.separated and at == list(range(at[0], at[0] + len(at)))
        first = at[0] if adjacent else 0
        order[first:first] = together
    sizes = {"joint": joint.__getitem__, "range": lengths.__getitem__, "all": shape.__getitem__}
    added = {"new": 1, "empty": 0}
    result = tuple([added[k] if k in added else sizes[k[0]](k[1]) for k in order])
    return _Layout(indexed, ranges, joint, result, order)


def _places_of(layout: _Layout, operands: Sequence[Any], shape: tuple[int, ...], wrap: bool):
    """The positions of the axes indexed by arrays, and of those indexed by slices."""
    positions = [plan_positions(p, operands, shape[axis], wrap) for axis, p in layout.indexed]
    ranges = []
    for axis, p in layout.ranges:
        if p[0] == "slice":
            ranges.append(_evenly_spaced(*p[1:]))
            continue
        start = plan_positions(p, operands, shape[axis], wrap)
        places = lax.add(start, lax.iota(typeof(start).dtype, p[2]))
        # A window that is partly out of bounds is dropped completely.
        last = lax.full_like(start, shape[axis] - p[2])
        fits = lax.bitwise_and(lax.ge(start, lax.full_like(start, 0)), lax.le(start, last))
        fits = lax.broadcast_in_dim(fits, (p[2],), ())
        ranges.append(lax.select(fits, places, lax.full_like(places, shape[axis])))
    return positions, ranges


def _evenly_spaced(start: Any, stop: Any, step: int) -> Any:
    """Positions of a slice."""
    if is_static((start, stop, step)):
        return np.arange(start, stop, step, dtype=np.uint32 if stop > 2**31 else np.int32)
    places = lax.iota(np.int32, slice_length(start, stop, step))
    return lax.add(lax.mul(places, size_as(step, np.int32)), size_as(start, np.int32))


def _scattered(x, values, layout: _Layout, places, operation, *, mode, sorted_, unique):
    """One scatter: every indexed axis is a scatter axis; whole axes are windows."""
    indexed, ranges, joint, _, order = layout
    values = lax.squeeze(values, tuple(i for i, kind in enumerate(order) if kind == "new"))
    order = [kind for kind in order if kind != "new"]
    # Axes of the values: first those of indices, then those of windows.
    target = [("joint", k) for k in range(len(joint))] + [("range", i) for i, _ in ranges]
    windows = [kind for kind in order if kind[0] == "all"]
    values = lax.transpose(values, tuple([order.index(k) for k in [*target, *windows]]))
    axes = tuple([i for i, _ in indexed] + [i for i, _ in ranges])
    index = _index_array(places, joint)
    n = typeof(index).ndim - 1
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(n, n + len(windows))),
        inserted_window_dims=tuple(sorted(axes)),
        scatter_dims_to_operand_dims=axes,
    )
    hints = {
        "indices_are_sorted": sorted_,
        "unique_indices": unique,
        "mode": mode or lax.GatherScatterMode.FILL_OR_DROP,
    }
    if callable(operation):
        dtype = typeof(x).dtype

        def func(v):
            return lax.convert_element_type(operation(v), dtype)

        update_shape = typeof(values).shape
        return lax.scatter_apply(x, index, func, numbers, update_shape=update_shape, **hints)
    return _SCATTERS[operation](x, index, values, numbers, **hints)


def _index_array(places, joint: tuple[int, ...]):
    """Stacked positions of all indexed axes: array axes first, then one axis for each range."""
    positions, ranges = places
    batch = joint + tuple([typeof(a).shape[0] for a in ranges])
    n = len(batch)
    if not positions and not ranges:
        return lax.full((*batch, 0), 0, np.dtype(np.int32))
    wide = max((typeof(a).dtype for a in [*positions, *ranges]), key=lambda d: (d.itemsize, d.kind))
    dims = [tuple(range(len(joint) - typeof(a).ndim, len(joint))) for a in positions]
    dims += [(len(joint) + k,) for k in range(len(ranges))]
    rows = [
        lax.expand_dims(lax.broadcast_in_dim(lax.convert_element_type(a, wide), batch, at), (n,))
        for a, at in zip([*positions, *ranges], dims)
    ]
    return rows[0] if len(rows) == 1 else lax.concatenate(rows, n)


at: Final = property(_At, doc="Updates of a copy: ``x.at[index].set(values)`` and related methods.")
