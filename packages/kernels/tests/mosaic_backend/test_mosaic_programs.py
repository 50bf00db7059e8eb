"""Programs for TPUs, evaluated with NumPy, against the kernels compiled for the CPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from mosaic_evaluator import evaluate
from mosaic_operations import CALLS, COPIES, GROUPS
from triton_operations import Case, call_of, kernel_of

from primax_kernels._mosaic.program import emit

CASES = [
    pytest.param(case, id=f"{group}-{name}")
    for group, cases in GROUPS.items()
    for name, case in cases.items()
]


@pytest.mark.parametrize("case", CASES)
def test_a_program_computes_what_the_kernel_does_on_a_cpu(case: Case) -> None:
    compare(call_of(case), case.args, case.tolerance)


@pytest.mark.parametrize("name", CALLS)
def test_larger_programs(name: str) -> None:
    call, args = CALLS[name]
    compare(call, args, 1e-2 if "bfloat16" in name else 1e-5)


def compare(call: Callable[..., Any], args: Sequence[Any], tolerance: float) -> None:
    kernel = kernel_of(call, *args)
    expected = call(*args)
    results = evaluate(emit(kernel), kernel, args)
    for result, reference in zip(results, expected, strict=True):
        reference = np.asarray(reference)
        assert result.dtype == reference.dtype
        if result.dtype.kind in "iub":
            np.testing.assert_array_equal(result, reference)
        else:
            finite = np.abs(reference.astype(np.float64))[np.isfinite(reference)]
            scale = finite.max(initial=1)
            np.testing.assert_allclose(
                result.astype(np.float64), reference.astype(np.float64),
                rtol=tolerance, atol=tolerance * scale,
            )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "overlapping"),
    [("pipeline", 2), ("two_dimensions", 2), ("total", 1), ("recurrence", 1), ("overwritten", 1),
     ("in_place", 0)],
)  # fmt: skip
def test_copies_of_loops_overlap_with_other_steps(name: str, overlapping: int) -> None:
    case = COPIES[name]
    text = emit(kernel_of(call_of(case), *case.args)).text
    assert len(re.findall(r": memref<2x!tpu.dma_semaphore", text.split(")")[0])) == overlapping
