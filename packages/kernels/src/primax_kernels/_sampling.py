"""Random samples that do not depend on the sizes of blocks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primax_core import dtypes, lax
from primax_core.extend import random_unwrap_p, random_wrap_p, typeof

from ._grid import program_id
from ._helpers import cdiv
from ._typing import ArrayLike


def sample_block(
    sampler_fn: Callable[..., Any],
    global_key: ArrayLike,
    block_size: Sequence[int],
    tile_size: Sequence[int],
    total_size: Sequence[int],
    block_index: Sequence[Any] | None = None,
    **kwargs: Any,
) -> Any:
    """A block of random samples, the same for all sizes of blocks.

    An array of ``total_size`` consists of tiles, each of which has a key of its own, folded from
    ``global_key`` and its number. A block consists of whole tiles.

    Args:
      sampler_fn: function ``(key, shape=..., **kwargs)`` that returns samples, such as
        ``random.uniform``.
      global_key: a key of Threefry.
      block_size, tile_size, total_size: shapes; tiles divide blocks.
      block_index: number of the block along each axis, integers or scalars, by default
        ``program_id`` of each axis.
      kwargs: passed on to ``sampler_fn``.

    Returns:
      An array of shape ``block_size``.

    Raises:
      ValueError: if the sizes differ in length, or tiles do not divide blocks.
      TypeError: for a key of another generator.
    """
    block, tile, total = map(tuple, (block_size, tile_size, total_size))
    if not len(block) == len(tile) == len(total):
        raise ValueError(
            f"the sizes of block {block}, tile {tile} and array {total} have different lengths"
        )
    if any(n < 1 or b % n for b, n in zip(block, tile)):
        raise ValueError(f"tiles of size {tile} do not divide blocks of size {block}")
    if block_index is None:
        block_index = [program_id(d) for d in range(len(block))]
    if len(block_index) != len(block):
        raise ValueError(
            f"block_index has {len(block_index)} entries, the block {block} has {len(block)} axes"
        )
    counts = [b // n for b, n in zip(block, tile)]
    tiles = [cdiv(n, t) for n, t in zip(total, tile)]
    samples: dict[tuple[int, ...], Any] = {}
    for position in itertools.product(*map(range, counts)):
        number: Any = np.int32(0)
        for index, count, own, size in zip(block_index, counts, position, tiles):
            index = lax.convert_element_type(index, np.int32)
            index = lax.add(lax.mul(index, np.int32(count)), np.int32(own))
            number = lax.add(lax.mul(number, np.int32(size)), index)
        samples[position] = sampler_fn(_folded(global_key, number), shape=tile, **kwargs)
    return _joined(samples, counts)


def _folded(key: Any, number: Any) -> Any:
    """A key and a number as a new key, as ``random.fold_in`` of Threefry has it.

    The new key is the number's block of the cipher Threefry-2x32 (Salmon et al., 2011).
    """
    aval = typeof(key)
    impl = (
        getattr(aval.dtype, "impl", None)
        if dtypes.issubdtype(aval.dtype, dtypes.prng_key)
        else None
    )
    words = key if impl is None else random_unwrap_p.bind(key)
    aval_of_words = typeof(words)
    if (
        aval_of_words.shape != (2,)
        or aval_of_words.dtype != np.dtype(np.uint32)
        or (impl is not None and impl.tag != "fry")
    ):
        raise TypeError(f"sample_block takes one key of Threefry, got {aval}")
    first, second = (lax.index_in_dim(words, i, 0, keepdims=False) for i in (0, 1))
    low = lax.convert_element_type(number, np.uint32)
    row = [
        lax.broadcast(w, (1,)) for w in lax.threefry2x32_p.bind(first, second, np.uint32(0), low)
    ]
    folded = lax.concatenate(row, 0)
    return folded if impl is None else random_wrap_p.bind(folded, impl=impl)


def _joined(samples: dict[tuple[int, ...], Any], counts: Sequence[int]) -> Any:
    """Tiles by their positions as one array."""
    for axis in reversed(range(len(counts))):
        samples = {
            before: lax.concatenate([samples[(*before, i)] for i in range(counts[axis])], axis)
            for before in itertools.product(*map(range, counts[:axis]))
        }
    return samples[()]
