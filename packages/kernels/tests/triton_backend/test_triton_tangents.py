"""Forward derivatives of kernels on GPUs: kernels of values and tangents."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from golden_kernels import GOLDEN
from kernels_under_test import CASES, operands
from tangent_kernels import compare, is_float, with_tangents
from triton_operations import GROUPS, Case, array, call_of, like, maps
from ttir_evaluator import evaluate

from primax_core import grad, jacfwd, jit, jvp, lax, make_jaxpr, vmap
from primax_core.extend import native
from primax_kernels import BlockSpec, pallas_call
from primax_kernels._batching import BatchedKernel
from primax_kernels._derivatives import JvpKernel
from primax_kernels._primitive import pallas_call_p
from primax_kernels._triton.lowering import TARGET
from primax_kernels._triton.program import emit

LIBRARY = os.environ.get("PRIMAX_TEST_CUDA_LIBRARY")
"""Path of ``xla_cuda_plugin.so`` where the plugin is not installed."""

NOT_YET = {"reduce_prod_0", "reduce_prod_1", "reduce_prod_2", "cumprod", "cummax", "cummin",
           "cumlogsumexp", "cummax_reverse"}  # fmt: skip
"""Their derivatives have operations that Triton lacks: they run on arrays."""


def has_tangents(case: Case) -> bool:
    outs = case.out() if callable(case.out) else case.out
    outs = outs if isinstance(outs, (list, tuple)) else [outs]
    return any(map(is_float, case.args)) and any(is_float(np.zeros(0, o.dtype)) for o in outs)


FLOATS = [
    pytest.param(case, id=f"{group}-{name}")
    for group, cases in GROUPS.items()
    for name, case in cases.items()
    if name not in NOT_YET and has_tangents(case)
]


@pytest.mark.parametrize("case", FLOATS)
def test_tangents_of_an_operation(case: Case) -> None:
    tolerance = max(case.tolerance, 1e-4)
    if any(np.asarray(x).dtype.itemsize == 2 for x in case.args):
        tolerance = 2e-2
    compare(call_of(case), case.args, emit, evaluate, tolerance)


@pytest.mark.parametrize("name", CASES)
def test_tangents_of_a_kernel(name: str) -> None:
    compare(CASES[name].call, operands(CASES[name]), emit, evaluate, 1e-4)


def kernels_of(fun: Any, *args: Any) -> list[Any]:
    eqns = make_jaxpr(fun)(*args).eqns
    return [e.params["kernel"] for e in eqns if e.primitive is pallas_call_p]


def text_of(fun: Any, *args: Any) -> str:
    return jit(fun).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def test_one_kernel_on_a_gpu_and_operations_on_arrays_elsewhere() -> None:
    derivative, xs = with_tangents(CASES["matmul"].call, operands(CASES["matmul"]))
    text = text_of(derivative, *xs)
    assert text.count(f"custom_call @{TARGET}") == 1 and "dot_general" not in text
    assert TARGET not in jit(derivative).lower(*xs).as_text()


def test_a_derivative_that_triton_refuses_is_lowered_as_operations_on_arrays() -> None:
    case = GROUPS["reductions"]["cummax"]
    derivative, xs = with_tangents(call_of(case), case.args)
    assert len(kernels_of(derivative, *xs)) == 1
    assert TARGET not in text_of(derivative, *xs)
    assert TARGET not in text_of(vmap(derivative), *(np.stack([x, x]) for x in xs))


def test_reverse_mode_runs_on_arrays() -> None:
    case = CASES["softmax_rows"]
    (x,) = operands(case)
    (total,) = kernels_of(lambda x: lax.reduce_sum(case.call(x), (0, 1)), x)
    assert not isinstance(total, JvpKernel)
    assert kernels_of(grad(lambda x: lax.reduce_sum(lax.square(case.call(x)), (0, 1))), x) == []


def test_second_order_and_batches() -> None:
    def call(x: Any) -> Any:
        row = BlockSpec((None, 4), lambda i: (i, 0))
        return pallas_call(
            lambda x, o: o.__setitem__(..., lax.sin(x[...]) * x[...]), like(3, 4), grid=3,
            in_specs=[row], out_specs=row,
        )(x)  # fmt: skip

    x, t = array((3, 4)), array((3, 4), seed=1)
    first = lambda x: jvp(call, (x,), (t,))[1]
    twice = lambda x: jvp(first, (x,), (t,))[1]
    (kernel,) = kernels_of(twice, x)
    assert isinstance(kernel, JvpKernel) and isinstance(kernel.original, JvpKernel)
    expected = t * t * (2 * np.cos(x) - x * np.sin(x))
    np.testing.assert_allclose(twice(x), expected, rtol=1e-5, atol=1e-5)
    values = evaluate(emit(kernel), kernel, [x, t, t])
    np.testing.assert_allclose(values[-1], expected, rtol=1e-5, atol=1e-5)

    gradient = grad(lambda x: lax.reduce_sum(first(x), (0, 1)))(x)
    np.testing.assert_allclose(gradient, t * (2 * np.cos(x) - x * np.sin(x)), rtol=1e-5, atol=1e-5)

    xs, ts = np.stack([x, 2 * x]), np.stack([t, t + 1])
    batch = vmap(lambda x, t: jvp(call, (x,), (t,))[1])
    (kernel,) = kernels_of(batch, xs, ts)
    assert isinstance(kernel, BatchedKernel) and isinstance(kernel.original, JvpKernel)
    on_gpu = evaluate(emit(kernel), kernel, [xs, ts])[1]
    np.testing.assert_allclose(on_gpu, batch(xs, ts), rtol=1e-5, atol=1e-5)
    jacobian = jacfwd(call)(x)
    diagonal = np.einsum("abab->ab", np.asarray(jacobian))
    np.testing.assert_allclose(diagonal, np.cos(x) * x + np.sin(x), rtol=1e-5, atol=1e-5)


def test_an_alias_of_an_operand_without_a_tangent() -> None:
    def kernel(x: Any, y: Any, o: Any) -> None:
        o[...] = o[...] * y[...]

    block = BlockSpec((4,), lambda i: i)
    call = pallas_call(
        kernel, like(8), grid=2, in_specs=[block, block], out_specs=block,
        input_output_aliases={0: 0},
    )  # fmt: skip
    x, y, t = array((8,)), array((8,), seed=1), array((8,), seed=2)
    derivative = lambda y, t: jvp(lambda y: call(x, y), (y,), (t,))
    (kernel_,) = kernels_of(derivative, y, t)
    assert kernel_.aliases == ((0, 0), (2, 1))
    out, dot = derivative(y, t)
    np.testing.assert_allclose(out, x * y, rtol=1e-6)
    np.testing.assert_allclose(dot, x * t, rtol=1e-6)
    results = evaluate(emit(kernel_), kernel_, [x, y, np.zeros_like(x), t])
    np.testing.assert_allclose(results[1], x * t, rtol=1e-6)


def test_reasons_for_operations_on_arrays() -> None:
    def writes(x: Any, o: Any) -> None:
        x[...] = x[...] * 2
        o[...] = x[...]

    x = array((8,))
    derivative = lambda x, t: jvp(pallas_call(writes, like(8)), (x,), (t,))
    assert kernels_of(derivative, x, x) == []
    np.testing.assert_allclose(derivative(x, x)[1], 2 * x)
    rounded = maps(lambda x: lax.convert_element_type(lax.round(x), np.int32), x)
    assert kernels_of(with_tangents(call_of(rounded), [x])[0], x, x) == []


@pytest.mark.parametrize("name", ["softmax", "matmul_over_grid", "add_partial"])
def test_texts_of_tangents_compile(name: str) -> None:
    try:
        devices = native.compile_only("cuda", "sm_90", library=LIBRARY)[:1]
    except ImportError as error:
        pytest.skip(f"{error}; or set PRIMAX_TEST_CUDA_LIBRARY")
    derivative, xs = with_tangents(call_of(GOLDEN[name]), GOLDEN[name].args)
    compiled = jit(derivative).lower(*xs).compile(devices=devices)
    assert b"\x7fELF" in compiled.runtime_executable().serialize()


def test_values_are_one_for_all_tangents() -> None:
    case = CASES["matmul_in_output"]
    a, b = operands(case)
    tangents = np.stack([a, 2 * a, 3 * a])
    of = vmap(lambda t: jvp(lambda a: case.call(a, b), (a,), (t,)), out_axes=(None, 0))
    out, dots = of(tangents)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dots, tangents @ b, rtol=1e-4, atol=1e-5)
