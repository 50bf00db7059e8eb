"""Bessel and Airy functions of complex numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special as peer

from primax_core import enable_x64, grad, jit, jvp, vmap
from primax_core.extend import typeof
from primax_scipy import special
from test_support import assert_close

HOLOMORPHIC = ("jv", "yv", "iv", "kv", "kve", "hankel1", "hankel2", "hankel1e", "hankel2e")
SCALED = ("jve", "yve", "ive")
NAMES = HOLOMORPHIC + SCALED
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def double_precision():
    with enable_x64(True):
        yield


def orders_and_points(count):
    """Orders from -20 to 50, a third of them integers; points of all quadrants and axes."""
    v = RNG.uniform(-20, 50, count)
    v[::3], v[1::5] = np.round(v[::3]), RNG.uniform(-3, 3, len(v[1::5]))
    z = np.exp(RNG.uniform(np.log(1e-6), np.log(1e3), count))
    z = z * np.exp(1j * RNG.uniform(-np.pi, np.pi, count))
    z[: count // 2] *= np.exp(RNG.uniform(0, 5, count // 2)) / np.abs(z[: count // 2])
    z[::11], z[1::11] = z[::11].real, 1j * z[1::11].imag
    return v, z


ORDERS, POINTS = orders_and_points(300)


def close_to_modulus(out, expected, rtol, largest=1e290) -> None:
    """The error compared with the modulus, where that is in range."""
    size = np.abs(expected)
    usual = (size > 1 / largest) & (size < largest)
    assert usual.sum() > 0.7 * usual.size
    assert np.all(np.abs(np.asarray(out)[usual] - expected[usual]) <= rtol * size[usual])


@pytest.mark.rotate(every=8, whole=True)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", NAMES)
def test_bessel_functions_of_complex_numbers(name, dtype) -> None:
    double = dtype == np.complex128
    v, z = ORDERS.astype(np.float64 if double else np.float32), POINTS.astype(dtype)
    out = getattr(special, name)(v, z)
    assert typeof(out).dtype == dtype
    with np.errstate(all="ignore"):
        expected = getattr(peer, name)(v.astype(float), z.astype(complex))
    # SciPy loses up to three digits.
    if double:
        close_to_modulus(out, expected, 5e-13)
    else:
        small = (np.abs(z) > 1e-2) & (np.abs(v) < 20)
        close_to_modulus(np.asarray(out)[small], expected[small], 3e-5, 1e36)


# Values of mpmath with 40 digits
EXACT_AT = [(0.5, 1 + 1j), (-2.5, -3 + 0.5j), (12.25, -8 - 9j), (3, 30j), (7, 9 - 1j)]
EXACT = {
    "jv": [
        0.9679012828901307 + 0.060204606214281704j,
        0.19544030851666147 - 0.36820836063234375j,
        5.335978502487329 + 4.1623775620181425j,
        -0 - 671140461797.4396j,
        0.3925581740439052 + 0.04825871592718622j,
    ],
    "yv": [
        -0.2628946385649067 + 0.8270501820405617j,
        0.07027825352966997 + 0.4343757386569411j,
        4.1593609230518265 - 5.335020305532048j,
        671140461797.4396 - 1.5732982191915207e-14j,
        0.03093071759768728 - 0.22741116220040927j,
    ],
    "iv": [
        0.7269806459635546 + 0.6418384753379859j,
        -0.844300329156601 - 1.3159835315125035j,
        3.5376309538423056 - 1.0704383881270938j,
        -0 - 0.129211228759725j,
        24.338383451418682 - 68.71793933748894j,
    ],
    "kv": [
        0.06868578341999641 - 0.38157825981268306j,
        -2.705313483027278 - 4.071431934271427j,
        -5.471136968071686 + 10.235426173224146j,
        0.2029645235164311 + 0.10687021234067991j,
        0.00016094094667515367 + 0.0005786926656402579j,
    ],
    "hankel1": [
        0.14085110084956895 - 0.20269003235062497j,
        -0.23893543014027965 - 0.29793010710267376j,
        10.670998808019377 + 8.321738485069968j,
        1.5732982191915207e-14 + 0j,
        0.6199693362443145 + 0.0791894335248735j,
    ],
    "hankel2": [
        1.7949514649306924 + 0.3230992447791884j,
        0.6298160471736026 - 0.43848661416201373j,
        0.0009581969552809722 + 0.0030166389663163293j,
        -1.5732982191915207e-14 - 1342280923594.8792j,
        0.1651470118434959 + 0.017327998329498932j,
    ],
}


@pytest.mark.rotate(every=6, whole=True)
@pytest.mark.parametrize("name", EXACT)
def test_bessel_functions_of_complex_numbers_are_within_32_ulp(name) -> None:
    v, z = np.array([v for v, _ in EXACT_AT]), np.array([z for _, z in EXACT_AT])
    close_to_modulus(jit(vmap(getattr(special, name)))(v, z), np.array(EXACT[name]), 32 * 2.2e-16)


def test_bessel_functions_of_complex_numbers_in_blocks() -> None:
    v, z = orders_and_points(5000)
    with np.errstate(all="ignore"):
        expected = peer.kve(v, z)
    close_to_modulus(jit(special.kve)(v, z), expected, 1e-12)


def test_bessel_functions_of_complex_numbers_at_ends() -> None:
    nan, inf = np.nan, np.inf
    v = np.array([0, 1, 0.5, -0.5, -1, 1, 50])
    z = np.array([0j, 0, 0, 0, 0, inf, 1e-7])
    expected = {
        "jv": [1.0, 0, 0, nan, 0, nan, 0],
        "iv": [1.0, 0, 0, nan, 0, nan, 0],
        "kv": [inf, inf, inf, inf, inf, nan, inf],
        "yv": [-inf, -inf, -inf, nan, nan, nan, -inf],
    }
    for name, values in expected.items():
        assert_close(np.asarray(getattr(special, name)(v, z)).real, values)
    # The sides of the cut have the same value, that from above.
    cut = np.array([complex(-2, 0.0), complex(-2, -0.0)])
    assert_close(special.yv(0.5, cut), peer.yv(0.5, cut), atol=1e-15)


def test_promotion_of_bessel_functions_of_complex_numbers() -> None:
    with enable_x64(False):
        assert typeof(special.jv(1, np.complex64(2))).dtype == np.complex64
        with pytest.raises(ValueError, match="pass a real order and a complex z"):
            special.hankel1(1j, 2.0)
        out = special.yn(np.int32(1), np.complex64(2 + 1j))
    close_to_modulus(out[None], peer.yv(1, np.array([2 + 1j])), 1e-6)


@pytest.mark.rotate(every=9, whole=True)
@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_derivatives_of_holomorphic_bessel_functions(name) -> None:
    fun, other, step = getattr(special, name), getattr(peer, name), 1e-5
    v, z = np.array([1.3, 0.0, -2.5]), np.array([2 + 1j, -1.5 - 2j, 0.5j])
    derivative = jit(vmap(grad(fun, 1, holomorphic=True)))(v, z)
    close_to_modulus(derivative, (other(v, z + step) - other(v, z - step)) / (2 * step), 1e-8)
    _, by_order = jit(lambda v: jvp(lambda v: fun(v, z), (v,), (np.ones(3),)))(v)
    close_to_modulus(by_order[:1], (other(v + step, z) - other(v - step, z))[:1] / (2 * step), 1e-8)


@pytest.mark.rotate(every=3, whole=True)
@pytest.mark.parametrize("name", SCALED)
def test_derivatives_of_scaled_bessel_functions(name) -> None:
    fun, other, step = getattr(special, name), getattr(peer, name), 1e-5
    z = np.array([1.2 - 0.7j, -3 + 2j])
    for t in (1, 1j):
        _, derivative = jvp(lambda z: fun(1.3, z), (z,), (np.full(2, t, complex),))
        expected = (other(1.3, z + step * t) - other(1.3, z - step * t)) / (2 * step)
        close_to_modulus(derivative, expected, 1e-8)


def test_second_derivative_and_derivatives_at_zero() -> None:
    first = grad(lambda z: special.jv(1.0, z), holomorphic=True)
    out = jit(vmap(grad(first, holomorphic=True)))(np.array([2 + 1j, 0j]))
    assert_close(out, [peer.jvp(1, 2 + 1j, 2), 0], rtol=1e-12, atol=1e-12)
    assert_close(first(0j), 0.5 + 0j, rtol=1e-14)


@pytest.mark.rotate(every=2, whole=True)
@pytest.mark.parametrize("name", ["airy", "airye"])
def test_airy_functions_of_complex_numbers(name) -> None:
    rng = np.random.default_rng(1)
    z = np.exp(rng.uniform(-5, 4, 200) + 1j * rng.uniform(-np.pi, np.pi, 200))
    z[:9], z[9:12] = np.abs(z[:9]), (0, -2.5, -7)
    outs = getattr(special, name)(z)
    for out, expected in zip(outs, getattr(peer, name)(z), strict=True):
        close_to_modulus(out, expected, 1e-12)
    at, step = np.array([-1.3 + 2j, 0.2 + 0.1j, 3 + 1j]), 1e-6
    for t in (1, 1j):
        _, derivatives = jvp(getattr(special, name), (at,), (np.full(3, t, complex),))
        high, low = getattr(peer, name)(at + step * t), getattr(peer, name)(at - step * t)
        for out, a, b in zip(derivatives, high, low, strict=True):
            close_to_modulus(out, (a - b) / (2 * step), 1e-7)


def test_airy_functions_of_narrow_complex_numbers() -> None:
    with enable_x64(False):
        outs = special.airy(np.complex64([0, 1 + 2j, -3 - 1j, 0.3j]))
    expected = peer.airy(np.complex64([0, 1 + 2j, -3 - 1j, 0.3j]).astype(complex))
    for out, value in zip(outs, expected, strict=True):
        assert typeof(out).dtype == np.complex64
        close_to_modulus(out, value, 3e-6)
