"""Empty arrays, scalars, aliases, masks: the same values, compiled and step by step."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_under_test import F32

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, lax
from primax_kernels.tpu import VMEM, CompilerParams
from primax_kernels.triton import atomic_add, load, store

every_evaluation = pytest.mark.parametrize(
    "interpret", [False, "python", "check"], ids=["compiled", "python", "check"]
)
stepping = pytest.mark.parametrize("interpret", ["python", "check"])


def copy(x, o):
    o[...] = x[...]


@every_evaluation
@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0)], ids=str)
@pytest.mark.parametrize("grid", [(), 2], ids=["one step", "two steps"])
def test_empty_arrays(shape, grid, interpret):
    call = pk.pallas_call(copy, ShapeDtypeStruct(shape, F32), grid=grid, interpret=interpret)
    out = call(np.zeros(shape, F32))
    assert out.shape == shape and out.dtype == F32


@every_evaluation
def test_sum_of_an_empty_array(interpret):
    def kernel(x, o):
        o[...] = lax.reduce_sum(x[...], (0,))

    call = pk.pallas_call(kernel, ShapeDtypeStruct((4,), F32), interpret=interpret)
    assert np.asarray(call(np.zeros((0, 4), F32))).tolist() == [0] * 4


@every_evaluation
def test_blocks_along_an_empty_axis(interpret):
    block = pk.BlockSpec((1, 0), lambda i: (i, 0))
    call = pk.pallas_call(
        copy, ShapeDtypeStruct((2, 0), F32), grid=2, in_specs=[block], out_specs=block,
        interpret=interpret,
    )  # fmt: skip
    assert call(np.zeros((2, 0), F32)).shape == (2, 0)


@every_evaluation
def test_scalars(interpret):
    def kernel(x, o):
        o[...] = x[...] + pk.program_id(0)

    call = pk.pallas_call(kernel, ShapeDtypeStruct((), np.int32), grid=3, interpret=interpret)
    out = call(np.int32(5))
    assert out.shape == () and int(out) == 7


@every_evaluation
def test_negative_constants_count_from_the_end(interpret):
    def kernel(x, o):
        o[-1] = x[-2]
        o[0] = x[-1]

    call = pk.pallas_call(kernel, ShapeDtypeStruct((2,), F32), interpret=interpret)
    assert np.asarray(call(np.arange(5, dtype=F32))).tolist() == [4, 3]


@every_evaluation
@pytest.mark.parametrize("grid", [0, 1], ids=["no step", "one step"])
def test_alias_of_a_prefetched_scalar(grid, interpret):
    def kernel(rows, x, o):
        o[0] = np.int32(9)

    block = pk.BlockSpec((2,), lambda i, rows: (0,))
    spec = pk.PrefetchScalarGridSpec(1, grid=grid, in_specs=[block], out_specs=block)
    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((2,), np.int32), grid_spec=spec, input_output_aliases={0: 0},
        interpret=interpret,
    )  # fmt: skip
    out = call(np.array([1, 2], np.int32), np.array([5, 6], np.int32))
    assert np.asarray(out).tolist() == ([9, 2] if grid else [1, 2])


@pytest.mark.parametrize("interpret", [False, "python"])
def test_blocks_that_begin_outside(interpret):
    spec = pk.BlockSpec((4,), lambda i: (2 * i - 1,))
    call = pk.pallas_call(
        copy, ShapeDtypeStruct((12,), F32), grid=3, in_specs=[spec],
        out_specs=pk.BlockSpec((4,), lambda i: i), interpret=interpret,
    )  # fmt: skip
    out = np.asarray(call(np.arange(8, dtype=F32)))
    assert out.tolist() == [4, 5, 6, 7] * 3


@every_evaluation
def test_one_scratch_memory_without_a_list(interpret):
    def kernel(x, o, total):
        total[...] = x[...] * F32(2)
        o[...] = total[...]

    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((3,), F32), scratch_shapes=VMEM((3,), F32), interpret=interpret
    )
    assert np.asarray(call(np.arange(3, dtype=F32))).tolist() == [0, 2, 4]


@stepping
def test_a_kernel_that_returns_a_value(interpret):
    call = pk.pallas_call(lambda x, o: 1, ShapeDtypeStruct((2,), F32), interpret=interpret)
    with pytest.raises(ValueError, match="returns int: a kernel writes its results"):
        call(np.zeros(2, F32))


@every_evaluation
@pytest.mark.parametrize("parallel", [False, True], ids=["", "parallel"])
def test_masked_slices_that_reach_beyond(parallel, interpret):
    def kernel(x, o):
        part = pk.ds(pk.program_id(0) * 4, 4)
        mask = lax.lt(pk.program_id(0) * 4 + lax.iota(np.int32, 4), np.int32(6))
        store(o.at[part], load(x.at[part], mask=mask, other=F32(0)) * F32(2), mask=mask)

    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((6,), F32), grid=2, interpret=interpret,
        compiler_params=CompilerParams(dimension_semantics=("parallel",)) if parallel else None,
    )  # fmt: skip
    assert np.asarray(call(np.arange(6, dtype=F32))).tolist() == [0, 2, 4, 6, 8, 10]


@every_evaluation
def test_masked_atomic_updates_at_positions_outside(interpret):
    def kernel(positions, x, initial, o):
        at = positions[...]
        mask = lax.bitwise_and(lax.ge(at, np.int32(0)), lax.lt(at, np.int32(3)))
        old = atomic_add(o, (at,), x[...], mask=mask)
        o[2] = lax.reduce_sum(old, (0,))

    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((3,), F32), input_output_aliases={2: 0}, interpret=interpret
    )
    positions, values = np.array([-1, 1, 7, 1], np.int32), np.array([1, 2, 4, 8], F32)
    out = call(positions, values, np.array([5, 6, 7], F32))
    assert np.asarray(out).tolist() == [5, 16, 12]


@every_evaluation
def test_writes_to_operands_are_dropped_at_the_end_of_a_step(interpret):
    def kernel(x, o):
        x[...] = x[...] + F32(5)
        o[...] = x[...]

    call = pk.pallas_call(kernel, ShapeDtypeStruct((2,), F32), grid=3, interpret=interpret)
    assert np.asarray(call(np.zeros(2, F32))).tolist() == [5, 5]


@every_evaluation
@pytest.mark.parametrize("scratch", [{}, None, []], ids=str)
def test_no_scratch_memory(scratch, interpret):
    call = pk.pallas_call(
        copy, ShapeDtypeStruct((2,), F32), scratch_shapes=scratch, interpret=interpret
    )
    assert np.asarray(call(np.ones(2, F32))).tolist() == [1, 1]


@every_evaluation
def test_whole_arrays_beside_prefetched_scalars(interpret):
    def kernel(numbers, x, o):
        o[pk.program_id(0)] = numbers[pk.program_id(0)] + x[0]
        numbers[...] = numbers[...] + np.int32(1)  # dropped at the end of the step

    spec = pk.PrefetchScalarGridSpec(1, grid=3)
    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((3,), np.int32), grid_spec=spec, interpret=interpret
    )
    out = call(np.array([5, 6, 7], np.int32), np.array([10], np.int32))
    assert np.asarray(out).tolist() == [15, 16, 17]


@every_evaluation
@pytest.mark.parametrize("body", [lambda x, o: None, lambda x, o: o.__setitem__(..., o[...])],
                         ids=["unwritten", "unchanged"])  # fmt: skip
def test_results_that_keep_their_operand(body, interpret):
    block = pk.BlockSpec((2,), lambda i: i)
    call = pk.pallas_call(
        body, ShapeDtypeStruct((4,), F32), grid=2, out_specs=block, input_output_aliases={0: 0},
        interpret=interpret,
    )  # fmt: skip
    assert np.asarray(call(np.arange(4, dtype=F32))).tolist() == [0, 1, 2, 3]
