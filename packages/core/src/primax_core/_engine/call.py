"""``jit_p``: the call of a named sub-jaxpr."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, Final

from .._ir.jaxpr import Jaxpr
from .._ir.primitive import (
    Primitive,
    batch,
    dce,
    jvp,
    linearize,
    lower,
    transpose,
)
from .._ir.printer import hide_defaults
from .._ir.rules import memory_kinds
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._lower import expansion_lowering as expansion_lowering  # the fallback of ``lower``
from .._lower.formats import result_kinds
from .._lower.lazy import ir, lowering
from .._trace.core import typeof
from .._trace.staging import stage, without_tracers
from .._transform.batching import batch_jaxpr
from .._transform.call_rules import add_call_rules
from .._transform.dce import dce_jaxpr
from .._transform.jvp import jvp_jaxpr
from .._transform.linearize import linearize_jaxpr
from .._transform.transpose import transpose_jaxpr
from .._transform.zeros import Zero, add_any_p, is_linear

jit_p: Final = Primitive(
    "jit", multiple_results=True, cache_on=lambda params: params["jaxpr"].cache
)
hide_defaults("jit", inline=False, compiler_options=(), donated=())


class Inline(enum.Enum):
    """Time at which the jaxpr of a jitted function is inlined into its caller.

    ``TRACING``: when the caller is traced. ``LOWERING``: when it is lowered. ``XLA_EARLY`` and
    ``XLA_LATE``: by an early or a late pass of XLA. ``AUTO``: chosen by the library and XLA. It
    is the argument ``inline`` of :func:`jit`.

    >>> from primax_core import Inline, jit, lax, make_jaxpr
    >>> f = jit(lambda x: lax.sin(x), inline=Inline.TRACING)
    >>> make_jaxpr(f)(1.0)
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """

    TRACING = "tracing"
    LOWERING = "lowering"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


def call_jaxpr(jaxpr: Jaxpr, args: Sequence[Any], like: dict[str, Any]) -> list[Any]:
    """Bind a call of a jaxpr, with the other parameters of a jit equation.

    Args:
      jaxpr: the jaxpr to call.
      args: its operands.
      like: parameters of a jit equation: name, options, donation and others.

    Returns:
      A list of results.

    Interpreters that rewrite the jaxpr of a call keep its options by it.

    >>> from primax_core import jit, lax, make_jaxpr
    >>> from primax_core.extend.traces import call_jaxpr
    >>> (eqn,) = make_jaxpr(jit(lambda x: lax.sin(x)))(1.0).eqns
    >>> [float(y) for y in call_jaxpr(eqn.params["jaxpr"], [0.0], eqn.params)]
    [0.0]
    """
    jaxpr, args = without_tracers(jaxpr, args)
    return jit_p.bind(*args, **{**like, "jaxpr": jaxpr, "donated": ()})


add_call_rules(jit_p, "jaxpr")
jit_p.rule(memory_kinds)(lambda eqn: result_kinds(eqn.params["jaxpr"]))


@jit_p.rule(lower)
def _lower(ctx, *values, jaxpr, name, inline=False, **_):
    if inline is True or inline is Inline.LOWERING:
        return lowering.lower_body(ctx, jaxpr, values)
    outs = ctx.call_jaxpr(jaxpr, name, values)
    if inline and outs:
        inline_attribute = ir.DictAttr.get({"inlineable": ir.StringAttr.get(inline.value)})
        outs[0].owner.attributes["mhlo.frontend_attributes"] = inline_attribute
    return outs


@jit_p.rule(jvp)
def _jvp(primals, tangents, *, jaxpr, **params):
    mask = tuple(type(t) is not Zero for t in tangents)
    forward, out_mask = jvp_jaxpr(jaxpr, mask)
    nonzero = [t for t in tangents if type(t) is not Zero]
    outs = call_jaxpr(forward, [*primals, *nonzero], params)
    n = len(jaxpr.outvars)
    rest = iter(outs[n:])
    tangents_out = [
        next(rest) if m else Zero(v.aval.tangent_aval()) for m, v in zip(out_mask, jaxpr.outvars)
    ]
    return outs[:n], tangents_out


@jit_p.rule(linearize)
def _linearize(primals, mask, *, jaxpr, **params):
    linearized = linearize_jaxpr(jaxpr, mask)
    results = call_jaxpr(linearized.forward, primals, params)
    outs, extra = results[: linearized.n_outs], results[linearized.n_outs :]
    if linearized.linear is None:
        ins = [typeof(p).tangent_aval() for p, m in zip(primals, mask) if m]
        return outs, stage(lambda *_: [], ins), linearized.out_mask
    sources = {"in": primals, "out": outs, "extra": extra}
    residuals = [sources[origin][i] for origin, i in linearized.residuals]
    n = len(residuals)
    avals = [v.aval for v in linearized.linear.invars[n:]]
    linear = stage(lambda *ts: call_jaxpr(linearized.linear, [*residuals, *ts], params), avals)
    return outs, linear, linearized.out_mask


@jit_p.rule(transpose)
def _transpose(cts, *args, jaxpr, **params):
    linear = tuple(is_linear(a) for a in args)
    ct_mask = tuple(None if type(c) is Zero else typeof(c) for c in cts)
    backward, out_mask = transpose_jaxpr(jaxpr, linear, ct_mask)
    known = [a for a in args if not is_linear(a)]
    cotangents = iter(
        call_jaxpr(backward, [*known, *(c for c in cts if type(c) is not Zero)], params)
    )
    return [next(cotangents) if m else None for m in out_mask]


@jit_p.rule(batch)
def _batch(axis, args, dims, *, jaxpr, **params):
    batched, out_dims = batch_jaxpr(jaxpr, tuple(dims), axis)
    return call_jaxpr(batched, args, params), list(out_dims)


@jit_p.rule(dce)
def _dce(used, eqn):
    jaxpr, used_inputs = dce_jaxpr(eqn.params["jaxpr"], tuple(used))
    if not any(used) and not jaxpr.effects:
        return [False] * len(eqn.invars), None
    new = eqn.replace(
        invars=[v for v, u in zip(eqn.invars, used_inputs) if u],
        outvars=[v for v, u in zip(eqn.outvars, used) if u],
        params={**eqn.params, "jaxpr": jaxpr, "donated": ()},
        effects=jaxpr.effects,
    )
    return list(used_inputs), new


def _called(x, y):
    jaxpr = stage(lambda a, b: [add_any_p.bind(a, b), b], [typeof(x), typeof(y)])
    return jit_p.bind(x, y, jaxpr=jaxpr, name="called", inline=False, donated=())


@jit_p.rule(samples)
def _samples():
    yield Sample(f32(3), f32(3)).set(call=_called)
    yield Sample(c64(), c64()).set(call=_called)
    yield Sample(bf16(0, 2), bf16(0, 2)).set(call=_called)
