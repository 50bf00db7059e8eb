"""``custom_root``: a root of a function, differentiated by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.config import state
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

_flatten, _unflatten = pytree.tree_flatten, pytree.tree_unflatten


@api_boundary
def custom_root(
    f: Callable[..., Any],
    initial_guess: Any,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any],
    has_aux: bool = False,
) -> Any:
    """A root of ``f``, found by ``solve`` and differentiated by what ``f`` closes over.

    Args:
      f: a function from a pytree like the guess to one like it. It may close over arrays.
      initial_guess: a pytree of arrays; the root does not depend on it.
      solve: ``solve(f, initial_guess)`` gives the root. It is never differentiated.
      tangent_solve: ``tangent_solve(g, y)`` gives the ``x`` with ``g(x) == y``, where ``g`` is the
        derivative of ``f`` at the root, a linear function. For numbers
        ``lambda g, y: y / g(1.0)`` will do; for vectors, a solve with ``jacobian(g)(y)``, or a
        :func:`custom_linear_solve`. It has to be linear in ``y``; reverse mode transposes it.
      has_aux: ``solve`` gives ``(root, more)``; what ``more`` holds has zero derivative.

    The derivative of the root ``x(a)`` of ``f(x, a)`` is ``-(df/dx)^-1 df/da``, of any order.

    Raises:
      TypeError: if the result of a function has not the structure of the guess.
      ValueError: if it has not its shapes, or ``has_aux`` does not fit the result of ``solve``.

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
        found = tangent_solve(_derivative_at(f, x, tree), y)
        check_solution("tangent_solve", found, tree, avals, "x")
        return found

    f_body = trace_body(checked_f, in_tree, avals, "custom_root")
    solver = trace_body(checked_solve, in_tree, avals, "custom_root")
    step_avals = [a.strip_weak_type() for a in solver.jaxpr.out_avals[: len(avals)]] * 2
    step_tree = _flatten((initial_guess, initial_guess))[1]
    step = trace_body(linear_step, step_tree, step_avals, "custom_root")
    operands = [*f_body.consts, *solver.consts, *step.consts, *guess]
    outs = _differentiated(f_body, solver, step, step_avals).call(operands)
    return _unflatten(solver.out_tree, outs)


def _root_of(out: Any) -> Any:
    """The root in a result of ``solve`` that has more."""
    if not isinstance(out, tuple) or len(out) != 2:
        raise ValueError(
            f"solve() produced a pytree with structure {_flatten(out)[1]}, but a pytree "
            "tuple with auxiliary output was expected because has_aux was set to True."
        )
    return out[0]


def _differentiated(f: Body, solver: Body, step: Body, step_avals: Sequence) -> CustomJVP:
    """The solver with its derivative, as a function of the bodies' constants and the guess."""
    n = len(step_avals) // 2
    nf, ns, nt = (len(body.consts) for body in (f, solver, step))
    # The derivative of a linear function does not depend on where it is taken, and a program
    # that says so only after dead code is gone could not be transposed.
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
        given = [t for t in dots if t is not None]
        found = eval_jaxpr(program, [*primals[:nf], *x, *given])[n:]
        if not found:
            return outs, none
        moved = iter(found)
        rhs = [neg(next(moved)) if m else instantiate(Zero.like(v)) for m, v in zip(out_mask, x)]
        given = [convert(v, a.dtype, a.weak_type) for v, a in zip((*x, *rhs), step_avals)]
        step_consts = primals[nf + ns : nf + ns + nt]
        solved = call_on(state.trace, step_program, [*step_consts, *given])
        wanted = [z.aval for z in none[:n]]
        solved = [convert(t, a.dtype, a.weak_type) for t, a in zip(solved, wanted)]
        return outs, [*solved, *none[n:]]

    custom = CustomJVP(run, rule, "custom_root", True)
    return custom


def _derivative_at(f: Callable, x: Any, tree: Any) -> Callable:
    """The derivative of a function as a function of a tangent."""
    leaves = _flatten(x)[0]
    outs, tangents, trace, ins = linearize_of(
        lambda *xs: _flatten(f(_unflatten(tree, xs)))[0], leaves, [True] * len(leaves)
    )
    program, _ = tape_to_jaxpr(outs, tangents, trace.tape, ins, (True,) * len(outs))

    def g(y):
        found, found_tree = _flatten(y)
        if found_tree != tree or [typeof(v).shape for v in found] != [a.shape for a in wanted]:
            raise TypeError(
                "the linear function that tangent_solve is given takes a tangent of the root: got "
                f"{found_tree} with shapes {[typeof(v).shape for v in found]}, expected {tree} "
                f"with {[a.shape for a in wanted]}"
            )
        given = [convert(v, a.dtype, a.weak_type) for v, a in zip(found, wanted)]
        return _unflatten(tree, call_on(state.trace, program, given))

    wanted = program.in_avals
    return g
