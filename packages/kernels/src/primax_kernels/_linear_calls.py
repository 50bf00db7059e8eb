"""Equations that a program runs: a ``linear_call`` runs one of its two jaxprs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from primax_core.extend import Eqn, Jaxpr, jaxprs_in


def running_equations(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """All equations, also of jaxprs in parameters, except those of transposes that do not run."""
    for eqn in jaxpr.eqns:
        yield eqn
        inner = eqn.params["jaxprs"][:1] if _is_linear_call(eqn) else jaxprs_in(eqn.params)
        for body in inner:
            yield from running_equations(body)


def body_of_linear_call(eqn: Eqn, values: Sequence[Any]) -> tuple[Jaxpr, list[Any]] | None:
    """The jaxpr that a ``linear_call`` runs and its arguments; ``None`` for other equations."""
    if not _is_linear_call(eqn):
        return None
    own, other = eqn.params["num_consts"]
    return eqn.params["jaxprs"][0], [*values[:own], *values[own + other :]]


def _is_linear_call(eqn: Eqn) -> bool:
    return eqn.primitive.name == "linear_call"
