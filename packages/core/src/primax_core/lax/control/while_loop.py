"""``while_loop``: a loop with a data-dependent number of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from ..._base import pytree
from ..._base.config import state
from ..._base.operand_trees import flatten_operands
from ..._base.source import api_boundary
from ..._ir.check import check_types
from ..._ir.effects import are_ordered, check_not_masked, on_references, shifted
from ..._ir.jaxpr import Jaxpr
from ..._ir.placement import is_placed
from ..._ir.primitive import (
    Primitive,
    abstract,
    batch,
    check,
    dce,
    effects,
    jvp,
    linearize,
    lower,
    transpose,
)
from ..._ir.rules import run_jaxprs
from ..._ir.samples import Sample, bf16, c64, f32, i32, samples
from ..._lower.lazy import hlo, ir, loop_invariants, lowering, mlir
from ..._runtime.dispatch import as_operand
from ..._trace.core import DischargeFirst, Tracer, typeof
from ..._trace.reference_ops import references
from ..._trace.staging import eval_jaxpr, stage, stage_with_aux
from ..._transform.batching import batch_jaxpr, move_axis
from ..._transform.dce import dce_jaxpr
from ..._transform.derived import derive_from_jaxpr
from ..._transform.jvp import jvp_jaxpr
from ..._transform.zeros import Zero, instantiate
from ..broadcasting import broadcast_in_dim
from ..selection import select_n
from .bodies import (
    check_carry,
    fixpoint,
    parameter_name,
    permuted,
    promote_weak,
    trace_body,
)
from .forwarding import Reduced, carries_as_operands, forwards, unchanged_carries, unchanged_of

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten

_T = TypeVar("_T")

while_p: Final = Primitive(
    "while", multiple_results=True, cache_on=lambda params: params["body_jaxpr"].cache
)


@api_boundary
def while_loop(cond_fun: Callable[[_T], Any], body_fun: Callable[[_T], _T], init_val: _T) -> _T:
    """Apply ``body_fun`` to a value repeatedly while ``cond_fun`` of the value is true.

    Args:
      cond_fun: function that returns a boolean scalar.
      body_fun: function that returns a value of the same structure and types.
      init_val: a pytree. Weakly typed leaves are converted to the dtype returned by ``body_fun``.

    Returns:
      The first value for which the condition is false.

    Raises:
      TypeError: if the condition is not a boolean scalar, or the body changes types.
      ValueError: in reverse mode, if the body changes a component that is differentiated.

    Forward-mode differentiation is supported. Reverse mode is supported only for components that
    the body does not change, because the number of steps is unknown: use :func:`scan`, or
    :func:`fori_loop` with static bounds. Under ``vmap`` with a mapped condition the loop runs
    until the condition of all examples is false; finished examples do not change.

    >>> int(while_loop(lambda x: x < 10, lambda x: x * 2, 1))
    16
    >>> from primax_core import jvp
    >>> step = lambda x: while_loop(lambda v: v < 10.0, lambda v: v * v, x)
    >>> [float(v) for v in jvp(step, (2.0,), (1.0,))]
    [16.0, 32.0]
    """
    if not (callable(cond_fun) and callable(body_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    if state.disable_jit and state.trace is None:
        value = pytree.tree_map(_as_array, init_val)
        while cond_fun(value):
            value = body_fun(value)
        return value
    leaves, tree = _flatten(init_val)
    in_tree = _flatten((init_val,))[1]

    def traced(avals):
        return (
            trace_body(cond_fun, in_tree, avals, "while_cond"),
            trace_body(body_fun, in_tree, avals, "while_loop"),
        )

    avals = [typeof(x) for x in leaves]
    cond, body = traced(avals)
    if body.out_tree == tree:
        promoted = promote_weak(leaves, avals, body.jaxpr.out_avals)
        if promoted is not None:
            leaves, avals = promoted
            cond, body = traced(avals)
        if any(map(is_placed, (*avals, *cond.jaxpr.out_avals, *body.jaxpr.out_avals))):
            from .placed import with_common_carry

            leaves, avals, (cond, body) = with_common_carry(
                traced, leaves, avals, (cond, body), body_fun
            )
    outs = cond.jaxpr.out_avals
    if cond.out_tree != _LEAF or outs[0].shape != () or outs[0].dtype != np.bool_:
        raise TypeError(
            "cond_fun must return a boolean scalar, but got output type(s) "
            f"[{', '.join(str(a) for a in outs)}]"
            + ("." if cond.out_tree == _LEAF else f" in the structure {cond.out_tree}.")
        )
    check_carry(
        "while_loop body", parameter_name(body_fun, 0), tree, avals, body.out_tree,
        body.jaxpr.out_avals,
    )  # fmt: skip
    if references.ops.loaded:
        references.ops.check_aliases(leaves, (*cond.consts, *body.consts), body.info)
    mask = unchanged_of(body, len(leaves))
    outs = _bind(mask, cond.jaxpr, cond.consts, body.jaxpr, body.consts, leaves)
    return _unflatten(tree, outs)


def _bind(mask, cond: Jaxpr, cond_consts, body: Jaxpr, body_consts, init) -> list[Any]:
    """A loop; ``mask`` marks the carries that it does not change, which become constants."""
    reduced = None
    if mask:
        reduced = Reduced(mask, init)
        cond, cond_consts = reduced.body(cond, cond_consts, False)
        body, body_consts = reduced.body(body, body_consts, True)
        init = reduced.init
    outs = while_p.bind(
        *cond_consts, *body_consts, *init, cond_jaxpr=cond, body_jaxpr=body,
        cond_nconsts=len(cond_consts), body_nconsts=len(body_consts),
    )  # fmt: skip
    return outs if reduced is None else reduced.results(outs)


_LEAF = _flatten(0)[1]


def _as_array(x: Any):
    return x if isinstance(x, Tracer) else as_operand(x)


def _split(values: Sequence, nc: int, nb: int):
    return values[:nc], values[nc : nc + nb], values[nc + nb :]


@while_p.rule(run_jaxprs)
def _run_jaxprs(run, args, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    if cond_jaxpr.out_avals[0].shape:
        return None  # under vmap, where examples that have ended are computed on
    cond_consts, body_consts = args[:cond_nconsts], args[cond_nconsts:][:body_nconsts]
    carry = args[cond_nconsts + body_nconsts :]
    while bool(as_operand(run(cond_jaxpr, [*cond_consts, *carry])[0])):
        carry = run(body_jaxpr, [*body_consts, *carry])
    return carry


@while_p.rule(forwards)
def _forwards(args, *, cond_nconsts, body_jaxpr, body_nconsts, **_):
    carry = len(body_jaxpr.outvars)
    return carries_as_operands(body_jaxpr, args[cond_nconsts:], body_nconsts, carry)


@while_p.rule(abstract)
def _abstract(*avals, body_jaxpr, **_):
    return body_jaxpr.out_avals


@while_p.rule(check)
def _check(*avals, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    cond_consts, body_consts, carry = _split(list(avals), cond_nconsts, body_nconsts)
    check_types("arguments of the condition", [*cond_consts, *carry], cond_jaxpr.in_avals)
    check_types("arguments of the body", [*body_consts, *carry], body_jaxpr.in_avals)
    check_types("carries of the body", body_jaxpr.out_avals, carry)


@while_p.rule(effects)
def _effects(*avals, cond_jaxpr, body_jaxpr, cond_nconsts, **_):
    # References are constants; those of the condition are first.
    inside = shifted(body_jaxpr.effects, lambda i: i + cond_nconsts)
    return cond_jaxpr.effects | inside


@while_p.rule(lower)
def _lower(ctx, *values, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    cond_consts, body_consts, init = _split(list(values), cond_nconsts, body_nconsts)
    if not init and not ctx.eqn.effects:
        return []
    cond_jaxpr, cond_consts = loop_invariants.hoisted(ctx, cond_jaxpr, cond_consts)
    body_jaxpr, body_consts = loop_invariants.hoisted(ctx, body_jaxpr, body_consts)

    def test(carry):
        (pred,) = lowering.lower_body(ctx, cond_jaxpr, [*cond_consts, *carry])
        rank = len(cond_jaxpr.out_avals[0].shape)
        return _any(pred, rank) if rank else pred

    def step(carry):
        consts = parts(body_consts, body_jaxpr.invars[: len(body_consts)])
        return lowering.lower_body(ctx, body_jaxpr, [*consts, *carry])

    if not are_ordered(cond_jaxpr.effects):
        return emit_while(ctx, init, test, step, ctx.eqn.effects)
    # A condition cannot return a token, so the loop carries its result.
    outs = emit_while(
        ctx, [test(init), *init], lambda carry: carry[0],
        lambda carry: [test(new := step(carry[1:])), *new], ctx.eqn.effects,
    )  # fmt: skip
    return outs[1:]


def is_partial(v: Any) -> bool:
    """True for a variable whose type is unreduced along mesh axes."""
    return is_placed(v.aval) and v.aval.placement.is_partial


def parts(values: Sequence[Any], variables: Sequence[Any]) -> Sequence[Any]:
    """Values, or rows of them, with the shardings that partial types require, also in loops."""
    if not any(map(is_partial, variables)):
        return values
    from ..._lower.axes import with_constraints

    return with_constraints(variables, values)


def emit_while(
    ctx: Any, init: Sequence[Any], test: Callable, step: Callable, effects: frozenset[Any]
) -> list[Any]:
    """Emit a StableHLO loop; outer values that ``test`` and ``step`` use are captured.

    Args:
      test, step: functions that emit the condition and the next carry for a carry.
      effects: effects of the loop.
    """
    ordered = ctx.tokens(effects)
    init = [*ordered, *init]
    types = [v.type for v in init]
    n = len(ordered)
    loop = hlo.WhileOp(types, init)
    block = loop.regions[0].blocks.append(*types)
    with ir.InsertionPoint(block):
        hlo.return_([test(list(block.arguments)[n:])])
    block = loop.regions[1].blocks.append(*types)
    with ir.InsertionPoint(block):
        outs = step(ctx.take_tokens(ordered, list(block.arguments)))
        hlo.return_([ctx.token, *outs] if ordered else outs)
    return ctx.take_tokens(ordered, list(loop.results))


def _any(pred, rank: int):
    scalar = mlir.tensor_type((), np.dtype(np.bool_))
    false = mlir.constant(np.zeros((), np.bool_))
    op = hlo.ReduceOp([scalar], [pred], [false], mlir.i64s(range(rank)))
    block = op.regions[0].blocks.append(scalar, scalar)
    with ir.InsertionPoint(block):
        hlo.return_([hlo.or_(*block.arguments)])
    return op.results[0]


@while_p.rule(jvp)
def _jvp(primals, tangents, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    nonzero = [type(t) is not Zero for t in tangents]
    _, const_nz, carry_nz = _split(nonzero, cond_nconsts, body_nconsts)

    def grow(carry):
        return jvp_jaxpr(body_jaxpr, (*const_nz, *carry))[1]

    carry_nz = fixpoint(carry_nz, grow)
    mask = (*const_nz, *carry_nz)
    body, _ = jvp_jaxpr(body_jaxpr, mask, tuple(carry_nz))
    n_in, n_out, nb = len(body_jaxpr.invars), len(body_jaxpr.outvars), body_nconsts
    nb_dot, nc_dot = sum(const_nz), sum(carry_nz)
    program = derive_from_jaxpr(
        body, "while jvp order", nb,
        lambda: permuted(
            body,
            [*range(nb), *range(n_in, n_in + nb_dot), *range(nb, n_in),
             *range(n_in + nb_dot, n_in + nb_dot + nc_dot)],
            range(n_out + nc_dot),
        ),
    )  # fmt: skip
    # The condition depends only on the primal values.
    test = derive_from_jaxpr(
        cond_jaxpr, "while jvp cond", tuple(carry_nz),
        lambda: stage(
            lambda *a: eval_jaxpr(cond_jaxpr, a[: len(cond_jaxpr.invars)]),
            [*cond_jaxpr.in_avals,
             *(a.tangent_aval() for a, m in zip(body_jaxpr.out_avals, carry_nz) if m)],
        ),
    )  # fmt: skip
    cond_consts, body_consts, init = _split(primals, cond_nconsts, nb)
    _, const_t, carry_t = _split(tangents, cond_nconsts, nb)
    consts = [*body_consts, *(t for t, m in zip(const_t, const_nz) if m)]
    init = [*init, *(instantiate(t) for t, m in zip(carry_t, carry_nz) if m)]
    mask = derive_from_jaxpr(
        program, "unchanged", nb + nb_dot,
        lambda: unchanged_carries(program, nb + nb_dot, len(init)),
    )  # fmt: skip
    outs = _bind(mask, test, cond_consts, program, consts, init)
    dots = iter(outs[n_out:])
    return outs[:n_out], [next(dots) if m else Zero.like(o) for o, m in zip(outs, carry_nz)]


@while_p.rule(linearize)
def _linearize(primals, mask, **params):
    if on_references(params["cond_jaxpr"].effects | params["body_jaxpr"].effects):
        raise DischargeFirst  # the linear part recomputes the forward loop
    outs = while_p.bind(*primals, **params)
    rule = while_p.rules[jvp]

    def linear(*tangents):
        remaining = iter(tangents)
        full = [
            next(remaining) if m else Zero(typeof(p).tangent_aval()) for p, m in zip(primals, mask)
        ]
        _, dots = rule(list(primals), full, **params)
        return [t for t in dots if type(t) is not Zero], [type(t) is not Zero for t in dots]

    avals = [typeof(p).tangent_aval() for p, m in zip(primals, mask) if m]
    return outs, *stage_with_aux(linear, avals, parent=state.trace)


@while_p.rule(transpose)
def _transpose(cts, *args, **params):
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
        "dynamic start/stop values. Try using lax.scan, or using fori_loop with static start/stop."
    )


@while_p.rule(batch)
def _batch(axis, args, dims, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    if on_references(cond_jaxpr.effects | body_jaxpr.effects):
        params = {
            "cond_jaxpr": cond_jaxpr, "body_jaxpr": body_jaxpr, "cond_nconsts": cond_nconsts,
            "body_nconsts": body_nconsts,
        }  # fmt: skip
        return references.ops.batch(while_p, axis, args, dims, params)
    cond_d, body_d, carry_d = _split(list(dims), cond_nconsts, body_nconsts)

    def pred_batched(carry):
        ds = (*cond_d, *(0 if b else None for b in carry))
        return batch_jaxpr(cond_jaxpr, ds, axis)[1][0] is not None

    def grow(carry):
        ds = (*body_d, *(0 if b else None for b in carry))
        out = [d is not None for d in batch_jaxpr(body_jaxpr, ds, axis)[1]]
        return [True] * len(out) if pred_batched(carry) else out

    batched = fixpoint([d is not None for d in carry_d], grow)
    carry_dims = tuple(0 if b else None for b in batched)
    body, _ = batch_jaxpr(body_jaxpr, (*body_d, *carry_dims), axis, carry_dims)
    mapped_pred = pred_batched(batched)
    if mapped_pred:
        check_not_masked(cond_jaxpr.effects | body_jaxpr.effects, "a loop's condition")
    cond, _ = batch_jaxpr(cond_jaxpr, (*cond_d, *carry_dims), axis, (0,) if mapped_pred else None)
    cond_consts, body_consts, init = _split(list(args), cond_nconsts, body_nconsts)
    init = [move_axis(x, d, 0, axis.size) if b else x for x, d, b in zip(init, carry_d, batched)]
    if mapped_pred:
        body = derive_from_jaxpr(
            body, "frozen", (cond, body_nconsts), lambda: _freeze_ended(cond, body, cond_nconsts)
        )
        body_consts = [*cond_consts, *body_consts]
    outs = while_p.bind(
        *cond_consts, *body_consts, *init, cond_jaxpr=cond, body_jaxpr=body,
        cond_nconsts=cond_nconsts, body_nconsts=len(body_consts),
    )  # fmt: skip
    return outs, list(carry_dims)


def _freeze_ended(cond: Jaxpr, body: Jaxpr, n_cond: int) -> Jaxpr:
    """A body that updates only examples whose condition is true, with the condition's constants."""
    n_carry = len(body.outvars)
    n_body = len(body.invars) - n_carry

    def run(*args):
        cond_consts, body_consts, carry = _split(args, n_cond, n_body)
        (live,) = eval_jaxpr(cond, [*cond_consts, *carry])
        outs = eval_jaxpr(body, [*body_consts, *carry])
        return [_where(live, o, c) for o, c in zip(outs, carry)]

    return stage(run, [*cond.in_avals[:n_cond], *body.in_avals], body.debug_info)


def _where(live, new, old):
    aval = typeof(new)
    rank = typeof(live).ndim  # more than one if the predicate was batched before
    mask = live if aval.ndim == rank else broadcast_in_dim(live, aval.shape, tuple(range(rank)))
    return select_n(mask, old, new)


@while_p.rule(dce)
def _dce(used, eqn):
    p = eqn.params
    nc, nb = p["cond_nconsts"], p["body_nconsts"]
    if not any(used) and not eqn.effects:
        return [False] * len(eqn.invars), None
    _, cond_ins = dce_jaxpr(p["cond_jaxpr"], (True,))
    carry = fixpoint(
        [a or b for a, b in zip(used, cond_ins[nc:])],
        lambda now: dce_jaxpr(p["body_jaxpr"], tuple(now))[1][nb:],
    )
    body, body_ins = dce_jaxpr(p["body_jaxpr"], tuple(carry), (*[False] * nb, *carry))
    cond, cond_ins = dce_jaxpr(p["cond_jaxpr"], (True,), (*[False] * nc, *carry))
    ins = [*cond_ins[:nc], *body_ins[:nb], *carry]
    params = {
        "cond_jaxpr": cond, "body_jaxpr": body, "cond_nconsts": sum(cond_ins[:nc]),
        "body_nconsts": sum(body_ins[:nb]),
    }  # fmt: skip
    new = eqn.replace(
        invars=[v for v, u in zip(eqn.invars, ins) if u],
        outvars=[v for v, u in zip(eqn.outvars, carry) if u],
        params=params, effects=while_p.rules[effects](**params),
    )  # fmt: skip
    return ins, new


@while_p.rule(samples)
def _samples():
    def repeated(n, x):
        return while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] * x + c[1]), (n, x))[1]

    backwards = dict.fromkeys(("transpose",), "loops of unknown length have no reverse mode")
    yield Sample(i32(low=0, high=3), f32(3)).set(call=repeated, without=backwards)
    yield Sample(i32(low=1, high=3), c64()).set(call=repeated, without=backwards)
    yield Sample(i32(low=0, high=3), bf16(0, 2)).set(call=repeated, without=backwards)
