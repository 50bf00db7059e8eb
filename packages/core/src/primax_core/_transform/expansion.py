"""Expansions: the definition of a primitive with an ``expand`` rule by other primitives.

If such a primitive lacks a rule, its type, effects, lowering, derivative, transpose and batching
are derived from its expansion. Other interpreters get the expansion from :func:`expanded`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .._base.config import state
from .._ir.jaxpr import DebugInfo, Jaxpr
from .._ir.primitive import Primitive
from .._ir.rules import abstract, batch, effects, expand, jvp, linearize, transpose
from .._trace.core import call_on, typeof
from .._trace.staging import stage
from .batching import batch_jaxpr
from .derived import derive
from .jvp import jvp_jaxpr
from .linearize import linearize_jaxpr
from .transpose import transpose_jaxpr
from .zeros import Zero, is_linear


def expanded(prim: Primitive, avals: Sequence[Any], params: dict[str, Any]) -> Jaxpr | None:
    """The jaxpr of the expansion of a primitive; ``None`` without an expand rule."""
    rule = prim.find(expand)
    if rule is None:
        return None

    def run(*args):
        from .rule_results import expansion_results  # loaded with the first rule

        return expansion_results(prim, rule, rule(*args, **params), params, avals)

    def make():
        return stage(run, avals, DebugInfo("expansion", prim.name))

    return derive("expand", prim, params, tuple(avals), make)


def by_expansion(rule: Callable) -> Callable[[Primitive], Callable | None]:
    """Fallback of a rule kind: a rule on the expansion, for primitives with an expand rule."""
    return lambda prim: partial(rule, prim) if prim.find(expand) is not None else None


def results_of(prim: Primitive, outs: Sequence) -> Any:
    return list(outs) if prim.multiple_results else outs[0]


@abstract.falls_back
@by_expansion
def _abstract_fallback(prim, *avals, **params):
    return results_of(prim, expanded(prim, avals, params).out_avals)


@effects.falls_back
@by_expansion
def _effects_fallback(prim, *avals, **params):
    return expanded(prim, avals, params).effects


@jvp.falls_back
@by_expansion
def _jvp_fallback(prim, primals, tangents, **params):
    jaxpr = expanded(prim, [typeof(p) for p in primals], params)
    mask = tuple(type(t) is not Zero for t in tangents)
    forward, out_mask = jvp_jaxpr(jaxpr, mask)
    nonzero = [t for t in tangents if type(t) is not Zero]
    results = call_on(state.trace, forward, [*primals, *nonzero])
    outs, rest = results[: len(out_mask)], iter(results[len(out_mask) :])
    dots = [next(rest) if m else Zero.like(o) for m, o in zip(out_mask, outs)]
    return results_of(prim, outs), results_of(prim, dots)


@linearize.falls_back
def _linearize_fallback(prim):
    # A jvp rule of its own goes before the derivative of the expansion.
    if jvp in prim.rules or prim.find(expand) is None:
        return None
    return partial(_linearize_by_expansion, prim)


def _linearize_by_expansion(prim, primals, mask, **params):
    jaxpr = expanded(prim, [typeof(p) for p in primals], params)
    linearized = linearize_jaxpr(jaxpr, tuple(mask))
    results = call_on(state.trace, linearized.forward, primals)
    outs, residuals = results[: linearized.n_outs], linearized.residual_values(primals, results)
    if linearized.linear is None:
        avals = [typeof(p).tangent_aval() for p, m in zip(primals, mask) if m]
        return outs, stage(lambda *_: [], avals), linearized.out_mask
    linear, n = linearized.linear, len(residuals)
    linear = linear.replace(constvars=linear.invars[:n], consts=residuals, invars=linear.invars[n:])
    return outs, linear, linearized.out_mask


@transpose.falls_back
@by_expansion
def _transpose_fallback(prim, ct, *args, **params):
    avals = [a.aval if is_linear(a) else typeof(a) for a in args]
    jaxpr = expanded(prim, avals, params)
    cts = ct if prim.multiple_results else [ct]
    linear = tuple(is_linear(a) for a in args)
    ct_types = tuple(None if type(c) is Zero else typeof(c) for c in cts)
    backward, out_mask = transpose_jaxpr(jaxpr, linear, ct_types)
    operands = [a for a in args if not is_linear(a)]
    operands.extend(c for c in cts if type(c) is not Zero)
    cotangents = iter(call_on(state.trace, backward, operands))
    return [next(cotangents) if m else None for m in out_mask]


@batch.falls_back
@by_expansion
def _batch_fallback(prim, axis, args, dims, **params):
    from .rule_results import example_of

    avals = [typeof(a) if d is None else example_of(typeof(a), d) for a, d in zip(args, dims)]
    batched, out_dims = batch_jaxpr(expanded(prim, avals, params), tuple(dims), axis)
    outs = call_on(state.trace, batched, args)
    return results_of(prim, outs), results_of(prim, out_dims)
