"""Bits, uniform and normal numbers, permutations.

Each sampler runs as one compiled program, also because the last bit of its results depends on it.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, library_function, state, typeof

from .._checks import one_axis, wanted_dtype
from .._creation import asarray
from ._keys import block, check_key, counters, hashed_counts, split

_UNSIGNED = {8: np.dtype("u1"), 16: np.dtype("u2"), 32: np.dtype("u4"), 64: np.dtype("u8")}


def _shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if hasattr(shape, "__index__") else tuple(int(d) for d in shape)


def random_words(key, width: int, shape: tuple[int, ...]):
    """Unsigned integers of a width, one block of the generator for each."""
    if not state.threefry_partitionable:
        return _words_in_halves(key, width, shape)
    high, low = counters(shape)
    a, b = block(key, high, low)
    if width == 64:
        wide = [lax.convert_element_type(w, _UNSIGNED[64]) for w in (a, b)]
        return lax.bitwise_or(lax.shift_left(wide[0], np.uint64(32)), wide[1])
    mixed = lax.bitwise_xor(a, b)
    return mixed if width == 32 else lax.convert_element_type(mixed, _UNSIGNED[width])


def _words_in_halves(key, width: int, shape: tuple[int, ...]):
    """The same without ``threefry_partitionable``: all bits of every block are used."""
    n = math.prod(shape)
    words = hashed_counts(key, -(-width * n // 32))
    if width == 64:
        high, low = (
            lax.convert_element_type(lax.slice_in_dim(words, i * n, (i + 1) * n), _UNSIGNED[64])
            for i in range(2)
        )
        words = lax.bitwise_or(lax.shift_left(high, np.uint64(32)), low)
    elif width < 32:
        parts = lax.bitcast_convert_type(words, _UNSIGNED[width])  # low bits first
        words = lax.slice_in_dim(lax.reshape(parts, (words.shape[0] * (32 // width),)), 0, n)
    return lax.reshape(words, shape)


def _bits_of(key, *, shape, width):
    return random_words(key, width, shape)


_bits_of.__name__ = "random_bits"
_bits = library_function(_bits_of, static_argnames=("shape", "width"))


def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Uniform random bits as unsigned integers.

    Raises:
      ValueError: if the dtype is not an unsigned integer.
    """
    check_key("bits", key)
    found = wanted_dtype(dtype, "bits") or dtypes.default_uint()
    if not np.issubdtype(found, np.unsignedinteger):
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {found}")
    return _bits(key, shape=_shape(shape), width=found.itemsize * 8)


def uniform_floats(key, shape: tuple[int, ...], dtype, low, high):
    """Floats in ``[low, high)``: random mantissas of numbers in [1, 2), shifted and scaled."""
    info = dtypes.finfo(dtype)
    n_bits, n_mantissa = int(info.bits), int(info.nmant)
    drawn = n_bits if n_mantissa >= 8 else 8
    words_ = random_words(key, drawn, shape)
    unsigned = _UNSIGNED[n_bits]
    words_ = lax.convert_element_type(words_, unsigned)
    mantissa = lax.shift_right_logical(words_, np.asarray(drawn - n_mantissa, unsigned)[()])
    one = np.ones((), dtype).view(unsigned)[()]
    floats = lax.bitcast_convert_type(lax.bitwise_or(mantissa, one), dtype)
    unit = lax.sub(floats, np.ones((), dtype)[()])
    low, high = (_leading(lax.convert_element_type(v, dtype), len(shape)) for v in (low, high))
    span = lax.sub(high, low)
    return lax.max(low, lax.add(lax.mul(unit, _to(span, shape)), _to(low, shape)))


def _leading(x, rank: int):
    missing = rank - typeof(x).ndim
    return lax.expand_dims(x, tuple(range(missing))) if missing > 0 else x


def _to(x, shape):
    if typeof(x).shape == shape:
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape))))


def _uniform_of(key, low, high, *, shape, dtype):
    return uniform_floats(key, shape, dtype, low, high)


_uniform_of.__name__ = "uniform"
_uniform = library_function(_uniform_of, static_argnames=("shape", "dtype"))


def _float_dtype(dtype: Any, name: str):
    found = wanted_dtype(dtype, name) or dtypes.default_float()
    if not dtypes.issubdtype(found, np.floating):
        raise ValueError(f"dtype argument to `{name}` must be a float dtype, got {found}")
    return found


def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0, *,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Uniform floats in ``[minval, maxval)``."""
    check_key("uniform", key)
    return _uniform(key, minval, maxval, shape=_shape(shape), dtype=_float_dtype(dtype, "uniform"))


def _normal_of(key, *, shape, dtype):
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)[()]
    u = uniform_floats(key, shape, dtype, low, np.ones((), dtype)[()])
    return lax.mul(np.asarray(math.sqrt(2), dtype)[()], lax.erf_inv(u))


_normal_of.__name__ = "normal"
_normal = library_function(_normal_of, static_argnames=("shape", "dtype"))


def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Standard normal floats, by the inverse of the error function."""
    check_key("normal", key)
    return _normal(key, shape=_shape(shape), dtype=_float_dtype(dtype, "normal"))


def _bernoulli_of(key, p, *, shape):
    dtype = typeof(p).dtype
    draws = uniform_floats(key, shape, dtype, np.zeros((), dtype)[()], np.ones((), dtype)[()])
    return lax.lt(draws, _to(_leading(p, len(shape)), shape))


_bernoulli_of.__name__ = "bernoulli"
_bernoulli = library_function(_bernoulli_of, static_argnames=("shape",))


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Array:
    """True with probability ``p``, elementwise.

    Raises:
      TypeError: if ``p`` is not of a floating dtype.
      ValueError: if it does not broadcast to ``shape``.
    """
    check_key("bernoulli", key)
    p = asarray(p)
    if not np.issubdtype(p.dtype, np.floating):
        raise TypeError("bernoulli probability `p` must have a floating dtype")
    target = p.shape if shape is None else _shape(shape)
    if p.shape != target and not _fits(p.shape, target):
        raise ValueError(f"bernoulli: p of shape {p.shape} does not broadcast to {target}")
    return _bernoulli(key, p, shape=target)


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another."""
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def _shuffled_of(key, x, *, axis, rounds):
    for _ in range(rounds):
        pair = split(key)
        key = lax.index_in_dim(pair, 0, 0, keepdims=False)
        sub = lax.index_in_dim(pair, 1, 0, keepdims=False)
        order = random_words(sub, 32, typeof(x).shape)
        _, x = lax.sort_key_val(order, x, axis)
    return x


_shuffled_of.__name__ = "shuffle"
_shuffled = library_function(_shuffled_of, static_argnames=("axis", "rounds"))


def permutation(
    key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None
) -> Array:
    """A random order of ``range(x)``, or of the slices of an array along an axis.

    Args:
      independent: give every row along ``axis`` an order of its own.

    Raises:
      TypeError: if ``x`` is neither an integer nor an array.
      ValueError: if the array has no such axis.
    """
    check_key("permutation", key)
    if not np.ndim(x):
        if not dtypes.issubdtype(typeof(x).dtype, np.integer):
            raise TypeError("x must be an integer or at least 1-dimensional")
        x = lax.iota(dtypes.default_int(), max(operator.index(x), 0))
        axis, independent = 0, False
    x = asarray(x)
    axis = one_axis(axis, x.ndim)
    if not independent and x.ndim > 1:
        order = permutation(key, x.shape[axis])
        moved = [slice(None)] * axis
        return x[(*moved, order)]
    # Enough rounds that equal sort keys do not bias the order.
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    return _shuffled(key, x, axis=axis, rounds=rounds)
