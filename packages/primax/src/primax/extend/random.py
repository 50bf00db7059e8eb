"""Random key implementations: the reference's ``jax.extend.random``.

Requires the NumPy wheel: ``pip install 'primax[numpy]'``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence as _Sequence
from typing import Any, Final

from primax_core.extend import as_operand as _as_operand
from primax_core.typing import ArrayLike as _ArrayLike

from .._wheels import wheel as _wheel
from .core.primitives import threefry2x32_p as threefry2x32_p

_random: Any = _wheel("primax_numpy.random", "numpy")
_extend: Any = _wheel("primax_numpy.random.extend", "numpy")


def _implementation(name: str) -> Any:
    return _random.key_dtype(name).impl


rbg_prng_impl: Final = _implementation("rbg")
"""Keys with XLA's generator: fast, but platform-dependent."""
threefry_prng_impl: Final = _implementation("threefry2x32")
"""The default keys."""
unsafe_rbg_prng_impl: Final = _implementation("unsafe_rbg")
"""As ``rbg_prng_impl``, also for splitting keys; its streams are less well studied."""


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[[Any], Any],
    split: Callable[[Any, tuple[int, ...]], Any],
    random_bits: Callable[[Any, int, tuple[int, ...]], Any],
    fold_in: Callable[[Any, Any], Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> Any:
    """Define a key implementation, for ``random.key(seed, impl=...)``.

    Args:
      key_shape: shape of one key's words.
      seed: maps an integer scalar to a key, ``uint32[*key_shape]``.
      split: maps a key and a shape to keys, ``uint32[*shape, *key_shape]``.
      random_bits: maps a key, a width of 8, 16, 32 or 64, and a shape to unsigned integers.
      fold_in: maps a key and a ``uint32`` scalar to a key.
      name: the name of the implementation.
      tag: the tag in printed key types, as in ``key<tag>``.

    The implementation is passed as ``impl``, as in the reference; its name is not registered. The
    NumPy wheel registers names: ``primax_numpy.random.extend.register_prng_impl``.

    Raises:
      TypeError: if an argument has the wrong type.
      ValueError: if ``key_shape`` has no axis.
    """
    impl = _extend.define_prng_impl(
        name=name,
        tag=tag,
        key_shape=key_shape,
        seed=seed,
        split=split,
        random_bits=random_bits,
        fold_in=fold_in,
        counted=False,
    )
    return impl


def random_seed(seeds: _ArrayLike, impl: Any) -> Any:
    """Create an array of keys, one for each integer in ``seeds``."""
    if _ndim(seeds) == 0:
        return _random.key(seeds, impl=impl)
    from .core.primitives import random_seed_p

    return random_seed_p.bind(_as_operand(seeds), impl=_random.key_dtype(impl).impl)


def _ndim(x: Any) -> int:
    ndim: int = getattr(x, "ndim", 0)
    return ndim


def seed_with_impl(impl: Any, seed: _ArrayLike) -> Any:
    """Create a key from an integer."""
    return random_seed(seed, impl)


def threefry_2x32(keypair: _ArrayLike | _Sequence[_ArrayLike], count: _ArrayLike) -> Any:
    """Hash an array of counters with a key: the cipher of the default keys.

    Args:
      keypair: two ``uint32`` scalars, or an array of two.
      count: ``uint32[...]``.

    Returns:
      ``uint32`` words with the shape of ``count``.
    """
    from primax_core import lax

    first, second = keypair
    words = _as_operand(count)
    for x in (first, second, words):
        if x.dtype != "uint32":
            raise TypeError(f"threefry_2x32 takes uint32 words, got {x.dtype}")
    size = words.size
    flat = lax.reshape(words, (size,))
    if size % 2:
        flat = lax.pad(flat, flat.dtype.type(0), [(0, 1, 0)])
    half = (size + 1) // 2
    keys = [lax.broadcast(_as_operand(k), (half,)) for k in (first, second)]
    outs = threefry2x32_p.bind(*keys, flat[:half], flat[half:])
    joined = lax.concatenate(outs, 0)
    return lax.reshape(joined[:size], words.shape)
