"""Poisson sampling."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Array,
    Primitive,
    Sample,
    ShapedArray,
    Zero,
    abstract,
    batch,
    chlo,
    dtypes,
    f32,
    jvp,
    lower,
    samples,
    typeof,
)
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike

from .._checks import dtype_argument
from .._functions import compiled
from . import _draws as draws
from ._gamma import check_method
from ._keys import check_key, children, typed
from ._rejection import draw_until_done

_F32: Final = np.dtype(np.float32)

platform_lgamma_p: Final = Primitive("platform_lgamma")
"""The platform's log-gamma function: accepted samples depend on its last bits. Its arguments are
integral, so its derivative is zero."""


@platform_lgamma_p.rule(abstract)
def _abstract(x):
    return ShapedArray(x.shape, x.dtype)


@platform_lgamma_p.rule(lower)
def _lower(ctx, x):
    return chlo.lgamma(x)


@platform_lgamma_p.rule(batch)
def _batch(axis, args, dims):
    return platform_lgamma_p.bind(*args), dims[0]


@platform_lgamma_p.rule(jvp)
def _jvp(primals, tangents):
    out = platform_lgamma_p.bind(*primals)
    return out, Zero.like(out)


@platform_lgamma_p.rule(samples)
def _samples():
    whole = dict.fromkeys(("jvp", "transpose", "second order"), "its arguments are integral")
    for shape in ((), (3,), (0, 2)):
        yield Sample(f32(*shape, low=1, high=9)).set(without=whole)


def _by_products(key: Any, lam: Any, limit: Any, dtype: Any) -> Any:
    """Poisson samples: the number of uniform samples whose product stays above ``exp(-lam)``
    (Knuth, The Art of Computer Programming 2, 3.4.1)."""

    def draw(key: Any, count: Any, total: Any) -> tuple[Any, ...]:
        key, sub = children(key, 2)
        count = lax.select(unfinished(count, total), count + np.ones((), dtype), count)
        uniform = draws.uniform_materialized(sub, lam.shape, _F32)
        return key, count, lax.add(total, lax.log(uniform))

    def unfinished(_: Any, total: Any) -> Any:
        return lax.gt(total, lax.neg(lam))

    start = (lax.full_like(lam, 0, dtype), lax.full_like(lam, 0))
    count, _ = draw_until_done(draw, unfinished, start, key, limit)
    return lax.sub(count, lax.full_like(count, 1))


def _by_rejection(key: Any, lam: Any, limit: Any, dtype: Any) -> Any:
    """Poisson samples by transformed rejection (Hörmann, "The transformed rejection method for
    generating Poisson random variables", 1993)."""
    log_lam = lax.log(lam)
    b = 0.931 + 2.53 * lax.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    most = 0.9277 - 3.6224 / (b - 2)

    def draw(key: Any, sample: Any, accepted: Any) -> tuple[Any, ...]:
        key, first, second = children(key, 3)
        u = draws.uniform_materialized(first, lam.shape, _F32) - 0.5
        v = draws.uniform_materialized(second, lam.shape, _F32)
        us = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / us + b) * u + lam + 0.43)
        s = lax.log(v * inverse_alpha / (a / (us * us) + b))
        t = -lam + k * log_lam - platform_lgamma_p.bind(k + 1)
        soon = (us >= 0.07) & (v <= most)
        reject = (k < 0) | ((us < 0.013) & (v > us))
        accept = soon | (~reject & (s <= t))
        return key, lax.select(accept, k, sample), accepted | accept

    start = (lax.full_like(lam, -1), lax.full_like(lam, False, np.dtype(bool)))
    sample, _ = draw_until_done(draw, lambda _, accepted: ~accepted, start, key, limit)
    return lax.convert_element_type(sample, dtype)


@compiled("shape", "dtype")
def _poisson(key: Any, lam: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    key, lam = typed(key), draws.parameter(lam, _F32, shape)
    lam = lax.stop_gradient(lam)
    limit = np.asarray(dtypes.iinfo(dtype).max).astype(dtype)[()]
    small = (lam != lam) | (lam < 10)
    few = _by_products(key, draws.select(small, lam, np.float32(0)), limit, dtype)
    many = _by_rejection(key, draws.select(small, np.float32(1e5), lam), limit, dtype)
    out = lax.select(small, few, many)
    return lax.select(lam == 0, lax.full_like(out, 0), out)


# Approximate sampling: the inverse CDF at the probability of a normal sample

_TERMS: Final = 19


@compiled("shape", "dtype")
def _approximately(key: Any, lam: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    wide = lam.dtype == np.float64 or dtypes.itemsize_bits(dtype) == 64
    working = np.dtype(np.float64) if wide else _F32
    lam = lax.stop_gradient(draws.parameter(lam, working, shape))
    z = draws.normal(typed(key), shape, working)
    small = lam < 7
    few = _few(draws.select(small, lam, draws.number(0, working)), z)
    many = _many(draws.select(small, draws.number(7, working), lam), z)
    return lax.convert_element_type(lax.select(small, few, many), dtype)


def _normal_probability(z: Any) -> Any:
    """The standard normal CDF."""
    half_root = draws.number(np.sqrt(0.5), z.dtype)
    w = z * half_root
    size = lax.abs(w)
    near = 1 + lax.erf(w)
    far = lax.erfc(size)
    y = lax.select(size < half_root, near, lax.select(w > 0, 2 - far, far))
    return 0.5 * y


def _few(lam: Any, z: Any) -> Any:
    probability = _normal_probability(z)
    pmf = lax.exp(-lam)
    cdf = pmf
    count = lax.full_like(z, 0)
    for k in range(_TERMS):
        if k:
            pmf = pmf * (lam / k)
            cdf = cdf + pmf
        count = count + lax.convert_element_type(cdf < probability, z.dtype)
    return count


def _many(lam: Any, z: Any) -> Any:
    """An asymptotic expansion of the inverse CDF, corrected by comparing probabilities."""
    s = lax.sqrt(lam)
    z2 = z * z
    c = lax.ceil(lam + s * z - 2 / 3 + z2 / 6 + z * (1 - z2) / (72 * s) + 0.6)
    below = lax.convert_element_type(_deviation(c, lam) >= z, z.dtype)
    lower = lax.convert_element_type(_deviation(c - 1, lam) >= z, z.dtype)
    return lax.max(c + 1 - below - lower, lax.full_like(z, 0))


def _deviation(x: Any, lam: Any) -> Any:
    """Normal quantile of the approximate Poisson CDF at ``x`` (Peizer and Pratt,
    Journal of the American Statistical Association 63, 1968)."""
    negative = x < 0
    x = draws.select(negative, draws.number(0, x.dtype), x)
    ratio = (x + 0.5) / lam
    q = (x - lam + 2 / 3 + 0.02 / (x + 1)) * lax.sqrt((1 + _asymmetry(ratio)) / lam)
    return draws.select(negative, draws.number(-np.inf, x.dtype), q)


def _asymmetry(y: Any) -> Any:
    d = y - 1
    near = lax.abs(d) < 0.25
    series: Any = 0.0
    for k in range(9, 0, -1):
        series = d * (2 * (-1) ** k / ((k + 1) * (k + 2)) + series)
    safe = draws.select(near, draws.number(2, y.dtype), y)
    exact = (1 - safe * safe + 2 * safe * lax.log(safe)) / ((1 - safe) * (1 - safe))
    return lax.select(near, series, exact)


def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Poisson samples of mean ``lam``.

    Args:
      key: one key, typed or raw. It must not be used again.
      lam: rates, converted to 32-bit floats by the exact method, which returns -1 for negative
        rates and NaN.
      shape: the sample shape, by default that of ``lam``, which must broadcast to it.
      dtype: an integer dtype, the default one by default.
      method: ``"exact"`` by rejection, or ``"approximate"``, which takes a constant time for all
        rates.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An integer array of shape ``shape``.

    Raises:
      ValueError: if the dtype or the method is invalid, or shapes do not match.

    The derivative with respect to ``lam`` is zero.

    >>> from primax_numpy import random
    >>> x = random.poisson(random.key(0), 3.0, (1000,))
    >>> x.shape, int(x.min())
    ((1000,), 0)
    """
    if out_sharding is not None:
        return with_out_sharding(poisson, out_sharding, key, lam, shape, dtype, method=method)
    check_key("poisson", key)
    draws.check_parameters("poisson", lam)
    sample_dtype = dtypes.default_int() if dtype is None else dtype_argument(dtype, "poisson")
    if not dtypes.issubdtype(sample_dtype, np.integer):
        raise ValueError(f"dtype argument to `poisson` must be an int dtype, got {sample_dtype}")
    check_method("poisson", method)
    sample_shape = draws.joint_shape("poisson", shape, lam)
    draw = _poisson if method == "exact" else _approximately
    if not hasattr(lam, "dtype"):
        lam = np.asarray(lam).astype(typeof(lam).dtype)[()]
    out: Array = draw(key, lam, shape=sample_shape, dtype=sample_dtype)
    return out
