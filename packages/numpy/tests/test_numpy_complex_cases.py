"""Special cases of complex functions in the Python array API standard (2024.12)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from special_values import same

import primax_numpy as pnp
from primax_core import jit

INF, NAN, PI = math.inf, math.nan, math.pi

# Complex functions: cases of one half plane, (a, b) -> (real part, imaginary part); ``...`` where
# # the sign of a zero or an infinity is unspecified.

HALF, ANY = PI / 2, 1.25

COMPLEX_CASES: dict[str, list[tuple[tuple[float, float], tuple[float, float]]]] = {
    "acos": [
        ((0.0, 0.0), (HALF, -0.0)), ((-0.0, 0.0), (HALF, -0.0)), ((0.0, NAN), (HALF, NAN)),
        ((2.0, INF), (HALF, -INF)), ((2.0, NAN), (NAN, NAN)), ((-INF, ANY), (PI, -INF)),
        ((INF, ANY), (0.0, -INF)), ((-INF, INF), (3 * PI / 4, -INF)), ((INF, INF), (PI / 4, -INF)),
        ((NAN, ANY), (NAN, NAN)), ((NAN, INF), (NAN, -INF)), ((NAN, NAN), (NAN, NAN)),
        ((INF, NAN), (NAN, -INF)),
    ],
    "acosh": [
        ((0.0, 0.0), (0.0, HALF)), ((-0.0, 0.0), (0.0, HALF)), ((2.0, INF), (INF, HALF)),
        ((2.0, NAN), (NAN, NAN)), ((0.0, NAN), (NAN, HALF)), ((-INF, ANY), (INF, PI)),
        ((INF, ANY), (INF, 0.0)), ((-INF, INF), (INF, 3 * PI / 4)), ((INF, INF), (INF, PI / 4)),
        ((INF, NAN), (INF, NAN)), ((-INF, NAN), (INF, NAN)), ((NAN, ANY), (NAN, NAN)),
        ((NAN, INF), (INF, NAN)), ((NAN, NAN), (NAN, NAN)),
    ],
    "asinh": [
        ((0.0, 0.0), (0.0, 0.0)), ((2.0, INF), (INF, HALF)), ((2.0, NAN), (NAN, NAN)),
        ((INF, ANY), (INF, 0.0)), ((INF, INF), (INF, PI / 4)), ((NAN, 0.0), (NAN, 0.0)),
        ((NAN, ANY), (NAN, NAN)), ((NAN, INF), (INF, NAN)), ((NAN, NAN), (NAN, NAN)),
        ((INF, NAN), (INF, NAN)),
    ],
    "atanh": [
        ((0.0, 0.0), (0.0, 0.0)), ((0.0, NAN), (0.0, NAN)), ((1.0, 0.0), (INF, 0.0)),
        ((2.0, INF), (0.0, HALF)), ((2.0, NAN), (NAN, NAN)), ((INF, ANY), (0.0, HALF)),
        ((INF, INF), (0.0, HALF)), ((INF, NAN), (0.0, NAN)), ((NAN, ANY), (NAN, NAN)),
        ((NAN, INF), (0.0, HALF)), ((NAN, NAN), (NAN, NAN)),
    ],
    "cosh": [
        ((0.0, 0.0), (1.0, 0.0)), ((0.0, INF), (NAN, 0.0)), ((0.0, NAN), (NAN, 0.0)),
        ((2.0, INF), (NAN, NAN)), ((2.0, NAN), (NAN, NAN)), ((INF, 0.0), (INF, 0.0)),
        ((INF, ANY), (INF, INF)), ((INF, INF), (INF, NAN)), ((INF, NAN), (INF, NAN)),
        ((NAN, 0.0), (NAN, 0.0)), ((NAN, ANY), (NAN, NAN)), ((NAN, NAN), (NAN, NAN)),
    ],
    "exp": [
        ((0.0, 0.0), (1.0, 0.0)), ((-0.0, 0.0), (1.0, 0.0)), ((2.0, INF), (NAN, NAN)),
        ((2.0, NAN), (NAN, NAN)), ((INF, 0.0), (INF, 0.0)), ((-INF, ANY), (0.0, 0.0)),
        ((INF, ANY), (INF, INF)), ((-INF, INF), (0.0, 0.0)), ((INF, INF), (INF, NAN)),
        ((-INF, NAN), (0.0, 0.0)), ((INF, NAN), (INF, NAN)), ((NAN, 0.0), (NAN, 0.0)),
        ((NAN, ANY), (NAN, NAN)), ((NAN, NAN), (NAN, NAN)),
    ],
    "expm1": [
        ((0.0, 0.0), (0.0, 0.0)), ((2.0, INF), (NAN, NAN)), ((2.0, NAN), (NAN, NAN)),
        ((INF, 0.0), (INF, 0.0)), ((-INF, ANY), (-1.0, 0.0)), ((INF, ANY), (INF, INF)),
        ((-INF, INF), (-1.0, 0.0)), ((INF, INF), (INF, NAN)), ((-INF, NAN), (-1.0, 0.0)),
        ((INF, NAN), (INF, NAN)), ((NAN, 0.0), (NAN, 0.0)), ((NAN, ANY), (NAN, NAN)),
    ],
    "log": [
        ((-0.0, 0.0), (-INF, PI)), ((0.0, 0.0), (-INF, 0.0)), ((2.0, INF), (INF, HALF)),
        ((2.0, NAN), (NAN, NAN)), ((-INF, ANY), (INF, PI)), ((INF, ANY), (INF, 0.0)),
        ((-INF, INF), (INF, 3 * PI / 4)), ((INF, INF), (INF, PI / 4)), ((INF, NAN), (INF, NAN)),
        ((-INF, NAN), (INF, NAN)), ((NAN, ANY), (NAN, NAN)), ((NAN, INF), (INF, NAN)),
    ],
    "log1p": [
        ((-1.0, 0.0), (-INF, 0.0)), ((2.0, INF), (INF, HALF)), ((2.0, NAN), (NAN, NAN)),
        ((-INF, ANY), (INF, PI)), ((INF, ANY), (INF, 0.0)), ((-INF, INF), (INF, 3 * PI / 4)),
        ((INF, INF), (INF, PI / 4)), ((INF, NAN), (INF, NAN)), ((NAN, ANY), (NAN, NAN)),
        ((NAN, INF), (INF, NAN)), ((NAN, NAN), (NAN, NAN)),
    ],
    "sinh": [
        ((0.0, 0.0), (0.0, 0.0)), ((0.0, INF), (0.0, NAN)), ((0.0, NAN), (0.0, NAN)),
        ((2.0, INF), (NAN, NAN)), ((2.0, NAN), (NAN, NAN)), ((INF, 0.0), (INF, 0.0)),
        ((INF, ANY), (INF, INF)), ((INF, INF), (INF, NAN)), ((INF, NAN), (INF, NAN)),
        ((NAN, 0.0), (NAN, 0.0)), ((NAN, ANY), (NAN, NAN)), ((NAN, NAN), (NAN, NAN)),
    ],
    "sqrt": [
        ((0.0, 0.0), (0.0, 0.0)), ((-0.0, 0.0), (0.0, 0.0)), ((2.0, INF), (INF, INF)),
        ((NAN, INF), (INF, INF)), ((2.0, NAN), (NAN, NAN)), ((-INF, ANY), (0.0, INF)),
        ((INF, ANY), (INF, 0.0)), ((-INF, NAN), (NAN, INF)), ((INF, NAN), (INF, NAN)),
        ((NAN, ANY), (NAN, NAN)), ((NAN, NAN), (NAN, NAN)), ((-4.0, 0.0), (0.0, 2.0)),
    ],
    "tanh": [
        ((0.0, 0.0), (0.0, 0.0)), ((2.0, INF), (NAN, NAN)), ((0.0, INF), (0.0, NAN)),
        ((2.0, NAN), (NAN, NAN)), ((0.0, NAN), (0.0, NAN)), ((INF, ANY), (1.0, 0.0)),
        ((INF, INF), (1.0, 0.0)), ((INF, NAN), (1.0, 0.0)), ((NAN, 0.0), (NAN, 0.0)),
        ((NAN, ANY), (NAN, NAN)), ((NAN, NAN), (NAN, NAN)),
    ],
    "sign": [((-0.0, 0.0), (0.0, 0.0)), ((NAN, 1.0), (NAN, NAN)), ((1.0, NAN), (NAN, NAN))],
}  # fmt: skip
COMPLEX_CASES["log2"] = [(z, (u, v / math.log(2))) for z, (u, v) in COMPLEX_CASES["log"]]
COMPLEX_CASES["log10"] = [(z, (u, v / math.log(10))) for z, (u, v) in COMPLEX_CASES["log"]]
ODD = ("asinh", "atanh", "sinh", "tanh")
# The cases of circular functions are those of the hyperbolic ones with swapped parts.
CIRCULAR = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh"}


def complex_array(pairs: Any) -> Any:
    """Complex numbers that preserve signs and NaN of both parts."""
    parts = np.array(pairs, np.float32)
    out = np.empty(len(parts), np.complex64)
    out.real, out.imag = parts[:, 0], parts[:, 1]
    return pnp.asarray(out)


def mirrored(cases: Any, odd: bool) -> Any:
    """Cases, their conjugates, and for odd functions their negatives."""
    for (a, b), (u, v) in cases:
        for s, t in itertools.product((1, -1) if odd else (1,), (1, -1)):
            yield (s * a, t * b), (s * u, t * v)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", [*COMPLEX_CASES, *CIRCULAR])
def test_special_cases_of_complex_numbers(name: str, compiled: bool) -> None:
    of = CIRCULAR.get(name, name)
    cases = COMPLEX_CASES[of]
    if name != "sign":
        cases = list(mirrored(cases, of in ODD))
    if name in CIRCULAR:
        cases = [((b, a), (v, u)) for (a, b), (u, v) in cases]
    fun = getattr(pnp, name)
    actual = np.asarray((jit(fun) if compiled else fun)(complex_array([z for z, _ in cases])))
    wrong = [
        (z, expected, w)
        for (z, expected), w in zip(cases, actual, strict=True)
        if not (same(w.real, expected[0]) and same(w.imag, expected[1]))
        and not _sign_is_open(of, z, expected, w)
    ]
    assert not wrong


def _sign_is_open(name: str, z: Any, expected: Any, actual: Any) -> bool:
    """True if the standard leaves a sign unspecified, and all else agrees."""
    open_sign = name in ("cosh", "exp", "expm1", "acosh") or math.nan in z or INF in map(abs, z)
    return open_sign and all(
        same(abs(f), abs(e)) for f, e in zip((actual.real, actual.imag), expected)
    )


def test_magnitudes_of_complex_numbers() -> None:
    z = complex_array([(INF, NAN), (NAN, -INF), (-0.0, -3.0), (3.0, -0.0), (NAN, 1.0), (1.0, NAN)])
    np.testing.assert_array_equal(pnp.abs(z), [INF, INF, 3.0, 3.0, NAN, NAN])


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh",
                                  "exp", "expm1", "log", "log1p", "sin", "sinh", "sqrt", "tan",
                                  "tanh"])  # fmt: skip
def test_complex_functions_in_all_quadrants(name: str) -> None:
    """Corrections by symmetry keep ordinary values, also on the branch cuts."""
    numbers = [-2.5, -1.0, -0.25, -0.0, 0.0, 0.25, 1.0, 2.5]
    z = np.asarray(complex_array(list(itertools.product(numbers, numbers))))
    numpy_name = {"a": "arc" + name[1:]}.get(name[0], name) if name != "abs" else name
    with np.errstate(all="ignore"):
        expected = getattr(np, numpy_name)(z.astype(np.complex128))
    actual = np.asarray(getattr(pnp, name)(z))
    finite = np.isfinite(expected.real) & np.isfinite(expected.imag)
    np.testing.assert_allclose(actual[finite], expected[finite], 3e-6, 3e-6)
