"""Calls whose grids have computed sizes, for the tests of Mosaic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton_operations import F32, I32, array, like

from primax_core import lax
from primax_kernels import (
    BlockSpec,
    PrefetchScalarGridSpec,
    num_programs,
    pallas_call,
    program_id,
    when,
)
from primax_kernels.tpu import VMEM


def _doubled_blocks(n: Any, x: Any) -> Any:
    """As many blocks as there are steps; those behind them are not written."""
    rows = BlockSpec((8, 128), lambda i: (i, 0))
    return pallas_call(
        lambda x, o: o.__setitem__(..., x[...] * F32(2)), like(40, 128), grid=n, in_specs=[rows],
        out_specs=rows,
    )(x)  # fmt: skip


def _summed_blocks(n: Any, x: Any) -> Any:
    """Sums over as many blocks as there are steps, of which the last one writes them."""

    def kernel(x: Any, o: Any, total: Any) -> None:
        @when(program_id(1) == 0)
        def _start() -> None:
            total[...] = lax.full((8, 128), 0, F32)

        total[...] += x[...]

        @when(program_id(1) == num_programs(1) - 1)
        def _end() -> None:
            o[...] = total[...]

    return pallas_call(
        kernel, like(8, 256), grid=(2, n), in_specs=[BlockSpec((8, 128), lambda j, i: (i, j))],
        out_specs=BlockSpec((8, 128), lambda j, i: (0, j)), scratch_shapes=[VMEM((8, 128), F32)],
    )(x)  # fmt: skip


def _blocks_in_order(n: Any, order: Any, x: Any) -> Any:
    """Blocks at prefetched positions, whose results pass from step to step."""

    def kernel(order: Any, x: Any, o: Any) -> None:
        o[...] = lax.select(program_id(0) > 0, o[...] + x[...], x[...])

    spec = PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(n,), in_specs=[BlockSpec((8, 128), lambda i, p: (p[i], 0))],
        out_specs=BlockSpec((8, 128), lambda i, p: (lax.div(p[i], I32(99)), 0)),
    )  # fmt: skip
    return pallas_call(kernel, like(8, 128), grid_spec=spec)(order, x)


COMPUTED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "doubled": (_doubled_blocks, (I32(3), array((40, 128)))),
    "summed": (_summed_blocks, (I32(3), array((40, 256)))),
    "in_order": (_blocks_in_order, (I32(3), np.array([4, 0, 2, 1, 3], I32), array((40, 128)))),
}  # fmt: skip
