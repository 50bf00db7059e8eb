"""Checks of jaxprs with the primitive: parameters, printing, the checker, evaluation."""

from __future__ import annotations

from collections.abc import Callable

from ..._api.tracing import make_jaxpr
from ..._ir.check import check_jaxpr
from ..._trace.staging import eval_jaxpr
from ...extend.jaxprs import walk
from ..calls import Call, Failure
from ..tolerance import mismatches


def check_parameters(get: Callable[..., Call]) -> None:
    """The sample binds the primitive, and its parameters are hashable and equal to themselves."""
    call = get()
    jaxpr = make_jaxpr(call.raw)(*call.args)
    eqns = [e for e in walk(jaxpr) if e.primitive is call.prim]
    if not eqns:
        raise Failure(f"the sample does not bind {call.prim.name}: {jaxpr}")
    for eqn in eqns:
        for name, value in eqn.params.items():
            try:
                same = hash(value) == hash(value) and value == value
            except Exception as e:
                raise Failure(
                    f"parameter {name}={value!r} cannot be hashed and compared: {e}"
                ) from e
            if same is not True:
                raise Failure(f"parameter {name}={value!r} does not equal itself")


def check_programs(get: Callable[..., Call]) -> None:
    """A jaxpr with the primitive prints, is well formed, and evaluates to the same results."""
    call = get()
    jaxpr = make_jaxpr(call.fun)(*call.args)
    again = make_jaxpr(call.fun)(*call.args)
    if str(jaxpr) != str(again):
        raise Failure(f"two jaxprs of one call print differently:\n{jaxpr}\n{again}")
    jaxpr.cache.pop("checked", None)
    check_jaxpr(jaxpr)
    text = mismatches(eval_jaxpr(jaxpr, call.args), call.fun(*call.args), call.sample.tolerance)
    if text:
        raise Failure(f"the evaluated jaxpr against the call: {text}")
