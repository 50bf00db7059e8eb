"""Accesses of a kernel to its references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from primax_core.extend import Eqn, Jaxpr, Literal, expanded, references

from .._access import former_get_p, masked_get_p, masked_swap_p
from .._poison import poison_p

_ACCESSES: Final = (
    references.get_p, references.swap_p, references.addupdate_p, former_get_p, masked_get_p,
    masked_swap_p,
)  # fmt: skip


class Access(NamedTuple):
    """A read or write in a kernel.

    Attributes:
      ref: number of the reference.
      reads, writes: whether contents are used, and replaced.
      whole: whether it is the whole block.
      certain: whether each step of the grid executes it.
      looped: whether it is in a loop of the kernel.
      at: number of the outermost equation that contains it.
      eqn: the equation.
    """

    ref: int
    reads: bool
    writes: bool
    whole: bool
    certain: bool
    looped: bool
    at: int
    eqn: Eqn


def accesses_of(jaxpr: Jaxpr, refs: Mapping[Any, int]) -> list[Access]:
    """The accesses of a jaxpr to references.

    Args:
      refs: numbers of the references, by the variables of the jaxpr.
    """
    accesses: list[Access] = []
    used = used_variables(jaxpr)
    for i, eqn in enumerate(jaxpr.eqns):
        accesses += [a._replace(at=i) for a in _of_eqn(eqn, refs, used)]
    return accesses


def used_variables(jaxpr: Jaxpr) -> set[Any]:
    """The variables that equations and results of a jaxpr use."""
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Literal}
    return used | {v for v in jaxpr.outvars if type(v) is not Literal}


def _of_eqn(eqn: Eqn, refs: Mapping[Any, int], variables: set[Any]) -> list[Access]:
    numbers = [None if type(v) is Literal else refs.get(v) for v in eqn.invars]
    if all(n is None for n in numbers):
        return []
    prim = eqn.primitive
    if prim is poison_p and not eqn.params["everywhere"]:
        return []
    if prim in _ACCESSES:
        ref = numbers[0]
        assert ref is not None
        is_get = prim in (references.get_p, former_get_p, masked_get_p)
        used = any(v in variables for v in eqn.outvars)
        reads = is_get or prim is references.addupdate_p or used
        whole = eqn.params["index"] is None and prim is not masked_swap_p
        return [Access(ref, reads, not is_get, whole, True, False, 0, eqn)]
    accesses: list[Access] = []
    for jaxpr, args, certain, looped in _bodies(eqn, numbers):
        inner = {v: n for v, n in zip(jaxpr.invars, args) if n is not None}
        for a in accesses_of(jaxpr, inner):
            accesses.append(a._replace(certain=a.certain and certain, looped=a.looped or looped))
    return accesses


def _bodies(
    eqn: Eqn, numbers: Sequence[int | None]
) -> list[tuple[Jaxpr, Sequence[int | None], bool, bool]]:
    """Jaxprs of an equation, with their arguments, and whether they always run, and in a loop."""
    name, params = eqn.primitive.name, eqn.params
    if name == "cond":
        return [(b, numbers[1:], False, False) for b in params["branches"]]
    if name == "scan":
        return [(params["jaxpr"], numbers, params["length"] > 0, True)]
    if name == "while":
        n, m = params["cond_nconsts"], params["body_nconsts"]
        return [
            (params["cond_jaxpr"], [*numbers[:n], *numbers[n + m :]], True, True),
            (params["body_jaxpr"], numbers[n:], False, True),
        ]
    jaxpr = expanded(eqn.primitive, [v.aval for v in eqn.invars], params)
    return [] if jaxpr is None else [(jaxpr, numbers, True, False)]
