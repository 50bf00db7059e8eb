"""Pipelines in buffers of the kernel, for the tests of Mosaic."""

from __future__ import annotations

from typing import Any

import numpy as np
from triton_operations import F32, Case, array, like

from primax_core import lax
from primax_kernels import ANY, BlockSpec, Buffered, program_id, run_scoped
from primax_kernels.tpu import (
    HBM,
    emit_pipeline,
    emit_pipeline_with_allocations,
    emit_pipeline_with_async_prefetch,
)

LONG = array((40, 256))
THERE, IN_HBM = BlockSpec(memory_space=ANY), BlockSpec(memory_space=HBM)


def _copied(x: Any, o: Any) -> None:
    o[...] = x[...] * F32(3)


def _inner(x: Any, y: Any, o: Any) -> None:
    o[...] = x[...] * y[...] + lax.convert_element_type(program_id(0), F32)


def _own_buffers(rows: int, count: int) -> Any:
    """A pipeline that runs twice, in buffers of the kernel."""

    def kernel(x: Any, o: Any) -> None:
        part = BlockSpec((rows, 256), lambda i: (i, 0), pipeline_mode=Buffered(count))
        pipeline, buffers = emit_pipeline_with_allocations(
            _copied, grid=(-(-x.shape[0] // rows),), in_specs=[part], out_specs=[part]
        )

        def both(own: Any) -> None:
            pipeline(x, o, allocations=own)
            pipeline(o, o, allocations=own)

        run_scoped(both, buffers(x, o))

    return kernel


def _prefetched(x: Any, y: Any, o: Any) -> None:
    rows = BlockSpec((8, 256), lambda i: (i, 0))
    first = BlockSpec((8, 256), lambda i: (0, 0))
    pipeline, prefetch = emit_pipeline_with_async_prefetch(
        _inner, grid=(5,), in_specs=[rows, first], out_specs=[rows]
    )
    pipeline(x, y, o, allocations=prefetch(x, y))


def _partial(rows: int, columns: int) -> Any:
    """A pipeline of blocks of which the last ones reach beyond the arrays."""

    def kernel(x: Any, o: Any) -> None:
        part = BlockSpec((rows, columns), lambda i, j: (i, j))
        grid = tuple(-(-n // k) for n, k in zip(x.shape, (rows, columns)))
        emit_pipeline(_copied, grid=grid, in_specs=[part], out_specs=[part])(x, o)

    return kernel


def _partial_sum(x: Any, o: Any) -> None:
    """Blocks of a result that steps add to, beyond the end of the operand."""

    def add(x: Any, o: Any) -> None:
        rows = lax.broadcasted_iota(np.int32, (16, 256), 0) + program_id(0) * 16
        o[...] = lax.select(program_id(0) == 0, lax.full((16, 256), 0, F32), o[...])
        o[...] = o[...] + lax.select(rows < 36, x[...], lax.full((16, 256), 0, F32))

    part = BlockSpec((16, 256), lambda i: (i, 0))
    total = BlockSpec((16, 256), lambda i: (0, 0))
    emit_pipeline(add, grid=(3,), in_specs=[part], out_specs=[total])(x, o)


PIPELINES: dict[str, Case] = {
    "own_buffers": Case(_own_buffers(8, 2), like(40, 256), LONG, ins=[THERE], outs=THERE),
    "one_buffer": Case(_own_buffers(8, 1), like(40, 256), LONG, ins=[THERE], outs=THERE),
    "last_rows": Case(_own_buffers(16, 3), like(40, 256), LONG, ins=[THERE], outs=THERE),
    "few_rows": Case(_own_buffers(16, 2), like(36, 256), array((36, 256)), ins=[THERE], outs=THERE),
    "partial_rows": Case(_partial(16, 256), like(36, 256), array((36, 256)), ins=[THERE],
                         outs=THERE),
    "partial_rows_and_columns": Case(_partial(8, 256), like(20, 384), array((20, 384)),
                                     ins=[THERE], outs=THERE),
    "partial_sum": Case(_partial_sum, like(16, 256), array((36, 256)), ins=[THERE], outs=THERE),
    "prefetched": Case(_prefetched, like(40, 256), LONG, array((8, 256)), ins=[THERE, IN_HBM],
                       outs=THERE),
}  # fmt: skip
