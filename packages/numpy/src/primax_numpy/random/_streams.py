"""Many keys at once: a key of its own for each element of an array.

Loops that draw numbers for each element from the element's key carry the keys in this form. For
the default implementation it is the keys' words as arrays of their own, on which the cipher is
one elementwise program; for others it is an array of typed keys.
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
        """So many keys from each."""
        rows = [lax.expand_dims(w, (0,)) for w in self]
        numbers = lax.reshape(lax.iota(ciphers.U32, n), (n,) + (1,) * self.first.ndim)
        made = _block(*rows, numbers)
        return [Words(*(lax.index_in_dim(w, i, 0, keepdims=False) for w in made)) for i in range(n)]

    def words(self, width: int) -> Any:
        """One number of so many bits from each key."""
        a, b = _block(self.first, self.second, np.uint32(0))
        return ciphers.joined(a, b) if width == 64 else ciphers.mixed((a, b), width)


def _block(first: Any, second: Any, counter: Any) -> list[Any]:
    """The cipher, apart from what uses it: XLA would compute it anew for each use, and take
    minutes to compile where one block follows another."""
    made = lax.threefry2x32_p.bind(first, second, np.uint32(0), counter)
    return lax.optimization_barrier(made)  # type: ignore[no-any-return]


class Typed(NamedTuple):
    """Keys of any implementation as one array."""

    keys: Any

    def children(self, n: int) -> list[Typed]:
        """So many keys from each."""
        made = random_split_p.bind(self.keys, shape=(n,))
        axis = self.keys.ndim
        return [Typed(lax.index_in_dim(made, i, axis, keepdims=False)) for i in range(n)]

    def words(self, width: int) -> Any:
        """One number of so many bits from each key."""
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
    """A number in ``[0, 1)`` from each key."""
    return draws.uniform_of(stream.words(draws.drawn_width(dtype)), dtype)


def normals(stream: Stream, dtype: Any) -> Any:
    """A standard normal number from each key."""
    return draws.normal_of(stream.words(draws.drawn_width(dtype)), dtype)
