"""Primitives of copies: one operation each, which TPUs make beside the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from primax_core import lax
from primax_core.extend import Primitive, expand, is_zero, jvp
from primax_core.extend.references import RefView, get_p, swap_p

from ._semaphores import COUNT

copy_start_p: Final[Primitive] = Primitive("copy_start", multiple_results=True)
"""The start of a copy; elsewhere than on TPUs, the copy."""

copy_wait_p: Final[Primitive] = Primitive("copy_wait", multiple_results=True)
"""The wait for a copy."""


class CopyParts(NamedTuple):
    """A source, a destination and a semaphore in the operands of a copy.

    Attributes:
      indices: the index of each in its reference.
      counts: numbers of operands of the indices.
    """

    indices: tuple[Any, ...]
    counts: tuple[int, ...]

    def of(self, operands: Sequence[Any]) -> list[tuple[Any, Any, list[Any]]]:
        """The reference, the index and the index's operands of each."""
        n = len(self.indices)
        rest, parts = list(operands[n:]), []
        for ref, index, count in zip(operands, self.indices, self.counts):
            parts.append((ref, index, rest[:count]))
            rest = rest[count:]
        return parts


def bind_copy(prim: Primitive, refs: Sequence[Any], nbytes: int, add: bool = False) -> bool:
    """Apply a primitive to a source, a destination and perhaps a semaphore.

    Returns:
      False, without an operation, if they are not different references or simple views of them.
    """
    views = [x if isinstance(x, RefView) else RefView(x, ...) for x in refs]
    bases = [v.base for v in views]
    if any(isinstance(b, RefView) for b in bases):
        return False
    if any(b is other for i, b in enumerate(bases) for other in bases[:i]):
        return False
    parts = CopyParts(tuple(v.index for v in views), tuple(len(v.operands) for v in views))
    operands = [x for v in views for x in v.operands]
    prim.bind(*bases, *operands, parts=parts, nbytes=nbytes, add=add)
    return True


@copy_start_p.rule(expand)
def _start(*operands: Any, parts: CopyParts, nbytes: int, add: bool) -> list[Any]:
    source, target, *semaphore = parts.of(operands)
    value = _get(source)
    _set(target, lax.add(_get(target), value) if add else value)
    for part in semaphore:
        _set(part, lax.add(_get(part), COUNT.type(nbytes)))
    return []


@copy_wait_p.rule(expand)
def _wait(*operands: Any, parts: CopyParts, nbytes: int, add: bool) -> list[Any]:
    _, _, semaphore = parts.of(operands)
    _set(semaphore, lax.sub(_get(semaphore), COUNT.type(nbytes)))
    return []


@copy_start_p.rule(jvp)
def _start_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, parts: CopyParts, nbytes: int, add: bool
) -> tuple[list[Any], list[Any]]:
    """Tangents are copied at once; the semaphore counts the copy of the values alone."""
    copy_start_p.bind(*primals, parts=parts, nbytes=nbytes, add=add)
    n = len(parts.indices)
    (of_source, index, operands), target, *_ = parts.of([*tangents[:n], *primals[n:]])
    if is_zero(target[0]):
        if not is_zero(of_source):
            raise NotImplementedError("a copy of values with tangents into a reference without")
        return [], []
    if not is_zero(of_source):
        value = _get((of_source, index, operands))
        _set(target, lax.add(_get(target), value) if add else value)
    elif not add:
        _set(target, lax.full_like(_get(target), 0))
    return [], []


@copy_wait_p.rule(jvp)
def _wait_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    copy_wait_p.bind(*primals, **params)
    return [], []


def _get(part: tuple[Any, Any, list[Any]]) -> Any:
    ref, index, operands = part
    return get_p.bind(ref, *operands, index=index)


def _set(part: tuple[Any, Any, list[Any]], value: Any) -> None:
    ref, index, operands = part
    swap_p.bind(ref, value, *operands, index=index)
