"""Arrays and the blocks that the steps of a kernel take of them."""

from __future__ import annotations

from collections.abc import Sequence

from .._block_mapping import BlockMapping


def is_covered(mapping: BlockMapping, grid: Sequence[int]) -> bool:
    """Return True if the blocks of all steps are the whole array."""
    if 0 in grid:
        return False
    for form, extent, n in zip(mapping.forms, mapping.extents, mapping.aval.shape):
        if form is None or any(extent.padding):
            return False
        if extent.size >= n and form.is_constant and form.constant == 0:
            continue
        d = form.dimension
        if d is None or extent.step != extent.size or -(-n // extent.size) > grid[d]:
            return False
    return True


def same_blocks(x: BlockMapping, y: BlockMapping) -> bool:
    """Return True if two operands have the same blocks in each step."""
    return x.extents == y.extents and None not in x.forms and x.forms == y.forms


def depends_on(mapping: BlockMapping, dimensions: Sequence[int]) -> bool:
    """Return True if the block may move with some dimensions of the grid."""
    return any(f is None or any(f.coefficients[d] for d in dimensions) for f in mapping.forms)
