"""Texts of programs, stored in files, and what they compute."""

from __future__ import annotations

import numpy as np
import pytest
from golden_kernels import FOLDER, GOLDEN, call_of, program_of
from triton_operations import kernel_of
from ttir_evaluator import evaluate


@pytest.mark.parametrize("name", GOLDEN)
def test_text(name: str) -> None:
    text = program_of(GOLDEN[name]).text
    stored = (FOLDER / f"{name}.ttir").read_text()
    assert text == stored, "if the change is intended, run `python golden_kernels.py`"


@pytest.mark.parametrize("name", GOLDEN)
def test_result(name: str) -> None:
    case = GOLDEN[name]
    call = call_of(case)
    (result,) = evaluate(program_of(case), kernel_of(call, *case.args), case.args)
    expected = np.asarray(call(*case.args)[0]).astype(np.float64)
    np.testing.assert_allclose(
        result.astype(np.float64), expected, rtol=case.tolerance, atol=case.tolerance * 10
    )


def test_masks_only_where_blocks_are_partial() -> None:
    assert "cmpi" not in program_of(GOLDEN["add"]).text
    assert program_of(GOLDEN["add_partial"]).text.count("cmpi slt") == 1
    assert "cmpi" not in program_of(GOLDEN["matmul"]).text


def test_conditions_on_the_step_are_decided() -> None:
    program = program_of(GOLDEN["matmul_over_grid"])
    assert program.sequential == (2,) and program.grid == (2, 2, 1)
    assert "scf.if" not in program.text and program.text.count("tt.store") == 1


def test_names_with_other_characters() -> None:
    case = GOLDEN["add"]
    case.kernel.__name__, before = "<lambda>", case.kernel.__name__
    try:
        assert program_of(case).name == "_lambda_"
    finally:
        case.kernel.__name__ = before
