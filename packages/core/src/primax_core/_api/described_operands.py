"""Arguments of compiled calls that are types without values. Loaded on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._engine.call import jit_p
from .._engine.jit_cache import JitCache
from .._ir.jaxpr import Jaxpr
from .._transform.dce import dce_jaxpr
from .._transform.zeros import zeros
from .shape_struct import ShapeDtypeStruct


def with_values(
    cache: JitCache, fun: Any, static_key: Any, leaves: Sequence[Any], in_tree: Any
) -> list[Any]:
    """The arguments of a call with zeros for the types among them, which must not be used.

    Raises:
      TypeError: if the function uses one of them.
    """
    avals = [cache.aval_of(x, i, in_tree, static_key) for i, x in enumerate(leaves)]
    traced = cache.trace(fun, static_key, in_tree, avals)
    used = _used(traced.jaxpr)
    values = list(leaves)
    for i, is_used in enumerate(used[len(traced.consts) :]):
        if type(leaves[i]) is not ShapeDtypeStruct:
            continue
        if is_used:
            raise TypeError(
                f"{cache.argument_name(i, in_tree, static_key)} of {cache.name} is {leaves[i]}, "
                "which has no values, but the function uses it: pass an array"
            )
        values[i] = zeros(avals[i])
    return values


def _used(jaxpr: Jaxpr) -> list[bool]:
    """For each input, whether results depend on it; also in compiled calls."""
    live, _ = dce_jaxpr(jaxpr, (True,) * len(jaxpr.outvars))
    read = {id(v) for v in live.outvars}
    for eqn in live.eqns:
        inner = _used(eqn.params["jaxpr"]) if eqn.primitive is jit_p else [True] * len(eqn.invars)
        read |= {id(v) for v, is_used in zip(eqn.invars, inner) if is_used}
    return [id(v) in read for v in jaxpr.invars]
