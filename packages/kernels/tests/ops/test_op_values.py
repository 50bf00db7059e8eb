"""Values and derivatives of shipped kernels, compiled and with each access checked."""

from __future__ import annotations

from typing import Any

import pytest
from op_cases import CASES
from op_support import checked, close, total

from primax_core import jit, value_and_grad


def results(fun: Any, places: tuple[int, ...]) -> Any:
    """A function of the operands to the value and the derivatives, in one list."""
    if not places:
        return lambda *args: [fun(*args)]

    def both(*args: Any) -> list[Any]:
        def scalar(*xs: Any) -> Any:
            value = fun(*xs)
            return total(lambda: value)(), value

        (_, value), derivatives = value_and_grad(scalar, places, has_aux=True)(*args)
        return [value, *derivatives]

    return both


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str) -> None:
    case = CASES[name]
    places = tuple(range(case.derivatives))
    plain = results(case.plain, places)
    expected = (jit(plain) if places else plain)(*case.args)  # else NumPy code
    for actual, reference in zip(jit(results(case.fun, places))(*case.args), expected, strict=True):
        close(actual, reference)
    # Derivatives of other functions are operations on arrays.
    steps = checked(results(case.fun, places if case.backward else ()), *case.args)
    for actual, reference in zip(steps, expected):
        close(actual, reference)
