"""Distributions: recorded samples, supports, moments, derivatives, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primax_numpy as pnp
from primax_core import Array, enable_x64, grad, jacrev, jit, vmap
from primax_core.dtypes import TypePromotionError
from primax_core.errors import ConcretizationTypeError
from primax_numpy import random
from test_support import check_call

KEY = random.key(42)
A = np.float32([0.3, 1.0, 2.5])

# Samples of the reference for the seed 42, as words

RECORDED: dict[str, tuple[Callable[[Any], Array], str]] = {
    "uniform": (lambda k: random.uniform(k, (3,)), "3efa3824 3f2e0730 3f1dc3f8"),
    "normal": (lambda k: random.normal(k, (3,)), "bce7df15 3eef2be8 3e976661"),
    "truncated_normal": (
        lambda k: random.truncated_normal(k, -1, 2, (3,)),
        "3e173eaf 3f11859b 3ed790a8",
    ),
    "exponential": (lambda k: random.exponential(k, (3,)), "3f2bbab2 3f91c438 3f7533b1"),
    "gumbel": (lambda k: random.gumbel(k, (3,)), "3eab0e4a 3f73b78c 3f39bc5f"),
    "laplace": (lambda k: random.laplace(k, (3,)), "3cbb1a39 bee42cb4 be878335"),
    "logistic": (lambda k: random.logistic(k, (3,)), "bd390390 3f40ba1c 3ef28faa"),
    "cauchy": (lambda k: random.cauchy(k, (3,)), "bd115855 3f223be0 3ec3cf40"),
    "maxwell": (lambda k: random.maxwell(k, (3,)), "3f0db795 3e962976 3fdab381"),
    "double_sided_maxwell": (
        lambda k: random.double_sided_maxwell(k, 1, 2, (3,)),
        "bfe18aa4 beb3e7d0 40ae3599",
    ),
    "pareto": (lambda k: random.pareto(k, 2.5, (3,)), "3fa7652a 3fc9daed 3fbbc242"),
    "rayleigh": (lambda k: random.rayleigh(k, 2.5, (3,)), "403f76d4 400c9313 401d6e21"),
    "weibull_min": (lambda k: random.weibull_min(k, 1.5, 2.5, (3,)), "3fa3a900 3fca3f05 3fbcb7f8"),
    "lognormal": (lambda k: random.lognormal(k, 0.5, (3,)), "3f7c670c 3fa1ad22 3f946547"),
    "triangular": (lambda k: random.triangular(k, 0, 1, 3, (3,)), "3f9fcef0 3fce94f1 3fbdc742"),
    "wald": (lambda k: random.wald(k, 2.5, (3,)), "40346534 40a98fb7 3ed57e18"),
    "geometric": (lambda k: random.geometric(k, 0.2, (3,)), "00000004 00000002 00000003"),
    "bernoulli": (lambda k: random.bernoulli(k, 0.6, (3,)), "01 00 00"),
    "rademacher": (lambda k: random.rademacher(k, (3,)), "00000001 ffffffff ffffffff"),
    "randint": (
        lambda k: random.randint(k, (5,), 0, 100),
        "0000002c 0000000e 00000047 00000045 00000009",
    ),
    "permutation": (
        lambda k: random.permutation(k, 8),
        "00000007 00000004 00000002 00000005 00000003 00000006 00000000 00000001",
    ),
    "choice": (lambda k: random.choice(k, 9, (3,), False), "00000007 00000004 00000002"),
    "categorical": (
        lambda k: random.categorical(k, np.float32([1, 2, 3]), shape=(3,)),
        "00000002 00000002 00000002",
    ),
    "gamma": (lambda k: random.gamma(k, 0.5, (2,)), "3f7fdc3b 3f019eac"),
    "loggamma": (lambda k: random.loggamma(k, 0.5, (2,)), "ba0f1800 bf2e39f2"),
    "beta": (lambda k: random.beta(k, 0.5, 2, (2,)), "3e8cc90f 3e212660"),
    "dirichlet": (
        lambda k: random.dirichlet(k, np.float32([1, 2, 3])),
        "3e878b03 3e0a08ef 3f19b841",
    ),
    "chisquare": (lambda k: random.chisquare(k, 3, (2,)), "40bbdce4 3fb2ecc8"),
    "f": (lambda k: random.f(k, 3, 4, (2,)), "3f3eafec 3ef50c8c"),
    "t": (lambda k: random.t(k, 3, (2,)), "3db81045 bfde2cf3"),
    "generalized_normal": (lambda k: random.generalized_normal(k, 1.5, (2,)), "bf60d42d be531c40"),
    "ball": (lambda k: random.ball(k, 3), "3ea594fc 3d7b3e57 3c957328"),
    "poisson": (lambda k: random.poisson(k, 20, (4,)), "00000017 00000018 0000000f 00000011"),
    "binomial": (
        lambda k: random.binomial(k, 40, 0.3, (4,)),
        "41300000 40e00000 41400000 41200000",
    ),
    "multinomial": (
        lambda k: random.multinomial(k, 9, np.float32([0.2, 0.3, 0.5])),
        "3f800000 40000000 40c00000",
    ),
    "orthogonal": (lambda k: random.orthogonal(k, 2), "bdc32460 3f7ed5d1 3f7ed5d1 3dc32468"),
    "multivariate_normal": (
        lambda k: random.multivariate_normal(k, A[:2], np.float32([[2, 1], [1, 2]])),
        "3e851af3 3fc6ab50",
    ),
}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_numbers(name: str) -> None:
    draw, words = RECORDED[name]
    actual = np.asarray(draw(KEY))
    width = actual.dtype.itemsize
    expected = np.array([int(w, 16) for w in words.split()], f"u{width}").view(actual.dtype)
    # Bit-exact with the version of jaxlib of the recording.
    np.testing.assert_allclose(
        actual.ravel(), expected, rtol=3e-6 if actual.dtype.kind == "f" else 0
    )


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_numbers_without_implicit_promotion(name: str) -> None:
    check_call(RECORDED[name][0], KEY)


@pytest.mark.parametrize("name", ["gamma", "poisson", "binomial", "choice", "dirichlet", "ball"])
def test_compiled_and_mapped(name: str) -> None:
    draw = RECORDED[name][0]
    keys = random.split(KEY, 3)
    rows = [np.asarray(draw(k)) for k in keys]
    np.testing.assert_allclose(jit(draw)(keys[1]), rows[1], rtol=3e-6)
    np.testing.assert_allclose(vmap(draw)(keys), rows, rtol=3e-6)


# Mean and standard deviation, by sampling method

N = 4000
MOMENTS: dict[str, tuple[Callable[[], Array], float, float]] = {
    "exponential": (lambda: random.exponential(KEY, (N,)), 1, 1),
    "gumbel": (lambda: random.gumbel(KEY, (N,)), 0.577, math.pi / math.sqrt(6)),
    "gumbel high": (lambda: random.gumbel(KEY, (N,), mode="high"), 0.577, math.pi / math.sqrt(6)),
    "gumbel highest": (
        lambda: random.gumbel(KEY, (N,), mode="highest"), 0.577, math.pi / math.sqrt(6),
    ),
    "laplace": (lambda: random.laplace(KEY, (N,)), 0, math.sqrt(2)),
    "logistic": (lambda: random.logistic(KEY, (N,)), 0, math.pi / math.sqrt(3)),
    "maxwell": (lambda: random.maxwell(KEY, (N,)), 1.596, 0.673),
    "double_sided_maxwell": (
        lambda: random.double_sided_maxwell(KEY, 3, 2, (N,)), 3, 2 * math.sqrt(3),
    ),
    "rayleigh": (lambda: random.rayleigh(KEY, 2, (N,)), 2 * 1.2533, 2 * 0.6551),
    "lognormal": (lambda: random.lognormal(KEY, 0.5, (N,)), 1.1331, 0.6039),
    "pareto": (lambda: random.pareto(KEY, 5, (N,)), 1.25, 0.3227),
    "weibull_min": (lambda: random.weibull_min(KEY, 2, 1.5, (N,)), 1.8055, 1.2258),
    "triangular": (lambda: random.triangular(KEY, 0, 1, 5, (N,)), 2, 1.0801),
    "wald": (lambda: random.wald(KEY, 2, (N,)), 2, math.sqrt(8)),
    "geometric": (lambda: random.geometric(KEY, 0.25, (N,)), 4, math.sqrt(12)),
    "truncated_normal": (lambda: random.truncated_normal(KEY, -1, 1, (N,)), 0, 0.5396),
    "gamma": (lambda: random.gamma(KEY, 2.5, (N,)), 2.5, math.sqrt(2.5)),
    "gamma below one": (lambda: random.gamma(KEY, 0.5, (N,)), 0.5, math.sqrt(0.5)),
    "gamma approximate": (
        lambda: random.gamma(KEY, 2.5, (N,), method="approximate"), 2.5, math.sqrt(2.5),
    ),
    "loggamma": (lambda: random.loggamma(KEY, 1, (N,)), -0.577, math.pi / math.sqrt(6)),
    "beta": (lambda: random.beta(KEY, 2, 3, (N,)), 0.4, 0.2),
    "chisquare": (lambda: random.chisquare(KEY, 3, (N,)), 3, math.sqrt(6)),
    "t": (lambda: random.t(KEY, 9, (N,)), 0, math.sqrt(9 / 7)),
    "f": (lambda: random.f(KEY, 5, 12, (N,)), 1.2, 0.98),
    "generalized_normal": (lambda: random.generalized_normal(KEY, 2, (N,)), 0, math.sqrt(0.5)),
    "poisson": (lambda: random.poisson(KEY, 4, (N,)), 4, 2),
    "poisson many": (lambda: random.poisson(KEY, 60, (N,)), 60, math.sqrt(60)),
    "poisson approximate": (lambda: random.poisson(KEY, 25, (N,), method="approximate"), 25, 5),
    "poisson approximate few": (lambda: random.poisson(KEY, 4, (N,), method="approximate"), 4, 2),
    "binomial": (lambda: random.binomial(KEY, 20, 0.3, (N,)), 6, math.sqrt(4.2)),
    "binomial many": (lambda: random.binomial(KEY, 200, 0.7, (N,)), 140, math.sqrt(42)),
    "rademacher": (lambda: random.rademacher(KEY, (N,)), 0, 1),
    "randint": (lambda: random.randint(KEY, (N,), -10, 11), 0, math.sqrt(440 / 12)),
}  # fmt: skip


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name: str) -> None:
    draw, mean, deviation = MOMENTS[name]
    x = np.asarray(draw()).astype(np.float64)
    assert abs(x.mean() - mean) < 5 * deviation / math.sqrt(N)
    assert abs(x.std() / deviation - 1) < 0.12


def test_supports() -> None:
    assert np.asarray(random.pareto(KEY, 1, (N,))).min() >= 1
    assert np.asarray(random.geometric(KEY, 0.9, (N,))).min() == 1
    x = np.asarray(random.truncated_normal(KEY, -0.5, 2, (N,)))
    assert -0.5 < x.min() < -0.49 and 1.9 < x.max() < 2
    x = np.asarray(random.ball(KEY, 3, 1.5, (N,)))
    sizes = (np.abs(x) ** 1.5).sum(-1)
    assert sizes.max() <= 1 and sizes.max() > 0.98
    x = np.asarray(random.dirichlet(KEY, A, (50,)))
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-5)
    assert random.bernoulli(KEY, np.float32([0.0, 1.0]), mode="high").tolist() == [False, True]


def test_gamma_at_limits() -> None:
    x = np.asarray(random.gamma(KEY, np.float32([0, -1, np.nan])))
    assert x[0] == 0 and np.isnan(x[1:]).all()
    tiny = np.asarray(random.loggamma(KEY, np.float32([1e-3] * 50)))
    assert np.isfinite(tiny).all() and tiny.min() < -200  # below every float
    assert random.gamma(KEY, np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_counts_at_limits() -> None:
    x = random.poisson(KEY, np.float32([0, -1, np.nan]))
    assert x.tolist() == [0, -1, -1]
    nan, inf = np.nan, np.inf
    x = random.binomial(
        KEY, np.float32([nan, -1, inf, 5, 5, 5, inf]), np.float32([0.5, 0.5, 0.5, -0.1, 0, 1, 0])
    )
    np.testing.assert_array_equal(x, [nan, nan, inf, nan, 0, 5, inf])
    x = np.asarray(random.multinomial(KEY, 20, np.float32([0.5, 0, 0.5]), shape=(50,)))
    np.testing.assert_array_equal(x.sum(-1), 20)
    assert (x[:, 1] == 0).all() and x.dtype == np.float32


# Integers, permutations, choices


REPEATED: dict[str, tuple[Callable[[Any], Array], float]] = {
    "binomial of few": (lambda k: random.binomial(k, 10.0, 0.3, (50,)), 3.0),
    "binomial of many": (lambda k: random.binomial(k, 1000.0, 0.5, (50,)), 500.0),
    "poisson of a small rate": (lambda k: random.poisson(k, 3.0, (50,)), 3.0),
    "poisson of a large rate": (lambda k: random.poisson(k, 30.0, (50,)), 30.0),
}


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_draws_of_batches(name: str) -> None:
    draw, mean = REPEATED[name]
    keys = random.split(KEY, 6)
    expected = np.stack([draw(key) for key in keys])
    np.testing.assert_array_equal(vmap(draw)(keys), expected)
    np.testing.assert_array_equal(vmap(vmap(draw))(keys.reshape(2, 3)), expected.reshape(2, 3, 50))
    # All batches draw from the first key, which must change until the last batch is finished.
    of_first = vmap(draw)(random.split(random.key(1, impl="rbg"), 64))
    assert np.mean(of_first) == pytest.approx(mean, rel=0.1)


def test_integer_bounds() -> None:
    assert random.randint(KEY, (3,), 5, 5).tolist() == [5, 5, 5]
    x = np.asarray(random.randint(KEY, (500,), -1000, 1000, np.int8))
    assert (
        x.min() < -120 and x.max() > 120
    )  # clamped to the range of the dtype, including its maximum
    x = np.asarray(random.randint(KEY, (300,), np.float32(0.7), np.float32(2.9)))
    assert set(x) == {0, 1}
    x = np.asarray(random.randint(KEY, (300,), -5, 3, np.uint8))
    assert set(x) == {0, 1, 2}
    x = np.asarray(random.randint(KEY, (2, 100), np.int32([[0], [50]]), np.int32([[10], [60]])))
    assert x[0].max() < 10 and x[1].min() >= 50


def test_choices() -> None:
    x = np.asarray(random.choice(KEY, 5, (5,), False))
    assert sorted(x) == [0, 1, 2, 3, 4]
    x = np.asarray(random.choice(KEY, 3, (300,), p=np.float32([1, 0, 3])))
    assert set(x) == {0, 2} and 0.6 < (x == 2).mean() < 0.9  # weights need not be normalized
    x = np.asarray(random.choice(KEY, 4, (2,), False, np.int32([0, 3, 1, 0])))
    assert sorted(x) == [1, 2]
    rows = np.arange(12).reshape(4, 3)
    assert random.choice(KEY, rows, (2, 5), axis=1).shape == (4, 2, 5)
    assert random.choice(KEY, rows, (0,), axis=1).shape == (4, 0)
    assert random.choice(KEY, 0, (0, 2)).shape == (0, 2)
    actual = np.asarray(random.choice(KEY, rows, (4,), False))
    np.testing.assert_array_equal(actual[np.argsort(actual[:, 0])], rows)
    keys = random.split(KEY, 5)
    assert random.permutation(KEY, keys).shape == (5,)
    assert random.choice(KEY, keys, (2,)).dtype == keys.dtype


def test_categories() -> None:
    logits = np.float32([[np.log(0.1), np.log(0.9)], [0, -np.inf]])
    x = np.asarray(random.categorical(KEY, logits, shape=(500, 2)))
    assert 0.85 < x[:, 0].mean() < 0.95 and not x[:, 1].any() and x.dtype == np.int32
    x = np.asarray(
        random.categorical(KEY, np.zeros((4, 6), np.float32), shape=(6, 4), replace=False)
    )
    np.testing.assert_array_equal(np.sort(x, 0), np.tile(np.arange(6)[:, None], 4))
    assert random.categorical(KEY, np.zeros((4, 6), np.float32), axis=0).shape == (6,)


# Vectors and matrices


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_multivariate_normal(method: str) -> None:
    cov = np.float32([[2, 1], [1, 3]])
    x = random.multivariate_normal(KEY, np.float32([1, -1]), cov, (N,), method=method)
    np.testing.assert_allclose(np.asarray(x).mean(0), [1, -1], atol=0.15)
    np.testing.assert_allclose(np.cov(np.asarray(x).T), cov, atol=0.3)


def test_multivariate_normal_batches() -> None:
    covs = np.stack([np.eye(2, dtype=np.float32) * s for s in (1, 4, 9)])
    x = random.multivariate_normal(KEY, np.zeros(2, np.float32), covs, (500, 3))
    np.testing.assert_allclose(np.asarray(x).std((0, 2)), [1, 2, 3], rtol=0.1)
    x = random.multivariate_normal(KEY, np.zeros((3, 2), np.float32), covs[:, None], (3, 3))
    assert x.shape == (3, 3, 2)
    short = random.multivariate_normal(KEY, np.zeros(2, np.float32), covs[0], dtype=np.float16)
    assert short.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize(("n", "m"), [(3, 3), (2, 4), (4, 2), (0, 0)])
def test_orthogonal(n: int, m: int, dtype: Any) -> None:
    x = np.asarray(random.orthogonal(KEY, n, (5,), dtype, m))
    assert x.shape == (5, n, m) and x.dtype == dtype
    if n > m:
        x = x.swapaxes(1, 2)
    product = x @ x.conj().swapaxes(1, 2)
    np.testing.assert_allclose(
        product, np.broadcast_to(np.eye(min(n, m)), product.shape), atol=1e-5
    )


# Derivatives


def test_derivatives_with_respect_to_parameters() -> None:
    keys = random.split(KEY, 300)
    # The mean of gamma samples is a, so that its derivative is 1.
    slopes = vmap(grad(lambda a, k: random.gamma(k, a)), (None, 0))(np.float32(2.0), keys)
    assert abs(np.asarray(slopes).mean() - 1) < 0.15
    slopes = vmap(grad(lambda a, k: random.loggamma(k, a)), (None, 0))(np.float32(0.01), keys)
    assert np.isfinite(slopes).all()
    slope = grad(lambda b: random.uniform(KEY, minval=-b, maxval=b))(np.float32(1.5))
    np.testing.assert_allclose(slope, random.uniform(KEY, minval=-1.0, maxval=1.0), rtol=1e-5)
    rows = jacrev(lambda a: random.dirichlet(KEY, a))(A)
    np.testing.assert_allclose(np.asarray(rows).sum(0), 0, atol=1e-5)
    assert grad(lambda lam: random.poisson(KEY, lam).astype(np.float32))(np.float32(3)) == 0


# Types


def test_result_types() -> None:
    assert random.t(KEY, A.astype(np.float16)).dtype == np.float32  # not the parameter's
    assert random.gamma(KEY, A, dtype=np.float16).dtype == np.float16
    assert random.normal(KEY, (2,), pnp.bfloat16).dtype == pnp.bfloat16
    assert random.poisson(KEY, 3.0, dtype=np.int8).dtype == np.int8
    assert random.lognormal(KEY, 1.0, (2,), np.complex64).dtype == np.complex64
    assert not any(random.gamma(KEY, a).weak_type for a in (1, 1.0, A))
    assert random.double_sided_maxwell(KEY, A, A).shape == (3, 3)
    assert random.rademacher(KEY, (20,), np.uint8).max() == 255
    assert random.rademacher(KEY, (5,), bool).all()


P = np.float32([0.5, 0.5])
BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no float": (lambda: random.gamma(KEY, 1.0, dtype=np.int32), ValueError, "must be a float"),
    "shape": (lambda: random.pareto(KEY, A, (2,)), ValueError, r"pareto.*\(3,\).*shape=\(2,\)"),
    "shapes": (lambda: random.beta(KEY, A, P), ValueError, r"beta.*\(3,\).*\(2,\)"),
    "negative shape": (lambda: random.normal(KEY, (-1,)), ValueError, "must not be negative"),
    "float shape": (lambda: random.normal(KEY, (2.5,)), TypeError, "integer type"),
    "list": (lambda: random.gamma(KEY, [1.0]), TypeError, "gamma: parameters.*list"),
    "wide": (lambda: random.t(KEY, A, dtype=np.float16), TypePromotionError, "t, cannot safely"),
    "gumbel mode": (lambda: random.gumbel(KEY, mode="x"), ValueError, "mode must be 'low'"),
    "coin mode": (lambda: random.bernoulli(KEY, mode="x"), ValueError, "'high' or 'low'"),
    "method": (lambda: random.gamma(KEY, 1.0, method="x"), ValueError, "one of .*'exact'"),
    "poisson dtype": (lambda: random.poisson(KEY, 1, dtype=np.float32), ValueError, "an int dtype"),
    "poisson method": (lambda: random.poisson(KEY, 1, method="x"), ValueError, "`poisson`"),
    "geometric dtype": (lambda: random.geometric(KEY, 0.5, dtype=float), ValueError, "an int"),
    "binomial dtype": (lambda: random.binomial(KEY, 5, 0.5, dtype=int), ValueError, "a float"),
    "multinomial": (lambda: random.multinomial(KEY, 5, 0.5), ValueError, "p.ndim >= 1"),
    "multinomial n": (lambda: random.multinomial(KEY, A, P), ValueError, "multinomial"),
    "dirichlet": (lambda: random.dirichlet(KEY, 1.0), ValueError, "alpha.ndim >= 1"),
    "randint dtype": (lambda: random.randint(KEY, (), 0, 1, float), TypeError, "integer dtypes"),
    "randint bounds": (lambda: random.randint(KEY, (2,), A, 1), ValueError, "do not broadcast"),
    "randint size": (lambda: random.randint(KEY, (), 0, 2**40), OverflowError, "too large"),
    "weibull": (lambda: random.weibull_min(KEY, A, 1, (2,)), ValueError, "weibull_min: scale"),
    "choice shape": (lambda: random.choice(KEY, 5, 3), TypeError, "must be a sequence"),  # type: ignore[arg-type]
    "choice of none": (lambda: random.choice(KEY, 0), ValueError, "greater than 0"),
    "too many": (lambda: random.choice(KEY, 3, (4,), False), ValueError, r"size 4.*size 3"),
    "weights": (lambda: random.choice(KEY, 3, p=P), ValueError, r"shape \(2,\).*is 3"),
    "negative weights": (
        lambda: random.choice(KEY, 2, p=np.float32([-1, 2])), ValueError, "negative or NaN",
    ),
    "nan weights": (lambda: random.choice(KEY, 2, p=P * np.nan), ValueError, "negative or NaN"),
    "no weights": (lambda: random.choice(KEY, 2, p=P * 0), ValueError, "sums to 0"),
    "choice axis": (lambda: random.choice(KEY, np.eye(2), axis=2), ValueError, "axis 2"),
    "choice of float": (lambda: random.choice(KEY, 2.5), TypeError, "choice: expected an integer"),
    "list of choices": (lambda: random.choice(KEY, [1, 2]), TypeError, "choice requires ndarray"),
    "traced": (
        lambda: jit(lambda n: random.permutation(KEY, n))(3), ConcretizationTypeError, "static",
    ),
    "logits": (lambda: random.categorical(KEY, np.arange(3)), ValueError, "must be floats"),
    "logits axis": (lambda: random.categorical(KEY, A, axis=1), IndexError, "axis 1"),
    "logits shape": (
        lambda: random.categorical(KEY, np.zeros((2, 3), np.float32), shape=(5,)),
        ValueError, r"\(2,\).*shape=\(5,\)",
    ),
    "too many categories": (
        lambda: random.categorical(KEY, A, shape=(4,), replace=False), ValueError, r"\(4\)",
    ),
    "mean": (lambda: random.multivariate_normal(KEY, 0.0, np.eye(2)), ValueError, "mean.ndim"),
    "cov": (lambda: random.multivariate_normal(KEY, P, P), ValueError, "cov.ndim >= 2"),
    "sizes": (lambda: random.multivariate_normal(KEY, P, np.eye(3)), ValueError, r"n=2.*\(3, 3\)"),
    "root": (
        lambda: random.multivariate_normal(KEY, P, np.eye(2), method="x"), ValueError, "'svd'",
    ),
    "orthogonal": (lambda: random.orthogonal(KEY, 2.5), TypeError, "integer"),  # type: ignore[arg-type]
    "orthogonal size": (lambda: random.orthogonal(KEY, -1), ValueError, "n=-1"),
    "ball": (lambda: random.ball(KEY, 2, np.ones(3)), ValueError, r"\(3,\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors(name: str) -> None:
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


def test_parameters_from_before_64_bit_dtypes_were_disabled():
    with enable_x64(True):
        p = pnp.asarray([0.25, 0.75])
    assert p.dtype == np.float64
    with enable_x64(False):
        narrow = pnp.asarray([0.25, 0.75])
        samplers: list[Callable[[Any], Array]] = [
            lambda p: random.categorical(KEY, p, shape=(3,)),
            lambda p: random.bernoulli(KEY, p),
            lambda p: random.choice(KEY, 2, (3,), p=p),
            lambda p: random.geometric(KEY, p),
        ]
        for sampler in samplers:
            assert sampler(p).tolist() == sampler(narrow).tolist()
