"""Shipped kernels as programs for Triton: values of the programs, and compilation for a GPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from op_cases import CASES
from op_support import close, gradients, run_with

from primax_core import jit
from primax_core.extend import native
from primax_kernels._triton.program import emit

FOLDER = str(Path(__file__).resolve().parent.parent / "triton_backend")
LIBRARY = os.environ.get("PRIMAX_TEST_CUDA_LIBRARY")
"""Path of ``xla_cuda_plugin.so`` where the plugin is not installed."""


@pytest.fixture(scope="module")
def evaluate() -> Iterator[Any]:
    """The evaluator of texts, which the tests of the backend have."""
    sys.path.insert(0, FOLDER)
    try:
        from ttir_evaluator import evaluate as function

        yield function
    finally:
        sys.path.remove(FOLDER)


@pytest.mark.parametrize("name", CASES)
def test_programs_compute_the_values(name: str, evaluate: Any) -> None:
    case = CASES[name]

    def runner(kernel: Any, args: Sequence[Any]) -> list[Any]:
        return evaluate(emit(kernel), kernel, args)

    (actual,) = run_with(runner, case.fun, *case.args)
    close(actual, case.plain(*case.args), 1e-3)


@pytest.mark.parametrize(
    "name", ["layer_norm", "attention with masks, cap and bias", "grouped_matmul", "cross_entropy",
             "linear_cross_entropy"],
)  # fmt: skip
def test_programs_compute_the_derivatives(name: str, evaluate: Any) -> None:
    case = CASES[name]

    def runner(kernel: Any, args: Sequence[Any]) -> list[Any]:
        return evaluate(emit(kernel), kernel, args)

    fun = gradients(case.fun, case.derivatives)
    reference = jit(gradients(case.plain, case.derivatives))(*case.args)
    for actual, one in zip(run_with(runner, fun, *case.args), reference, strict=True):
        close(actual, one, 1e-3)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.skipif(LIBRARY is None, reason="takes minutes; set PRIMAX_TEST_CUDA_LIBRARY")
def test_compiles(name: str) -> None:
    case = CASES[name]
    try:
        devices = native.compile_only("cuda", "sm_90", library=LIBRARY)[:1]
    except ImportError as error:
        pytest.skip(str(error))
    fun = gradients(case.fun, case.derivatives) if case.derivatives else case.fun
    compiled = jit(fun).lower(*case.args).compile(devices=devices)
    assert b"\x7fELF" in compiled.runtime_executable().serialize()
