"""Symbolic zeros and linear operands, under the reference's names.

They are the core's own classes, so rules of both conventions use the same objects:
``type(t) is Zero`` and ``type(x) is UndefinedPrimal`` hold in both.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from primax_core.extend import (
    Linear,
    ShapedArray,
    Zero as Zero,
    add_tangents as add_tangents,
    instantiate,
    is_linear,
)
from primax_core.tree_util import register_pytree_node
from primax_core.typing import ArrayLike

__all__ = [
    "UndefinedPrimal",
    "Zero",
    "add_tangents",
    "instantiate_zeros",
    "is_undefined_primal",
    "zeros_like_aval",
]

UndefinedPrimal: TypeAlias = Linear
"""Linear operand in a transpose rule, with its type in ``aval``."""


def is_undefined_primal(x: object) -> bool:
    """Return True if a transpose rule must return a cotangent for the operand."""
    return is_linear(x)


def instantiate_zeros(tangent: Zero | ArrayLike) -> Any:
    """Convert a tangent or cotangent that may be ``Zero`` to an array."""
    return instantiate(tangent)


def zeros_like_aval(aval: ShapedArray) -> Any:
    """Create an array of zeros of a type."""
    return instantiate(Zero(aval))


def _register() -> None:
    # A pytree node without leaves: rules map over their operands with tree functions.
    for cls in (Zero, UndefinedPrimal):
        register_pytree_node(cls, lambda x: ((), x.aval), lambda aval, _, cls=cls: cls(aval))


_register()
