"""Copies of the part of a block that is inside of its array.

A copy has a constant size, so that a block that may reach beyond the array is copied whole, or as
the rest of the array that its size leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .copies import View, copy_at_once, view_of
from .registry import Context
from .values import Value

if TYPE_CHECKING:
    from .memory import Piece, Reference


def copy_in(ctx: Context, there: Reference, pieces: Sequence[Piece], here: Reference) -> None:
    """Copy what a part has inside of an array to the same positions of vector memory."""
    _each_form(ctx, there, pieces, here, lambda far, near: copy_at_once(ctx.emitter, far, near))


def copy_out(ctx: Context, there: Reference, pieces: Sequence[Piece], here: Reference) -> None:
    """Copy from vector memory what a part has inside of an array."""
    _each_form(ctx, there, pieces, here, lambda far, near: copy_at_once(ctx.emitter, near, far))


def _each_form(
    ctx: Context, there: Reference, pieces: Sequence[Piece], here: Reference,
    copy: Callable[[View, View], None],
) -> None:  # fmt: skip
    """Emit a copy for each number of elements that a part may have inside of the array.

    Args:
      copy: emits it, from a part of the array and the part of the memory that corresponds to it.
    """
    from .control_rules import branch

    e = ctx.emitter

    def emit(axis: int, chosen: list[Piece]) -> list[Value]:
        if axis == len(pieces):
            near = [p._replace(start=e.index(0)) for p in chosen if not p.point]
            copy(view_of(ctx, there, chosen), view_of(ctx, here, near))
            return []
        piece, n = pieces[axis], there.shape[axis]
        start, size = piece.start, piece.size
        if start.bounds is not None and 0 <= start.bounds[0] and start.bounds[1] <= n - size:
            return emit(axis + 1, [*chosen, piece])
        if piece.stride != 1 or not start.divisible(size):
            raise ctx.error(
                f"a masked access to {size} elements along axis {axis} of a reference in memory "
                f"{there.space}, which begins at a position that is not known to be a multiple of "
                f"{size}: use blocks, or promise it with multiple_of(start, {size})"
            )
        rest = n % size

        def whole() -> list[Value]:
            inside = start.having((0, n - size), start.multiple)
            return emit(axis + 1, [*chosen, piece._replace(start=inside)])

        def remainder() -> list[Value]:
            last = piece._replace(start=e.index(n - rest), size=rest)
            return emit(axis + 1, [*chosen, last])

        def beyond() -> list[Value]:
            return branch(e, e.compare("eq", start, e.index(n - rest)), remainder, list)

        fits = e.compare("le", start, e.index(n - size))
        return branch(e, fits, whole, beyond if rest else list)

    emit(0, [])
