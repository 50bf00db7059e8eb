"""Error functions of complex numbers, Hankel functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special as peer

from primax_core import enable_x64, grad, jit, vmap
from primax_core.extend import typeof
from primax_scipy import special
from test_support import assert_close, check_derivatives


@pytest.fixture(autouse=True)
def double_precision():
    with enable_x64(True):
        yield


RNG = np.random.default_rng(0)
POINTS = np.concatenate(
    [(RNG.normal(size=40) + 1j * RNG.normal(size=40)) * scale for scale in (0.1, 1.0, 3.0)]
)
AXES = np.array([0.5, -2.0, 30.0, -30.0, 0.25j, -3j, np.inf, -np.inf], complex)
ERRORS = ("erf", "erfc", "dawsn")
HANKEL = ("hankel1", "hankel2", "hankel1e", "hankel2e")


def close_to_modulus(out, expected, rtol):
    """The error compared with the modulus."""
    size = np.abs(expected)
    assert np.all(np.abs(np.asarray(out) - expected) <= rtol * size + 1e-300)


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_error_functions_of_complex_numbers(name, dtype) -> None:
    for points in (POINTS, AXES):
        z = points.astype(dtype)
        out = getattr(special, name)(z)
        assert typeof(out).dtype == dtype
        rtol = 2e-5 if dtype == np.complex64 else 2e-13
        close_to_modulus(out, getattr(peer, name)(z.astype(complex)), rtol)


@pytest.mark.parametrize("name", ERRORS)
def test_error_functions_are_exact_on_axes(name) -> None:
    out = np.asarray(getattr(special, name)(AXES))
    assert np.all(out[AXES.imag == 0].imag == 0)
    if name != "erfc":
        assert np.all(out[AXES.real == 0].real == 0)


@pytest.mark.parametrize("name", ERRORS)
def test_derivatives_of_complex_error_functions(name) -> None:
    fun = getattr(special, name)
    for z in (0.3 + 0.2j, -1.5 + 0.7j):
        derivative = grad(fun, holomorphic=True)(z)
        step = 1e-5
        expected = (getattr(peer, name)(z + step) - getattr(peer, name)(z - step)) / (2 * step)
        assert_close(derivative, np.complex128(expected), rtol=1e-8)


@pytest.mark.parametrize("name", HANKEL)
@pytest.mark.parametrize("whole", [False, True])
def test_hankel_functions(name, whole) -> None:
    v, x = RNG.uniform(-5, 10, 100), RNG.uniform(-30, 30, 100)
    v = np.round(v) if whole else v
    close_to_modulus(getattr(special, name)(v, x), getattr(peer, name)(v, x), 2e-11)


def test_hankel_functions_of_narrow_floats() -> None:
    out = special.hankel1(np.float32(1.5), np.float32(2.0))
    assert typeof(out).dtype == np.complex64
    close_to_modulus(out, peer.hankel1(1.5, 2.0), 1e-5)
    assert typeof(special.hankel2(np.float16(1.5), np.float16(2.0))).dtype == np.complex64


def test_hankel_functions_at_ends() -> None:
    out = np.asarray(special.hankel1(1.5, np.array([0.0, np.inf, np.nan])))
    assert np.isnan(out[0]) and out[1] == 0 and np.isnan(out[2])


def test_derivatives_of_hankel_functions() -> None:
    parts = lambda v, x: special.hankel1(v, x).real + special.hankel2(v, x).imag
    check_derivatives(lambda x: parts(0.7, x), np.float64(2.5))
    check_derivatives(lambda v: parts(v, 2.5), np.float64(0.7), order=1)


def test_hankel_functions_are_mapped_and_compiled() -> None:
    v, x = RNG.uniform(0, 3, 5), RNG.uniform(1, 9, 5)
    expected = np.stack([np.asarray(special.hankel1(a, b)) for a, b in zip(v, x)])
    assert_close(vmap(special.hankel1)(v, x), expected, rtol=1e-14)
    assert_close(jit(special.hankel1)(v, x), expected, rtol=1e-14)


def test_complex_arguments_of_hankel_functions_are_refused() -> None:
    with pytest.raises(ValueError, match="hankel1 does not support complex-valued inputs"):
        special.hankel1(1.0, 1j)
