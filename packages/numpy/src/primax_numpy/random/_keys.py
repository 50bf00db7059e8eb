"""Raw threefry keys: two 32-bit words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, Tracer, dtypes, library_function, state, typeof

_U32 = np.dtype(np.uint32)


def PRNGKey(seed: Any, *, impl: str | None = None) -> Array:
    """A key from an integer, as an array of two 32-bit words.

    Args:
      seed: an integer scalar. Without 64-bit types only its low 32 bits count.

    Raises:
      TypeError: for seeds that are no integers or no scalars.
      OverflowError: for Python integers outside of 64 bits.

    >>> PRNGKey(0)
    Array([0, 0], dtype=uint32)
    """
    if impl not in (None, "threefry2x32"):
        raise ValueError(f"unknown key implementation {impl!r}: only 'threefry2x32' is available")
    if isinstance(seed, (float, complex, str, np.inexact)) or not (
        isinstance(seed, (int, np.integer)) or hasattr(seed, "dtype")
    ):
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r}")
    if isinstance(seed, (int, np.bool_)):
        if not -(2**63) <= seed < 2**63:
            raise OverflowError(f"Python int {seed} too large to convert to int64")
        # Without 64-bit types the low word is the whole seed.
        low = int(seed) & 0xFFFFFFFF
        seed = np.int64(seed) if state.enable_x64 else np.uint32(low)
    aval = typeof(seed)
    if aval.ndim:
        raise TypeError(f"PRNG key seed must be a scalar; got an array of shape {aval.shape}")
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {aval.dtype.name}")
    return _seeded(seed)


@library_function
def _seeded(seed):
    dtype = typeof(seed).dtype
    low = lax.convert_element_type(seed, _U32)
    if dtype.itemsize == 8:
        high = lax.convert_element_type(
            lax.shift_right_logical(seed, np.asarray(32, dtype)[()]), _U32
        )
    else:
        high = np.uint32(0)
    rows = [lax.reshape(lax.convert_element_type(w, _U32), (1,)) for w in (high, low)]
    return lax.concatenate(rows, 0)


def check_key(name: str, key: Any) -> None:
    """Refuse what is not one raw key.

    Raises:
      TypeError: for anything but an array of 32-bit words.
      ValueError: for an array of keys.
    """
    if not hasattr(key, "shape") or not hasattr(key, "dtype"):
        raise TypeError(f"{name}: expected a key, got {type(key)}: make one with random.PRNGKey")
    if key.dtype != _U32 or not key.shape or key.shape[-1] != 2:
        raise TypeError(
            f"{name}: a raw key is a uint32 array of 2 words, got {key.dtype}{list(key.shape)}"
        )
    if len(key.shape) > 1:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {key.shape[:-1]} != "
            "(). Use vmap for batching."
        )


def words(key) -> tuple[Any, Any]:
    """The two words of a key."""
    return (
        lax.index_in_dim(key, 0, 0, keepdims=False), lax.index_in_dim(key, 1, 0, keepdims=False),
    )  # fmt: skip


def counters(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """High and low words of the row-major index of each element."""
    size = math.prod(shape)
    if size < 2**32:
        low = lax.reshape(lax.iota(_U32, size), shape)
        return lax.full(shape, 0, _U32), low
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    high: Any = lax.full(shape, 0, _U32)
    low = lax.full(shape, 0, _U32)
    for i, s in enumerate(strides):
        index = lax.broadcasted_iota(_U32, shape, i)
        part_low = lax.mul(index, np.uint32(s & 0xFFFFFFFF))
        part_high = lax.add(
            lax.mulhi(index, np.uint32(s & 0xFFFFFFFF)), lax.mul(index, np.uint32(s >> 32))
        )
        total = lax.add(low, part_low)
        carry = lax.convert_element_type(lax.lt(total, low), _U32)
        high, low = lax.add(lax.add(high, part_high), carry), total
    return high, low


def block(key, high, low) -> tuple[Any, Any]:
    """Threefry-2x32 of the counters (Salmon et al., SC 2011)."""
    k0, k1 = words(key)
    return lax.threefry2x32_p.bind(k0, k1, high, low)


def hashed_counts(key, n: int) -> Any:
    """Words for the counters 0 to ``n - 1`` in the layout without ``threefry_partitionable``: the
    first half of the counters is hashed together with the second."""
    padded = n + n % 2
    counts = lax.iota(_U32, padded)
    if n % 2:  # the padding is a zero, not the next counter
        counts = lax.concatenate([lax.iota(_U32, n), lax.full((1,), 0, _U32)], 0)
    half = padded // 2
    a, b = block(key, lax.slice_in_dim(counts, 0, half), lax.slice_in_dim(counts, half, padded))
    return lax.slice_in_dim(lax.concatenate([a, b], 0), 0, n)


def _split_of(key, *, shape):
    if not state.threefry_partitionable:
        return lax.reshape(hashed_counts(key, 2 * math.prod(shape)), (*shape, 2))
    high, low = counters(shape)
    a, b = block(key, high, low)
    axis = len(shape)
    return lax.concatenate([lax.expand_dims(a, (axis,)), lax.expand_dims(b, (axis,))], axis)


_split_of.__name__ = "random_split"
_split = library_function(_split_of, static_argnames=("shape",))


def split(key: Any, num: int | tuple[int, ...] = 2) -> Array:
    """Independent keys from one, which must not be used again.

    Args:
      num: how many, or the shape of an array of keys.
    """
    check_key("split", key)
    shape = (int(num),) if hasattr(num, "__index__") else tuple(int(n) for n in num)
    return _split(key, shape=shape)


@library_function
def _fold(key, data):
    a, b = block(key, np.uint32(0), lax.convert_element_type(data, _U32))
    return lax.concatenate([lax.reshape(a, (1,)), lax.reshape(b, (1,))], 0)


def fold_in(key: Any, data: Any) -> Array:
    """A key made from a key and an integer.

    Raises:
      TypeError: if ``data`` is not a scalar.
      OverflowError: for Python integers outside of 32 unsigned bits.
    """
    check_key("fold_in", key)
    if isinstance(data, int):
        if not 0 <= data < 2**32:
            raise OverflowError(f"Python integer {data} out of bounds for uint32")
        data = np.uint32(data)
    if not isinstance(data, Tracer) and np.ndim(data):
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {np.shape(data)}"
        )
    return _fold(key, data)
