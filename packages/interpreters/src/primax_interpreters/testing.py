"""Checks of ``taylor``, ``error_checks``, ``faults`` and ``cost`` rules for the conformance kit.

Importing this module adds the checks ``jet``, ``checkify`` and ``cost`` to
``primax_core.testing.CHECKS``:

    import primax_interpreters.testing
    from primax_core.testing.pytest import conformance

    test_my_primitives = conformance(my_p)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import primax_core as px
from primax_core.extend import expand, jvp, typeof
from primax_core.testing import (
    Call,
    Failure,
    NotApplicable,
    add_check,
    mismatches,
    random_tangent,
)

from . import checkify as _checkify
from ._checkify.faults import error_checks, faults
from ._insight.cost_rules import Cost, cost
from ._jet.interpreter import taylor
from .jet import jet


def check_jet(get: Callable[..., Call]) -> None:
    """Derivatives along a curve equal those of nested forward mode, up to the second."""
    call = get(double=True)
    prim = call.prim
    if prim.find(taylor) is None or jvp not in prim.rules and expand not in prim.rules:
        raise NotApplicable("the primitive has no taylor rule beside a jvp rule")
    if "jvp" in call.sample.without:
        raise NotApplicable(call.sample.without["jvp"])
    indices = call.differentiable
    if not indices:
        raise NotApplicable("no operand can be differentiated")
    fun = call.of(indices)
    primals = tuple(call.args[i] for i in indices)
    if not fun(*primals):
        raise NotApplicable("no result can be differentiated")
    rng = call.rng(7)
    first, second = (tuple(random_tangent(x, rng) for x in primals) for _ in range(2))

    def velocity(xs: Any, ts: Any) -> Any:
        return px.jvp(fun, xs, ts)[1]

    expected = [
        fun(*primals),
        velocity(primals, first),
        px.jvp(velocity, (primals, first), (first, second))[1],
    ]
    outs, series = jet(fun, primals, tuple([t, u] for t, u in zip(first, second)))
    results = [outs, [s[0] for s in series], [s[1] for s in series]]
    for order, (actual, nested) in enumerate(zip(results, expected)):
        _compare(f"derivative {order} along a curve, against nested jvp", actual, nested, call)


def check_checkify(get: Callable[..., Call]) -> None:
    """Under ``checkify``, the results are those of the primitive."""
    call = get()
    if not any(kind in call.prim.rules for kind in (expand, error_checks, faults)):
        raise NotApplicable("the primitive has no expand, error_checks or faults rule")
    expected = call.fun(*call.args)
    _, outs = _checkify.checkify(call.fun, errors=_checkify.all_checks)(*call.args)
    _compare("under checkify", outs, expected, call)


def check_cost(get: Callable[..., Call]) -> None:
    """The costs are finite numbers of at least zero."""
    call = get()
    rule = call.prim.rules.get(cost)
    if rule is None:
        raise NotApplicable("the primitive has no cost rule")
    if call.sample.call is not None:
        raise NotApplicable("the sample calls a function, not the primitive")
    ins = [typeof(a) for a in call.args]
    outs = [typeof(o) for o in call.raw(*call.args)]
    answer = rule(ins, outs, **call.params)
    if not isinstance(answer, Cost):
        raise Failure(f"the cost rule returned {answer!r}, which is not a Cost")
    for name in ("flops", "special", "bytes"):
        value = getattr(answer, name)
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise Failure(f"the cost rule returned {name}={value!r}")


def _compare(what: str, actual: Any, expected: Any, call: Call) -> None:
    text = mismatches(actual, expected, call.sample.tolerance)
    if text:
        raise Failure(f"{what}: {text}")


add_check("jet", check_jet, double=True)
add_check("checkify", check_checkify)
add_check("cost", check_cost)
