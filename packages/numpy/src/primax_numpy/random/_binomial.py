"""Binomial and multinomial sampling."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.typing import ArrayLike, DTypeLike, ShapeLike

from .._functions import compiled
from .._promotion import repeated
from . import _draws as draws
from ._key_types import random_split_p
from ._keys import check_key, children, typed
from ._rejection import draw_until_done


def _uniform(key: Any, like: Any) -> Any:
    return draws.uniform_materialized(key, like.shape, like.dtype)


def _by_waiting(key: Any, n: Any, q: Any) -> Any:
    """Binomial samples by geometric waiting times between successes."""
    scale = lax.log1p(-q)

    def draw(key: Any, count: Any, total: Any) -> tuple[Any, ...]:
        sub, key = children(key, 2)
        count = lax.select(total <= n, count + 1, count)
        return key, count, total + lax.ceil(lax.log(_uniform(sub, n)) / scale)

    zero = lax.full_like(n, 0)
    return draw_until_done(draw, lambda _, total: total <= n, (zero, zero), key)[0] - 1


def _by_rejection(key: Any, n: Any, q: Any) -> Any:
    """Binomial samples by transformed rejection with squeeze (Hörmann, "The generation of binomial
    random variates", Journal of Statistical Computation and Simulation 46, 1993)."""
    spread = lax.sqrt(n * q * (1 - q))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * q
    c = n * q + 0.5
    most = 0.92 - 4.2 / b
    r = q / (1 - q)
    alpha = (2.83 + 5.1 / b) * spread
    m = lax.floor((n + 1) * q)

    def draw(key: Any, sample: Any, accepted: Any) -> tuple[Any, ...]:
        key, first, second = children(key, 3)
        u = _uniform(first, n) - 0.5
        v = _uniform(second, n)
        us = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / us + b) * u + c)
        soon = (us >= 0.07) & (v <= most)
        outside = (k < 0) | (k > n)
        left = lax.log(v * alpha / (a / (us * us) + b))
        right = (
            (m + 0.5) * lax.log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * lax.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * lax.log(r * (n - k + 1) / (k + 1))
            + _stirling_rest(m) + _stirling_rest(n - m) - _stirling_rest(k) - _stirling_rest(n - k)
        )  # fmt: skip
        accept = soon | (~outside & (left <= right))
        return key, lax.select(accept, k, sample), accepted | accept

    start = (lax.full_like(n, -1), lax.full_like(n, False, np.dtype(bool)))
    return draw_until_done(draw, lambda _, accepted: ~accepted, start, key)[0]


_RESTS: Final = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling_rest(k: Any) -> Any:
    """Error of Stirling's formula for the logarithm of a factorial. It is constant from 10 on, as
    in the reference, because accepted samples depend on its bits."""
    square = draws.number(100, k.dtype)
    last = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / 10
    out = repeated(draws.number(last, k.dtype), k.shape)
    for i in range(len(_RESTS) - 1, -1, -1):
        out = draws.select(k <= i, draws.number(_RESTS[i], k.dtype), out)
    return out


def _binomials(key: Any, n: Any, p: Any) -> Any:
    """Binomial samples for parameters of one float dtype and shape."""
    dtype = n.dtype

    def const(v: float) -> Any:
        return draws.number(v, dtype)

    mirrored = p >= 0.5
    q = lax.select(p < 0.5, p, 1 - p)
    bad_q = (q != q) | (q < 0)
    safe = draws.select(bad_q, const(0.01), q)
    bad_n = (n != n) | (n < 0)
    small = bad_n | (n * safe <= 10)
    whole = lax.floor(n)
    infinite = lax.abs(n) == np.inf
    other = small | (infinite & (safe == 0))  # parameters for which rejection would never accept
    few = _by_waiting(key, draws.select(small, whole, const(0)), safe)
    many = _by_rejection(
        key, draws.select(other, const(1e4), whole), draws.select(other, const(0.5), safe)
    )
    out = lax.select(small, few, many)
    bad_p = p != p
    out = draws.select((q < 0) | bad_p | bad_n, const(np.nan), out)
    out = draws.select(infinite & ~((q < 0) | bad_p | bad_n), const(np.inf), out)
    return lax.select(mirrored & ~(bad_n | bad_p | infinite), whole - out, out)


def _working(p: Any) -> Any:
    dtype = typeof(p).dtype
    if dtypes.issubdtype(dtype, np.floating):
        return dtype
    return dtypes.result_type(dtype, np.float32)


@compiled("shape", "dtype")
def _binomial(key: Any, n: Any, p: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    working = _working(p)
    n, p = (lax.stop_gradient(draws.parameter(v, working, shape)) for v in (n, p))
    return lax.convert_element_type(_binomials(typed(key), n, p), dtype)


def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Binomial samples: numbers of successes in ``n`` trials with success probability ``p``.

    Args:
      key: one key, typed or raw. It must not be used again.
      n: integral numbers of trials; infinity gives infinity.
      p: floats between 0 and 1; others give NaN. The computation uses this dtype.
      shape: the sample shape, by default the broadcast shape of the parameters, which must
        broadcast to it.
      dtype: a float dtype, by default the default float.

    Returns:
      A float array of shape ``shape`` with integral elements.

    Raises:
      ValueError: if the dtype is not a float, or shapes do not match.

    >>> from primax_numpy import random
    >>> x = random.binomial(random.key(0), 10, 0.5, (1000,))
    >>> float(x.min()) >= 0 and float(x.max()) <= 10
    True
    """
    check_key("binomial", key)
    draws.check_parameters("binomial", n, p)
    dtype = draws.float_dtype(dtype, "binomial")
    sample_shape = draws.joint_shape("binomial", shape, n, p)
    out: Array = _binomial(key, n, p, shape=sample_shape, dtype=dtype)
    return out


@compiled("shape", "dtype", "unroll")
def _multinomial(
    key: Any, n: Any, p: Any, *, shape: tuple[int, ...], dtype: Any, unroll: int
) -> Any:
    working = dtypes.result_type(n, p)
    if not dtypes.issubdtype(working, np.inexact):
        working = dtypes.result_type(working, np.float32)
    k = p.shape[-1]
    n = lax.stop_gradient(draws.parameter(n, working, shape))
    p = lax.stop_gradient(draws.parameter(p, working, (*shape, k)))
    axis = len(shape)
    left = draws.running_sums(p, axis, reverse=True)
    ratio = p / draws.select(left == 0, draws.number(1, working), left)
    ratio = lax.clamp(draws.number(0, working), ratio, draws.number(1, working))
    keys = random_split_p.bind(typed(key), shape=(k,))
    ratios = lax.transpose(ratio, (axis, *range(axis)))

    def step(remaining: Any, at: Any) -> Any:
        count = _binomials(at[0], remaining, at[1])
        return remaining - count, count

    counts = lax.scan(step, n, (keys, ratios), unroll=unroll)[1]
    return lax.convert_element_type(lax.transpose(counts, (*range(1, axis + 1), 0)), dtype)


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Multinomial samples: counts of each category in ``n`` trials.

    Args:
      key: one key, typed or raw. It must not be used again.
      n: numbers of trials, which broadcast to the batch.
      p: ``float[..., categories]``: probabilities; the last category takes the remainder.
      shape: the batch shape, by default that of ``p``.
      dtype: the dtype of the counts, the default float by default.
      unroll: the number of categories in each loop iteration, see ``lax.scan``.

    Returns:
      An array with the categories along the last axis, where the counts sum to ``n``.

    Raises:
      ValueError: if ``p`` is a scalar, or shapes do not match.

    >>> from primax_numpy import random
    >>> import numpy as np
    >>> p = np.array([0.2, 0.3, 0.5], np.float32)
    >>> x = random.multinomial(random.key(0), np.float32([10, 20]), p[None, :].repeat(2, 0))
    >>> x.shape, x.sum(-1).tolist()
    ((2, 3), [10.0, 20.0])
    """
    check_key("multinomial", key)
    draws.check_parameters("multinomial", n, p)
    aval = typeof(p)
    if not aval.ndim:
        raise ValueError("multinomial requires p.ndim >= 1, got a scalar")
    batch = aval.shape[:-1]
    batch_shape = batch if shape is None else draws.shape_of(shape, "multinomial")
    draws.check_fits("multinomial", [batch, typeof(n).shape], batch_shape)
    count_dtype = (
        dtypes.default_float()
        if dtype is None
        else dtypes.canonicalize_user_dtype(dtype, "multinomial")
    )
    out: Array = _multinomial(key, n, p, shape=batch_shape, dtype=count_dtype, unroll=unroll)
    return out
