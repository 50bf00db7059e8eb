"""``scatter`` and its variants: updates of windows at computed indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._base import caches
from .._ir.avals import ShapedArray
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.samples import Sample, bf16, f32, i32, samples
from .._lower.lazy import hlo, ir, mlir, shaped
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.staging import eval_jaxpr, has_tracers, stage
from .._trace.typing import ArrayLike, Shape
from .._transform.batching import move_axis
from .._transform.zeros import Zero, instantiate, is_linear
from . import arithmetic as b
from .broadcasting import broadcast_in_dim, broadcasted_iota, full, full_like
from .comparison import eq
from .elementwise import same_dtypes
from .gathering import bounds, gather, gather_p, widened_indices
from .index_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_axes,
    check_batching,
    check_disjoint,
    check_indices,
    hashable,
)
from .reshaping import reshape
from .scalar_jaxprs import check_for_elements
from .selection import select_n
from .shapes import canonical_shape, past, tail_of, without

_Mode = GatherScatterMode

scatter_p: Final = Primitive("scatter")
scatter_add_p: Final = Primitive("scatter-add")
scatter_sub_p: Final = Primitive("scatter-sub")
scatter_mul_p: Final = Primitive("scatter-mul")
scatter_min_p: Final = Primitive("scatter-min")
scatter_max_p: Final = Primitive("scatter-max")

_updates: dict[tuple, Jaxpr] = caches.bounded_cache(512)


def _update_jaxpr(op: Callable, dtype: Any) -> Jaxpr:
    """The jaxpr ``(old, update) -> new``; one object for each operation and dtype."""
    jaxpr = _updates.get((op, dtype))
    if jaxpr is None:
        scalar = ShapedArray((), dtype)
        jaxpr = _updates[op, dtype] = stage(lambda x, y: [op(x, y)], [scalar, scalar])
    return jaxpr


def _bind(prim, op, operand, indices, updates, numbers, sorted_, unique, mode) -> Array:
    update_jaxpr = None if op is None else _update_jaxpr(op, typeof(operand).dtype)
    return prim.bind(
        operand,
        indices,
        updates,
        update_jaxpr=update_jaxpr,
        update_consts=(),
        dimension_numbers=hashable(numbers),
        indices_are_sorted=bool(sorted_),
        unique_indices=bool(unique),
        mode=_Mode.from_any(mode),
    )


def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """A copy of the array with windows replaced by updates.

    Args:
      operand: array to update.
      scatter_indices: integers ``[..., n]``; each vector along the last axis is a window's start.
      updates: the new elements of the windows, of the operand's dtype.
      dimension_numbers: the correspondence of the axes.
      indices_are_sorted: promise that the index vectors are in lexicographic order.
      unique_indices: promise that no two windows overlap.
      mode: treatment of updates out of bounds, see :class:`GatherScatterMode`; they are dropped by
        default.

    Returns:
      An array of the operand's shape and dtype.

    If windows overlap, it is unspecified which update is written; the derivative is that of the
    written update.

    Raises:
      TypeError: if dtypes, shapes and dimension numbers are incompatible.
      ValueError: if the indices are not integers or the mode is unknown.

    The function is linear in the operand and the updates. Under ``vmap`` the mapped axis becomes
    a batch axis of the windows.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter(np.zeros(3), np.array([[1]]), np.array([5.0]), numbers).tolist()
    [0.0, 5.0, 0.0]
    """
    return _bind(
        scatter_p, None, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def _variant(
    prim: Primitive, op: Callable, name: str, does: str, example: float, more: str = ""
) -> Callable[..., Array]:
    """A scatter function that combines updates with the old elements.

    Args:
      does: end of the first line of its docstring.
      example: the element in the docstring's example, a 5 combined with a 2.
      more: a sentence on derivatives.
    """

    def combining(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:
        return _bind(
            prim, op, operand, scatter_indices, updates, dimension_numbers,
            indices_are_sorted, unique_indices, mode,
        )  # fmt: skip

    combining.__name__ = combining.__qualname__ = name
    combining.__doc__ = f"""A copy of the array with {does}.

    If windows overlap, all updates are applied, in an unspecified order.

    Args:
      operand: array to update.
      scatter_indices: integers ``[..., n]``; each vector along the last axis is a window's start.
      updates: elements of the windows, of the operand's dtype.
      dimension_numbers: the correspondence of the axes.
      indices_are_sorted: promise that the index vectors are in lexicographic order.
      unique_indices: promise that no two windows overlap.
      mode: treatment of updates out of bounds, see :class:`GatherScatterMode`; they are dropped by
        default.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      TypeError: if dtypes, shapes and dimension numbers are incompatible.
      ValueError: if the indices are not integers or the mode is unknown.

    {more or "The function is linear in the operand and the updates."}

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> {name}(np.array([5.0, 5.0]), np.array([[1]]), np.array([2.0]), numbers).tolist()
    [5.0, {example}]
    """
    return combining


scatter_add: Final = _variant(scatter_add_p, b.add, "scatter_add", "updates added to windows", 7.0)
scatter_sub: Final = _variant(
    scatter_sub_p, b.sub, "scatter_sub", "updates subtracted from windows", 3.0
)
scatter_mul: Final = _variant(
    scatter_mul_p, b.mul, "scatter_mul", "windows multiplied by updates", 10.0,
    "The derivative with respect to the updates requires ``unique_indices=True``.",
)  # fmt: skip
scatter_min: Final = _variant(
    scatter_min_p, b.min, "scatter_min", "the minima of windows and updates", 2.0,
    "Equal elements share the derivative equally.",
)  # fmt: skip
scatter_max: Final = _variant(
    scatter_max_p, b.max, "scatter_max", "the maxima of windows and updates", 5.0,
    "Equal elements share the derivative equally.",
)  # fmt: skip


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Shape = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """A copy of the array with a function applied to the elements of windows, once per window.

    Args:
      operand: array to update.
      scatter_indices: integers ``[..., n]``; each vector along the last axis is a window's start.
      func: elementwise function with the same input and output dtype.
      dimension_numbers: the correspondence of the axes, a :class:`ScatterDimensionNumbers`.
      update_shape: shape of hypothetical updates, which determines the size of the windows.
      indices_are_sorted: promise that the index vectors are in lexicographic order.
      unique_indices: promise that no two windows overlap.
      mode: treatment of windows out of bounds, see :class:`GatherScatterMode`; they are skipped
        by default.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      TypeError: if ``func`` changes the dtype, or closes over tracers.
      ValueError: if the indices are not integers or the mode is unknown.
      NotImplementedError: if it is differentiated: gather the elements, apply the function to
        them and scatter the results.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> square = lambda x: x * x
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> scatter_apply(x, np.array([[1]]), square, numbers, update_shape=(1,)).tolist()
    [1.0, 4.0, 3.0]
    """
    dtype = typeof(operand).dtype
    scalar = ShapedArray((), dtype)
    program = stage(lambda x, _: [func(x)], [scalar, scalar])
    check_for_elements("scatter_apply", program)
    if has_tracers(program.consts):
        raise TypeError(
            "the function given to scatter_apply closes over tracers; use constants, or gather, "
            "compute and scatter"
        )
    if [v.aval.strip_weak_type() for v in program.outvars] != [scalar]:
        raise TypeError(
            "the function given to scatter_apply must keep the dtype: got "
            f"{program.outvars[0].aval.str_short()} from {scalar.str_short()}"
        )
    updates = full(canonical_shape(update_shape, "scatter_apply"), 0, dtype)
    return scatter_p.bind(
        operand,
        scatter_indices,
        updates,
        update_jaxpr=program,
        update_consts=(),
        dimension_numbers=hashable(dimension_numbers),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=_Mode.from_any(mode),
    )


# Types and lowering


def _scatter_type(x, indices, updates, *, dimension_numbers, **_):
    window, inserted, index_map, x_batch, i_batch = dimension_numbers
    same_dtypes("scatter", (x, updates))
    check_indices("Scatter", x, indices, index_map, "scatter_dims_to_operand_dims")
    names = ("operand_batching_dims", "scatter_indices_batching_dims")
    check_axes("scatter", "inserted_window_dims", inserted, x.ndim)
    check_batching("Scatter", x, indices, x_batch, i_batch, names)
    check_disjoint("scatter", "inserted_window_dims", inserted, names[0], x_batch)
    check_disjoint("scatter", "scatter_dims_to_operand_dims", index_map, names[0], x_batch)
    ndim = indices.ndim - 1 + len(window)
    if updates.ndim != ndim:
        raise TypeError(f"Updates tensor must be of rank {ndim}; got {updates.ndim}.")
    check_axes("scatter", "update_window_dims", window, updates.ndim)
    in_window = without(range(x.ndim), (*inserted, *x_batch))
    if len(in_window) != len(window):
        size = len(window) + len(inserted) + len(x_batch)
        raise TypeError(
            f"Scatter op has window of size {size}; doesn't match operand of rank {x.ndim}."
        )
    for d, u in zip(in_window, window):
        if updates.shape[u] > x.shape[d]:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the "
                f"corresponding dimensions of operand. For dimension {u}, updates bound is "
                f"{updates.shape[u]}, operand bound is {x.shape[d]}."
            )
    outer = without(range(updates.ndim), window)
    for i, u in enumerate(outer):
        if updates.shape[u] != indices.shape[i]:
            raise TypeError(
                "Bounds of the scatter dimensions of updates must be the same as the bounds of the "
                f"corresponding dimensions of scatter indices. For scatter dimension {i}, updates "
                f"bound is {updates.shape[u]}, indices bound is {indices.shape[i]}."
            )
    return x


def _window_sizes(x_ndim: int, updates_shape, numbers: ScatterDimensionNumbers) -> tuple[int, ...]:
    """The size of a window along each axis of the operand."""
    sizes = iter([updates_shape[d] for d in numbers.update_window_dims])
    single = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    return tuple([1 if d in single else next(sizes) for d in range(x_ndim)])


def _lower_scatter(
    ctx, x, indices, updates, *,
    update_jaxpr, update_consts, dimension_numbers, indices_are_sorted, unique_indices, mode,
):  # fmt: skip
    x_aval, i_aval, u_aval = ctx.in_avals
    window, inserted, index_map, x_batch, i_batch = dimension_numbers
    indices, i_dtype = widened_indices(indices, i_aval)
    if mode is _Mode.CLIP and index_map:
        sizes = _window_sizes(x_aval.ndim, u_aval.shape, dimension_numbers)
        upper = [x_aval.shape[d] - sizes[d] for d in index_map]
        low = shaped.full(np.zeros((), i_dtype), i_aval.shape)
        indices = hlo.clamp(low, indices, bounds(upper, i_aval.shape, i_dtype))
    if i_aval.shape == x_aval.shape and i_dtype == x_aval.dtype and ctx.platform == "cpu":
        # XLA scatters in place. If the operand and the indices are the same value, XLA uses one
        # buffer for both, and reads indices that it has overwritten.
        other = np.dtype(np.int32 if i_dtype.itemsize == 8 else np.int64)
        indices = hlo.convert(mlir.tensor_type(i_aval.shape, other), indices)
    tail = len(tail_of(x_aval))
    numbers = hlo.ScatterDimensionNumbers.get(
        update_window_dims=[*window, *range(u_aval.ndim, u_aval.ndim + tail)],
        inserted_window_dims=list(inserted),
        input_batching_dims=list(x_batch),
        scatter_indices_batching_dims=list(i_batch),
        scattered_dims_to_operand_dims=list(index_map),
        index_vector_dim=i_aval.ndim - 1,
    )
    result = mlir.type_of(ctx.out_avals[0])
    op = hlo.ScatterOp(
        [result],
        [x],
        indices,
        [updates],
        numbers,
        indices_are_sorted=ir.BoolAttr.get(indices_are_sorted),
        unique_indices=ir.BoolAttr.get(unique_indices),
    )
    scalar = ir.RankedTensorType.get((), result.element_type)
    block = op.update_computation.blocks.append(scalar, scalar)
    with ir.InsertionPoint(block):
        old, new = block.arguments
        if update_jaxpr is not None:
            new = ctx.call(
                lambda *xs: eval_jaxpr(update_jaxpr, xs)[0],
                old,
                new,
                in_avals=[v.aval for v in update_jaxpr.invars],
            )
        hlo.return_([new])
    return op.result


def _batch_scatter(prim: Primitive) -> None:
    @prim.rule(batch)
    def _batch(
        axis, args, dims, *, dimension_numbers, unique_indices, indices_are_sorted, **params
    ):
        (x, indices, updates), (x_dim, i_dim, u_dim) = args, dims
        window, inserted, index_map, x_batch, i_batch = dimension_numbers
        x = move_axis(x, x_dim, 0, axis.size)
        updates = move_axis(updates, u_dim, 0, axis.size)
        inserted, index_map = past(0, inserted), past(0, index_map)
        window, x_batch = past(0, window), past(0, x_batch)
        if i_dim is None:
            window = (0, *window)  # each window includes the whole mapped axis
        else:
            indices = move_axis(indices, i_dim, 0, axis.size)
            x_batch, i_batch = (0, *x_batch), (0, *past(0, i_batch))
        out = prim.bind(
            x,
            indices,
            updates,
            dimension_numbers=ScatterDimensionNumbers(
                window, inserted, index_map, x_batch, i_batch
            ),
            unique_indices=unique_indices,
            indices_are_sorted=indices_are_sorted,
            **params,
        )
        return out, 0


for _p in (scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p):
    _p.rule(abstract)(_scatter_type)
    _p.rule(lower)(_lower_scatter)
    _batch_scatter(_p)


# Derivatives. The transpose of a scatter is a gather, and the transpose of a gather a scatter-add.


def _windows_of(x: Any, indices: Any, updates_shape, params: dict, fill: Any = None) -> Array:
    """The windows of an array that a scatter updates."""
    numbers = params["dimension_numbers"]
    return gather(
        x,
        indices,
        GatherDimensionNumbers(*numbers),
        _window_sizes(typeof(x).ndim, updates_shape, numbers),
        indices_are_sorted=params["indices_are_sorted"],
        mode=params["mode"],
        fill_value=fill,
    )


def _add_at(x: Any, indices: Any, updates: Any, params: dict) -> Array:
    """Updates added at the indices of another scatter."""
    return _bind(
        scatter_add_p, b.add, x, indices, updates, params["dimension_numbers"],
        params["indices_are_sorted"], params["unique_indices"], params["mode"],
    )  # fmt: skip


def _gather_back(ct, x: Any, indices: Any, *, dimension_numbers, unique_indices, mode, **params):
    if type(ct) is Zero:
        return [None, None]
    mode = _Mode.FILL_OR_DROP if mode is _Mode.ONE_HOT else mode
    zeros = instantiate(Zero(x.aval))
    out = _bind(
        scatter_add_p, b.add, zeros, indices, ct, ScatterDimensionNumbers(*dimension_numbers),
        params["indices_are_sorted"], unique_indices, mode,
    )  # fmt: skip
    return [out, None]


gather_p.rule(transpose)(_gather_back)


def _sum_like(prim: Primitive, sign: Callable) -> None:
    """Define the derivatives of a scatter that is jointly linear in operand and updates."""

    @prim.rule(jvp)
    def _jvp(primals, tangents, **params):
        out = prim.bind(*primals, **params)
        (_, indices, _), (tx, _, tu) = primals, tangents
        if type(tx) is Zero and type(tu) is Zero:
            return out, Zero.like(out)
        return out, prim.bind(instantiate(tx), indices, instantiate(tu), **params)

    @prim.rule(transpose)
    def _transpose(ct, x, indices, updates, **params):
        if type(ct) is Zero:
            return [None, None, None]
        du = None
        if is_linear(updates):
            du = sign(_windows_of(ct, indices, updates.aval.shape, params, fill=0))
        return [ct if is_linear(x) else None, None, du]


_sum_like(scatter_add_p, lambda t: t)
_sum_like(scatter_sub_p, b.neg)


@scatter_mul_p.rule(jvp)
def _scatter_mul_jvp(primals, tangents, **params):
    out = scatter_mul_p.bind(*primals, **params)
    (x, indices, updates), (tx, _, tu) = primals, tangents
    total: Any = Zero.like(out)
    if type(tx) is not Zero:
        total = scatter_mul_p.bind(tx, indices, updates, **params)
    if type(tu) is not Zero:
        if not params["unique_indices"]:
            raise NotImplementedError(
                "scatter_mul gradients are only implemented if `unique_indices=True`: with "
                "overlapping windows the derivative by one update needs the product of the others"
            )
        moved = b.mul(x, _add_at(full_like(x, 0), indices, tu, params))
        total = moved if type(total) is Zero else b.add(total, moved)
    return out, total


@scatter_mul_p.rule(transpose)
def _scatter_mul_transpose(ct, x, indices, updates, **params):
    if type(ct) is Zero:
        return [None, None, None]
    assert is_linear(x) and not is_linear(updates)
    return [scatter_mul_p.bind(ct, indices, updates, **params), None, None]


@scatter_p.rule(jvp)
def _scatter_jvp(primals, tangents, *, update_jaxpr, **params):
    if update_jaxpr is not None:
        raise NotImplementedError(
            "scatter_apply has no derivative: gather the elements, apply the function to them and "
            "scatter the results"
        )
    out = scatter_p.bind(*primals, update_jaxpr=update_jaxpr, **params)
    (x, indices, updates), (tx, _, tu) = primals, tangents
    if type(tx) is Zero and type(tu) is Zero:
        return out, Zero.like(out)
    tx, tu = instantiate(tx), instantiate(tu)
    if params["unique_indices"]:
        return out, scatter_p.bind(tx, indices, tu, update_jaxpr=None, **params)
    # The numbers of the updates, scattered in the same way, identify the written updates. Only
    # written updates have a derivative.
    place, winner = _winners(x, indices, updates, params)
    unchanged = select_n(eq(place, np.uint32(0)), full_like(tx, 0), tx)
    won = select_n(
        eq(_windows_of(place, indices, winner.shape, params), winner), full_like(tu, 0), tu
    )
    return out, _add_at(unchanged, indices, won, params)


def _winners(x: Any, indices: Any, updates: Any, params: dict) -> tuple[Array, Array]:
    """The number of the update written to each element of the result, and of each update."""
    numbers, u = params["dimension_numbers"], typeof(updates)
    outer = without(range(u.ndim), numbers.update_window_dims)
    sizes = [u.shape[d] for d in outer]
    count = broadcasted_iota(np.uint32, (int(np.prod(sizes)),), 0)
    ids = broadcast_in_dim(b.add(reshape(count, sizes), np.uint32(1)), u.shape, outer)
    none = full(typeof(x).shape, 0, np.uint32)
    return scatter_p.bind(none, indices, ids, update_jaxpr=None, **params), ids


@scatter_p.rule(transpose)
def _scatter_transpose(ct, x, indices, updates, *, update_jaxpr, **params):
    if type(ct) is Zero:
        return [None, None, None]
    dx = du = None
    shape = updates.aval.shape if is_linear(updates) else typeof(updates).shape
    if is_linear(x):
        none = full(shape, 0, typeof(ct).dtype)
        dx = scatter_p.bind(ct, indices, none, update_jaxpr=None, **params)
    if is_linear(updates):
        du = _windows_of(ct, indices, shape, params, fill=0)
    return [dx, None, du]


def _extremum_jvp(prim: Primitive) -> None:
    """Define the JVP of a scatter of extrema, in which equal elements share the derivative."""

    @prim.rule(jvp)
    def _jvp(primals, tangents, **params):
        out = prim.bind(*primals, **params)
        (x, indices, updates), (tx, _, tu) = primals, tangents
        if type(tx) is Zero and type(tu) is Zero:
            return out, Zero.like(out)
        shape, dtype = typeof(updates).shape, typeof(updates).dtype
        one, zeros, ones = np.ones((), dtype)[()], full(shape, 0, dtype), full(shape, 1, dtype)
        nowhere = full(typeof(x).shape, 0, dtype)

        def windows(y):
            return _windows_of(y, indices, shape, params)

        best = windows(out)
        won, stayed = eq(updates, best), eq(windows(x), best)
        winners = windows(_add_at(nowhere, indices, select_n(won, zeros, ones), params))
        writers = windows(_add_at(nowhere, indices, ones, params))
        shared = b.div(one, b.add(winners, one))
        u_part = select_n(won, zeros, select_n(stayed, b.div(one, winners), shared))
        x_part = b.div(b.sub(select_n(stayed, zeros, shared), one), writers)
        tx, tu = instantiate(tx), instantiate(tu)
        change = b.add(b.mul(windows(tx), x_part), b.mul(tu, u_part))
        return out, _add_at(tx, indices, change, params)


_extremum_jvp(scatter_min_p)
_extremum_jvp(scatter_max_p)


def _scatter_samples(prim: Primitive, fun: Callable, repeated: bool = True) -> None:
    """Samples of whole rows, with different indices and with repeated ones outside bounds."""
    rows = ScatterDimensionNumbers((1,), (0,), (0,))

    def unique(x, indices, updates):
        return fun(x, indices, updates, rows, unique_indices=True, mode=_Mode.CLIP)

    def dropped(x, indices, updates):
        return fun(x, indices, updates, rows, mode=_Mode.FILL_OR_DROP)

    @prim.rule(samples)
    def _samples():
        different = i32(2, 1, make=lambda rng, shape: rng.permutation(3)[:2].reshape(shape))
        yield Sample(f32(3, 2), different, f32(2, 2)).set(call=unique)
        yield Sample(bf16(3, 0), different, bf16(2, 0)).set(call=unique)
        if repeated:
            index = i32(4, 1, low=-1, high=3)
            yield Sample(f32(3, 2), index, f32(4, 2)).set(call=dropped)


_scatter_samples(scatter_p, scatter)
_scatter_samples(scatter_add_p, scatter_add)
_scatter_samples(scatter_sub_p, scatter_sub)
_scatter_samples(scatter_min_p, scatter_min)
_scatter_samples(scatter_max_p, scatter_max)
_scatter_samples(scatter_mul_p, scatter_mul, repeated=False)
