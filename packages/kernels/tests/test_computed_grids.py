"""Grids whose size is computed."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_under_test import F32

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, grad, jit, jvp, lax, vmap
from primax_kernels import tpu

X = np.arange(1, 25, dtype=F32).reshape(6, 4)


def first_rows(n, x, **options):
    """The first rows doubled; those beyond are not written."""

    def kernel(x, o):
        o[...] = x[...] * 2

    row = pk.BlockSpec((1, 4), lambda i: (i, 0))
    return pk.pallas_call(
        kernel, ShapeDtypeStruct(x.shape, F32), grid=(n,), in_specs=[row], out_specs=row, **options
    )(x)  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 4, 6, -3])
def test_the_number_of_steps(n):
    result = np.asarray(jit(first_rows)(np.int32(n), X))
    n = max(n, 0)
    assert result[:n].tolist() == (2 * X[:n]).tolist() and np.isnan(result[n:]).all()


def groups(sizes, x):
    """Sums over rows in the middle dimension, whose size is the largest group's."""

    def kernel(sizes, x, former, o, total):
        g, i, j = pk.program_id(0), pk.program_id(1), pk.program_id(2)

        @pk.when(i == 0)
        def _start():
            total[pk.ds(j, 1)] = lax.full((1, 2), 0, F32)

        @pk.when(i < sizes[g])
        def _add():
            total[pk.ds(j, 1)] += x[...]

        @pk.when(i == pk.num_programs(1) - 1)
        def _end():
            o[...] = total[pk.ds(j, 1)]

    return pk.pallas_call(
        kernel, ShapeDtypeStruct((2, 4), F32), input_output_aliases={2: 0},
        grid_spec=tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(2, lax.reduce_max(sizes, (0,)), 2),
            in_specs=[
                pk.BlockSpec((1, 2), lambda g, i, j, sizes: (3 * g + i, j)),
                pk.BlockSpec((1, 2), lambda g, i, j, sizes: (g, j)),
            ],
            out_specs=pk.BlockSpec((1, 2), lambda g, i, j, sizes: (g, j)),
            scratch_shapes=[tpu.VMEM((2, 2), F32)],
        ),
    )(sizes, x, np.zeros((2, 4), F32))  # fmt: skip


@pytest.mark.parametrize("sizes", [(3, 2), (1, 3), (0, 1)], ids=str)
def test_a_dimension_in_the_middle(sizes):
    result = jit(groups)(np.array(sizes, np.int32), X)
    expected = [X[3 * g : 3 * g + n].sum(0) for g, n in enumerate(sizes)]
    np.testing.assert_allclose(result, expected)


def test_the_size_in_index_maps():
    def reverse(n, x):
        def kernel(x, o):
            o[...] = x[...]

        return pk.pallas_call(
            kernel, ShapeDtypeStruct(x.shape, F32), grid=n,
            in_specs=[pk.BlockSpec((1, 4), lambda i: (pk.num_programs(0) - 1 - i, 0))],
            out_specs=pk.BlockSpec((1, 4), lambda i: (i, 0)),
        )(x)  # fmt: skip

    assert np.asarray(jit(reverse)(np.int32(6), X)).tolist() == X[::-1].tolist()


def test_transformations():
    n = np.int32(6)
    _, tangent = jvp(lambda x: jit(first_rows)(n, x), (X,), (X,))
    assert np.asarray(tangent).tolist() == (2 * X).tolist()
    batch = np.asarray(vmap(first_rows, in_axes=(0, None))(np.array([2, 5], np.int32), X))
    for n, result in zip((2, 5), batch):
        assert result[:n].tolist() == (2 * X[:n]).tolist() and np.isnan(result[n:]).all()
    with pytest.raises(ValueError, match=r"[Rr]everse"):
        jit(grad(lambda x, n: lax.reduce_sum(first_rows(n, x), (0, 1))))(X, np.int32(6))


def test_a_pipeline():
    def sums(n, x):
        def kernel(n, x, o):
            def add(x, o):
                o[...] = x[...] + pk.num_programs(0)

            row = pk.BlockSpec((1, 4), lambda i: (i, 0))
            tpu.emit_pipeline(add, grid=(n[...],), in_specs=[row], out_specs=[row])(x, o)

        return pk.pallas_call(
            kernel, ShapeDtypeStruct(x.shape, F32),
            grid_spec=pk.PrefetchScalarGridSpec(
                1, 1, [pk.BlockSpec(memory_space=pk.ANY)], pk.BlockSpec(memory_space=pk.ANY)
            ),
        )(n, x)  # fmt: skip

    result = np.asarray(sums(np.int32(4), X))
    assert result[:4].tolist() == (X[:4] + 4).tolist() and np.isnan(result[4:]).all()


def test_sizes_that_are_no_integers():
    with pytest.raises(TypeError, match="sizes of a grid are integers"):
        jit(first_rows)(F32(2), X)


def test_concrete_sizes_are_known():
    assert np.asarray(first_rows(np.int32(6), X, interpret="check")).tolist() == (2 * X).tolist()
    with pytest.raises(TypeError, match="not inside of jit"):
        jit(lambda n: first_rows(n, X, interpret="check"))(np.int32(6))


@pytest.mark.parametrize("tool", [pk.explain_kernel, pk.check_kernel])
def test_reports_need_known_sizes(tool):
    with pytest.raises(NotImplementedError, match=r"has a grid of computed size.*pass integers"):
        tool(first_rows, np.int32(2), X)
    tool(lambda x: first_rows(2, x), X)
