"""Checks of the rules that few primitives have, against the primitive itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..._api.checkpoint import checkpoint
from ..._api.jit import jit
from ..._api.tracing import make_jaxpr
from ..._api.vjp import vjp
from ..._ir import rules as kinds
from ..._ir.rules import RuleKind, Unsupported
from ..._trace.core import typeof
from ..._trace.staging import eval_jaxpr
from ..._transform.dce import dce_jaxpr
from ..._transform.expansion import expanded
from ..calls import Call, Failure, NotApplicable
from ..gradients import random_tangent
from ..tolerance import mismatches

# Operations of a module that do more than compute their results.
_ACTS: Final = re.compile(r"has_side_effect = true|stablehlo\.(infeed|outfeed|send|recv)\b")


def _own_rule(call: Call, kind: RuleKind[Any]) -> None:
    rule = call.prim.rules.get(kind)
    if rule is None or type(rule) is Unsupported:
        raise NotApplicable(f"the primitive has no {kind.name} rule")


def check_expected(get: Callable[..., Call]) -> None:
    """The values equal those of the sample's ``expect``, a function of NumPy arrays."""
    call = get()
    if call.sample.expect is None:
        raise NotApplicable("the sample does not state the expected values")
    out = call.sample.expect(*call.args)
    expected = list(out) if isinstance(out, (list, tuple)) else [out]
    text = mismatches(call.fun(*call.args), expected, call.sample.tolerance)
    if text:
        raise Failure(f"against the expected values: {text}")


def check_expansion(get: Callable[..., Call]) -> None:
    """The expansion has the results of the primitive, and its effects."""
    call = get()
    _own_rule(call, kinds.expand)
    if call.sample.call is not None:
        raise NotApplicable("the sample calls a function, not the primitive")
    jaxpr = expanded(call.prim, [typeof(a) for a in call.args], call.params)
    assert jaxpr is not None
    outs = jit(lambda *args: eval_jaxpr(jaxpr, args))(*call.args)
    observe = call.sample.observe
    outs = list(observe(outs)) if observe else outs
    text = mismatches(outs, call.fun(*call.args), call.sample.tolerance)
    if text:
        raise Failure(f"the expansion against the primitive: {text}")
    declared = make_jaxpr(call.raw)(*call.args).effects
    if jaxpr.effects != declared:
        raise Failure(
            f"the expansion has the effects {_listed(jaxpr.effects)}, the primitive "
            f"{_listed(declared)}"
        )


def _listed(effects: frozenset[Any]) -> str:
    return ", ".join(sorted(map(str, effects))) or "none"


def check_effects(get: Callable[..., Call]) -> None:
    """Operations that do more than compute belong to a primitive with effects."""
    call = get()
    jaxpr = make_jaxpr(call.raw)(*call.args)
    if jaxpr.effects:
        return
    text = jit(call.raw).lower(*call.args).as_text()
    acts = _ACTS.search(text)
    if acts:
        raise Failure(
            f"the primitive has no effects, but its module contains `{acts[0]}`: such an operation "
            "is removed where its results are not used. Declare it with an effects rule"
        )


def check_dead_code(get: Callable[..., Call]) -> None:
    """With some of its results removed, an operation still computes the others."""
    call = get()
    _own_rule(call, kinds.dce)
    jaxpr = make_jaxpr(call.raw)(*call.args)
    whole = eval_jaxpr(jaxpr, call.args)
    n = len(whole)
    masks = [tuple(i == j for j in range(n)) for i in range(n)]
    masks += [tuple(i != j for j in range(n)) for i in range(n)] if n > 2 else []
    for mask in masks:
        part, used = dce_jaxpr(jaxpr, mask)
        outs = eval_jaxpr(part, [a for a, u in zip(call.args, used) if u])
        expected = [o for o, m in zip(whole, mask) if m]
        text = mismatches(outs, expected, call.sample.tolerance)
        if text:
            indices = [i for i, m in enumerate(mask) if m]
            raise Failure(f"with only the results {indices} used: {text}")


def check_saved(get: Callable[..., Call]) -> None:
    """Gradients under ``checkpoint`` do not depend on the values that its policy saves."""
    call = get()
    _own_rule(call, kinds.partial_eval)
    indices = call.differentiable
    if not indices:
        raise NotApplicable("no operand can be differentiated")
    fun = call.of(indices)
    some = [call.args[i] for i in indices]
    cts = [random_tangent(o, call.rng(1)) for o in fun(*some)]
    expected = _pulled_back(fun, some, cts)
    for name, policy in _POLICIES.items():
        outs = _pulled_back(checkpoint(fun, policy=policy), some, cts)
        text = mismatches(outs, expected, call.sample.tolerance)
        if text:
            raise Failure(f"gradients with {name}, against those without checkpoint: {text}")


_POLICIES: Final[dict[str, Callable[..., bool]]] = {
    "nothing saved": lambda *args, **params: False,
    "everything saved": lambda *args, **params: True,
    # By name, so that a sample is checked alike whichever samples came before.
    "some values saved": lambda prim, *args, **params: len(prim.name) % 2 == 0,
}


def _pulled_back(fun: Callable[..., Any], args: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    return list(jit(lambda args, cts: vjp(fun, *args)[1](cts))(args, list(cts)))
