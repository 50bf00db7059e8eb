"""Elementary float distributions: closed formulas of one or two uniform or normal samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, state
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike

from .._functions import compiled
from .._promotion import repeated
from . import _draws as draws
from ._keys import check_key, children, random_words, typed
from ._uniform import halves


@compiled("shape", "dtype")
def _normal(key: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    return draws.normal(typed(key), shape, dtype)


def normal(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Standard normal samples. Complex ones have independent parts of variance one half.

    Args:
      key: one key, typed or raw. It must not be used again.
      shape: the sample shape, a size or a sequence of sizes, which must be concrete.
      dtype: a float or complex dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      TypeError: if ``key`` is not a key.
      ValueError: if the dtype is neither float nor complex.

    >>> from primax_numpy import random
    >>> random.normal(random.key(42), (2, 3)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return with_out_sharding(normal, out_sharding, key, shape, dtype)
    check_key("normal", key)
    shape, dtype = draws.shape_of(shape, "normal"), draws.inexact_dtype(dtype, "normal")
    out: Array = _normal(key, shape=shape, dtype=dtype)
    return out


@compiled("shape", "dtype")
def _truncated_normal(
    key: Any, lower: Any, upper: Any, *, shape: tuple[int, ...], dtype: Any
) -> Any:
    lower, upper = (lax.convert_element_type(v, dtype) for v in (lower, upper))
    root = draws.number(math.sqrt(2), dtype)
    a, b = (lax.erf(lax.div(v, _like(root, v))) for v in (lower, upper))
    u = draws.uniform(typed(key), shape, dtype, a, b)
    out = lax.mul(root, lax.erf_inv(u))
    inf = draws.number(np.inf, dtype)
    least = lax.nextafter(lax.stop_gradient(lower), _like(inf, lower))
    most = lax.nextafter(lax.stop_gradient(upper), _like(-inf, upper))
    return lax.min(lax.max(out, repeated(least, shape)), repeated(most, shape))


def _like(value: Any, x: Any) -> Any:
    return repeated(value, x.shape)


def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Standard normal samples truncated to ``[lower, upper]``.

    Args:
      key: one key, typed or raw. It must not be used again.
      lower, upper: bounds, arrays or numbers that broadcast together.
      shape: the sample shape, by default the broadcast shape of the parameters, which must
        broadcast to it.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float, or the shapes do not match.

    Samples are differentiable with respect to the bounds, at constant cumulative probability.

    >>> from primax_numpy import random
    >>> x = random.truncated_normal(random.key(0), 1.0, 2.0, (1000,))
    >>> float(x.min()) >= 1.0 and float(x.max()) <= 2.0
    True
    """
    if out_sharding is not None:
        return with_out_sharding(truncated_normal, out_sharding, key, lower, upper, shape, dtype)
    check_key("truncated_normal", key)
    draws.check_parameters("truncated_normal", lower, upper)
    dtype = draws.float_dtype(dtype, "truncated_normal")
    sample_shape = draws.joint_shape("truncated_normal", shape, lower, upper)
    out: Array = _truncated_normal(key, lower, upper, shape=sample_shape, dtype=dtype)
    return out


@compiled("shape", "dtype")
def _exponential(key: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    return draws.exponential(typed(key), shape, dtype)


def exponential(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Exponential samples of mean 1: nonnegative, with density ``exp(-x)``.

    Args:
      key: one key, typed or raw. It must not be used again.
      shape: the sample shape, a size or a sequence of sizes, which must be concrete.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``. Divide by a rate for another mean.

    Raises:
      ValueError: if the dtype is not a float.

    >>> from primax_numpy import random
    >>> x = random.exponential(random.key(0), (1000,))
    >>> x.shape, float(x.min()) >= 0
    ((1000,), True)
    """
    if out_sharding is not None:
        return with_out_sharding(exponential, out_sharding, key, shape, dtype)
    check_key("exponential", key)
    shape, dtype = draws.shape_of(shape, "exponential"), draws.float_dtype(dtype, "exponential")
    out: Array = _exponential(key, shape=shape, dtype=dtype)
    return out


# Gumbel


@compiled("shape", "dtype", "mode")
def _gumbel(key: Any, *, shape: tuple[int, ...], dtype: Any, mode: str) -> Any:
    return gumbel_noise(typed(key), shape, dtype, mode)


def gumbel_noise(key: Any, shape: tuple[int, ...], dtype: Any, mode: str) -> Any:
    """Gumbel samples; the mode selects the number of random bits of a uniform sample."""
    if mode == "low":
        return _neg_log(_neg_log(draws.positive_uniform(key, shape, dtype)))
    if mode == "highest" and dtype == np.float32:
        return _finest_gumbel(key, shape)
    info = dtypes.finfo(dtype)
    digits = int(info.nmant)
    coarse, fine = halves(key, shape, dtype)
    step = draws.number(2.0**-digits, dtype)
    least = draws.number(max(2.0 ** -(2 * digits + 1), float(info.tiny)), dtype)
    x = lax.add(lax.add(coarse, lax.mul(fine, step)), least)
    x = lax.select(lax.ge(coarse, _like(draws.number(0.5, dtype), coarse)), coarse, x)
    return _neg_log(lax.neg(lax.log1p(lax.neg(x))))


def _neg_log(x: Any) -> Any:
    return lax.neg(lax.log(x))


def _finest_gumbel(key: Any, shape: tuple[int, ...]) -> Any:
    """Gumbel samples from 64 bits: the distance to the nearer end of (0, 1) has full
    floating-point precision in both tails."""
    words = random_words(key, 32, (2, *shape))
    high, low = (lax.index_in_dim(words, i, 0, keepdims=False) for i in range(2))
    near_one = lax.ge(high, np.uint32(2**31))
    carry = lax.convert_element_type(lax.eq(low, np.uint32(0)), np.uint32)
    high = lax.select(near_one, lax.add(lax.bitwise_not(high), carry), high)
    low = lax.select(near_one, lax.sub(lax.full_like(low, 0), low), low)
    x = _fraction(high, low)
    return lax.select(near_one, _neg_log(_neg_log(x)), _neg_log(lax.neg(lax.log1p(lax.neg(x)))))


def _fraction(high: Any, low: Any) -> Any:
    """64-bit fixed-point numbers as 32-bit floats, truncated to 24 digits."""
    bits = np.uint32(32)
    empty = lax.eq(high, np.uint32(0))
    zeros = lax.select(empty, lax.add(lax.clz(low), bits), lax.clz(high))
    top = lax.bitwise_or(
        lax.shift_left(high, zeros), lax.shift_right_logical(low, lax.sub(bits, zeros))
    )
    top = lax.select(empty, lax.shift_left(low, lax.sub(zeros, bits)), top)
    digits = lax.convert_element_type(lax.shift_right_logical(top, np.uint32(8)), np.float32)
    exponent = lax.sub(np.uint32(127 - 24), zeros)
    scale = lax.bitcast_convert_type(lax.shift_left(exponent, np.uint32(23)), np.float32)
    return lax.mul(digits, scale)


def gumbel_mode(mode: Any) -> str:
    """The mode of Gumbel sampling, by default that of the configuration.

    Raises:
      ValueError: if the mode is unknown.
    """
    if mode is None:
        return "high" if getattr(state, "high_dynamic_range_gumbel", False) else "low"
    if mode not in ("low", "high", "highest"):
        raise ValueError(f"gumbel: mode must be 'low', 'high' or 'highest', got {mode!r}")
    out: str = mode
    return out


def gumbel(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    mode: Any = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Gumbel samples: ``-log(-log(u))`` of uniform ``u``.

    Args:
      key: one key, typed or raw. It must not be used again.
      shape: the sample shape, a size or a sequence of sizes, which must be concrete.
      dtype: a real float dtype, by default the default float.
      mode: ``"low"`` (the default) uses the number of bits of the dtype; ``"high"`` twice as many,
        which extends the upper tail; ``"highest"`` 64 bits for ``float32``.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the mode or the dtype is invalid.

    The index of the maximum of logits plus Gumbel samples is a sample of :func:`categorical`.

    >>> from primax_numpy import random
    >>> random.gumbel(random.key(0), (2, 3)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return with_out_sharding(gumbel, out_sharding, key, shape, dtype, mode)
    check_key("gumbel", key)
    shape, dtype = draws.shape_of(shape, "gumbel"), draws.float_dtype(dtype, "gumbel")
    out: Array = _gumbel(key, shape=shape, dtype=dtype, mode=gumbel_mode(mode))
    return out


# Functions of one uniform sample


@compiled("shape", "dtype")
def _laplace(key: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    low = draws.number(-1.0 + float(dtypes.finfo(dtype).epsneg), dtype)
    u = draws.uniform(typed(key), shape, dtype, low, draws.number(1, dtype))
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


def laplace(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Laplace samples of mean 0 and scale 1, with density ``exp(-abs(x)) / 2``.

    Args:
      key: one key, typed or raw. It must not be used again.
      shape: the sample shape, a size or a sequence of sizes, which must be concrete.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float.

    >>> from primax_numpy import random
    >>> random.laplace(random.key(0), (2, 3)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return with_out_sharding(laplace, out_sharding, key, shape, dtype)
    check_key("laplace", key)
    shape, dtype = draws.shape_of(shape, "laplace"), draws.float_dtype(dtype, "laplace")
    out: Array = _laplace(key, shape=shape, dtype=dtype)
    return out


@compiled("shape", "dtype")
def _logistic(key: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    x = draws.positive_uniform(typed(key), shape, dtype)
    return lax.sub(lax.log(x), lax.log1p(lax.neg(x)))


def logistic(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Logistic samples of location 0 and scale 1: ``log(u / (1 - u))`` of uniform ``u``.

    Args:
      key: one key, typed or raw. It must not be used again.
      shape: the sample shape, a size or a sequence of sizes, which must be concrete.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float.

    >>> from primax_numpy import random
    >>> random.logistic(random.key(0), (2, 3)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return with_out_sharding(logistic, out_sharding, key, shape, dtype)
    check_key("logistic", key)
    shape, dtype = draws.shape_of(shape, "logistic"), draws.float_dtype(dtype, "logistic")
    out: Array = _logistic(key, shape=shape, dtype=dtype)
    return out


@compiled("shape", "dtype")
def _cauchy(key: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    eps = draws.number(dtypes.finfo(dtype).eps, dtype)
    u = draws.uniform(typed(key), shape, dtype, eps, draws.number(1, dtype))
    middle = lax.sub(u, _like(draws.number(0.5, dtype), u))
    return lax.tan(lax.mul(_like(draws.number(math.pi, dtype), u), middle))


def cauchy(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Cauchy samples of location 0 and scale 1, whose mean does not exist.

    Args:
      key: one key, typed or raw. It must not be used again.
      shape: the sample shape, a size or a sequence of sizes, which must be concrete.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float.

    >>> from primax_numpy import random
    >>> random.cauchy(random.key(0), (2, 3)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return with_out_sharding(cauchy, out_sharding, key, shape, dtype)
    check_key("cauchy", key)
    shape, dtype = draws.shape_of(shape, "cauchy"), draws.float_dtype(dtype, "cauchy")
    out: Array = _cauchy(key, shape=shape, dtype=dtype)
    return out


# Functions of three normal samples


@compiled("shape", "dtype")
def _maxwell(key: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    return lengths(typed(key), shape, dtype)


def lengths(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Lengths of normal vectors in three dimensions."""
    # The order of the three additions depends on XLA's fusion.
    words = random_words(key, draws.drawn_width(dtype), (*shape, 3))
    n = draws.normal_of(lax.optimization_barrier(words), dtype)
    squares = lax.mul(n, n)
    wide = np.dtype(np.float32) if squares.dtype.itemsize < 4 else squares.dtype
    total = lax.reduce_sum(lax.convert_element_type(squares, wide), (len(shape),))
    return lax.sqrt(lax.convert_element_type(total, dtype))


def maxwell(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Maxwell samples of scale 1: lengths of normal vectors in three dimensions.

    Args:
      key: one key, typed or raw. It must not be used again.
      shape: the sample shape, a size or a sequence of sizes, which must be concrete.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float.

    >>> from primax_numpy import random
    >>> x = random.maxwell(random.key(0), (1000,))
    >>> x.shape, float(x.min()) >= 0
    ((1000,), True)
    """
    if out_sharding is not None:
        return with_out_sharding(maxwell, out_sharding, key, shape, dtype)
    check_key("maxwell", key)
    shape, dtype = draws.shape_of(shape, "maxwell"), draws.float_dtype(dtype, "maxwell")
    out: Array = _maxwell(key, shape=shape, dtype=dtype)
    return out


@compiled("shape", "dtype")
def _double_sided_maxwell(
    key: Any, loc: Any, scale: Any, *, shape: tuple[int, ...], dtype: Any
) -> Any:
    first, second = children(typed(key), 2)
    m = lengths(first, shape, dtype)
    s = draws.signs(second, shape, dtype)
    return s * m * scale + loc


def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Double-sided Maxwell samples: a random sign times a Maxwell sample, scaled and shifted.

    Args:
      key: one key, typed or raw. It must not be used again.
      loc, scale: parameters that broadcast together.
      shape: leading axes before those of ``loc`` and ``scale``; by default their broadcast shape
        again.
      dtype: a real float dtype, by default the default float.

    Returns:
      An array of shape ``shape`` followed by the broadcast shape of the parameters.

    Raises:
      ValueError: if the dtype is not a float.

    Samples are differentiable with respect to the parameters.

    >>> from primax_numpy import random
    >>> random.double_sided_maxwell(random.key(0), 1.0, 2.0, (4,)).shape
    (4,)
    """
    check_key("double_sided_maxwell", key)
    draws.check_parameters("double_sided_maxwell", loc, scale)
    dtype = draws.float_dtype(dtype, "double_sided_maxwell")
    joint = draws.joint_shape("double_sided_maxwell", None, loc, scale)
    sample_shape = (draws.shape_of(shape, "double_sided_maxwell") or joint) + joint
    out: Array = _double_sided_maxwell(key, loc, scale, shape=sample_shape, dtype=dtype)
    return out
