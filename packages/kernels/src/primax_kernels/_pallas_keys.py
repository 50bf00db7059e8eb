"""Random keys for kernels: two words in one row."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

import numpy as np

from primax_core import dtypes, lax, vmap
from primax_core.extend import random_unwrap_p, random_wrap_p, typeof

from ._random_bits import U32, threefry
from ._typing import ArrayLike

_NAME: Final = "pallas_tpu"
_PARTS: Final = ("name", "tag", "key_shape", "seed", "split", "fold_in", "bits")
_KEY: Final = (1, 2)

_implementations: dict[type, Any] = {}
"""The implementation of keys for kernels, by the class that describes implementations."""


def to_pallas_key(key: ArrayLike) -> Any:
    """A key for kernels from a random key.

    Args:
      key: a key, or an array of them, of any generator that draws bits.

    Returns:
      Keys of the same shape with the implementation ``pallas_tpu``, whose words are drawn from
      ``key``: an array of shape ``(1, 2)`` each. In a kernel, ``prng_seed(*key_data)`` and the
      functions of ``random`` take it. Bits are those of Threefry-2x32 with 20 rounds (Salmon et
      al., 2011), on all platforms and also outside of kernels. `fold_in` makes further keys.

    Raises:
      TypeError: for anything but keys.

    A key for kernels is returned as it is. ``vmap`` applies.
    """
    aval = typeof(key)
    if not dtypes.issubdtype(aval.dtype, dtypes.prng_key):
        raise TypeError(
            f"to_pallas_key takes random keys, as of random.key, got {aval}: wrap words with "
            "random.wrap_key_data first"
        )
    impl = getattr(aval.dtype, "impl", None)
    if getattr(impl, "name", None) == _NAME:
        return key
    if not is_dataclass(impl) or not {f.name for f in fields(impl)}.issuperset(_PARTS):
        raise TypeError(f"to_pallas_key takes keys of a generator of primax, got {aval}")
    words = random_unwrap_p.bind(key)
    flat = lax.reshape(words, (math.prod(aval.shape), *impl.key_shape))
    drawn = vmap(lambda one: impl.bits(one, 32, _KEY))(flat)
    shaped = lax.reshape(drawn, (*aval.shape, *_KEY))
    return random_wrap_p.bind(shaped, impl=_implementation(impl))


def _implementation(like: Any) -> Any:
    own = _implementations.get(type(like))
    if own is None:
        own = replace(
            like, name=_NAME, tag="pl", key_shape=_KEY, seed=_seed, split=_split, fold_in=_fold_in,
            bits=_bits,
        )  # fmt: skip
        own = _implementations.setdefault(type(like), own)
    return own


def _row(words: Any) -> Any:
    return lax.reshape(lax.concatenate([lax.reshape(w, (1,)) for w in words], 0), _KEY)


def _words(key: Any) -> list[Any]:
    flat = lax.reshape(key, (2,))
    return [lax.index_in_dim(flat, i, 0, keepdims=False) for i in (0, 1)]


def _seed(seed: Any) -> Any:
    zero = lax.full((), 0, U32)
    return _row(threefry([zero, lax.convert_element_type(seed, U32)], [zero, zero]))


def _split(key: Any, shape: tuple[int, ...]) -> Any:
    raise NotImplementedError(
        "a key for kernels (pallas_tpu) is not split: random.fold_in makes further keys, with "
        "numbers such as program_id"
    )


def _fold_in(key: Any, data: Any) -> Any:
    return _row(threefry(_words(key), [lax.full((), 1, U32), lax.convert_element_type(data, U32)]))


def _bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    size = math.prod(shape)
    first, second = (lax.broadcast(w, (size,)) for w in _words(key))
    a, b = threefry([first, second], [lax.full((size,), 0, U32), lax.iota(U32, size)])
    if width == 64:
        wide = np.dtype(np.uint64)
        high = lax.shift_left(lax.convert_element_type(a, wide), lax.full((size,), 32, wide))
        return lax.reshape(lax.bitwise_or(high, lax.convert_element_type(b, wide)), shape)
    bits = lax.bitwise_xor(a, b)
    bits = lax.shift_right_logical(bits, lax.full((size,), 32 - width, U32)) if width < 32 else bits
    return lax.reshape(lax.convert_element_type(bits, np.dtype(f"uint{width}")), shape)
