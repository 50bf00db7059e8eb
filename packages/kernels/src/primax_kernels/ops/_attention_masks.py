"""Scores of a block of queries and keys: scale, soft cap, bias, and the pairs that are masked."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import typeof

from ._common import accumulator, cast, filled, inside, product

LOWEST: Final = -1e30
"""Score of masked pairs, and of the maximum of no scores; finite, so that differences are."""


class Config(NamedTuple):
    """Options of attention that are known while tracing.

    Attributes:
      window: how many keys before and after its own position a query has; ``None``: all.
      offset: position of the first query.
      sizes: numbers of queries and of keys.
      block: queries and keys of a step.
      block_backward: the same for the derivative.
      heads_first: whether heads come before queries and keys in operands. A TPU has blocks of the
        last two axes of an array.
    """

    scale: float
    causal: bool
    window: tuple[int, int] | None
    offset: int
    soft_cap: float | None
    sizes: tuple[int, int]
    block: tuple[int, ...]
    block_backward: tuple[int, ...]
    heads_first: bool = False


class Scores(NamedTuple):
    """Scores of a block.

    Attributes:
      values: scores, ``LOWEST`` where the mask is false.
      mask: pairs that count, or ``None`` for all.
      capped: the hyperbolic tangent of the soft cap, or ``None``.
    """

    values: Any
    mask: Any
    capped: Any


def scores_of(
    config: Config, q: Any, k: Any, step: tuple[Any, Any], segments: Any = None, bias: Any = None
) -> Scores:
    """Scores of a block of queries ``(m, d)`` and keys ``(n, d)``.

    Args:
      step: numbers of the blocks along queries and keys.
      segments: segments of the queries ``(m, 1)`` and of the keys ``(1, n)``.
      bias: numbers that are added, of shape ``(m or 1, n)``.
    """
    wide = accumulator(typeof(q).dtype)
    values = product(q, k, (1, 1), wide) * wide.type(config.scale)
    capped = None
    if config.soft_cap is not None:
        capped = lax.tanh(values * wide.type(1 / config.soft_cap))
        values = capped * wide.type(config.soft_cap)
    if bias is not None:
        values = values + cast(bias, wide)
    first = [number * np.int32(size) for number, size in zip(step, (q.shape[0], k.shape[0]))]
    mask = mask_of(config, values.shape, first, segments, config.sizes[1] % k.shape[0] != 0)
    if mask is not None:
        values = lax.select(mask, values, filled(values.shape, LOWEST, wide))
    return Scores(values, mask, capped)


def mask_of(
    config: Config, shape: tuple[int, int], first: Any, segments: Any, partial: bool
) -> Any:
    """Pairs of a block that count, or ``None`` for all.

    Args:
      shape: numbers of queries and keys.
      first: positions of the first query and key.
      partial: whether the block may reach beyond the keys.
    """
    m, n = shape
    query = lax.broadcasted_iota(np.int32, (m, 1), 0) + (first[0] + np.int32(config.offset))
    key = lax.broadcasted_iota(np.int32, (1, n), 1) + first[1]
    parts = []
    if partial:
        parts.append(key < np.int32(config.sizes[1]))
    if config.causal:
        parts.append(key <= query)
    if config.window is not None:
        before, after = config.window
        parts.append(key >= query - np.int32(before))
        if not config.causal:
            parts.append(key <= query + np.int32(after))
    if segments is not None:
        parts.append(lax.broadcast_in_dim(segments[0], shape, (0, 1)) == segments[1])
    mask = None
    for part in parts:
        part = lax.broadcast_in_dim(part, shape, (0, 1))
        mask = part if mask is None else lax.bitwise_and(mask, part)
    return mask


def weights_of(scores: Scores, largest: Any) -> Any:
    """Exponentials of the scores minus ``largest``, 0 where they are masked."""
    weights = lax.exp(scores.values - largest)
    if scores.mask is None:
        return weights
    # Rows without any key have LOWEST as maximum, whose difference to itself is 0.
    return lax.select(scores.mask, weights, filled(weights.shape, 0, weights.dtype))


def rows_in(ref: Any, number: Any, size: int) -> Any:
    """A block of rows, whose elements outside of the array are 0."""
    return inside(ref[...], (0, number, size))
