"""Special functions against values computed with 60 digits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import primax_core as px
from primax_core._base.config import enable_x64
from primax_core._ir.primitive import MissingRule
from primax_core.lax import bessel, gamma, incomplete_beta, incomplete_gamma, polynomials, special
from test_support import (
    assert_close,
    check_batches,
    check_derivatives,
    numerical_gradient,
)

# a, x, igamma, igammac, the first one's derivative by a, that of a sample
INCOMPLETE_GAMMA = [
    (0.25, 0.125, 0.6401572060830841, 0.35984279391691587, -1.2360782806752975, 1.0675700230665752),
    (
        0.0009765625,
        2.75,
        0.9999824111624587,
        1.7588837541301986e-05,
        -0.018043015821522373,
        793.5569582351169,
    ),
    (0.5, 4.5, 0.9973002039367398, 0.002699796063260189, -0.009832300230446978, 3.3278327629489257),
    (1.0, 1.0, 0.6321205588285577, 0.36787944117144233, -0.4317297106348987, 1.1735630272247268),
    (
        2.5,
        0.0078125,
        1.614269162439035e-06,
        0.9999983857308375,
        -9.61430496465539e-06,
        0.018653570532524758,
    ),
    (7.0, 9.5, 0.8350507556991845, 0.1649492443008155, -0.0908195962148874, 1.1884146844950567),
    (9.75, 9.75, 0.5426065613715498, 0.4573934386284501, -0.12886309424727221, 1.017258713016324),
    (
        11.0,
        4.0,
        0.002839766120513743,
        0.9971602338794863,
        -0.003104330718770778,
        0.5865553895781315,
    ),
    (
        11.0,
        20.0,
        0.9891882811733472,
        0.010811718826652723,
        -0.007844106338284439,
        1.3486404668570071,
    ),
    (
        15.0,
        50.0,
        0.9999999981431976,
        1.8568023365102387e-09,
        -2.347413926130384e-09,
        1.7383693784946177,
    ),
    (30.0, 28.0, 0.3773896943143976, 0.6226103056856024, -0.07049269276012013, 0.971282368474091),
    (
        100.0,
        130.0,
        0.9972495916326934,
        0.002750408367306526,
        -0.00081013002856229,
        1.1388044458372277,
    ),
    (
        150.0,
        90.0,
        4.795302327588349e-09,
        0.9999999952046976,
        -2.509982383106014e-09,
        0.7670828797652846,
    ),
    (
        1000.0,
        1010.0,
        0.6276789447369947,
        0.3723210552630053,
        -0.011945731337225441,
        1.0051509296765344,
    ),
    (
        9.5367431640625e-07,
        1.5,
        0.9999999046137719,
        9.538622817500329e-08,
        -0.10001983678304166,
        705047.9102695165,
    ),
    (5.0, 100.0, 1.0, 1.6139305336977305e-37, -5.0182819018658455e-37, 3.2375351046891017),
]

# a, b, x, betainc, its derivatives by a and b
INCOMPLETE_BETA = [
    (0.5, 0.5, 0.25, 0.3333333333333333, -0.6461318944389011, 0.4307545962926007),
    (2.0, 3.0, 0.875, 0.992919921875, -0.0069756283701009544, 0.013013624196463682),
    (0.0625, 5.0, 0.5, 0.9992556617664329, -0.012982193757883446, 0.0006400066305762317),
    (8.0, 0.03125, 0.75, 0.0012778037577049674, -0.0004948133851960666, 0.04266548354618483),
    (
        9.5367431640625e-07,
        3.0,
        0.5,
        0.9999999350097223,
        -0.06814731024147427,
        6.387385676239683e-08,
    ),
    (
        3.0,
        9.5367431640625e-07,
        0.9375,
        1.330981400913763e-06,
        -3.1980117282984433e-07,
        1.395634709648844,
    ),
    (20.0, 30.0, 0.5, 0.923796114019261, -0.02276510213033313, 0.018536163294276903),
    (150.0, 90.0, 0.5, 4.7986352575751314e-05, -1.1375701598089234e-05, 1.4679274683462929e-05),
    (400.0, 1000.0, 0.28125, 0.35852635181888515, -0.015868577084858677, 0.006276551494539317),
    (1.0, 1.0, 0.3125, 0.3125, -0.3634846280642753, 0.25760174649096984),
    (
        5.0,
        7.0,
        9.313225746154785e-10,
        3.236999437516874e-43,
        -6.492731845709657e-42,
        1.844692642309333e-43,
    ),
    (2500.0, 2500.0, 0.5078125, 0.8653912898622983, -0.0030407845380645954, 0.0030886712636768727),
]

# x, lgamma, digamma, polygamma of orders 1 and 4
GAMMA = [
    (-10.25, -14.20399790093109, 5.516858419886273, 19.646252424622652, 24481.574336748214),
    (-2.75, 0.004487897535955773, -1.959055264977997, 19.433868949488463, -24481.624740671534),
    (-0.5, 1.2655121234846454, 0.03648997397857652, 8.934802200544679, -3.4742498266672253),
    (0.015625, 4.150063373653939, -64.55180297316785, 4097.6081469812325, -25769803799.06425),
    (0.75, 0.20328095143129538, -1.0858608797864722, 2.5418796476716063, -102.80060581541747),
    (
        1.0009765625,
        -0.0005629031799912047,
        -0.5756104293406219,
        1.6425893921526171,
        -24.767391638642998,
    ),
    (1.4375, -0.12120242719902266, -0.023613544005297898, 0.9895029178956272, -4.262600230382206),
    (2.5, 0.2846828704729192, 0.7031566406452432, 0.49035775610023485, -0.3137559995067314),
    (4.25, 2.1144569274503713, 1.3246832187604867, 0.26512373409656215, -0.028681606643238648),
    (7.0, 6.579251212010101, 1.8727843350984672, 0.15354517795933756, -0.00329677158902638),
    (33.5, 83.30242550295006, 3.496545816722825, 0.030300712174923455, -5.055491712817565e-06),
    (1000000.0, 12815504.569147611, 13.815510057964191, 1.0000005000001667e-06, -6.00001200001e-24),
]

# s, q, zeta
ZETA = [
    (2.0, 1.0, 1.6449340668482264),
    (1.0625, 3.0, 15.102946006305734),
    (3.5, 0.125, 1448.9224454756913),
    (10.0, 20.0, 2.698888836254023e-13),
    (7.0, 250.0, 6.908968952660276e-16),
    (2.0, -3.25, 19.474085068082154),
    (3.0, -3.25, -61.97760551971101),
    (5.0, -12.25, -1020.0656065388948),
]

# x, bessel_i0e, bessel_i1e
BESSEL = [
    (-12.5, 0.1140219294622889, -0.10936143099065089),
    (-3.0, 0.2430003541618254, -0.19682671329730086),
    (0.0078125, 0.9922330783622222, 0.0038758808918031525),
    (0.5, 0.6450352704491501, 0.1564208031848717),
    (2.0, 0.30850832255367105, 0.21526928924893765),
    (5.5, 0.17448325638192988, 0.15770100901675652),
    (7.96875, 0.14372295930277978, 0.1343767944847476),
    (8.03125, 0.14314237275813138, 0.13390938354139925),
    (15.0, 0.10389953144882272, 0.10037417504516666),
    (40.0, 0.06327827987523534, 0.062482229074442064),
    (1000.0, 0.012617240455891257, 0.012610930256928629),
]

# x, erf, erfc
ERROR = [
    (-3.0, -0.9999779095030014, 1.9999779095030015),
    (-0.5, -0.5204998778130465, 1.5204998778130465),
    (0.0078125, 0.008815282895179188, 0.9911847171048208),
    (0.75, 0.7111556336535151, 0.28884436634648486),
    (2.0, 0.9953222650189527, 0.004677734981047266),
    (4.0, 0.9999999845827421, 1.541725790028002e-08),
    (5.5, 0.9999999999999927, 7.357847917974398e-15),
]


def columns(table):
    """The columns; arguments are numbers that float32 represents exactly."""
    return [np.array(c) for c in zip(*table)]


def compare(fun, arguments, exact, relative, units=0.51):
    """Compare in float32, with an error of ``units`` in the last place, and in float64."""
    narrow = np.asarray(fun(*[a.astype(np.float32) for a in arguments]))
    assert narrow.dtype == np.float32
    rounded = exact.astype(np.float32)
    error = np.abs(narrow - exact) / np.spacing(np.maximum(np.abs(rounded), 1.2e-38))
    normal = (np.abs(exact) > 1.2e-38) & np.isfinite(rounded)
    assert np.max(error[normal]) <= units
    with enable_x64(True):
        actual = np.asarray(fun(*arguments))
        assert actual.dtype == np.float64
        np.testing.assert_allclose(actual, exact, rtol=relative)


@pytest.mark.parametrize(
    "name, column", [("igamma", 2), ("igammac", 3), ("igamma_grad_a", 4), ("random_gamma_grad", 5)]
)
def test_incomplete_gamma(name, column):
    table = columns(INCOMPLETE_GAMMA)
    compare(getattr(incomplete_gamma, name), table[:2], table[column], 1e-13)


def test_incomplete_gamma_in_the_tails():
    with enable_x64(True):
        lower, upper = (
            np.asarray(f(np.array([1e5, 1e10, 1e300]), np.array([100100.0, 1e10, 1e300])))
            for f in (incomplete_gamma.igamma, incomplete_gamma.igammac)
        )
    np.testing.assert_allclose(lower, [0.6244451307044055, 0.5000013298076013, 0.5], 1e-12)
    np.testing.assert_allclose(upper, [0.3755548692955945, 0.4999986701923987, 0.5], 1e-12)


def test_betainc():
    *arguments, exact, by_a, by_b = columns(INCOMPLETE_BETA)
    compare(incomplete_beta.betainc, arguments, exact, 2e-13)
    with enable_x64(True):
        a, b, x = arguments
        one = np.ones(a.shape)
        actual = px.jvp(lambda a: incomplete_beta.betainc(a, b, x), (a,), (one,))[1]
        np.testing.assert_allclose(actual, by_a, rtol=1e-11)
        actual = px.jvp(lambda b: incomplete_beta.betainc(a, b, x), (b,), (one,))[1]
        np.testing.assert_allclose(actual, by_b, rtol=5e-8)


def test_betainc_in_the_tails():
    half = np.float32(0.5)
    for n in (1e6, 1e12, 1e30):
        assert float(incomplete_beta.betainc(np.float32(n), np.float32(n), half)) == 0.5
    with enable_x64(True):
        # a nearly normal distribution, slightly above and below its mean
        n, spread = 1e14, np.array([-1.0, 1.0]) / np.sqrt(8e14)
        actual = np.asarray(incomplete_beta.betainc(np.full(2, n), np.full(2, n), 0.5 + spread))
    np.testing.assert_allclose(actual, [0.15865525, 0.84134475], rtol=1e-6)


@pytest.mark.parametrize(
    "fun, column, relative",
    [
        (gamma.lgamma, 1, 2e-12),
        (gamma.digamma, 2, 5e-14),
        (lambda x: gamma.polygamma(np.ones_like(x), x), 3, 2e-14),
        (lambda x: gamma.polygamma(np.full_like(x, 4), x), 4, 1e-13),
    ],
    ids=["lgamma", "digamma", "trigamma", "polygamma"],
)
def test_gamma(fun, column, relative):
    table = columns(GAMMA)
    compare(fun, table[:1], table[column], relative)


def test_zeta():
    *arguments, exact = columns(ZETA)
    compare(gamma.zeta, arguments, exact, 3e-14)


@pytest.mark.parametrize("name, column", [("bessel_i0e", 1), ("bessel_i1e", 2)])
def test_bessel(name, column):
    table = columns(BESSEL)
    compare(getattr(bessel, name), table[:1], table[column], 2e-15, units=3)


@pytest.mark.parametrize("name, column, units", [("erf", 1, 4), ("erfc", 2, 40)])
def test_error_function(name, column, units):
    table = columns(ERROR)
    compare(getattr(special, name), table[:1], table[column], 2e-15, units)


def test_error_function_derivative_in_the_tails():
    x = np.linspace(-9, 9, 41).astype(np.float32)
    slope = np.asarray(px.jvp(special.erf, (x,), (np.ones_like(x),))[1])
    exact = 2 / np.sqrt(np.pi) * np.exp(-(x.astype(float) ** 2))
    np.testing.assert_allclose(slope, exact, rtol=4e-7)
    assert [float(px.grad(special.erf)(v)) for v in (np.inf, -np.inf, 100.0)] == [0, 0, 0]


INF, NAN = np.inf, np.nan
BORDERS = [
    (incomplete_gamma.igamma, [0, 0, 0, 1, 1, 1, -1, INF, INF, INF, NAN, 2],
     [0, 1, INF, 0, INF, -1, 1, 1, 0, INF, 1, NAN],
     [NAN, 1, 1, 0, 1, NAN, NAN, 0, 0, NAN, NAN, NAN]),
    (incomplete_gamma.igammac, [0, 0, 0, 1, 1, 1, -1, INF, INF, INF],
     [0, 1, INF, 0, INF, -1, 1, 1, 0, INF], [NAN, 0, 0, 1, 0, NAN, NAN, 1, 1, NAN]),
    (incomplete_beta.betainc, [0, 0, 0, INF, INF, 1, 1, 1, 1, -1, NAN, INF],
     [1, 1, INF, 1, 1, 0, INF, 2, 2, 1, 1, INF],
     [0, 0.5, 0.5, 0.5, 1, 0.5, 0.5, 2, -1, 0.5, 0.5, 0.5],
     [0, 1, 1, 0, 1, 0, 1, NAN, NAN, NAN, NAN, NAN]),
    (gamma.lgamma, [0, -0.0, -1, -50, INF, -INF, NAN, 1, 2],
     [INF, INF, INF, INF, INF, INF, NAN, 0, 0]),
    (gamma.digamma, [0, -0.0, -1, INF, -INF, NAN], [-INF, -INF, NAN, INF, NAN, NAN]),
    (gamma.zeta, [1, 2, 2, 3, 2, 0.5, 2.5, NAN, 2], [3, 0, -4, -4, INF, 1, -1.5, 1, NAN],
     [INF, INF, INF, NAN, 0, NAN, NAN, NAN, NAN]),
    (gamma.polygamma, [0, 1, 2, 1, -1, 0.5, 0, 1], [0, -1, -1, INF, 1, 1, INF, NAN],
     [-INF, INF, NAN, 0, NAN, NAN, INF, NAN]),
    (bessel.bessel_i0e, [0, INF, -INF, NAN, 3e38], [1, 0, 0, NAN, 2.3032943e-20]),
    (bessel.bessel_i1e, [0, INF, -INF, NAN, -3e38], [0, 0, 0, NAN, -2.3032943e-20]),
    (special.erf_inv, [0, 1, -1, 1.5, NAN], [0, INF, -INF, NAN, NAN]),
]  # fmt: skip


@pytest.mark.parametrize("fun, arguments", [(f, a) for f, *a in BORDERS])
def test_borders(fun, arguments):
    *arguments, exact = [np.array(a, np.float32) for a in arguments]
    np.testing.assert_allclose(fun(*arguments), exact, rtol=1e-6)


def test_sign_of_zero():
    assert np.signbit(np.asarray(bessel.bessel_i1e(np.float32(-0.0))))
    assert float(px.grad(bessel.bessel_i0e)(0.0)) == 0  # between -1 and 1 on either side
    assert float(px.grad(bessel.bessel_i1e)(0.0)) == 0.5


SMOOTH = [
    (gamma.lgamma, [[-1.5, 0.3, 1.0, 2.5, 12.0]]),
    (gamma.digamma, [[-1.5, 0.3, 1.0, 2.5, 12.0]]),
    (lambda q: gamma.zeta(np.float64(2.5), q), [[0.3, 2.0, 12.0]]),
    (lambda x: gamma.polygamma(np.array([0.0, 1.0, 2.0]), x), [[0.3, 2.0, 12.0]]),
    (bessel.bessel_i0e, [[-9.0, -0.5, 2.0, 7.0]]),
    (bessel.bessel_i1e, [[-9.0, -0.5, 2.0, 7.0]]),
    (incomplete_gamma.igamma, [[0.3, 3.0, 15.0], [0.7, 2.0, 17.0]]),
    (incomplete_gamma.igammac, [[0.3, 3.0, 15.0], [0.7, 9.0, 17.0]]),
    (incomplete_gamma.random_gamma_grad, [[0.3, 3.0, 15.0], [0.7, 2.0, 17.0]]),
    (incomplete_beta.betainc, [[0.3, 3.0, 30.0], [2.0, 0.4, 20.0], [0.2, 0.7, 0.6]]),
    (special.erf, [[-2.0, 0.0, 1.5]]),
    (special.erfc, [[-2.0, 0.0, 1.5]]),
    (special.erf_inv, [[-0.9, 0.0, 0.5]]),
    (lambda x, c: polynomials.polynomial(x, [1.0, c, 2.0, c]), [[-2.0, 0.0, 1.5], [1.0, 2.0, 3.0]]),
]  # fmt: skip


@pytest.mark.rotate()
@pytest.mark.parametrize("fun, arguments", SMOOTH, ids=[str(i) for i in range(len(SMOOTH))])
def test_derivatives(fun, arguments):
    check_derivatives(fun, *map(np.asarray, arguments), atol=1e-7)


@pytest.mark.rotate()
@pytest.mark.parametrize(
    "fun, at",
    [
        (bessel.bessel_i0e, 0.7), (bessel.bessel_i1e, -0.7), (gamma.lgamma, 1.2),
        (lambda x: incomplete_gamma.igamma(np.float64(2.5), x), 1.75),
        (lambda x: incomplete_beta.betainc(np.float64(2.5), np.float64(1.5), x), 0.4),
        (special.erf, 0.4),
        (lambda x: polynomials.polynomial(x, [3.0, 1.0, 2.0, 5.0]), 0.4),
    ],
)  # fmt: skip
def test_second_derivatives(fun, at):
    """Forward over reverse, against differences of first derivatives."""
    with enable_x64(True):
        actual = px.jvp(px.grad(fun), (np.float64(at),), (np.float64(1),))[1]
    assert_close(actual, numerical_gradient(px.grad(fun), at), rtol=1e-8, atol=0.0)


def test_missing_derivatives():
    x = np.float32(2)
    with pytest.raises(ValueError, match="polygamma gradient with respect to m is not supported"):
        px.grad(gamma.polygamma)(x, x)
    with pytest.raises(MissingRule, match="higher orders are not implemented"):
        px.grad(px.grad(lambda a: incomplete_beta.betainc(a, x, x / 4)))(x)


@pytest.mark.rotate(every=4, whole=True)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_floats(dtype):
    x = np.array([0.5, 1.5, 3.0], np.float32)
    funs = [
        gamma.lgamma, gamma.digamma, bessel.bessel_i0e, bessel.bessel_i1e,
        lambda x: incomplete_gamma.igamma(x, x),
        # NumPy's result has another dtype for early versions of ml_dtypes.
        lambda x: incomplete_beta.betainc(x, x, (x / 4).astype(x.dtype)),
        lambda x: gamma.zeta((x + 1).astype(x.dtype), x),
        lambda x: gamma.polygamma(np.ones_like(x), x),
    ]  # fmt: skip
    narrow = x.astype(px.dtypes.finfo(dtype).dtype)
    for f in funs:
        out = np.asarray(f(narrow))
        assert out.dtype == narrow.dtype
        np.testing.assert_allclose(out.astype(float), np.asarray(f(x)), rtol=1.5e-2)


def test_scalars_and_broadcasting():
    a, x = np.array([[0.5], [2.0]], np.float32), np.array([[1.0, 2.0, 3.0]], np.float32)
    whole = np.asarray(incomplete_gamma.igamma(a, x))
    assert whole.shape == (2, 3)
    for i in range(2):
        np.testing.assert_array_equal(incomplete_gamma.igamma(a[i, 0], x[0]), whole[i])
    assert incomplete_gamma.igamma(1.0, 2.0).weak_type
    assert not incomplete_gamma.igamma(1.0, np.float32(2)).weak_type
    empty = np.zeros((0, 3), np.float32)
    assert incomplete_beta.betainc(empty, empty, np.float32(0.5)).shape == (0, 3)
    assert gamma.zeta(empty, empty).shape == (0, 3)


def test_large_arrays_are_computed_like_small_ones():
    """Large arrays are computed in blocks, and the last block overlaps another."""
    rng = np.random.default_rng(0)
    a = rng.uniform(0.1, 30, (3, 50_003)).astype(np.float32)
    x = rng.uniform(0.1, 30, a.shape).astype(np.float32)
    whole = np.asarray(incomplete_gamma.igammac(a, x))
    some = np.asarray(incomplete_gamma.igammac(a[:, -500:], x[:, -500:]))
    np.testing.assert_array_equal(whole[:, -500:], some)
    np.testing.assert_array_equal(whole[:, :500], incomplete_gamma.igammac(a[:, :500], x[:, :500]))


def test_zeta_left_of_zero():
    """Elements of one array with one term and with three; values by mpmath."""
    s = [3.0, 2.0, 7.0, 4.0, 2.5, 2.5]
    q = [-0.25, -7.5, -30.125, -2.75, 0.1, -0.5]
    exact = [
        -61.348683391831180, 9.7447662821704326, -2097149.8844939299, 259.74829188054893,
        317.32779365624280, math.nan,
    ]  # fmt: skip
    with enable_x64(True):
        assert_close(gamma.zeta(np.array(s), np.array(q)), exact, rtol=2e-15)
        assert_close(px.jit(gamma.zeta)(s[0], q[0]), exact[0], rtol=2e-15)
    out = gamma.zeta(np.float32(s), np.float32(q))
    assert_close(out, np.float32(exact), rtol=1.3e-7)


@pytest.mark.parametrize(
    "fun, operations",
    [
        (gamma.zeta, 600), (lambda x, _: gamma.lgamma(x), 450),
        (lambda x, _: gamma.digamma(x), 300),
        (lambda x, y: incomplete_beta.betainc(x, y, x), 2100),
    ],
    ids=["zeta", "lgamma", "digamma", "betainc"],
)  # fmt: skip
def test_number_of_lowered_operations(fun, operations):
    """Each takes time of compilation."""
    x = np.ones(100_000, np.float32)
    text = px.jit(fun).trace(x, x).lower().as_text()
    assert text.count("stablehlo.") < operations


@pytest.mark.parametrize("platform, double", [("cuda", True), ("tpu", False)])
def test_lowering_for_other_platforms(platform, double):
    """A TPU has no float64."""

    def all_of(x):
        return [
            gamma.lgamma(x), gamma.polygamma(x, x), incomplete_gamma.igammac(x, x),
            incomplete_gamma.random_gamma_grad(x, x), incomplete_beta.betainc(x, x, x),
        ]  # fmt: skip

    traced = px.jit(all_of).trace(np.ones((2, 3), np.float32))
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    assert ("f64" in text) is double


def test_batches():
    x = np.array([[0.5, 2.0, 3.0], [9.0, 0.1, 1.0]], np.float32)
    check_batches(incomplete_gamma.igamma, x, np.float32(1.5), rtol=1e-6)
    check_batches(lambda x, y: polynomials.polynomial(x, [1.0, y]), x, x, rtol=1e-6)
    check_batches(gamma.lgamma, x, rtol=1e-6)


def test_random_gamma_grad_takes_mixed_arguments():
    f = incomplete_gamma.random_gamma_grad
    assert f(np.float16(1), np.float32(1)).dtype == np.float16
    assert f(np.float32(1), np.ones((2, 1), np.float32)).shape == (2, 1)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        f(np.float32(1))
    with pytest.raises(TypeError, match="does not accept dtype int32"):
        f(np.int32(1), np.int32(1))


@pytest.mark.parametrize("fun", [gamma.zeta, incomplete_gamma.igamma, gamma.polygamma])
def test_other_dtypes_are_refused(fun):
    with pytest.raises(TypeError, match="does not accept dtype int32"):
        fun(1, 2)
    with pytest.raises(TypeError, match="requires arguments to have the same dtypes"):
        fun(np.float16(1), np.float32(1))


# Polynomials


@pytest.mark.parametrize("unroll", [None, 1, 3, True, False])
@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_polynomial(n, unroll):
    x = np.array([[-0.9, 0.0], [0.5, 1.1]], np.float32)
    coefficients = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    exact = np.polynomial.polynomial.polyval(x.astype(float), coefficients.astype(float))
    for coeffs in (coefficients, list(coefficients)):
        actual = polynomials.polynomial(x, coeffs, unroll=unroll)
        np.testing.assert_allclose(actual, exact, rtol=1e-5, atol=1e-6 * n)


def test_polynomial_operands():
    x = np.arange(3, dtype=np.float32)
    assert polynomials.polynomial(x, []).tolist() == [0, 0, 0]
    assert polynomials.polynomial(np.float32(2), [x, 1.0]).tolist() == [2, 3, 4]
    assert polynomials.polynomial(np.arange(3), [1.5, 2]).tolist() == [1, 3, 5]
    assert polynomials.polynomial(1.0, [1, 2.0]).weak_type
    assert polynomials.polynomial(np.complex64(1j), [1, 2.0, 3]).item() == -2 + 2j
    with pytest.raises(TypeError, match="polynomial does not accept dtype bool"):
        polynomials.polynomial(np.array([True]), [1.0, 2.0])
    with pytest.raises(OverflowError, match="too large"):
        polynomials.polynomial(np.int8(3), [200, 1])
    with pytest.raises(TypeError, match="coeffs must be a sequence"):
        polynomials.polynomial(x, 2.0)


def test_long_polynomial_differentiates():
    check_derivatives(
        lambda x, c: polynomials.polynomial(x, c),
        np.array([0.5, -0.9]),
        np.linspace(1, 2, 70),
    )


@pytest.mark.parametrize("dtype, limit", [("float32", 89.0), ("float64", 710.4)])
def test_hyperbolic_functions_of_great_numbers(dtype, limit) -> None:
    precise = np.longdouble if np.finfo(np.longdouble).eps < 1e-18 else np.float64
    x = np.concatenate([np.linspace(-limit, limit, 2001), np.linspace(-2, 2, 401)]).astype(dtype)
    with enable_x64(True):
        for ours, exact in ((px.lax.sinh, np.sinh), (px.lax.cosh, np.cosh)):
            expected = exact(x.astype(precise))
            ulp = np.spacing(np.abs(expected).astype(dtype))
            error = np.abs(np.asarray(px.jit(ours)(x)).astype(precise) - expected) / ulp
            assert error.max() <= 8
        ends = np.array([-0.0, np.inf, -np.inf, np.nan], dtype)
        np.testing.assert_array_equal(px.lax.sinh(ends), ends)
        assert np.signbit(np.asarray(px.lax.sinh(ends))[0])
        np.testing.assert_array_equal(px.lax.cosh(ends), [1, np.inf, np.inf, np.nan])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponentials_with_exact_exponents(dtype) -> None:
    info = np.finfo(dtype)
    whole = np.arange(info.minexp, info.maxexp).astype(dtype)
    rng = np.random.default_rng(0)
    x = rng.uniform(info.minexp, info.maxexp, 2000).astype(dtype)
    tail = 9.1 if dtype == "float32" else 26.5
    z = np.concatenate([rng.uniform(-6, 2, 1000), rng.uniform(0, tail, 2000)]).astype(dtype)
    with enable_x64(True):
        powers = np.asarray(px.jit(px.lax.exp2)(whole))
        assert np.array_equal(powers, [math.ldexp(1.0, int(n)) for n in whole])
        # 2^x by 2^floor(x), because the exponential of the mathematics library may err for large x.
        expected = [math.ldexp(2.0 ** (float(v) % 1), math.floor(v)) for v in x]
        assert _ulp(px.jit(px.lax.exp2)(x), expected, dtype) <= 2
        assert _ulp(px.jit(px.lax.erfc)(z), [math.erfc(v) for v in z], dtype) <= 6
        ends = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e5, -1e5], dtype)
        np.testing.assert_array_equal(px.lax.exp2(ends), [np.inf, 0, np.nan, 1, 1, np.inf, 0])
        np.testing.assert_array_equal(px.lax.erfc(ends), [0, 2, np.nan, 1, 1, 0, 2])
        top = np.array([info.maxexp, np.nextafter(info.maxexp, 0, dtype=dtype)], dtype)
        assert np.array_equal(np.isinf(px.lax.exp2(top)), [True, False])


def _ulp(x, expected, dtype) -> float:
    """The largest error in units in the last place."""
    expected = np.asarray(expected, np.float64)
    spacing = np.spacing(np.abs(expected).astype(dtype)).astype(np.float64)
    return float(np.max(np.abs(np.asarray(x, np.float64) - expected) / spacing))
