"""Rules of copies."""

from __future__ import annotations

from typing import Any

from .._copy_operations import CopyParts, copy_start_p, copy_wait_p
from .copies import View, await_copy, copy_at_once, start_copy, view_of
from .memory import Reference
from .registry import Context, mosaic
from .values import Value


def _view(ctx: Context, part: tuple[Reference, Any, list[Value]]) -> View:
    ref, index, operands = part
    pieces, _ = ref.pieces(ctx, index, operands)
    return view_of(ctx, ref, pieces)


def _is_semaphore(part: tuple[Reference, Any, list[Value]]) -> bool:
    return part[0].space == "semaphore_mem" and not part[0].is_semaphore


@copy_start_p.rule(mosaic)
def _start(ctx: Context, *operands: Any, parts: CopyParts, nbytes: int, add: bool) -> list[Value]:
    e = ctx.emitter
    source, target, *semaphores = parts.of(operands)
    if add:
        ref, index, positions = target
        old = e.words(ref.read(ctx, index, positions))
        value = e.words(source[0].read(ctx, *source[1:]))
        ref.write(ctx, e.from_words(e.add(old, value), ref.dtype), index, positions)
        if semaphores:
            raise ctx.error("a copy that adds, with a semaphore: use sync_copy(..., add=True)")
        return []
    views = _view(ctx, source), _view(ctx, target)
    if not semaphores:
        copy_at_once(e, *views)
        return []
    if not _is_semaphore(semaphores[0]):
        raise ctx.error("a copy with a semaphore that is none of kind SemaphoreType.DMA")
    start_copy(e, *views, _view(ctx, semaphores[0]))
    return []


@copy_wait_p.rule(mosaic)
def _wait(ctx: Context, *operands: Any, parts: CopyParts, nbytes: int, add: bool) -> list[Value]:
    source, target, semaphore = parts.of(operands)
    if not _is_semaphore(semaphore):
        raise ctx.error("a copy with a semaphore that is none of kind SemaphoreType.DMA")
    await_copy(ctx.emitter, _view(ctx, source), _view(ctx, target), _view(ctx, semaphore))
    return []
