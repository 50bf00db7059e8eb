"""Copies between memories: views of references, and the operations that start and await copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import types
from .emitter import Emitter
from .registry import Context
from .types import INT32
from .values import Value

if TYPE_CHECKING:
    from .memory import Piece, Reference


class View(NamedTuple):
    """A part of a memory.

    Attributes:
      name: its name in the text.
      type: its type in the text.
    """

    name: str
    type: str


def view_of(ctx: Context, ref: Reference, pieces: Sequence[Piece]) -> View:
    """The part of a reference that pieces of its axes select.

    Raises:
      MosaicError: if a copy cannot begin or end there.
    """
    e = ctx.emitter
    sizes = tuple(p.size for p in pieces)
    name, type_ = ref.name, ref.type
    if sizes != ref.shape or any(p.start.known != 0 for p in pieces):
        starts = ", ".join(
            _start(ctx, ref, axis, piece).name for axis, piece in enumerate(pieces)
        )  # fmt: skip
        to = types.memory(ref.element, sizes, ref.space)
        name = e.op(f"tpu.memref_slice {name}[{starts}] : {type_} -> {to}", INT32).name
        type_ = to
    visible = tuple(p.size for p in pieces if not p.point)
    if visible != sizes:
        to = types.memory(ref.element, visible, ref.space)
        name = e.op(f"tpu.memref_squeeze {name} : {type_} -> {to}", INT32).name
        type_ = to
    return View(name, type_)


def _start(ctx: Context, ref: Reference, axis: int, piece: Piece) -> Value:
    """The first position of a copy along an axis, with a promise of the divisor that it has."""
    e = ctx.emitter
    start, n, rank = piece.start, ref.shape[axis], len(ref.shape)
    multiple = 1 if ref.space == "semaphore_mem" else types.tile(rank, ref.dtype)[axis]
    if piece.stride != 1:
        raise ctx.error("a copy with a stride; copy whole rows, and select elements after it")
    if start.known is not None and not 0 <= start.known <= n - piece.size:
        raise ctx.error(f"a copy of {piece.size} elements from {start.known} on, of {n}")
    last = axis == rank - 1
    partial = piece.size != n
    free = start.known is not None or piece.size == 1
    if partial and (piece.size % multiple if last else False):
        raise ctx.error(
            f"a copy of {piece.size} of {n} elements along the last axis, which are copied in "
            f"multiples of {multiple}"
        )
    if partial and not start.divisible(multiple) and (last or not free):
        raise ctx.error(
            f"a copy that begins at a position along axis {axis} that is not known to be a "
            f"multiple of {multiple}: compute it as a product with {multiple}, or promise it with "
            f"multiple_of(start, {multiple})"
        )
    if start.known is None and multiple > 1 and start.divisible(multiple):
        text = f"tpu.assume_multiple {start.name}, {multiple} : {start.type}"
        return e.op(text, start.dtype, (), start.bounds, multiple=multiple)
    return start


def start_copy(e: Emitter, source: View, target: View, semaphore: View) -> None:
    """Begin a copy."""
    e.line(
        f"tpu.enqueue_dma source({source.name} : {source.type}) target({target.name} : "
        f"{target.type}) target_semaphore({semaphore.name} : {semaphore.type})"
    )


def await_copy(e: Emitter, source: View, target: View, semaphore: View) -> None:
    """Wait for a copy."""
    e.line(
        f"tpu.wait_dma2 semaphore({semaphore.name} : {semaphore.type}) src({source.name} : "
        f"{source.type}) dst({target.name} : {target.type})"
    )


def copy_at_once(e: Emitter, source: View, target: View) -> None:
    """Make a copy, and wait for it."""
    semaphore = View(*e.memory(types.DMA_SEMAPHORE, (), "semaphore_mem"))
    start_copy(e, source, target, semaphore)
    await_copy(e, source, target, semaphore)


def is_constant_true(mask: Any) -> bool:
    """Return True if a mask is absent, or known to be true everywhere."""
    return mask is None or mask.known == 1
