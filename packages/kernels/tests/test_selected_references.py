"""References chosen by computed numbers, pipelines divided among cores, steps of pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels_under_test import F32

import primax_kernels as pk
from primax_core import ShapeDtypeStruct as S, grad, jit, lax, vmap
from primax_kernels import tpu

MODES = pytest.mark.parametrize("interpret", [False, "check", "python"])
X = np.arange(8, dtype=F32).reshape(4, 2)
I32 = np.int32


def chosen(kernel: Any, i: Any, *xs: Any, out: Any = None, interpret: Any = False) -> Any:
    shape = S((4, 2), F32) if out is None else out
    return pk.pallas_call(kernel, shape, interpret=interpret)(np.asarray(i, I32), *xs)


def copies(i, a, b, o):
    o[...] = pk.select_ref(i[...], a, b)[...]


def copies_by_semaphore(i, a, b, o):
    def with_semaphore(sem):
        copy = tpu.async_copy(pk.select_ref(i[...], a, b).at[pk.ds(1, 2)], o.at[pk.ds(0, 2)], sem)
        copy.wait()

    o[...] = a[...]
    pk.run_scoped(with_semaphore, tpu.SemaphoreType.DMA)


def writes(i, x, a, b):
    a[...] = x[...]
    b[...] = x[...]
    target = pk.select_ref(i[...], a.at[pk.ds(0, 2)], b.at[pk.ds(0, 2)])
    target[...] = target[...] * F32(2)
    tpu.sync_copy(x.at[pk.ds(2, 2)], pk.select_ref(1 - i[...], a, b).at[pk.ds(0, 2)])


@MODES
@pytest.mark.parametrize("i", [0, 1])
def test_selected_references(i, interpret):
    xs = X, X + 10
    out = chosen(copies, i, *xs, interpret=interpret)
    np.testing.assert_array_equal(out, xs[i])
    out = chosen(copies_by_semaphore, i, *xs, interpret=interpret)
    np.testing.assert_array_equal(out, np.concatenate([xs[i][1:3], X[2:]]))
    results = chosen(writes, i, X, out=[S((4, 2), F32)] * 2, interpret=interpret)
    np.testing.assert_array_equal(results[i], np.concatenate([2 * X[:2], X[2:]]))
    np.testing.assert_array_equal(results[1 - i], np.concatenate([X[2:], X[2:]]))


def test_transformations_of_selected_references():
    def total(i, a, b):
        return lax.reduce_sum(chosen(copies, i, a, b) ** 2, (0, 1))

    slopes = grad(total, (1, 2))(1, X, X + 1)
    np.testing.assert_array_equal(slopes[0], 0 * X)
    np.testing.assert_array_equal(slopes[1], 2 * (X + 1))
    call = pk.pallas_call(copies, S((4, 2), F32))
    mapped = vmap(call, (0, None, None))(np.array([1, 0, 5], I32), X, X + 10)
    np.testing.assert_array_equal(mapped, np.stack([X + 10, X, X + 10]))


def test_known_numbers_choose_at_once():
    def kernel(a, b, o):
        assert pk.select_ref(1, a, b) is b
        o[...] = pk.select_ref(0, a, b)[...]

    np.testing.assert_array_equal(pk.pallas_call(kernel, S((4, 2), F32))(X, X + 1), X)


@pytest.mark.parametrize(
    ("choose", "error", "text"),
    [
        (lambda a, o: pk.select_ref(0), ValueError, "select_ref takes at least one reference"),
        (
            lambda a, o: pk.select_ref(0, a, o),
            ValueError,
            r"one shape and dtype, got float32\[4, 2",
        ),
        (lambda a, o: pk.select_ref(2, a, a), IndexError, "has 2 references, and chooses number 2"),
        (lambda a, o: pk.select_ref(a[...], a), TypeError, "takes an integer scalar, got float32"),
    ],
    ids=["none", "shapes", "range", "array"],
)
def test_bad_choices(choose, error, text):
    with pytest.raises(error, match=text):
        pk.pallas_call(lambda a, o: choose(a, o) and None, S((2,), F32))(X)


# Pipelines


def doubles(x, o):
    o[...] = x[...] * F32(2)


BLOCK = pk.BlockSpec((2, 2), lambda i: (i, 0))


@MODES
@pytest.mark.parametrize(("steps", "cores"), [(4, 2), (5, 2), (3, 4)])
def test_cores_divide_pipelines(steps, cores, interpret):
    def kernel(x, o):
        tpu.emit_pipeline(
            doubles, grid=steps, in_specs=[BLOCK], out_specs=[BLOCK], core_axis_name="core",
            dimension_semantics=(tpu.PARALLEL,),
        )(x, o)  # fmt: skip

    x = np.arange(4 * steps, dtype=F32).reshape(2 * steps, 2)
    mesh = tpu.TensorCoreMesh(axis_name="core", num_cores=cores)
    out = pk.kernel(kernel, S(x.shape, F32), mesh=mesh, interpret=interpret)(x)
    np.testing.assert_array_equal(out, 2 * x)


def test_each_core_has_its_part():
    def kernel(o):
        def body(step, o):
            o[...] = lax.broadcast(10 * step.local_index + lax.axis_index("core"), (1, 1))

        own = pk.BlockSpec((1, 1), lambda i, j: (i, j))
        tpu.emit_pipeline(
            body, grid=(2, 6), out_specs=[own], core_axis_name="core", _explicit_indices=True,
            dimension_semantics=("arbitrary", "parallel"),
        )(o)  # fmt: skip

    mesh = tpu.TensorCoreMesh(axis_name="core", num_cores=2)
    out = pk.kernel(kernel, S((2, 6), I32), mesh=mesh)()
    assert np.asarray(out).tolist() == [[0, 10, 20, 1, 11, 21], [30, 40, 50, 31, 41, 51]]


@MODES
def test_dimensions_of_the_grid_around_divide_pipelines(interpret):
    def kernel(x, o):
        def body(step, x, o):
            assert isinstance(step, tpu.PipelineStep)
            index = lax.convert_element_type(step.index[0], F32)
            o[...] = x[...] + index * F32(100) + F32(pk.num_programs(0))

        tpu.emit_pipeline(
            body, grid=4, in_specs=[BLOCK], out_specs=[BLOCK], core_axis=0,
            dimension_semantics=("parallel",), _explicit_indices=True,
        )(x, o)  # fmt: skip

    x = np.arange(16, dtype=F32).reshape(8, 2)
    out = pk.pallas_call(kernel, S((8, 2), F32), grid=2, interpret=interpret)(x)
    np.testing.assert_array_equal(out, x + 100 * np.repeat(np.arange(4), 2)[:, None] + 4)


def test_derivatives_of_divided_pipelines():
    mesh = tpu.TensorCoreMesh(axis_name="core", num_cores=2)

    def kernel(x, o):
        tpu.emit_pipeline(
            doubles, grid=5, in_specs=[BLOCK], out_specs=[BLOCK], core_axis_name="core",
            dimension_semantics=("parallel",),
        )(x, o)  # fmt: skip

    x = np.arange(20, dtype=F32).reshape(10, 2)
    call = pk.kernel(kernel, S((10, 2), F32), mesh=mesh)
    slope = jit(grad(lambda x: lax.reduce_sum(call(x) * call(x), (0, 1))))(x)
    np.testing.assert_array_equal(slope, 8 * x)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"core_axis": 0}, ValueError, r"declare one by tpu\.PARALLEL"),
        ({"core_axis": 0, "dimension_semantics": ("arbitrary",)}, ValueError, "the grid .4,. has"),
        ({"core_axis": 0, "core_axis_name": "core", "dimension_semantics": ("parallel",)},
         TypeError, "takes either core_axis or core_axis_name"),
        ({"core_axis_name": "core", "dimension_semantics": ("parallel",)}, NameError,
         "emit_pipeline over the axis 'core': the axes of cores here are none"),
        ({"core_axis_name": ("a", "b"), "dimension_semantics": ("parallel",)}, TypeError,
         "core_axis_name is the name of one axis"),
    ],
    ids=["undeclared", "arbitrary", "both", "no_cores", "names"],
)  # fmt: skip
def test_bad_divisions(options, error, text):
    def kernel(x, o):
        tpu.emit_pipeline(doubles, grid=4, in_specs=[BLOCK], out_specs=[BLOCK], **options)(x, o)

    with pytest.raises(error, match=text):
        pk.pallas_call(kernel, S((8, 2), F32), grid=2)(np.zeros((8, 2), F32))


# Parameters and errors of compilers


def test_base_classes():
    from primax_kernels import triton

    for params in (tpu.CompilerParams(), triton.CompilerParams(), pk.CompilerParams()):
        assert isinstance(params, pk.CompilerParams)
        call = pk.pallas_call(doubles, S((4, 2), F32), compiler_params=params)
        np.testing.assert_array_equal(call(X), 2 * X)
    assert issubclass(tpu.MosaicError, tpu.LoweringException)
