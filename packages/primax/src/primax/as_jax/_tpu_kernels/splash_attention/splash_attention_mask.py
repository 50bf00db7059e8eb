"""Masks of attention: which keys each query sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class Mask:
    """A mask of shape ``shape``, (queries, keys); an index gives the NumPy array of a part."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of queries and keys."""
        raise NotImplementedError(f"{type(self).__name__} must define the property 'shape'")

    def __getitem__(self, index: Any) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__")

    def __or__(self, other: Mask) -> Mask:
        self._check(other)
        return NumpyMask(self[:, :] | other[:, :])

    def __and__(self, other: Mask) -> Mask:
        self._check(other)
        return NumpyMask(self[:, :] & other[:, :])

    def _check(self, other: Mask) -> None:
        if self.shape != other.shape:
            raise ValueError(
                f"masks of shapes {self.shape} and {other.shape} do not combine: give both the "
                "numbers of queries and of keys"
            )


class NumpyMask(Mask):
    """A mask given as a boolean array of shape (queries, keys)."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        if self.array.ndim != 2 or self.array.dtype != np.bool_:
            raise ValueError(
                f"a mask needs an array of booleans with axes (queries, keys), but it has shape "
                f"{self.array.shape} and dtype {self.array.dtype}; try array.astype(bool)"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of queries and keys."""
        return self.array.shape

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.asarray(self.array[index])


class CausalMask(NumpyMask):
    """Query ``i`` sees the keys up to ``i + offset``."""

    def __init__(self, shape: tuple[int, int], offset: int = 0, shard_count: int = 1) -> None:
        super().__init__(make_causal_mask(shape, offset))
        self.offset = offset


class LocalMask(NumpyMask):
    """Query ``i`` sees the keys from ``i + offset - left`` to ``i + offset + right``.

    Args:
      window_size: ``(left, right)``; ``None`` does not limit that side.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        window_size: tuple[int | None, int | None],
        offset: int,
        shard_count: int = 1,
    ) -> None:
        super().__init__(make_local_attention_mask(shape, window_size, offset=offset))
        self.window_size = window_size
        self.offset = offset


class ChunkedCausalMask(NumpyMask):
    """Each query sees the keys before it in its own chunk of ``chunk_size``."""

    def __init__(self, shape: tuple[int, int], chunk_size: int, shard_count: int = 1) -> None:
        super().__init__(make_chunk_attention_mask(shape, chunk_size))
        self.chunk_size = chunk_size


class FullMask(NumpyMask):
    """Each query sees all keys."""

    def __init__(self, _shape: tuple[int, int]) -> None:
        super().__init__(np.ones(_shape, bool))


class _ComputableMask(NumpyMask):
    """A mask given as a function of positions, from which libraries derive their own.

    Args:
      mask_function: a function of the positions of queries, of shape (queries, 1), and of keys, of
        shape (1, keys), that returns the booleans of shape (queries, keys).
    """

    def __init__(
        self,
        shape: tuple[int, int],
        mask_function: Callable[[np.ndarray, np.ndarray], Any],
        shard_count: int = 1,
    ) -> None:
        queries, keys = np.ogrid[: shape[0], : shape[1]]
        array = np.asarray(mask_function(queries.astype(np.int32), keys.astype(np.int32)))
        super().__init__(np.broadcast_to(array, shape))
        self._shape, self.mask_function = tuple(shape), mask_function


def _fill_slice(part: slice, size: int) -> slice:
    """A slice of an axis of this size with its start and stop as numbers."""
    return slice(*part.indices(size))


class MultiHeadMask(Mask):
    """One mask for each head; its shape is (heads, queries, keys)."""

    def __init__(self, masks: Sequence[Mask]) -> None:
        self.masks = tuple(masks)
        shapes = {mask.shape for mask in self.masks}
        if len(shapes) != 1 or any(isinstance(mask, MultiHeadMask) for mask in self.masks):
            raise ValueError(
                f"MultiHeadMask needs masks of one shape (queries, keys), but the shapes are "
                f"{sorted(shapes)}; give one mask for each head"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of heads, queries and keys."""
        return (len(self.masks), *self.masks[0].shape)

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.asarray(np.stack([mask[:, :] for mask in self.masks])[index])


def make_causal_mask(shape: tuple[int, int], offset: int = 0) -> np.ndarray:
    """The array in which query ``i`` sees the keys up to ``i + offset``."""
    return np.tri(*shape, k=offset, dtype=bool)


def make_local_attention_mask(
    shape: tuple[int, int], window_size: tuple[int | None, int | None], *, offset: int = 0
) -> np.ndarray:
    """The array in which query ``i`` sees a window around key ``i + offset``."""
    left, right = window_size
    distance = np.arange(shape[1]) - np.arange(shape[0])[:, None] - offset
    mask = np.ones(shape, bool)
    if left is not None:
        mask &= distance >= -left
    if right is not None:
        mask &= distance <= right
    return mask


def make_chunk_attention_mask(shape: tuple[int, int], chunk_size: int) -> np.ndarray:
    """The array in which a query sees the keys before it in its chunk.

    Raises:
      ValueError: if ``chunk_size`` is not positive.
    """
    if chunk_size <= 0:
        raise ValueError(f"chunk_size must be positive, but it is {chunk_size}")
    queries, keys = np.arange(shape[0])[:, None], np.arange(shape[1])
    return (queries // chunk_size == keys // chunk_size) & (keys <= queries)


def make_random_mask(shape: tuple[int, int], sparsity: float, seed: int) -> np.ndarray:
    """A random array in which a part ``sparsity`` of the keys is hidden."""
    np.random.seed(seed)  # the reference's stream
    return np.random.binomial(n=1, p=1.0 - sparsity, size=shape).astype(np.bool_)
