"""Kernels whose accesses are checked: right ones pass, each planted fault is named."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernels_under_test import CASES, F32, operands

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, ds, grad, jit, lax, vmap
from primax_kernels import tpu, triton

X = np.arange(8, dtype=F32)
OUT = ShapeDtypeStruct((8,), F32)
BLOCK = pk.BlockSpec((4,), lambda i: i)
BLOCKS = {"grid": 2, "in_specs": [BLOCK], "out_specs": BLOCK}
PARALLEL = {"compiler_params": {"dimension_semantics": ("parallel",)}}


def check(kernel, out=OUT, args=(X,), **options):
    return np.asarray(pk.pallas_call(kernel, out, interpret="check", **options)(*args))


@pytest.mark.parametrize("name", list(CASES))
def test_right_kernels_pass(name):
    case = CASES[name]
    args = operands(case)
    np.testing.assert_allclose(
        case.call(*args, interpret="check"), case.call(*args), rtol=1e-5, atol=1e-6
    )


def reads_beyond(x, o):
    o[...] = x[ds(pk.program_id(0) + 1, 4)]


def writes_beyond(x, o):
    o[pk.program_id(0) + 3] = x[0]


def gathers_beyond(x, o):
    o[...] = x[lax.iota(np.int32, 4) + pk.program_id(0)]


def never_writes_all(x, o):
    o[0:3] = x[0:3]


def reads_results(x, o):
    o[...] += x[...]


def reads_scratch(x, o, total):
    total[0:2] = x[0:2]
    o[...] = total[...]


def reads_scoped(x, o):
    pk.run_scoped(lambda r: o.__setitem__(..., r[...]), tpu.VMEM((4,), F32))


def leaves_a_scoped_semaphore(x, o):
    o[...] = x[...]
    pk.run_scoped(pk.semaphore_signal, tpu.SemaphoreType.REGULAR)


def reads_masked_off(x, o, total):
    triton.store(total, x[...], mask=lax.iota(np.int32, 4) < 2)
    o[...] = triton.load(total, mask=lax.iota(np.int32, 4) < 3)


SCRATCH = {"scratch_shapes": [tpu.VMEM((4,), F32)]}
FAULTS = {
    reads_beyond: (BLOCKS, "step (0,) of the kernel reads_beyond reads position 4 of axis 0 of"),
    writes_beyond: (BLOCKS, "step (1,) of the kernel writes_beyond writes position 4 of axis 0 of"),
    gathers_beyond: (BLOCKS, "reads position 4 of axis 0 of operand 0, whose shape is (4,)"),
    never_writes_all: (BLOCKS, "never writes element (3,) of result 0, whose shape is (8,)"),
    reads_results: (BLOCKS, "reads element (0,) of result 0, which was not written before"),
    reads_scratch: (BLOCKS | SCRATCH, "reads element (2,) of scratch 0, which was not written"),
    reads_scoped: (BLOCKS, "reads element (0,) of scoped memory, which was not written"),
    leaves_a_scoped_semaphore: (BLOCKS, "frees a scoped semaphore at 1"),
    reads_masked_off: (BLOCKS | SCRATCH, "reads element (2,) of scratch 0, which was not written"),
}  # fmt: skip


@pytest.mark.parametrize("kernel", list(FAULTS), ids=lambda f: f.__name__)
def test_planted_faults(kernel):
    options, message = FAULTS[kernel]
    with pytest.raises(pk.KernelCheckError, match=re.escape(message)) as error:
        check(kernel, **options)
    assert "test_checking.py:" in str(error.value)


def test_blocks_outside_of_the_array():
    def kernel(x, o):
        o[...] = x[...]

    moved = pk.BlockSpec((4,), lambda i: i + 1)
    with pytest.raises(
        pk.KernelCheckError, match=r"step \(1,\): the index map of operand 0 returns"
    ):
        check(kernel, grid=2, in_specs=[moved], out_specs=BLOCK)


def test_parallel_steps_that_write_one_element():
    def kernel(x, o):
        o[...] = x[...]

    same = pk.BlockSpec((4,), lambda i: 0)
    out = ShapeDtypeStruct((4,), F32)
    options = {"grid": 2, "in_specs": [BLOCK], "out_specs": same}
    assert check(kernel, out, **options).tolist() == X[4:].tolist()
    with pytest.raises(pk.KernelCheckError, match="which a parallel step writes"):
        check(kernel, out, **options, **PARALLEL)


def test_parallel_steps_that_read_what_another_writes():
    def kernel(x, o):
        i = pk.program_id(0)
        o[i] = x[i]

        @pk.when(i == 1)
        def _neighbour():
            o[0] = o[0] + o[1]

    whole = {"grid": 2}
    out = ShapeDtypeStruct((2,), F32)
    assert check(kernel, out, (X[:2],), **whole).tolist() == [1, 1]
    with pytest.raises(pk.KernelCheckError, match="a parallel step"):
        check(kernel, out, (X[:2],), **whole, **PARALLEL)


def test_copies_that_are_not_waited_for():
    def kernel(x, o, semaphore):
        tpu.make_async_copy(x, o, semaphore).start()

    with pytest.raises(pk.KernelCheckError, match="a copy was not waited for"):
        check(kernel, scratch_shapes=[tpu.SemaphoreType.DMA])


def test_indices_of_all_kinds():
    x = np.arange(60, dtype=F32).reshape(3, 4, 5)
    rows = np.array([2, 0], np.int32)
    columns = np.array([[1], [3]], np.int32)
    indices = [
        (1,), (slice(None), 2), (slice(0, 3, 2), ds(1, 2), 3), (rows,), (slice(None), rows),
        (rows, slice(1, 3), rows), (rows, columns), (1, rows), (rows, 1, slice(None)),
        (slice(None), rows, 2), (0, slice(1, 4), rows), (ds(np.int32(1), 2), slice(None), columns),
    ]  # fmt: skip
    for index in indices:
        expected = x[tuple(i if not hasattr(i, "start") or isinstance(i, slice) else
                           slice(int(i.start), int(i.start) + i.size) for i in index)]  # fmt: skip
        has_arrays = any(isinstance(i, np.ndarray) for i in index)

        def kernel(x_ref, a_ref, b_ref, o, index=index):
            swapped = tuple(
                a_ref[...] if i is rows else b_ref[...] if i is columns else i for i in index
            )
            o[...] = x_ref[swapped]

        out = check(kernel, ShapeDtypeStruct(expected.shape, F32), (x, rows, columns))
        assert out.tolist() == expected.tolist(), (index, has_arrays)


def test_loops_and_calls_inside_of_kernels():
    @jit
    def double(x):
        return x * 2

    def kernel(x, o):
        o[...] = double(x[...])

        def body(i, total):
            o[i] = o[i] + total
            return total + x[i]

        lax.fori_loop(0, 4, body, lax.full((), 0, F32))

        def more(carry):
            i, _ = carry
            o[i] = o[i] + 1
            return i + 1, x[i]

        lax.while_loop(lambda c: c[0] < 2, more, (np.int32(0), x[0]))

    np.testing.assert_allclose(
        check(kernel, **BLOCKS), pk.pallas_call(kernel, OUT, **BLOCKS)(X), rtol=1e-6
    )


def test_check_needs_concrete_arrays():
    with pytest.raises(TypeError, match="not inside of jit, grad or vmap"):
        jit(lambda x: pk.pallas_call(never_writes_all, OUT, interpret="check", **BLOCKS)(x))(X)


def adds_at(x, o):
    """Each parallel step adds at its own positions; masked-off ones are outside or of others."""
    i = pk.program_id(0)
    at = lax.iota(np.int32, 4) + i * 2
    mask = lax.bitwise_and(at < 8, lax.bitwise_and(at >= i * 2, at < i * 2 + 2))
    triton.atomic_add(o, lax.select(mask, at, lax.full((4,), 99, np.int32)), x[0:4], mask=mask)


@pytest.mark.parametrize("interpret", [False, "python", "check"])
def test_masked_off_positions_of_atomic_updates_are_no_accesses(interpret):
    call = pk.pallas_call(
        lambda x, former, o: adds_at(x, o), OUT, grid=4, input_output_aliases={1: 0},
        interpret=interpret, **PARALLEL,
    )  # fmt: skip
    expected = X + np.tile(X[:2], 4)
    assert call(X, X).tolist() == expected.tolist()


def test_positions_of_masked_updates_are_checked():
    def kernel(x, former, o):
        at = lax.iota(np.int32, 4) + 6
        triton.atomic_add(o, at, x[0:4], mask=lax.iota(np.int32, 4) < 3)

    with pytest.raises(pk.KernelCheckError, match=r"position 8 of axis 0 of result 0"):
        pk.pallas_call(kernel, OUT, input_output_aliases={1: 0}, interpret="check")(X, X)


def test_masked_accesses_beyond_the_reference():
    def reads(x, o):
        at = pk.program_id(0) * 4 + 1
        o[...] = triton.load(x.at[ds(at, 4)], mask=lax.iota(np.int32, 4) < 4)

    with pytest.raises(pk.KernelCheckError, match=r"step \(1,\) .* reads position 8 of axis 0"):
        check(reads, grid=2, out_specs=BLOCK)


def test_derivatives_and_batches_of_masked_updates():
    def kernel(x, o):
        o[...] = lax.full((8,), 0, F32)
        at = lax.iota(np.int32, 8) // 2
        triton.atomic_add(o, at, x[...] * x[...], mask=lax.iota(np.int32, 8) != 3)

    call = pk.pallas_call(kernel, OUT)
    gradient = grad(lambda x: lax.reduce_sum(call(x) * X, (0,)))(X)
    assert gradient.tolist() == [2 * x * (i // 2) * (i != 3) for i, x in enumerate(X)]
    batch = np.asarray(vmap(call)(np.stack([X, 2 * X])))
    assert (batch[1] == 4 * batch[0]).all()


# Blocks of pipelines


def pipeline(body, steps=4, out=None):
    def kernel(x, o):
        block = pk.BlockSpec((2,), lambda i: i)
        specs = {"in_specs": [block], "out_specs": [out or block]}
        tpu.emit_pipeline(body, grid=steps, **specs)(x, o)

    return kernel


def test_pipelines_that_write_all_elements_pass():
    def running(x, o):
        @pk.when(pk.program_id(0) == 0)
        def _start():
            o[...] = lax.full((2,), 0, F32)

        o[...] += x[...]

    same = pk.BlockSpec((2,), lambda i: 0)
    sums = check(pipeline(running, out=same), ShapeDtypeStruct((2,), F32))
    assert sums.tolist() == [12, 16]


def test_elements_that_a_pipeline_does_not_write_are_named():
    def half(x, o):
        o[0] = x[0]

    def doubles(x, o):
        o[...] = x[...] * 2

    with pytest.raises(pk.KernelCheckError, match=r"never writes element \(1,\) of result 0"):
        check(pipeline(half))
    with pytest.raises(pk.KernelCheckError, match=r"never writes element \(6,\) of result 0"):
        check(pipeline(doubles, steps=3))


def test_unwritten_blocks_of_pipelines_are_not_read():
    def adds(x, o):
        o[...] += x[...]

    text = r"reads element \(0,\) of the block of a result, which was not written before"
    with pytest.raises(pk.KernelCheckError, match=text):
        check(pipeline(adds))


def test_what_a_pipeline_left_unwritten_is_not_read_later():
    def kernel(x, o):
        pipeline(lambda x, o: o.__setitem__(0, x[0]))(x, o)
        o[...] = o[...] + 1

    with pytest.raises(pk.KernelCheckError, match=r"reads element \(1,\) of result 0"):
        check(kernel)


@pytest.mark.parametrize("interpret", [False, "python", "check"])
def test_partial_squeezed_blocks_of_pipelines(interpret):
    def kernel(x, o):
        part = pk.BlockSpec((None, 4), lambda i, j: (i, j))
        tpu.emit_pipeline(
            lambda x, o: o.__setitem__(..., x[...] + 1), grid=(2, 3), in_specs=[part],
            out_specs=[part],
        )(x, o)  # fmt: skip

    x = np.arange(20, dtype=F32).reshape(2, 10)
    call = pk.pallas_call(kernel, ShapeDtypeStruct((2, 10), F32), interpret=interpret)
    assert (np.asarray(call(x)) == x + 1).all()
