"""Maximum likelihood, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as theirs

import primax_numpy as pnp
from primax_core import enable_x64, jit, jvp, vmap
from primax_scipy import stats

LOCATED = ("norm", "laplace", "uniform", "logistic", "gumbel_r", "gumbel_l", "cauchy", "t")
SHAPES: dict[str, dict[str, float]] = {
    **{name: {} for name in LOCATED}, "t": {"df": 4}, "expon": {}, "rayleigh": {}, "halfnorm": {},
    "lognorm": {"s": 0.7}, "pareto": {"b": 2}, "gamma": {"a": 2.5}, "invgamma": {"a": 3},
    "weibull_min": {"c": 1.5}, "beta": {"a": 2, "b": 0.7},
}  # fmt: skip


def _data(name: str, size: int = 300) -> Any:
    place = {} if name == "beta" else {"scale": 3.0, "loc": 1.0 if name in LOCATED else 0.0}
    draw = getattr(theirs, name).rvs
    return draw(**SHAPES[name], **place, size=size, random_state=np.random.default_rng(7))


# Densities with gamma functions take seconds to compile.
SINGLE = ("norm", "pareto", "uniform", "logistic", "weibull_min")
CASES = [(n, np.float64) for n in SHAPES] + [(n, np.float32) for n in SINGLE]


@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize(
    ("name", "dtype"), CASES, ids=[f"{n}-{np.dtype(d).name}" for n, d in CASES]
)
def test_continuous(name: str, dtype: Any) -> None:
    x = _data(name).astype(dtype)
    with enable_x64(dtype == np.float64):
        actual = jit(lambda v: stats.fit(getattr(stats, name), v))(x)
    assert bool(actual.success) and actual.loglikelihood.dtype == dtype
    other = getattr(theirs, name)
    fixed = {} if name in LOCATED else {"floc": 0, **({"fscale": 1} if name == "beta" else {})}
    expected = other.fit(x.astype(float), **fixed)
    double = dtype == np.float64
    np.testing.assert_allclose(np.array(actual.params), expected, 1e-3 if double else 5e-3, 1e-12)
    # The likelihood is not below that of the other estimate.
    wide = x.astype(float)
    wide = wide if double or name not in ("uniform", "pareto") else wide.clip(
        float(actual.params.loc) + (float(actual.params.scale) if name == "pareto" else 0.0),
        float(actual.params.loc) + float(actual.params.scale) if name == "uniform" else None,
    )  # fmt: skip
    ours = other.logpdf(wide, *map(float, actual.params)).sum()
    best = other.logpdf(x.astype(float), *expected).sum()
    assert ours > best - (1e-8 if double else 0.01)
    np.testing.assert_allclose(actual.loglikelihood, ours, 1e-9 if double else 1e-4)
    np.testing.assert_allclose(actual.nllf(), -actual.loglikelihood)


COUNTS: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "poisson": ({"mu": 3.5}, {}), "bernoulli": ({"p": 0.3}, {}), "geom": ({"p": 0.3}, {}),
    "binom": ({"n": 9, "p": 0.3}, {"fn": 9}), "nbinom": ({"n": 4, "p": 0.3}, {"fn": 4}),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    shapes, fixed = COUNTS[name]
    other, dist = getattr(theirs, name), getattr(stats, name)
    x = other.rvs(**shapes, size=200, random_state=np.random.default_rng(1)).astype(float)
    with enable_x64(True):
        actual = stats.fit(dist, x, **fixed)
    total = other.logpmf(x, *map(float, actual.params)).sum()
    np.testing.assert_allclose(actual.loglikelihood, total, 1e-10)
    free = "mu" if name == "poisson" else "p"
    for step in (0.999, 1.001):
        moved = actual.params._asdict() | {free: float(getattr(actual.params, free)) * step}
        assert other.logpmf(x, *map(float, moved.values())).sum() < total


@pytest.mark.rotate(every=4, whole=True)
def test_fixed_parameters() -> None:
    x = _data("gamma")
    cases = [
        ("norm", {"floc": 1.0}), ("norm", {"fscale": 2.0}), ("laplace", {"floc": 3.0}),
        ("lognorm", {"fscale": 2.0, "floc": 0.0}), ("gamma", {"fscale": 2.0, "floc": -0.5}),
        ("pareto", {"fscale": 0.05, "floc": 0.0}), ("uniform", {"floc": -1.0}),
    ]  # fmt: skip
    with enable_x64(True):
        for name, fixed in cases:
            actual = stats.fit(getattr(stats, name), x, **fixed)
            expected = getattr(theirs, name).fit(x, **fixed)
            np.testing.assert_allclose(np.array(actual.params), expected, 1e-3)
        scaled = stats.fit(stats.beta, 1 + 2 * _data("beta"), floc=1.0, fscale=2.0)
        plain = stats.fit(stats.beta, _data("beta"))
        np.testing.assert_allclose(scaled.params.a, plain.params.a, 1e-6)


@pytest.mark.parametrize("name", ["norm", "logistic"])
def test_derivatives_and_maps(name: str) -> None:
    rows = _data("gamma", 24).reshape(2, 12)
    move, h = np.cos(np.arange(12.0)), 1e-4
    dist = getattr(stats, name)
    with enable_x64(True):
        solve = jit(vmap(lambda v: pnp.stack(stats.fit(dist, v).params)))
        fits = solve(np.stack([rows[0] + h * move, rows[0] - h * move]))
        _, slope = jit(
            lambda v: jvp(lambda u: pnp.stack(stats.fit(dist, u).params), (v,), (move,))
        )(rows[0])
        np.testing.assert_allclose(slope, (fits[0] - fits[1]) / (2 * h), 1e-5, 1e-7)


@pytest.mark.rotate(every=4, whole=True)
def test_data_outside_of_the_support() -> None:
    assert not bool(stats.fit(stats.expon, np.float32([1, -0.5, 2])).success)
    assert not bool(stats.fit(stats.gamma, np.float32([1, -0.5, 2])).success)


ERRORS = {
    "distribution": (lambda x: stats.fit(stats.dirichlet, x), "'dirichlet' is not a distribution"),
    "parameter": (lambda x: stats.fit(stats.norm, x, fa=1), "'fa' is no parameter of norm to fix"),
    "required": (lambda x: stats.fit(stats.binom, x), "binom needs fn=..., which data do not"),
    "nothing": (lambda x: stats.fit(stats.norm, x, floc=0, fscale=1), "all parameters of norm"),
    "uniform": (lambda x: stats.fit(stats.uniform, x, fscale=9), "largest for many locations"),
    "empty": (lambda x: stats.fit(stats.norm, x[:0]), "a sample has 0 elements"),
    "complex": (lambda x: stats.fit(stats.norm, x * 1j), "does not support complex-valued"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, text = ERRORS[case]
    with pytest.raises((ValueError, TypeError)) as info:
        call(np.float32([1, 2, 4]))
    assert text in str(info.value)
