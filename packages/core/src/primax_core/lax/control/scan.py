"""``scan``: a loop over leading axes with a carry."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from ..._base import errors, pytree
from ..._base.config import state
from ..._base.operand_trees import flatten_operands
from ..._base.source import api_boundary
from ..._ir.avals import ShapedArray
from ..._ir.check import check_types
from ..._ir.effects import on_references
from ..._ir.jaxpr import Jaxpr, Var
from ..._ir.placement import is_placed, transposed
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
    partial_eval,
    transpose,
)
from ..._ir.printer import hide_defaults
from ..._ir.rules import run_jaxprs
from ..._ir.samples import Sample, bf16, c64, f32, samples
from ..._ir.symbolic_dims import as_steps, is_static
from ..._lower.lazy import loop_invariants, shaped
from ..._trace.core import Tracer, call_on, has_references, typeof
from ..._trace.reference_ops import references
from ..._trace.staging import close_over, eval_jaxpr, stage
from ..._transform.batching import batch_jaxpr, move_axis
from ..._transform.dce import dce_jaxpr
from ..._transform.derived import derive_from_jaxpr
from ..._transform.jvp import jvp_jaxpr
from ..._transform.linearize import linearize_jaxpr
from ..._transform.transpose import transpose_jaxpr
from ..._transform.zeros import Zero, add_tangents, instantiate, is_linear, zeros
from ..conversion import convert
from ..dynamic_slicing import dynamic_index_in_dim
from ..joining import concatenate
from ..reshaping import expand_dims
from .bodies import (
    check_carry,
    fixpoint,
    parameter_name,
    permuted,
    promote_weak,
    trace_body,
)
from .forwarding import Reduced, carries_as_operands, forwards, unchanged_of
from .scan_residuals import LinearScan

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten

_Carry = TypeVar("_Carry")
_X = TypeVar("_X")
_Y = TypeVar("_Y")

scan_p: Final = Primitive(
    "scan", multiple_results=True, cache_on=lambda params: params["jaxpr"].cache
)
hide_defaults("scan", _split_transpose=False)


@api_boundary
def scan(
    f: Callable[[_Carry, _X], tuple[_Carry, _Y]],
    init: _Carry,
    xs: _X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[_Carry, _Y]:
    """Loop ``carry, y = f(carry, x)`` over the leading axis of ``xs``; stack the ``y``.

    Args:
      f: a function of a carry and one slice of ``xs``; it must not change the types of the carry.
      init: the first carry, a pytree. Weakly typed leaves are converted to the dtype returned by
        ``f``.
      xs: a pytree of arrays with leading axes of equal size, or ``None`` together with
        ``length``.
      length: number of steps; required if ``xs`` has no leaves.
      reverse: loop from the last slice to the first; the results are stacked in the order of
        ``xs``.
      unroll: number of steps per iteration of the compiled loop; ``True`` or 0 unrolls all steps.
      _split_transpose: accepted for compatibility: a hint about the loop of the transpose, which
        changes no result and has no effect.

    Returns:
      The last carry and the stacked results.

    Raises:
      TypeError: if carry types or structures differ.
      ValueError: if lengths disagree or ``unroll`` is negative.

    The body is traced once, whatever the length. Reverse-mode differentiation saves the residuals
    of each step, and residuals that are the same for all steps only once;
    :func:`~primax_core.checkpoint` of ``f`` saves the carries only. Under ``vmap`` the loop runs
    once, on batches.

    >>> import numpy as np
    >>> total, before = scan(lambda c, x: (c + x, c), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> float(total), before.tolist()
    (6.0, [0.0, 1.0, 3.0])
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f argument should be a callable, got {f!r}.")
    xs_leaves, xs_tree = _flatten(xs)
    n = _scan_length(xs_leaves, length)
    init_leaves, init_tree = _flatten(init)
    if state.disable_jit and state.trace is None:
        return _python_scan(f, init, xs_leaves, xs_tree, n, reverse)
    xs_avals = [typeof(x) for x in xs_leaves]
    if any(map(is_placed, xs_avals)):
        from .placed import check_leading_axes

        check_leading_axes(xs_avals)
    x_avals = [a.without_axis(0) for a in xs_avals]
    in_tree = _flatten((init, _unflatten(xs_tree, x_avals)))[1]

    def traced(avals):
        return trace_body(f, in_tree, [*avals, *x_avals], "scan")

    carry_avals = [typeof(c) for c in init_leaves]
    body = traced(carry_avals)
    _check_pair(body, f)
    carry_out_tree, y_tree = body.out_tree.children()
    n_carry = carry_out_tree.num_leaves
    if carry_out_tree == init_tree:
        promoted = promote_weak(init_leaves, carry_avals, body.jaxpr.out_avals[:n_carry])
        if promoted is not None:
            init_leaves, carry_avals = promoted
            body = traced(carry_avals)
            n_carry = body.out_tree.children()[0].num_leaves
        if any(map(is_placed, (*carry_avals, *body.jaxpr.out_avals))):
            from .placed import with_common_carry

            init_leaves, carry_avals, (_, body) = with_common_carry(
                lambda avals: (None, traced(avals)), init_leaves, carry_avals, (None, body), f
            )
    check_carry(
        "scan body", parameter_name(f, 0), init_tree, carry_avals,
        body.out_tree.children()[0], body.jaxpr.out_avals[:n_carry],
    )  # fmt: skip
    if references.ops.loaded:
        references.ops.check_aliases([*init_leaves, *xs_leaves], body.consts, body.info)
    jaxpr, consts, reduced = body.jaxpr, body.consts, None
    if mask := unchanged_of(body, n_carry):
        reduced = Reduced(mask, init_leaves)
        jaxpr, consts = reduced.body(jaxpr, consts, True)
        init_leaves = reduced.init
    out = scan_p.bind(
        *consts, *init_leaves, *xs_leaves, jaxpr=jaxpr, length=n, reverse=bool(reverse),
        unroll=_checked_unroll(unroll, n), num_consts=len(consts), num_carry=len(init_leaves),
    )  # fmt: skip
    if reduced is not None:
        out = reduced.results(out)
    return _unflatten(init_tree, out[:n_carry]), _unflatten(y_tree, out[n_carry:])


def _check_pair(body, f) -> None:
    data = body.out_tree.node_data()
    if data is None or data[0] not in (tuple, list) or len(body.out_tree.children()) != 2:
        raise TypeError(
            f"scan body output must be a pair, got {body.out_tree} from "
            f"{body.info.func_src_info}: return (carry, y), with None for y if there is none"
        )


def _scan_length(leaves: Sequence, length: Any) -> int:
    sizes = []
    for x in leaves:
        shape = typeof(x).shape
        if not shape:
            raise ValueError(
                "scan got value with no leading axis to scan over: "
                f"{', '.join(str(typeof(v)) for v in leaves if not typeof(v).shape)}"
            )
        sizes.append(shape[0])
    if length is not None:
        length = _concrete_length(length)
        if any(s != length for s in sizes):
            raise ValueError(
                f"scan got `length` argument of {length} which disagrees with leading axis sizes "
                f"{sizes}."
            )
        return length
    if not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    if len(set(sizes)) > 1:
        raise ValueError(
            "scan got values with different leading axis sizes: " + ", ".join(map(str, sizes)) + "."
        )
    return sizes[0]


def _concrete_length(length: Any) -> int:
    if isinstance(length, Tracer):
        raise errors.ConcretizationTypeError(
            length,
            "The `length` argument to `scan` expects a concrete `int` value. For scan-like "
            "iteration with a dynamic length, use `while_loop` or `fori_loop`.",
        )
    length = as_steps(length)
    if length < 0:
        raise ValueError(f"scan got a negative `length`: {length}.")
    return length


def _checked_unroll(unroll: Any, length: int) -> int:
    # A symbolic number of steps cannot be unrolled.
    whole = max(length, 1) if is_static((length,)) else 1
    unroll = (whole if unroll else 1) if isinstance(unroll, bool) else operator.index(unroll)
    if unroll < 0:
        raise ValueError("`unroll` must be a `bool` or a non-negative `int`.")
    unroll = unroll or whole
    if min(unroll, whole) > 100_000:
        raise ValueError(f"`unroll` makes {unroll:,} copies of the body; at most 100,000 are made.")
    return unroll


def _python_scan(f, init, leaves, tree, n: int, reverse: bool):
    carry, ys = init, []
    for i in reversed(range(n)) if reverse else range(n):
        carry, y = f(
            carry, _unflatten(tree, [dynamic_index_in_dim(x, i, 0, keepdims=False) for x in leaves])
        )
        ys.append(y)
    if reverse:
        ys.reverse()
    if not ys:
        raise ValueError("zero-length scan is not supported with disable_jit")
    return carry, pytree.tree_map(lambda *parts: _stack(parts), *ys)


def _stack(parts):
    return concatenate([expand_dims(p, (0,)) for p in parts], 0)


@scan_p.rule(run_jaxprs)
def _run_jaxprs(run, args, *, jaxpr, length, reverse, num_consts, num_carry, **_):
    if length == 0:
        return None
    consts, carry, xs = _split(args, num_consts, num_carry)
    ys = []
    for i in reversed(range(length)) if reverse else range(length):
        row = [dynamic_index_in_dim(x, np.int32(i), 0, keepdims=False) for x in xs]
        outs = run(jaxpr, [*consts, *carry, *row])
        carry = outs[:num_carry]
        ys.append(outs[num_carry:])
    if reverse:
        ys.reverse()
    return [*carry, *map(_stack, zip(*ys))]


# Types


@scan_p.rule(forwards)
def _forwards(args, *, jaxpr, num_consts, num_carry, **_):
    ys = len(jaxpr.outvars) - num_carry
    return [*carries_as_operands(jaxpr, args, num_consts, num_carry), *[None] * ys]


@scan_p.rule(abstract)
def _abstract(*avals, jaxpr, length, num_carry, **_):
    outs = jaxpr.out_avals
    return [*outs[:num_carry], *(stacked(a, length) for a in outs[num_carry:])]


@scan_p.rule(check)
def _check(*avals, jaxpr, length, num_consts, num_carry, **_):
    consts, carry, xs = _split(list(avals), num_consts, num_carry)
    for x in xs:
        check_types("a stacked argument", [x], [stacked(x.without_axis(0), length)])
    slices = [x.without_axis(0) for x in xs]
    check_types("arguments of the body", [*consts, *carry, *slices], jaxpr.in_avals)
    check_types("carries of the body", jaxpr.out_avals[:num_carry], carry)


@scan_p.rule(effects)
def _effects(*avals, jaxpr, **_):
    return jaxpr.effects


def stacked(aval: ShapedArray, length: int) -> ShapedArray:
    """The type of ``length`` stacked values of a type."""
    return aval.with_axis(0, length)


# Lowering


@scan_p.rule(lower)
def _lower(ctx, *values, jaxpr, length, reverse, unroll, num_consts, num_carry, **_):
    from .scan_loop import emit_loop, emit_steps, emit_symbolic_loop

    consts, init, xs = _split(values, num_consts, num_carry)
    y_avals = ctx.out_avals[num_carry:]
    if length == 0:
        return [*init, *(shaped.zeros_of(a) for a in y_avals)]
    jaxpr, consts = loop_invariants.hoisted(ctx, jaxpr, consts)
    if not is_static((length,)):
        return emit_symbolic_loop(ctx, jaxpr, length, reverse, consts, init, xs, y_avals)
    if unroll >= length:
        return emit_steps(ctx, jaxpr, length, reverse, consts, init, xs, len(y_avals))
    ys = [shaped.zeros_of(a) for a in y_avals]
    return emit_loop(ctx, jaxpr, length, reverse, unroll, consts, init, xs, ys)


# Forward mode


def _split(values: Sequence, nc: int, ni: int):
    return values[:nc], values[nc : nc + ni], values[nc + ni :]


@scan_p.rule(jvp)
def _jvp(primals, tangents, *, jaxpr, num_consts, num_carry, **params):
    nonzero = [type(t) is not Zero for t in tangents]
    const_nz, carry_nz, xs_nz = _split(nonzero, num_consts, num_carry)
    n_ys = len(jaxpr.outvars) - num_carry

    def grow(carry):
        _, out = jvp_jaxpr(jaxpr, (*const_nz, *carry, *xs_nz))
        return out[:num_carry]

    carry_nz = fixpoint(carry_nz, grow)
    mask = (*const_nz, *carry_nz, *xs_nz)
    body, out_nz = jvp_jaxpr(jaxpr, mask, (*carry_nz, *[False] * n_ys))
    ys_nz = out_nz[num_carry:]
    tangents = [instantiate(t) if m and type(t) is Zero else t for t, m in zip(tangents, mask)]
    n_in, n_out = len(jaxpr.invars), len(jaxpr.outvars)
    program = derive_from_jaxpr(
        body, "scan jvp order", (num_consts, num_carry),
        lambda: permuted(
            body,
            _interleave(_split(range(n_in), num_consts, num_carry), mask, n_in),
            _interleave(_split(range(n_out), num_carry, n_ys), out_nz, n_out),
        ),
    )  # fmt: skip
    operands = []
    for ps, ts, ms in zip(
        _split(primals, num_consts, num_carry), _split(tangents, num_consts, num_carry),
        _split(mask, num_consts, num_carry),
    ):  # fmt: skip
        operands.extend(ps)
        operands.extend(t for t, m in zip(ts, ms) if m)
    nc = num_consts + sum(const_nz)
    ni = num_carry + sum(carry_nz)
    outs = scan_p.bind(*operands, jaxpr=program, num_consts=nc, num_carry=ni, **params)
    carry, carry_dot = outs[:num_carry], iter(outs[num_carry:ni])
    ys, ys_dot = outs[ni : ni + n_ys], iter(outs[ni + n_ys :])
    values = [*carry, *ys]
    dots = [next(carry_dot) if m else None for m in carry_nz]
    dots += [next(ys_dot) if m else None for m in ys_nz]
    return values, [Zero.like(v) if d is None else d for v, d in zip(values, dots)]


def _interleave(groups, mask, n: int) -> list[int]:
    """Order with each group before its tangents, from tangents after all ``n`` primals."""
    position, at = {}, n
    for i, m in enumerate(mask):
        if m:
            position[i] = at
            at += 1
    order = []
    for group in groups:
        order.extend(group)
        order.extend(position[i] for i in group if i in position)
    return order


# Linearization


@scan_p.rule(linearize)
def _linearize(primals, mask, *, jaxpr, num_consts, num_carry, length, **params):
    n_ys = len(jaxpr.outvars) - num_carry
    const_nz, carry_nz, xs_nz = _split(mask, num_consts, num_carry)

    def grow(carry):
        return linearize_jaxpr(jaxpr, (*const_nz, *carry, *xs_nz)).out_mask[:num_carry]

    full_carry = fixpoint(carry_nz, grow)
    full = (*const_nz, *full_carry, *xs_nz)
    linearized = linearize_jaxpr(jaxpr, full, (*full_carry, *[False] * n_ys))
    plan = derive_from_jaxpr(
        jaxpr, "scan linearize", (full, num_consts, num_carry),
        lambda: LinearScan(linearized, num_consts, num_carry, sum(xs_nz)),
    )  # fmt: skip
    consts, init, xs = _split(primals, num_consts, num_carry)
    results = scan_p.bind(
        *primals, jaxpr=plan.forward, num_consts=num_consts, num_carry=num_carry, length=length,
        **params,
    )  # fmt: skip
    outs, extra = results[: num_carry + n_ys], results[num_carry + n_ys :]
    hoisted = call_on(state.trace, plan.hoisted, list(consts)) if plan.hoisted else []
    fixed = [consts[i] if where == "const" else hoisted[i] for where, i in plan.fixed]
    per_step = [
        xs[i] if where == "xs" else outs[i] if where == "ys" else extra[i]
        for where, i in plan.per_step
    ]
    n_const_t, n_carry_t = sum(const_nz), sum(full_carry)
    given_carry = list(carry_nz)

    def linear(*tangents):
        if not any(linearized.out_mask):
            return []
        const_t = tangents[:n_const_t]
        carry_tangents = iter(tangents[n_const_t : n_const_t + sum(given_carry)])
        carry_t = [
            next(carry_tangents) if g else zeros(typeof(x).tangent_aval())
            for x, g, f in zip(init, given_carry, full_carry)
            if f
        ]
        xs_t = tangents[n_const_t + sum(given_carry) :]
        return scan_p.bind(
            *fixed, *const_t, *carry_t, *per_step, *xs_t, jaxpr=plan.linear,
            num_consts=len(fixed) + n_const_t, num_carry=n_carry_t, length=length, **params,
        )  # fmt: skip

    avals = [typeof(p).tangent_aval() for p, m in zip(primals, mask) if m]
    return outs, stage(linear, avals, parent=state.trace), linearized.out_mask


def _depends_on(jaxpr: Jaxpr, roots: Sequence[Var]) -> set:
    dependent = set(roots)
    for eqn in jaxpr.eqns:
        if eqn.effects or any(v in dependent for v in eqn.invars if type(v) is Var):
            dependent.update(eqn.outvars)
    return dependent


# Transposition


@scan_p.rule(transpose)
def _transpose(cts, *args, jaxpr, num_consts, num_carry, length, reverse, **params):
    linear_args = [is_linear(a) for a in args]
    const_lin, _, xs_lin = _split(linear_args, num_consts, num_carry)
    carry_lin = _linear_carries(jaxpr, linear_args, num_consts, num_carry)
    linear = [*const_lin, *carry_lin, *xs_lin]
    if not all(carry_lin):
        return _transpose_mixed(
            cts, args, jaxpr=jaxpr, num_consts=num_consts, num_carry=num_carry, length=length,
            reverse=reverse, **params,
        )  # fmt: skip
    ct_carry = [instantiate(c) for c in cts[:num_carry]]
    ct_ys = cts[num_carry:]
    ys_given = tuple(type(c) is not Zero for c in ct_ys)
    ct_types = tuple(typeof(c) for c in ct_carry)
    program = derive_from_jaxpr(
        jaxpr, "scan transpose", (tuple(linear), ys_given, ct_types, num_consts),
        lambda: _transposed_body(jaxpr, linear, ys_given, ct_types, num_consts),
    )  # fmt: skip
    consts, _, xs = _split(args, num_consts, num_carry)
    known_consts = [a for a in consts if not is_linear(a)]
    if has_references(program.consts):  # closed over by a custom rule
        program, more = close_over(program)
        known_consts = [*more, *known_consts]
    known_xs = [a for a in xs if not is_linear(a)]
    sums = [zeros(transposed(a.aval.tangent_aval())) for a in consts if is_linear(a)]
    outs = scan_p.bind(
        *known_consts, *sums, *ct_carry, *(c for c in ct_ys if type(c) is not Zero), *known_xs,
        jaxpr=program, num_consts=len(known_consts), num_carry=len(sums) + num_carry,
        length=length, reverse=not reverse, **params,
    )  # fmt: skip
    n = len(sums)
    ct_consts, ct_init, ct_xs = iter(outs[:n]), outs[n : n + num_carry], iter(outs[n + num_carry :])
    return [
        *(next(ct_consts) if m else None for m in const_lin),
        *(c if m else None for c, m in zip(ct_init, linear_args[num_consts:])),
        *(next(ct_xs) if m else None for m in xs_lin),
    ]


def _linear_carries(jaxpr: Jaxpr, linear_args: Sequence[bool], nc: int, ni: int) -> list[bool]:
    """Flags of the carries that depend on linear arguments, also with constant initial values.

    A constant initial value is an additive constant, which transposition ignores.
    """

    def grow(carry):
        marks = [*linear_args[:nc], *carry, *linear_args[nc + ni :]]
        dependent = _depends_on(jaxpr, [v for v, m in zip(jaxpr.invars, marks) if m])
        return [type(v) is Var and v in dependent for v in jaxpr.outvars[:ni]]

    return fixpoint(list(linear_args[nc : nc + ni]), grow)


def _transposed_body(jaxpr, linear, ys_given, carry_avals, num_consts) -> Jaxpr:
    """``(known consts, const sums, ct carry, ct ys, known xs) -> (sums, ct carry, ct xs)``."""
    num_carry = len(carry_avals)
    const_lin, _, xs_lin = _split(linear, num_consts, num_carry)
    back, _ = transpose_jaxpr(
        jaxpr, tuple(linear), (*carry_avals, *ys_given), instantiate_outs=True
    )
    in_avals = jaxpr.in_avals
    const_avals, _, x_avals = _split(in_avals, num_consts, num_carry)
    known_c = [a for a, m in zip(const_avals, const_lin) if not m]
    lin_c = [transposed(a.tangent_aval()) for a, m in zip(const_avals, const_lin) if m]
    known_x = [a for a, m in zip(x_avals, xs_lin) if not m]
    ct_y = [a for a, m in zip(jaxpr.out_avals[num_carry:], ys_given) if m]
    n_kc, n_lc, n_y = len(known_c), len(lin_c), len(ct_y)

    def run(*args):
        kc, rest = args[:n_kc], args[n_kc:]
        sums, rest = rest[:n_lc], rest[n_lc:]
        ct_carry, rest = rest[:num_carry], rest[num_carry:]
        ct_ys, kx = rest[:n_y], rest[n_y:]
        cotangents = eval_jaxpr(back, [*kc, *kx, *ct_carry, *ct_ys])
        added = [add_tangents(s, c) for s, c in zip(sums, cotangents[:n_lc])]
        back_carry = cotangents[n_lc : n_lc + num_carry]
        matched = [convert(c, a.dtype, a.weak_type) for c, a in zip(back_carry, carry_avals)]
        return [*added, *matched, *cotangents[n_lc + num_carry :]]

    avals = [*known_c, *lin_c, *carry_avals, *ct_y, *known_x]
    return stage(run, avals, jaxpr.debug_info)


def _transpose_mixed(cts, args, **params):
    """Transpose of a scan with a partly nonlinear carry, by linearization at zero."""
    primals = [zeros(a.aval) if is_linear(a) else a for a in args]
    mask = tuple(is_linear(a) for a in args)
    _, linear, out_mask = scan_p.rules[linearize](primals, mask, **params)
    n = len(linear.consts)
    moved = linear.replace(constvars=[], consts=[], invars=[*linear.constvars, *linear.invars])
    out_cts = [c for c, m in zip(cts, out_mask) if m]
    ct_mask = tuple(type(c) is not Zero for c in out_cts)
    program, _ = transpose_jaxpr(
        moved, (False,) * n + (True,) * (len(moved.invars) - n), ct_mask, True
    )
    cotangents = iter(
        call_on(
            state.trace, program, [*linear.consts, *(c for c in out_cts if type(c) is not Zero)]
        )
    )
    return [next(cotangents) if m else None for m in mask]


# Batching


@scan_p.rule(batch)
def _batch(axis, args, dims, *, jaxpr, num_consts, num_carry, **params):
    const_d, carry_d, xs_d = _split(list(dims), num_consts, num_carry)
    if any(d not in (None, 1) for d in xs_d) and on_references(jaxpr.effects):
        params.update(jaxpr=jaxpr, num_consts=num_consts, num_carry=num_carry)
        return references.ops.batch(scan_p, axis, args, dims, params)
    x_dims = [None if d is None else 0 for d in xs_d]

    def grow(carry):
        ds = (*const_d, *(0 if b else None for b in carry), *x_dims)
        _, out = batch_jaxpr(jaxpr, ds, axis)
        return [d is not None for d in out[:num_carry]]

    batched = fixpoint([d is not None for d in carry_d], grow)
    in_dims = (*const_d, *(0 if b else None for b in batched), *x_dims)
    _, natural = batch_jaxpr(jaxpr, in_dims, axis)
    required_dims = [0 if b else None for b in batched]
    required_dims += [None if d is None else 0 for d in natural[num_carry:]]
    program, out_dims = batch_jaxpr(jaxpr, in_dims, axis, tuple(required_dims))
    consts, init, xs = _split(list(args), num_consts, num_carry)
    init = [move_axis(x, d, 0, axis.size) if b else x for x, d, b in zip(init, carry_d, batched)]
    xs = [x if d is None else move_axis(x, d, 1, axis.size) for x, d in zip(xs, xs_d)]
    outs = scan_p.bind(
        *consts, *init, *xs, jaxpr=program, num_consts=num_consts, num_carry=num_carry, **params
    )
    result_dims = [0 if b else None for b in batched]
    result_dims += [None if d is None else 1 for d in out_dims[num_carry:]]
    return outs, result_dims


# Rematerialization


@scan_p.rule(partial_eval)
def _partial_eval(split, eqn):
    jaxpr = eqn.params["jaxpr"]
    forward, again, n = split(jaxpr)
    if not n:
        return None
    length = eqn.params["length"]
    saved = [Var(stacked(v.aval, length)) for v in forward.outvars[len(jaxpr.outvars) :]]
    return (
        eqn.replace(outvars=[*eqn.outvars, *saved], params={**eqn.params, "jaxpr": forward}),
        eqn.replace(invars=[*eqn.invars, *saved], params={**eqn.params, "jaxpr": again}),
        saved,
    )


# Dead code


@scan_p.rule(dce)
def _dce(used, eqn):
    p = eqn.params
    jaxpr, nc, ni = p["jaxpr"], p["num_consts"], p["num_carry"]
    used_carry, used_ys = list(used[:ni]), list(used[ni:])
    if not any(used) and not eqn.effects:
        return [False] * len(eqn.invars), None
    while True:
        _, ins = dce_jaxpr(jaxpr, (*used_carry, *used_ys))
        grown = [a or b for a, b in zip(used_carry, ins[nc : nc + ni])]
        if grown == used_carry:
            break
        used_carry = grown
    keep = (*[False] * nc, *used_carry, *[False] * (len(jaxpr.invars) - nc - ni))
    body, ins = dce_jaxpr(jaxpr, (*used_carry, *used_ys), keep)
    new = eqn.replace(
        invars=[v for v, u in zip(eqn.invars, ins) if u],
        outvars=[v for v, u in zip(eqn.outvars, [*used_carry, *used_ys]) if u],
        params={**p, "jaxpr": body, "num_consts": sum(ins[:nc]), "num_carry": sum(used_carry)},
        effects=body.effects,
    )
    return list(ins), new


@scan_p.rule(samples)
def _samples():
    def running(c, xs):
        return scan(lambda c, x: (c * x + x, c * c), c, xs)

    def known(c, xs):
        return scan(lambda c, x: ((c[0] + 1, c[1] * x), c[1]), (np.int32(0), c), xs)[0][1]

    def counted(c):
        return scan(lambda c, _: (c * c * c, None), c, length=3, reverse=True)[0]

    yield Sample(f32(2), f32(3, 2)).set(call=running)
    yield Sample(c64(), c64(4)).set(call=running)
    yield Sample(f32(), f32(3)).set(call=known)
    yield Sample(f32(2, low=-1, high=1)).set(call=counted)
    yield Sample(bf16(2), bf16(0, 2)).set(call=running)
