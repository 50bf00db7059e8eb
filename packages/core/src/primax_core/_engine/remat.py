"""``remat``: a call whose intermediate values are recomputed in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from .._base.config import state
from .._ir.effects import are_exact, on_references
from .._ir.jaxpr import Eqn, Jaxpr, Literal, Var
from .._ir.primitive import (
    Primitive,
    abstract,
    batch,
    dce,
    jvp,
    linearize,
    lower,
    partial_eval,
    transpose,
)
from .._ir.rule_results import described, invalid_result, is_list
from .._ir.rules import memory_kinds
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._lower.formats import result_kinds
from .._lower.lazy import hlo, lowering
from .._runtime.memory_spaces import ArrayCopySemantics, Space
from .._runtime.stepwise import calls_of_bodies
from .._trace.core import typeof
from .._trace.staging import eval_jaxpr, stage, without_tracers
from .._trace.structural import device_put_p
from .._transform.batching import batch_jaxpr
from .._transform.call_rules import add_call_rules
from .._transform.dce import dce_jaxpr
from .._transform.derived import derive_from_jaxpr
from .._transform.jvp import jvp_jaxpr
from .._transform.linearize import linearize_jaxpr
from .._transform.transpose import transpose_jaxpr
from .._transform.zeros import Zero, is_linear
from .call import jit_p

remat_p: Final = Primitive(
    "remat2", multiple_results=True, cache_on=lambda params: params["jaxpr"].cache
)
name_p: Final = Primitive("name")


# A policy returns one of these, or a bool.


class Saveable:
    """Policy result: save the value."""


class Recompute:
    """Policy result: recompute the value."""


class Offloadable:
    """Policy result: save the value in another memory kind."""

    def __init__(self, src: str, dst: str):
        self.src = src
        self.dst = dst


def saves(policy: Callable | None, eqn: Eqn) -> bool | Offloadable:
    """Return True if a policy saves the results of an equation; ``Offloadable`` for another
    memory.
    """
    if policy is None:
        return False
    answer = policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params)
    if isinstance(answer, (bool, Offloadable)):
        return answer
    return answer is Saveable or isinstance(answer, Saveable)


def _move(source: Var, target: Var, memory_kind: str) -> Eqn:
    """The equation that copies a value to a memory kind."""
    space = Space.Device if memory_kind == "device" else Space.Host
    params = {
        "devices": (space,), "srcs": (None,), "copy_semantics": (ArrayCopySemantics.ALWAYS_COPY,),
    }  # fmt: skip
    return Eqn(device_put_p, [source], [target], params)


def _call(jaxpr: Jaxpr, args: Sequence, **params) -> list:
    jaxpr, args = without_tracers(jaxpr, args)
    return remat_p.bind(*args, jaxpr=jaxpr, **params)


add_call_rules(remat_p, "jaxpr")
remat_p.rule(memory_kinds)(lambda eqn: result_kinds(eqn.params["jaxpr"]))
calls_of_bodies[remat_p] = "jaxpr"


@remat_p.rule(lower)
def _remat_lower(ctx, *values, jaxpr, differentiated, prevent_cse, **_):
    if differentiated and prevent_cse and values:
        # Without the barrier XLA would merge the two computations and keep the values after all.
        values = list(hlo.OptimizationBarrierOp(list(values)).results)
    return lowering.lower_body(ctx, jaxpr, values)


@remat_p.rule(jvp)
def _remat_jvp(primals, tangents, *, jaxpr, **params):
    mask = tuple(type(t) is not Zero for t in tangents)
    forward, out_mask = jvp_jaxpr(jaxpr, mask)
    nonzero = [t for t in tangents if type(t) is not Zero]
    outs = _call(forward, [*primals, *nonzero], **params)
    n = len(jaxpr.outvars)
    rest = iter(outs[n:])
    return outs[:n], [next(rest) if m else Zero.like(o) for m, o in zip(out_mask, outs)]


@remat_p.rule(linearize)
def _remat_linearize(primals, mask, *, jaxpr, policy, prevent_cse, differentiated):
    plan = derive_from_jaxpr(
        jaxpr, "remat", (tuple(mask), policy), lambda: _RematPlan(jaxpr, policy, tuple(mask))
    )
    results = eval_jaxpr(plan.forward, primals)
    n = len(jaxpr.outvars)
    outs, saved = results[:n], results[n:]
    inputs = [p for p, k in zip(primals, plan.used_inputs) if k]

    def linear(*tangents):
        return _call(
            plan.linear, [*inputs, *saved, *tangents], policy=policy, prevent_cse=prevent_cse,
            differentiated=True,
        )  # fmt: skip

    avals = [typeof(p).tangent_aval() for p, m in zip(primals, mask) if m]
    return outs, stage(linear, avals, parent=state.trace), plan.out_mask


class _RematPlan:
    """A rematerialized jaxpr in two parts.

    Attributes:
      forward: ``(*inputs) -> (*outs, *saved)``, with the values that the policy saves and that the
        linear part needs.
      linear: ``(*used inputs, *saved, *tangents) -> (*out tangents)``; it recomputes the rest.
      used_inputs: mask of the inputs that the linear part reads.
      out_mask: mask of the outs with tangents.
    """

    def __init__(self, jaxpr: Jaxpr, policy, mask: tuple[bool, ...]):
        # Policies also apply to values that only the derivative needs, such as the cosine of a
        # sine.
        linearized = linearize_jaxpr(inlined(jaxpr), mask)
        whole, n_outs = linearized.forward, linearized.n_outs
        forward, again, n_saved = split_by_policy(whole, policy)
        origins = {"in": again.invars, "out": again.outvars, "extra": again.outvars[n_outs:]}
        again = again.replace(outvars=[origins[origin][i] for origin, i in linearized.residuals])
        n_in = len(whole.invars)
        n = n_in + n_saved

        def run(*args):
            if linearized.linear is None:
                return []
            return eval_jaxpr(linearized.linear, [*eval_jaxpr(again, args[:n]), *args[n:]])

        tangent_avals = [v.aval.tangent_aval() for v, m in zip(jaxpr.invars, mask) if m]
        linear = stage(run, [*again.in_avals, *tangent_avals], jaxpr.debug_info)
        keep = (*[False] * n, *[True] * len(tangent_avals))
        self.linear, used = dce_jaxpr(linear, (True,) * len(linear.outvars), keep)
        self.used_inputs = used[:n_in]
        n_whole = len(whole.outvars)
        needed = (*[True] * n_outs, *[False] * (n_whole - n_outs), *used[n_in:n])
        self.forward, _ = dce_jaxpr(forward, needed, True)
        self.out_mask = linearized.out_mask


def split_by_policy(jaxpr: Jaxpr, policy) -> tuple[Jaxpr, Jaxpr, int]:
    """Split a jaxpr by a policy.

    Returns:
      The jaxpr with the saved values as additional results, the jaxpr with these values as
      additional arguments, and their number.
    """
    jaxpr = inlined(jaxpr)
    forward: list[Eqn] = []
    again: list[Eqn] = []
    saved: list[Var] = []
    taken: list[Var] = []
    for eqn in jaxpr.eqns:
        saved_as = saves(policy, eqn)
        if type(saved_as) is Offloadable:
            forward.append(eqn)
            for v in eqn.outvars:
                away = Var(v.aval)
                location = eqn.source
                forward.append(_move(v, away, saved_as.dst).replace(source_info=location))
                again.append(_move(away, v, saved_as.src).replace(source_info=location))
                saved.append(away)
                taken.append(away)
            continue
        if saved_as or on_references(eqn.effects) or are_exact(eqn.effects):
            # A later read may give another value, and a write must happen once.
            forward.append(eqn)
            saved.extend(eqn.outvars)
            taken.extend(eqn.outvars)
            continue
        rule = eqn.primitive.rules.get(partial_eval)
        split_eqn = None
        if rule is not None:
            split_eqn = rule(lambda body: split_by_policy(body, policy), eqn)
            if split_eqn is not None and (not is_list(split_eqn) or len(split_eqn) != 3):
                problem = f"returned {described(split_eqn)}"
                invalid_result(eqn.primitive, partial_eval, rule, problem)
        if split_eqn is None:
            forward.append(eqn)
            again.append(eqn)
        else:
            forward.append(split_eqn[0])
            again.append(split_eqn[1])
            saved.extend(split_eqn[2])
            taken.extend(split_eqn[2])
    return (
        jaxpr.replace(eqns=forward, outvars=[*jaxpr.outvars, *saved]),
        jaxpr.replace(eqns=again, invars=[*jaxpr.invars, *taken]),
        len(saved),
    )


def inlined(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with its ``jit`` calls inlined, so that policies see their operations."""
    if not any(e.primitive is jit_p for e in jaxpr.eqns):
        return jaxpr
    eqns: list[Eqn] = []
    subst: dict[Any, Any] = {}
    constvars, consts = list(jaxpr.constvars), list(jaxpr.consts)

    def read(v):
        return v if type(v) is Literal else subst.get(v, v)

    for eqn in jaxpr.eqns:
        ins = [read(v) for v in eqn.invars]
        if eqn.primitive is not jit_p:
            eqns.append(eqn.replace(invars=ins))
            continue
        body = inlined(eqn.params["jaxpr"])
        env: dict[Any, Any] = dict(zip(body.invars, ins))
        for v, c in zip(body.constvars, body.consts):
            env[v] = fresh = Var(v.aval)
            constvars.append(fresh)
            consts.append(c)
        for inner in body.eqns:
            outvars = [Var(v.aval) for v in inner.outvars]
            new_ins = [v if type(v) is Literal else env[v] for v in inner.invars]
            eqns.append(inner.replace(invars=new_ins, outvars=outvars, ctx=eqn.ctx + inner.ctx))
            env.update(zip(inner.outvars, outvars))
        for v, w in zip(eqn.outvars, body.outvars):
            subst[v] = w if type(w) is Literal else env[w]
    return jaxpr.replace(
        constvars=constvars, consts=consts, eqns=eqns, outvars=[read(v) for v in jaxpr.outvars]
    )


@remat_p.rule(transpose)
def _remat_transpose(cts, *args, jaxpr, policy, prevent_cse, differentiated):
    linear = tuple(is_linear(a) for a in args)
    ct_mask = tuple(None if type(c) is Zero else typeof(c) for c in cts)
    backward, out_mask = transpose_jaxpr(jaxpr, linear, ct_mask)
    known = [a for a in args if not is_linear(a)]
    cotangents = iter(
        _call(
            backward,
            [*known, *(c for c in cts if type(c) is not Zero)],
            policy=policy,
            prevent_cse=prevent_cse,
            differentiated=True,
        )
    )
    return [next(cotangents) if m else None for m in out_mask]


@remat_p.rule(batch)
def _remat_batch(axis, args, dims, *, jaxpr, **params):
    batched, out_dims = batch_jaxpr(jaxpr, tuple(dims), axis)
    return _call(batched, args, **params), list(out_dims)


@remat_p.rule(dce)
def _remat_dce(used, eqn):
    jaxpr, ins = dce_jaxpr(eqn.params["jaxpr"], tuple(used))
    if not any(used) and not jaxpr.effects:
        return [False] * len(eqn.invars), None
    new = eqn.replace(
        invars=[v for v, u in zip(eqn.invars, ins) if u],
        outvars=[v for v, u in zip(eqn.outvars, used) if u],
        params={**eqn.params, "jaxpr": jaxpr},
        effects=jaxpr.effects,
    )
    return list(ins), new


# Names for policies


@name_p.rule(abstract)
def _name_abstract(x, *, name):
    return x


@name_p.rule(lower)
def _name_lower(ctx, x, *, name):
    return x


@name_p.rule(jvp)
def _name_jvp(primals, tangents, *, name):
    return name_p.bind(*primals, name=name), tangents[0]


@name_p.rule(batch)
def _name_batch(axis, args, dims, *, name):
    return name_p.bind(*args, name=name), dims[0]


@name_p.rule(samples)
def _name_samples():
    yield Sample(f32(3), name="saved")
    yield Sample(c64(), name="saved")
    yield Sample(bf16(0, 2), name="saved")
