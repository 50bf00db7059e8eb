"""Parallel prefix scan of an associative function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .._base import pytree
from .._trace.core import typeof
from .conversion import convert
from .cumulative import prefixes
from .permuting import rev
from .shapes import canonical_axis

_T = TypeVar("_T")


def associative_scan(
    fn: Callable[[_T, _T], _T], elems: _T, reverse: bool = False, axis: int = 0
) -> _T:
    """Prefix scan of an associative function along an axis, in logarithmic depth.

    Args:
      fn: associative function of two pytrees with the structure of ``elems``, whose arrays are
        slices of its arrays along ``axis``. It combines them element by element. The first
        argument precedes the second. The function need not be commutative.
      elems: an array or a pytree of arrays, all of the same size along ``axis``.
      reverse: scan from the end; the first argument of ``fn`` then follows the second.
      axis: the axis; a negative axis counts from the end.

    Returns:
      A pytree with the structure of ``elems``: at each index the combination of all elements up
      to that index.

    Raises:
      TypeError: if ``fn`` is not callable, or changes dtypes.
      ValueError: if the sizes differ, the axis does not exist, or ``fn`` changes the structure.

    >>> import primax_core.lax.arithmetic as ops
    >>> import numpy as np
    >>> associative_scan(ops.mul, np.array([1, 2, 3, 4])).tolist()
    [1, 2, 6, 24]
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, tree = pytree.tree_flatten(elems)
    if not leaves:
        return elems
    avals = [typeof(x) for x in leaves]
    axis = canonical_axis(axis, avals[0].ndim)
    sizes = [a.shape[canonical_axis(axis, a.ndim)] for a in avals]
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. (saw: "
            f"{[a.shape for a in avals]})"
        )

    def combine(before: list, after: list) -> list:
        outs, out_tree = pytree.tree_flatten(fn(tree.unflatten(before), tree.unflatten(after)))
        if out_tree != tree:
            raise ValueError(
                "the function given to associative_scan must return the structure of its "
                f"arguments: got {out_tree}, expected {tree}"
            )
        for out, x in zip(outs, before):
            if typeof(out).shape != typeof(x).shape:
                raise ValueError(
                    "the function given to associative_scan must combine element by element: it "
                    f"got arrays of shape {typeof(x).shape} and returned {typeof(out).shape}"
                )
        return outs

    xs = [convert(x, a.dtype, a.weak_type) for x, a in zip(leaves, avals)]
    if reverse:
        xs = [rev(x, (axis,)) for x in xs]
    xs = prefixes(combine, xs, axis)
    return tree.unflatten([rev(x, (axis,)) for x in xs] if reverse else xs)
