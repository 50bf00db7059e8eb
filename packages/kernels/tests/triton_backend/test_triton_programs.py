"""Programs for Triton, evaluated with NumPy, against the kernels compiled for the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from triton_operations import BF16, F32, GROUPS, Case, array, call_of, kernel_of, like, maps
from ttir_evaluator import evaluate

from primax_core import ShapeDtypeStruct, lax
from primax_kernels import BlockSpec
from primax_kernels._triton.program import emit

CASES = [
    pytest.param(case, id=f"{group}-{name}")
    for group, cases in GROUPS.items()
    for name, case in cases.items()
]


@pytest.mark.parametrize("case", CASES)
def test_a_program_computes_what_the_kernel_does_on_a_cpu(case: Case) -> None:
    call = call_of(case)
    kernel = kernel_of(call, *case.args)
    expected = call(*case.args)
    results = evaluate(emit(kernel), kernel, case.args)
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
                rtol=case.tolerance, atol=case.tolerance * scale,
            )  # fmt: skip


@pytest.mark.parametrize(
    ("precision", "text"),
    [
        (None, "tf32"),
        (lax.Precision.DEFAULT, "tf32"),
        (lax.Precision.HIGH, "tf32x3"),
        (lax.Precision.HIGHEST, "ieee"),
        (lax.DotAlgorithmPreset.TF32_TF32_F32, "tf32"),
        (lax.DotAlgorithmPreset.BF16_BF16_F32_X3, "bf16x3"),
        (lax.DotAlgorithmPreset.BF16_BF16_F32_X6, "bf16x6"),
    ],
)
def test_precision_of_products(precision: Any, text: str) -> None:
    dims = (((1,), (0,)), ((), ()))
    product = maps(
        lambda x, y: lax.dot_general(x, y, dims, precision), array((16, 32)), array((32, 16))
    )
    program = emit(kernel_of(call_of(product), *product.args))
    assert f"inputPrecision = {text} :" in program.text


def test_offsets_in_large_arrays_have_64_bits() -> None:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    shape, block = (1 << 20, 1 << 12), BlockSpec((8, 128), lambda i, j: (i, j))
    large = ShapeDtypeStruct(shape, BF16)
    grid = (shape[0] // 8, shape[1] // 128)
    case = Case(kernel, like(*shape, dtype=BF16), large, grid=grid, ins=[block], outs=block)
    program = emit(kernel_of(call_of(case), *case.args))
    assert program.grid == (1 << 17, 32, 1)
    assert "arith.extsi" in program.text and "!tt.ptr<bf16>, i64" in program.text


def test_long_dimensions_become_one() -> None:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    block = BlockSpec((None, 4), lambda i, j: (j, i))
    shape = ShapeDtypeStruct((70000, 8), F32)
    case = Case(kernel, shape, shape, grid=(2, 70000), ins=[block], outs=block)
    program = emit(kernel_of(call_of(case), *case.args))
    assert program.grid == (140000, 1, 1)
    assert "arith.remsi" in program.text and "arith.divsi" in program.text


def test_masked_padding_of_odd_sizes() -> None:
    case = maps(lambda x: lax.reduce_max(x, (0,)), array((5, 12)))
    text = emit(kernel_of(call_of(case), *case.args)).text
    assert "tensor<8x16xf32>" in text and "0xFF800000" in text
