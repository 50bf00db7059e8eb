"""Derivatives where formulas have removable singularities, and where values are NaN.

Differences of mpmath's functions are the oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primax_core
import primax_scipy.special as sp

CASES: list[tuple[str, tuple[float, ...], tuple[float | None, ...]]] = [
    ("poch", (1, 0), (0.0, -0.5772156649015329)),
    ("poch", (2.5, 0), (0.0, 0.7031566406452432)),
    ("poch", (-1.5, 0), (0.0, 0.7031566406452432)),
    ("poch", (0, 0.5), (1.772453850905516, None)),
    ("poch", (-2, 0.5), (4.72654360241471, None)),
    ("poch", (0, 2), (1.0, None)),
    ("jv", (-1, 0.5), (4.188323043868142, -0.4539328918910651)),
    ("jv", (-2, 3), (-0.42020633127499113, 0.014998118135342407)),
    ("jv", (0, 2), (0.8016962318836942, -0.5767248077568734)),
    ("jv", (1, 2), (-0.0561807607418131, -0.06447162473720103)),
    ("iv", (-1, 0.5), (3.783407861485948, 0.5476947599595309)),
    ("iv", (-2, 3), (1.4894491118266588, 2.456561923449309)),
    ("iv", (0, 2), (-0.11389387274953344, 1.590636854637329)),
    ("yv", (-1, 0.5), (-0.5084830635994564, -2.4984260518337797)),
    ("yv", (-2.5, 3), (-0.9673376037473397, 0.13379318824566178)),
    ("yv", (-2, 3), (-1.0637444298127943, 0.4316080204484158)),
    ("hyp1f1", (0, 0.5, 2), (9.003204832458149, 0.0, 0.0)),
    ("hyp1f1", (-1, 0.5, 2), (0.3481424663017485, 8.0, -2.0)),
    ("hyp1f1", (-2, 1.5, -3), (-6.1916853425144005, -5.226666666666667, -2.933333333333333)),
    ("hyp1f1", (0.5, 0.5, -1.5), (-1.1957019606697923, 1.1957019606697923, 0.22313016014842982)),
    ("hyp1f1", (-1.5, -1.5, -1), (-0.5580927083629208, 0.5580927083629208, 0.36787944117144233)),
    ("hyp1f1", (0, 1, -20), (-3.572947938553879, 0.0, 0.0)),
    ("hyp2f1", (0, 0.5, 1.5, 0.5), (0.20024621999902326, 0.0, 0.0, 0.0)),
    (
        "hyp2f1",
        (-1, 0.5, 1.5, 0.5),
        (0.13791089898156195, -0.3333333333333333, 0.1111111111111111, -0.3333333333333333),
    ),
    (
        "hyp2f1",
        (0.5, -2, 1.5, -3),
        (8.8, -4.579119373992086, -3.2533333333333334, -1.8666666666666667),
    ),
    ("hyp2f1", (0.5, 0, 0.5, 0.96), (0.0, 3.2188758248681997, 0.0, 0.0)),
    (
        "hyp2f1",
        (0.5, 1, 1, -1.5),
        (-0.579513142324995, -0.25685516550716064, 0.25685516550716064, 0.12649110640673517),
    ),
    (
        "hyp2f1",
        (2, -1.5, 2, 0.95),
        (-0.304708998188565, 0.03349330503028363, 0.304708998188565, -0.3354101966249686),
    ),
    ("hyp2f1", (-1, 2, 0.5, 0.99), (-30.074539886419704, -1.98, 7.92, -4.0)),
]
"""Name, point, and central differences of mpmath's function with 40 digits; ``None`` where there is
no derivative: the gamma function has a pole there for some ``m`` alone."""


@pytest.mark.rotate()
@pytest.mark.parametrize("name, point, expected", CASES, ids=str)
def test_derivatives(
    name: str, point: tuple[float, ...], expected: tuple[float | None, ...]
) -> None:
    with primax_core.enable_x64(True):
        got = primax_core.grad(getattr(sp, name), tuple(range(len(point))))(*map(float, point))
    for g, value in zip(got, expected, strict=True):
        if value is not None:
            np.testing.assert_allclose(float(g), value, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "point, expected",
    [
        ((6.106, 2.349), (88.804503649771, 31.01952681575084, 184.2211494520728)),
        ((7.3, 1.9), (48.77270034462551, 12.000616418684483, 105.5378929635851)),
        ((9.5, -4.25), (0.0002951704681423286, -0.00018824807715314769, 0.00046045924067883806)),
        ((74290.5, 0.246), (15.78516206219203, 5.227006916173978e-05, 177.04219372966415)),
        ((3.1, 1e-09), (1.0000000009615264, 3.800955004805485e-10, 0.9615264461749371)),
    ],
    ids=str,
)
def test_rounding_of_rising_factorials(
    point: tuple[float, float], expected: tuple[float, float, float]
) -> None:
    """The rounding error of ``z + m`` is not enlarged, and neither are errors of logarithms."""
    with primax_core.enable_x64(True):
        np.testing.assert_allclose(float(sp.poch(*point)), expected[0], rtol=5e-15)
        got = primax_core.jit(primax_core.grad(sp.poch, (0, 1)))(*point)
        np.testing.assert_allclose([float(g) for g in got], expected[1:], rtol=1e-10, atol=1e-14)


@pytest.mark.rotate()
@pytest.mark.parametrize("f", [sp.jv, sp.iv, sp.yv], ids=["jv", "iv", "yv"])
def test_order_of_complex_functions(f: Callable[..., Any]) -> None:
    with primax_core.enable_x64(True):
        of_complex = primax_core.grad(lambda v: f(v, np.complex128(3.0)).real)(-2.0)
        np.testing.assert_allclose(of_complex, primax_core.grad(f)(-2.0, 3.0), rtol=1e-10)


def test_largest_order_of_one_variable() -> None:
    """Beyond 1 the derivative with respect to the parameter that ends the series is not real."""
    with primax_core.enable_x64(True):
        by_a, by_b, by_c, _ = primax_core.grad(sp.hyp2f1, (0, 1, 2, 3))(0.5, -2.0, 1.5, 2.0)
        assert np.isnan(by_b)
        c = 1.5
        polynomial = lambda a, c: 1 - 2 * a / c * 2 + a * (a + 1) / (c * (c + 1)) * 4
        d = 1e-6
        assert abs(by_a - (polynomial(0.5 + d, c) - polynomial(0.5 - d, c)) / (2 * d)) < 1e-8
        assert abs(by_c - (polynomial(0.5, c + d) - polynomial(0.5, c - d)) / (2 * d)) < 1e-8


@pytest.mark.parametrize(
    "name, args",
    [
        ("exp1", (-1.0,)), ("exp1", (np.nan,)), ("factorial", (np.nan,)),
        ("rel_entr", (np.nan, 1.0)), ("rel_entr", (1.0, np.nan)),
        ("kl_div", (np.nan, 1.0)), ("kl_div", (0.0, np.nan)),
    ],
    ids=str,
)  # fmt: skip
def test_derivatives_of_nan(name: str, args: tuple[float, ...]) -> None:
    f = getattr(sp, name)
    assert np.isnan(f(*args))
    assert all(np.isnan(g) for g in primax_core.grad(f, tuple(range(len(args))))(*args))


def test_values_of_poles() -> None:
    assert [float(sp.poch(0.0, m)) for m in (0.0, 0.5, 2.0)] == [1, 0, 0]
    assert float(sp.poch(np.inf, 0.0)) == 1
    assert float(sp.factorial(-1.0)) == 0 and float(primax_core.grad(sp.factorial)(-1.5)) == 0
    np.testing.assert_allclose(primax_core.grad(sp.exp1)(2.0), -np.exp(-2.0) / 2, rtol=1e-6)
