"""What of a program is compiled, and what its executable takes: found without MLIR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._ir.dtypes import ExtendedDType
from .._ir.effects import must_stay
from .._ir.jaxpr import Eqn, Jaxpr, Var, jaxprs_in
from .._ir.symbolic_dims import Dimension, is_static

# Array constants up to this many elements are written into the module, larger ones are arguments.
INLINE_CONSTANT_SIZE = 16


def live_eqns(jaxpr: Jaxpr) -> list[Eqn]:
    """The equations whose results or effects are needed, in order."""
    return liveness(jaxpr)[0]


def liveness(jaxpr: Jaxpr) -> tuple[list, set]:
    """The live equations, and the variables that they and the results read."""
    found = jaxpr.cache.get("live")
    if found is not None:
        return found
    needed = {v for v in jaxpr.outvars if type(v) is Var}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        for v in eqn.outvars:
            if v in needed:
                break
        else:
            if not must_stay(eqn.effects):
                continue
        kept.append(eqn)
        needed.update(eqn.invars)
    kept.reverse()
    jaxpr.cache["live"] = kept, needed
    return kept, needed


def kept_inputs(jaxpr: Jaxpr) -> list[int] | None:
    """Indices of the arguments that a program reads; ``None`` for all of them."""
    used = liveness(jaxpr)[1]
    kept = [i for i, v in enumerate(jaxpr.invars) if v in used]
    return None if len(kept) == len(jaxpr.invars) else kept


def has_symbolic_dims(jaxpr: Jaxpr) -> bool:
    """Whether symbolic dimensions occur in a program or in those that it holds."""
    found = jaxpr.cache.get("symbolic dims")
    if found is None:
        found = any(not is_static(getattr(v.aval, "shape", ())) for v in jaxpr.invars)
        for eqn in () if found else jaxpr.eqns:
            if (
                any(not is_static(getattr(v.aval, "shape", ())) for v in eqn.outvars)
                or any(isinstance(p, Dimension) for p in eqn.params.values())
                or any(has_symbolic_dims(held) for held in jaxprs_in(eqn.params))
            ):
                found = True
                break
        jaxpr.cache["symbolic dims"] = found
    return found


def is_hoisted(const) -> bool:
    """Whether a constant is passed to the program instead of being written into it."""
    return hasattr(const, "_spec") and const.size > INLINE_CONSTANT_SIZE


def large_consts(jaxpr: Jaxpr) -> dict[int, Any]:
    """Array constants of a program, and of those it holds, that are passed to its function as
    arguments; by identity."""
    found = jaxpr.cache.get("large consts")
    if found is None:
        eqns, needed = liveness(jaxpr)
        pairs = zip(jaxpr.constvars, jaxpr.consts)
        found = {id(c): c for v, c in pairs if v in needed and is_hoisted(c)}
        for eqn in eqns:
            if eqn.primitive.cache_on is not None:
                for held in jaxprs_in(eqn.params):
                    found.update(large_consts(held))
        jaxpr.cache["large consts"] = found
    return found


def stored_value(const: Any) -> np.ndarray:
    """The values of an array constant; of an extended dtype, those of its buffer."""
    if isinstance(getattr(const, "dtype", None), ExtendedDType):
        found: np.ndarray = const._stored
        return found
    return np.asarray(const)


def aliases_of(jaxpr: Jaxpr, donated: Sequence[int]) -> dict[int, int]:
    """Pairs each donated argument with a result of its type that is not taken yet."""
    free: dict[Any, list[int]] = {}
    for j, v in enumerate(jaxpr.outvars):
        free.setdefault((v.aval.shape, v.aval.dtype), []).append(j)
    found = {}
    for i in donated:
        aval = jaxpr.invars[i].aval
        places = free.get((aval.shape, aval.dtype))
        if places:
            found[i] = places.pop(0)
    return found


def unusable_donations(jaxpr: Jaxpr, donated: Sequence[int]) -> list[int]:
    """Donated arguments whose buffers no result can take over."""
    aliases = aliases_of(jaxpr, donated)
    return [i for i in donated if i not in aliases]
