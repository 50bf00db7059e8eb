"""Tables of associated Legendre functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special as theirs

from primax_core import enable_x64, jit, lax, vmap
from primax_scipy.special import lpmn_values, sph_harm_y
from test_support import assert_close, check_derivatives

Z = np.linspace(-0.95, 0.9, 7)


def expected(n: int, normalized: bool) -> np.ndarray:
    out = np.zeros((n + 1, n + 1, len(Z)))
    for degree in range(n + 1):
        for m in range(degree + 1):
            scale = 1.0
            if normalized:
                ratio = math.factorial(degree - m) / math.factorial(degree + m)
                scale = math.sqrt((2 * degree + 1) / (4 * math.pi) * ratio)
            out[m, degree] = scale * theirs.assoc_legendre_p(degree, m, Z)
    return out


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_values(n, normalized):
    with enable_x64(True):
        out = lpmn_values(n, n, Z, normalized)
        assert out.dtype == np.float64 and out.shape == (n + 1, n + 1, len(Z))
        assert_close(out, expected(n, normalized), rtol=1e-12, atol=1e-13)
        assert_close(jit(lambda z: lpmn_values(n, n, z, normalized))(Z), out, rtol=1e-12)
    single = lpmn_values(n, n, Z.astype(np.float32), normalized)
    assert single.dtype == np.float32
    assert_close(single, expected(n, normalized), rtol=2e-4, atol=1e-5)


def test_spherical_harmonics_of_a_high_degree():
    out = lpmn_values(40, 40, np.cos(np.float32([0.3, 1.2])), True)
    single = sph_harm_y(np.int32(40), np.int32(3), np.float32([0.3, 1.2]), np.float32(0))
    assert_close(out[3, 40], lax.real(single), rtol=1e-3, atol=1e-4)


def test_derivatives_and_batches():
    with enable_x64(True):
        check_derivatives(lambda z: lpmn_values(3, 3, z, True), Z[:3], order=2)
        rows = vmap(lambda z: lpmn_values(2, 2, z, False))(Z[:6].reshape(2, 3))
        assert_close(rows[1], lpmn_values(2, 2, Z[3:6], False), rtol=1e-12)


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ((2, 2, np.arange(3), False), TypeError, "z must be float32 or float64, got int"),
        ((2, 2, np.float32(1), False), ValueError, r"z must be a vector, got shape \(\)"),
        ((1, 2, np.ones(2), False), ValueError, "the same nonnegative number, got 1 and 2"),
        ((-1, -1, np.ones(2), False), ValueError, "nonnegative number, got -1 and -1"),
        ((1, 1, [0.5], False), TypeError, "lpmn_values requires ndarray or scalar arguments"),
    ],
)
def test_errors(arguments, error, text):
    with pytest.raises(error, match=text):
        lpmn_values(*arguments)
