"""Pytree prefixes of shardings."""

from __future__ import annotations

from typing import Any

from primax_core.tree_util import tree_flatten, tree_map


def broadcast_prefix(prefix: Any, tree: Any) -> list[Any]:
    """The entry of a prefix for each leaf of a tree.

    Raises:
      ValueError: if it is not a prefix of the tree.
    """
    entries: list[Any] = []

    def repeat(entry: Any, subtree: Any) -> None:
        entries.extend([entry] * len(tree_flatten(subtree)[0]))

    tree_map(repeat, prefix, tree)
    return entries
