"""Forward derivatives of kernels on TPUs: kernels of values and tangents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels_under_test import CASES, operands
from mosaic_evaluator import evaluate
from mosaic_operations import CALLS, COPIES, GRIDS
from tangent_kernels import compare, is_float, with_tangents
from test_mosaic_lowering import compiles
from triton_operations import call_of

from primax_core import jit
from primax_kernels._mosaic.lowering import TARGET
from primax_kernels._mosaic.program import emit

FLOATS = {
    **{n: (c.call, operands(c), 1e-4) for n, c in CASES.items() if n != "windows"},
    **{n: (call_of(c), c.args, 1e-4) for n, c in {**GRIDS, **COPIES}.items()
       if any(map(is_float, c.args)) and n not in ("booleans", "prefetched")},
    "attention_of_blocks": (*CALLS["attention"], 1e-4),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOATS)
def test_tangents_of_a_kernel(name: str) -> None:
    call, args, tolerance = FLOATS[name]
    compare(call, args, emit, evaluate, tolerance)


def text_of(fun: Any, *args: Any) -> str:
    return jit(fun).trace(*args).lower(lowering_platforms=("tpu",)).as_text()


def test_one_kernel_on_a_tpu() -> None:
    derivative, xs = with_tangents(*CALLS["attention"])
    text = text_of(derivative, *xs)
    assert text.count(f"custom_call @{TARGET}") == 1 and "dot_general" not in text


def test_a_derivative_that_mosaic_refuses_is_lowered_as_operations_on_arrays() -> None:
    derivative, xs = with_tangents(CASES["windows"].call, [np.ones(7, np.float32)])
    assert TARGET not in text_of(derivative, *xs)


def test_tangents_compile() -> None:
    calls = (
        "from tangent_kernels import with_tangents; "
        "CALLS = {n: with_tangents(*CALLS[n]) for n in ('attention', 'attention_bfloat16')}; "
        "CALLS.update({n: with_tangents(call_of(c), c.args) for n, c in GROUPS['copies'].items() "
        "if n in ('pipeline', 'partial_rows', 'out')})"
    )
    compiles("v5e:2x2", [], calls=calls)
