"""``explain_kernel``: blocks, traffic, memory and parallel dimensions of kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from primax_core import make_jaxpr
from primax_core.extend import Jaxpr, dce_jaxpr, nbytes, summarize

from ._affine import LETTERS
from ._block_mapping import BlockMapping
from ._call import traced_form
from ._costs import costs_of
from ._cpu.columns import Plan
from ._cpu.grid import plan_of
from ._kernel import Kernel
from ._linear_calls import running_equations
from ._primitive import pallas_call_p
from ._transformations import TransformationReport, transformations_of


@dataclass(frozen=True)
class BlockReport:
    """Blocks of an operand or result.

    Attributes:
      name: the operand, such as ``in_specs[0]``.
      array, block: the type of the array, and of the reference that a step receives.
      index: the index of the block, an entry for each axis; ``"?"``: not affine.
      moves: the dimensions of the grid with which the block moves.
      fetches: how often the block changes over the steps, at most.
      bytes: ``fetches`` times the bytes of a block.
    """

    name: str
    array: str
    block: str
    index: tuple[str, ...]
    moves: tuple[int, ...]
    fetches: int
    bytes: int


@dataclass(frozen=True)
class DimensionReport:
    """A dimension of the grid.

    Attributes:
      size: the number of steps.
      parallel: whether its steps are independent.
      reason: why, or why not.
      at_once: the number of steps that a CPU computes together.
    """

    size: int
    parallel: bool
    reason: str
    at_once: int


@dataclass(frozen=True)
class KernelReport:
    """A kernel of a function.

    Attributes:
      name, source: name of the kernel; name, file and line of its function.
      called_at: the line of the call.
      dimensions: the dimensions of the grid.
      blocks: blocks of the operands, then of the results.
      scratch_bytes: bytes of the scratch memory.
      live_bytes: the most bytes that the values of a step occupy at once, blocks not included.
      flops, transcendentals: operations of all steps; the most expensive branch of each condition
        counts.
      strategy: the form of the compiled program on a CPU.
      transformations: what ``vmap``, ``jvp`` and ``grad`` make of the kernel.
    """

    name: str
    source: str
    called_at: str
    dimensions: tuple[DimensionReport, ...]
    blocks: tuple[BlockReport, ...]
    scratch_bytes: int
    live_bytes: int
    flops: int
    transcendentals: int
    strategy: str
    transformations: tuple[TransformationReport, ...]

    @property
    def steps(self) -> int:
        """The number of steps."""
        return math.prod(d.size for d in self.dimensions)

    @property
    def traffic(self) -> int:
        """Bytes of blocks that are read and written, if a block that does not change is kept."""
        return sum(b.bytes for b in self.blocks)

    def __str__(self) -> str:
        grid = " x ".join(str(d.size) for d in self.dimensions) or "1"
        lines = [f"kernel {self.source}, called at {self.called_at}", f"  grid: {grid} steps"]
        for i, d in enumerate(self.dimensions):
            at_once = f", {d.at_once} at once" if d.parallel else ""
            lines.append(f"    {LETTERS[i % 26]}: {d.size}, {d.reason}{at_once}")
        lines.append("  blocks:")
        for b in self.blocks:
            lines.append(
                f"    {b.name}: {b.block} of {b.array} at ({', '.join(b.index)}), "
                f"{b.fetches} fetches, {_size(b.bytes)}"
            )
        lines += [
            f"  traffic: {_size(self.traffic)}",
            f"  memory of a step: {_size(self.live_bytes)}, scratch {_size(self.scratch_bytes)}",
            f"  operations: {self.flops} flops, {self.transcendentals} transcendentals",
            f"  on a CPU: {self.strategy}",
            *(f"  {t}" for t in self.transformations),
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class KernelExplanation:
    """The kernels of a function: ``print`` it, or read ``kernels``."""

    kernels: tuple[KernelReport, ...]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.kernels)) or "no kernels"

    __repr__ = __str__


def explain_kernel(fun: Callable[..., Any], *args: Any) -> KernelExplanation:
    """The blocks, traffic, memory and parallel dimensions of kernels, without running them.

    Args:
      fun: what `pallas_call` returns, or a function of arrays that calls kernels.
      args: its arguments, or their shapes and dtypes (``ShapeDtypeStruct``).

    Raises:
      NotImplementedError: for a kernel whose grid has a computed size.
      The errors of tracing ``fun``.

    >>> import numpy as np
    >>> from primax_core import ShapeDtypeStruct
    >>> from primax_kernels import BlockSpec, pallas_call
    >>> def double(x, out):
    ...     out[...] = 2 * x[...]
    >>> halves = BlockSpec((4,), lambda i: (i,))
    >>> x = ShapeDtypeStruct((8,), np.float32)
    >>> call = pallas_call(double, x, grid=2, in_specs=[halves], out_specs=halves)
    >>> (kernel,) = explain_kernel(call, x).kernels
    >>> kernel.dimensions[0].reason, kernel.traffic
    ('parallel: the blocks of all results move with it alone', 64)
    """
    reports = []
    for eqn in running_equations(make_jaxpr(traced_form(fun))(*args)):
        if eqn.primitive is pallas_call_p:
            if eqn.params["kernel"].dynamic:
                raise NotImplementedError(
                    f"explain_kernel: the kernel {eqn.params['kernel'].source} has a grid of "
                    "computed size, so that its traffic is unknown: pass integers"
                )
            reports.append(_report(plan_of(eqn.params["kernel"]), summarize(eqn.source)))
    return KernelExplanation(tuple(reports))


def _report(plan: Plan, called_at: str) -> KernelReport:
    kernel, facts = plan.kernel, plan.facts
    dimensions = tuple(
        DimensionReport(size, parallel, reason, lanes)
        for size, parallel, reason, lanes in zip(
            kernel.grid, facts.parallel, facts.reasons, plan.lanes
        )
    )
    steps = math.prod(kernel.grid)
    flops, transcendentals = costs_of(kernel.discharged)
    return KernelReport(
        kernel.name, kernel.source, called_at, dimensions,
        tuple(_blocks(m, kernel) for m in (*kernel.inputs, *kernel.outputs)),
        sum(nbytes(a.inner_aval) for a in kernel.scratch), facts.live_bytes,
        steps * flops, steps * transcendentals, _strategy(plan),
        transformations_of(kernel),
    )  # fmt: skip


def _blocks(mapping: BlockMapping, kernel: Kernel) -> BlockReport:
    moves = tuple(d for d in _used_indices(mapping.discharged_map, len(kernel.grid)))
    moves = tuple(d for d in moves if kernel.grid[d] > 1)
    # In row-major order a block stays while only the dimensions behind the last of these change.
    fetches = math.prod(kernel.grid[: moves[-1] + 1]) if moves else min(math.prod(kernel.grid), 1)
    block = mapping.ref_aval.inner_aval
    return BlockReport(
        mapping.name, str(mapping.aval), str(block), mapping.index_texts,
        moves, fetches, fetches * int(nbytes(block)),
    )  # fmt: skip


def _used_indices(index_map: Jaxpr, rank: int) -> Sequence[int]:
    """The dimensions that an index map uses."""
    n = len(index_map.outvars) - (len(index_map.invars) - rank)
    results = [i < n for i in range(len(index_map.outvars))]
    _, used = dce_jaxpr(index_map, results)
    return [d for d in range(rank) if used[d]]


def _strategy(plan: Plan) -> str:
    grid, facts = plan.kernel.grid, plan.facts
    sequential = [d for d, p in enumerate(facts.parallel) if not p and grid[d] > 1]
    chunks = math.prod(n // k for n, k, p in zip(grid, plan.lanes, facts.parallel) if p)
    parts = []
    if chunks > 1:
        at_once = math.prod(k for k, p in zip(plan.lanes, facts.parallel) if p)
        parts.append(f"a loop over {chunks} groups of {at_once} parallel steps")
    elif any(facts.parallel):
        parts.append("all parallel steps at once")
    names = ", ".join(LETTERS[d % 26] for d in sequential)
    if plan.accumulation is not None:
        parts.append(f"the terms of all steps along {names} summed at once")
    elif sequential:
        parts.append(f"a loop over {names}")
    return "; ".join(parts) or "one step"


def _size(n: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"
