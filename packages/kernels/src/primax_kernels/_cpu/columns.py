"""One column of a grid: the sequential steps at one position of the parallel dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import Jaxpr, discharge_jaxpr, eval_jaxpr, walk

from .._grid import indices_of
from .._kernel import Kernel
from .._semaphores import first_value
from .accumulation import Accumulation, sums_of
from .facts import Facts
from .folding import eval_folded
from .operands import Layout, read_block, starts_of, unwritten, write_block


class Plan(NamedTuple):
    """Strategy for a kernel.

    Attributes:
      facts: which dimensions are parallel, and what steps read.
      lanes: how many steps of each dimension are computed at once.
      inputs, outputs: layouts of the operands and the results.
      accumulation: the sums that the sequential steps are, if they are sums.
    """

    kernel: Kernel
    facts: Facts
    lanes: tuple[int, ...]
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    accumulation: Accumulation | None


Column = Callable[..., list[Any]]
_State = tuple[list[Any], list[Any]]


def column_of(plan: Plan, prefetched: Sequence[Any]) -> Column:
    """The function ``(indices, inputs, initial) -> outputs`` of a column.

    ``indices`` are those of the parallel dimensions, in order; ``initial`` are the contents of the
    results before the first step, ``None`` where there are none.
    """
    if plan.accumulation is not None:
        return _sum_of_steps(plan, plan.accumulation, prefetched)
    kernel, facts = plan.kernel, plan.facts
    sequential = [d for d, p in enumerate(facts.parallel) if not p]
    sizes = [kernel.grid[d] for d in sequential]
    total = math.prod(sizes)
    step = step_of(plan, prefetched)

    def column(indices: Sequence[Any], inputs: Sequence[Any], initial: Sequence[Any]) -> list[Any]:
        outs = [
            unwritten(o.column_shape, o.mapping.aval.dtype) if x is None else x
            for o, x in zip(plan.outputs, initial)
        ]
        scratch = [lax.full(a.shape, first_value(a), a.dtype) for a in kernel.scratch]

        def at(numbers: Sequence[Any], state: _State) -> _State:
            here = iter(indices)
            own = iter(numbers)
            ids = [next(here) if p else next(own) for p in facts.parallel]
            return step(ids, inputs, state)

        state = outs, scratch
        begin = 0
        if total and (total == 1 or _decides(kernel.discharged)):
            state = at([np.int32(0)] * len(sizes), state)
            begin = 1
        if total > begin:

            def body(t: Any, state: _State) -> _State:
                return at(indices_of(t, sizes), state)

            state = lax.fori_loop(np.int32(begin), np.int32(total), body, state)
        return list(state[0])

    return column


def step_of(plan: Plan, prefetched: Sequence[Any]) -> Callable[..., _State]:
    """The function ``(indices, inputs, state) -> state`` of a step."""
    kernel = plan.kernel
    maps = [discharge_jaxpr(o.mapping.index_map) for o in (*plan.inputs, *plan.outputs)]
    n_in = len(plan.inputs)
    jaxpr, first = kernel.discharged, len(prefetched) + n_in
    untouched = [
        jaxpr.outvars[first + i] is jaxpr.invars[len(kernel.grid) + first + i]
        for i in range(len(plan.outputs))
    ]

    def starts(i: int, layout: Layout, ids: Sequence[Any]) -> list[Any]:
        index = eval_folded(maps[i], [*ids, *prefetched])
        return starts_of(layout, index[: len(layout.mapping.index_map.outvars)])

    def step(ids: Sequence[Any], inputs: Sequence[Any], state: _State) -> _State:
        outs, scratch = state
        blocks = [
            read_block(x, layout, starts(i, layout, ids))
            for i, (layout, x) in enumerate(zip(plan.inputs, inputs))
        ]
        places = [starts(n_in + i, layout, ids) for i, layout in enumerate(plan.outputs)]
        former = [
            read_block(x, layout, place)
            if reads
            else unwritten(layout.mapping.block_shape, x.dtype)
            for x, layout, place, reads in zip(outs, plan.outputs, places, plan.facts.reads_outputs)
        ]
        finals = eval_folded(
            kernel.discharged, [*ids, *prefetched, *blocks, *former, *scratch]
        )[len(prefetched) + n_in :]  # fmt: skip
        written = [
            x if same else write_block(x, layout, place, block)
            for x, layout, place, block, same in zip(outs, plan.outputs, places, finals, untouched)
        ]
        return written, list(finals[len(outs) :])

    return step


def _sum_of_steps(plan: Plan, sums: Accumulation, prefetched: Sequence[Any]) -> Column:
    """The function of a column whose steps add terms."""
    kernel, k = plan.kernel, sums.dimension
    maps = [discharge_jaxpr(o.mapping.index_map) for o in plan.inputs]
    steps, n_grid = kernel.grid[k], len(kernel.grid)

    def read(args: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
        """The blocks of a step, from operands that have its part of the axis that moves."""
        blocks = []
        for x, layout, index_map, axis in zip(xs, plan.inputs, maps, sums.axes):
            places = starts_of(layout, eval_folded(index_map, args)[: len(layout.split)])
            if axis is not None:
                places[axis] = np.int32(0)
            blocks.append(read_block(x, layout, places))
        return blocks

    def split(x: Any, layout: Layout, axis: int | None) -> Any:
        if axis is None:
            return x
        size = layout.mapping.extents[axis].size
        return lax.reshape(x, (*x.shape[:axis], steps, size, *x.shape[axis + 1 :]))

    def column(indices: Sequence[Any], inputs: Sequence[Any], initial: Sequence[Any]) -> list[Any]:
        here = iter(indices)
        ids = [np.int32(0) if d == k else next(here) for d in range(n_grid)]
        args = [*ids, *prefetched]
        operands = [split(*row) for row in zip(inputs, plan.inputs, sums.axes)]
        totals = sums_of(sums, steps, args, operands, read)

        def blocks_at(step: int) -> list[Any]:
            at = [np.int32(step) if d == k else i for d, i in enumerate(ids)]
            own = [
                x if axis is None else lax.index_in_dim(x, step, axis, keepdims=False)
                for x, axis in zip(operands, sums.axes)
            ]
            blocks = read([*at, *prefetched], own)
            state = [unwritten(v.aval.shape, v.aval.dtype) for v in sums.initial.invars]
            return [*at, *prefetched, *blocks, *state[len(at) + len(prefetched) + len(blocks) :]]

        starts = eval_jaxpr(sums.initial, blocks_at(0))
        totals = [lax.add(a, b) for a, b in zip(starts, totals)]
        outs = eval_jaxpr(sums.finish, [*blocks_at(steps - 1), *totals])
        return [
            lax.reshape(x, tuple(e.size for e in o.mapping.extents))
            for x, o in zip(outs, plan.outputs)
        ]

    return column


def _decides(jaxpr: Jaxpr) -> bool:
    """True if a first step computed apart saves conditions."""
    return any(eqn.primitive.name == "cond" for eqn in walk(jaxpr))
