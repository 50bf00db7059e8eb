"""Kernels beside the reference's interpreter: the same programs, run by both libraries."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import primax
import primax_interpreters

F32 = np.float32


def side(lib: Any) -> SimpleNamespace:
    """The modules of a library that kernels use."""
    name = lib.__name__
    return SimpleNamespace(
        lib=lib,
        np=importlib.import_module(f"{name}.numpy"),
        pl=importlib.import_module(f"{name}.experimental.pallas"),
        tpu=importlib.import_module(f"{name}.experimental.pallas.tpu"),
    )


OURS, THEIRS = side(primax), side(jax)


def rows(s, shape, rows=2):
    return s.pl.BlockSpec((rows, shape[1]), lambda i: (i, 0))


def normalise(s, x):
    def kernel(x_ref, o_ref):
        x = x_ref[...]
        mean = x.mean(-1, keepdims=True)
        o_ref[...] = (x - mean) * s.lib.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    spec = rows(s, x.shape)
    return s.pl.pallas_call(
        kernel, s.lib.ShapeDtypeStruct(x.shape, F32), grid=(s.pl.cdiv(x.shape[0], 2),),
        in_specs=[spec], out_specs=spec, interpret=True,
    )(x)  # fmt: skip


def matmul(s, a, b):
    def kernel(a_ref, b_ref, o_ref, total):
        @s.pl.when(s.pl.program_id(2) == 0)
        def _():
            total[...] = s.np.zeros_like(total)

        total[...] += s.np.dot(a_ref[...], b_ref[...], preferred_element_type=F32)

        @s.pl.when(s.pl.program_id(2) == s.pl.num_programs(2) - 1)
        def _():
            o_ref[...] = s.np.maximum(total[...], 0)

    return s.pl.pallas_call(
        kernel, s.lib.ShapeDtypeStruct((a.shape[0], b.shape[1]), F32),
        grid_spec=s.pl.GridSpec(
            grid=(a.shape[0] // 4, b.shape[1] // 4, a.shape[1] // 2),
            in_specs=[
                s.pl.BlockSpec((4, 2), lambda i, j, k: (i, k)),
                s.pl.BlockSpec((2, 4), lambda i, j, k: (k, j)),
            ],
            out_specs=s.pl.BlockSpec((4, 4), lambda i, j, k: (i, j)),
            scratch_shapes=[s.tpu.VMEM((4, 4), F32)],
        ),
        compiler_params=s.tpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")
        ),
        interpret=True,
    )(a, b)  # fmt: skip


def gathered_rows(s, indices, x):
    def kernel(indices, x_ref, o_ref):
        i = s.pl.program_id(0)
        o_ref[...] = x_ref[...] * indices[i]

    return s.pl.pallas_call(
        kernel, s.lib.ShapeDtypeStruct((indices.shape[0], x.shape[1]), F32),
        grid_spec=s.tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(indices.shape[0],),
            in_specs=[s.pl.BlockSpec((1, x.shape[1]), lambda i, rows: (rows[i], 0))],
            out_specs=s.pl.BlockSpec((1, x.shape[1]), lambda i, rows: (i, 0)),
        ),
        interpret=True,
    )(indices, x)  # fmt: skip


def loops(s, x):
    def kernel(x_ref, o_ref):
        def body(i, carry):
            row = x_ref[s.pl.ds(i, 1), :]
            o_ref[s.pl.ds(i, 1), :] = row + carry
            return carry + row

        s.lib.lax.fori_loop(0, x.shape[0], body, s.np.zeros((1, x.shape[1]), F32))

        def scoped(buffer):
            buffer[...] = o_ref[...]
            o_ref[0, :] = buffer[1, :] * 2

        s.pl.run_scoped(scoped, s.tpu.VMEM(x.shape, F32))

    return s.pl.pallas_call(kernel, s.lib.ShapeDtypeStruct(x.shape, F32), interpret=True)(x)


def histogram(s, x):
    def kernel(x_ref, o_ref):
        @s.pl.when(s.pl.program_id(0) == 0)
        def _():
            o_ref[...] = s.np.zeros(o_ref.shape, np.int32)

        o_ref[...] += (x_ref[...][:, None] == s.np.arange(4)).sum(0).astype(np.int32)

    return s.pl.pallas_call(
        kernel, s.lib.ShapeDtypeStruct((4,), np.int32), grid=3,
        in_specs=[s.pl.BlockSpec((4,), lambda i: (i,))],
        out_specs=s.pl.BlockSpec((4,), lambda i: (0,)), interpret=True,
    )(x)  # fmt: skip


def shifted_windows(s, x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    return s.pl.pallas_call(
        kernel, s.lib.ShapeDtypeStruct((4, 4), F32), grid=4,
        in_specs=[s.pl.BlockSpec((s.pl.Element(4, (1, 2)),), lambda i: (i * 2,))],
        out_specs=s.pl.BlockSpec((s.pl.squeezed, 4), lambda i: (i, 0)), interpret=True,
    )(x)  # fmt: skip


def partial_sums(s, x):
    def kernel(x_ref, o_ref):
        o_ref[...] = s.np.full((4,), x_ref[...].sum())

    block = s.pl.BlockSpec((4,), lambda i: (i,))
    return s.pl.pallas_call(
        kernel, s.lib.ShapeDtypeStruct(x.shape, x.dtype), grid=3, in_specs=[block],
        out_specs=block, interpret=True,
    )(x)  # fmt: skip


def nothing_written(s, x):
    return s.pl.pallas_call(
        lambda x_ref, o_ref: None, s.lib.ShapeDtypeStruct(x.shape, x.dtype), interpret=True
    )(x)


def aliased(s, x):
    def kernel(x_ref, o_ref):
        o_ref[0:2] = x_ref[0:2] * 10

    return s.pl.pallas_call(
        kernel, s.lib.ShapeDtypeStruct(x.shape, F32), input_output_aliases={0: 0}, interpret=True
    )(x)


def dictionaries(s, x):
    def kernel(x_ref, o_ref):
        o_ref["double"][...] = x_ref["a"][...] * 2
        o_ref["sum"][0] = x_ref["a"][...].sum()

    shapes = {
        "double": s.lib.ShapeDtypeStruct(x.shape, F32), "sum": s.lib.ShapeDtypeStruct((1,), F32)
    }  # fmt: skip
    return s.pl.pallas_call(kernel, shapes, interpret=True)({"a": x})


rng = np.random.default_rng(0)
X = rng.standard_normal((6, 5)).astype(F32)
VECTOR = np.arange(10, dtype=F32)
PROGRAMS = {
    "normalise": (normalise, (X,)),
    "partial rows": (normalise, (X[:5],)),
    "matmul": (matmul, (rng.standard_normal((8, 6)).astype(F32),) * 1 + (X[:, :4],)),
    "gathered rows": (gathered_rows, (np.array([3, 0, 3, 5], np.int32), X)),
    "loops": (loops, (X,)),
    "histogram": (histogram, (rng.integers(0, 4, 12).astype(np.int32),)),
    "windows": (shifted_windows, (VECTOR[:8],)),
    "partial sums": (partial_sums, (VECTOR,)),
    "partial sums of integers": (partial_sums, (VECTOR.astype(np.int32),)),
    "nothing written": (nothing_written, (VECTOR,)),
    "nothing written to integers": (nothing_written, (VECTOR.astype(np.int32),)),
    "aliased": (aliased, (VECTOR,)),
    "dictionaries": (dictionaries, (VECTOR,)),
}


def compare(ours: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    a, b = primax.tree.leaves(ours), jax.tree.leaves(theirs)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_values(name):
    program, args = PROGRAMS[name]
    compare(program(OURS, *args), program(THEIRS, *args))


@pytest.mark.parametrize("name", ["normalise", "matmul", "loops"])
def test_batches(name):
    program, args = PROGRAMS[name]
    batches = [np.stack([x, 2 * x]) for x in args]
    results = [
        s.lib.vmap(lambda *xs, s=s: program(s, *xs))(*batches) for s in (OURS, THEIRS)
    ]  # fmt: skip
    compare(*results)


def test_tangents():
    # Of a kernel without loops: the reference differentiates only those.
    results = [s.lib.jvp(lambda x, s=s: normalise(s, x), (X,), (2 * X,)) for s in (OURS, THEIRS)]
    compare(*results, tolerance=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        "BlockSpec", "GridSpec", "Element", "Blocked", "Squeezed", "Buffered", "CostEstimate",
        "Slice",
    ],
)  # fmt: skip
def test_public_classes(name):
    ours, theirs = getattr(OURS.pl, name), getattr(THEIRS.pl, name)
    assert isinstance(ours, type) and isinstance(theirs, type)


def test_helpers():
    for a, b in [(0, 4), (1, 4), (8, 4), (9, 4)]:
        assert OURS.pl.cdiv(a, b) == THEIRS.pl.cdiv(a, b)
        assert OURS.pl.align_to(a, b) == THEIRS.pl.align_to(a, b)
    for n in (0, 1, 2, 3, 100):
        assert OURS.pl.next_power_of_2(n) == THEIRS.pl.next_power_of_2(n)
    assert OURS.pl.strides_from_shape((2, 3, 4)) == THEIRS.pl.strides_from_shape((2, 3, 4))


# Keys for kernels


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_words_of_keys_for_kernels(impl):
    def words(side):
        key = side.lib.random.key(7, impl=impl)
        return np.asarray(side.lib.random.key_data(side.tpu.to_pallas_key(key)))

    np.testing.assert_array_equal(words(OURS), words(THEIRS))
    key = OURS.tpu.to_pallas_key(primax.random.key(7, impl=impl))
    assert str(key.dtype) == "key<pl>" and OURS.tpu.to_pallas_key(key) is key


def test_keys_for_kernels_draw_the_same_numbers_inside_and_outside():
    keys = OURS.tpu.to_pallas_key(primax.random.split(primax.random.key(1), 3))
    assert keys.shape == (3,) and primax.random.key_data(keys).shape == (3, 1, 2)

    def own(key, i):
        return primax.random.normal(primax.random.fold_in(key, i), (4, 8))

    def kernel(key, out):
        out[...] = own(key[...], OURS.pl.program_id(0))

    call = OURS.pl.pallas_call(
        kernel, primax.ShapeDtypeStruct((8, 8), F32), grid=2,
        in_specs=[OURS.pl.BlockSpec(memory_space=OURS.tpu.SMEM)],
        out_specs=OURS.pl.BlockSpec((4, 8), lambda i: (i, 0)),
    )  # fmt: skip
    for numbers, key in zip(primax.vmap(call)(keys), keys, strict=True):
        expected = np.concatenate([own(key, 0), own(key, 1)])
        np.testing.assert_allclose(numbers, expected, rtol=1e-6)


def test_bits_of_keys_for_kernels():
    key = OURS.tpu.to_pallas_key(primax.random.key(3))
    many = np.asarray(primax.random.uniform(key, (10_000,)))
    assert abs(many.mean() - 0.5) < 0.02 and abs(many.var() - 1 / 12) < 0.01
    assert len(set(np.asarray(primax.random.bits(key, (1000,))).tolist())) == 1000
    for dtype in (np.uint8, np.uint16, np.uint32):
        bits = np.asarray(primax.random.bits(key, (4000,), dtype))
        ones = np.unpackbits(bits.view(np.uint8)).mean()
        assert bits.dtype == dtype and abs(ones - 0.5) < 0.02
    with pytest.raises(NotImplementedError, match=r"is not split: random\.fold_in makes further"):
        primax.random.split(key)
    with pytest.raises(TypeError, match=r"to_pallas_key takes random keys, as of random.key, got"):
        OURS.tpu.to_pallas_key(primax.random.PRNGKey(0))
    drawn = primax.jit(lambda k: primax.random.uniform(k, (3,)))(key)
    np.testing.assert_array_equal(drawn, primax.random.uniform(key, (3,)))


# Pipelines in buffers of the kernel


def test_pipelines_with_allocations():
    def run(side, **options):
        x = side.np.arange(64 * 128, dtype=F32).reshape(64, 128)
        part = side.pl.BlockSpec((16, 128), lambda i: (i, 0))

        def double(x_ref, o_ref):
            o_ref[...] = x_ref[...] * 2

        pipeline, buffers = side.tpu.emit_pipeline_with_allocations(
            double, grid=(4,), in_specs=[part], out_specs=[part]
        )

        def kernel(x_ref, o_ref):
            def twice(own):
                pipeline(x_ref, o_ref, allocations=own)
                pipeline(o_ref, o_ref, allocations=own)

            side.pl.run_scoped(twice, buffers(x_ref, o_ref))

        there = side.pl.BlockSpec(memory_space=side.pl.ANY)
        out = side.lib.ShapeDtypeStruct(x.shape, F32)
        return side.pl.pallas_call(
            kernel, out, in_specs=[there], out_specs=there, **options
        )(x)  # fmt: skip

    device = jax.sharding.AbstractDevice(platform="tpu", device_kind="TPU v5e", num_cores=1)
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=device)
    with jax.sharding.use_abstract_mesh(mesh):
        expected = run(THEIRS, interpret=THEIRS.tpu.InterpretParams())
    np.testing.assert_array_equal(run(OURS), expected)


def test_types_of_buffers():
    def described(side):
        spec = side.pl.BlockSpec((16, 128), lambda i: (i, 0))
        buffered, kind = side.tpu.BufferedRef, side.tpu.BufferType
        buffers = [
            buffered.input(spec, F32), buffered.output(spec, F32),
            buffered.input_output(spec, F32), buffered.create(spec, F32, kind.OUTPUT, 3, 1),
        ]  # fmt: skip
        return [
            (b.window_ref.shape, b.buffer_type.name, b.buffer_count, b.is_input, b.is_output,
             b.is_input_output, b.is_buffered, b.block_shape, b.sem_recvs is None,
             b.sem_sends is None)
            for b in buffers
        ]  # fmt: skip

    assert described(OURS) == described(THEIRS)


def test_names_of_kernels_in_explanations():
    def scaled_rows(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    part = OURS.pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = OURS.pl.pallas_call(
        scaled_rows, primax.ShapeDtypeStruct((64, 128), F32), grid=8, in_specs=[part],
        out_specs=part,
    )  # fmt: skip
    report = primax_interpreters.explain(
        lambda x: primax.numpy.sin(call(x)), np.ones((64, 128), F32)
    )
    assert any("scaled_rows" in scope for kernel in report.kernels for scope in kernel.scopes)
