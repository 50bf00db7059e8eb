"""Trees of operands, in which values of *composite* classes are nodes with arrays as leaves.

To the public functions of trees such a value is a leaf. Transformations, loops and branches
flatten arguments and results by :func:`flatten_operands`, which takes it apart; unflattening makes
a value of the arrays again. Without composite classes it flattens as all other functions do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ._pytree_native import PyTreeDef, registry, tree_flatten, tree_unflatten


class Parts:
    """A composite value as a node: its composition, and its arrays as children."""

    __slots__ = ("composition", "arrays")

    def __init__(self, composition: Any, arrays: Sequence[Any]) -> None:
        self.composition = composition
        self.arrays = arrays


_MARKS: Final = frozenset((int, object, type(None)))
"""Classes of leaves that stand for arrays while structures are compared."""


def _restored(composition: Any, arrays: Sequence[Any]) -> Any:
    if not _MARKS.isdisjoint(map(type, arrays)):
        return Parts(composition, arrays)
    value = composition.restore(arrays)
    return Parts(composition, arrays) if value is NotImplemented else value


registry.register_node(Parts, lambda node: (node.arrays, node.composition), _restored)

take_apart: Final[dict[type, Callable[[Any], tuple[Any, Sequence[Any]]]]] = {}
axis_specs: Final[set[type]] = set()
"""What `composite_types` registers."""


def is_axis_spec(x: Any) -> bool:
    """True for an entry of ``in_axes`` or ``out_axes`` that stands for a composite value's axes."""
    return isinstance(x, tuple(axis_specs))


def operand_tree(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree with a node for each composite value."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not take_apart or take_apart.keys().isdisjoint(map(type, leaves)):
        return tree
    return _with_nodes(leaves, treedef)


def _with_nodes(leaves: Sequence[Any], treedef: PyTreeDef) -> Any:
    return tree_unflatten(
        treedef,
        [Parts(*take_apart[type(x)](x)) if type(x) in take_apart else x for x in leaves],
    )


def flatten_operands(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree of operands, and its structure."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not take_apart or take_apart.keys().isdisjoint(map(type, leaves)):
        return leaves, treedef
    return tree_flatten(_with_nodes(leaves, treedef), is_leaf)


def numbered(treedef: PyTreeDef, first: int = 0) -> Any:
    """A tree of a structure with integers as leaves, ``first`` and so on, to determine paths.

    A tuple of the children is in place of a node whose class refuses integers: it may check the
    types of its leaves.
    """
    try:
        return tree_unflatten(treedef, list(range(first, first + treedef.num_leaves)))
    except Exception:
        pass
    children = []
    for child in treedef.children():
        children.append(numbered(child, first))
        first += child.num_leaves
    cls, data = treedef.node_data()
    if cls is dict:
        return dict(zip(data, children))
    return children if cls is list else tuple(children)


def same_structure(tree: PyTreeDef, expected: PyTreeDef) -> bool:
    """True if tangents or cotangents of one structure are those of a tree of another."""
    if tree == expected or not take_apart:
        return tree == expected
    from .composite_types import alike  # loaded on first use

    return alike(tree, expected)


def axes_of_parts(treedef: PyTreeDef, specs: list[Any], of_result: bool = False) -> list[Any]:
    """An axis for each leaf, where specs of composite values are the same for all their arrays."""
    if not take_apart or all(d is None or isinstance(d, int) for d in specs):
        return specs
    from .composite_types import axes_of_arrays

    return axes_of_arrays(treedef, specs, of_result)
