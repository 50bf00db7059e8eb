"""Composite classes: values that transformations take apart into arrays. See `operand_trees`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from . import operand_trees
from ._pytree_native import PyTreeDef, tree_flatten, tree_unflatten
from .operand_trees import Parts


class Composition(Protocol):
    """All of a composite value except its arrays; hashable, and a key of caches."""

    def restore(self, arrays: Sequence[Any]) -> Any:
        """A value of arrays or tracers; ``NotImplemented`` to keep other leaves as they are."""

    def resembles(self, other: Any) -> bool:
        """True if tangents of this type may be those of the other."""

    def axes(self, spec: Any, of_result: bool) -> Sequence[int | None]:
        """The mapped axis of each array, for what ``in_axes`` or ``out_axes`` has for a value."""


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
    operand_trees.take_apart[cls] = take_apart
    if axis_spec is not None:
        operand_trees.axis_specs.add(axis_spec)


_MARK: Final = object()


def _nodes(treedef: PyTreeDef) -> tuple[list[Any], PyTreeDef]:
    """Nodes of composite values and marks for other leaves, and the structure above them."""
    marked = tree_unflatten(treedef, [_MARK] * treedef.num_leaves)
    return tree_flatten(marked, lambda node: type(node) is Parts)


def alike(tree: PyTreeDef, expected: PyTreeDef) -> bool:
    """True if structures differ in the types of composite values alone, and the former may be those
    of tangents."""
    (a, outer), (b, expected_outer) = _nodes(tree), _nodes(expected)
    return outer == expected_outer and all(
        type(x) is type(y) and (type(x) is not Parts or y.composition.resembles(x.composition))
        for x, y in zip(a, b)
    )


def axes_of_arrays(treedef: PyTreeDef, specs: list[Any], of_result: bool) -> list[Any]:
    """An axis for each leaf, where specs of composite values are the same for all their arrays."""
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
