"""Key paths: locations in a tree."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

from ._pytree_native import (
    DictKey as DictKey,
    FlattenedIndexKey as FlattenedIndexKey,
    GetAttrKey as GetAttrKey,
    SequenceKey as SequenceKey,
)

KeyEntry = TypeVar("KeyEntry")
"""One step of a key path: one of the four classes here, or a key of a registered type."""

KeyPath: TypeAlias = tuple[KeyEntry, ...]
"""The steps from the root of a tree to one of its nodes."""


def keystr(keys: KeyPath[Any], *, simple: bool = False, separator: str = "") -> str:
    """A key path as text, in the notation of Python expressions.

    Args:
      keys: a tuple of keys, as :func:`tree_flatten_with_path` returns it.
      simple: print the keys without brackets, dots and quotes.
      separator: text between the keys; mostly used with ``simple``.

    Returns:
      A string; empty for the path of a tree that is a leaf.

    Raises:
      TypeError: if ``keys`` cannot be iterated.

    Errors of this library name leaves in this notation.

    >>> from primax_core.tree_util import DictKey, SequenceKey, keystr
    >>> keystr((SequenceKey(1), DictKey("a")))
    "[1]['a']"
    >>> keystr((SequenceKey(1), DictKey("a")), simple=True, separator="/")
    '1/a'
    """
    return separator.join([_bare(key) if simple else str(key) for key in keys])


def _bare(key: Any) -> str:
    if isinstance(key, SequenceKey):
        return str(key.idx)
    if isinstance(key, (DictKey, FlattenedIndexKey)):
        return str(key.key)
    if isinstance(key, GetAttrKey):
        return key.name
    return str(key)
