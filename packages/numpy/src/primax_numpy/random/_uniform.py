"""Random bits, uniform floats and integers, Bernoulli and Rademacher samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.extend.dimensions import broadcast_shapes
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike

from .._checks import dtype_argument
from .._functions import compiled
from .._promotion import repeated
from . import _draws as draws
from ._ciphers import UNSIGNED
from ._keys import check_key, children, random_words, typed


@compiled("shape", "width")
def _bits(key: Any, *, shape: tuple[int, ...], width: int) -> Any:
    return random_words(typed(key), width, shape)


def bits(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Uniform random bits as unsigned integers.

    Args:
      key: one key, typed or raw. It must not be used again.
      shape: the sample shape, a size or a sequence of sizes, which must be concrete.
      dtype: an unsigned integer dtype, by default ``uint32`` (``uint64`` if 64-bit types are
        enabled).
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      TypeError: if ``key`` is not a key.
      ValueError: if the dtype is not an unsigned integer.

    >>> from primax_numpy import random
    >>> random.bits(random.key(0), (2, 3), "uint8").dtype
    dtype('uint8')
    """
    if out_sharding is not None:
        return with_out_sharding(bits, out_sharding, key, shape, dtype)
    check_key("bits", key)
    word_dtype = dtypes.default_uint() if dtype is None else dtype_argument(dtype, "bits")
    if not dtypes.issubdtype(word_dtype, np.unsignedinteger):
        raise ValueError(
            f"dtype argument to `bits` must be an unsigned int dtype, got {word_dtype}"
        )
    out: Array = _bits(key, shape=draws.shape_of(shape, "bits"), width=word_dtype.itemsize * 8)
    return out


@compiled("shape", "dtype")
def _uniform(key: Any, low: Any, high: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    return draws.uniform(typed(key), shape, dtype, low, high)


def uniform(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Uniform samples in ``[minval, maxval)``.

    Args:
      key: one key, typed or raw. It must not be used again.
      shape: the sample shape, a size or a sequence of sizes, which must be concrete.
      dtype: a real float dtype, by default the default float.
      minval, maxval: bounds that broadcast to ``shape``, 0 and 1 by default.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      TypeError: if ``key`` is not a key.
      ValueError: if the dtype is not a float.
      TypeError: if the bounds do not broadcast.

    Samples are differentiable with respect to the bounds.

    >>> from primax_numpy import random
    >>> random.uniform(random.key(42), (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return with_out_sharding(uniform, out_sharding, key, shape, dtype, minval, maxval)
    check_key("uniform", key)
    draws.check_parameters("uniform", minval, maxval)
    shape, dtype = draws.shape_of(shape, "uniform"), draws.float_dtype(dtype, "uniform")
    out: Array = _uniform(key, minval, maxval, shape=shape, dtype=dtype)
    return out


# Integers


@compiled("shape", "dtype", name="randint")
def integers(key: Any, low: Any, high: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    info = dtypes.iinfo(dtype)
    narrow = dtypes.itemsize_bits(dtype) < 32
    work = np.dtype(np.int32) if narrow else dtype
    unsigned = UNSIGNED[work.itemsize * 8]
    low, high = _integral(low), _integral(high)
    over = _is_over(high, work)
    low, high = (_saturated(v, work) for v in (low, high))
    if narrow:
        low = lax.clamp(np.int32(info.min), low, np.int32(info.max))
        high = lax.clamp(np.int32(info.min), high, np.int32(int(info.max) + 1))
        over = lax.full_like(over, False)  # int32 represents the exclusive bound
    low, high, over = (draws.full_rank(v, len(shape)) for v in (low, high, over))
    first, second = children(typed(key), 2)
    width = unsigned.itemsize * 8
    high_words, low_words = (random_words(k, width, shape) for k in (first, second))
    one = draws.number(1, unsigned)
    span = lax.convert_element_type(lax.sub(*_alike(high, low)), unsigned)
    below = lax.gt(*_alike(high, low))
    span = draws.select(below, span, one)
    whole = lax.bitwise_and(*_alike(over, below))
    span = draws.select(whole, lax.add(span, one), span)
    factor = lax.rem(draws.number(2 ** (width // 2), unsigned), span)
    factor = lax.rem(lax.mul(factor, factor), span)
    span, factor = repeated(span, shape), repeated(factor, shape)
    offset = lax.add(lax.mul(lax.rem(high_words, span), factor), lax.rem(low_words, span))
    offset = lax.convert_element_type(lax.rem(offset, span), work)
    return lax.convert_element_type(lax.add(repeated(low, shape), offset), dtype)


def _integral(x: Any) -> Any:
    if dtypes.issubdtype(typeof(x).dtype, np.integer):
        return x
    return lax.convert_element_type(x, dtypes.default_int())


def _limits(dtype: Any) -> tuple[int, int]:
    info = dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def _is_over(x: Any, dtype: Any) -> Any:
    """True where an integer exceeds the maximum of a dtype."""
    own, top = typeof(x).dtype, _limits(dtype)[1]
    if _limits(own)[1] <= top:
        return lax.full_like(x, False, np.dtype(bool))
    return lax.gt(x, lax.full_like(x, top))


def _saturated(x: Any, dtype: Any) -> Any:
    """Integers clamped to the range of another dtype and converted."""
    own = typeof(x).dtype
    (bottom, top), (low, high) = _limits(own), _limits(dtype)
    if bottom < low or top > high:
        x = lax.max(x, lax.full_like(x, max(bottom, low)))
        x = lax.min(x, lax.full_like(x, min(top, high)))
    return lax.convert_element_type(x, dtype)


def _alike(x: Any, y: Any) -> tuple[Any, Any]:
    shape = broadcast_shapes(typeof(x).shape, typeof(y).shape)
    return repeated(x, shape), repeated(y, shape)


def randint(
    key: ArrayLike,
    shape: ShapeLike,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Uniform integers from ``minval`` up to, not including, ``maxval``; ``minval`` for an empty
    range.

    Args:
      minval, maxval: bounds that broadcast to ``shape``. Values are clamped to the range of the
        dtype, ``maxval`` to one past its maximum; floats are truncated.
      dtype: an integer dtype, the default one by default.

    If the size of the range does not divide a power of two, some integers are slightly more
        probable: by at most ``2**-32`` for 32 bits.

    Raises:
      TypeError: if the dtype is not an integer.
      ValueError: if the bounds do not broadcast to ``shape``.
      OverflowError: if a Python integer does not fit the default integer dtype.
    """
    if out_sharding is not None:
        return with_out_sharding(randint, out_sharding, key, shape, minval, maxval, dtype)
    check_key("randint", key)
    draws.check_parameters("randint", minval, maxval)
    sample_dtype = dtypes.default_int() if dtype is None else dtype_argument(dtype, "randint")
    if not dtypes.issubdtype(sample_dtype, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {sample_dtype}")
    sample_shape = draws.joint_shape("randint", shape, minval, maxval)
    out: Array = integers(key, minval, maxval, shape=sample_shape, dtype=sample_dtype)
    return out


# Bernoulli and Rademacher samples


@compiled("shape", "mode")
def _bernoulli(key: Any, p: Any, *, shape: tuple[int, ...], mode: str) -> Any:
    p = draws.narrowed(p)
    dtype = typeof(p).dtype
    p = repeated(p, shape)
    if mode == "low":
        return lax.lt(draws.uniform(typed(key), shape, dtype), p)
    coarse, fine = halves(typed(key), shape, dtype)
    step = draws.number(2.0 ** -int(dtypes.finfo(dtype).nmant), dtype)
    return lax.lt(lax.mul(fine, step), lax.sub(p, coarse))


def halves(key: Any, shape: tuple[int, ...], dtype: Any) -> tuple[Any, Any]:
    """Two uniform samples for each element: the leading and the following digits of one."""
    both = draws.uniform(key, (2, *shape), dtype)
    return (
        lax.index_in_dim(both, 0, 0, keepdims=False), lax.index_in_dim(both, 1, 0, keepdims=False),
    )  # fmt: skip


def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: ShapeLike | None = None,
    mode: str = "low",
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Bernoulli samples: true with probability ``p``, elementwise.

    Args:
      key: one key, typed or raw. It must not be used again.
      p: probabilities, 0.5 by default.
      shape: the sample shape, by default that of ``p``, which must broadcast to it.
      mode: ``"low"`` uses the number of bits of the dtype of ``p``; ``"high"`` twice as many, for
        probabilities that are small relative to the resolution of the dtype.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      A boolean array of shape ``shape``.

    Raises:
      TypeError: if ``p`` is not of a floating dtype.
      ValueError: if ``p`` does not broadcast to ``shape``, or the mode is unknown.

    >>> from primax_numpy import random
    >>> random.bernoulli(random.key(0), 1.0, (3,)).tolist()
    [True, True, True]
    """
    if out_sharding is not None:
        return with_out_sharding(bernoulli, out_sharding, key, p, shape, mode)
    check_key("bernoulli", key)
    if mode not in ("high", "low"):
        raise ValueError(f"bernoulli: mode must be 'high' or 'low', got {mode!r}")
    draws.check_parameters("bernoulli", p)
    if not dtypes.issubdtype(typeof(p).dtype, np.floating):
        raise TypeError(
            f"bernoulli probability `p` must have a floating dtype, got {typeof(p).dtype.name}"
        )
    out: Array = _bernoulli(key, p, shape=draws.joint_shape("bernoulli", shape, p), mode=mode)
    return out


@compiled("shape", "dtype")
def _rademacher(key: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    return draws.signs(typed(key), shape, dtype)


def rademacher(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Rademacher samples: 1 or -1 with equal probability.

    Args:
      key: one key, typed or raw. It must not be used again.
      shape: the sample shape, a size or a sequence of sizes, which must be concrete.
      dtype: any numeric dtype, the default integer by default. -1 wraps in unsigned dtypes.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      TypeError: if ``key`` is not a key.

    >>> from primax_numpy import random
    >>> sorted(set(random.rademacher(random.key(0), (1000,)).tolist()))
    [-1, 1]
    """
    if out_sharding is not None:
        return with_out_sharding(rademacher, out_sharding, key, shape, dtype)
    check_key("rademacher", key)
    sample_dtype = dtypes.default_int() if dtype is None else dtype_argument(dtype, "rademacher")
    out: Array = _rademacher(key, shape=draws.shape_of(shape, "rademacher"), dtype=sample_dtype)
    return out
