"""Pytrees: nested containers with leaves; flattening, unflattening and mapping.

Lists, tuples, named tuples, dictionaries, ``None`` (without leaves) and registered classes are
nodes; everything else is a leaf. Internal callers that do not need the parameter names use
`_pytree_native`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn, TypeAlias

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

PyTree: TypeAlias = Any
"""A leaf, or nested lists, tuples, dictionaries and registered classes of leaves."""

_LeafPredicate = Callable[..., bool]

default_registry: Final = registry


class _Unspecified:
    """Default of a parameter that accepts ``None`` as a value."""

    def __repr__(self) -> str:
        return "..."


_unspecified: Final = _Unspecified()


def tree_flatten(
    tree: PyTree, is_leaf: _LeafPredicate | None = None
) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree, and its structure.

    Nodes are lists, tuples, named tuples, dicts and instances of registered classes; ``None`` is
    a node without children. Everything else is a leaf. The keys of dicts are sorted.

    Args:
      tree: a pytree.
      is_leaf: ``is_leaf(node)`` returns True for nodes that are treated as leaves.

    Returns:
      A pair: the list of leaves, and a ``PyTreeDef`` for :func:`tree_unflatten`.

    Raises:
      ValueError: if the keys of a dict cannot be sorted.

    Structures can be compared and hashed.

    >>> from primax_core import tree_util
    >>> tree_util.tree_flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    >>> tree_util.tree_flatten([1, (2, 3)], is_leaf=lambda x: isinstance(x, tuple))[0]
    [1, (2, 3)]
    """
    return _flatten(tree, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: _LeafPredicate | None = None) -> list[Any]:
    """The leaves of a tree.

    Args:
      tree: a pytree.
      is_leaf: ``is_leaf(node)`` returns True for nodes that are treated as leaves.

    Returns:
      A list, in the order of :func:`tree_flatten`.

    Raises:
      ValueError: if the keys of a dict cannot be sorted.

    ``None`` is no leaf, unless ``is_leaf`` declares it as one.

    >>> from primax_core import tree_util
    >>> tree_util.tree_leaves([1, (2, None)])
    [1, 2]
    >>> tree_util.tree_leaves([1, (2, None)], is_leaf=lambda x: x is None)
    [1, 2, None]
    """
    return _flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: _LeafPredicate | None = None) -> PyTreeDef:
    """The structure of a tree, without its leaves.

    Args:
      tree: a pytree.
      is_leaf: ``is_leaf(node)`` returns True for nodes that are treated as leaves.

    Returns:
      A ``PyTreeDef``, which can be compared and hashed. Its ``num_leaves`` is the number of
      leaves.

    Raises:
      ValueError: if the keys of a dict cannot be sorted.

    Two trees with equal structures can be mapped together by :func:`tree_map`.

    >>> from primax_core import tree_util
    >>> tree_util.tree_structure([1, (2, None)])
    PyTreeDef([*, (*, None)])
    >>> tree_util.tree_structure([1, 2]) == tree_util.tree_structure(["a", "b"])
    True
    """
    return _flatten(tree, is_leaf)[1]


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with given leaves; the inverse of :func:`tree_flatten`.

    Args:
      treedef: a structure.
      leaves: as many values as the structure has leaves, in the order of :func:`tree_flatten`.
        They may be of any type.

    Returns:
      A tree.

    Raises:
      ValueError: if the number of values is not the number of leaves.

    Objects of registered classes are built by their ``unflatten`` functions.

    >>> from primax_core import tree_util
    >>> leaves, treedef = tree_util.tree_flatten([1, (2, None)])
    >>> tree_util.tree_unflatten(treedef, [10 * leaf for leaf in leaves])
    [10, (20, None)]
    """
    return treedef.unflatten(leaves)


def tree_map(
    f: Callable[..., Any], tree: PyTree, *rest: Any, is_leaf: _LeafPredicate | None = None
) -> Any:
    """A tree of the results of a function on corresponding leaves of trees.

    Args:
      f: a function of as many values as there are trees.
      tree: a pytree, whose structure is that of the result.
      rest: more pytrees. Each has the structure of ``tree``, or subtrees in place of leaves,
        which are passed to ``f`` whole.
      is_leaf: ``is_leaf(node)`` returns True for nodes that are treated as leaves. It applies to
        ``tree``.

    Returns:
      A tree of the structure of ``tree``.

    Raises:
      ValueError: if ``tree`` is not a prefix of another tree; the message gives the key path.

    >>> from primax_core import tree_util
    >>> tree_util.tree_map(lambda x: -x, {"a": 1, "b": (2, 3)})
    {'a': -1, 'b': (-2, -3)}
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


def tree_all(tree: PyTree, *, is_leaf: _LeafPredicate | None = None) -> bool:
    """Return True if all leaves are true.

    Args:
      tree: a pytree.
      is_leaf: ``is_leaf(node)`` returns True for nodes that are treated as leaves.

    Returns:
      A bool; True for a tree without leaves.

    Raises:
      ValueError: if a leaf is an array with several elements, which has no truth value.

    With ``tree_map`` it compares trees: ``tree_all(tree_map(same, a, b))``.

    >>> from primax_core import tree_util
    >>> tree_util.tree_all([True, {"a": 0}])
    False
    >>> tree_util.tree_all([True, None])
    True
    """
    return all(_flatten(tree, is_leaf)[0])


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: PyTree,
    initializer: PyTree = _unspecified,
    is_leaf: _LeafPredicate | None = None,
) -> Any:
    """Combine the leaves of a tree from left to right, like ``functools.reduce``.

    Args:
      function: ``function(accumulated, leaf)`` returns the next accumulated value.
      tree: a pytree.
      initializer: the first accumulated value; by default the first leaf.
      is_leaf: ``is_leaf(node)`` returns True for nodes that are treated as leaves.

    Returns:
      The last accumulated value.

    Raises:
      TypeError: if the tree has no leaves and ``initializer`` is missing.

    >>> from primax_core import tree_util
    >>> tree_util.tree_reduce(lambda a, b: a + b, [1, (2, 3)])
    6
    >>> tree_util.tree_reduce(lambda a, b: a + b, [1, (2, 3)], 10)
    16
    """
    leaves = _flatten(tree, is_leaf)[0]
    if initializer is _unspecified:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: PyTree,
    *,
    identity: PyTree = _unspecified,
    is_leaf: _LeafPredicate | None = None,
) -> Any:
    """Combine the leaves of a tree by halves, so that the chain of dependent operations is short.

    Args:
      operation: an associative function of two values. The order of the leaves is kept.
      tree: a pytree.
      identity: the result for a tree without leaves.
      is_leaf: ``is_leaf(node)`` returns True for nodes that are treated as leaves.

    Returns:
      The combination of all leaves.

    Raises:
      TypeError: if the tree has no leaves and ``identity`` is missing.

    For ``n`` leaves the longest chain has about ``log2(n)`` operations, against ``n`` with
    :func:`tree_reduce`.

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
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: PyTree
) -> Any:
    """Transpose a tree of trees: structure outer of inner becomes inner of outer.

    Args:
      outer_treedef: the structure whose leaves are the inner trees.
      inner_treedef: the structure of each inner tree; ``None`` takes that of the first.
      pytree_to_transpose: a tree of the outer structure with trees of the inner structure as
        leaves.

    Returns:
      A tree of the inner structure with trees of the outer structure as leaves.

    Raises:
      TypeError: if the structures do not match.

    A list of results of a function that returns a dict becomes a dict of lists.

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


def tree_broadcast(
    prefix_tree: PyTree, full_tree: PyTree, is_leaf: _LeafPredicate | None = None
) -> Any:
    """A tree of the full tree's structure with the leaves of the prefix, repeated.

    Args:
      prefix_tree: a tree whose leaves are in place of subtrees of ``full_tree``.
      full_tree: the tree with the structure of the result. Its leaves are not read.
      is_leaf: ``is_leaf(node)`` returns True for nodes of the prefix that are treated as leaves.

    Returns:
      A tree of the structure of ``full_tree``.

    Raises:
      ValueError: if ``prefix_tree`` is not a prefix of ``full_tree``; the message gives the key
        path.

    Arguments such as ``in_axes`` of ``vmap`` are prefixes in this sense.

    >>> from primax_core import tree_util
    >>> tree_util.tree_broadcast([0, 1], [{"a": 5, "b": 6}, 7])
    [{'a': 0, 'b': 0}, 1]
    """
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return _flatten(full_tree)[1].unflatten(leaves)


def all_leaves(iterable: Iterable[Any], is_leaf: _LeafPredicate | None = None) -> bool:
    """Return True if each of the values is a leaf.

    Args:
      iterable: values, such as the children of a node.
      is_leaf: ``is_leaf(node)`` returns True for nodes that are treated as leaves.

    Returns:
      A bool; True for no values.

    Raises:
      TypeError: if ``iterable`` cannot be iterated.

    ``None`` is a node without children, and so no leaf. The function tells whether a list of
    values is flat.

    >>> from primax_core import tree_util
    >>> tree_util.all_leaves([1, "a"]), tree_util.all_leaves([1, None])
    (True, False)
    >>> tree_util.all_leaves([1, (2,)], is_leaf=lambda x: isinstance(x, tuple))
    True
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
    tree: PyTree, is_leaf: _LeafPredicate | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath[Any], Any]], PyTreeDef]:
    """Pairs of a key path and a leaf, and the structure of the tree.

    Args:
      tree: a pytree.
      is_leaf: ``is_leaf(node)`` returns True for nodes that are treated as leaves; with
        ``is_leaf_takes_path`` it is ``is_leaf(path, node)``.
      is_leaf_takes_path: call ``is_leaf`` with a key path and a node.

    Returns:
      A pair: a list of ``(path, leaf)``, and the ``PyTreeDef``. A path is a tuple of keys, such
      as ``DictKey("a")`` and ``SequenceKey(0)``; :func:`keystr` prints it.

    Raises:
      ValueError: if the keys of a dict cannot be sorted.

    Children of classes that were registered without keys have the keys ``FlattenedIndexKey``.

    >>> from primax_core import tree_util
    >>> pairs, _ = tree_util.tree_flatten_with_path({"a": [1, 2]})
    >>> [(tree_util.keystr(path), leaf) for path, leaf in pairs]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return _flatten_with_path(tree, _with_path(is_leaf, is_leaf_takes_path))


def tree_leaves_with_path(
    tree: PyTree, is_leaf: _LeafPredicate | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath[Any], Any]]:
    """Pairs of a key path and a leaf of a tree.

    Args:
      tree: a pytree.
      is_leaf: ``is_leaf(node)`` returns True for nodes that are treated as leaves; with
        ``is_leaf_takes_path`` it is ``is_leaf(path, node)``.
      is_leaf_takes_path: call ``is_leaf`` with a key path and a node.

    Returns:
      A list of ``(path, leaf)``, the first result of :func:`tree_flatten_with_path`.

    Raises:
      ValueError: if the keys of a dict cannot be sorted.

    >>> from primax_core import tree_util
    >>> pairs = tree_util.tree_leaves_with_path({"a": [1, 2]})
    >>> {tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in pairs}
    {'a.0': 1, 'a.1': 2}
    """
    return _flatten_with_path(tree, _with_path(is_leaf, is_leaf_takes_path))[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: PyTree,
    *rest: Any,
    is_leaf: _LeafPredicate | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """:func:`tree_map` of a function whose first argument is the key path of the leaf.

    Args:
      f: ``f(path, leaf, *other_leaves)``.
      tree: a pytree, whose structure is that of the result.
      rest: more pytrees, which have ``tree`` as a prefix.
      is_leaf: ``is_leaf(node)`` returns True for nodes that are treated as leaves; with
        ``is_leaf_takes_path`` it is ``is_leaf(path, node)``.
      is_leaf_takes_path: call ``is_leaf`` with a key path and a node.

    Returns:
      A tree of the structure of ``tree``.

    Raises:
      ValueError: if ``tree`` is not a prefix of another tree.

    >>> from primax_core import tree_util
    >>> tree_util.tree_map_with_path(lambda path, x: tree_util.keystr(path) * x, {"a": 2})
    {'a': "['a']['a']"}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns: list[Any] = [[path for path, _ in pairs], [leaf for _, leaf in pairs]]
    columns += _flatten_up_to(treedef, tree, rest, None if is_leaf_takes_path else is_leaf)
    return treedef.unflatten([f(*xs) for xs in zip(*columns, strict=True)])


# One level


def flatten_one_level(tree: PyTree) -> tuple[Iterable[Any], Any]:
    """The children of a node and its metadata.

    Args:
      tree: a node: a list, tuple, dict, ``None`` or an instance of a registered class.

    Returns:
      A pair: the children, and the metadata that a node is rebuilt from, such as the keys of a
      dict.

    Raises:
      ValueError: if ``tree`` is a leaf.

    The children are not flattened further.

    >>> from primax_core import tree_util
    >>> tree_util.flatten_one_level({"a": [1, 2]})
    (([1, 2],), ('a',))
    >>> tree_util.flatten_one_level([1, 2])
    ([1, 2], None)
    """
    flattened = _flatten_one_level(tree)
    if flattened is None:
        _raise_leaf(tree)
    return flattened


def flatten_one_level_with_keys(tree: PyTree) -> tuple[Iterable[tuple[Any, Any]], Any]:
    """The children of a node with their keys, and its metadata.

    Args:
      tree: a node: a list, tuple, dict, ``None`` or an instance of a registered class.

    Returns:
      A pair: pairs of a key and a child, and the metadata.

    Raises:
      ValueError: if ``tree`` is a leaf.

    A key path is the tuple of the keys from the root to a leaf.

    >>> from primax_core import tree_util
    >>> pairs, metadata = tree_util.flatten_one_level_with_keys({"a": [1, 2]})
    >>> list(pairs), metadata
    ([(DictKey(key='a'), [1, 2])], ('a',))
    """
    flattened = _flatten_one_level_with_keys(tree)
    if flattened is None:
        _raise_leaf(tree)
    return tuple(flattened[0]), flattened[1]


def _raise_leaf(tree: Any) -> NoReturn:
    raise ValueError(f"can't tree-flatten type: {type(tree)}")


def is_tree_node(typ: type) -> bool:
    """Return True if instances of a class are nodes.

    Args:
      typ: a class.

    Returns:
      A bool. It is True for lists, tuples, named tuples, dicts, ``NoneType`` and registered
      classes.

    Subclasses of registered classes are not nodes, unless they are registered too. The function
    is the test that :func:`tree_flatten` makes for each value.

    >>> from primax_core import tree_util
    >>> tree_util.is_tree_node(dict), tree_util.is_tree_node(set)
    (True, False)
    >>> tree_util.is_tree_node(type(None))
    True
    """
    return is_node(typ)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of a structure.

    Args:
      treedef: a structure.

    Returns:
      A list of structures; empty for a leaf and for a node without children.

    Raises:
      AttributeError: if ``treedef`` is not a structure.

    The inverse for tuples is :func:`treedef_tuple`.

    >>> from primax_core import tree_util
    >>> tree_util.treedef_children(tree_util.tree_structure([1, (2,)]))
    [PyTreeDef(*), PyTreeDef((*,))]
    >>> tree_util.treedef_children(tree_util.tree_structure(1))
    []
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return True if a structure is a single leaf.

    Args:
      treedef: a structure.

    Returns:
      A bool; False for ``None`` and other nodes without children.

    Raises:
      AttributeError: if ``treedef`` is not a structure.

    A structure with one leaf may be a node: ``[1]`` is.

    >>> from primax_core import tree_util
    >>> tree_util.treedef_is_leaf(tree_util.tree_structure(1))
    True
    >>> tree_util.treedef_is_leaf(tree_util.tree_structure([1]))
    False
    """
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


def structure_of(node_data: tuple[type, Any] | None, children: list[PyTreeDef]) -> PyTreeDef:
    """The structure of a node, from ``node_data()`` and ``children()`` of another structure."""
    return PyTreeDef.from_node_data_and_children(registry, node_data, children)
