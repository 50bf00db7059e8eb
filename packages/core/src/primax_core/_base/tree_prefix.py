"""Tree prefixes: trees with leaves in place of subtrees of another tree.

`flatten_axes` and `broadcast_prefix` repeat each leaf of a prefix for each leaf of its subtree. If
a tree is not a prefix, `prefix_errors` returns the key paths and the reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from ._pytree_native import (
    PyTreeDef,
    flatten_one_level_with_keys,
    tree_flatten,
)
from .tree_keys import KeyPath, keystr

_LeafPredicate = Callable[[Any], bool]


class PrefixMismatch(NamedTuple):
    """A key path at which a tree is not a prefix of another."""

    path: KeyPath[Any]
    summary: str
    detail: str

    def error(self, name: str) -> ValueError:
        """The error for a prefix with a name in the user's code, such as ``vmap in_axes``."""
        return ValueError(
            f"pytree structure error: {self.summary} at key path\n"
            f"    {name}{keystr(self.path)}\n{self.detail}"
        )


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: _LeafPredicate | None = None
) -> list[PrefixMismatch]:
    """The mismatches between ``prefix_tree`` and ``full_tree``; empty if it is a prefix.

    ``is_leaf`` applies to nodes of the prefix.
    """
    leaves, treedef = tree_flatten(full_tree)
    return _mismatches(prefix_tree, treedef, leaves, is_leaf)


def _mismatches(
    prefix: Any,
    treedef: PyTreeDef,
    leaves: list[Any] | None,
    is_leaf: _LeafPredicate | None,
    path: KeyPath[Any] = (),
) -> list[PrefixMismatch]:
    """Compare a prefix with a structure; ``leaves`` are its leaves, for their types, or
    ``None``.
    """
    keyed = None if is_leaf is not None and is_leaf(prefix) else flatten_one_level_with_keys(prefix)
    if keyed is None:
        return []
    _, prefix_def = tree_flatten(prefix, lambda node: node is not prefix)
    node = treedef.node_data()
    own = prefix_def.node_data()
    assert own is not None  # the prefix is a node, because it has keys
    kind = type(prefix)
    if node is None or node[0] is not kind:
        return [_different_types(path, kind, node, leaves)]
    keys = [key for key, _ in keyed[0]]
    subtrees = treedef.children()
    if len(keys) != len(subtrees):
        return [_different_lengths(path, prefix, keys, node, len(subtrees))]
    if own != node:
        return [_different_metadata(path, kind, own[1], node[1])]
    mismatches: list[PrefixMismatch] = []
    start = 0
    for (key, child), subtree in zip(keyed[0], subtrees, strict=True):
        end = start + subtree.num_leaves
        own_leaves = None if leaves is None else leaves[start:end]
        mismatches += _mismatches(child, subtree, own_leaves, is_leaf, (*path, key))
        start = end
    return mismatches


def _different_types(
    path: KeyPath[Any], kind: type, node: Any, leaves: list[Any] | None
) -> PrefixMismatch:
    if node is not None:
        other = f"a node of type\n    {node[0]}"
    elif leaves:
        other = f"a leaf of type\n    {type(leaves[0])}"
    else:
        other = "a leaf"
    detail = f"There the prefix tree has a node of type\n    {kind}\nand the full tree has {other}."
    if kind is type(None):
        detail += (
            "\nNone is a tree without leaves. To use it as a leaf in place of a subtree, pass "
            "is_leaf=lambda x: x is None if the function accepts is_leaf."
        )
    return PrefixMismatch(path, "different types", detail)


def _different_lengths(
    path: KeyPath[Any], prefix: Any, keys: list[Any], node: Any, full_length: int
) -> PrefixMismatch:
    kind = type(prefix)
    if kind in (list, tuple):
        return PrefixMismatch(
            path,
            f"different lengths of {kind.__name__}",
            f"There the prefix tree has a {kind.__name__} of length {len(keys)} and the full tree "
            f"has a {kind.__name__} of length {full_length}.",
        )
    detail = (
        f"There both trees have a node of type\n    {kind}\nbut in the prefix tree it has "
        f"{_children(len(keys))}, in the full tree {_children(full_length)}."
    )
    if kind is dict:
        detail += _key_differences(set(prefix), set(node[1]))
    return PrefixMismatch(path, "different numbers of pytree children", detail)


def _children(count: int) -> str:
    return "1 child" if count == 1 else f"{count} children"


def _key_differences(prefix_keys: set[Any], full_keys: set[Any]) -> str:
    text = ""
    for keys, where in (
        (prefix_keys - full_keys, "prefix"),
        (full_keys - prefix_keys, "full"),
    ):
        if keys:
            listed = ", ".join(sorted(map(repr, keys)))
            text += f"\nKeys in the {where} tree only: {listed}."
    return text


def _different_metadata(path: KeyPath[Any], kind: type, own: Any, other: Any) -> PrefixMismatch:
    detail = (
        f"There both trees have a node of type\n    {kind}\nbut in the prefix tree its metadata "
        f"is\n    {own}\nand in the full tree\n    {other}"
    )
    if kind is dict:
        detail += _key_differences(set(own), set(other))
    return PrefixMismatch(path, "different pytree metadata", detail)


def broadcast_prefix(
    prefix_tree: Any, full_tree: Any, is_leaf: _LeafPredicate | None = None
) -> list[Any]:
    """The leaves of the prefix, each repeated for the leaves of its subtree of the full tree.

    ``is_leaf`` applies to nodes of the prefix.

    >>> from primax_core._base.tree_prefix import broadcast_prefix
    >>> broadcast_prefix([0, 1], [{"a": 5, "b": 6}, 7])
    [0, 0, 1]
    """
    leaves, prefix_def = tree_flatten(prefix_tree, is_leaf)
    try:
        subtrees = prefix_def.flatten_up_to(full_tree)
    except ValueError:
        raise_prefix_error("broadcast_prefix prefix_tree", prefix_tree, full_tree, is_leaf)
    result: list[Any] = []
    for leaf, subtree in zip(leaves, subtrees, strict=True):
        result += [leaf] * len(tree_flatten(subtree)[0])
    return result


def raise_prefix_error(
    name: str, prefix_tree: Any, full_tree: Any, is_leaf: _LeafPredicate | None = None
) -> NoReturn:
    """Inside an ``except``: raise the first prefix error, or the current error if there is none."""
    mismatches = prefix_errors(prefix_tree, full_tree, is_leaf)
    if not mismatches:
        raise
    raise mismatches[0].error(name) from None


def _is_none(x: Any) -> bool:
    return x is None


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: Any) -> list[Any]:
    """One entry of ``axis_tree`` for each leaf of a tree of structure ``treedef``.

    ``axis_tree`` is a prefix of that tree in which ``None`` is a leaf. ``name`` is its name in the
    user's code, such as ``vmap in_axes``; errors contain it and the key path.

    >>> from primax_core import tree_util
    >>> from primax_core._base.tree_prefix import flatten_axes
    >>> flatten_axes("vmap in_axes", tree_util.tree_structure([1, (2, 3)]), [0, None])
    [0, None, None]
    """
    if axis_tree is None or type(axis_tree) is int:
        return [axis_tree] * treedef.num_leaves
    axes, axis_def = tree_flatten(axis_tree, _is_none)
    counts = _leaf_counts(axis_def, treedef)
    if counts is None:
        _raise_axes_error(name, treedef, axis_tree)
    if len(counts) == treedef.num_leaves and set(counts) <= {1}:
        return axes
    return [axis for axis, count in zip(axes, counts, strict=True) for _ in range(count)]


@lru_cache(maxsize=4096)
def _leaf_counts(prefix_def: PyTreeDef, treedef: PyTreeDef) -> list[int] | None:
    """Number of leaves for each leaf of a prefix; ``None`` if it is not a prefix."""
    node = prefix_def.node_data()
    if node is None:
        return [treedef.num_leaves]
    if node != treedef.node_data():
        return None
    children, subtrees = prefix_def.children(), treedef.children()
    if len(children) != len(subtrees):
        return None
    counts: list[int] = []
    for child, subtree in zip(children, subtrees, strict=True):
        own = _leaf_counts(child, subtree)
        if own is None:
            return None
        counts += own
    return counts


def _raise_axes_error(name: str, treedef: PyTreeDef, axis_tree: Any) -> NoReturn:
    mismatches = _mismatches(axis_tree, treedef, None, _is_none)
    if not mismatches:
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value, got "
            f"specification {axis_tree} for value tree {treedef}."
        )
    details = "\n".join(str(mismatch.error(name)) for mismatch in mismatches)
    raise ValueError(
        f"{name} specification must be a tree prefix of the corresponding value; "
        f"mismatches ({len(mismatches)} found):\n{details}"
    )
