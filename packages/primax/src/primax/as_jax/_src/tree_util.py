"""Pytrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primax._adapters.registry import registered
from primax_core.extend import facade
from primax_core.tree_util import *
from primax_core.tree_util import (
    DictKey as DictKey,
    FlattenedIndexKey as FlattenedIndexKey,
    GetAttrKey as GetAttrKey,
    SequenceKey as SequenceKey,
    flatten_one_level as flatten_one_level,
)

BuiltInKeyEntry = SequenceKey | DictKey | GetAttrKey | FlattenedIndexKey
_registry = registered


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """The mismatches between a tree and a prefix, as functions of the prefix's name in the user's
    code that return the error."""
    return [mismatch.error for mismatch in facade.prefix_errors(prefix_tree, full_tree, is_leaf)]
