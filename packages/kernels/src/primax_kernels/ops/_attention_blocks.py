"""Blocks of attention's operands, in both orders of their axes."""

from __future__ import annotations

from typing import Any

from primax_core import ShapeDtypeStruct, lax

from .._block_specs import BlockSpec
from ._attention_masks import Config


def sizes_of(config: Config, q: Any) -> tuple[int, int, int, int]:
    """The batch, the number of key heads, that of heads of each, and ``d``."""
    if config.heads_first:
        batch, shared, group, _, d = q.shape
    else:
        batch, _, shared, group, d = q.shape
    return batch, shared, group, d


def heads_before(x: Any) -> Any:
    """Queries or keys with the axes of the heads before that of their positions."""
    last = x.ndim - 1
    return lax.transpose(x, (0, *range(2, last), 1, last))


def heads_behind(x: Any) -> Any:
    """The inverse of `heads_before`."""
    last = x.ndim - 1
    return lax.transpose(x, (0, last - 1, *range(1, last - 1), last))


def query_spec(config: Config, rows: int, d: int, dimension: int) -> BlockSpec:
    """Blocks of queries, which move with a dimension of the grid (batch, key head, ...).

    The dimension of the heads that share a key head is the other one of 2 and 3, or 2 before 3.
    """
    heads = 2 if dimension == 3 else 3
    if config.heads_first:
        return BlockSpec(
            (None, None, None, rows, d),
            lambda *ids: (ids[0], ids[1], ids[heads], ids[dimension], 0),
        )
    return BlockSpec(
        (None, rows, None, None, d),
        lambda *ids: (ids[0], ids[dimension], ids[1], ids[heads], 0),
    )


def key_spec(config: Config, rows: int, size: int, dimension: int) -> BlockSpec:
    """Blocks of keys or values, which move with a dimension of the grid (batch, key head, ...)."""
    if config.heads_first:
        return BlockSpec((None, None, rows, size), lambda *ids: (ids[0], ids[1], ids[dimension], 0))
    return BlockSpec((None, rows, None, size), lambda *ids: (ids[0], ids[dimension], ids[1], 0))


def statistics_type(config: Config, shape: tuple[int, ...], dtype: Any) -> ShapeDtypeStruct:
    """The type of numbers of each query, with the axes (batch, key head, head, query)."""
    return ShapeDtypeStruct((*shape, 1) if config.heads_first else shape, dtype)


def statistics_spec(config: Config, rows: int, dimension: int) -> BlockSpec:
    """Blocks of numbers of each query; columns in the order ``config.heads_first``."""
    heads = 2 if dimension == 3 else 3
    if config.heads_first:
        return BlockSpec(
            (None, None, None, rows, 1),
            lambda *ids: (ids[0], ids[1], ids[heads], ids[dimension], 0),
        )
    return BlockSpec(
        (None, None, None, rows), lambda *ids: (ids[0], ids[1], ids[heads], ids[dimension])
    )


def bias_spec(
    shape: tuple[int, ...], rows: int, columns: int, dimensions: tuple[int, int]
) -> BlockSpec:
    """Blocks of a bias with the axes (batch, key head, head, query, key); 1 for any but the last.

    Args:
      dimensions: dimensions of the grid with which queries and keys move.
    """
    heads = 2 if dimensions[0] == 3 else 3
    moves = (0, 1, heads, dimensions[0])

    def index(*ids: Any) -> tuple[Any, ...]:
        first = tuple(ids[d] if n > 1 else 0 for d, n in zip(moves, shape))
        return (*first, ids[dimensions[1]])

    return BlockSpec((None, None, None, rows if shape[3] > 1 else 1, columns), index)
