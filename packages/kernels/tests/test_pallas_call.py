"""Values, derivatives and batches of kernels, beside plain code and stepping in Python."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_under_test import CASES, F32, add_blocks, operands

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, grad, jit, jvp, lax, make_jaxpr, vmap
from primax_core.ad_checkpoint import checkpoint
from primax_kernels.tpu import VMEM

every_case = pytest.mark.parametrize("name", list(CASES))


@every_case
def test_values(name):
    case = CASES[name]
    args = operands(case)
    expected = case.plain(*args)
    np.testing.assert_allclose(case.call(*args), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jit(case.call)(*args), expected, rtol=1e-5, atol=1e-6)


@every_case
def test_python_stepping(name):
    case = CASES[name]
    args = operands(case)
    stepped = case.call(*args, interpret="python")
    np.testing.assert_allclose(case.call(*args), stepped, rtol=1e-6, atol=1e-6)


@every_case
def test_gradients(name):
    case = CASES[name]
    args = operands(case)
    weights = np.random.default_rng(1).standard_normal(case.plain(*args).shape).astype(F32)

    def loss(f):
        return lambda *xs: lax.reduce_sum(f(*xs) * weights, range(weights.ndim))

    argnums = tuple(range(len(args)))
    for ours, plain in zip(
        grad(loss(case.call), argnums)(*args), grad(loss(case.plain), argnums)(*args)
    ):
        np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-5)


@every_case
def test_tangents(name):
    case = CASES[name]
    args, tangents = operands(case), operands(case, seed=2)
    out, t = jvp(case.call, args, tangents)
    plain_out, plain_t = jvp(case.plain, args, tangents)
    np.testing.assert_allclose(out, plain_out, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(t, plain_t, rtol=1e-4, atol=1e-5)


@every_case
def test_batches(name):
    case = CASES[name]
    batches = [np.stack([x, x * F32(0.5), -x]) for x in operands(case)]
    expected = vmap(case.plain)(*batches)
    np.testing.assert_allclose(vmap(case.call)(*batches), expected, rtol=1e-5, atol=1e-6)


def test_second_order_gradient_of_attention():
    case = CASES["attention"]
    q, k, v = operands(case)

    def second(f):
        def total(x):
            inner = grad(lambda x: lax.reduce_sum(f(x, k, v) ** 2, (0, 1, 2)))(x)
            return lax.reduce_sum(inner * inner, (0, 1, 2))

        return grad(total)(q)

    np.testing.assert_allclose(second(case.call), second(case.plain), rtol=2e-3, atol=1e-4)


def test_under_checkpoint_scan_and_jit():
    x = np.linspace(0, 1, 8, dtype=F32)

    def body(carry, _):
        carry = checkpoint(lambda c: lax.sin(add_blocks(c, c)))(carry)
        return carry, None

    def plain(carry, _):
        return lax.sin(carry + carry), None

    def total(body):
        return lambda x: lax.reduce_sum(lax.scan(body, x, None, length=3)[0], (0,))

    np.testing.assert_allclose(
        jit(grad(total(body)))(x), jit(grad(total(plain)))(x), rtol=1e-5, atol=1e-6
    )


def test_pytrees_of_operands_and_results():
    def kernel(xs, scale, out):
        out["sum"][...] = xs["a"][...] + xs["b"][...] * scale[...]
        out["first"][...] = xs["a"][...]

    shape = ShapeDtypeStruct((3,), F32)
    x = np.arange(3, dtype=F32)
    out = pk.pallas_call(kernel, {"sum": shape, "first": shape})({"a": x, "b": 2 * x}, x)
    assert out["sum"].tolist() == [0, 3, 10] and out["first"].tolist() == [0, 1, 2]


def test_scratch_by_keyword():
    def kernel(x, o, *, total):
        total[...] = x[...]
        o[...] = total[...] * 2

    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((3,), F32), scratch_shapes={"total": VMEM((3,), F32)}
    )
    assert call(np.arange(3, dtype=F32)).tolist() == [0, 2, 4]


@pytest.mark.parametrize("options", [{}, {"interpret": "python"}], ids=["compiled", "python"])
def test_prefetched_scalars_choose_blocks(options):
    spec = pk.PrefetchScalarGridSpec(
        1, grid=3, in_specs=[pk.BlockSpec((2,), lambda i, rows: (rows[i],))],
        out_specs=pk.BlockSpec((2,), lambda i, rows: (i,)),
    )  # fmt: skip

    def plus(rows, x, o):
        o[...] = x[...] + lax.convert_element_type(rows[0], F32)

    call = pk.pallas_call(plus, ShapeDtypeStruct((6,), F32), grid_spec=spec, **options)
    x = np.arange(10, dtype=F32)
    assert np.asarray(call(np.array([4, 0, 2], np.int32), x)).tolist() == [12, 13, 4, 5, 8, 9]


@pytest.mark.parametrize("options", [{}, {"interpret": "python"}], ids=["compiled", "python"])
def test_aliased_results_begin_with_the_operand(options):
    def kernel(x, o):
        o[0:2] = x[0:2] * 10

    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((4,), F32), input_output_aliases={0: 0}, **options
    )
    assert np.asarray(call(np.arange(4, dtype=F32))).tolist() == [0, 10, 2, 3]


@pytest.mark.parametrize("options", [{}, {"interpret": "python"}], ids=["compiled", "python"])
def test_memory_that_was_not_written(options):
    def kernel(x, o, i):
        pass

    shapes = [ShapeDtypeStruct((2,), F32), ShapeDtypeStruct((2,), np.int32)]
    floats, integers = pk.pallas_call(kernel, shapes, **options)(np.zeros(2, F32))
    assert np.isnan(floats).all() and np.asarray(integers).tolist() == [-(2**31)] * 2


@pytest.mark.parametrize("options", [{}, {"interpret": "python"}], ids=["compiled", "python"])
def test_elements_outside_of_the_array_are_nan(options):
    def kernel(x, o):
        o[...] = lax.broadcast(lax.reduce_sum(x[...], (0,)), (4,))

    block = pk.BlockSpec((4,), lambda i: i)
    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((6,), F32), grid=2, in_specs=[block], out_specs=block, **options
    )
    out = np.asarray(call(np.arange(6, dtype=F32)))
    assert out[:4].tolist() == [6] * 4 and np.isnan(out[4:]).all()


def test_empty_grid():
    block = pk.BlockSpec((4,), lambda i: i)

    def kernel(x, o):
        o[...] = x[...]

    out = pk.pallas_call(
        kernel, ShapeDtypeStruct((4,), F32), grid=0, in_specs=[block], out_specs=block
    )(np.zeros(4, F32))
    assert np.isnan(out).all()


@pytest.mark.parametrize("dtype", ["int8", "uint32", "bool", "bfloat16", "float16", "complex64"])
def test_dtypes(dtype):
    from primax_core import dtypes

    dtype = np.dtype(getattr(dtypes, dtype, None) or dtype)
    x = np.arange(10).astype(dtype)

    def kernel(x, o):
        o[...] = x[...]

    block = pk.BlockSpec((4,), lambda i: i)
    out = pk.pallas_call(
        kernel, ShapeDtypeStruct((10,), dtype), grid=3, in_specs=[block], out_specs=block
    )(x)
    assert out.dtype == dtype and np.asarray(out).tolist() == x.tolist()


def test_jaxpr_and_name():
    text = str(make_jaxpr(lambda x: add_blocks(x, x, name="plus"))(np.zeros(8, F32)))
    assert "pallas_call[kernel=Kernel(plus, grid=(2,))]" in text


def test_kernel_is_traced_once_for_each_type():
    traces = []

    def kernel(x, o):
        traces.append(x.shape)
        o[...] = x[...]

    call = pk.pallas_call(kernel, ShapeDtypeStruct((4,), F32))
    for _ in range(3):
        call(np.zeros(4, F32))
    jit(call)(np.ones(4, F32))
    assert traces == [(4,)]


def test_debug_prints_the_jaxpr(capsys):
    add_blocks(np.zeros(4, F32), np.zeros(4, F32), debug=True)
    assert "add" in capsys.readouterr().out


def test_dimensions_are_counted_from_the_end_too():
    def kernel(o):
        o[...] = lax.broadcast(pk.program_id(-1) * pk.num_programs(-2), (1, 1))

    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((2, 3), np.int32), grid=(2, 3),
        out_specs=pk.BlockSpec((1, 1), lambda i, j: (i, j)),
    )  # fmt: skip
    assert call().tolist() == [[0, 2, 4], [0, 2, 4]]


def test_program_id_outside_of_a_kernel():
    with pytest.raises(RuntimeError, match="program_id is called outside of a kernel"):
        pk.program_id(0)


def test_tracing_a_kernel_within_a_cached_jit_function():
    @jit
    def shared(x):
        return x * 2

    def kernel(x, o):
        o[...] = shared(x[...]) + lax.convert_element_type(pk.program_id(0), F32)

    block = pk.BlockSpec((2,), lambda i: i)
    for n in (2, 3):
        out = pk.pallas_call(
            kernel, ShapeDtypeStruct((2 * n,), F32), grid=n, in_specs=[block], out_specs=block
        )(np.ones(2 * n, F32))
        assert out.tolist() == [2.0 + i // 2 for i in range(2 * n)]
