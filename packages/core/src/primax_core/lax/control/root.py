"""``custom_root``: a root of a function, differentiated by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.config import state
from ..._base.operand_trees import flatten_operands
from ..._base.pytree import PyTree
from ..._base.source import api_boundary
from ..._engine.custom_jvp import CustomJVP, SymbolicZero
from ..._trace.core import call_on, typeof
from ..._trace.staging import eval_jaxpr
from ..._transform.dce import dce_jaxpr
from ..._transform.jvp import jvp_jaxpr
from ..._transform.linearize import linearize_of, tape_to_jaxpr
from ..._transform.zeros import Zero, instantiate
from ..arithmetic import neg
from ..conversion import convert
from .bodies import Body, trace_body
from .linear_solve import check_solution

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten


@api_boundary
def custom_root(
    f: Callable[..., Any],
    initial_guess: PyTree,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any],
    has_aux: bool = False,
) -> Any:
    """A root of ``f``, computed by ``solve``, differentiable in the arrays that ``f`` closes over.

    Args:
      f: a function from pytrees like the guess to pytrees like it. It may close over arrays.
      initial_guess: a pytree of arrays; the root has zero derivative with respect to it.
      solve: ``solve(f, initial_guess)`` returns the root. It is not differentiated.
      tangent_solve: ``tangent_solve(g, y)`` returns the ``x`` with ``g(x) == y``, where ``g`` is
        the derivative of ``f`` at the root, a linear function. For scalars use
        ``lambda g, y: y / g(1.0)``; for vectors, a solve with ``jacobian(g)(y)``, or a
        :func:`custom_linear_solve`. It must be linear in ``y``; reverse mode transposes it.
      has_aux: ``solve`` returns ``(root, aux)``; ``aux`` has zero derivative.

    Returns:
      The solution, a pytree like ``initial_guess``, or a pair of it and the auxiliary value.

    The derivative of the root ``x(a)`` of ``f(x, a)`` is ``-(df/dx)^-1 df/da``. Derivatives of any
    order are supported.

    Raises:
      TypeError: if the result of a function does not have the structure of the guess.
      ValueError: if the result does not have the shapes of the guess, or the result of ``solve``
        is not a pair with ``has_aux``.

    >>> from primax_core import grad
    >>> def root_of(a):
    ...     solve = lambda f, x: a**0.5
    ...     return custom_root(lambda x: x * x - a, 1.0, solve, lambda g, y: y / g(1.0))
    >>> float(grad(root_of)(4.0))
    0.25
    """
    guess, tree = _flatten(initial_guess)
    avals = [typeof(x) for x in guess]
    in_tree = _flatten((initial_guess,))[1]

    def checked_f(x):
        out = f(x)
        check_solution("f", out, tree, avals, "initial_guess")
        return out

    def checked_solve(x):
        out = solve(f, x)
        root = _root_of(out) if has_aux else out
        check_solution("solve", root, tree, avals, "initial_guess")
        return out

    def linear_step(x, y):
        solution = tangent_solve(_derivative_at(f, x, tree), y)
        check_solution("tangent_solve", solution, tree, avals, "x")
        return solution

    f_body = trace_body(checked_f, in_tree, avals, "custom_root")
    solver = trace_body(checked_solve, in_tree, avals, "custom_root")
    step_avals = [a.strip_weak_type() for a in solver.jaxpr.out_avals[: len(avals)]] * 2
    step_tree = _flatten((initial_guess, initial_guess))[1]
    step = trace_body(linear_step, step_tree, step_avals, "custom_root")
    operands = [*f_body.consts, *solver.consts, *step.consts, *guess]
    outs = _differentiated(f_body, solver, step, step_avals).call(operands)
    return _unflatten(solver.out_tree, outs)


def _root_of(out: Any) -> Any:
    """The root in a pair ``(root, aux)``."""
    if not isinstance(out, tuple) or len(out) != 2:
        raise ValueError(
            f"solve() produced a pytree with structure {_flatten(out)[1]}, but a pytree "
            "tuple with auxiliary output was expected because has_aux was set to True."
        )
    return out[0]


def _differentiated(f: Body, solver: Body, step: Body, step_avals: Sequence) -> CustomJVP:
    """The solver with a custom JVP, as a function of the bodies' constants and the guess."""
    n = len(step_avals) // 2
    nf, ns, nt = (len(body.consts) for body in (f, solver, step))
    # The derivative of a linear function does not depend on the point. Dead code elimination
    # removes the unused point, with which the jaxpr could not be transposed.
    step_program = dce_jaxpr(step.jaxpr, (True,) * n, True)[0]

    def run(*args):
        return call_on(state.trace, solver.jaxpr, [*args[nf : nf + ns], *args[nf + ns + nt :]])

    def rule(primals, tangents):
        outs = custom.call(primals)
        x = outs[:n]
        dots = [None if type(t) is SymbolicZero else t for t in tangents[:nf]]
        none = [SymbolicZero(typeof(o).tangent_aval()) for o in outs]
        if all(t is None for t in dots):
            return outs, none
        mask = tuple(t is not None for t in dots)
        program, out_mask = jvp_jaxpr(f.jaxpr, (*mask, *[False] * n))
        inputs = [t for t in dots if t is not None]
        changes = eval_jaxpr(program, [*primals[:nf], *x, *inputs])[n:]
        if not changes:
            return outs, none
        moved = iter(changes)
        rhs = [neg(next(moved)) if m else instantiate(Zero.like(v)) for m, v in zip(out_mask, x)]
        inputs = [convert(v, a.dtype, a.weak_type) for v, a in zip((*x, *rhs), step_avals)]
        step_consts = primals[nf + ns : nf + ns + nt]
        solved = call_on(state.trace, step_program, [*step_consts, *inputs])
        avals = [z.aval for z in none[:n]]
        solved = [convert(t, a.dtype, a.weak_type) for t, a in zip(solved, avals)]
        return outs, [*solved, *none[n:]]

    custom = CustomJVP(run, rule, "custom_root", True)
    return custom


def _derivative_at(f: Callable, x: Any, tree: Any) -> Callable:
    """The derivative of a function at a point, as a function of a tangent."""
    leaves = _flatten(x)[0]
    outs, tangents, trace, ins = linearize_of(
        lambda *xs: _flatten(f(_unflatten(tree, xs)))[0], leaves, [True] * len(leaves)
    )
    program, _ = tape_to_jaxpr(outs, tangents, trace.tape, ins, (True,) * len(outs))

    def g(y):
        ys, y_tree = _flatten(y)
        if y_tree != tree or [typeof(v).shape for v in ys] != [a.shape for a in expected]:
            raise TypeError(
                "the linear function passed to tangent_solve takes a tangent of the root: got "
                f"{y_tree} with shapes {[typeof(v).shape for v in ys]}, expected {tree} "
                f"with {[a.shape for a in expected]}"
            )
        converted = [convert(v, a.dtype, a.weak_type) for v, a in zip(ys, expected)]
        return _unflatten(tree, call_on(state.trace, program, converted))

    expected = program.in_avals
    return g
