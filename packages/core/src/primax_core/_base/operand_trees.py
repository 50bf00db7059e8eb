"""Trees of operands, in which values of *composite* classes are nodes with arrays as leaves.

To the public functions of trees such a value is a leaf. Transformations, loops and branches
flatten arguments and results by :func:`flatten_operands`, which takes it apart; unflattening makes
a value of the arrays again. Without composite classes it flattens as all other functions do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from ._pytree_native import PyTreeDef, registry, tree_flatten, tree_unflatten


class Composition(Protocol):
    """All of a composite value except its arrays; hashable, and a key of caches."""

    def restore(self, arrays: Sequence[Any]) -> Any:
        """A value of arrays or tracers; ``NotImplemented`` to keep other leaves as they are."""

    def resembles(self, other: Any) -> bool:
        """True if tangents of this type may be those of the other."""

    def axes(self, spec: Any, of_result: bool) -> Sequence[int | None]:
        """The mapped axis of each array, for what ``in_axes`` or ``out_axes`` has for a value."""


class Parts:
    """A composite value as a node: its composition, and its arrays as children."""

    __slots__ = ("composition", "arrays")

    def __init__(self, composition: Any, arrays: Sequence[Any]) -> None:
        self.composition = composition
        self.arrays = arrays


_MARKS: Final = frozenset((int, object, type(None)))
"""Classes of leaves that stand for arrays while structures are compared."""


def _restored(composition: Composition, arrays: Sequence[Any]) -> Any:
    if not _MARKS.isdisjoint(map(type, arrays)):
        return Parts(composition, arrays)
    value = composition.restore(arrays)
    return Parts(composition, arrays) if value is NotImplemented else value


registry.register_node(Parts, lambda node: (node.arrays, node.composition), _restored)

_take_apart: Final[dict[type, Callable[[Any], tuple[Composition, Sequence[Any]]]]] = {}


_axis_specs: Final[set[type]] = set()


def register_composite_type(
    cls: type,
    take_apart: Callable[[Any], tuple[Composition, Sequence[Any]]],
    axis_spec: type | None = None,
) -> None:
    """Let values of a class be operands of transformations, as several arrays.

    Args:
      cls: the class, without its subclasses. It must not be registered as a pytree.
      take_apart: ``value -> (composition, arrays)``. The arrays are no Python integers. The
        composition is hashable, and equal for values for which a compiled program may be used
        again. It has three methods. ``restore(arrays)`` makes a value of arrays or tracers, or
        returns ``NotImplemented`` for other leaves, such as ``ShapeDtypeStruct``.
        ``resembles(other)`` says whether a value of the other composition may be a tangent or
        cotangent of this one. ``axes(spec, of_result)`` returns the mapped axis of each array (or
        ``None``) for an entry of ``in_axes``, or of ``out_axes``, that is no integer.
      axis_spec: the class of such entries; ``None`` if there are none.

    Returns:
      ``None``.

    Arguments and results of ``jit``, ``grad``, ``vmap``, custom rules, loops and branches may then
    contain such values; the functions get what ``restore`` makes of their tracers. For functions
    on trees they are leaves: use ``tree_util.register_pytree_node`` unless that matters.

    >>> import numpy as np
    >>> from primax_core import grad, tree_util
    >>> from primax_core.extend.traces import register_composite_type
    >>> class Pair:
    ...     def __init__(self, *arrays):
    ...         self.arrays = arrays
    >>> class Pairs:
    ...     restore = staticmethod(lambda arrays: Pair(*arrays))
    ...     resembles = staticmethod(lambda other: True)
    ...     axes = staticmethod(lambda spec, of_result: (spec, spec))
    >>> pairs = Pairs()
    >>> register_composite_type(Pair, lambda pair: (pairs, pair.arrays))
    >>> x = Pair(np.float32(2), np.float32(3))
    >>> [float(g) for g in grad(lambda pair: pair.arrays[0] * pair.arrays[1])(x).arrays]
    [3.0, 2.0]
    >>> len(tree_util.tree_leaves(x))
    1
    """
    _take_apart[cls] = take_apart
    if axis_spec is not None:
        _axis_specs.add(axis_spec)


def is_axis_spec(x: Any) -> bool:
    """True for an entry of ``in_axes`` or ``out_axes`` that stands for a composite value's axes."""
    return isinstance(x, tuple(_axis_specs))


def operand_tree(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree with a node for each composite value."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not _take_apart or _take_apart.keys().isdisjoint(map(type, leaves)):
        return tree
    return _with_nodes(leaves, treedef)


def _with_nodes(leaves: Sequence[Any], treedef: PyTreeDef) -> Any:
    return tree_unflatten(
        treedef,
        [Parts(*_take_apart[type(x)](x)) if type(x) in _take_apart else x for x in leaves],
    )


def flatten_operands(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree of operands, and its structure."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not _take_apart or _take_apart.keys().isdisjoint(map(type, leaves)):
        return leaves, treedef
    return tree_flatten(_with_nodes(leaves, treedef), is_leaf)


def same_structure(tree: PyTreeDef, expected: PyTreeDef) -> bool:
    """True if tangents or cotangents of one structure are those of a tree of another."""
    if tree == expected:
        return True
    if not _take_apart:
        return False
    (a, outer), (b, expected_outer) = _nodes(tree), _nodes(expected)
    if outer != expected_outer:
        return False
    return all(
        type(x) is type(y) and (type(x) is not Parts or y.composition.resembles(x.composition))
        for x, y in zip(a, b)
    )


_MARK: Final = object()


def _nodes(treedef: PyTreeDef) -> tuple[list[Any], PyTreeDef]:
    """Nodes of composite values and marks for other leaves, and the structure above them."""
    marked = tree_unflatten(treedef, [_MARK] * treedef.num_leaves)
    return tree_flatten(marked, lambda node: type(node) is Parts)


def axes_of_parts(treedef: PyTreeDef, specs: list[Any], of_result: bool = False) -> list[Any]:
    """An axis for each leaf, where specs of composite values are the same for all their arrays."""
    if not _take_apart or all(d is None or isinstance(d, int) for d in specs):
        return specs
    axes: list[Any] = []
    for node in _nodes(treedef)[0]:
        if type(node) is not Parts:
            axes.append(specs[len(axes)])
            continue
        n = len(node.arrays)
        own = specs[len(axes) : len(axes) + n]
        whole = bool(own) and not (own[0] is None or isinstance(own[0], int))
        axes += node.composition.axes(own[0], of_result) if whole else own
    return axes
