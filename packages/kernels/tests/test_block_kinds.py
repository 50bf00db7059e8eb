"""Blocks of bounded slices and at positions, against plain NumPy, in all modes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from kernels_under_test import F32

import primax_kernels as pk
from primax_core import ShapeDtypeStruct as S, grad, jit, jvp, lax, vmap
from primax_kernels import tpu

X = np.arange(24, dtype=F32).reshape(12, 2)
OFFSETS = np.array([0, 3, 4, 4, 12], np.int32)
ROWS = np.array([3, 1, 4, 0, 5, 9, 2, 6], np.int32)
MODES = pytest.mark.parametrize("interpret", [False, True, "python"])
SLICE = pk.BlockSpec((pk.BoundedSlice(8), 2), lambda i, o: (pk.ds(o[i], o[i + 1] - o[i]), 0))
AT = pk.BlockSpec((pk.Indirect(4), 2), lambda i, rows: (rows[pk.ds(i * 4, 4)], 0))
FOUR = pk.BlockSpec((4, 2), lambda i, rows: (i, 0))


def doubles(*refs):
    refs[-1][...] = refs[-2][...] * F32(2)


def call(
    kernel: Any, out: Any, in_spec: Any, out_spec: Any, *args: Any, grid: int = 2,
    interpret: Any = False,
) -> Any:  # fmt: skip
    spec = tpu.PrefetchScalarGridSpec(1, grid=grid, in_specs=[in_spec], out_specs=out_spec)
    return pk.pallas_call(kernel, S(out, F32), grid_spec=spec, interpret=interpret)(*args)


def groups(offsets: Any, x: Any, interpret: Any = False) -> Any:
    return call(doubles, (12, 2), SLICE, SLICE, offsets, x, grid=4, interpret=interpret)


def gather(rows: Any, x: Any, interpret: Any = False) -> Any:
    return call(doubles, (8, 2), AT, FOUR, rows, x, interpret=interpret)


def scatter(rows: Any, x: Any, interpret: Any = False) -> Any:
    return call(doubles, (12, 2), FOUR, AT, rows, x, interpret=interpret)


@MODES
def test_groups_of_rows(interpret):
    np.testing.assert_array_equal(groups(OFFSETS, X, interpret), 2 * X)
    out = np.asarray(groups(np.array([2, 5, 5, 6, 6], np.int32), X, interpret))
    np.testing.assert_array_equal(out[2:6], 2 * X[2:6])
    assert np.isnan(out[:2]).all() and np.isnan(out[6:]).all()


@pytest.mark.parametrize("interpret", [False, "python"])
def test_slices_outside_of_the_array_are_moved_to_its_edge(interpret):
    out_spec = pk.BlockSpec((None, 8, 2), lambda i, o: (i, 0, 0))
    offsets = np.array([10, 11, 30, 33, -2], np.int32)
    sizes = np.array([1, 9, 3, 0, 2], np.int32)
    slices = pk.BlockSpec((pk.BoundedSlice(8), 2), lambda i, o: (pk.ds(o[i], o[i + 5]), 0))
    both = np.concatenate([offsets, sizes])
    out = np.asarray(
        call(doubles, (5, 8, 2), slices, out_spec, both, X, grid=5, interpret=interpret)
    )
    expected = np.full((5, 8, 2), np.nan, F32)
    expected[0, 0], expected[1, 0], expected[2, 0] = X[10] * 2, X[11] * 2, X[11] * 2
    expected[4, 0] = X[11] * 2  # the last but one element of the padded array is after the edge
    np.testing.assert_array_equal(out, expected)


@MODES
def test_elements_after_a_slice_are_not_a_number(interpret):
    out_spec = pk.BlockSpec((None, 8, 2), lambda i, o: (i, 0, 0))
    out = call(doubles, (4, 8, 2), SLICE, out_spec, OFFSETS, X, grid=4, interpret=interpret)
    expected = np.full((4, 8, 2), np.nan, F32)
    for i, (start, end) in enumerate(itertools.pairwise(OFFSETS)):
        expected[i, : end - start] = 2 * X[start:end]
    np.testing.assert_array_equal(out, expected)


@MODES
def test_sums_of_groups(interpret):
    def kernel(o, x, out):
        size = o[pk.program_id(0) + 1] - o[pk.program_id(0)]
        row = lax.broadcasted_iota(np.int32, (8, 2), 0)
        rows = lax.select(row < size, x[...], lax.full((8, 2), 0, F32))
        out[...] = lax.reshape(lax.reduce_sum(rows, (0,)), (1, 2))

    out_spec = pk.BlockSpec((1, 2), lambda i, o: (i, 0))
    out = call(kernel, (4, 2), SLICE, out_spec, OFFSETS, X, grid=4, interpret=interpret)
    expected = [X[start:end].sum(0) for start, end in itertools.pairwise(OFFSETS)]
    np.testing.assert_array_equal(out, np.stack(expected))


@MODES
def test_rows_at_positions(interpret):
    np.testing.assert_array_equal(gather(ROWS, X, interpret), 2 * X[ROWS])
    expected = np.full_like(X, np.nan)
    expected[ROWS] = 2 * X[:8]
    np.testing.assert_array_equal(scatter(ROWS, X[:8], interpret), expected)


@MODES
def test_positions_along_the_last_axis_beside_blocks(interpret):
    columns = pk.BlockSpec((3, pk.Indirect(2)), lambda i, j, at: (i, at[pk.ds(2 * j, 2)]))
    spec = tpu.PrefetchScalarGridSpec(
        1, grid=(2, 2), in_specs=[columns], out_specs=pk.BlockSpec((3, 2), lambda i, j, at: (i, j))
    )
    x = np.arange(25, dtype=F32).reshape(5, 5)
    at = np.array([4, 0, 0, 3], np.int32)
    out = pk.pallas_call(doubles, S((5, 4), F32), grid_spec=spec, interpret=interpret)(at, x)
    np.testing.assert_array_equal(out, 2 * x[:, at])


@MODES
def test_results_that_are_added_to_at_positions(interpret):
    """Steps see the contents that steps before them wrote."""

    def kernel(rows, x, former, out):
        out[...] = out[...] + x[...]

    spec = tpu.PrefetchScalarGridSpec(1, grid=2, in_specs=[FOUR, pk.no_block_spec], out_specs=AT)
    add = pk.pallas_call(
        kernel, S((12, 2), F32), grid_spec=spec, input_output_aliases={2: 0}, interpret=interpret
    )
    rows = np.array([1, 2, 3, 4, 4, 3, 9, 1], np.int32)
    expected = X.copy()
    np.add.at(expected, rows, X[:8])
    np.testing.assert_array_equal(add(rows, X[:8], X), expected)


def test_derivatives():
    def total(f):
        return lambda x: lax.reduce_sum(f(x) * f(x), (0, 1))

    for f, x, slope in (
        (lambda x: groups(OFFSETS, x), X, 8 * X),
        (lambda x: gather(ROWS, x), X, 8 * X * np.isin(np.arange(12), ROWS)[:, None]),
    ):
        np.testing.assert_allclose(grad(total(f))(x), slope, rtol=1e-6)
        np.testing.assert_allclose(jit(jvp, static_argnums=0)(f, (x,), (x,))[1], f(x), rtol=1e-6)
    weights = np.where(np.isin(np.arange(12), ROWS)[:, None], F32(1), F32(0)) * X

    def scattered(x):
        out = scatter(ROWS, x)
        return lax.reduce_sum(lax.select(lax.ne(out, out), weights, out * weights), (0, 1))

    np.testing.assert_allclose(grad(scattered)(X[:8]), 2 * weights[ROWS], rtol=1e-6)


def test_batches():
    xs, rows = np.stack([X, X + 1]), np.stack([ROWS, ROWS[::-1]])
    np.testing.assert_array_equal(vmap(gather, (None, 0))(ROWS, xs), 2 * xs[:, ROWS])
    expected = np.stack([2 * X[r] for r in rows])
    np.testing.assert_array_equal(vmap(gather, (0, None))(rows, X), expected)
    np.testing.assert_array_equal(vmap(groups, (None, 0))(OFFSETS, xs), 2 * xs)


def test_grids_of_computed_size():
    @jit
    def run(n):
        return pk.pallas_call(
            lambda x, o: doubles(x, o), S((12, 2), F32), grid=n,
            in_specs=[pk.BlockSpec((pk.BoundedSlice(5), 2), lambda i: (pk.ds(5 * i, 5 - i), 0))],
            out_specs=pk.BlockSpec((pk.BoundedSlice(5), 2), lambda i: (pk.ds(5 * i, 5 - i), 0)),
        )(X)  # fmt: skip

    np.testing.assert_array_equal(np.asarray(run(2))[:9], 2 * X[:9])


@MODES
def test_pipelines(interpret):
    def kernel(rows, x, o, q):
        part = pk.BlockSpec((pk.BoundedSlice(8), 2), lambda i: (pk.ds(i * 5, 5 + i * 2), 0))
        tpu.emit_pipeline(doubles, grid=2, in_specs=[part], out_specs=[part])(x, o)
        own = pk.BlockSpec((4, 2), lambda i: (i, 0))
        at = pk.BlockSpec((pk.Indirect(4), 2), lambda i: (rows[pk.ds(i * 4, 4)], 0))
        tpu.emit_pipeline(doubles, grid=2, in_specs=[at], out_specs=[own])(x, q)

    shapes = [S((12, 2), F32), S((8, 2), F32)]
    first, second = pk.pallas_call(kernel, shapes, interpret=interpret)(ROWS, X)
    np.testing.assert_array_equal(first, 2 * X)
    np.testing.assert_array_equal(second, 2 * X[ROWS])


def test_faults_of_index_maps():
    with pytest.raises(pk.KernelCheckError, match="returns positions 9 to 13 for axis 0, which"):
        gather(ROWS + 9, X, True)
    with pytest.raises(pk.KernelCheckError, match=r"positions \[1, 1, 1, 1\] for axis 0, some of"):
        scatter(np.ones_like(ROWS), X[:8], True)
    with pytest.raises(pk.KernelCheckError, match="returns positions 5 to 12 for axis 0"):
        groups(OFFSETS + 1, X, True)
    with pytest.raises(pk.KernelCheckError, match=r"element .* of result 0, which a parallel step"):
        both = np.zeros_like(ROWS)
        both[:4] = both[4:] = np.arange(4)
        spec = tpu.PrefetchScalarGridSpec(1, grid=2, in_specs=[FOUR], out_specs=AT)
        pk.pallas_call(
            doubles, S((12, 2), F32), grid_spec=spec, interpret=True,
            compiler_params=tpu.CompilerParams(dimension_semantics=("parallel",)),
        )(both, X[:8])  # fmt: skip


def block(entry, index_map):
    return lambda: pk.pallas_call(
        doubles, S((12, 2), F32), grid=2, in_specs=[pk.BlockSpec((entry, 2), index_map)]
    )(X)


@pytest.mark.parametrize(
    ("run", "error", "text"),
    [
        (block(pk.BoundedSlice(4), lambda i: (i, 0)), TypeError, r"return ds\(start, size\)"),
        (block(pk.BoundedSlice(4), lambda i: (pk.ds(i, 5), 0)), ValueError,
         "returns a slice of 5 elements for axis 0, whose block has at most 4"),
        (block(pk.BoundedSlice(4), lambda i: (pk.ds(i, 2, 2), 0)), TypeError, "stride=2"),
        (block(pk.BoundedSlice(4), None), ValueError, "have an index map, which returns the slice"),
        (block(pk.BoundedSlice(0), lambda i: (pk.ds(i, 0), 0)), ValueError, "at least 1 is needed"),
        (block(pk.Indirect(4), lambda i: (i, 0)), TypeError, "return an array of 4 integers"),
        (block(pk.Indirect(4), lambda i: (lax.iota(np.int32, 3) + i, 0)), TypeError,
         r"returns int32\[3\] for an axis of Indirect\(4\)"),
        (lambda: pk.pallas_call(
            doubles, S((12, 2), F32), grid=2,
            in_specs=[pk.BlockSpec((pk.Indirect(1), pk.Indirect(1)), lambda i: (i, i))],
         )(X), ValueError, "has several axes of Indirect; a block has one"),
        (block("4", lambda i: (i, 0)), TypeError, "Element, Squeezed, BoundedSlice and Indirect"),
    ],
    ids=["no_slice", "size", "stride", "no_map", "empty", "no_array", "shape", "several", "text"],
)  # fmt: skip
def test_bad_blocks(run, error, text):
    with pytest.raises(error, match=text):
        run()


def test_tpus_have_these_blocks():
    reasons = tpu.limits(gather, S((8,), np.int32), S((12, 2), F32))
    assert not any("in_specs[0]" in r or "Indirect" in r for r in reasons)


def test_explanations():
    text = str(pk.explain_kernel(groups, OFFSETS, X))
    assert "in_specs[0]: float32[8,2] of float32[12,2]" in text
