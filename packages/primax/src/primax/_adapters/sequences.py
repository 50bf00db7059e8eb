"""Small functions on sequences that interpreters are written with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def safe_zip(*sequences: Iterable[Any]) -> list[tuple[Any, ...]]:
    """As ``list(zip(...))``, for sequences of one length.

    Raises:
      ValueError: if they differ in length.
    """
    return list(zip(*sequences, strict=True))


def safe_map(fun: Callable[..., T], *sequences: Iterable[Any]) -> list[T]:
    """As ``list(map(...))``, for sequences of one length.

    Raises:
      ValueError: if they differ in length.
    """
    return [fun(*values) for values in zip(*sequences, strict=True)]


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first and the second entries of pairs."""
    listed = list(pairs)
    return tuple(a for a, _ in listed), tuple(b for _, b in listed)


def unzip3(
    triples: Iterable[tuple[Any, Any, Any]],
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """The first, second and third entries of triples."""
    listed = list(triples)
    return (
        tuple(a for a, _, _ in listed),
        tuple(b for _, b, _ in listed),
        tuple(c for _, _, c in listed),
    )


def split_list(values: Sequence[T], lengths: Sequence[int]) -> list[list[T]]:
    """Consecutive parts of a list, of the given lengths, and what is left.

    Raises:
      ValueError: if the list is shorter than the parts together.
    """
    if sum(lengths) > len(values):
        raise ValueError(f"parts of lengths {list(lengths)} of a list of {len(values)}")
    parts, start = [], 0
    for n in lengths:
        parts.append(list(values[start : start + n]))
        start += n
    return [*parts, list(values[start:])]


def partition_list(flags: Sequence[bool], values: Sequence[T]) -> tuple[list[T], list[T]]:
    """The values whose flag is false, and those whose flag is true."""
    pairs = safe_zip(flags, values)
    return [v for f, v in pairs if not f], [v for f, v in pairs if f]


def merge_lists(flags: Sequence[bool], false: Sequence[T], true: Sequence[T]) -> list[T]:
    """What :func:`partition_list` took apart."""
    rest, chosen = iter(false), iter(true)
    return [next(chosen) if f else next(rest) for f in flags]
