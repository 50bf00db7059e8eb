"""Error functions, integrals and digamma of complex numbers, Hankel functions."""

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


@pytest.mark.rotate(every=4, whole=True)
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


INTEGRALS = ("exp1", "expi", "digamma", "spence")
PLANE = np.exp(RNG.uniform(-5, 4.5, 60) + 1j * RNG.uniform(-np.pi, np.pi, 60))
NEAR_THE_CUT = -np.exp(RNG.uniform(-2, 4.3, 30)) + 1j * RNG.uniform(-1, 1, 30) ** 5


@pytest.mark.parametrize("name", INTEGRALS)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_integrals_of_complex_numbers(name, dtype) -> None:
    z = np.concatenate([PLANE, NEAR_THE_CUT]).astype(dtype)
    out = getattr(special, name)(z)
    assert typeof(out).dtype == dtype
    # SciPy loses digits near the cut.
    rtol = 4e-6 if dtype == np.complex64 else 2e-11
    with np.errstate(all="ignore"):
        expected = getattr(peer, name)(z.astype(complex))
    usual = np.abs(expected) < 1e37
    close_to_modulus(np.asarray(out)[usual], expected[usual], rtol)


# Values of mpmath with 40 digits
ON_THE_PLANE = {
    "exp1": [
        (-3 + 3.7j, 3.9078562754404054 + 2.359142786629588j),
        (-30 + 0.01j, -368955992443.8743 + 3562102647.679397j),
        (0.1 - 1.5j, -0.4073114693214373 + 0.23956183055762503j),
        (20 + 20j, -2.3824537449367396e-11 - 6.696987315652562e-11j),
    ],
    "spence": [
        (-3 + 3.7j, -0.3486733207106229 - 4.194285667348293j),
        (0.9 + 0.05j, 0.10189951285005944 - 0.05266268367531631j),
        (0.4 - 0.9j, 0.34555278900208863 + 1.100709995299305j),
        (40 + 1j, -8.331189455843996 - 0.09457407718706899j),
    ],
    "digamma": [
        (-2.5 + 0.1j, 1.1036973777788084 + 0.9226992914585989j),
        (0.5 + 30j, 3.4011510763585218 + 1.5707963267948966j),
        (-40.3 - 2j, 3.7099277884796176 - 3.092607923245684j),
    ],
}


@pytest.mark.parametrize("name", ON_THE_PLANE)
def test_integrals_of_complex_numbers_are_within_8_ulp(name) -> None:
    z, expected = map(np.array, zip(*ON_THE_PLANE[name]))
    for out in (getattr(special, name)(z), jit(vmap(getattr(special, name)))(z)):
        close_to_modulus(out, expected, 8 * 2.2e-16)


def test_integrals_on_the_cut_and_at_ends() -> None:
    cut = np.array([complex(-2, 0.0), complex(-2, -0.0), complex(-50, 0.0), complex(-50, -0.0)])
    out = np.asarray(special.exp1(cut))
    assert_close(out.imag, np.pi * np.array([-1, 1, -1, 1]), rtol=1e-15)
    assert_close(out.real, -np.asarray(special.expi(-cut.real)), rtol=1e-14)
    x = np.array([-3.0, 2.0])
    out = np.asarray(special.expi(x + 0j))
    assert np.all(out.imag == 0)
    assert_close(out.real, special.expi(x), rtol=1e-14)
    ends = np.array([0, np.inf, np.nan], complex)
    out = np.asarray(special.exp1(ends))
    assert out[0].real == np.inf and out[1] == 0 and np.isnan(out[2].real)
    both = np.array([complex(-2, 0.0), complex(-2, -0.0), 0, 1, np.inf])
    expected = np.array([2.320180423313098 - 3.451392295223203j] * 2 + [np.pi**2 / 6, 0, np.nan])
    expected[1] = expected[0].conj()
    assert_close(special.spence(both), expected, rtol=1e-15, atol=1e-15)
    assert complex(grad(special.spence, holomorphic=True)(1 + 0j)) == -1
    out = np.asarray(special.digamma(np.array([0j, -3 + 0j, np.inf + 0j])))
    assert np.isnan(out[:2].real).all() and out[2].real == np.inf


@pytest.mark.rotate(every=4, whole=True)
@pytest.mark.parametrize("name", INTEGRALS)
def test_derivatives_of_complex_integrals(name) -> None:
    fun = getattr(special, name)
    for z in (0.3 + 0.2j, -2.5 + 0.7j, 12 - 3j):
        derivative = grad(fun, holomorphic=True)(z)
        step = 1e-5
        expected = (getattr(peer, name)(z + step) - getattr(peer, name)(z - step)) / (2 * step)
        close_to_modulus(derivative, np.complex128(expected), 1e-8)
