"""Masked reads and writes, atomic updates, control flow, copies and pipelines in kernels."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_under_test import F32

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, ds, grad, lax, new_ref
from primax_kernels import tpu, triton

X = np.arange(10, dtype=F32)
modes = pytest.mark.parametrize(
    "options", [{}, {"interpret": "python"}], ids=["compiled", "python"]
)


def run(kernel, out, *args, **options):
    return np.asarray(pk.pallas_call(kernel, out, **options)(*args))


@modes
def test_masked_slices_beyond_the_reference(options):
    def kernel(x, o):
        start = pk.program_id(0) * 4
        mask = lax.iota(np.int32, 4) + start < 10
        block = triton.load(x.at[ds(start, 4)], mask=mask, other=-1.0)
        triton.store(o.at[ds(start, 4)], block * 2, mask=mask)

    out = run(kernel, ShapeDtypeStruct((10,), F32), X, grid=3, **options)
    assert out.tolist() == (X * 2).tolist()


def test_masked_accesses_of_references_in_all_positions():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 6)).astype(F32)
    for start in range(-3, 7):
        for mask_of in (lambda p: p < 6, lambda p: p % 2 == 0):
            position = np.arange(4) + start
            inside = (position >= 0) & (position < 6)
            mask = mask_of(position) & inside
            ref = new_ref(x)
            got = triton.load(ref.at[1, ds(np.int32(start), 4)], mask=mask, other=9.0)
            expected = np.where(mask, x[1][np.clip(position, 0, 5)], 9.0).astype(F32)
            assert np.asarray(got).tolist() == expected.tolist()
            triton.store(ref.at[1, ds(np.int32(start), 4)], np.full(4, 7, F32), mask=mask)
            new = x.copy()
            new[1, position[mask]] = 7
            assert np.asarray(ref[...]).tolist() == new.tolist()


def test_masked_writes_at_positions():
    ref = new_ref(np.zeros(4, F32))
    where = np.array([0, 3, 3, 1], np.int32)
    triton.store(ref.at[where], np.arange(1, 5, dtype=F32), mask=np.array([1, 1, 0, 0], bool))
    assert ref[...].tolist() == [1, 0, 0, 2]
    with pytest.raises(ValueError, match="positions with the shape of the mask"):
        triton.store(new_ref(np.zeros((4, 2), F32)).at[where], 1.0, mask=np.ones((4, 2), bool))


def test_gradient_through_masked_accesses():
    def kernel(x, o):
        mask = lax.iota(np.int32, 4) < 3
        triton.store(o, triton.load(x.at[ds(np.int32(1), 4)], mask=mask) ** 2)

    call = pk.pallas_call(kernel, ShapeDtypeStruct((4,), F32))
    slope = grad(lambda x: lax.reduce_sum(call(x), (0,)))(np.arange(4, dtype=F32))
    assert slope.tolist() == [0, 2, 4, 6]


def test_errors_of_accesses():
    ref = new_ref(np.zeros(4, F32))
    with pytest.raises(ValueError, match="the mask of shape"):
        triton.load(ref, mask=np.ones(3, bool))
    with pytest.raises(ValueError, match="`other` together with a mask"):
        triton.load(ref, other=0.0)
    with pytest.raises(ValueError, match="the value of shape"):
        triton.store(ref, np.zeros((2, 4), F32))
    with pytest.raises(TypeError, match="expected a reference"):
        triton.load(np.zeros(4))
    with pytest.raises(ValueError, match="index the reference once"):
        triton.load(ref.at[np.array([0, 1])].at[0], mask=True)


@modes
def test_atomic_add_counts_repeated_positions(options):
    def kernel(x, o):
        @pk.when(pk.program_id(0) == 0)
        def _first():
            o[...] = lax.full((4,), 0, np.int32)

        triton.atomic_add(o, (x[...],), 1)

    data = np.array([0, 1, 1, 3, 2, 1, 1, 1], np.int32)
    out = run(
        kernel, ShapeDtypeStruct((4,), np.int32), data, grid=2,
        in_specs=[pk.BlockSpec((4,), lambda i: i)], out_specs=pk.BlockSpec((4,), lambda i: 0),
        **options,
    )  # fmt: skip
    assert out.tolist() == np.bincount(data).tolist()


@pytest.mark.parametrize(
    "name, operation",
    [
        ("max", np.maximum), ("min", np.minimum), ("and", np.bitwise_and), ("or", np.bitwise_or),
        ("xor", np.bitwise_xor), ("add", np.add), ("xchg", lambda old, new: new),
    ],
)  # fmt: skip
def test_atomic_updates(name, operation):
    atomic = getattr(triton, f"atomic_{name}")
    x = np.array([1, 6, 3, 9], np.int32)
    ref = new_ref(x)
    old = atomic(ref, slice(1, 3), np.array([5, 2], np.int32))
    assert np.asarray(old).tolist() == [6, 3]
    assert ref[1:3].tolist() == operation(x[1:3], np.array([5, 2])).tolist()
    atomic(ref, ..., 4, mask=np.array([1, 0, 0, 0], bool))
    assert ref[...].tolist() == [operation(1, 4), *np.asarray(ref[1:]).tolist()]


def test_atomic_errors_and_compare_and_swap():
    ref = new_ref(np.array([1, 2], np.int32))
    with pytest.raises(ValueError, match="atomic_add does"):
        triton.atomic_max(ref, np.array([0, 0]), 1)
    with pytest.raises(ValueError, match="takes a scalar reference"):
        triton.atomic_cas(ref, 1, 2)
    assert int(triton.atomic_cas(ref.at[0], 1, 5)) == 1 and ref[0] == 5
    assert int(triton.atomic_cas(ref.at[0], 1, 7)) == 5 and ref[0] == 5


@modes
def test_copies_and_semaphores(options):
    def kernel(x, o, buffer, semaphore):
        copy = tpu.make_async_copy(x.at[ds(2, 4)], buffer, semaphore)
        copy.start()
        copy.wait()
        pk.semaphore_signal(semaphore, 3)
        pk.semaphore_wait(semaphore, 2)
        tpu.sync_copy(buffer, o)
        tpu.async_copy(x.at[0:4], o, semaphore, add=True).wait()
        o[0] = lax.convert_element_type(pk.semaphore_read(semaphore), F32)

    out = run(
        kernel, ShapeDtypeStruct((4,), F32), X, in_specs=[pk.BlockSpec(memory_space=pk.ANY)],
        scratch_shapes=[tpu.VMEM((4,), F32), tpu.SemaphoreType.DMA], **options,
    )  # fmt: skip
    if not options:
        assert out.tolist() == [1, 4, 6, 8]


def test_errors_of_copies():
    ref = new_ref(X)
    with pytest.raises(ValueError, match="shapes and dtypes have to agree"):
        tpu.make_async_copy(ref, ref.at[0:2])
    with pytest.raises(RuntimeError, match="no mesh is around the kernel"):
        pk.semaphore_signal(new_ref(np.int32(0)), device_id=1)


@pytest.mark.parametrize(
    "options",
    [{}, {"interpret": "python"}, {"interpret": "check"}],
    ids=["compiled", "python", "check"],
)
def test_pipeline_inside_of_a_kernel(options):
    def kernel(x, o):
        def body(a, b):
            b[...] = a[...] * lax.convert_element_type(pk.program_id(0), F32)

        block = pk.BlockSpec((4,), lambda i: (i,))
        tpu.emit_pipeline(body, grid=3, in_specs=[block], out_specs=[block])(x, o)

    whole = pk.BlockSpec(memory_space=tpu.HBM)
    out = run(kernel, ShapeDtypeStruct((10,), F32), X, in_specs=[whole], out_specs=whole, **options)
    assert out.tolist() == (X * (np.arange(10) // 4)).tolist()


@pytest.mark.parametrize("dtype", [np.int32, F32])
@modes
def test_partial_blocks_of_pipelines(dtype, options):
    def kernel(x, o):
        def body(a, b):
            b[...] = lax.broadcast(a[3], (4,))

        block = pk.BlockSpec((4,), lambda i: (i,))
        tpu.emit_pipeline(body, grid=2, in_specs=[block], out_specs=[block])(x, o)

    out = run(kernel, ShapeDtypeStruct((6,), dtype), np.arange(6).astype(dtype), **options)
    outside = [np.nan] * 2 if dtype is F32 else [np.iinfo(dtype).min] * 2
    np.testing.assert_array_equal(out, [3, 3, 3, 3, *outside])


def test_number_of_references_of_a_pipeline():
    whole = pk.BlockSpec(memory_space=tpu.HBM)
    with pytest.raises(ValueError, match="got 1 references"):
        tpu.emit_pipeline(lambda a, b: None, grid=1, in_specs=[whole], out_specs=[whole])(1)


@modes
def test_loops_and_scoped_memory(options):
    def kernel(x, o):
        @pk.with_scoped(tpu.VMEM((10,), F32))
        def _scoped(total):
            total[...] = x[...]

            @pk.loop(0, 6, step=2)
            def _iteration(i):
                total[i] = total[i] + 1

            o[...] = total[...]

        count = pk.loop(0, 4, init_carry=0)(lambda i, n: n + i)
        o[1] = lax.convert_element_type(count, F32)

    out = run(kernel, ShapeDtypeStruct((10,), F32), X, **options)
    assert out.tolist() == [1, 6, 3, 3, 5, 5, 6, 7, 8, 9]


def test_roll():
    x = np.arange(12, dtype=F32).reshape(3, 4)
    for shift in (-5, -1, 0, 2, 7):
        assert np.asarray(tpu.roll(x, shift, 1)).tolist() == np.roll(x, shift, 1).tolist()
    rows = [np.roll(row, 1 + 2 * i) for i, row in enumerate(x)]
    out = tpu.roll(x, np.int32(1), 1, stride=2, stride_axis=0)
    assert np.asarray(out).tolist() == np.array(rows).tolist()
    with pytest.raises(ValueError, match="stride and stride_axis together"):
        tpu.roll(x, 1, 1, stride=1)


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True)])
def test_dot(transposed):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 4, 4)).astype(F32)
    expected = (a.T if transposed[0] else a) @ (b.T if transposed[1] else b)
    np.testing.assert_allclose(triton.dot(a, b, *transposed), expected, rtol=1e-5, atol=1e-6)
    assert triton.dot(a.astype(np.float16), b.astype(np.float16)).dtype == F32
    with pytest.raises(ValueError, match="not both"):
        triton.dot(a, b, allow_tf32=True, precision="highest")


def test_helpers():
    assert [pk.cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert pk.align_to(10, 4) == 12 and pk.strides_from_shape((2, 3, 4)) == (12, 4, 1)
    assert [pk.next_power_of_2(n) for n in (0, 1, 3, 100)] == [1, 1, 4, 128]
    assert pk.broadcast_to(np.ones(3, F32), (2, 3)).shape == (2, 3)
    with pytest.raises(TypeError, match="multiple_of takes integers"):
        pk.multiple_of(4, 1.5)
    with pytest.raises(ValueError, match="multiple_of takes positive integers, got 0"):
        pk.multiple_of(np.int32(0), 0)
    with pytest.raises(ValueError, match="power of two"):
        triton.CompilerParams(num_warps=3)


def test_unwritten_arrays_and_references():
    assert pk.empty((2, 3), np.int8).shape == (2, 3)
    like = pk.empty_like({"a": X, "b": ShapeDtypeStruct((2,), np.int32)})
    assert like["a"].shape == (10,) and like["b"].dtype == np.int32

    def kernel(x, o):
        copy = pk.empty_ref_like(x)
        copy[...] = x[...] * 2
        o[...] = copy[...]

    assert run(kernel, ShapeDtypeStruct((10,), F32), X).tolist() == (2 * X).tolist()

    def add_one(refs):
        refs[0][...] = refs[1][...] + 1

    first, second = pk.run_state(add_one)((X, X))
    assert first.tolist() == (X + 1).tolist() and second.tolist() == X.tolist()
