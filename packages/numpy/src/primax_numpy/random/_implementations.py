"""Key implementations: seeding, splitting, folding and random bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import state, typeof

from . import _ciphers as ciphers
from ._ciphers import U32, UNSIGNED, counters, hashed_counts, joined, mixed, stacked
from ._key_dtypes import KeyDType, register_dtype


@dataclass(frozen=True, eq=False, repr=False)
class Implementation:
    """A random bit generator. Its functions take one key: ``uint32[*key_shape]``.

    Attributes:
      name: the public name.
      tag: the abbreviation in dtypes, as in ``key<fry>``.
      key_shape: the shape of the words of a key.
      seed: ``(integer scalar) -> key``.
      split: ``(key, shape) -> uint32[*shape, *key_shape]``.
      fold_in: ``(key, uint32 scalar) -> key``.
      bits: ``(key, width, shape) -> unsigned integers`` of 8, 16, 32 or 64 bits.
      counted: bits are a function of a counter, so that they are identical on all platforms and
        under ``vmap``.
    """

    name: str
    tag: str
    key_shape: tuple[int, ...]
    seed: Callable[[Any], Any]
    split: Callable[[Any, tuple[int, ...]], Any]
    fold_in: Callable[[Any, Any], Any]
    bits: Callable[[Any, int, tuple[int, ...]], Any]
    counted: bool = True

    @property
    def words(self) -> int:
        """The number of words of a key."""
        return math.prod(self.key_shape)

    @cached_property
    def dtype(self) -> KeyDType:
        """The dtype of the keys."""
        return KeyDType(self)

    def __repr__(self) -> str:
        return self.tag

    __str__ = __repr__


implementations: Final[dict[str, Implementation]] = {}


def _halves(seed: Any) -> tuple[Any, Any]:
    """High and low word of an integer."""
    dtype = typeof(seed).dtype
    low = lax.convert_element_type(seed, U32)
    if dtype.itemsize < 8:
        return lax.full((), 0, U32), low
    shifted = lax.shift_right_logical(seed, np.asarray(32, dtype)[()])
    return lax.convert_element_type(shifted, U32), low


_ZERO: Final = np.uint32(0)

# threefry2x32


def _threefry_seed(seed: Any) -> Any:
    return stacked(_halves(seed))


def _threefry_split(key: Any, shape: tuple[int, ...]) -> Any:
    if not state.threefry_partitionable:
        return lax.reshape(hashed_counts(key, 2 * math.prod(shape)), (*shape, 2))
    return stacked(ciphers.threefry2x32(key, *counters(shape)))


def _threefry_fold_in(key: Any, data: Any) -> Any:
    return stacked(ciphers.threefry2x32(key, _ZERO, data))


def _threefry_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    if not state.threefry_partitionable:
        return _bits_in_halves(key, width, shape)
    a, b = ciphers.threefry2x32(key, *counters(shape))
    return joined(a, b) if width == 64 else mixed((a, b), width)


_LONGEST: Final = 2**32 - 1


def _bits_in_halves(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    """The bits without ``threefry_partitionable``: every output word is used."""
    n = math.prod(shape)
    length = -(-width * n // 32)
    blocks, rest = divmod(length, _LONGEST)
    if not blocks:
        words = hashed_counts(key, length)
    else:
        keys = _threefry_split(key, (blocks + 1,))
        parts = [
            hashed_counts(lax.index_in_dim(keys, i, 0, keepdims=False), m)
            for i, m in enumerate([_LONGEST] * blocks + [rest])
        ]
        words = lax.concatenate(parts, 0)
    if width == 64:
        words = joined(lax.slice_in_dim(words, 0, n), lax.slice_in_dim(words, n, 2 * n))
    elif width < 32:
        parts = lax.bitcast_convert_type(words, UNSIGNED[width])  # low bits first
        words = lax.slice_in_dim(lax.reshape(parts, (length * (32 // width),)), 0, n)
    return lax.reshape(words, shape)


# rbg and unsafe_rbg: the platform's generator


def _doubled_seed(seed: Any) -> Any:
    half = _threefry_seed(seed)
    return lax.concatenate([half, half], 0)


def _on_halves(change: Callable[..., Any]) -> Callable[..., Any]:
    """A function of threefry keys applied to both halves of a key of four words."""

    def both(key: Any, argument: Any) -> Any:
        halves = [change(lax.slice_in_dim(key, i, i + 2), argument) for i in (0, 2)]
        return lax.concatenate(halves, halves[0].ndim - 1)

    return both


def _generated(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    return lax.rng_bit_generator(key, shape, UNSIGNED[width])[1]


_SPACING: Final = 10
"""Number of generated keys per key that is used."""


def _generated_split(key: Any, shape: tuple[int, ...]) -> Any:
    n = math.prod(shape)
    if not n:
        return lax.full((*shape, 4), 0, U32)
    generated = _generated(key, 32, (_SPACING * n, 4))
    return lax.reshape(lax.slice(generated, (0, 0), generated.shape, (_SPACING, 1)), (*shape, 4))


def _generated_fold_in(key: Any, data: Any) -> Any:
    generated = _generated(_doubled_seed(data), 32, (_SPACING, 4))
    return lax.bitwise_xor(key, lax.index_in_dim(generated, _SPACING - 1, 0, keepdims=False))


# threefry4x32, philox4x32, philox2x32


def _threefry4_seed(seed: Any) -> Any:
    key = stacked([*_halves(seed), lax.full((), 0, U32), lax.full((), 0, U32)])
    return stacked(ciphers.threefry4x32(key, [lax.full((), 0, U32)] * 4))


def _philox4_seed(seed: Any) -> Any:
    high, low = _halves(seed)
    block = ciphers.philox4x32(lax.full((2,), 0, U32), [high, low, _ZERO, _ZERO])
    return stacked(block[:2])


def _philox2_seed(seed: Any) -> Any:
    block = ciphers.philox2x32(lax.full((1,), 0, U32), list(_halves(seed)))
    return stacked(block[:1])


def _of_four(
    block: Callable[[Any, list[Any]], list[Any]], words: int
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Split, fold and bits functions of a cipher of four words."""

    def split(key: Any, shape: tuple[int, ...]) -> Any:
        high, low = counters(shape)
        zeros = lax.full(shape, 0, U32)
        return stacked(block(key, [zeros, zeros, high, low])[:words])

    def fold_in(key: Any, data: Any) -> Any:
        return stacked(block(key, [_ZERO, _ZERO, _ZERO, data])[:words])

    def bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
        high, low = counters(shape)
        zeros = lax.full(shape, 0, U32)
        out = block(key, [high, low, zeros, zeros])
        if width < 64:
            return mixed(out, width)
        if words == 4:
            return joined(lax.bitwise_xor(out[0], out[2]), lax.bitwise_xor(out[1], out[3]))
        return joined(out[0], out[1])

    return split, fold_in, bits


def _philox2_split(key: Any, shape: tuple[int, ...]) -> Any:
    return stacked(ciphers.philox2x32(key, counters(shape))[:1])


def _philox2_fold_in(key: Any, data: Any) -> Any:
    return stacked(ciphers.philox2x32(key, (_ZERO, data))[:1])


def _philox2_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    a, b = ciphers.philox2x32(key, counters(shape))
    return joined(a, b) if width == 64 else mixed((a, b), width)


for _implementation in (
    Implementation(
        "threefry2x32", "fry", (2,), _threefry_seed, _threefry_split, _threefry_fold_in,
        _threefry_bits,
    ),
    Implementation(
        "rbg", "rbg", (4,), _doubled_seed, _on_halves(_threefry_split),
        _on_halves(_threefry_fold_in), _generated, counted=False,
    ),
    Implementation(
        "unsafe_rbg", "urbg", (4,), _doubled_seed, _generated_split, _generated_fold_in,
        _generated, counted=False,
    ),
    Implementation(
        "threefry4x32", "fry4", (4,), _threefry4_seed, *_of_four(ciphers.threefry4x32, 4)
    ),
    Implementation("philox4x32", "phx4", (2,), _philox4_seed, *_of_four(ciphers.philox4x32, 2)),
    Implementation(
        "philox2x32", "phx2", (1,), _philox2_seed, _philox2_split, _philox2_fold_in, _philox2_bits
    ),
):  # fmt: skip
    implementations[_implementation.name] = _implementation
    register_dtype(_implementation.dtype)


def default_implementation() -> Implementation:
    """The implementation of raw keys, and of new keys by default."""
    return implementations[state.default_prng_impl]


def implementation_of(spec: Any) -> Implementation:
    """The implementation denoted by a name, a key dtype or ``None``.

    Raises:
      ValueError: if the name is unknown; the message lists the known names.
      TypeError: if the argument has another type.
    """
    if spec is None:
        return default_implementation()
    if isinstance(spec, Implementation):
        return spec
    if isinstance(spec, str):
        implementation = implementations.get(spec)
        if implementation is None:
            raise ValueError(
                f"unknown key implementation {spec!r}: use one of "
                f"{', '.join(map(repr, implementations))}"
            )
        return implementation
    implementation = getattr(spec, "impl", None)
    if isinstance(implementation, Implementation):
        return implementation
    raise TypeError(f"a key implementation must be a name or a key dtype, got {type(spec)}")
