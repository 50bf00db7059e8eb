"""Pytrees."""

from primax._adapters.registry import registered
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
