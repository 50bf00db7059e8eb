"""Operations that XLA cannot compile: their jaxprs are evaluated equation by equation."""

from __future__ import annotations

from typing import Final

from .._ir.jaxpr import Eqn, Jaxpr
from .._ir.primitive import Primitive, lower

calls_of_bodies: Final[dict[Primitive, str]] = {}
"""Call primitives whose results are those of the sub-jaxpr, and the name of its parameter. Called
outside of compiled functions, they are evaluated equation by equation if XLA cannot compile it."""


def is_stepwise(jaxpr: Jaxpr) -> bool:
    """Return True if XLA cannot compile an operation, which may have an eager implementation."""
    return any(has_no_lowering(eqn) for eqn in jaxpr.eqns)


def has_no_lowering(eqn: Eqn) -> bool:
    """Return True if XLA cannot compile an operation, on any platform."""
    prim = eqn.primitive
    held = calls_of_bodies.get(prim)
    if held is not None:
        return is_stepwise(eqn.params[held])
    return prim.find(lower) is None and not any(kind.general is lower for kind in prim.rules)
