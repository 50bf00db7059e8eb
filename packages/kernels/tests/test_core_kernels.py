"""Kernels on the cores of a mesh: parts, barriers, references, memory on demand, bad input."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from kernels_under_test import F32, full

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, devices, freeze, grad, jit, jvp, lax, new_ref, vmap
from primax_kernels import tpu

CORES = tpu.TensorCoreMesh(axis_name="core", num_cores=3)
X = np.arange(12, dtype=F32).reshape(6, 2)
OUT = ShapeDtypeStruct((6, 2), F32)
MODES = pytest.mark.parametrize("interpret", [False, "check", "python"])


def part(core: Any = None) -> Any:
    return pk.ds(2 * (lax.axis_index("core") if core is None else core), 2)


def scales(x, o):
    factor = lax.convert_element_type(lax.axis_index("core") + 1, F32)
    o[part()] = x[part()] * factor


def rotates(x, o, own, sem):
    """Each core writes its part of the result, then replaces it by that of the next core."""
    core = lax.axis_index("core")
    o[part()] = lax.sin(x[part()])
    tpu.core_barrier(sem, core_axis_name="core")
    own[...] = o[part(lax.rem(core + 1, np.int32(lax.axis_size("core"))))]
    tpu.core_barrier(sem, core_axis_name="core")
    o[part()] = own[...]


SCRATCH = [tpu.VMEM((2, 2), F32), tpu.SemaphoreType.REGULAR]
rotate = pk.kernel(rotates, OUT, mesh=CORES, scratch_types=SCRATCH)


def plain_rotate(x: Any) -> Any:
    y = lax.sin(x)
    return lax.concatenate([lax.slice(y, (2, 0), (6, 2)), lax.slice(y, (0, 0), (2, 2))], 0)


@MODES
def test_each_core_computes_its_part(interpret):
    call = pk.kernel(scales, OUT, mesh=CORES, interpret=interpret)
    expected = X * np.repeat([1, 2, 3], 2)[:, None]
    np.testing.assert_array_equal(call(X), expected)
    if not interpret:
        np.testing.assert_array_equal(jit(call)(X), expected)


@pytest.mark.parametrize("interpret", [False, "check"])
def test_barriers(interpret):
    call = pk.kernel(rotates, OUT, mesh=CORES, scratch_types=SCRATCH, interpret=interpret)
    np.testing.assert_allclose(call(X), plain_rotate(X), rtol=1e-6)


def rotates_often(x, o, own, sem, count=3):
    """Each step rotates the parts once more, and counts the steps in a carry."""
    core = lax.axis_index("core")
    o[part()] = x[part()]

    def step(i, total):
        tpu.core_barrier(sem, core_axis_name="core")
        own[...] = o[part(lax.rem(core + 1, np.int32(lax.axis_size("core"))))]
        jit(lambda: tpu.core_barrier(sem, core_axis_name="core"))()
        o[part()] = own[...] + 1
        return total + lax.convert_element_type(i + core, F32)

    total = lax.fori_loop(0, count, step, F32(0))
    o[part()] = o[part()] + total


def plain_often(x: Any, count: int) -> Any:
    y = np.roll(np.asarray(x), -2 * count, 0) + count
    return y + np.repeat([count * (count - 1) / 2 + count * c for c in range(3)], 2)[:, None]


@pytest.mark.parametrize("interpret", [False, "check"])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_barriers_in_loops(interpret, count):
    kernel = functools.partial(rotates_often, count=count)
    call = pk.kernel(kernel, OUT, mesh=CORES, scratch_types=SCRATCH, interpret=interpret)
    np.testing.assert_array_equal(call(X), plain_often(X, count))


def test_barriers_in_loops_of_computed_length():
    def kernel(n, x, o, own, sem):
        rotates_often(x, o, own, sem, count=n[...])

    call = pk.kernel(kernel, OUT, mesh=CORES, scratch_types=SCRATCH)
    for count in (0, 2, 5):
        np.testing.assert_array_equal(call(np.int32(count), X), plain_often(X, count))


def test_derivatives_of_barriers_in_loops():
    call = pk.kernel(rotates_often, OUT, mesh=CORES, scratch_types=SCRATCH)
    slopes = grad(lambda x: lax.reduce_sum(call(x) * X, (0, 1)))(X)
    np.testing.assert_allclose(slopes, np.roll(X, 6, 0))


def test_transformations_of_barriers():
    def total(f):
        return lambda x: lax.reduce_sum(f(x) * f(x), (0, 1))

    x = X / F32(12)
    np.testing.assert_allclose(grad(total(rotate))(x), grad(total(plain_rotate))(x), rtol=1e-5)
    ours, plain = jvp(rotate, (x,), (x,)), jvp(plain_rotate, (x,), (x,))
    np.testing.assert_allclose(ours[1], plain[1], rtol=1e-5)
    batch = np.stack([x, 2 * x])
    np.testing.assert_allclose(vmap(rotate)(batch), vmap(plain_rotate)(batch), rtol=1e-5)
    np.testing.assert_allclose(jit(rotate)(x), plain_rotate(x), rtol=1e-6)


@MODES
def test_scratch_memory_belongs_to_a_core(interpret):
    def kernel(o, *, count):
        @tpu.run_on_first_core("core")
        def _first():
            count[...] = full((2, 2), 7)

        o[part()] = count[...]

    call = pk.kernel(
        kernel, OUT, mesh=CORES, scratch_types={"count": tpu.VMEM((2, 2), F32)},
        interpret=interpret,
    )  # fmt: skip
    if interpret == "check":
        with pytest.raises(pk.KernelCheckError, match=r"step \(1,\) .* was not written before"):
            call()
    else:
        out = np.asarray(call())
        assert (out[:2] == 7).all() and np.isnan(out[2:]).all()


@MODES
def test_operands_that_are_references(interpret):
    def kernel(x, y, o):
        y[part()] = y[part()] + x[part()]
        o[part()] = y[part()]

    x, y = new_ref(X), new_ref(10 * X)
    out = pk.kernel(kernel, OUT, mesh=CORES, interpret=interpret)(x, y)
    np.testing.assert_array_equal(out, 11 * X)
    np.testing.assert_array_equal(freeze(y), 11 * X)
    np.testing.assert_array_equal(freeze(x), X)


def test_references_inside_of_jit():
    @pk.kernel(mesh=CORES)
    def double(x):
        x[part()] = x[part()] * F32(2)

    @jit
    def twice(x):
        ref = new_ref(x)
        double(ref)
        double(ref)
        return freeze(ref)

    np.testing.assert_array_equal(twice(X), 4 * X)
    slope = grad(lambda x: lax.reduce_sum(twice(x), (0, 1)))(X)
    np.testing.assert_array_equal(slope, np.full_like(X, 4))


def test_earlier_names_of_arguments_and_decorators():
    expected = np.asarray(rotate(X))
    old = pk.kernel(rotates, out_shape=OUT, mesh=[CORES], scratch_shapes=SCRATCH)
    np.testing.assert_array_equal(old(X), expected)
    decorated = pk.kernel(out_type=OUT, mesh=CORES, scratch_types=SCRATCH)(rotates)
    np.testing.assert_array_equal(decorated(X), expected)
    assert decorated.__name__ == "rotates"
    params = tpu.CompilerParams(vmem_limit_bytes=2**20)
    assert pk.kernel(scales, OUT, mesh=CORES, compiler_params=params)(X).shape == (6, 2)


def test_the_index_of_a_core_inside_of_jitted_functions_and_loops():
    @jit
    def index(x):
        return x + lax.axis_index("core") * lax.axis_size("core")

    def kernel(o):
        def body(i, _):
            o[2 * lax.axis_index("core") + i] = index(i)

        lax.fori_loop(0, 2, body, None)

    out = pk.kernel(kernel, ShapeDtypeStruct((6,), np.int32), mesh=CORES)()
    assert np.asarray(out).tolist() == [0, 1, 3, 4, 6, 7]


def test_one_core_needs_no_barrier():
    one = tpu.TensorCoreMesh(axis_name="core")
    assert tpu.create_tensorcore_mesh("core", num_cores=3) == CORES
    assert tpu.create_tensorcore_mesh("core") == one
    assert tpu.create_tensorcore_mesh("core", devices("cpu")) == one
    with pytest.raises(ValueError, match=r"has devices of one kind, got \[\]"):
        tpu.create_tensorcore_mesh("core", [])
    assert one.num_cores == 1 and one == tpu.TensorCoreMesh(axis_name="core", num_cores=1)

    def kernel(x, o, sem):
        o[...] = x[...]
        tpu.core_barrier(sem, core_axis_name="core")

        @tpu.run_on_first_core("core")
        def _first():
            o[0] = x[1]

    scratch = [tpu.SemaphoreType.REGULAR]
    call = pk.kernel(kernel, OUT, mesh=one, scratch_types=scratch, interpret="python")
    np.testing.assert_array_equal(call(X), X[[1, 1, 2, 3, 4, 5]])


def test_cores_that_meet_in_an_element_are_found():
    def kernel(x, o):
        o[...] = x[...]

    with pytest.raises(pk.KernelCheckError, match="result 0, which a parallel step writes"):
        pk.kernel(kernel, OUT, mesh=CORES, interpret="check")(X)


# Memory on demand


@MODES
def test_global_memory_passes_from_step_to_step(interpret):
    def kernel(o):
        a, b = pk.get_global(tpu.SMEM((1,), np.int32)), pk.get_global(tpu.SMEM((1,), np.int32))
        i = pk.program_id(0)

        @pk.when(i == 0)
        def _first():
            a[0] = np.int32(1)
            b[0] = np.int32(10)

        o[0] = a[0] + b[0]
        a[0] = a[0] * np.int32(2)
        b[0] = b[0] + np.int32(10)

    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((4,), np.int32), grid=4,
        out_specs=pk.BlockSpec((1,), lambda i: i), interpret=interpret,
    )  # fmt: skip
    assert np.asarray(call()).tolist() == [11, 22, 34, 48]


@pytest.mark.parametrize("interpret", [False, "check", "python"])
def test_barrier_semaphores_of_one_tag_are_one(interpret):
    def kernel(o):
        a, b = tpu.get_barrier_semaphore("a"), tpu.get_barrier_semaphore("b")
        pk.semaphore_signal(a, 2)
        pk.semaphore_signal(b)
        o[0] = pk.semaphore_read(tpu.get_barrier_semaphore("a"))
        o[1] = pk.semaphore_read(b)
        pk.semaphore_wait(a, 2)
        pk.semaphore_wait(b)

    call = pk.pallas_call(kernel, ShapeDtypeStruct((2,), np.int32), interpret=interpret)
    assert np.asarray(call()).tolist() == [2, 1]


def test_random_bits_with_global_memory():
    def kernel(o):
        first = pk.get_global(ShapeDtypeStruct((3,), np.uint32))  # the type of the generator's
        first[...] = lax.full((3,), 5, np.uint32)
        tpu.prng_seed(1)
        tpu.prng_random_bits((2,))
        o[...] = first[...]

    call = pk.pallas_call(kernel, ShapeDtypeStruct((3,), np.uint32))
    assert np.asarray(call()).tolist() == [5, 5, 5]


def test_semaphores_in_grids_of_computed_size():
    def kernel(o, sem):
        pk.semaphore_signal(sem)
        o[0] = pk.semaphore_read(sem)

    @jit
    def run(n):
        return pk.pallas_call(
            kernel, ShapeDtypeStruct((4,), np.int32), grid=n,
            out_specs=pk.BlockSpec((1,), lambda i: i),
            scratch_shapes=[tpu.SemaphoreType.REGULAR],
        )()  # fmt: skip

    assert np.asarray(run(3))[:3].tolist() == [1, 2, 3]


# Bad input


def test_arguments_of_the_mesh():
    with pytest.raises(TypeError, match="the axis name of a mesh of cores is a string, got 1"):
        tpu.TensorCoreMesh(axis_name=1, num_cores=2)
    with pytest.raises(ValueError, match="a mesh has at least one core, got 0"):
        tpu.TensorCoreMesh(axis_name="core", num_cores=0)
    with pytest.raises(TypeError, match=r"the number of cores is an integer, got 1\.5"):
        tpu.TensorCoreMesh(axis_name="core", num_cores=1.5)
    with pytest.raises(AttributeError, match="TensorCoreMesh is immutable"):
        CORES.num_cores = 4


def test_arguments_of_kernels():
    with pytest.raises(TypeError, match=r"the mesh of a kernel is a tpu\.TensorCoreMesh"):
        pk.kernel(scales, OUT, mesh=3)
    with pytest.raises(TypeError, match="a kernel is a function of references, got 3"):
        pk.kernel(3, OUT, mesh=CORES)
    with pytest.raises(ValueError, match="one function and one mesh, got 2 functions and 2"):
        pk.kernel([scales, scales], OUT, mesh=[CORES, CORES])
    with pytest.raises(TypeError, match="either out_type or its earlier name out_shape, not both"):
        pk.kernel(scales, OUT, out_shape=OUT, mesh=CORES)
    with pytest.raises(TypeError, match="called with 2 operands, 1 results and 0 scratch"):
        pk.kernel(scales, OUT, mesh=CORES)(X, X)
    with pytest.raises(ValueError, match=r"the kernel <lambda> .* returns int"):
        pk.kernel(lambda x, o: 3, OUT, mesh=CORES)(X)
    with pytest.raises(TypeError, match="out_shape is a pytree of objects with a shape"):
        pk.kernel(scales, 3, mesh=CORES)(X)


def barrier_in_a_condition(x, o, own, sem):
    pk.when(x[0, 0] > 0)(lambda: tpu.core_barrier(sem, core_axis_name="core"))


def barrier_of_other_memory(x, o, own, sem):
    tpu.core_barrier(own, core_axis_name="core")


def barrier_over_another_axis(x, o, own, sem):
    tpu.core_barrier(sem, core_axis_name="cores")


def sum_over_cores(x, o, own, sem):
    lax.psum(x[0, 0], "core")


def first_of_another_axis(x, o, own, sem):
    tpu.run_on_first_core("cores")(lambda: None)


@pytest.mark.parametrize(
    ("kernel", "error", "text"),
    [
        (barrier_in_a_condition, ValueError, "inside of cond, where cores may differ: move it out"),
        (barrier_of_other_memory, TypeError, "core_barrier takes a semaphore, such as"),
        (barrier_over_another_axis, NameError, "core_barrier over the axis 'cores': the axes of"),
        (sum_over_cores, ValueError, "psum over the axis 'core' of cores inside of a kernel"),
        (first_of_another_axis, NameError, r"pass mesh=tpu\.TensorCoreMesh\(axis_name='cores'\)"),
    ],
)
def test_bad_uses_of_the_axis(kernel, error, text):
    with pytest.raises(error, match=text):
        pk.kernel(kernel, OUT, mesh=CORES, scratch_types=SCRATCH)(X)


def test_barriers_are_no_python_steps():
    call = pk.kernel(rotates, OUT, mesh=CORES, scratch_types=SCRATCH, interpret="python")
    with pytest.raises(ValueError, match=r'has a core_barrier, .* use interpret="check"'):
        call(X)


def test_memory_on_demand_outside_of_kernels():
    with pytest.raises(RuntimeError, match="get_global is called outside of a kernel"):
        pk.get_global(tpu.SMEM((1,), np.int32))
    with pytest.raises(TypeError, match="the tag of a barrier semaphore is hashable"):
        tpu.get_barrier_semaphore([])


def test_memory_on_demand_keeps_its_type():
    def kernel(o):
        size = 1 + int(pk.program_id(0))
        pk.get_global(tpu.SMEM((size,), np.int32))

    call = pk.pallas_call(kernel, ShapeDtypeStruct((2,), np.int32), grid=2, interpret="python")
    with pytest.raises(ValueError, match=r"is int32\[1\] in one step and int32\[2\] in another"):
        call()


# Captured references


@MODES
def test_captured_references_are_changed_in_place(interpret):
    x, y = new_ref(X), new_ref(0 * X)

    @pk.kernel(mesh=CORES, interpret=interpret)
    def copy():
        y[part()] = x[part()] * F32(2)

    copy()
    copy()
    np.testing.assert_array_equal(freeze(y), 2 * X)
    np.testing.assert_array_equal(freeze(x), X)


@pytest.mark.parametrize("interpret", [False, "check"])
def test_captured_references_of_kernels_with_barriers(interpret):
    y = new_ref(0 * X)

    def kernel(x, factor, o, own, sem):
        y[part()] = x[part()]
        tpu.core_barrier(sem, core_axis_name="core")
        own[...] = y[part(lax.rem(lax.axis_index("core") + 1, np.int32(3)))]
        o[part()] = own[...] * factor[0]
        factor[0] = factor[0] + F32(0)

    factor = new_ref(np.array([3], F32))
    call = pk.kernel(kernel, OUT, mesh=CORES, scratch_types=SCRATCH, interpret=interpret)
    np.testing.assert_array_equal(call(X, factor), 3 * np.roll(X, -2, 0))
    np.testing.assert_array_equal(freeze(y), X)


def test_captured_references_inside_of_jit():
    @jit
    def run(x):
        total = new_ref(x)

        @pk.kernel(mesh=CORES)
        def add(x):
            total[part()] = total[part()] + x[part()]

        add(x)
        add(x)
        return freeze(total)

    np.testing.assert_array_equal(run(X), 3 * X)


def test_references_that_other_kernels_capture():
    x = new_ref(X)

    def kernel(o):
        o[...] = x[...]

    with pytest.raises(ValueError, match=r"uses references from outside \(Ref\{float32\[6,2\]\}"):
        pk.pallas_call(kernel, OUT)()
