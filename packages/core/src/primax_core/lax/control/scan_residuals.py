"""Residuals of the linear part of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._engine.call import jit_p
from ..._ir.jaxpr import Eqn, Jaxpr, Literal, Var
from ..._ir.primitive import dce
from ..._trace.staging import stage
from ..._transform.dce import dce_jaxpr
from .bodies import permuted


class LinearScan:
    """Partition of a linearized body into a forward and a linear scan.

    Attributes:
      forward: the body with the per-step residuals as additional results.
      hoisted: jaxpr from the constants to the loop-invariant residuals.
      fixed: source of each loop-invariant residual: a constant, or ``hoisted``.
      per_step: source of each per-step residual: ``xs``, ``ys``, or an additional result.
      linear: the linear body: ``(fixed, const tangents, carry tangents, per-step residuals,
        xs tangents) -> (carry tangents, ys tangents)``.
    """

    def __init__(self, linearized: Any, num_consts: int, num_carry: int, n_xs_t: int):
        body = linearized.forward
        moving = _changing(body, [False] * num_consts + [True] * (len(body.invars) - num_consts))
        n_outs = linearized.n_outs
        self.fixed: list[tuple[str, int]] = []
        self.per_step: list[tuple[str, int]] = []
        hoisted_vars: list[Any] = []
        extra_vars: list[Any] = []
        fixed_at, step_at = [], []
        for r, (where, i) in enumerate(linearized.residuals):
            var = (
                body.invars[i] if where == "in"
                else body.outvars[i] if where == "out"
                else body.outvars[n_outs + i]
            )  # fmt: skip
            if where == "in" and i < num_consts:
                self.fixed.append(("const", i))
                fixed_at.append(r)
            elif type(var) is Literal or var not in moving:
                self.fixed.append(("hoisted", len(hoisted_vars)))
                hoisted_vars.append(var)
                fixed_at.append(r)
            else:
                if where == "in" and i >= num_consts + num_carry:
                    self.per_step.append(("xs", i - num_consts - num_carry))
                elif where == "out" and i >= num_carry:
                    self.per_step.append(("ys", i))
                else:
                    self.per_step.append(("extra", len(extra_vars)))
                    extra_vars.append(var)
                step_at.append(r)
        self.forward: Jaxpr = body.replace(outvars=[*body.outvars[:n_outs], *extra_vars])
        self.hoisted: Jaxpr | None = None
        if hoisted_vars:
            whole = body.replace(invars=body.invars[:num_consts], outvars=hoisted_vars)
            eqns = [_unchanging_part(e, moving) for e in body.eqns]
            eqns = [e for e in eqns if e is not None]
            self.hoisted = dce_jaxpr(
                whole.replace(eqns=eqns), (True,) * len(hoisted_vars), keep_inputs=True
            )[0]
        lin = linearized.linear
        if lin is None:
            lin = stage(list, [])
        n_res = len(linearized.residuals)
        n_t = len(lin.invars) - n_res
        tangents = list(range(n_res, n_res + n_t))
        # Tangents are in the order constants, carries, xs.
        head, tail = tangents[: n_t - n_xs_t], tangents[n_t - n_xs_t :]
        self.linear: Jaxpr = permuted(
            lin, [*fixed_at, *head, *step_at, *tail], range(len(lin.outvars))
        )


def _changing(jaxpr: Jaxpr, marks: Sequence[bool]) -> set:
    """Loop-variant variables of a body: those that depend on the marked arguments.

    The analysis includes the sub-jaxprs of calls.
    """
    variant = {v for v, m in zip(jaxpr.invars, marks) if m}
    for eqn in jaxpr.eqns:
        inner = [type(v) is Var and v in variant for v in eqn.invars]
        if eqn.effects:
            variant.update(eqn.outvars)
        elif any(inner) and eqn.primitive is jit_p:
            called = eqn.params["jaxpr"]
            changing = _changing(called, inner)
            variant.update(v for v, w in zip(eqn.outvars, called.outvars) if w in changing)
        elif any(inner):
            variant.update(eqn.outvars)
    return variant


def _unchanging_part(eqn: Eqn, moving: set) -> Eqn | None:
    """An equation reduced to its loop-invariant results."""
    if eqn.effects:  # the effect must happen in each step
        return None
    used = [v not in moving for v in eqn.outvars]
    if all(used):
        return eqn
    return jit_p.rules[dce](used, eqn)[1] if any(used) else None
