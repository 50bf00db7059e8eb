"""Pytrees: nested containers with leaves; flattening, unflattening and mapping.

Lists, tuples, named tuples, dictionaries, ``None`` (without leaves) and registered classes are
nodes; everything else is a leaf. Internal callers that do not need the parameter names use
`_pytree_native`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn

from ._pytree_native import (
    PyTreeDef as PyTreeDef,
    PyTreeRegistry as PyTreeRegistry,
    all_leaves as _all_leaves,
    flatten_one_level as _flatten_one_level,
    flatten_one_level_with_keys as _flatten_one_level_with_keys,
    flatten_with_path as _flatten_with_path,
    is_node,
    registry as registry,
    tree_flatten as _flatten,
    treedef_tuple as treedef_tuple,
)
from .tree_keys import (
    DictKey as DictKey,
    FlattenedIndexKey as FlattenedIndexKey,
    GetAttrKey as GetAttrKey,
    KeyEntry as KeyEntry,
    KeyPath as KeyPath,
    SequenceKey as SequenceKey,
    keystr as keystr,
)
from .tree_prefix import (
    PrefixMismatch as PrefixMismatch,
    broadcast_prefix as broadcast_prefix,
    flatten_axes as flatten_axes,
    prefix_errors as prefix_errors,
    raise_prefix_error,
)
from .tree_register import (
    Partial as Partial,
    register_dataclass as register_dataclass,
    register_pytree_node as register_pytree_node,
    register_pytree_node_class as register_pytree_node_class,
    register_pytree_with_keys as register_pytree_with_keys,
    register_pytree_with_keys_class as register_pytree_with_keys_class,
    register_static as register_static,
    static as static,
)

_LeafPredicate = Callable[..., bool]

default_registry: Final = registry


class _Unspecified:
    """Default of a parameter that accepts ``None`` as a value."""

    def __repr__(self) -> str:
        return "..."


_unspecified: Final = _Unspecified()


def tree_flatten(tree: Any, is_leaf: _LeafPredicate | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree, and its structure.

    ``is_leaf(node)`` may declare that a node is a leaf.

    >>> from primax_core import tree_util
    >>> tree_util.tree_flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    return _flatten(tree, is_leaf)


def tree_leaves(tree: Any, is_leaf: _LeafPredicate | None = None) -> list[Any]:
    """The leaves of a tree.

    >>> from primax_core import tree_util
    >>> tree_util.tree_leaves([1, (2, None)], is_leaf=lambda x: x is None)
    [1, 2, None]
    """
    return _flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: _LeafPredicate | None = None) -> PyTreeDef:
    """The structure of a tree.

    >>> from primax_core import tree_util
    >>> tree_util.tree_structure([1, (2, None)])
    PyTreeDef([*, (*, None)])
    """
    return _flatten(tree, is_leaf)[1]


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with given leaves.

    >>> from primax_core import tree_util
    >>> leaves, treedef = tree_util.tree_flatten([1, (2, None)])
    >>> tree_util.tree_unflatten(treedef, leaves)
    [1, (2, None)]
    """
    return treedef.unflatten(leaves)


def tree_map(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: _LeafPredicate | None = None
) -> Any:
    """A tree of the results of ``f`` on corresponding leaves of the trees.

    The first tree must be a prefix of the others; otherwise ``ValueError`` gives the key path.

    >>> from primax_core import tree_util
    >>> tree_util.tree_map(lambda x, y: x + y, [1, {"a": 2}], [10, {"a": 20}])
    [11, {'a': 22}]
    """
    leaves, treedef = _flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in leaves])
    columns = [leaves, *_flatten_up_to(treedef, tree, rest, is_leaf)]
    return treedef.unflatten([f(*xs) for xs in zip(*columns, strict=True)])


def _flatten_up_to(
    treedef: PyTreeDef, tree: Any, rest: tuple[Any, ...], is_leaf: _LeafPredicate | None
) -> list[list[Any]]:
    columns = []
    for other in rest:
        try:
            columns.append(treedef.flatten_up_to(other))
        except ValueError:
            raise_prefix_error("tree_map tree", tree, other, is_leaf)
    return columns


def tree_all(tree: Any, *, is_leaf: _LeafPredicate | None = None) -> bool:
    """Return True if all leaves are true.

    >>> from primax_core import tree_util
    >>> tree_util.tree_all([True, {"a": 0}])
    False
    """
    return all(_flatten(tree, is_leaf)[0])


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _unspecified,
    is_leaf: _LeafPredicate | None = None,
) -> Any:
    """``functools.reduce`` over the leaves.

    >>> from primax_core import tree_util
    >>> tree_util.tree_reduce(lambda a, b: a + b, [1, (2, 3)])
    6
    """
    leaves = _flatten(tree, is_leaf)[0]
    if initializer is _unspecified:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _unspecified,
    is_leaf: _LeafPredicate | None = None,
) -> Any:
    """Reduce the leaves by halves, so that the chain of dependent operations is short.

    The order of the leaves is kept. ``identity`` is the result for a tree without leaves.

    >>> from primax_core import tree_util
    >>> tree_util.tree_reduce_associative(lambda a, b: f"({a}{b})", list("abcd"))
    '((ab)(cd))'
    """
    leaves = _flatten(tree, is_leaf)[0]
    if not leaves:
        if identity is _unspecified:
            raise TypeError("a tree without leaves can be reduced only if identity is given")
        return identity

    def reduce_range(start: int, end: int) -> Any:
        if end - start == 1:
            return leaves[start]
        middle = (start + end) // 2
        return operation(reduce_range(start, middle), reduce_range(middle, end))

    return reduce_range(0, len(leaves))


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Transpose a tree of trees: structure outer of inner becomes inner of outer.

    Without ``inner_treedef`` the structure of the first subtree is used. ``TypeError`` if the
    structures do not match.

    >>> from primax_core import tree_util
    >>> outer = tree_util.tree_structure([0, 0])
    >>> tree_util.tree_transpose(outer, None, [(1, 2), (3, 4)])
    ([1, 3], [2, 4])
    """
    leaves, treedef = _flatten(pytree_to_transpose)
    if inner_treedef is None:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
        if not subtrees:
            raise TypeError("inner_treedef is required if outer_treedef has no leaves")
        inner_treedef = _flatten(subtrees[0])[1]
    inner_size, outer_size = inner_treedef.num_leaves, outer_treedef.num_leaves
    if treedef.num_leaves != inner_size * outer_size:
        raise TypeError(
            f"Mismatch: the tree to transpose has structure\n    {treedef}\nbut outer_treedef of "
            f"inner_treedef is\n    {outer_treedef.compose(inner_treedef)}"
        )
    rows = [leaves[i : i + inner_size] for i in range(0, len(leaves), inner_size or 1)]
    columns = zip(*rows, strict=True) if rows else ((),) * inner_size
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: _LeafPredicate | None = None) -> Any:
    """A tree of the full tree's structure with the leaves of the prefix, repeated.

    ``is_leaf`` applies to nodes of the prefix.

    >>> from primax_core import tree_util
    >>> tree_util.tree_broadcast([0, 1], [{"a": 5, "b": 6}, 7])
    [{'a': 0, 'b': 0}, 1]
    """
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return _flatten(full_tree)[1].unflatten(leaves)


def all_leaves(iterable: Iterable[Any], is_leaf: _LeafPredicate | None = None) -> bool:
    """Return True if each of the values is a leaf.

    >>> from primax_core import tree_util
    >>> tree_util.all_leaves([1, "a"]), tree_util.all_leaves([1, None])
    (True, False)
    """
    if is_leaf is None:
        return _all_leaves(iterable)
    return all(is_leaf(x) or not is_node(type(x)) for x in iterable)


# Key paths


def _with_path(is_leaf: _LeafPredicate | None, takes_path: bool) -> _LeafPredicate | None:
    if is_leaf is None or takes_path:
        return is_leaf
    return lambda _, node: is_leaf(node)


def tree_flatten_with_path(
    tree: Any, is_leaf: _LeafPredicate | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath[Any], Any]], PyTreeDef]:
    """Pairs of a key path and a leaf, and the structure of the tree.

    With ``is_leaf_takes_path`` the predicate is called with a key path and a node.

    >>> from primax_core import tree_util
    >>> pairs, _ = tree_util.tree_flatten_with_path({"a": [1, 2]})
    >>> [(tree_util.keystr(path), leaf) for path, leaf in pairs]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return _flatten_with_path(tree, _with_path(is_leaf, is_leaf_takes_path))


def tree_leaves_with_path(
    tree: Any, is_leaf: _LeafPredicate | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath[Any], Any]]:
    """Pairs of a key path and a leaf; the first result of `tree_flatten_with_path`."""
    return _flatten_with_path(tree, _with_path(is_leaf, is_leaf_takes_path))[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: _LeafPredicate | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """`tree_map` of a function whose first argument is the key path of the leaf.

    >>> from primax_core import tree_util
    >>> tree_util.tree_map_with_path(lambda path, x: tree_util.keystr(path) * x, {"a": 2})
    {'a': "['a']['a']"}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns: list[Any] = [[path for path, _ in pairs], [leaf for _, leaf in pairs]]
    columns += _flatten_up_to(treedef, tree, rest, None if is_leaf_takes_path else is_leaf)
    return treedef.unflatten([f(*xs) for xs in zip(*columns, strict=True)])


# One level


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """The children of a node and its metadata; ``ValueError`` for a leaf.

    >>> from primax_core import tree_util
    >>> tree_util.flatten_one_level({"a": [1, 2]})
    (([1, 2],), ('a',))
    """
    flattened = _flatten_one_level(tree)
    if flattened is None:
        _raise_leaf(tree)
    return flattened


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Any]:
    """Pairs of a key and a child of a node, and its metadata; ``ValueError`` for a leaf."""
    flattened = _flatten_one_level_with_keys(tree)
    if flattened is None:
        _raise_leaf(tree)
    return tuple(flattened[0]), flattened[1]


def _raise_leaf(tree: Any) -> NoReturn:
    raise ValueError(f"can't tree-flatten type: {type(tree)}")


def is_tree_node(typ: type) -> bool:
    """Return True if instances of a class are nodes.

    >>> from primax_core import tree_util
    >>> tree_util.is_tree_node(dict), tree_util.is_tree_node(set)
    (True, False)
    """
    return is_node(typ)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of a structure.

    >>> from primax_core import tree_util
    >>> tree_util.treedef_children(tree_util.tree_structure([1, (2,)]))
    [PyTreeDef(*), PyTreeDef((*,))]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return True if a structure is a single leaf."""
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


def structure_of(node_data: tuple[type, Any] | None, children: list[PyTreeDef]) -> PyTreeDef:
    """The structure of a node, from ``node_data()`` and ``children()`` of another structure."""
    return PyTreeDef.from_node_data_and_children(registry, node_data, children)
