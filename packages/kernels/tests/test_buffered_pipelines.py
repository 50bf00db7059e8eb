"""Pipelines over buffers that kernels reserve, and copies by hand with `BufferedRef`."""

from __future__ import annotations

import re

import numpy as np
import pytest

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, grad, jit, lax, vmap
from primax_kernels import tpu

F32 = np.float32
THERE = pk.BlockSpec(memory_space=pk.ANY)
MODES = [False, "python", "check"]
ROWS = pk.BlockSpec((2, 4), lambda i: (i, 0))
FIRST = pk.BlockSpec((2, 4), lambda i: (0, 0))
X = np.arange(48, dtype=F32).reshape(12, 4)


def call_of(kernel, *shapes, interpret=False, ins=1):
    return pk.pallas_call(
        kernel, [ShapeDtypeStruct(s, F32) for s in shapes], in_specs=[THERE] * ins,
        out_specs=[THERE] * len(shapes), interpret=interpret,
    )  # fmt: skip


def doubles(x, o):
    o[...] = x[...] * 2


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("interpret", MODES)
def test_a_pipeline_that_runs_twice_on_the_same_buffers(count, interpret):
    spec = pk.BlockSpec((2, 4), lambda i: (i, 0), pipeline_mode=pk.Buffered(count))
    pipeline, buffers = tpu.emit_pipeline_with_allocations(
        doubles, grid=6, in_specs=[spec], out_specs=[spec]
    )

    def kernel(x, o, q):
        def both(own):
            pipeline(x, o, allocations=own)
            pipeline(o, q, allocations=own)

        pk.run_scoped(both, buffers(x, o))

    once, twice = call_of(kernel, X.shape, X.shape, interpret=interpret)(X)
    assert (np.asarray(once) == 2 * X).all() and (np.asarray(twice) == 4 * X).all()


@pytest.mark.parametrize("interpret", MODES)
def test_blocks_that_steps_share_are_copied_once(interpret):
    def sums(x, o):
        @pk.when(pk.program_id(0) == 0)
        def _start():
            o[...] = lax.full((2, 4), 0, F32)

        o[...] += x[...]

    pipeline, buffers = tpu.emit_pipeline_with_allocations(
        sums, grid=6, in_specs=[ROWS], out_specs=[FIRST]
    )

    def kernel(x, o):
        pk.run_scoped(lambda own: pipeline(x, o, allocations=own), buffers(x, o))

    (total,) = call_of(kernel, (2, 4), interpret=interpret)(X)
    assert (np.asarray(total) == X.reshape(6, 2, 4).sum(0)).all()


@pytest.mark.parametrize("interpret", MODES)
def test_partial_and_squeezed_blocks(interpret):
    part = pk.BlockSpec((None, 5, 4), lambda i, j: (i, j, 0))
    pipeline, buffers = tpu.emit_pipeline_with_allocations(
        lambda x, o: o.__setitem__(..., x[...] + 1), grid=(2, 3), in_specs=[part], out_specs=[part]
    )

    def kernel(x, o):
        pk.run_scoped(lambda own: pipeline(x, o, allocations=own), buffers(x, o))

    x = np.arange(96, dtype=F32).reshape(2, 12, 4)
    (y,) = call_of(kernel, x.shape, interpret=False if interpret == "check" else interpret)(x)
    assert (np.asarray(y) == x + 1).all()


@pytest.mark.parametrize("interpret", MODES)
def test_first_copies_before_the_pipeline(interpret):
    pipeline, prefetch = tpu.emit_pipeline_with_async_prefetch(
        lambda x, y, o: o.__setitem__(..., x[...] + y[...]), grid=6, in_specs=[ROWS, FIRST],
        out_specs=[ROWS],
    )  # fmt: skip

    def kernel(x, o):
        own = prefetch(x, x)
        pipeline(x, x, o, allocations=own)

    (y,) = call_of(kernel, X.shape, interpret=interpret)(X)
    assert (np.asarray(y) == X + np.tile(X[:2], (6, 1))).all()


def test_copies_that_were_started_and_not_used_are_reported():
    _, prefetch = tpu.emit_pipeline_with_async_prefetch(
        doubles, grid=6, in_specs=[ROWS], out_specs=[ROWS]
    )

    def kernel(x, o):
        prefetch(x)
        tpu.sync_copy(x, o)

    with pytest.raises(pk.KernelCheckError, match="a copy was not waited for"):
        call_of(kernel, X.shape, interpret="check")(X)


@pytest.mark.parametrize("interpret", [False, "python"])
def test_blocks_that_are_read_and_written(interpret):
    pipeline, _ = tpu.emit_pipeline_with_allocations(
        lambda x, o: o.__setitem__(..., o[...] + x[...]), grid=6, in_specs=[ROWS], out_specs=[FIRST]
    )

    def kernel(x, o):
        tpu.sync_copy(x.at[0:2], o)
        types = tpu.BufferedRef.input(ROWS, F32), tpu.BufferedRef.input_output(FIRST, F32)
        pk.run_scoped(lambda *own: pipeline(x, o, allocations=own), *types)

    (y,) = call_of(kernel, (2, 4), interpret=interpret)(X)
    assert (np.asarray(y) == X[:2] + X.reshape(6, 2, 4).sum(0)).all()


@pytest.mark.parametrize("interpret", MODES)
def test_copies_by_hand(interpret):
    def kernel(x, o):
        def copied(own):
            b = own.initialize_slots()
            b.copy_in(x, (np.int32(4),))
            b = b.advance_copy_in_slot()
            b.wait_in(x, (np.int32(4),))
            o[...] = b.current_ref[...]
            b = b.advance_wait_in_slot()
            b.copy_in(x, (np.int32(1),))
            b.wait_in(x, (np.int32(1),))
            o[...] += b.current_ref[...]

        pk.run_scoped(copied, tpu.BufferedRef.create(ROWS, F32, tpu.BufferType.INPUT, 3))

    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((2, 4), F32), in_specs=[THERE], interpret=interpret
    )
    assert (np.asarray(call(X)) == X[8:10] + X[2:4]).all()


def test_transformations():
    pipeline, buffers = tpu.emit_pipeline_with_allocations(
        lambda x, o: o.__setitem__(..., x[...] * x[...]), grid=6, in_specs=[ROWS], out_specs=[ROWS]
    )

    def kernel(x, o):
        pk.run_scoped(lambda own: pipeline(x, o, allocations=own), buffers(x, o))

    call = lambda x: call_of(kernel, X.shape)(x)[0]
    slopes = jit(grad(lambda x: lax.reduce_sum(call(x), (0, 1))))(X)
    assert (np.asarray(slopes) == 2 * X).all()
    assert (np.asarray(vmap(call)(np.stack([X, X + 1])))[1] == (X + 1) ** 2).all()


def test_computed_numbers_of_steps():
    def kernel(n, x, o):
        pipeline, buffers = tpu.emit_pipeline_with_allocations(
            doubles, grid=(n[...],), in_specs=[ROWS], out_specs=[ROWS]
        )
        pk.run_scoped(lambda own: pipeline(x, o, allocations=own), buffers(x, o))

    scalar = pk.BlockSpec(memory_space=tpu.SMEM)
    call = pk.pallas_call(
        kernel, ShapeDtypeStruct(X.shape, F32), in_specs=[scalar, THERE], out_specs=THERE
    )
    y = np.asarray(jit(call)(np.int32(4), X))
    assert (y[:8] == 2 * X[:8]).all() and np.isnan(y[8:]).all()
    assert np.isnan(np.asarray(call(np.int32(0), X))).all()


def test_attributes_of_buffers():
    b = tpu.BufferedRef.input_output(ROWS, F32, (2, 2))
    assert b.window_ref.shape == (3, 2, 4) and b.buffer_count == 3 and b.is_buffered
    assert (b.is_input, b.is_output, b.is_input_output) == (True, True, True)
    assert b.sem_recvs.shape == b.sem_sends.shape == (3,) and b.compute_index is ROWS.index_map
    assert b.block_shape == (2, 4) and b.with_spec(FIRST).spec is FIRST
    b = tpu.BufferedRef.output(pk.BlockSpec((None, 4)), F32)
    assert b.sem_recvs is None and b.buffer_count == 2 and b.window_ref.memory_space is tpu.VMEM
    start, size = b.compute_slice(())
    assert int(start) == 0 and size.size == 4
    assert tpu.BufferType.INPUT_OUTPUT.is_input and not tpu.BufferType.INPUT.is_output


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: tpu.BufferedRef.create(ROWS, F32, "input"), TypeError,
         "buffer_type is a member of BufferType, got 'input'"),
        (lambda: tpu.BufferedRef.create(ROWS, F32, tpu.BufferType.MANUAL), NotImplementedError,
         "BufferType.MANUAL has no copies: pass the reference itself"),
        (lambda: tpu.BufferedRef.input(ROWS, F32, use_lookahead=True), NotImplementedError,
         "has no lookahead over several steps"),
        (lambda: tpu.BufferedRef.input(ROWS, F32, 0), ValueError, "at least 1, got 0"),
        (lambda: tpu.BufferedRef.input(ROWS, F32, (2, 1)), ValueError,
         "one number for BufferType.INPUT, got (2, 1)"),
        (lambda: tpu.BufferedRef.input(pk.BlockSpec(), F32), ValueError,
         "write the sizes of the array for a whole one"),
        (lambda: tpu.BufferedRef.input(pk.BlockSpec((pk.Element(4),), lambda i: i), F32),
         ValueError, "a BufferedRef has blocks of sizes and None, got Element"),
        (lambda: tpu.BufferedRef.input(ROWS, F32).with_spec(pk.BlockSpec((3, 4))), ValueError,
         "the buffers have blocks of shape (2, 4), the new specification has (3, 4)"),
    ],
)  # fmt: skip
def test_bad_buffers(make, error, text):
    with pytest.raises(error, match=re.escape(text)):
        make()


def test_allocations_that_do_not_match():
    pipeline, buffers = tpu.emit_pipeline_with_allocations(
        doubles, grid=6, in_specs=[ROWS], out_specs=[ROWS]
    )

    def run(change):
        def kernel(x, o):
            pk.run_scoped(lambda own: pipeline(x, o, allocations=change(own)), buffers(x, o))

        call_of(kernel, X.shape)(X)

    with pytest.raises(ValueError, match="has 2 references, but got 1 allocations"):
        run(lambda own: own[:1])
    with pytest.raises(TypeError, match="allocation 1 of a pipeline is a BufferedRef with memory"):
        run(lambda own: (own[0], own[0].window_ref))
    with pytest.raises(ValueError, match="the pipeline has 1 in_specs and 1 out_specs"):
        buffers(X)
