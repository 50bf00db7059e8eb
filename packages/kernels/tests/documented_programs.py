"""Programs of the kinds that the reference's documentation explains, with their results."""

from __future__ import annotations

import numpy as np

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, dtypes, lax
from primax_kernels import tpu, triton

F32 = np.float32
I32 = np.int32
rng = np.random.default_rng(0)
X = rng.standard_normal((8, 8)).astype(F32)
Y = rng.standard_normal((8, 8)).astype(F32)
V = np.arange(10, dtype=F32)


def struct(x, dtype=F32):
    return ShapeDtypeStruct(x if isinstance(x, tuple) else x.shape, dtype)


def zeros(ref):
    return lax.full(ref.shape, 0, ref.dtype)


def whole_arrays(**options):
    def kernel(x, y, o):
        o[...] = x[...] + y[...]

    return pk.pallas_call(kernel, struct(X), **options)(X, Y), X + Y


def indices_of_the_grid(**options):
    def kernel(o):
        i = pk.program_id(0)
        o[i] = i

    call = pk.pallas_call(
        kernel, struct((8,), I32), out_specs=pk.BlockSpec(memory_space=tpu.SMEM), grid=(8,),
        **options,
    )  # fmt: skip
    return call(), np.arange(8)


def block_of_each_step(**options):
    """Each step writes its indices over its block, the last of which are partial."""

    def kernel(o):
        o[...] = lax.full(o.shape, 10, I32) * pk.program_id(0) + pk.program_id(1)

    call = pk.pallas_call(
        kernel, struct((7, 5), I32), out_specs=pk.BlockSpec((3, 2), lambda i, j: (i, j)),
        grid=(3, 3), **options,
    )  # fmt: skip
    return call(), 10 * (np.arange(7)[:, None] // 3) + np.arange(5) // 2


def slices(**options):
    def kernel(x, o):
        o[...] = zeros(o)
        o[pk.ds(2, 3), :] = x[pk.ds(pk.program_id(0), 3), :] * 2
        o[0, 1:3] = x[7, 5:7]

    expected = np.zeros_like(X)
    expected[2:5] = X[:3] * 2
    expected[0, 1:3] = X[7, 5:7]
    return pk.pallas_call(kernel, struct(X), grid=1, **options)(X), expected


def partial_blocks(**options):
    def kernel(x, o):
        o[...] = x[...] + 1

    block = pk.BlockSpec((4,), lambda i: (i,))
    call = pk.pallas_call(
        kernel, struct(V), grid=3, in_specs=[block], out_specs=block, **options
    )  # fmt: skip
    return call(V), V + 1


def masked_sum_of_partial_blocks(**options):
    def kernel(x, o):
        i = pk.program_id(0)

        @pk.when(i == 0)
        def _write():
            o[...] = zeros(o)

        inside = lax.lt(lax.iota(I32, 4) + 4 * i, 10)
        o[0] += lax.reduce_sum(lax.select(inside, x[...], zeros(x)), (0,))

    call = pk.pallas_call(
        kernel, struct((1,)), grid=3, in_specs=[pk.BlockSpec((4,), lambda i: (i,))],
        out_specs=pk.BlockSpec((1,), lambda i: (0,)), **options,
    )  # fmt: skip
    return call(V), V.sum(keepdims=True)


def matmul_of_rows_and_columns(**options):
    def kernel(x, y, o):
        o[...] = lax.max(lax.dot(x[...], y[...]), F32(0))

    call = pk.pallas_call(
        kernel, struct((8, 8)), grid=(2, 2),
        in_specs=[
            pk.BlockSpec((4, 8), lambda i, j: (i, 0)), pk.BlockSpec((8, 4), lambda i, j: (0, j))
        ],
        out_specs=pk.BlockSpec((4, 4), lambda i, j: (i, j)), **options,
    )  # fmt: skip
    return call(X, Y), np.maximum(X @ Y, 0)


def matmul_in_bfloat16(**options):
    """Sums in scratch memory of float32, an activation at the end, the second factor transposed."""
    bf16 = dtypes.bfloat16

    def kernel(x, y, o, total):
        k = pk.program_id(2)

        @pk.when(k == 0)
        def _write():
            total[...] = zeros(total)

        dims = (((1,), (1,)), ((), ()))
        total[...] += lax.dot_general(x[...], y[...], dims, preferred_element_type=F32)

        @pk.when(k == pk.num_programs(2) - 1)
        def _write():
            o[...] = lax.convert_element_type(lax.max(total[...], F32(0)), bf16)

    x, y = X.astype(bf16), Y.astype(bf16)
    call = pk.pallas_call(
        kernel, struct((8, 8), bf16),
        grid_spec=tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0, grid=(2, 2, 4),
            in_specs=[
                pk.BlockSpec((4, 2), lambda i, j, k: (i, k)),
                pk.BlockSpec((4, 2), lambda i, j, k: (j, k)),
            ],
            out_specs=pk.BlockSpec((4, 4), lambda i, j, k: (i, j)),
            scratch_shapes=[tpu.VMEM((4, 4), F32)],
        ),
        compiler_params=tpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")
        ),
        **options,
    )  # fmt: skip
    return call(x, y), np.maximum(x.astype(F32) @ y.astype(F32).T, 0).astype(bf16)


def sum_over_an_axis(**options):
    """A block of the result that the steps of the innermost dimension share."""

    def kernel(x, o):
        @pk.when(pk.program_id(1) == 0)
        def _write():
            o[...] = zeros(o)

        o[...] += x[...]

    x = np.stack([X, Y, X * Y])
    call = pk.pallas_call(
        kernel, struct((8, 8)), grid=(2, 3),
        in_specs=[pk.BlockSpec((None, 4, 8), lambda i, k: (k, i, 0))],
        out_specs=pk.BlockSpec((4, 8), lambda i, k: (i, 0)), **options,
    )  # fmt: skip
    return call(x), x.sum(0)


def dynamic_slice_by_prefetch(**options):
    def kernel(start, x, o):
        o[...] = x[...]

    call = pk.pallas_call(
        kernel, struct((4, 4)),
        grid_spec=tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(1, 1),
            in_specs=[pk.BlockSpec((4, 4), lambda i, j, start: (start[0], start[1]))],
            out_specs=pk.BlockSpec((4, 4), lambda i, j, start: (0, 0)),
        ),
        **options,
    )  # fmt: skip
    return call(np.array([1, 0], I32), X), X[4:, :4]


def block_sparse_product(**options):
    """Blocks of a sparse factor at rows and columns that are prefetched, sorted by row."""
    rows, columns = np.array([0, 0, 2, 3], I32), np.array([1, 3, 0, 2], I32)
    blocks = rng.standard_normal((4, 2, 2)).astype(F32)
    dense = np.zeros((8, 8), F32)
    for r, c, block in zip(rows, columns, blocks):
        dense[2 * r : 2 * r + 2, 2 * c : 2 * c + 2] = block

    def kernel(rows, columns, blocks, y, _former, o, total):
        i, n = pk.program_id(1), pk.num_programs(1)
        begins = lax.bitwise_or(i == 0, rows[i] != rows[lax.max(i - 1, I32(0))])
        ends = lax.bitwise_or(i == n - 1, rows[i] != rows[lax.min(i + 1, I32(n - 1))])

        @pk.when(begins)
        def _write():
            total[...] = zeros(total)

        total[...] += lax.dot(blocks[...], y[...])

        @pk.when(ends)
        def _write():
            o[...] = total[...]

    call = pk.pallas_call(
        kernel, struct((8, 8)),
        grid_spec=tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2, grid=(2, 4),
            in_specs=[
                pk.BlockSpec((None, 2, 2), lambda j, i, rows, columns: (i, 0, 0)),
                pk.BlockSpec((2, 4), lambda j, i, rows, columns: (columns[i], j)),
                pk.BlockSpec((2, 4), lambda j, i, rows, columns: (rows[i], j)),
            ],
            out_specs=pk.BlockSpec((2, 4), lambda j, i, rows, columns: (rows[i], j)),
            scratch_shapes=[tpu.VMEM((2, 4), F32)],
        ),
        input_output_aliases={4: 0}, **options,
    )  # fmt: skip
    return call(rows, columns, blocks, Y, np.zeros((8, 8), F32)), dense @ Y


def copy_to_scratch(**options):
    def kernel(x, o):
        def copied(buffer, sem):
            copy = tpu.make_async_copy(x.at[pk.ds(2, 4)], buffer, sem)
            copy.start()
            copy.wait()
            o[...] = buffer[...] + 1

        pk.run_scoped(copied, tpu.VMEM((4, 8), F32), tpu.SemaphoreType.DMA)

    call = pk.pallas_call(
        kernel, struct((4, 8)), in_specs=[pk.BlockSpec(memory_space=pk.ANY)], **options
    )  # fmt: skip
    return call(X), X[2:6] + 1


def double_buffered_sum(**options):
    def kernel(x, o, buffers, sems):
        def fetch(i):
            slot = lax.rem(i, I32(2))
            return tpu.make_async_copy(x.at[i], buffers.at[slot], sems.at[slot])

        o[...] = zeros(o)
        fetch(I32(0)).start()

        @pk.loop(0, 8)
        def _step(i):
            @pk.when(i + 1 < 8)
            def _write():
                fetch(i + 1).start()

            fetch(i).wait()
            o[...] += buffers[lax.rem(i, I32(2))]

    call = pk.pallas_call(
        kernel, struct((8,)), in_specs=[pk.BlockSpec(memory_space=pk.ANY)],
        scratch_shapes=[tpu.VMEM((2, 8), F32), tpu.SemaphoreType.DMA((2,))], **options,
    )  # fmt: skip
    return call(X), X.sum(0)


def nested_pipeline(**options):
    def kernel(x, y, o):
        def add(x, y, o):
            o[...] = x[...] + y[...]

        block = pk.BlockSpec((4, 4), lambda i, j: (i, j))
        tpu.emit_pipeline(add, grid=(2, 2), in_specs=[block, block], out_specs=[block])(x, y, o)

    in_place = pk.BlockSpec(memory_space=pk.ANY)
    call = pk.pallas_call(
        kernel, struct((8, 8)), in_specs=[in_place, in_place], out_specs=in_place, **options
    )  # fmt: skip
    return call(X, Y), X + Y


def rows_of_any_length(**options):
    """Loads and stores with masks, in slices of a power of two."""

    def kernel(x, o):
        start = pk.program_id(0) * 4
        inside = lax.iota(I32, 4) + start < 10
        part = triton.load(x.at[pk.ds(start, 4)], mask=inside, other=0)
        triton.store(o.at[pk.ds(start, 4)], lax.exp(-part), mask=inside)

    return pk.pallas_call(kernel, struct(V), grid=3, **options)(V), np.exp(-V)


def in_place(**options):
    def kernel(x, o):
        o[2:4] = x[2:4] * 10

    expected = V.copy()
    expected[2:4] *= 10
    return pk.pallas_call(kernel, struct(V), input_output_aliases={0: 0}, **options)(V), expected


def part_of_a_result(**options):
    def kernel(x, o):
        o[0:2] = x[0:2]

    expected = np.full(10, np.nan, F32)
    expected[:2] = V[:2]
    return pk.pallas_call(kernel, struct(V), **options)(V), expected


PROGRAMS = {
    f.__name__: f
    for f in (
        whole_arrays, indices_of_the_grid, block_of_each_step, slices, partial_blocks,
        masked_sum_of_partial_blocks, matmul_of_rows_and_columns, matmul_in_bfloat16,
        sum_over_an_axis, dynamic_slice_by_prefetch, block_sparse_product, copy_to_scratch,
        double_buffered_sum, nested_pipeline, rows_of_any_length, in_place, part_of_a_result,
    )
}  # fmt: skip
