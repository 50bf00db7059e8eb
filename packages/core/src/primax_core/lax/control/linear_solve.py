"""``custom_linear_solve``: a linear solver with implicit derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..._base import pytree
from ..._base.config import state
from ..._base.operand_trees import flatten_operands
from ..._base.pytree import PyTree, PyTreeDef
from ..._base.source import api_boundary
from ..._ir.avals import ShapedArray
from ..._ir.check import check_types
from ..._ir.effects import shifted
from ..._ir.jaxpr import Jaxpr
from ..._ir.placement import is_placed
from ..._ir.primitive import (
    Primitive,
    abstract,
    batch,
    check,
    effects,
    jvp,
    lower,
    transpose,
)
from ..._ir.samples import Sample, c64, f32, samples
from ..._lower.lazy import lowering
from ..._trace.core import call_on, typeof
from ..._trace.staging import eval_jaxpr, stage
from ..._transform.batching import batch_jaxpr, move_axis
from ..._transform.derived import derive_from_jaxpr
from ..._transform.jvp import jvp_jaxpr
from ..._transform.transpose import transpose_jaxpr
from ..._transform.zeros import Zero, add_tangents, instantiate, is_linear
from ..arithmetic import mul, neg
from ..division import div
from .bodies import Body, trace_body

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten

linear_solve_p: Final = Primitive(
    "custom_linear_solve",
    multiple_results=True,
    cache_on=lambda params: params["jaxprs"][1].cache,
)


@api_boundary
def custom_linear_solve(
    matvec: Callable[..., Any],
    b: PyTree,
    solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The solution of ``matvec(x) == b``, computed by ``solve``, with implicit derivatives.

    Args:
      matvec: a linear function from pytrees like ``b`` to pytrees like ``b``. It may close over
        arrays; the result is differentiable with respect to them.
      b: a pytree of arrays.
      solve: ``solve(matvec, b)`` returns the solution. It is not differentiated.
      transpose_solve: ``transpose_solve(vecmat, b)`` solves the transposed equation
        ``vecmat(x) == b``. Reverse mode requires it.
      symmetric: ``matvec`` is its own transpose, so ``solve`` also solves the transposed equation.
      has_aux: ``solve`` (and ``transpose_solve``) return ``(solution, aux)``; ``aux`` has zero
        derivative.

    Returns:
      A pytree like ``b``, or a pair of it and the auxiliary value.

    Derivatives of any order and ``vmap`` solve more equations with the same ``matvec``.

    Raises:
      TypeError: if the result of a function does not have the structure of ``b``; in reverse mode,
        if ``transpose_solve`` is missing.
      ValueError: if the result of a function does not have the shapes of ``b``.

    >>> import numpy as np
    >>> d = np.array([2.0, 4.0])
    >>> custom_linear_solve(lambda x: x * d, np.ones(2), lambda f, b: b / d).tolist()
    [0.5, 0.25]
    """
    for name, fun in (("matvec", matvec), ("solve", solve)):
        if not callable(fun):
            raise TypeError(f"custom_linear_solve: {name} should be callable, got {fun!r}")
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    leaves, tree = _flatten(b)
    avals = [typeof(x) for x in leaves]
    in_tree = _flatten((b,))[1]

    def traced(fun: Callable, name: str) -> Body:
        return trace_body(fun, in_tree, avals, name)

    forward = traced(_checked(matvec, "matvec", tree, avals), "matvec")
    solver = traced(_checked(_closed(solve, matvec), "solve", tree, avals, has_aux), "solve")
    if any(map(is_placed, (*forward.jaxpr.out_avals, *solver.jaxpr.out_avals))):
        from .placed import common_operands

        leaves, placed = common_operands(leaves, avals, (forward, solver))
        if placed:  # the solution depends on the matrix
            b = _unflatten(tree, leaves)
            return custom_linear_solve(matvec, b, solve, transpose_solve, symmetric, has_aux)
    bodies = [forward, solver]
    if transpose_solve is not None:
        backward = forward if symmetric else _transposed(forward)
        vecmat = _as_function(backward, tree)
        closed = _closed(transpose_solve, vecmat)
        checked = _checked(closed, "transpose_solve", tree, avals, has_aux)
        bodies = [forward, solver, backward, traced(checked, "transpose_solve")]
    outs = linear_solve_p.bind(
        *(c for body in bodies for c in body.consts), *leaves,
        const_lengths=tuple(len(body.consts) for body in bodies),
        jaxprs=tuple(body.jaxpr for body in bodies),
    )  # fmt: skip
    return _unflatten(solver.out_tree, outs)


def _closed(solve: Callable, matvec: Callable) -> Callable:
    return lambda b: solve(matvec, b)


def _checked(
    fun: Callable, name: str, tree: Any, avals: Sequence[ShapedArray], has_aux: bool = False
) -> Callable:
    """The function with a check that its result has the structure and shapes of ``b``."""

    def checked(x):
        out = fun(x)
        solution = out
        if has_aux:
            try:
                solution, _ = out
            except (TypeError, ValueError) as e:
                raise type(e)(f"{name}() with has_aux should give (solution, aux): {e}") from None
        check_solution(name, solution, tree, avals, "b")
        return out

    return checked


def check_solution(
    name: str, out: PyTree, tree: PyTreeDef, avals: Sequence[Any], what: str
) -> None:
    """Raise an error if a result does not have the expected structure and shapes."""
    outs, out_tree = _flatten(out)
    if out_tree != tree:
        raise TypeError(
            f"{name}() output pytree structure must match {what}, got {out_tree} and {tree}."
        )
    shapes, expected = [typeof(o).shape for o in outs], [a.shape for a in avals]
    if shapes != expected:
        raise ValueError(f"{name}() output shapes must match {what}, got {shapes} and {expected}")


def _transposed(body: Body) -> Body:
    """The transposed linear function, with the same constants."""
    n = len(body.consts)
    linear = (False,) * n + (True,) * (len(body.jaxpr.invars) - n)
    program, _ = transpose_jaxpr(body.jaxpr, linear, (True,) * len(body.jaxpr.outvars), True)
    return Body(program, body.consts, body.out_tree, body.info)


def _as_function(body: Body, tree: Any) -> Callable:
    def fun(x):
        outs = call_on(state.trace, body.jaxpr, [*body.consts, *_flatten(x)[0]])
        return _unflatten(tree, outs)

    return fun


def _split(values: Sequence, lengths: Sequence[int]) -> tuple[list[list], list]:
    """The constants of each jaxpr, and the right-hand side."""
    values, parts, at = list(values), [], 0
    for n in lengths:
        parts.append(values[at : at + n])
        at += n
    return parts, values[at:]


@linear_solve_p.rule(abstract)
def _abstract(*avals, const_lengths, jaxprs):
    return jaxprs[1].out_avals


@linear_solve_p.rule(check)
def _check(*avals, const_lengths, jaxprs):
    consts, b = _split(avals, const_lengths)
    for own, jaxpr in zip(consts, jaxprs):
        check_types("operands of a linear solve", [*own, *b], jaxpr.in_avals)


@linear_solve_p.rule(effects)
def _effects(*avals, const_lengths, jaxprs):
    return shifted(jaxprs[1].effects, lambda i: i + const_lengths[0])


@linear_solve_p.rule(lower)
def _lower(ctx, *values, const_lengths, jaxprs):
    consts, b = _split(values, const_lengths)
    return lowering.lower_body(ctx, jaxprs[1], [*consts[1], *b])


@linear_solve_p.rule(jvp)
def _jvp(primals, tangents, *, const_lengths, jaxprs):
    # A x = b implies A dx = db - dA x.
    outs = linear_solve_p.bind(*primals, const_lengths=const_lengths, jaxprs=jaxprs)
    consts, b = _split(primals, const_lengths)
    const_dots, b_dot = _split(tangents, const_lengths)
    x, aux = outs[: len(b)], outs[len(b) :]
    mask = tuple(type(t) is not Zero for t in const_dots[0])
    rhs = list(b_dot)
    if any(mask):
        program, out_mask = jvp_jaxpr(jaxprs[0], (*mask, *[False] * len(x)))
        nonzero = [t for t, m in zip(const_dots[0], mask) if m]
        moved = iter(call_on(state.trace, program, [*consts[0], *x, *nonzero])[len(x) :])
        changes = [neg(next(moved)) if m else Zero.like(v) for m, v in zip(out_mask, x)]
        rhs = [add_tangents(t, c) for t, c in zip(rhs, changes)]
    none = [Zero.like(a) for a in aux]
    if all(type(t) is Zero for t in rhs):
        return outs, [*(Zero.like(v) for v in x), *none]
    solved = linear_solve_p.bind(
        *(c for part in consts for c in part), *map(instantiate, rhs),
        const_lengths=const_lengths, jaxprs=_for_types(jaxprs, const_lengths, rhs),
    )  # fmt: skip
    return outs, [*solved[: len(x)], *none]


def _for_types(jaxprs: tuple, const_lengths: tuple, b: Sequence) -> tuple:
    """The jaxprs for a right-hand side with other weak types."""
    avals = tuple(x.aval if type(x) is Zero else typeof(x) for x in b)
    return tuple(
        jaxpr
        if tuple(jaxpr.in_avals[n:]) == avals
        else derive_from_jaxpr(
            jaxpr, "retyped", (n, avals), lambda j=jaxpr, n=n: _retyped(j, n, avals)
        )
        for jaxpr, n in zip(jaxprs, const_lengths)
    )


def _retyped(jaxpr: Jaxpr, n: int, avals: Sequence[ShapedArray]) -> Jaxpr:
    return stage(lambda *a: eval_jaxpr(jaxpr, a), [*jaxpr.in_avals[:n], *avals], jaxpr.debug_info)


@linear_solve_p.rule(transpose)
def _transpose(cts, *args, const_lengths, jaxprs):
    if len(jaxprs) < 4:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of "
            "custom_linear_solve"
        )
    consts, b = _split(args, const_lengths)
    ct = [instantiate(c) for c in cts[: len(b)]]
    if any(is_linear(c) for part in consts for c in part):
        raise TypeError("custom_linear_solve is not linear in what its functions close over")
    order = (2, 3, 0, 1)
    swapped = tuple(jaxprs[i] for i in order)
    lengths = tuple(const_lengths[i] for i in order)
    outs = linear_solve_p.bind(
        *(c for i in order for c in consts[i]), *ct,
        const_lengths=lengths, jaxprs=_for_types(swapped, lengths, ct),
    )  # fmt: skip
    return [*(None for part in consts for _ in part), *outs[: len(b)]]


@linear_solve_p.rule(batch)
def _batch(axis, args, dims, *, const_lengths, jaxprs):
    consts, b = _split(args, const_lengths)
    const_dims, b_dims = _split(dims, const_lengths)
    b = [move_axis(x, d, 0, axis.size) for x, d in zip(b, b_dims)]
    front = (0,) * len(b)
    programs, out_dims = [], None
    for i, (jaxpr, own) in enumerate(zip(jaxprs, const_dims)):
        n_aux = len(jaxpr.outvars) - len(b)
        program, body_dims = batch_jaxpr(jaxpr, (*own, *front), axis, (*front, *[None] * n_aux))
        programs.append(program)
        if i == 1:
            out_dims = body_dims
    outs = linear_solve_p.bind(
        *(c for part in consts for c in part), *b, const_lengths=const_lengths,
        jaxprs=tuple(programs),
    )  # fmt: skip
    return outs, list(out_dims or ())


@linear_solve_p.rule(samples)
def _samples():
    def diagonal(d, b):
        solve = lambda f, b: div(b, d)
        return custom_linear_solve(lambda x: mul(d, x), b, solve, solve)

    for make in (f32, c64):
        yield Sample(make(3, low=0.5, high=2), make(3)).set(call=diagonal)
    yield Sample(f32(low=0.5, high=2), f32()).set(call=diagonal)
    yield Sample(f32(3, low=0.5, high=2), f32(3)).set(
        call=lambda d, b: custom_linear_solve(
            lambda x: mul(d, x), b, lambda f, b: (div(b, d), b), symmetric=True, has_aux=True
        )[0]
    )
