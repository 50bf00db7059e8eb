"""Copies and signals to other devices: the text for TPUs on a simulated mesh, and its errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mesh_evaluator import evaluate_on_mesh
from remote_kernels import ANY, DMA, REMOTE, ROW, call_of, neighbours, on_mesh, operands
from triton_operations import kernel_of

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, jit, lax
from primax_kernels import tpu
from primax_kernels._mosaic.program import emit

X = ShapeDtypeStruct(ROW, np.float32)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", REMOTE)
def test_text_on_a_mesh(name: str, seed: int) -> None:
    case = REMOTE[name]
    x = operands(case)
    with on_mesh(**case.axes):
        kernel = kernel_of(case.call, x[0])
    results = evaluate_on_mesh(emit(kernel), kernel, [[part] for part in x], seed)
    expected = case.expected(x)
    for i, (result,) in enumerate(results):
        np.testing.assert_allclose(
            result, np.reshape(expected[i], result.shape), rtol=1e-5, atol=1e-5
        )


def lowered(call: Any, **axes: int) -> str:
    with on_mesh(**axes):
        return jit(call).trace(X).lower(lowering_platforms=("tpu",)).as_text()


def test_configuration_of_a_kernel_that_communicates() -> None:
    text = lowered(REMOTE["all_gather"].call, d=4)
    assert "\\22has_communication\\22: true" in text and "\\22collective_id\\22: 0" in text
    assert "has_communication" not in lowered(REMOTE["scaled"].call, x=2, y=2)


def shift(x: Any, o: Any, send: Any, recv: Any) -> None:
    _, _, after = neighbours("d", 4)
    tpu.async_remote_copy(x, o, send, recv, after).wait()


def test_conditions_on_values_of_the_device_are_allowed() -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        pk.when(lax.eq(lax.axis_index("d"), np.int32(0)))(lambda: shift(x, o, send, recv))

    with on_mesh(d=4):
        assert "device_id" in emit(kernel_of(call_of(kernel, ROW, [DMA, DMA]), X)).text


def test_steps_run_on_one_core() -> None:
    call = REMOTE["grid"].call
    parallel = tpu.CompilerParams(collective_id=0, dimension_semantics=("parallel",))
    with on_mesh(d=4):
        kernel = kernel_of(call, ShapeDtypeStruct((32, 128), np.float32))
    text = emit(replace(kernel, semantics=("parallel",), compiler_params=parallel)).text
    assert "dimension_semantics = [#tpu.dimension_semantics<arbitrary>]" in text


def limits(call: Any) -> str:
    with on_mesh(d=4):
        return " ".join(tpu.limits(call, X))


def test_a_barrier_needs_a_collective_id() -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        pk.semaphore_wait(tpu.get_barrier_semaphore(), 0)
        shift(x, o, send, recv)

    call = pk.pallas_call(kernel, X, in_specs=[ANY], out_specs=ANY, scratch_shapes=[DMA, DMA])
    reason = limits(call)
    assert "get_barrier_semaphore in a kernel without a collective_id" in reason
    assert "tpu.CompilerParams(collective_id=0)" in reason and "test_mosaic_remote.py" in reason


def test_one_barrier_semaphore() -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        for tag in "ab":
            pk.semaphore_wait(tpu.get_barrier_semaphore(tag), 0)
        shift(x, o, send, recv)

    assert "several tags" in limits(call_of(kernel, ROW, [DMA, DMA]))


def test_a_device_that_waits_for_nothing() -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        pk.semaphore_wait(tpu.get_barrier_semaphore(), 1)
        shift(x, o, send, recv)

    with on_mesh(d=4):
        traced = kernel_of(call_of(kernel, ROW, [DMA, DMA]), X)
    zeros = [[np.zeros(ROW, np.float32)]] * 4
    with pytest.raises(AssertionError, match="all devices wait"):
        evaluate_on_mesh(emit(traced), traced, zeros)
