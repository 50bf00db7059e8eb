"""``cond`` and ``switch``: branches selected by a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, TypeVarTuple, overload

import numpy as np

from ..._base import pytree
from ..._base.config import state
from ..._base.operand_trees import flatten_operands
from ..._base.source import api_boundary
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.check import check_types
from ..._ir.effects import check_not_masked, on_references, shifted
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
from ..._ir.samples import Sample, b1, bf16, c64, f32, i32, samples
from ..._lower.lazy import hlo, ir, lowering, mlir
from ..._runtime.dispatch import as_operand
from ..._trace.core import has_references, typeof
from ..._trace.reference_ops import references
from ..._trace.staging import close_over, eval_jaxpr, stage
from ..._trace.typing import ArrayLike
from ..._transform.batching import batch_jaxpr, move_axis
from ..._transform.dce import dce_jaxpr
from ..._transform.derived import derive_from_jaxpr
from ..._transform.jvp import jvp_jaxpr
from ..._transform.linearize import linearize_jaxpr
from ..._transform.transpose import transpose_jaxpr
from ..._transform.zeros import Zero, is_linear, zeros
from ..broadcasting import broadcast_in_dim
from ..comparison import eq, ne
from ..conversion import convert, convert_element_type
from ..elementwise import scalar_of
from ..selection import clamp, select_n
from ..stopping import cut_off
from .bodies import Body, difference, leaf_paths, sentences, structure_differences, trace_body
from .forwarding import forwarded, forwards

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten

cond_p: Final = Primitive(
    "cond", multiple_results=True, cache_on=lambda params: params["branches"][0].cache
)


class _NotGiven:
    pass


_NOT_GIVEN: Any = _NotGiven()

_Operands = TypeVarTuple("_Operands")
_R = TypeVar("_R")


@overload
def cond(
    pred: Any,
    true_fun: Callable[[*_Operands], _R],
    false_fun: Callable[[*_Operands], _R],
    *operands: *_Operands,
) -> _R: ...
@overload
def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = ...,
) -> Any: ...
@api_boundary
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _NOT_GIVEN,
) -> Any:
    """``true_fun(*operands)`` if ``pred`` else ``false_fun(*operands)``; only one branch runs.

    Args:
      pred: a scalar; nonzero numbers are true.
      true_fun: a function of the operands.
      false_fun: a function of the operands whose result has the structure and types of that of
        ``true_fun``.
      operands: pytrees of arrays. The branches may close over other values.
      operand: the single operand, as a keyword.

    Returns:
      The result of one branch. The form ``cond(pred, true_operand, true_fun, false_operand,
      false_fun)`` is accepted too.

    Raises:
      TypeError: if the predicate is not a scalar, or the types of the branches' results differ.

    Both branches are traced. The derivative is that of the branch that runs. Under ``vmap`` with
    a mapped predicate both branches run and the results are selected.

    >>> float(cond(True, lambda x: x + 1.0, lambda x: x - 1.0, 1.0))
    2.0
    >>> from primax_core import grad
    >>> float(grad(lambda x: cond(x > 0, lambda x: x * x, lambda x: -x, x))(3.0))
    6.0
    """
    if not (callable(true_fun) and callable(false_fun)):
        if len(operands) == 2 and callable(false_fun) and callable(operands[1]):
            return _two_operands(pred, true_fun, false_fun, *operands)
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    if operand is not _NOT_GIVEN:
        if operands:
            raise TypeError(
                "if 'operand' keyword is passed then no positional operands can be passed, got "
                f"operand={operand} and positional operands {operands}"
            )
        operands = (operand,)
    if pred is None:
        raise TypeError("cond predicate is None")
    aval = _scalar_type(pred, "Pred must be a scalar")
    if not (dtypes.issubdtype(aval.dtype, np.bool_) or dtypes.issubdtype(aval.dtype, np.number)):
        raise TypeError(f"Pred type must be either boolean or number, got {aval.dtype.name}.")
    if state.disable_jit and state.trace is None:
        return (true_fun if pred else false_fun)(*operands)
    if aval.dtype != np.bool_:
        pred = ne(pred, scalar_of(aval.dtype, 0))
    index = convert_element_type(pred, np.int32)
    return bind_branches("cond", index, [false_fun, true_fun], operands, ("false_fun", "true_fun"))


def _two_operands(pred, true_operand, true_fun, false_operand, false_fun):
    return cond(
        pred,
        lambda ops: true_fun(ops[0]),
        lambda ops: false_fun(ops[1]),
        (true_operand, false_operand),
    )


@overload
def switch(
    index: Any,
    branches: Sequence[Callable[[*_Operands], _R]],
    *operands: *_Operands,
) -> _R: ...
@overload
def switch(
    index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = ...
) -> Any: ...
@api_boundary
def switch(
    index: ArrayLike,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: Any = _NOT_GIVEN,
) -> Any:
    """``branches[index](*operands)``, with the index clamped to the range of the branches.

    Args:
      index: an integer scalar, also a traced one.
      branches: functions of the operands whose results have the same structure and types.
      operands: pytrees of arrays. The branches may close over other values.
      operand: the single operand, as a keyword.

    Returns:
      The result of one branch.

    Raises:
      TypeError: if the index is not an integer scalar, or the types of the branches' results
        differ.
      ValueError: if there are no branches.

    All branches are traced, one runs. Under ``vmap`` with a mapped index all branches run and the
    results are selected.

    >>> float(switch(1, [lambda x: x, lambda x: 2 * x], 3.0))
    6.0
    >>> float(switch(9, [lambda x: x, lambda x: 2 * x], 3.0))
    6.0
    """
    if not all(callable(b) for b in branches):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    if operand is not _NOT_GIVEN:
        if operands:
            raise TypeError("lax.switch: give operands by position or as `operand`, not both")
        operands = (operand,)
    branches = list(branches)
    aval = _scalar_type(index, "Branch index must be scalar")
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"Index type must be an integer, got {index} as {aval.dtype.name}.")
    if not branches:
        raise ValueError("Empty branch sequence")
    if len(branches) == 1:
        return branches[0](*operands)
    if state.disable_jit and state.trace is None:
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    index = convert_element_type(index, np.int32)
    index = clamp(np.int32(0), index, np.int32(len(branches) - 1))
    names = tuple(f"branch {i}" for i in range(len(branches)))
    return bind_branches("switch", index, branches, operands, names)


def _scalar_type(x: Any, message: str) -> ShapedArray:
    try:
        aval = typeof(x)
    except TypeError:
        raise TypeError(f"{message}, got {x} of type {type(x)}.") from None
    if aval.shape:
        raise TypeError(f"{message}, got {x} of shape {aval.shape}.")
    return aval


def bind_branches(
    what: str,
    index: ArrayLike,
    funs: Sequence[Callable[..., Any]],
    operands: tuple[Any, ...],
    names: tuple[str, ...],
    **params: Any,
) -> Any:
    """Trace the branches, check that their types agree, and bind the conditional."""
    leaves, in_tree = _flatten(operands)
    avals = [typeof(x) for x in leaves]
    bodies = [trace_body(f, in_tree, avals, what) for f in funs]
    if any(map(is_placed, (typeof(index), *(a for b in bodies for a in b.jaxpr.out_avals)))):
        from .placed import with_common_results

        bodies = with_common_results(typeof(index), bodies, funs)
    _check_branches(what, bodies, names)
    if references.ops.loaded:
        for b in bodies:
            references.ops.check_aliases(leaves, b.consts, b.info)
    n_consts = [len(b.consts) for b in bodies]
    key = (tuple(n_consts), *(b.jaxpr for b in bodies[1:]))
    branches = derive_from_jaxpr(
        bodies[0].jaxpr, "branches", key, lambda: _with_all_consts(bodies, avals)
    )
    consts = [c for b in bodies for c in b.consts]
    outs = cond_p.bind(index, *consts, *leaves, branches=branches, **params)
    return _unflatten(bodies[0].out_tree, outs)


def _with_all_consts(bodies: Sequence[Body], avals: Sequence[ShapedArray]) -> tuple[Jaxpr, ...]:
    """Branches with the constants of all branches as arguments, and results of equal weak type."""
    const_avals = [[v.aval for v in b.jaxpr.invars[: len(b.consts)]] for b in bodies]
    flat = [a for part in const_avals for a in part]
    outs = [b.jaxpr.out_avals for b in bodies]
    joined = [
        a if all(o[i].weak_type for o in outs) else a.strip_weak_type()
        for i, a in enumerate(outs[0])
    ]
    jaxprs, start = [], 0
    for b, part in zip(bodies, const_avals):
        n, at = len(part), start

        def run(*args, b=b, n=n, at=at):
            results = eval_jaxpr(b.jaxpr, [*args[at : at + n], *args[len(flat) :]])
            return [
                r if a is w else convert(r, w.dtype, w.weak_type)
                for r, a, w in zip(results, b.jaxpr.out_avals, joined)
            ]

        jaxprs.append(stage(run, [*flat, *avals], b.info))
        start += n
    return tuple(jaxprs)


def _check_branches(what: str, bodies: Sequence[Body], names: tuple[str, ...]) -> None:
    """Compare the results of all branches with those of the first branch (``true_fun``)."""
    pairs = list(zip(bodies, names))
    if what == "cond":
        pairs.reverse()
    (first, first_name), *others = pairs
    for b, name in others:
        lines = []
        if b.out_tree != first.out_tree:
            problem = f"{what} branch outputs must have the same pytree structure, but they differ:"
            mend = "have the same pytree structure"
            for path, x, y, why in structure_differences(first.out_tree, b.out_tree):
                at = f" at path {path}" if path else ""
                lines.append(
                    f"the output of {first_name}{at} is {x} but the output of {name}{at} is {y}, "
                    f"so {why}"
                )
        else:
            problem = f"{what} branches must have equal output types but they differ."
            mend = "have equal output types"
            for path, x, y in zip(leaf_paths(b.out_tree), first.jaxpr.out_avals, b.jaxpr.out_avals):
                same_shape = x.shape == y.shape and x.dtype == y.dtype
                if not same_shape or x.placement is not y.placement:
                    at = f" at path {path}" if path else ""
                    lines.append(
                        f"the output of {first_name}{at} has type {x.strip_weak_type()} but the "
                        f"corresponding output of {name} has type {y.strip_weak_type()}, so "
                        f"{difference(x, y)}"
                    )
        if lines:
            raise TypeError(
                f"{problem}\n\n{first_name} is {first.info.func_src_info}\n{name} is "
                f"{b.info.func_src_info}\n\n{sentences(lines)}\n\nRevise {first_name} and/or "
                f"{name} so that they {mend}."
            )


# Types and lowering


@cond_p.rule(run_jaxprs)
def _run_jaxprs(run, args, *, branches, **_):
    which = min(max(int(np.asarray(as_operand(args[0]))), 0), len(branches) - 1)
    return run(branches[which], args[1:])


@cond_p.rule(forwards)
def _forwards(args, *, branches, **_):
    outs = zip(*(forwarded(branch, args[1:]) for branch in branches))
    return [out[0] if len(set(out)) == 1 else None for out in outs]


@cond_p.rule(abstract)
def _abstract(index, *avals, branches, **_):
    return branches[0].out_avals


@cond_p.rule(check)
def _check(index, *avals, branches, **_):
    for i, branch in enumerate(branches):
        check_types(f"operands of branch {i}", avals, branch.in_avals)
        check_types(f"results of branch {i}", branch.out_avals, branches[0].out_avals)


@cond_p.rule(effects)
def _effects(*avals, branches, **_):
    return frozenset().union(*(shifted(b.effects, lambda i: i + 1) for b in branches))


@cond_p.rule(lower)
def _lower(ctx, index, *values, branches, branches_platforms=None):
    if branches_platforms is not None:
        here = platform_position(branches_platforms, ctx.platform)
        return lowering.lower_body(ctx, branches[here], values)
    ordered = ctx.tokens(ctx.eqn.effects)
    out_types = [*(t.type for t in ordered), *(mlir.type_of(a) for a in ctx.out_avals)]
    op = hlo.CaseOp(out_types, index=index, num_branches=len(branches))
    for region, jaxpr in zip(op.regions, branches):
        block = region.blocks.append()
        before = ctx.token
        with ir.InsertionPoint(block):
            outs = lowering.lower_body(ctx, jaxpr, values)
            hlo.return_([ctx.token, *outs] if ordered else outs)
        ctx.token = before
    return ctx.take_tokens(ordered, list(op.results))


def platform_position(platforms: Sequence[Any], platform: str) -> int:
    """Index of the branch for a platform; the branch with platforms ``None`` is the default.

    Raises:
      NotImplementedError: if there is no branch for the platform.
    """
    for i, names in enumerate(platforms):
        if names is None or platform in names:
            return i
    available = ", ".join(n for names in platforms for n in names) or "none"
    raise NotImplementedError(
        f"lax.platform_dependent has no branch for platform {platform}: there are branches for "
        f"{available}. Add one, or a `default`."
    )


# Forward mode


@cond_p.rule(jvp)
def _jvp(primals, tangents, *, branches, **params):
    mask = tuple(type(t) is not Zero for t in tangents[1:])
    out_nz = _joined([jvp_jaxpr(b, mask)[1] for b in branches])
    programs = tuple(jvp_jaxpr(b, mask, out_nz)[0] for b in branches)
    nonzero = [t for t, m in zip(tangents[1:], mask) if m]
    outs = cond_p.bind(*primals, *nonzero, branches=programs, **params)
    n = len(branches[0].outvars)
    dots = iter(outs[n:])
    return outs[:n], [next(dots) if m else Zero.like(o) for o, m in zip(outs, out_nz)]


def _joined(masks: Sequence[Sequence[bool]]) -> tuple[bool, ...]:
    return tuple(any(m) for m in zip(*masks))


# Linearization


@cond_p.rule(linearize)
def _linearize(primals, mask, *, branches, **params):
    index, *operands = primals
    mask = tuple(mask[1:])
    out_nz = _joined([linearize_jaxpr(b, mask).out_mask for b in branches])
    plan = derive_from_jaxpr(
        branches[0], "cond linearize", (mask, *branches[1:]),
        lambda: _LinearCond([linearize_jaxpr(b, mask, out_nz) for b in branches], mask),
    )  # fmt: skip
    results = cond_p.bind(index, *operands, branches=plan.forward, **params)
    n = len(branches[0].outvars)
    outs, slots = results[:n], results[n:]
    residuals = [operands[i] for i in plan.operands] + list(slots)

    def linear(*tangents):
        return cond_p.bind(index, *residuals, *tangents, branches=plan.linear, **params)

    avals = [typeof(p).tangent_aval() for p, m in zip(operands, mask) if m]
    if not any(out_nz):
        return outs, stage(lambda *_: [], avals), out_nz
    return outs, stage(linear, avals, parent=state.trace), out_nz


class _LinearCond:
    """Linearized branches with a common signature.

    Residuals that are operands are passed directly. The others use slots, which branches share if
    the types agree, so that the residuals of different branches use the same memory.
    """

    def __init__(self, linearized: Sequence, mask: tuple[bool, ...]):
        self.operands = sorted({i for p in linearized for where, i in p.residuals if where == "in"})
        slots: list[ShapedArray] = []
        assigned = [_assign_slots(p, slots) for p in linearized]
        self.forward = tuple(
            _forward_branch(p, slots, slot_of) for p, slot_of in zip(linearized, assigned)
        )
        self.linear = tuple(
            _linear_branch(p, self.operands, slots, slot_of, mask)
            for p, slot_of in zip(linearized, assigned)
        )


def _assign_slots(linearized, slots: list) -> dict[int, int]:
    """The slot of each residual of a branch, by its number; adds missing slots."""
    taken: set[int] = set()
    slot_of: dict[int, int] = {}
    for r, (where, i) in enumerate(linearized.residuals):
        if where == "in":
            continue
        var = linearized.forward.outvars[i if where == "out" else linearized.n_outs + i]
        aval = var.aval
        for s, slot in enumerate(slots):
            if slot is aval and s not in taken:
                break
        else:
            s = len(slots)
            slots.append(aval)
        taken.add(s)
        slot_of[r] = s
    return slot_of


def _forward_branch(linearized, slots, slot_of) -> Jaxpr:
    def run(*args):
        results = eval_jaxpr(linearized.forward, args)
        rows: list[Any] = [None] * len(slots)
        for r, s in slot_of.items():
            where, i = linearized.residuals[r]
            rows[s] = results[i if where == "out" else linearized.n_outs + i]
        return [
            *results[: linearized.n_outs],
            *(zeros(a) if v is None else v for v, a in zip(rows, slots)),
        ]

    return stage(run, linearized.forward.in_avals, linearized.forward.debug_info)


def _linear_branch(linearized, operands, slots, slot_of, mask) -> Jaxpr:
    in_avals = linearized.forward.in_avals
    avals = [in_avals[i] for i in operands] + list(slots)
    tangent_avals = [a.tangent_aval() for a, m in zip(in_avals, mask) if m]
    n, at = len(operands), {i: k for k, i in enumerate(operands)}

    def run(*args):
        residuals = [
            args[at[i]] if where == "in" else args[n + slot_of[r]]
            for r, (where, i) in enumerate(linearized.residuals)
        ]
        if linearized.linear is None:  # no result has a tangent
            return []
        return eval_jaxpr(linearized.linear, [*residuals, *args[len(avals) :]])

    return stage(run, [*avals, *tangent_avals], linearized.forward.debug_info)


@cond_p.rule(transpose)
def _transpose(cts, index, *operands, branches, **params):
    linear = tuple(is_linear(o) for o in operands)
    ct_mask = tuple(type(c) is not Zero for c in cts)
    programs = tuple(transpose_jaxpr(b, linear, ct_mask, True)[0] for b in branches)
    known = [o for o in operands if not is_linear(o)]
    if any(has_references(p.consts) for p in programs):  # closed over by a custom rule
        programs, more = _closed_branches(programs)
        known = [*more, *known]
    nonzero = [c for c in cts if type(c) is not Zero]
    cotangents = iter(cond_p.bind(index, *known, *nonzero, branches=programs, **params))
    return [None, *(next(cotangents) if m else None for m in linear)]


def _closed_branches(branches: Sequence[Jaxpr]) -> tuple[tuple[Jaxpr, ...], list[Any]]:

    moved = [close_over(b) for b in branches]
    avals = [[v.aval for v in p.invars[: len(consts)]] for p, consts in moved]
    closed = []
    for i, (p, consts) in enumerate(moved):
        before = sum(len(a) for a in avals[:i])
        n = len(consts)

        def run(*args, p=p, at=before, n=n):
            return eval_jaxpr(p, [*args[at : at + n], *args[sum(map(len, avals)) :]])

        in_avals = [v.aval for v in p.invars[n:]]
        closed.append(stage(run, [a for part in avals for a in part] + in_avals, p.debug_info))
    return tuple(closed), [c for _, consts in moved for c in consts]


# Batching


@cond_p.rule(batch)
def _batch(axis, args, dims, *, branches, **params):
    (index, *operands), (index_d, *op_dims) = args, dims
    size = axis.size
    if index_d is not None and any(on_references(b.effects) for b in branches):
        params["branches"] = branches
        return references.ops.batch(cond_p, axis, args, dims, params)
    if index_d is None:
        natural_dims = [batch_jaxpr(b, tuple(op_dims), axis)[1] for b in branches]
        out_dims = tuple(0 if any(d is not None for d in ds) else None for ds in zip(*natural_dims))
        programs = tuple(batch_jaxpr(b, tuple(op_dims), axis, out_dims)[0] for b in branches)
        outs = cond_p.bind(index, *operands, branches=programs, **params)
        return outs, list(out_dims)
    for b in branches:
        check_not_masked(b.effects, "a condition")
    # Every branch runs for every example. The gradient stops at operands of the examples that do
    # not select the branch, so that an infinite derivative there has no effect.
    index = move_axis(index, index_d, 0, size)
    operands = [move_axis(x, d, 0, size) for x, d in zip(operands, op_dims)]
    results = []
    for i, b in enumerate(branches):
        chosen = eq(index, np.int32(i))
        guarded = [_guard(chosen, x) for x in operands] if len(branches) > 1 else operands
        for withheld in [e.only_where for e in b.effects if e.only_where is not None]:
            b, guarded = withheld(b), [chosen, *guarded]
        program, _ = batch_jaxpr(b, (0,) * len(guarded), axis, (0,) * len(b.outvars))
        results.append(eval_jaxpr(program, guarded))
    predicate = ne(index, np.int32(0)) if len(branches) == 2 else index
    outs, out_dims = [], []
    for at, values in zip(_forwards(range(len(args)), branches=branches), zip(*results)):
        aval = typeof(values[0])
        if at is None:
            which = predicate if aval.ndim == 1 else broadcast_in_dim(predicate, aval.shape, (0,))
            outs.append(select_n(which, *values))
        else:  # every branch returns this operand, which need not be mapped
            outs.append(args[at])
        out_dims.append(0 if at is None else dims[at])
    return outs, out_dims


def _guard(chosen, x):
    aval = typeof(x)
    if not dtypes.issubdtype(aval.dtype, np.inexact):
        return x
    mask = chosen if aval.ndim == 1 else broadcast_in_dim(chosen, aval.shape, (0,))
    return select_n(mask, cut_off(x, unselected=True), x)


@cond_p.rule(dce)
def _dce(used, eqn):
    branches = eqn.params["branches"]
    used = tuple(used)
    if not any(used) and not eqn.effects:
        return [False] * len(eqn.invars), None
    ins = _joined([dce_jaxpr(b, used)[1] for b in branches])
    new_branches = tuple(dce_jaxpr(b, used, ins)[0] for b in branches)
    all_ins = [True, *ins]
    new = eqn.replace(
        invars=[v for v, u in zip(eqn.invars, all_ins) if u],
        outvars=[v for v, u in zip(eqn.outvars, used) if u],
        params={**eqn.params, "branches": new_branches},
        effects=cond_p.rules[effects](branches=new_branches),
    )
    return all_ins, new


@cond_p.rule(samples)
def _samples():
    def chosen(i, x, y):
        return switch(i, (lambda a, b: a * b, lambda a, b: a - b, lambda a, b: b * b), x, y)

    yield Sample(i32(low=-1, high=3), f32(3), f32(3)).set(call=chosen)
    yield Sample(i32(low=0, high=2), c64(), c64()).set(call=chosen)
    yield Sample(b1(), bf16(0, 2)).set(
        call=lambda p, x: cond(p, lambda a: [a, a * a], lambda a: [a * a, a], x)
    )
