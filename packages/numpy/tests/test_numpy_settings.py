"""Every case under the settings that refuse implicit promotion, and under checked jaxprs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from function_cases import all_cases

import primax_numpy as pnp
from primax_core import numpy_dtype_promotion, numpy_rank_promotion
from test_support import Case, check_settings, numbered

CASES = all_cases()

# Settings that refuse operands which are no arguments of the case.
REFUSED = {
    "array": ("strict",),  # a number and a boolean in one list
    "mgrid": ("strict",),  # slices of integers and of floats
    "r_": ("strict",),  # integers and floats in one vector
}


@pytest.mark.parametrize("case", CASES, ids=numbered(CASES))
def test_settings(case: Case) -> None:
    check_settings(case, pnp, REFUSED)


@pytest.mark.parametrize("bound", [np.uint8(7), np.int32(7), np.int32([7, 9]), True])
def test_bounds_of_integers_under_strict_promotion(bound: Any) -> None:
    start = type(bound)(1) if np.ndim(bound) == 0 else np.int32([1, 2])
    for function in (pnp.linspace, pnp.geomspace):
        expected = function(start, bound, 4)
        with numpy_dtype_promotion("strict"):
            actual = function(start, bound, 4)
        assert actual.dtype == expected.dtype == np.float32
        assert np.array_equal(actual, expected, equal_nan=True)


@pytest.mark.parametrize("function", ["linspace", "logspace", "geomspace"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_bounds_of_any_rank_without_rank_promotion(function: str, axis: int) -> None:
    start, stop = np.float32([1, 2]), np.float32([8, 4])
    expected = getattr(pnp, function)(start, stop, 3, axis=axis)
    with numpy_rank_promotion("raise"):
        actual = getattr(pnp, function)(start, stop, 3, axis=axis)
    assert np.array_equal(actual, expected)


@pytest.mark.parametrize("method", ["set", "add", "multiply", "max"])
def test_updates_with_a_python_bool_under_strict_promotion(method: str) -> None:
    x = pnp.arange(3, dtype=np.int8)
    expected = getattr(x.at[1:], method)(True)
    with numpy_dtype_promotion("strict"):
        actual = getattr(x.at[1:], method)(True)
    assert actual.dtype == np.int8 and np.array_equal(actual, expected)


def test_membership_of_weak_types_has_no_weak_type() -> None:
    assert not pnp.isin(1, 2.0).weak_type
