"""Special functions at kinks, poles and infinities; reductions; errors."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import scipy.special as theirs

from primax_core import enable_x64, grad, jit, vmap
from primax_scipy import special
from test_support import assert_close, numerical_gradient

NAN, INF = np.nan, np.inf


close = partial(assert_close, rtol=2e-6, atol=1e-7)

EDGES = {
    "entr": [0, -1, 1, INF, NAN], "gammaln": [0, -1, -2, 1, 2, INF, NAN],
    "gamma": [0.0, -0.0, -1, 5, 40, INF, -INF, NAN], "gammasgn": [0.0, -0.0, -0.5, -1.5, 3, INF],
    "loggamma": [1, 2, -0.5, INF, NAN], "erfcinv": [0, 1, 2, -1, 3, NAN],
    "ndtri": [0, 0.5, 1, -1, 2, NAN], "ndtr": [-INF, -40, 0, 40, INF, NAN],
    "log_ndtr": [-INF, -1e10, 0, 1e10, INF, NAN], "erfcx": [0, INF, -INF, 1e10, NAN],
    "dawsn": [0, 4, INF, -INF, NAN], "expi": [0, 1, -1, -INF, NAN, 88.9],
    "exp1": [0, -1, 1, INF, NAN], "spence": [-1, 0, 1, 0.5, 1.5, 2, NAN],
    "logit": [0, 1, 0.5, -1, 2, NAN], "expit": [0, -200, 200, -INF, INF, NAN],
    "i0": [0, INF, NAN], "i1": [0, -INF, NAN], "factorial": [0, 1, 5, -1, -0.5, NAN],
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_edges(name) -> None:
    x = np.float32(EDGES[name])
    with np.errstate(all="ignore"):
        close(getattr(special, name)(x), getattr(theirs, name)(x))


PAIRS = np.float32(
    [[0, 0], [0, 1], [1, 0], [1, -1], [-1, 1], [0, NAN], [NAN, 0], [0, -1], [2, 3], [0, INF]]
).T


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div"])
def test_edges_of_pairs(name) -> None:
    with np.errstate(all="ignore"):
        close(getattr(special, name)(*PAIRS), getattr(theirs, name)(*PAIRS))


def test_derivatives_where_cases_meet() -> None:
    # The function is 0 for all y.
    assert float(grad(special.xlogy, 1)(0.0, 0.0)) == 0.0
    assert float(grad(special.xlog1py, 1)(0.0, -1.0)) == 0.0
    assert float(grad(special.kl_div, 1)(0.0, 2.0)) == 1.0
    assert float(grad(special.entr)(1.0)) == -1.0
    assert float(grad(special.i1)(0.0)) == 0.5
    assert float(grad(lambda x: special.sici(x)[0])(0.0)) == 1.0
    assert float(grad(special.spence)(1.0)) == -1.0
    close(grad(special.erfcx)(0.0), -2 / math.sqrt(math.pi))
    close(vmap(grad(special.expit))(np.float32([-200, 0, 200])), [0, 0.25, 0])
    close(grad(special.boxcox, 1)(2.0, 0.0), 0.5 * math.log(2) ** 2)
    close(grad(special.boxcox1p, 1)(1.0, 0.0), 0.5 * math.log(2) ** 2)
    # Tails: derivatives are relatively accurate.
    close(grad(special.log_ndtr)(-100.0), 100.00999800)
    close(grad(special.erfcx)(1e4) * 1e8, -1 / math.sqrt(math.pi))
    close(
        grad(special.ndtri)(1e-30), 1 / (math.exp(-0.5 * 11.46402468**2) / math.sqrt(2 * math.pi))
    )


def test_logsumexp() -> None:
    x = np.float32([[1, 2, -INF], [1000, 1001, 999]])
    with np.errstate(all="ignore"):
        for axis in (None, 0, -1, (0, 1)):
            for keep in (False, True):
                close(
                    special.logsumexp(x, axis, keepdims=keep),
                    theirs.logsumexp(x, axis, keepdims=keep),
                )
        b = np.float32([2, -1, 0])
        for a, e in zip(
            special.logsumexp(x, -1, b, return_sign=True),
            theirs.logsumexp(x, -1, b, return_sign=True),
        ):
            close(a, e)
    close(
        special.logsumexp(x, -1, where=np.array([True, False, True])),
        [1, 1000 + math.log1p(math.exp(-1))],
    )
    assert float(special.logsumexp(np.zeros(0, np.float32))) == -INF
    close(grad(special.logsumexp)(np.float32([0, 0, -INF])), [0.5, 0.5, 0])
    close(special.softmax(x[1], axis=0), theirs.softmax(x[1]))
    close(special.log_softmax(x, axis=1), theirs.log_softmax(x.astype(np.float64), 1))
    close(jit(special.softmax)(x[1]).sum(), 1)
    with pytest.raises(TypeError, match="bool"):
        special.softmax(np.array([True]))
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        special.logsumexp(x, 2)
    with pytest.raises(ValueError, match="boolean"):
        special.logsumexp(x, where=x)


def test_bessel_functions_of_several_orders() -> None:
    x = np.float32([-9, -1, 0, 1e-6, 0.5, 3, 20])
    actual = special.bessel_jn(x, v=6)
    for v in range(7):
        np.testing.assert_allclose(actual[v], theirs.jv(v, x), 1e-4, 2e-7)
    slope = vmap(grad(lambda z: special.bessel_jn(z, v=3)[3]))(x)
    np.testing.assert_allclose(slope, theirs.jvp(3, x), 1e-4, 2e-7)
    with pytest.raises(ValueError, match="must not be negative"):
        special.bessel_jn(x, v=-1)
    with pytest.raises(ValueError, match="complex"):
        special.bessel_jn(1j, v=1)


def test_spherical_harmonics() -> None:
    rng = np.random.default_rng(0)
    n, m = rng.integers(0, 8, 60), rng.integers(-8, 8, 60)
    theta, phi = rng.uniform(0, math.pi, 60), rng.uniform(0, 6, 60)
    keep = abs(m) <= n
    n, m, theta, phi = n[keep], m[keep], theta[keep], phi[keep]
    with enable_x64(True):
        actual = special.sph_harm_y(n, m, theta, phi)
        np.testing.assert_allclose(actual, theirs.sph_harm_y(n, m, theta, phi), 0, 1e-13)
        other = jit(lambda n: special.sph_harm_y(n, m, theta, phi, n_max=8))(n)
        np.testing.assert_allclose(actual, other, 0, 1e-13)
        part = lambda t: special.sph_harm_y(3, 1, t, 0.5).real
        assert_close(grad(part)(0.7), numerical_gradient(part, 0.7), rtol=1e-7, atol=0.0)
    assert complex(special.sph_harm_y(1, 2, 0.3, 0.4)) == 0
    with pytest.raises(ValueError, match="n_max"):
        jit(lambda n: special.sph_harm_y(n, m, theta, phi))(n)
    with pytest.raises(TypeError, match="must be integers"):
        special.sph_harm_y(1.0, 0, 0.1, 0.1)
    with pytest.raises(NotImplementedError, match="differentiate"):
        special.sph_harm_y(1, 0, 0.1, 0.1, diff_n=1)


def test_hypergeometric_functions_in_special_cases() -> None:
    # One shape for all: the functions compile for some seconds.
    a = np.float32([1, 1, 0.5, -2, 1, 1, 0.3, 2.5, 1, 1])
    b = np.float32([2, 1, 0.5, 3, 2, 1, 0.4, 1.5, 2, 1])
    c = np.float32([3, 2, 1.5, 0.5, 2, 2, 0.7, 1, 4, 2])
    x = np.float32([0.5, 1, 0.99, 2, -5, -1, 0.99, 0.95, 1, 1.5])
    expected = theirs.hyp2f1(*[v.astype(np.float64) for v in (a, b, c, x)])
    expected[3], expected[9] = 41.0, INF
    np.testing.assert_allclose(special.hyp2f1(a, b, c, x), expected, 2e-5)
    a, b = np.float32([2, 0, 0.7, 0.7, 0.7, 0.7]), np.float32([0, 1, 1.9, 1.9, 1.9, 1.9])
    far = np.float32([1, 2, -90, -60, 60, 85])
    expected = [INF, 1.0, *theirs.hyp1f1(0.7, 1.9, far[2:])]
    np.testing.assert_allclose(special.hyp1f1(a, b, far), expected, 1e-4)
    # 2F1(1, 1, 2, x) is -log(1 - x) / x.
    log = math.log(2)
    close(jit(grad(grad(special.hyp2f1, 3), 3))(1.0, 1.0, 2.0, 0.5), 16 * log - 8)


def test_bernoulli_numbers() -> None:
    with enable_x64(True):
        actual, many = (np.asarray(special.bernoulli(n)) for n in (30, 264))
    np.testing.assert_allclose(actual, theirs.bernoulli(30), 1e-11, 1e-15)
    np.testing.assert_allclose(many[:31], actual)
    assert many[258] == 1.3352784187354634e306  # mpmath
    assert many[259:].tolist() == [0, -np.inf, 0, np.inf, 0, -np.inf]
    assert np.asarray(special.bernoulli(0)).tolist() == [1.0]
    assert np.isinf(special.bernoulli(300)[-1])
    with pytest.raises(ValueError, match="at most 10,000,000, got 2147483648"):
        special.bernoulli(2**31)
    with pytest.raises(ValueError, match="non-negative"):
        special.bernoulli(-1)


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda: special.entr(1j), ValueError, "entr does not support complex-valued inputs"),
        (lambda: special.sici(1j), ValueError, "sici"),
        (lambda: special.ndtr(np.float16(1)), TypeError, "float32 and float64"),
        (lambda: special.ndtri(1), TypeError, "float32 and float64"),
        (lambda: special.log_ndtr(1.0, series_order=31), ValueError, "from 0 to 30"),
        (lambda: special.log_ndtr(1.0, series_order=2.0), TypeError, "Python integer"),
        (lambda: special.polygamma(0.5, 1.0), ValueError, "integer type"),
        (lambda: special.zeta(2.0), NotImplementedError, "q != None"),
        (lambda: special.factorial(3, exact=True), NotImplementedError, "math.factorial"),
        (lambda: special.fresnel(1j), NotImplementedError, "complex"),
        (lambda: special.multigammaln(5.0, 2.5), ValueError, "integer"),
        (lambda: special.expi("a"), TypeError, "expi requires ndarray or scalar"),
        (lambda: special.xlogy([1.0], 2.0), TypeError, "xlogy requires ndarray or scalar"),
        (lambda: special.i0(1j), ValueError, "Unsupported input type"),
    ],
)  # fmt: skip
def test_errors(call, error, match) -> None:
    with pytest.raises(error, match=match):
        call()


def test_kl_div_of_close_arguments() -> None:
    p, q = np.float32([1, 100, 2, 3]), np.float32([1.0001, 100.01, 1.5, 0.1])
    x, y = p.astype(np.longdouble), q.astype(np.longdouble)
    gap = (y - x) / x
    expected = x * (gap - np.log1p(gap))
    np.testing.assert_allclose(special.kl_div(p, q), expected.astype(np.float64), rtol=2e-6)
    slope = jit(vmap(grad(special.kl_div)))(p, q)
    np.testing.assert_allclose(slope, np.log(x / y).astype(np.float64), rtol=2e-3)


def test_spherical_harmonics_at_all_polar_angles() -> None:
    theta = np.float32([-1, 0, 1, np.pi, 4])
    for n, m in ((1, 1), (1, -1), (5, -3), (3, 2)):
        actual = special.sph_harm_y(np.array([n]), np.array([m]), theta, np.float32(0.7), n_max=5)
        close(actual, theirs.sph_harm_y(n, m, theta, 0.7), atol=2e-6)


def test_complex_gamma_at_its_poles() -> None:
    poles = np.complex64([0, -1, -2])
    for fun in (special.gamma, special.loggamma):
        value = np.asarray(fun(poles))
        assert np.isnan(value.real).all() and np.isnan(value.imag).all()
        assert np.isfinite(np.asarray(fun(poles + np.complex64(0.5)))).all()


def test_betaln_near_its_zero_at_1_1() -> None:
    """The rounding error of ``a + b`` is larger than the result; values by mpmath."""
    a = np.array([1 + 2**-21, 1 + 2**-40, 0.999, 1 + 2**-22, 1.0])
    b = np.array([1 - 2**-20, 1 + 2**-41, 1.002, 1.0, 1.0])
    exact = [
        4.7683801991966880e-7, -1.3642420526591421e-12, -0.00099621286474056172,
        -2.3841855067985759e-7, 0.0,
    ]  # fmt: skip
    with enable_x64(True):
        assert_close(special.betaln(a, b), exact, rtol=1e-5)
        assert_close(special.betaln(a[2:], b[2:]), exact[2:], rtol=1e-8)


def test_gamma_left_of_zero_between_large_integers() -> None:
    x = np.array([-170.5, -33.25, -12.0625, -7.9375, -3.5, -2.5, 0.25])
    with enable_x64(True):
        close(special.gamma(x), theirs.gamma(x), rtol=3e-14)
    x = x[1:].astype(np.float32)
    close(special.gamma(x), theirs.gamma(x.astype(np.float64)), rtol=3e-6)
