"""Calls of programs in StableHLO, and their compilation for GPUs that are absent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from golden_kernels import GOLDEN, program_of
from triton_operations import ELEMENTWISE, F32, GRIDS, GROUPS, Case, array, call_of, like

from primax_core import config, jit
from primax_core.extend import native
from primax_kernels import BlockSpec, pallas_call
from primax_kernels._triton import lowering as rule_module
from primax_kernels._triton.errors import TritonError
from primax_kernels._triton.lowering import TARGET

LIBRARY = os.environ.get("PRIMAX_TEST_CUDA_LIBRARY")
"""Path of ``xla_cuda_plugin.so`` where the plugin is not installed."""

TARGETS = ["sm_80", "sm_89", "sm_90", "sm_100", "sm_120"]


def devices(target: str) -> list[Any]:
    try:
        return native.compile_only("cuda", target, library=LIBRARY)[:1]
    except ImportError as error:
        pytest.skip(f"{error}; or set PRIMAX_TEST_CUDA_LIBRARY")


def text_of(case: Case) -> str:
    return jit(call_of(case)).trace(*case.args).lower(lowering_platforms=("cuda",)).as_text()


def test_attributes() -> None:
    text = text_of(GOLDEN["matmul"])
    assert f"custom_call @{TARGET}" in text
    for attribute in (
        'name = "_matmul"', "num_warps = 4 : i32", "num_stages = 3 : i32", "grid_x = 2 : i32",
        "grid_y = 2 : i32", "grid_z = 1 : i32",
    ):  # fmt: skip
        assert attribute in text


def test_shared_memory_of_operands_and_results() -> None:
    assert "output_operand_alias" in text_of(GRIDS["in_place"])
    call = next(line for line in text_of(GRIDS["in_place"]).splitlines() if TARGET in line)
    assert "(tensor<12xf32>) -> tensor<12xf32>" in call
    # The neighbour's block is read: XLA copies the operand.
    call = next(l for l in text_of(GRIDS["in_place_neighbour"]).splitlines() if TARGET in l)
    assert "(tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>" in call


def test_results_that_are_not_covered_begin_with_nan() -> None:
    assert "0x7FC00000" in text_of(GRIDS["uncovered"])


def test_a_grid_without_steps() -> None:
    block = BlockSpec((4,), lambda i: (i,))

    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    case = Case(kernel, like(12), array((12,)), grid=(0,), ins=[block], outs=block)
    assert TARGET not in text_of(case)
    call = pallas_call(kernel, like(12), grid=(0,), in_specs=[block], out_specs=block)
    divided = jit(call.partitioned("_ -> _")).trace(array((12,)))
    assert TARGET not in divided.lower(lowering_platforms=("cuda",)).as_text()


def test_errors_name_the_kernel() -> None:
    case = ELEMENTWISE["add"]
    large = Case(case.kernel, like(2048, 1024), np.zeros((2048, 1024), F32), F32(0))
    with pytest.raises(TritonError, match="a tensor of 2097152 elements"):
        text_of(large)


def test_the_target_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    class Device:
        compute_capability = "7.5"

    class Client:
        def local_devices(self) -> list[Device]:
            return [Device()]

    monkeypatch.setattr(rule_module, "started_clients", lambda: {"cuda": Client()})
    with pytest.raises(TritonError, match="has compute capability sm_75; Triton needs sm_80"):
        text_of(ELEMENTWISE["add"])
    monkeypatch.setattr(rule_module, "started_clients", dict)
    assert TARGET in text_of(ELEMENTWISE["sub"])


@pytest.fixture
def with_lines() -> Iterator[None]:
    """Set the option that keeps source locations in texts."""
    config.update("compilation_cache_include_metadata_in_key", True)
    yield
    config.update("compilation_cache_include_metadata_in_key", False)


def test_lines_of_the_kernel(with_lines: None) -> None:
    case = GOLDEN["softmax"]
    line = case.kernel.__code__.co_firstlineno + 2
    text = program_of(case).text
    assert f'golden_kernels.py":{line}:' in text
    (exponential,) = [t for t in text.splitlines() if "math.exp" in t]
    assert exponential.endswith(")") and f":{line}:" in exponential


@pytest.mark.parametrize("name", GOLDEN)
def test_texts_with_lines_compile(name: str, with_lines: None) -> None:
    case = GOLDEN[name]
    assert "golden_kernels.py" in program_of(case).text
    compiled = jit(call_of(case)).lower(*case.args).compile(devices=devices("sm_90"))
    assert b"\x7fELF" in compiled.runtime_executable().serialize()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", GOLDEN)
def test_compiles(name: str, target: str) -> None:
    case = GOLDEN[name]
    compiled = jit(call_of(case)).lower(*case.args).compile(devices=devices(target))
    assert b"\x7fELF" in compiled.runtime_executable().serialize()


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.skipif(LIBRARY is None, reason="takes minutes; set PRIMAX_TEST_CUDA_LIBRARY")
def test_all_operations_compile(group: str) -> None:
    for name, case in GROUPS[group].items():
        try:
            jit(call_of(case)).lower(*case.args).compile(devices=devices("sm_90"))
        except Exception as error:
            raise AssertionError(f"{group}: {name} does not compile") from error
