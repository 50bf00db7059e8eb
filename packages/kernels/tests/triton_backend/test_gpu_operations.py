"""Operations of kernels that GPUs have: inline assembly, approximations, hints; kinds of GPUs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from triton_operations import BF16, F32, Case, array, call_of, kernel_of, like, maps
from ttir_evaluator import evaluate

from primax_core import ShapeDtypeStruct, grad, jit, lax
from primax_core.extend import native
from primax_kernels import (
    BlockSpec,
    PrefetchScalarGridSpec,
    ds,
    multiple_of,
    pallas_call,
    triton as kt,
)
from primax_kernels._triton.program import emit

LIBRARY = os.environ.get("PRIMAX_TEST_CUDA_LIBRARY")


def program_of(case: Case) -> Any:
    return emit(kernel_of(call_of(case), *case.args))


def compile_for(case: Case, target: str) -> Any:
    try:
        devices = native.compile_only("cuda", target, library=LIBRARY)[:1]
    except ImportError as error:
        pytest.skip(f"{error}; or set PRIMAX_TEST_CUDA_LIBRARY")
    traced = jit(call_of(case)).trace(*case.args)
    return traced.lower(lowering_platforms=("cuda",)).compile(devices=devices)


# Inline assembly


def add_by_assembly(x: Any, y: Any) -> Any:
    return kt.elementwise_inline_asm(
        "add.f32 $0, $1, $2;", args=[x, y], constraints="=f,f,f", pack=1,
        result_shape_dtypes=ShapeDtypeStruct(x.shape, F32),
    )  # fmt: skip


def both(x: Any) -> Any:
    total, double = kt.elementwise_inline_asm(
        '{\n\t// "sum"\n\tadd.f32 $0, $2, $2;\n\tmul.f32 $1, $2, $2;\n}', args=[x],
        constraints="=f,=f,f", pack=1, result_shape_dtypes=[ShapeDtypeStruct(x.shape, F32)] * 2,
    )  # fmt: skip
    return total - double


ASSEMBLY = {
    "one result": maps(add_by_assembly, array((5, 24)), array((5, 24))),
    "two results": maps(both, array((64,))),
    "scalar": maps(both, np.float32(3)),
    "tanh": maps(kt.approx_tanh, array((64,))),
    "tanh of bfloat16": maps(kt.approx_tanh, array((64,), BF16)),
}


def test_text_of_assembly() -> None:
    text = program_of(ASSEMBLY["one result"]).text
    assert (
        '= tt.elementwise_inline_asm "add.f32 $0, $1, $2;" {constraints = "=f,f,f", '
        "packed_element = 1 : i32, pure = true} %v"
    ) in text
    assert "tensor<8x32xf32>, tensor<8x32xf32> -> tensor<8x32xf32>" in text
    assert r"{\0A\09// \"sum\"\0A" in program_of(ASSEMBLY["two results"]).text


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ASSEMBLY)
def test_assembly_compiles(name: str, target: str) -> None:
    serialized = compile_for(ASSEMBLY[name], target).runtime_executable().serialize()
    assert b"\x7fELF" in serialized


def test_assembly_on_other_platforms() -> None:
    case = ASSEMBLY["one result"]
    with pytest.raises(NotImplementedError, match=r"is PTX, .* the program is compiled for cpu"):
        call_of(case)(*case.args)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"pack": 3}, ValueError, "pack is a power of two, got 3"),
        ({"constraints": "=f,f"}, ValueError, "with 1 results and 1 operands; there are 1 and 2"),
        ({"constraints": "f,f,f"}, ValueError, "with 0 results"),
        ({"asm": b"add"}, TypeError, "takes asm and constraints as texts"),
        (
            {"result_shape_dtypes": ShapeDtypeStruct((4,), F32)},
            ValueError,
            r"of one shape, got \[\(4,\), \(8,\)\]",
        ),
    ],
)
def test_wrong_assembly(changes: dict[str, Any], error: Any, message: str) -> None:
    keywords: dict[str, Any] = {
        "asm": "add.f32 $0, $1, $2;", "args": [array((8,))] * 2, "constraints": "=f,f,f",
        "pack": 1, "result_shape_dtypes": ShapeDtypeStruct((8,), F32),
    }  # fmt: skip
    with pytest.raises(error, match=message):
        kt.elementwise_inline_asm(**{**keywords, **changes})


def test_approx_tanh_elsewhere() -> None:
    x = array((8,))
    np.testing.assert_array_equal(kt.approx_tanh(x), lax.tanh(x))
    np.testing.assert_array_equal(grad(kt.approx_tanh)(F32(0.5)), grad(lax.tanh)(F32(0.5)))
    assert "tanh.approx.f32" in program_of(ASSEMBLY["tanh"]).text
    text = program_of(maps(kt.approx_tanh, array((8,), np.float32))).text
    assert "__nv_tanh" not in text


def test_barriers() -> None:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]
        kt.debug_barrier()
        jit(lambda: kt.debug_barrier())()
        o[...] = o[...] + x[...]

    case = Case(kernel, like(8), array((8,)))
    assert program_of(case).text.count("gpu.barrier") >= 2
    np.testing.assert_array_equal(call_of(case)(*case.args)[0], 2 * array((8,)))
    assert b"\x7fELF" in compile_for(case, "sm_80").runtime_executable().serialize()
    kt.debug_barrier()


# Hints


def rows_at(hint: Callable[[Any], Any]) -> Case:
    """Reads eight rows from a position that is an operand."""

    def kernel(x: Any, start: Any, o: Any) -> None:
        o[...] = x[ds(hint(start[0]), 8)]

    return Case(kernel, like(8), array((64,)), np.array([16], np.int32))


HINTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "loaded": (lambda i: multiple_of(i, 8), "tt.load"),
    "computed": (lambda i: multiple_of(i + np.int32(8), [8]), "arith.addi"),
}


@pytest.mark.parametrize("name", HINTS)
def test_promises_of_multiples(name: str) -> None:
    hint, operation = HINTS[name]
    case = rows_at(hint)
    program = program_of(case)
    (line,) = [n for n in program.text.splitlines() if "dense<8> : tensor<1xi32>" in n]
    assert operation in line and "tt.divisibility = dense<8> : tensor<1xi32>" in line
    kernel = kernel_of(call_of(case), *case.args)
    (result,) = evaluate(program, kernel, case.args)
    np.testing.assert_array_equal(result, call_of(case)(*case.args)[0])


@pytest.mark.parametrize("name", HINTS)
def test_promises_compile(name: str) -> None:
    assert compile_for(rows_at(HINTS[name][0]), "sm_90") is not None


def test_promises_of_runs() -> None:
    def kernel(x: Any, at: Any, o: Any) -> None:
        o[...] = x[kt.max_contiguous(at[...] + np.int32(0) * at[...], 4)]

    case = Case(kernel, like(8), array((64,)), np.arange(8, dtype=np.int32))
    assert "tt.contiguity = dense<4> : tensor<1xi32>" in program_of(case).text
    np.testing.assert_array_equal(call_of(case)(*case.args)[0], array((64,))[:8])


def test_promises_in_index_maps() -> None:
    """Index maps with promises are as affine as without."""

    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    for i_map in (lambda i: multiple_of(i, 1), lambda i: kt.max_contiguous(i, 1)):
        block = BlockSpec((8,), i_map)
        call = pallas_call(kernel, like(64), grid=8, in_specs=[block], out_specs=block)
        assert "gather" not in str(jit(call).trace(array((64,))).lower().as_text())
        np.testing.assert_array_equal(call(array((64,))), array((64,)))
    spec = PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=2,
        in_specs=[BlockSpec((8,), lambda i, n: multiple_of(n[i], 1))],
        out_specs=BlockSpec((8,), lambda i, n: i),
    )  # fmt: skip
    call = pallas_call(lambda n, x, o: kernel(x, o), like(16), grid_spec=spec)
    rows = array((64,))
    result = call(np.array([3, 1], np.int32), rows)
    np.testing.assert_array_equal(result, np.concatenate([rows[24:32], rows[8:16]]))


def test_wrong_promises() -> None:
    for function in (multiple_of, kt.max_contiguous):
        assert function(16, 8) == 16
        with pytest.raises(TypeError, match=r"takes integers, got 1\.5"):
            function(4, 1.5)
        with pytest.raises(ValueError, match=r"takes 2 values for int32\[2,3\], got \[8\]"):
            jit(lambda x, f=function: f(x, [8]))(np.zeros((2, 3), np.int32))


# Kinds of GPUs


def test_compute_capabilities() -> None:
    for version in kt.GpuVersion:
        info = kt.get_gpu_info_from_version(version)
        assert info.gpu_version is version
        assert info.compute_capability == int(info.arch_name.replace(".", ""))
    info = kt.get_gpu_info_from_version(kt.GpuVersion.H100)
    assert info == kt.GpuInfo(
        gpu_version=kt.GpuVersion.H100, arch_name="9.0", compute_capability=90
    )
    with pytest.raises(ValueError, match="'H100' is no GpuVersion; there are A10, A30"):
        kt.get_gpu_info_from_version("H100")  # type: ignore[arg-type]


def test_the_first_device(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="the first device is no NVIDIA GPU but cpu"):
        kt.get_gpu_info()

    class Device:
        platform = "gpu"
        device_kind = "NVIDIA H100 80GB HBM3"
        compute_capability = "9.0"

    monkeypatch.setattr("primax_kernels._gpu_info.devices", lambda: [Device()])
    assert kt.get_gpu_info() == kt.get_gpu_info_from_version(kt.GpuVersion.H100)
    Device.device_kind, Device.compute_capability = "NVIDIA L40S", "8.9"
    info = kt.get_gpu_info()
    assert info.gpu_version is None and info.compute_capability == 89
    Device.compute_capability = None  # type: ignore[assignment]
    with pytest.raises(ValueError, match="the compute capability of NVIDIA L40S is unknown"):
        kt.get_gpu_info()
