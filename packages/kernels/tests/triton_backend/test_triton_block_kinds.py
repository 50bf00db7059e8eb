"""Programs for Triton with blocks of bounded slices and at positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from triton_operations import kernel_of
from ttir_evaluator import evaluate

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, lax
from primax_kernels import tpu, triton
from primax_kernels._triton.program import emit

F32 = np.float32
X = np.arange(24, dtype=F32).reshape(12, 2)
OFFSETS = np.array([0, 3, 4, 4, 12], np.int32)
ROWS = np.array([3, 1, 4, 0, 5, 9], np.int32)
SLICE = pk.BlockSpec((pk.BoundedSlice(8), 2), lambda i, o: (pk.ds(o[i], o[i + 1] - o[i]), 0))
AT = pk.BlockSpec((pk.Indirect(3), 2), lambda i, rows: (rows[pk.ds(i * 3, 3)], 0))
THREE = pk.BlockSpec((3, 2), lambda i, rows: (i, 0))
TWO = pk.BlockSpec((2, 2), lambda i, rows: (i, 0))
OWN = pk.BlockSpec((None, 8, 2), lambda i, o: (i, 0, 0))
ROW = pk.BlockSpec((1, 2), lambda i, o: (i, 0))


def doubles(*refs: Any) -> None:
    refs[-1][...] = refs[-2][...] * F32(2)


def sums(o: Any, x: Any, out: Any) -> None:
    size = o[pk.program_id(0) + 1] - o[pk.program_id(0)]
    inside = lax.lt(lax.broadcasted_iota(np.int32, (8, 2), 0), size)
    terms = lax.select(inside, x[...], lax.full((8, 2), 0, F32))
    out[...] = lax.expand_dims(lax.reduce_sum(terms, (0,)), (0,))


def parts(rows: Any, x: Any, o: Any) -> None:
    o[...] = x[pk.ds(1, 2)]
    o[1] = x[2] + x[0]


CASES: dict[str, tuple[Any, ...]] = {
    "groups": (doubles, (12, 2), SLICE, SLICE, OFFSETS, 4),
    "groups of a part": (doubles, (12, 2), SLICE, SLICE, np.array([2, 5, 5, 6, 6], np.int32), 4),
    "after a slice": (doubles, (4, 8, 2), SLICE, OWN, OFFSETS, 4),
    "sums": (sums, (4, 2), SLICE, ROW, OFFSETS, 4),
    "gather": (doubles, (6, 2), AT, THREE, ROWS, 2),
    "scatter": (doubles, (12, 2), THREE, AT, ROWS, 2),
    "parts": (parts, (4, 2), AT, TWO, ROWS, 2),
    "positions outside": (doubles, (6, 2), AT, THREE, np.array([30, -1, 4, 0, 5, 9], np.int32), 2),
}


@pytest.mark.parametrize("name", CASES)
def test_programs_compute_what_the_kernel_does_on_a_cpu(name: str) -> None:
    kernel, shape, in_spec, out_spec, scalars, grid = CASES[name]
    spec = tpu.PrefetchScalarGridSpec(1, grid=grid, in_specs=[in_spec], out_specs=out_spec)
    call = pk.pallas_call(kernel, ShapeDtypeStruct(shape, F32), grid_spec=spec)
    assert triton.limits(call, scalars, X) == ()
    traced = kernel_of(call, scalars, X)
    (result,) = evaluate(emit(traced), traced, [scalars, X])
    np.testing.assert_array_equal(result, np.asarray(call(scalars, X)))
