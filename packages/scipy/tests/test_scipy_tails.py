"""Errors of tails whose arguments are computed as pairs of floats, against values of 60 digits."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import enable_x64, grad, jit, vmap
from primax_scipy import _double_words as double_words, special, stats
from test_support import assert_close, check_derivatives

# Arguments, exact values for their nearest float32 and float64 numbers.
EXACT = {
    "lognorm.cdf": [
        ((1.7e-11, 2.75), 9.631654409619905e-20, 9.631653721961438e-20),
        ((0.00166, 0.734), 1.3833729230271023e-18, 1.3833694708840603e-18),
        ((0.9, 0.4), 0.3961206245350551, 0.39612064854267454),
    ],
    "lognorm.sf": [
        ((24000000.0, 1.68), 2.364833587774297e-24, 2.3648412147214925e-24),
        ((1.2, 0.3), 0.2716804186051547, 0.2716804545269202),
    ],
    "invgauss.cdf": [
        ((0.01205, 8.6), 9.274622362964837e-20, 9.274621784786715e-20),
        ((0.0139, 2.64), 3.2328613110743456e-17, 3.2328641518281626e-17),
        ((40.0, 2.0), 0.9998901895190807, 0.9998901895190807),
    ],
    "invgauss.sf": [
        ((20.58, 2.02), 0.003039672146152503, 0.0030396722760138765),
        ((450.0, 5.0), 2.729115374837202e-07, 2.729115374837202e-07),
        ((0.047, 0.04), 0.1813401977782199, 0.1813401840626489),
        ((6.0, 0.6), 1.9798788257473088e-05, 1.9798775080478317e-05),
    ],
    "invgamma.cdf": [
        ((0.012, 11.2), 4.922548131793826e-24, 4.922546936213959e-24),
        ((0.0129, 8.83), 5.3111760427993555e-24, 5.311164362532337e-24),
    ],
    "invgamma.sf": [
        ((0.66, 23.1), 9.748513032259911e-20, 9.748531640734594e-20),
        ((1e20, 0.6), 1.1191737084426731e-12, 1.1191749540701234e-12),
    ],
    "gennorm.cdf": [
        ((-5.6, 2.13), 3.4193656574304623e-19, 3.419388026027299e-19),
        ((-2.2, 4.5), 6.134061405867471e-18, 6.134082646682106e-18),
        ((0.3, 1.5), 0.6557778452577451, 0.6557778396556174),
    ],
    "t.cdf": [
        ((-23.3, 24.6), 1.3955080417147765e-18, 1.395507555400033e-18),
        ((-7.45, 23.7), 5.887377036611499e-08, 5.8873756933510316e-08),
        ((-2.5, 24.3), 0.009778998943677883, 0.009778998822989665),
        ((-1.1, 3.0), 0.175841593017552, 0.17584159746732547),
        ((-0.3, 8.0), 0.3859122364577619, 0.38591224084124937),
        ((-7.4e29, 0.68), 1.520387908591826e-21, 1.5203886094785644e-21),
        ((2.0, 5.0), 0.9490302605850708, 0.9490302605850708),
        ((-3.0, 9000.0), 0.0013535939263563863, 0.0013535939263563863),
        ((-3.0, 20000000.0), 0.0013498996935737933, 0.0013498996935737933),
        ((-8.0, 1000000000000.0), 6.220960580839736e-16, 6.220960580839736e-16),
    ],
    "f.cdf": [
        ((0.054, 28.5, 3.48), 3.065023310588391e-07, 3.0650226407367837e-07),
        ((1e-30, 0.53, 2.8), 8.126817552321616e-09, 8.126809493149187e-09),
        ((1.17, 0.53, 11.8), 0.7491430157033164, 0.7491430165665908),
        ((3.0, 5.0, 7.0), 0.9077534389794504, 0.9077534389794504),
    ],
    "f.sf": [
        ((12.4, 8.8, 16.9), 8.318478269397684e-06, 8.318475546889821e-06),
        ((2e30, 1.3, 0.6), 5.345604015977991e-10, 5.345608534586469e-10),
        ((0.5, 5.0, 7.0), 0.7685843297279157, 0.7685843297279157),
    ],
    "beta.sf": [
        ((0.9999, 20.3, 2.8), 6.934155235473751e-09, 6.930934358721485e-09),
        ((0.6, 4.8, 28.5), 1.8330428346846684e-08, 1.8330451485632124e-08),
        ((0.108, 1.82, 21.3), 0.24716980244451314, 0.24716978683177446),
        ((0.3, 400.0, 900.0), 0.7243928403089481, 0.7243931543009501),
    ],
    "gumbel_r.cdf": [
        ((-3.7,), 2.7161770222940673e-18, 2.716182260929458e-18),
        ((-1.3,), 0.025494399136369014, 0.025494394675724126),
        ((0.4,), 0.5115448357328775, 0.5115448336890416),
    ],
    "gumbel_l.sf": [
        ((3.7,), 2.7161770222940673e-18, 2.716182260929458e-18),
        ((-0.4,), 0.5115448357328775, 0.5115448336890416),
    ],
    "weibull_min.sf": [
        ((2.3, 4.1), 6.180844689275614e-14, 6.18081377764231e-14),
        ((37.0, 0.97), 3.809234915940867e-15, 3.8092479816550496e-15),
        ((0.7, 1.3), 0.5331425692693417, 0.5331425675486756),
    ],
    "weibull_max.cdf": [
        ((-2.3, 4.1), 6.180844689275614e-14, 6.18081377764231e-14),
        ((-37.0, 0.97), 3.809234915940867e-15, 3.8092479816550496e-15),
    ],
    "rayleigh.sf": [
        ((9.3,), 1.6555197254785805e-19, 1.6555226620987592e-19),
        ((3.3,), 0.004317840687072292, 0.0043178400076330815),
        ((0.3,), 0.9559974784141865, 0.9559974818331),
    ],
    "geom.sf": [
        ((3.0, 0.9), 0.001000000715255908, 0.0009999999999999994),
        ((700.0, 0.07), 8.670894264430138e-23, 8.670896209472791e-23),
        ((2.0, 0.0001), 0.9998000100050519, 0.99980001),
        ((5.0, 0.9999), 1.000829972059586e-20, 9.999999999994494e-21),
    ],
    "binom.cdf": [
        ((2.0, 9.0, 0.99), 3.537256445722985e-13, 3.537280000000022e-13),
        ((10.0, 40.0, 0.6), 7.462812840318163e-06, 7.462823406918326e-06),
        ((6.0, 9.0, 0.2), 0.9996861439692383, 0.999686144),
    ],
    "nbinom.sf": [
        ((12.0, 3.5, 0.97), 3.725720873781173e-18, 3.725766810219689e-18),
        ((30.0, 9.5, 0.6), 9.500260068099015e-07, 9.500274602930795e-07),
        ((2.0, 4.0, 0.3), 0.9295299905371662, 0.92953),
    ],
}

# Largest errors in ulp in float64; in float32 it is 8.
BOUNDS = {"lognorm": 4, "invgauss": 20, "invgamma": 80, "gennorm": 20, "t": 20, "f": 60, "beta": 80,
          "gumbel_r": 2, "gumbel_l": 2, "weibull_min": 2, "weibull_max": 2, "rayleigh": 2,
          "geom": 2, "binom": 40, "nbinom": 60}  # fmt: skip


def _function(name):
    distribution, tail = name.split(".")
    return getattr(getattr(stats, distribution), tail)


@pytest.mark.optimised
@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize("double", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize("name", EXACT)
def test_errors_of_tails(name, double) -> None:
    dtype = np.float64 if double else np.float32
    *operands, single_values, values = zip(*[(*x, y, z) for x, y, z in EXACT[name]])
    exact = np.array(values if double else single_values)
    with enable_x64(double):
        xs = [np.array(x, dtype) for x in operands]
        out = np.asarray(jit(_function(name))(*xs))
        assert out.dtype == dtype
        ulp = np.abs(out.astype(np.float64) - exact)
        ulp /= np.spacing(np.abs(exact).astype(dtype)).astype(np.float64)
        assert ulp.max() < (BOUNDS[name.partition(".")[0]] if double else 8), ulp


PARAMETERS = {
    "lognorm": (0.7,), "invgauss": (1.4,), "invgamma": (3.2,), "gennorm": (1.7,), "t": (4.5,),
    "f": (5.5, 3.5), "beta": (2.5, 4.5), "weibull_min": (1.7,), "rayleigh": (), "gumbel_l": (),
}  # fmt: skip

UPPER = ("beta", "invgauss", "weibull_min", "rayleigh", "gumbel_l")


@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize("name", PARAMETERS)
def test_derivatives_of_tails(name) -> None:
    """Derivatives are the density, and differences for parameters; finite at the ends."""
    distribution, shapes = getattr(stats, name), PARAMETERS[name]
    tail, sign = ("sf", -1) if name in UPPER else ("cdf", 1)
    fun, n = getattr(distribution, tail), len(shapes)
    with enable_x64(True):
        x = np.array([0.2, 0.45, 0.8, 0.0, 1e-300, 1e300, np.inf])
        gradient = jit(vmap(grad(fun, tuple(range(n + 1))), (0,) + (None,) * n))
        slope, *others = (np.asarray(v) for v in gradient(x, *shapes))
        assert all(np.isfinite(v).all() for v in (slope, *others))
        density = np.asarray(distribution.pdf(x[:3], *shapes))
        assert_close(slope[:3], sign * density, rtol=1e-11)
        value = jit(fun)
        for i, other in enumerate(others):
            high, low = ([*shapes] for _ in range(2))
            high[i] += 1e-5
            low[i] -= 1e-5
            change = (np.asarray(value(x, *high)) - np.asarray(value(x, *low))) / 2e-5
            assert_close(other[:3], change[:3], rtol=1e-6, atol=1e-9)


@pytest.mark.rotate(every=3, whole=True)
@pytest.mark.parametrize(("name", "p"), [("geom.sf", 0.3), ("binom.cdf", 0.4), ("nbinom.sf", 0.4)])
def test_derivatives_of_tails_of_counts_by_the_probability(name, p) -> None:
    first = {"geom.sf": (3.0,), "binom.cdf": (3.0, 7.0), "nbinom.sf": (3.0, 2.5)}[name]
    with enable_x64(True):
        check_derivatives(lambda p: _function(name)(*first, p), np.float64(p), order=1)


def test_t_distribution_of_many_degrees_of_freedom_is_normal() -> None:
    with enable_x64(True):
        z = np.array([-30.0, -3.0, -1e-3, 0.0, 2.0, 1e10])
        assert_close(stats.t.cdf(z, np.inf), stats.norm.cdf(z), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pairs_have_twice_the_precision(dtype) -> None:
    eps = float(np.finfo(dtype).eps)
    with enable_x64(True):
        x, y = np.array([1.1, 0.7, 3e5], dtype), np.array([0.3, 1 / 3, 7e-4], dtype)
        wide = np.longdouble if dtype == np.float64 else np.float64

        def error(pair, exact):
            head, rest = (np.asarray(v).astype(wide) for v in pair)
            return np.abs((head + rest) / exact - 1).max()

        a, b = x.astype(wide), y.astype(wide)
        assert error(jit(double_words.product)(x, y), a * b) < 1e-3 * eps
        assert error(jit(double_words.total)(x, y), a + b) < 1e-3 * eps
        assert (
            error(jit(lambda x, y: double_words.quotient((x, 0 * x), y))(x, y), a / b) < 1e-3 * eps
        )
        assert error(jit(lambda x: double_words.sqrt((x, 0 * x)))(x), np.sqrt(a)) < 1e-3 * eps
        assert error(jit(double_words.log)(x), np.log(a)) < 0.1 * eps


def test_hypergeometric_function_near_1_for_nearly_integral_exponents() -> None:
    """Both terms of 15.3.6 are large where ``c - a - b`` is close to an integer."""
    with enable_x64(True):
        a, b = np.array([1.5, 2.0591, 0.5, 2.5]), np.array([2.25, 1.4555, 0.75, 0.8])
        c = np.array([3.75 + 1e-9, 6.5146 + 1e-5, 1.15, 1.3 + 1e-7])
        x = np.array([0.97, 0.9998, 0.95, 0.93])
        assert_close(
            special.hyp2f1(a, b, c, x),
            [8.935876093403312, 2.0584904364224434, 2.2932722780678096, 123.49336233772554],
            rtol=3e-14,
        )
