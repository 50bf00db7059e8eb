"""Facts that follow from a kernel's index maps and program, such as parallel dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from primax_core.extend import Jaxpr, Var, dce_jaxpr, nbytes, stage

from .._block_mapping import INDEX, BlockMapping, Extent
from .._kernel import Kernel
from .folding import eval_folded


class Facts(NamedTuple):
    """Facts about a kernel.

    Attributes:
      parallel: for each dimension of the grid, whether its steps are independent.
      reasons: for each dimension, why it is parallel or sequential.
      reads_outputs: for each result, whether the block's former contents are used.
      live_bytes: bytes of the values that one step holds at once.
    """

    parallel: tuple[bool, ...]
    reasons: tuple[str, ...]
    reads_outputs: tuple[bool, ...]
    live_bytes: int


def facts_of(kernel: Kernel) -> Facts:
    """The facts about a kernel."""
    rank, n_in = len(kernel.grid), len(kernel.prefetched) + len(kernel.inputs)
    n_state = len(kernel.outputs) + len(kernel.scratch)
    jaxpr = kernel.discharged
    used = _used(jaxpr, rank + n_in, n_state)
    reads_outputs = tuple(used[: len(kernel.outputs)])
    reasons = [_moves(kernel, d) for d in range(rank)]
    if kernel.communicates:
        reasons = ["sequential: steps communicate with other devices"] * rank
    elif any(used[len(kernel.outputs) :]):
        reasons = _without_scratch(kernel, reasons)
    parallel = tuple(not reason.startswith("sequential") for reason in reasons)
    return Facts(parallel, tuple(reasons), reads_outputs, live_bytes(jaxpr))


def sequential_facts(kernel: Kernel) -> Facts:
    """The facts about a kernel whose steps run one after the other."""
    rank, n_in = len(kernel.grid), len(kernel.prefetched) + len(kernel.inputs)
    used = _used(kernel.discharged, rank + n_in, len(kernel.outputs))
    why = "sequential: a size of the grid is computed"
    return Facts((False,) * rank, (why,) * rank, tuple(used), live_bytes(kernel.discharged))


def _moves(kernel: Kernel, d: int) -> str:
    """The reason why a dimension is parallel (blocks of results move with it) or sequential."""
    for m in kernel.outputs:
        if axis_of(m, d, kernel.grid) is None:
            return f"sequential: {m.name} does not move with it alone"
    if kernel.semantics is not None and kernel.semantics[d] == "arbitrary" and kernel.scratch:
        return "sequential: declared"
    return PARALLEL


PARALLEL: Final = "parallel: the blocks of all results move with it alone"
"""The reason why a dimension is parallel."""


def axis_of(mapping: BlockMapping, d: int, grid: Sequence[int]) -> int | None:
    """The axis whose block has the index ``grid[d]``, if its blocks cover the axis exactly."""
    if not mapping.is_plain:
        return None
    axes = [
        axis for axis, form in enumerate(mapping.forms)
        if form is None or (form.coefficients and form.coefficients[d])
    ]  # fmt: skip
    if len(axes) != 1:
        return None
    (axis,) = axes
    form, extent = mapping.forms[axis], mapping.extents[axis]
    if form is None or form.dimension != d or extent.step != extent.size or any(extent.padding):
        return None
    return axis if count(mapping.aval.shape[axis], extent) == grid[d] else None


def count(size: int, extent: Extent) -> int:
    """The number of blocks along an axis, the last of which may be partial."""
    return -(-size // max(extent.size, 1))


def _without_scratch(kernel: Kernel, reasons: list[str]) -> list[str]:
    """Dimensions are parallel if scratch memory is written before it is read in their first step.

    Scratch memory then carries contents along the inner, sequential dimensions only.
    """
    rank = len(kernel.grid)
    candidates = [r == PARALLEL for r in reasons]
    inner = candidates.index(False) if False in candidates else rank
    for n in range(inner, 0, -1):
        if _initialises(kernel, n) or _declared(kernel, n):
            break
    else:
        n = 0
    why = "sequential: scratch memory may carry contents from step to step"
    return [r if d < n or r != PARALLEL else why for d, r in enumerate(reasons)]


def _declared(kernel: Kernel, n: int) -> bool:
    return kernel.semantics is not None and all(s == "parallel" for s in kernel.semantics[:n])


def _initialises(kernel: Kernel, n: int) -> bool:
    """True if scratch memory is not read where the indices of the dimensions from ``n`` are 0."""
    rank = len(kernel.grid)
    jaxpr = kernel.discharged
    avals = [v.aval for v in jaxpr.invars]

    def first(*args: object) -> list[object]:
        indices = [*args[:n], *[np.int32(0)] * (rank - n)]
        return eval_folded(jaxpr, [*indices, *args[n:]])

    program = stage(first, [INDEX] * n + avals[rank:])
    start = n + len(avals) - rank - len(kernel.scratch)
    return not any(_used(program, start, len(kernel.scratch), passed_on=True))


def _used(jaxpr: Jaxpr, start: int, n: int, passed_on: bool = False) -> list[bool]:
    """A mask of the ``n`` arguments that the results of a jaxpr depend on.

    Args:
      passed_on: whether an argument that is only returned as it is counts as used.
    """
    arguments = jaxpr.invars[start : start + n]
    if passed_on:
        needed = [True] * len(jaxpr.outvars)
    else:
        needed = [v not in arguments for v in jaxpr.outvars]
    _, used = dce_jaxpr(jaxpr, needed)
    return list(used[start : start + n])


def live_bytes(jaxpr: Jaxpr) -> int:
    """The most bytes that results of a jaxpr's operations occupy at once."""
    last: dict[Var, int] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        last.update({v: i for v in eqn.invars if type(v) is Var})
    last.update({v: len(jaxpr.eqns) for v in jaxpr.outvars if type(v) is Var})
    live: dict[Var, int] = {}
    most = 0
    for i, eqn in enumerate(jaxpr.eqns):
        live.update({v: nbytes(v.aval) for v in eqn.outvars if last.get(v, -1) > i})
        most = max(most, sum(live.values()))
        live = {v: size for v, size in live.items() if last[v] > i}
    return most


def lanes_of(kernel: Kernel, facts: Facts) -> tuple[int, ...]:
    """The number of steps of each dimension that are computed at once."""
    sizes = [n if p else 1 for n, p in zip(kernel.grid, facts.parallel)]
    total = math.prod(sizes)
    sequential = math.prod(n for n, p in zip(kernel.grid, facts.parallel) if not p)
    bytes_each = max(facts.live_bytes, 1)
    if sequential == 1 or total * bytes_each <= 2 * BUDGET:
        return tuple(sizes)
    left = max(BUDGET // bytes_each, 1)
    lanes = [1] * len(sizes)
    for d in reversed(range(len(sizes))):
        lanes[d] = max(f for f in range(1, min(left, sizes[d]) + 1) if sizes[d] % f == 0)
        left //= lanes[d]
    return tuple(lanes)


BUDGET = 4 << 20
"""Bytes of temporaries for the steps that are computed at once."""
