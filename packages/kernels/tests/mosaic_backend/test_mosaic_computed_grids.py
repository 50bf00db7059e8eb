"""Programs for TPUs whose grids have computed sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from computed_grid_calls import COMPUTED
from mosaic_evaluator import evaluate
from test_mosaic_lowering import compiles
from triton_operations import kernel_of

from primax_core import jit
from primax_kernels._mosaic.program import emit
from primax_kernels.tpu import limits

SIZES = [0, 1, 2, 5]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", COMPUTED)
def test_the_number_of_steps(name: str, n: int) -> None:
    call, args = COMPUTED[name]
    args = (np.int32(n), *args[1:])
    kernel = kernel_of(call, *args)
    assert kernel.dynamic
    (result,) = evaluate(emit(kernel), kernel, args)
    expected = jit(call)(*args)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def text_of(call: Any, *args: Any) -> str:
    return jit(call).trace(*args).lower(lowering_platforms=("tpu",)).as_text()


def test_sizes_are_the_first_operands_of_the_call() -> None:
    call, args = COMPUTED["doubled"]
    assert limits(call, *args) == ()
    text = text_of(call, *args)
    line = next(line for line in text.splitlines() if "@tpu_custom_call" in line)
    # The size, which the kernel reads too, the operand, and a result that steps may leave out.
    assert "(tensor<i32>, tensor<1xi32>, tensor<40x128xf32>, tensor<40x128xf32>)" in line
    assert "operand_index = 3" in line and "stablehlo.maximum" in text


def test_computed_grids_compile() -> None:
    compiles("v5e:2x2", [], calls="from computed_grid_calls import COMPUTED as CALLS")
