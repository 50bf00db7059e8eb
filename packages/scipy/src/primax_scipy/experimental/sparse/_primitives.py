"""Primitives of sparse formats: operations on the stored arrays that a jaxpr shows by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from primax_core.extend import Primitive, expand


class SparseInfo(NamedTuple):
    """Static data of a batched sparse array: a parameter of primitives."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


class COOInfo(NamedTuple):
    """Static data of a :class:`COO` matrix: a parameter of primitives."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


def composed(
    name: str, multiple_results: bool = False
) -> Callable[[Callable[..., Any]], Primitive]:
    """Declare a primitive that is a composition of other operations: the decorated function.

    Its type, lowering, derivatives and batching are those of the composition.

    Args:
      name: the name in jaxprs.
      multiple_results: the function returns a tuple.
    """

    def declare(operation: Callable[..., Any]) -> Primitive:
        prim = Primitive(name, multiple_results=multiple_results)
        prim.rule(expand)(operation)
        return prim

    return declare
