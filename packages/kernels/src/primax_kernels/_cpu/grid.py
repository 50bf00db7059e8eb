"""All columns of a grid: as many at once as fit the memory, in a loop over the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import lax, vmap
from primax_core.extend.runtime import bounded_cache

from .._grid import indices_of
from .._kernel import Kernel
from .accumulation import accumulation_of
from .columns import Column, Plan, column_of
from .facts import facts_of, lanes_of
from .operands import Layout, cut, layout_of, padded, unwritten


class _Axis(NamedTuple):
    """Part of an axis of an operand: the steps of the loop, the steps computed at once, a block."""

    part: str  # "loop", "lanes" or "block"
    dimension: int | None
    size: int


def plan_of(kernel: Kernel) -> Plan:
    """The strategy for a kernel, from what is known about it; computed once for equal kernels."""
    plan = _plans.get(kernel)
    if plan is None:
        with kernel.without_placements():
            plan = _plans[kernel] = _plan(kernel)
    return plan


_plans: Final = bounded_cache(1024)


def _plan(kernel: Kernel) -> Plan:
    facts = facts_of(kernel)
    inputs = tuple(layout_of(m, kernel.grid, facts.parallel) for m in kernel.inputs)
    outputs = tuple(layout_of(m, kernel.grid, facts.parallel) for m in kernel.outputs)
    sums = None if kernel.communicates else accumulation_of(kernel, facts)
    if any(o.column_shape != tuple(e.size for e in o.mapping.extents) for o in outputs):
        sums = None
    parallel = [n if p else 1 for n, p in zip(kernel.grid, facts.parallel)]
    lanes = lanes_of(kernel, facts) if sums is None else tuple(parallel)
    return Plan(kernel, facts, lanes, inputs, outputs, sums)


def run(plan: Plan, args: Sequence[Any]) -> list[Any]:
    """The results of a kernel, as operations on arrays."""
    kernel = plan.kernel
    n = len(kernel.prefetched)
    prefetched, operands = args[:n], args[n:]
    if math.prod(kernel.grid) == 0:
        return _untouched(kernel, args)
    inputs = [_split(padded(x, o), o, plan) for x, o in zip(operands, plan.inputs)]
    initial: list[Any] = [None] * len(plan.outputs)
    for i, o in kernel.aliases:
        layout = plan.outputs[o]
        initial[o] = _split(padded(args[i], layout), layout, plan)
    column = column_of(plan, prefetched)
    results = _chunks(plan, column, inputs, initial)
    return [
        cut(lax.reshape(x, _padded_shape(o)), o) for x, o in zip(results, plan.outputs)
    ]  # fmt: skip


def _untouched(kernel: Kernel, args: Sequence[Any]) -> list[Any]:
    """Results of a grid without steps."""
    aliased = {o: args[i] for i, o in kernel.aliases}
    return [
        aliased.get(o, unwritten(a.shape, a.dtype)) for o, a in enumerate(kernel.out_avals)
    ]  # fmt: skip


def _padded_shape(layout: Layout) -> tuple[int, ...]:
    return tuple(
        lo + n + hi for n, (lo, hi) in zip(layout.mapping.aval.shape, layout.outside)
    )  # fmt: skip


# Axes


def _axes(layout: Layout, plan: Plan) -> list[_Axis]:
    """The axes of an operand whose parallel dimensions are split off."""
    axes: list[_Axis] = []
    for extent, d, size in zip(layout.mapping.extents, layout.split, _padded_shape(layout)):
        if d is None:
            axes.append(_Axis("block", None, size))
            continue
        lanes = plan.lanes[d]
        if plan.kernel.grid[d] // lanes > 1:
            axes.append(_Axis("loop", d, plan.kernel.grid[d] // lanes))
        if lanes > 1:
            axes.append(_Axis("lanes", d, lanes))
        if extent.size > 1:  # axes of one element may have layouts of their own, which cost copies
            axes.append(_Axis("block", d, extent.size))
    return axes


def _with_all_axes(plan: Plan, column: Column) -> Column:
    """The column function of parts that lack the axes of blocks of one element."""

    def run(indices: Any, views: Any, former: Any) -> list[Any]:
        views = [_reshaped(x, o.column_shape) for x, o in zip(views, plan.inputs)]
        former = [
            None if x is None else _reshaped(x, o.column_shape)
            for x, o in zip(former, plan.outputs)
        ]
        results = column(indices, views, former)
        shapes = [tuple(a.size for a in _axes(o, plan) if a.part == "block") for o in plan.outputs]
        return [_reshaped(x, shape) for x, shape in zip(results, shapes)]

    return run


def _reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.shape == shape else lax.reshape(x, shape)


def _split(x: Any, layout: Layout, plan: Plan) -> Any:
    return lax.reshape(x, tuple(a.size for a in _axes(layout, plan)))


# Batches of columns


def _at_once(plan: Plan, column: Column, n_initial: int) -> Any:
    """The column function mapped over the steps that are computed at once."""
    parallel = [d for d, p in enumerate(plan.facts.parallel) if p]
    layouts = [*plan.inputs, *plan.outputs]
    remaining: set[int] = set()

    def position(layout: Layout, d: int) -> int | None:
        axes = [
            a for a in _axes(layout, plan)
            if a.part == "block" or (a.part == "lanes" and a.dimension in remaining)
        ]  # fmt: skip
        places = [i for i, a in enumerate(axes) if a.part == "lanes" and a.dimension == d]
        return places[0] if places else None

    mapped: Any = _with_all_axes(plan, column)
    for d in reversed([d for d in parallel if plan.lanes[d] > 1]):
        remaining.add(d)
        places = [position(layout, d) for layout in layouts]
        inputs, outputs = places[: len(plan.inputs)], places[len(plan.inputs) :]
        mapped = vmap(
            mapped,
            in_axes=([0 if p == d else None for p in parallel], inputs, outputs),
            out_axes=outputs,
            axis_size=plan.lanes[d],
        )
    return mapped


def _chunks(
    plan: Plan, column: Column, inputs: Sequence[Any], initial: Sequence[Any]
) -> Sequence[Any]:
    """Results for all columns, with the axes of `_axes`."""
    kernel, lanes = plan.kernel, plan.lanes
    parallel = [d for d, p in enumerate(plan.facts.parallel) if p]
    loop = [d for d in parallel if kernel.grid[d] // lanes[d] > 1]
    mapped = _at_once(plan, column, len(initial))

    def chunk(numbers: dict[int, Any]) -> list[Any]:
        indices = [_indices(lanes[d], numbers.get(d)) for d in parallel]
        views = [_select(x, o, plan, numbers) for x, o in zip(inputs, plan.inputs)]
        former = [
            None if x is None else _select(x, o, plan, numbers)
            for x, o in zip(initial, plan.outputs)
        ]
        return mapped(indices, views, former)

    if not loop:
        return chunk({})
    sizes = [kernel.grid[d] // lanes[d] for d in loop]

    def body(t: Any, results: list[Any]) -> list[Any]:
        numbers = dict(zip(loop, indices_of(t, sizes)))
        return [
            _put(x, block, o, plan, numbers)
            for x, block, o in zip(results, chunk(numbers), plan.outputs)
        ]

    empty = [
        lax.full(tuple(a.size for a in _axes(o, plan)), 0, o.mapping.aval.dtype)
        for o in plan.outputs
    ]
    return lax.fori_loop(np.int32(0), np.int32(math.prod(sizes)), body, empty)


def _indices(lanes: int, number: Any) -> Any:
    """Indices of the grid along one dimension, for the steps that are computed at once."""
    first = np.int32(0) if number is None else lax.mul(number, np.int32(lanes))
    if lanes == 1:
        return first
    steps = lax.iota(np.int32, lanes)
    return steps if number is None else lax.add(steps, lax.broadcast(first, (lanes,)))


def _select(x: Any, layout: Layout, plan: Plan, numbers: dict[int, Any]) -> Any:
    """The part of an operand for one round of the loop."""
    axes = _axes(layout, plan)
    for i in reversed(range(len(axes))):
        if axes[i].part == "loop":
            x = lax.dynamic_index_in_dim(x, numbers[axes[i].dimension], axis=i, keepdims=False)
    return x


def _put(x: Any, block: Any, layout: Layout, plan: Plan, numbers: dict[int, Any]) -> Any:
    """The results with the part of one round of the loop."""
    axes = _axes(layout, plan)
    shape = tuple(1 if a.part == "loop" else a.size for a in axes)
    starts = [numbers[a.dimension] if a.part == "loop" else np.int32(0) for a in axes]
    return lax.dynamic_update_slice(x, lax.reshape(block, shape), starts)
