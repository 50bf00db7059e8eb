"""Kernels that several test modules use, as functions ``(operands) -> results``, with plain code.

They need no NumPy layer: the wheel stands on the core alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, lax
from primax_kernels.tpu import VMEM

F32 = np.float32


class Case(NamedTuple):
    """A kernel call, the plain function with its value, and the shapes of its operands."""

    call: Callable[..., Any]
    plain: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]


def full(shape: tuple[int, ...], value: float, dtype: Any = F32) -> Any:
    return lax.full(shape, value, dtype)


def add_blocks(x: Any, y: Any, **options: Any) -> Any:
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    block = pk.BlockSpec((4,), lambda i: i)
    return pk.pallas_call(
        kernel, ShapeDtypeStruct(x.shape, x.dtype), grid=pk.cdiv(x.shape[0], 4),
        in_specs=[block, block], out_specs=block, **options,
    )(x, y)  # fmt: skip


def matmul(a: Any, b: Any, **options: Any) -> Any:
    def kernel(a_ref, b_ref, o_ref, total):
        @pk.when(pk.program_id(2) == 0)
        def _first():
            total[...] = full(total.shape, 0, total.dtype)

        total[...] += lax.dot(a_ref[...], b_ref[...])

        @pk.when(pk.program_id(2) == pk.num_programs(2) - 1)
        def _last():
            o_ref[...] = total[...]

    return pk.pallas_call(
        kernel, ShapeDtypeStruct((a.shape[0], b.shape[1]), a.dtype),
        grid=(a.shape[0] // 4, b.shape[1] // 4, a.shape[1] // 2),
        in_specs=[
            pk.BlockSpec((4, 2), lambda i, j, k: (i, k)),
            pk.BlockSpec((2, 4), lambda i, j, k: (k, j)),
        ],
        out_specs=pk.BlockSpec((4, 4), lambda i, j, k: (i, j)),
        scratch_shapes=[VMEM((4, 4), a.dtype)], **options,
    )(a, b)  # fmt: skip


def matmul_in_output(a: Any, b: Any, **options: Any) -> Any:
    def kernel(a_ref, b_ref, o_ref):
        @pk.when(pk.program_id(2) == 0)
        def _first():
            o_ref[...] = full(o_ref.shape, 0, o_ref.dtype)

        o_ref[...] += lax.dot(a_ref[...], b_ref[...])

    return pk.pallas_call(
        kernel, ShapeDtypeStruct((a.shape[0], b.shape[1]), a.dtype),
        grid=(a.shape[0] // 4, b.shape[1] // 4, a.shape[1] // 2),
        in_specs=[
            pk.BlockSpec((4, 2), lambda i, j, k: (i, k)),
            pk.BlockSpec((2, 4), lambda i, j, k: (k, j)),
        ],
        out_specs=pk.BlockSpec((4, 4), lambda i, j, k: (i, j)), **options,
    )(a, b)  # fmt: skip


def softmax_rows(x: Any, **options: Any) -> Any:
    def kernel(x_ref, o_ref):
        row = x_ref[...]
        e = lax.exp(row - lax.reduce_max(row, (0,)))
        o_ref[...] = e / lax.reduce_sum(e, (0,))

    row = pk.BlockSpec((None, x.shape[1]), lambda i: (i, 0))
    return pk.pallas_call(
        kernel, ShapeDtypeStruct(x.shape, x.dtype), grid=(x.shape[0],), in_specs=[row],
        out_specs=row, **options,
    )(x)  # fmt: skip


def attention(q: Any, k: Any, v: Any, **options: Any) -> Any:
    """Flash attention, forward: Dao et al., 2022."""
    block = 4

    def kernel(q_ref, k_ref, v_ref, o_ref, top, total, out):
        @pk.when(pk.program_id(2) == 0)
        def _first():
            top[...] = full(top.shape, -1e30, top.dtype)
            total[...] = full(total.shape, 0, total.dtype)
            out[...] = full(out.shape, 0, out.dtype)

        scores = lax.dot(q_ref[...], lax.transpose(k_ref[...], (1, 0)))
        new_top = lax.max(top[...], lax.reduce_max(scores, (1,)))
        p = lax.exp(scores - lax.expand_dims(new_top, (1,)))
        scale = lax.exp(top[...] - new_top)
        total[...] = total[...] * scale + lax.reduce_sum(p, (1,))
        out[...] = out[...] * lax.expand_dims(scale, (1,)) + lax.dot(p, v_ref[...])
        top[...] = new_top

        @pk.when(pk.program_id(2) == pk.num_programs(2) - 1)
        def _last():
            o_ref[...] = out[...] / lax.expand_dims(total[...], (1,))

    heads, n, d = q.shape
    rows = pk.BlockSpec((None, block, d), lambda h, i, j: (h, i, 0))
    columns = pk.BlockSpec((None, block, d), lambda h, i, j: (h, j, 0))
    return pk.pallas_call(
        kernel, ShapeDtypeStruct(q.shape, q.dtype), grid=(heads, n // block, n // block),
        in_specs=[rows, columns, columns], out_specs=rows,
        scratch_shapes=[VMEM(shape, q.dtype) for shape in ((block,), (block,), (block, d))],
        **options,
    )(q, k, v)  # fmt: skip


def plain_attention(q: Any, k: Any, v: Any) -> Any:
    scores = lax.dot_general(q, k, (((2,), (2,)), ((0,), (0,))))
    e = lax.exp(scores - lax.expand_dims(lax.reduce_max(scores, (2,)), (2,)))
    p = e / lax.expand_dims(lax.reduce_sum(e, (2,)), (2,))
    return lax.dot_general(p, v, (((2,), (1,)), ((0,), (0,))))


def running_sum(x: Any, **options: Any) -> Any:
    """A state in scratch memory that passes from step to step: nothing is parallel."""

    def kernel(x_ref, o_ref, carry):
        @pk.when(pk.program_id(0) == 0)
        def _first():
            carry[...] = full((1,), 0, x.dtype)

        block = lax.cumsum(x_ref[...], 0) + carry[0]
        o_ref[...] = block
        carry[0] = o_ref[1]

    block = pk.BlockSpec((2,), lambda i: i)
    return pk.pallas_call(
        kernel, ShapeDtypeStruct(x.shape, x.dtype), grid=x.shape[0] // 2, in_specs=[block],
        out_specs=block, scratch_shapes=[VMEM((1,), x.dtype)], **options,
    )(x)  # fmt: skip


def windows(x: Any, **options: Any) -> Any:
    """Overlapping windows with padding: sums of three neighbours."""

    def kernel(x_ref, o_ref):
        i = pk.program_id(0)
        x3 = x_ref[...]
        inside = lax.iota(np.int32, 3) + i - 1
        ok = lax.bitwise_and(inside >= 0, inside < x.shape[0])
        o_ref[0] = lax.reduce_sum(lax.select(ok, x3, full((3,), 0, x.dtype)), (0,))

    return pk.pallas_call(
        kernel, ShapeDtypeStruct(x.shape, x.dtype), grid=x.shape[0],
        in_specs=[pk.BlockSpec((pk.Element(3, (1, 1)),), lambda i: i)],
        out_specs=pk.BlockSpec((1,), lambda i: i), **options,
    )(x)  # fmt: skip


def plain_windows(x: Any) -> Any:
    wide = lax.pad(x, lax.full((), 0, x.dtype), [(1, 1, 0)])
    n = x.shape[0]
    return sum(lax.slice_in_dim(wide, i, i + n) for i in range(3))


def grouped_rows(x: Any, y: Any, **options: Any) -> Any:
    """Two rows share an operand's row: an index map that is not affine."""

    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] * y_ref[...]

    return pk.pallas_call(
        kernel, ShapeDtypeStruct(x.shape, x.dtype), grid=x.shape[0],
        in_specs=[
            pk.BlockSpec((None, 3), lambda i: (i, 0)),
            pk.BlockSpec((None, 3), lambda i: (lax.div(i, np.int32(2)), 0)),
        ],
        out_specs=pk.BlockSpec((None, 3), lambda i: (i, 0)), **options,
    )(x, y)  # fmt: skip


def plain_grouped_rows(x: Any, y: Any) -> Any:
    rows = [lax.slice_in_dim(y, i // 2, i // 2 + 1) for i in range(x.shape[0])]
    return x * lax.concatenate(rows, 0)


CASES = {
    "add_blocks": Case(add_blocks, lambda x, y: x + y, ((8,), (8,))),
    "partial_blocks": Case(add_blocks, lambda x, y: x + y, ((10,), (10,))),
    "matmul": Case(matmul, lax.dot, ((8, 6), (6, 4))),
    "matmul_in_output": Case(matmul_in_output, lax.dot, ((4, 6), (6, 8))),
    "softmax_rows": Case(
        softmax_rows,
        lambda x: lax.exp(x) / lax.expand_dims(lax.reduce_sum(lax.exp(x), (1,)), (1,)),
        ((5, 7),),
    ),
    "attention": Case(attention, plain_attention, ((2, 8, 3), (2, 8, 3), (2, 8, 3))),
    "running_sum": Case(running_sum, lambda x: lax.cumsum(x, 0), ((6,),)),
    "windows": Case(windows, plain_windows, ((7,),)),
    "grouped_rows": Case(grouped_rows, plain_grouped_rows, ((4, 3), (2, 3))),
}


def operands(case: Case, seed: int = 0) -> list[np.ndarray]:
    """Random operands of a case."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(F32) for shape in case.shapes]
