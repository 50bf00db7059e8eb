"""Functions of ``float32`` that compute in ``float64`` or with corrections: 10 ulp of exact values.

The exact values are mpmath's with 40 digits, at the nearest ``float32`` numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primax_core import enable_x64, grad, jit, jvp, vmap
from primax_scipy import special, stats
from test_support import assert_close

EXACT: dict[str, list[tuple[tuple[float, ...], float]]] = {
    "special.owens_t": [
        ((5.8984, 0.7932754), 9.176075970390344e-10),
        ((-3.300901, -1.0090148), -0.00024083376526229304),
        ((11.994578, 1.0752789), 9.48359798038022e-34),
        ((0.3, 40.0), 0.19104428663227516),
        ((0.001, 0.2), 0.031416463635084234),
    ],
    "special.jv": [
        ((19.3, 30.0), 0.09792093970941607),
        ((0.3, 2.5), 0.17564109095852376),
        ((12.5, 3.0), 7.856018419312775e-08),
        ((2.0, 75.0), -0.036914313672959165),
    ],
    "special.yv": [
        ((19.3, 30.0), -0.13446497980446845),
        ((0.3, 2.5), 0.4701810192413471),
        ((12.5, 9.0), -2.147408941776583),
    ],
    "special.iv": [
        ((17.7, 21.0), 83775.97026413528),
        ((0.4, 19.9), 39350628.22590508),
        ((3.0, 60.0), 5.464801454879571e24),
    ],
    "special.ive": [
        ((17.7, 21.0), 6.352363569347568e-05),
        ((19.6, 5.5), 3.2907702951737674e-12),
        ((0.3, 70.0), 0.04773764392866741),
    ],
    "special.kv": [
        ((17.7, 21.0), 2.1728814095158147e-07),
        ((19.6, 5.5), 30500213.603444584),
        ((0.3, 40.0), 8.402193262095202e-19),
    ],
    "special.kve": [
        ((17.7, 21.0), 286.5630192035522),
        ((19.6, 5.5), 7463156201.098315),
        ((0.3, 40.0), 0.19777525030144905),
    ],
    "special.hyp1f1": [
        ((10.5, 0.7, -4.9), 0.026311387531141723),
        ((25.3, 12.8, 4.6), 3401.7795513397314),
    ],
    "special.hyp2f1": [
        ((10.5, 3.4, 0.9, -0.85), 0.00449829737674569),
        ((2.5, 7.25, 20.3, 0.88), 2.805136956231107),
    ],
    "stats.t.ppf": [
        ((0.5001163, 0.61227864), 0.00040809546122609055),
        ((0.49999, 8.0), -2.5895023728349037e-05),
        ((0.718338, 0.3080379), 1.9393999915704894),
        ((1e-30, 10.5), -1905.974036486781),
        ((0.1, 250.0), -1.2849470468809474),
        ((1e-20, 3.0), -4795275.771194164),
    ],
    "stats.hypergeom.cdf": [
        ((4.0, 75.0, 38.0, 29.0), 2.8279534312806546e-07),
        ((1.0, 70.0, 30.0, 20.0), 2.5180398188541814e-05),
        ((18.0, 80.0, 40.0, 30.0), 0.9473716999533305),
    ],
    "stats.skellam.cdf": [
        ((-22.0, 3.5, 6.0), 2.8586309667407105e-08),
        ((-6.0, 9.5, 0.7), 1.640780705814765e-08),
        ((3.0, 2.0, 2.5), 0.9720851713959942),
    ],
    "stats.betabinom.logpmf": [
        ((20.0, 28.0, 0.6, 9.0), -10.223463567518442),
        ((3.0, 8.0, 1.5, 2.0), -1.9119051629972295),
    ],
}


def named(name: str) -> Any:
    owner: Any = {"special": special, "stats": stats}
    for part in name.split("."):
        owner = owner[part] if isinstance(owner, dict) else getattr(owner, part)
    return owner


def operands(name: str, dtype: Any) -> list[np.ndarray]:
    return [np.array(x, np.float32).astype(dtype) for x in zip(*[xs for xs, _ in EXACT[name]])]


@pytest.mark.optimised
@pytest.mark.parametrize("name", EXACT)
def test_errors_are_below_10_ulp(name: str) -> None:
    exact = np.array([value for _, value in EXACT[name]])
    out = np.asarray(jit(named(name))(*operands(name, np.float32)))
    assert out.dtype == np.float32
    ulp = np.abs(out.astype(np.float64) - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert ulp.max() < 10, ulp


@pytest.mark.parametrize("name", ["special.kv", "stats.skellam.cdf"])
def test_batches_equal_single_calls(name: str) -> None:
    xs = operands(name, np.float32)
    fun = named(name)
    batched = np.asarray(vmap(fun, (None, *[0] * (len(xs) - 1)))(xs[0][0], *xs[1:]))
    single = [float(fun(xs[0][0], *x)) for x in zip(*xs[1:], strict=True)]
    assert_close(batched, single, rtol=3e-7)


@pytest.mark.parametrize(
    ("name", "i", "xs", "exact"),
    [
        ("special.kv", 0, (2.25, 3.25), 0.029846378099645998),
        ("special.jv", 1, (2.25, 3.25), 0.024248847629318613),
        ("special.owens_t", 0, (0.75, 1.5), -0.11133215976297343),
        ("stats.betabinom.logpmf", 2, (3.0, 8.0, 1.5, 2.0), 0.057298463490413955),
        ("stats.t.ppf", 1, (0.25, 4.0), 0.017750299369306),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_derivatives(name: str, i: int, xs: tuple[float, ...], exact: float) -> None:
    out = jit(grad(named(name), i))(*map(np.float32, xs))
    assert out.dtype == np.float32
    assert_close(float(out), exact, rtol=2e-6)


def test_second_derivatives() -> None:
    fun = lambda a: stats.betabinom.logpmf(np.float32(3), np.float32(8), a, np.float32(2))
    one = np.float32(1)
    a = np.float32(1.5)
    assert_close(float(grad(grad(fun))(a)), -0.4465660026799803, rtol=1e-5)
    forward = jvp(lambda x: jvp(fun, (x,), (one,))[1], (a,), (one,))[1]
    assert_close(float(forward), -0.4465660026799803, rtol=1e-5)


def test_a_tpu_computes_in_single_precision() -> None:
    traced = jit(special.kv).trace(np.float32(1), np.float32(2))
    assert "f64" not in traced.lower(lowering_platforms=("tpu",)).as_text()
    assert "f64" in traced.lower(lowering_platforms=("cpu",)).as_text()


def test_quantiles_of_t_at_the_edges_of_their_cases() -> None:
    with enable_x64(True):
        q = np.array([0, 0.5, 1, 1e-300, 1e-12, 0.3, 0.3, 0.3, -1, np.nan, 0.3])
        df = np.array([3, 3, 3, 2, 0.5, 499.9, 600.0, np.inf, 3, 3, 0])
        # The tail of two degrees of freedom is 1 / (2 t²); that of 1/2 from mpmath
        expected = [
            -np.inf, 0, np.inf, -7.0710678118654752e149, -1.0284911563163400e23,
            -0.52473505375541574, -0.52467921754943103, -0.5244005127080407, np.nan, np.nan, np.nan,
        ]  # fmt: skip
        assert_close(np.asarray(stats.t.ppf(q, df)), expected, rtol=1e-13)
        assert_close(np.asarray(stats.t.isf(q, df)), -np.array(expected), rtol=1e-13)
