"""Rules for faults in calls, branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from primax_core.extend import (
    custom_jvp_call_p,
    custom_vjp_call_p,
    eval_jaxpr,
    jit_p,
    remat_p,
    stage,
    typeof,
)
from primax_core.extend.placements import placed_like
from primax_core.extend.traces import (
    CustomJVP,
    CustomVJP,
    PerturbedValue,
    SymbolicZero,
    call_jaxpr,
    derive_from_jaxpr,
    is_valid_type,
)
from primax_core.lax import cond_p, ge, scan_p, select_n, while_p

from .faults import (
    Fault,
    Sites,
    called,
    evaluate,
    faults,
    faulty,
    none_of,
    placed,
    split_faults,
)


@jit_p.rule(faults)
def _jit_faults(categories, args, eqn):
    params = {k: v for k, v in eqn.params.items() if k != "jaxpr"}

    def call(program, args):
        return call_jaxpr(program, args, params)

    return called(eqn.params["jaxpr"], args, categories, call)


@remat_p.rule(faults)
def _remat_faults(categories, args, eqn):
    params = {k: v for k, v in eqn.params.items() if k != "jaxpr"}

    def call(program, args):
        return remat_p.bind(*args, jaxpr=program, **params)

    return called(eqn.params["jaxpr"], args, categories, call)


@custom_jvp_call_p.rule(faults)
def _custom_jvp_call_faults(categories, args, eqn):
    p = eqn.params
    program, sites = faulty(p["call_jaxpr"], categories)
    if program is p["call_jaxpr"]:
        return custom_jvp_call_p.bind(*args, **p), []
    consts = args[: p["num_consts"]]

    def rule(primals, tangents):
        outs, dots = _silently(p["jvp"], (primals, tangents), categories)
        extra = eval_jaxpr(program, [*consts, *primals])[len(outs) :]
        return [*outs, *extra], [*dots, *(SymbolicZero(typeof(x).tangent_aval()) for x in extra)]

    custom = CustomJVP(
        lambda *xs: eval_jaxpr(program, xs), rule, p["name"], p["symbolic_zeros"], None,
        p["num_consts"],
    )  # fmt: skip
    return split_faults(custom.call(args), sites)


@custom_vjp_call_p.rule(faults)
def _custom_vjp_call_faults(categories, args, eqn):
    p = eqn.params
    program, sites = faulty(p["call_jaxpr"], categories)
    if program is p["call_jaxpr"]:
        return custom_vjp_call_p.bind(*args, **p), []
    n = len(p["call_jaxpr"].outvars)
    consts = args[: p["num_consts"]]

    def fwd(*primals):
        outs, residuals = _silently(lambda xs: p["fwd"](*xs), (primals,), categories)
        plain = [x.value if type(x) is PerturbedValue else x for x in primals]
        extra = eval_jaxpr(program, [*consts, *plain])[n:]
        return [*outs, *extra], residuals

    def bwd(residuals, cts):
        def run(residuals, cts):
            return (p["bwd"](residuals, cts),)

        return _silently(run, (residuals, cts[:n]), categories)[0]

    custom = CustomVJP(
        lambda *xs: eval_jaxpr(program, xs), fwd, bwd, p["name"], p["symbolic_zeros"], None,
        p["num_consts"],
    )  # fmt: skip
    return split_faults(custom.call(args), sites)


def _silently(
    rule: Callable[..., Any], groups: Sequence[Sequence[Any]], categories: Any
) -> list[list[Any]]:
    """Results of a custom rule, without its checks: those of the function count.

    Args:
      rule: takes and returns several sequences of arrays and other things, such as symbolic zeros.
    """
    values = [x.value if type(x) is PerturbedValue else x for group in groups for x in group]
    arrays = [x for x in values if is_valid_type(x)]
    shape: list[list[Any]] = []

    def flat(*traced):
        leaves = iter(traced)
        filled = [_refilled(x, leaves) for group in groups for x in group]
        rest = iter(filled)
        outs = [list(out) for out in rule(*([next(rest) for _ in group] for group in groups))]
        shape.extend([None if is_valid_type(x) else _Other(x) for x in out] for out in outs)
        return [x for out in outs for x in out if is_valid_type(x)]

    jaxpr = stage(flat, [typeof(x) for x in arrays])
    leaves = iter(evaluate(jaxpr, arrays, categories)[0])
    return [[next(leaves) if x is None else x.value for x in out] for out in shape]


class _Other:
    """A result that is no array."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


def _refilled(x: Any, traced: Iterator[Any]) -> Any:
    if type(x) is PerturbedValue:
        return PerturbedValue(next(traced), x.perturbed)
    return next(traced) if is_valid_type(x) else x


@cond_p.rule(faults)
def _cond_faults(categories, args, eqn):
    branches = eqn.params["branches"]
    others = {k: v for k, v in eqn.params.items() if k != "branches"}
    checked = [faulty(b, categories) for b in branches]
    if not any(len(sites) for _, sites in checked):
        return cond_p.bind(*args, branches=tuple(b for b, _ in checked), **others), []
    sites = Sites(tuple(s for _, own in checked for s in own.sites))
    key = (categories, tuple(branches[1:]))
    programs = derive_from_jaxpr(
        branches[0], "faulty branches", key, lambda: _aligned(checked, sites)
    )
    return split_faults(cond_p.bind(*args, branches=programs, **others), sites)


def _aligned(checked: list[tuple[Any, Sites]], sites: Sites) -> tuple[Any, ...]:
    """Branches that all give a fault of the same sites."""
    programs, base = [], 0
    for program, own in checked:

        def run(*args, program=program, own=own, base=base):
            outs, faults = split_faults(eval_jaxpr(program, args), own)
            fault = faults[0] if faults else none_of(own)
            return [*outs, *placed(fault, sites, base)]

        programs.append(stage(run, program.in_avals, debug_info=program.debug_info, parent=None))
        base += len(own)
    return tuple(programs)


@scan_p.rule(faults)
def _scan_faults(categories, args, eqn):
    p = dict(eqn.params)
    body, sites = faulty(p["jaxpr"], categories)
    if not len(sites):
        return scan_p.bind(*args, **{**p, "jaxpr": body}), []
    nc, ni = p["num_consts"], p["num_carry"]
    k = len(sites.avals)
    fault_avals = body.out_avals[-k:]  # in a region of a mesh with the axes along which they vary

    def make():
        def step(*xs):
            consts, known, rest = xs[:nc], xs[nc : nc + k], xs[nc + k :]
            outs, new = split_faults(eval_jaxpr(body, [*consts, *rest]), sites)
            fault = _first(Fault(sites, known[0], known[1:]), new[0])
            return [*fault.leaves, *outs]

        avals = p["jaxpr"].in_avals
        types = [*avals[:nc], *fault_avals, *avals[nc:]]
        return stage(step, types, debug_info=p["jaxpr"].debug_info, parent=None)

    p["jaxpr"] = derive_from_jaxpr(body, "faulty step", nc, make)
    p["num_carry"] = ni + k
    first = [placed_like(x, a) for x, a in zip(none_of(sites).leaves, fault_avals)]
    outs = scan_p.bind(*args[:nc], *first, *args[nc:], **p)
    return outs[k:], [Fault(sites, outs[0], outs[1:k])]


def _first(before: Fault, after: Fault) -> Fault:
    """The earlier one of two faults of the same sites."""
    failed = ge(before.code, np.int32(0))
    return Fault(
        before.sites, select_n(failed, after.code, before.code),
        [select_n(failed, a, b) for a, b in zip(after.values, before.values)],
    )  # fmt: skip


@while_p.rule(faults)
def _while_faults(categories, args, eqn):
    p = eqn.params
    cond, body = p["cond_jaxpr"], p["body_jaxpr"]
    (test, cond_sites), (loop, body_sites) = faulty(cond, categories), faulty(body, categories)
    sites = Sites((*cond_sites.sites, *body_sites.sites))
    if not len(sites):
        return while_p.bind(*args, **{**p, "cond_jaxpr": test, "body_jaxpr": loop}), []
    if cond.out_avals[0].shape:
        raise ValueError(
            "Checkify does not support batched while-loops (checkify-of-vmap-of-while): examples "
            "that have ended are still computed. Move the vmap to the outer level: "
            "vmap(checkify(f))."
        )
    k, nc, nb = len(sites.avals), p["cond_nconsts"], p["body_nconsts"]
    cond_consts, body_consts, init = args[:nc], args[nc : nc + nb], args[nc + nb :]

    def tested(consts, carry):
        outs, fault = evaluate(cond, [*consts, *carry], categories)
        return outs[0], Fault(sites, *_split(placed(fault, sites, 0)))

    def step(*xs):
        consts, others, (_, *rest) = xs[:nc], xs[nc : nc + nb], xs[nc + nb :]
        known, carry = Fault(sites, *_split(rest[:k])), rest[k:]
        outs, fault = evaluate(body, [*others, *carry], categories)
        fault = _first(known, Fault(sites, *_split(placed(fault, sites, len(cond_sites)))))
        again, at_test = tested(consts, outs)
        return [again, *_first(fault, at_test).leaves, *outs]

    avals = body.in_avals
    go_on, fault = tested(cond_consts, init)
    types = [*cond.in_avals[:nc], *avals[:nb], typeof(go_on), *sites.avals, *avals[nb:]]
    key = (categories, cond, nc, nb)
    program = derive_from_jaxpr(
        body,
        "faulty loop",
        key,
        lambda: stage(step, types, debug_info=body.debug_info, parent=None),
    )
    test = derive_from_jaxpr(
        program, "test", nb, lambda: stage(lambda x, *_: [x], types[nc + nb :], parent=None)
    )
    outs = while_p.bind(
        *cond_consts, *body_consts, go_on, *fault.leaves, *init, cond_jaxpr=test,
        body_jaxpr=program, cond_nconsts=0, body_nconsts=nc + nb,
    )  # fmt: skip
    return outs[1 + k :], [Fault(sites, outs[1], outs[2 : 1 + k])]


def _split(leaves: Any) -> tuple[Any, Any]:
    return leaves[0], leaves[1:]
