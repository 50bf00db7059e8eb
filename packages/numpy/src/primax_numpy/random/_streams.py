"""Batched keys: one key for each element of an array.

Loops that sample each element from its own key carry the keys in this form. For the default
implementation it is one array for each word, on which the cipher is an elementwise computation; for
others it is an array of typed keys.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import random_unwrap_p, state, typeof

from . import _ciphers as ciphers, _draws as draws
from ._implementations import implementations
from ._key_types import random_bits_p, random_split_p


class Words(NamedTuple):
    """Threefry keys as two arrays of words."""

    first: Any
    second: Any

    def children(self, n: int) -> list[Words]:
        """``n`` keys split from each key."""
        rows = [lax.expand_dims(w, (0,)) for w in self]
        numbers = lax.reshape(lax.iota(ciphers.U32, n), (n,) + (1,) * self.first.ndim)
        words = _block(*rows, numbers)
        return [
            Words(*(lax.index_in_dim(w, i, 0, keepdims=False) for w in words)) for i in range(n)
        ]

    def words(self, width: int) -> Any:
        """One random integer of ``width`` bits from each key."""
        a, b = _block(self.first, self.second, np.uint32(0))
        return ciphers.joined(a, b) if width == 64 else ciphers.mixed((a, b), width)


def _block(first: Any, second: Any, counter: Any) -> list[Any]:
    """The cipher behind an optimization barrier: XLA would recompute it for each use, and take
    minutes to compile successive blocks."""
    words = lax.threefry2x32_p.bind(first, second, np.uint32(0), counter)
    return lax.optimization_barrier(words)  # type: ignore[no-any-return]


class Typed(NamedTuple):
    """Keys of any implementation as one array."""

    keys: Any

    def children(self, n: int) -> list[Typed]:
        """``n`` keys split from each key."""
        children = random_split_p.bind(self.keys, shape=(n,))
        axis = self.keys.ndim
        return [Typed(lax.index_in_dim(children, i, axis, keepdims=False)) for i in range(n)]

    def words(self, width: int) -> Any:
        """One random integer of ``width`` bits from each key."""
        return random_bits_p.bind(self.keys, bit_width=width, shape=())


Stream = Words | Typed


def stream_of(keys: Any) -> Stream:
    """An array of typed keys as a stream."""
    default = typeof(keys).dtype.impl is implementations["threefry2x32"]
    if not default or not state.threefry_partitionable:
        return Typed(keys)
    words, axis = random_unwrap_p.bind(keys), keys.ndim
    return Words(*(lax.index_in_dim(words, i, axis, keepdims=False) for i in range(2)))


def uniforms(stream: Stream, dtype: Any) -> Any:
    """A uniform sample in ``[0, 1)`` from each key."""
    return draws.uniform_of(stream.words(draws.drawn_width(dtype)), dtype)


def normals(stream: Stream, dtype: Any) -> Any:
    """A standard normal sample from each key."""
    return draws.normal_of(stream.words(draws.drawn_width(dtype)), dtype)
