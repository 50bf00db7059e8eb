"""The registry of tree nodes, and flattening in jaxlib's C++.

The registry is private to this copy of the library: classes registered with jaxlib's own, or with
another copy of this library, are leaves. All functions here are C++ without a Python frame; the
functions with the documented parameter names are in `pytree`.
"""

from __future__ import annotations

import os
from typing import Any, Final

# Level of XLA's log messages; read when jaxlib is first imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

from jaxlib import _jax

_native: Final = _jax.pytree

PyTreeRegistry = _native.PyTreeRegistry
PyTreeDef = _native.PyTreeDef
SequenceKey = _native.SequenceKey
DictKey = _native.DictKey
GetAttrKey = _native.GetAttrKey
FlattenedIndexKey = _native.FlattenedIndexKey

registry: Final = PyTreeRegistry()
# A pickled tree definition refers to its registry by these two names.
registry.__name__ = "registry"
registry.__module__ = __name__

tree_flatten: Final = registry.flatten
"""``tree_flatten(tree, is_leaf=None) -> (leaves, treedef)``, arguments by position only."""

tree_unflatten: Final = PyTreeDef.unflatten
"""``tree_unflatten(treedef, leaves) -> tree``"""

flatten_with_path: Final = registry.flatten_with_path
"""``flatten_with_path(tree, is_leaf=None) -> ([(path, leaf)], treedef)``, ``is_leaf(path, node)``.
"""

flatten_one_level: Final = registry.flatten_one_level
is_node: Final = registry.is_node


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves of a tree."""
    return tree_flatten(tree)[0]


def tree_structure(tree: Any) -> PyTreeDef:
    """The definition of a tree's structure."""
    return tree_flatten(tree)[1]


def treedef_tuple(treedefs: Any) -> PyTreeDef:
    """The structure of a tuple of trees with the given structures.

    Args:
      treedefs: structures, such as results of :func:`tree_structure`.

    Returns:
      A ``PyTreeDef``. Its leaves are the leaves of the structures, in their order.

    Raises:
      TypeError: if ``treedefs`` cannot be iterated, or an element is not a structure.

    The inverse is :func:`treedef_children`.

    >>> from primax_core import tree_util
    >>> number, pair = tree_util.tree_structure(0), tree_util.tree_structure([0, 0])
    >>> tree_util.treedef_tuple([number, pair])
    PyTreeDef((*, [*, *]))
    """
    treedefs = list(treedefs)
    for i, treedef in enumerate(treedefs):
        if not isinstance(treedef, PyTreeDef):
            raise TypeError(
                f"treedef_tuple takes structures of trees (PyTreeDef), but element {i} is "
                f"{treedef!r}: convert it with tree_structure"
            )
    return _native.treedef_tuple(registry, treedefs)


def all_leaves(values: Any) -> bool:
    """Return True if no value is a node."""
    return _native.all_leaves(registry, values)


def flatten_one_level_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Any] | None:
    """Keys and children of a node, and its metadata; ``None`` for a leaf."""
    flattened = registry.flatten_one_level_with_keys(tree)
    if flattened is None:
        return None
    children, aux = flattened
    fields = getattr(tree, "_fields", None)
    if isinstance(tree, tuple) and fields is not None and type(tree) is aux:
        # jaxlib 0.10 gives every field of a named tuple the name of the first.
        children = zip(map(GetAttrKey, fields), tree, strict=True)
    return list(children), aux
