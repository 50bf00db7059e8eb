"""Utilities for sequences, used by interpreters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def safe_zip(*sequences: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Like ``list(zip(...))``, for sequences of equal length.

    Raises:
      ValueError: if the lengths differ.
    """
    return list(zip(*sequences, strict=True))


def safe_map(fun: Callable[..., T], *sequences: Iterable[Any]) -> list[T]:
    """Like ``list(map(...))``, for sequences of equal length.

    Raises:
      ValueError: if the lengths differ.
    """
    return [fun(*values) for values in zip(*sequences, strict=True)]


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Unzip pairs into their first and second entries."""
    listed = list(pairs)
    return tuple(a for a, _ in listed), tuple(b for _, b in listed)


def unzip3(
    triples: Iterable[tuple[Any, Any, Any]],
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """Unzip triples into their first, second and third entries."""
    listed = list(triples)
    return (
        tuple(a for a, _, _ in listed),
        tuple(b for _, b, _ in listed),
        tuple(c for _, _, c in listed),
    )


def split_list(values: Sequence[T], lengths: Sequence[int]) -> list[list[T]]:
    """Split a list into consecutive parts of the given lengths and the remainder.

    Raises:
      ValueError: if the list is shorter than the sum of the lengths.
    """
    if sum(lengths) > len(values):
        raise ValueError(f"cannot split {len(values)} values into parts of {list(lengths)}")
    parts, start = [], 0
    for n in lengths:
        parts.append(list(values[start : start + n]))
        start += n
    return [*parts, list(values[start:])]


def partition_list(flags: Sequence[bool], values: Sequence[T]) -> tuple[list[T], list[T]]:
    """Return the values whose flag is false, and those whose flag is true."""
    pairs = safe_zip(flags, values)
    return [v for f, v in pairs if not f], [v for f, v in pairs if f]


def merge_lists(flags: Sequence[bool], false: Sequence[T], true: Sequence[T]) -> list[T]:
    """Invert :func:`partition_list`."""
    rest, chosen = iter(false), iter(true)
    return [next(chosen) if f else next(rest) for f in flags]
