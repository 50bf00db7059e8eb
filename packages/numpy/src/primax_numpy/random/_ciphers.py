"""Counter-based generators: ciphers that map a key and a counter to random words.

Threefry and Philox are those of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
(SC 2011). Words are ``uint32`` arrays that broadcast; a shape's counters are the row-major indices
of its elements, each as a high and a low word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend.dimensions import decided, is_static

U32: Final = np.dtype(np.uint32)
UNSIGNED: Final = {
    8: np.dtype(np.uint8), 16: np.dtype(np.uint16), 32: U32, 64: np.dtype(np.uint64),
}  # fmt: skip
_PARITY: Final = 0x1BD11BDA
_ROTATIONS: Final = (
    (10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20),
)  # fmt: skip


def words_of(key: Any) -> list[Any]:
    """The words of one raw key as scalars."""
    return [lax.index_in_dim(key, i, 0, keepdims=False) for i in range(key.shape[0])]


def stacked(words: Sequence[Any]) -> Any:
    """Arrays of one shape stacked along a new last axis."""
    rows = [lax.expand_dims(w, (w.ndim,)) for w in words]
    return lax.concatenate(rows, rows[0].ndim - 1)


def counters(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """High and low words of the row-major index of each element."""
    size = math.prod(shape)
    if decided(lambda: size < 2**32, True):
        return lax.full(shape, 0, U32), lax.reshape(lax.iota(U32, size), shape)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    high: Any = lax.full(shape, 0, U32)
    low: Any = lax.full(shape, 0, U32)
    for i, s in enumerate(strides):
        index = lax.broadcasted_iota(U32, shape, i)
        part_low = lax.mul(index, np.uint32(s & 0xFFFFFFFF))
        part_high = lax.add(
            lax.mulhi(index, np.uint32(s & 0xFFFFFFFF)), lax.mul(index, np.uint32(s >> 32))
        )
        total = lax.add(low, part_low)
        carry = lax.convert_element_type(lax.lt(total, low), U32)
        high, low = lax.add(lax.add(high, part_high), carry), total
    return high, low


def threefry2x32(key: Any, high: Any, low: Any) -> list[Any]:
    """Threefry-2x32: two words for each counter of two words."""
    k0, k1 = words_of(key)
    return list(lax.threefry2x32_p.bind(k0, k1, high, low))


def hashed_counts(key: Any, n: int) -> Any:
    """Words for the counters 0 to ``n - 1``, hashed as pairs from the first and the second half:
    the layout without ``threefry_partitionable``."""
    padded = n + n % 2
    counts = lax.iota(U32, padded)
    if not is_static((n,)) or n % 2:  # the padding is a zero, not the next counter
        counts = lax.concatenate([lax.iota(U32, n), lax.full((n % 2,), 0, U32)], 0)
    half = padded // 2
    a, b = threefry2x32(
        key, lax.slice_in_dim(counts, 0, half), lax.slice_in_dim(counts, half, padded)
    )
    return lax.slice_in_dim(lax.concatenate([a, b], 0), 0, n)


def threefry4x32(key: Any, counter: Sequence[Any]) -> list[Any]:
    """Threefry-4x32: four words for each counter of four words."""
    keys = words_of(key)
    last = np.uint32(_PARITY)
    for k in keys:
        last = lax.bitwise_xor(k, last)
    keys.append(last)
    x = [lax.add(c, k) for c, k in zip(counter, keys)]
    for step in range(20):
        first, second = ((0, 1), (2, 3)) if step % 2 == 0 else ((0, 3), (2, 1))
        for (i, j), r in zip((first, second), _ROTATIONS[step % 8]):
            x[i] = lax.add(x[i], x[j])
            x[j] = lax.bitwise_xor(x[i], _rotated(x[j], r))
        if step % 4 == 3:
            group = step // 4
            x = [lax.add(v, keys[(i + 1 + group) % 5]) for i, v in enumerate(x)]
            x[3] = lax.add(x[3], np.uint32(group + 1))
    return x


def _rotated(x: Any, r: int) -> Any:
    return lax.bitwise_or(
        lax.shift_left(x, np.uint32(r)), lax.shift_right_logical(x, np.uint32(32 - r))
    )


def philox4x32(key: Any, counter: Sequence[Any]) -> list[Any]:
    """Philox-4x32: four words for each counter of four words, from a key of two."""
    k0, k1 = words_of(key)
    c = list(counter)
    for step in range(10):
        if step:
            k0 = lax.add(k0, np.uint32(0x9E3779B9))
            k1 = lax.add(k1, np.uint32(0xBB67AE85))
        high0, low0 = _product(c[0], 0xD2511F53)
        high1, low1 = _product(c[2], 0xCD9E8D57)
        c = [_xor(high1, c[1], k0), low1, _xor(high0, c[3], k1), low0]
    return c


def philox2x32(key: Any, counter: Sequence[Any]) -> list[Any]:
    """Philox-2x32: two words for each counter of two words, from a key of one."""
    (k,) = words_of(key)
    a, b = counter
    for step in range(10):
        if step:
            k = lax.add(k, np.uint32(0x9E3779B9))
        high, low = _product(a, 0xD256D193)
        a, b = _xor(high, b, k), low
    return [a, b]


def _product(x: Any, factor: int) -> tuple[Any, Any]:
    """High and low words of a product."""
    return lax.mulhi(x, np.uint32(factor)), lax.mul(x, np.uint32(factor))


def _xor(*xs: Any) -> Any:
    total = xs[0]
    for x in xs[1:]:
        total = lax.bitwise_xor(total, x)
    return total


def joined(high: Any, low: Any) -> Any:
    """64-bit integers from their high and low words."""
    wide = [lax.convert_element_type(w, UNSIGNED[64]) for w in (high, low)]
    return lax.bitwise_or(lax.shift_left(wide[0], np.uint64(32)), wide[1])


def mixed(words: Sequence[Any], width: int) -> Any:
    """Words of one counter combined into at most 32 bits."""
    bits = _xor(*words)
    return bits if width == 32 else lax.convert_element_type(bits, UNSIGNED[width])
