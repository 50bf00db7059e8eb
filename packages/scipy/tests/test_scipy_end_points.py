"""Derivatives at ends of domains, where they are finite or infinite but not NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from primax_core import enable_x64, grad, jit, vmap
from primax_scipy import special, stats
from test_support import assert_close, check_derivatives

INF = math.inf
# Arguments, and the derivatives with respect to them; None for those that are not tested.
CARLSON: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    ("elliprc", (0.0, 2.0), (-INF, -0.27768018363489797)),
    ("elliprc", (0.0, -2.0), (INF, 0.0)),
    ("elliprd", (0.0, 2.0, 3.0), (-INF, -0.0934912289607192, -0.20059923657873276)),
    ("elliprf", (0.0, 2.0, 3.0), (-INF, -0.11880598383775453, -0.0876422408508482)),
    ("elliprg", (0.0, 2.0, 3.0), (INF, 0.1314633612762726, 0.11880598383775453)),
    ("elliprg", (2.0, 0.0, 3.0), (0.1314633612762726, INF, 0.11880598383775453)),
    ("elliprg", (0.0, 0.0, 1.0), (INF, INF, 0.25)),
    (
        "elliprj", (0.0, 2.0, 3.0, 1.5),
        (-INF, -0.1662712900105059, -0.11775124931064767, -0.4219096410683961),
    ),
    (
        "elliprj", (2.0, 0.0, 3.0, -1.5),
        (0.21062930144171388, INF, 0.14304696135228454, -0.19463621577195087),
    ),
]  # fmt: skip
BOX_COX: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    ("boxcox", (0.0, 2.0), (0.0, 0.25)),
    ("boxcox", (0.0, 1.0), (1.0, 1.0)),
    ("boxcox", (0.0, 0.5), (INF, 4.0)),
    ("boxcox1p", (-1.0, 2.0), (0.0, 0.25)),
]
DENSITIES: list[tuple[str, tuple[float, ...], tuple[float | None, ...]]] = [
    ("f.pdf", (0.0, 2.0, 5.0), (-1.4, -INF, 0.0)),
    ("f.pdf", (0.0, 3.0, 5.0), (INF, 0.0, 0.0)),
    ("f.pdf", (0.0, 4.0, 5.0), (5.6, 0.0, 0.0)),
    ("f.pdf", (0.0, 6.0, 5.0), (0.0, 0.0, 0.0)),
    ("weibull_min.pdf", (0.0, 1.0), (-1.0, -INF)),
    ("weibull_min.pdf", (0.0, 1.5), (INF, 0.0)),
    ("weibull_min.pdf", (0.0, 2.0), (2.0, 0.0)),
    ("weibull_max.pdf", (0.0, 2.0), (-2.0, 0.0)),
    ("rayleigh.pdf", (0.0,), (1.0,)),
    ("gamma.pdf", (0.0, 1.0), (-1.0, -INF)),
    ("gamma.pdf", (0.0, 2.0), (1.0, 0.0)),
    ("chi2.pdf", (0.0, 4.0), (0.25, 0.0)),
    ("beta.pdf", (0.0, 2.0, 3.0), (12.0, 0.0, 0.0)),
    ("beta.pdf", (1.0, 3.0, 2.0), (-12.0, 0.0, 0.0)),
    ("nbinom.pmf", (0.0, 3.5, 1.0), (None, 0.0, 3.5)),
    ("nbinom.pmf", (1.0, 3.5, 1.0), (None, 0.0, -3.5)),
    ("nbinom.pmf", (2.0, 3.5, 1.0), (None, 0.0, 0.0)),
    ("nbinom.logpmf", (0.0, 3.5, 1.0), (None, 0.0, 3.5)),
    ("nbinom.cdf", (0.0, 3.5, 1.0), (None, 0.0, 3.5)),
    ("nbinom.cdf", (1.0, 3.5, 1.0), (None, 0.0, 0.0)),
    ("nbinom.sf", (0.0, 3.5, 1.0), (None, 0.0, -3.5)),
    ("binom.pmf", (0.0, 4.0, 0.0), (None, None, -4.0)),
    ("binom.pmf", (1.0, 4.0, 0.0), (None, None, 4.0)),
    ("binom.pmf", (3.0, 4.0, 1.0), (None, None, -4.0)),
    ("binom.pmf", (2.0, 4.0, 1.0), (None, None, 0.0)),
    ("geom.pmf", (2.0, 1.0), (None, -1.0)),
    ("geom.pmf", (3.0, 1.0), (None, 0.0)),
    ("geom.sf", (1.0, 1.0), (None, -1.0)),
    ("geom.sf", (2.0, 1.0), (None, 0.0)),
]


def check(fun: Any, points: list[tuple[float, ...]], expected: list[tuple[Any, ...]]) -> None:
    """Compare derivatives at several points with the same ``None``."""
    some = tuple(i for i, d in enumerate(expected[0]) if d is not None)
    with enable_x64(True):
        out = jit(vmap(grad(fun, some)))(*map(np.array, zip(*points, strict=True)))
        for i, values in zip(some, out, strict=True):
            assert_close(np.asarray(values), [d[i] for d in expected], rtol=1e-12, atol=1e-15)


def of_name(cases: Any, name: str) -> tuple[Any, Any]:
    return tuple(zip(*[(xs, ds) for n, xs, ds in cases if n == name], strict=True))


@pytest.mark.parametrize("name", sorted({name for name, _, _ in CARLSON + BOX_COX}))
def test_special_functions_at_0(name: str) -> None:
    check(getattr(special, name), *of_name(CARLSON + BOX_COX, name))


@pytest.mark.rotate()
@pytest.mark.parametrize("name", sorted({name for name, _, _ in DENSITIES}))
def test_distributions_at_ends(name: str) -> None:
    distribution, function = name.split(".")
    check(getattr(getattr(stats, distribution), function), *of_name(DENSITIES, name))


def test_eager_derivatives_at_ends() -> None:
    with enable_x64(True):
        assert float(grad(special.boxcox, 1)(0.0, 2.0)) == 0.25
        assert float(grad(stats.weibull_min.pdf)(0.0, 2.0)) == 2.0


def test_values_at_ends() -> None:
    with enable_x64(True):
        assert stats.binom.pmf(0.0, 5000.0, np.array([0.0, 1.0, -0.5])).tolist()[:2] == [1, 0]
        assert np.isnan(np.asarray(stats.binom.pmf(0.0, 5.0, np.array([1.5, np.nan])))).all()
        assert np.isnan(float(stats.binom.pmf(np.nan, 5.0, 1.0)))
        assert stats.binom.pmf(np.array([0.5, 7.0, -1.0, 5.0]), 5.0, 1.0).tolist() == [0, 0, 0, 1]
        assert_close(np.asarray(stats.geom.sf(np.array([1.0, 2.0, 5.0]), 1.0)), [0, 0, 0])
        x = np.array([0.0, 1.0, -1.0, 2.0, np.nan])
        assert_close(np.asarray(stats.beta.pdf(x, 2.0, 1.0)), [0, 2, 0, 0, np.nan], rtol=1e-14)
        assert np.isnan(float(stats.gamma.pdf(0.0, -1.0)))
        assert float(stats.weibull_min.pdf(3.0, 1.0, 3.0, 2.0)) == 0.5
        assert float(stats.f.pdf(0.0, 1.0, 5.0)) == np.inf


def test_derivatives_with_respect_to_the_concentration() -> None:
    x = np.array([-2.5, -0.3, 0.2, 1.5])
    check_derivatives(stats.vonmises.cdf, x, np.array([0.2, 2.0, 60.0, 5.0]), atol=1e-5)
    check_derivatives(
        stats.vonmises.ppf, np.array([0.3, 0.9]), np.array([2.0, 5.0]), order=2, atol=1e-5
    )
    kappa = np.float32(2)
    assert_close(
        float(grad(stats.vonmises.isf, 1)(np.float32(0.3), kappa)), -0.126098318, rtol=1e-5
    )
