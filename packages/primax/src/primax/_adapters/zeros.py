"""Symbolic values that rules are given, under the reference's names.

They are the core's own classes, so that rules of either convention meet the same objects:
``type(t) is Zero`` and ``type(x) is UndefinedPrimal`` hold in both.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from primax_core.extend import (
    Linear,
    Zero as Zero,
    add_tangents as add_tangents,
    instantiate,
    is_linear,
)
from primax_core.tree_util import register_pytree_node

__all__ = [
    "UndefinedPrimal",
    "Zero",
    "add_tangents",
    "instantiate_zeros",
    "is_undefined_primal",
    "zeros_like_aval",
]

UndefinedPrimal: TypeAlias = Linear
"""In a transpose rule: an operand that the operation is linear in, with its type in ``aval``."""


def is_undefined_primal(x: Any) -> bool:
    """Whether a transpose rule's operand is one to give a cotangent for."""
    return is_linear(x)


def instantiate_zeros(tangent: Any) -> Any:
    """An array for a tangent or cotangent that may be ``Zero``."""
    return instantiate(tangent)


def zeros_like_aval(aval: Any) -> Any:
    """An array of zeros of a type."""
    return instantiate(Zero(aval))


def _register() -> None:
    # Without leaves, as code that maps over the operands of its rules expects.
    for cls in (Zero, UndefinedPrimal):
        register_pytree_node(cls, lambda x: ((), x.aval), lambda aval, _, cls=cls: cls(aval))


_register()
