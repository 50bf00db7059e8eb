"""Grids of computed sizes: one loop over all steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax

from .._grid import indices_of
from .._kernel import Kernel
from .._semaphores import first_value
from .columns import Plan, step_of
from .facts import sequential_facts
from .operands import cut, layout_of, padded, unwritten


def run_in_order(kernel: Kernel, args: Sequence[Any]) -> list[Any]:
    """The results of a kernel whose steps run one after the other."""
    facts = sequential_facts(kernel)
    inputs = tuple(layout_of(m, kernel.grid, facts.parallel) for m in kernel.inputs)
    outputs = tuple(layout_of(m, kernel.grid, facts.parallel) for m in kernel.outputs)
    lanes = (1,) * len(kernel.grid)
    prefetched = args[: len(kernel.prefetched)]
    step = step_of(Plan(kernel, facts, lanes, inputs, outputs, None), prefetched)
    sizes: list[Any] = list(kernel.grid)
    for d, size in zip(kernel.dynamic, prefetched):
        sizes[d] = lax.max(size, np.int32(0))
    total: Any = np.int32(1)
    for size in sizes:
        total = lax.mul(total, np.int32(size) if isinstance(size, int) else size)
    operands = [padded(x, o) for x, o in zip(args[len(prefetched) :], inputs)]
    initial = {o: padded(args[i], outputs[o]) for i, o in kernel.aliases}
    outs = [
        initial.get(i, unwritten(o.column_shape, o.mapping.aval.dtype))
        for i, o in enumerate(outputs)
    ]
    scratch = [lax.full(a.shape, first_value(a), a.dtype) for a in kernel.scratch]

    def body(t: Any, state: Any) -> Any:
        return step(indices_of(t, sizes), operands, state)

    outs, _ = lax.fori_loop(np.int32(0), total, body, (outs, scratch))
    return [cut(x, o) for x, o in zip(outs, outputs)]
