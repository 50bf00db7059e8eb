"""Forward-mode differentiation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .._base.config import state
from .._ir import rules as rule_kinds
from .._ir.jaxpr import DebugInfo, Jaxpr
from .._ir.primitive import Primitive
from .._trace.core import call_on, made_by, set_trace, typeof
from .._trace.staging import eval_jaxpr, stage_with_aux
from .derived import derive, derive_from_jaxpr
from .dual import DualTrace, DualTracer, Mask, Values
from .zeros import Zero, instantiate

A = TypeVar("A")


class JVPTracer(DualTracer):
    """A value with a tangent."""

    __slots__ = ()

    @property
    def tangent(self) -> Any:
        """The tangent."""
        return self.extra

    def __repr__(self) -> str:
        return f"JVPTracer(primal={self.primal}, tangent={self.extra})"

    def _origin(self) -> str:
        return made_by("forward-mode differentiation", self._trace.of, self.primal)


# Tracer classes of values other than arrays, by the class of the value.
tracers: dict[type, type[JVPTracer]] = {}


class JVPTrace(DualTrace):
    """Computes a tangent for each value."""

    __slots__ = ()

    tracer: type[DualTracer] = JVPTracer

    def apply(
        self, prim: Primitive, params: dict[str, Any], primals: Values, extra: Values, mask: Mask
    ) -> Values:
        avals = [typeof(p) for p in primals]
        jaxpr, out_mask = jvp_primitive(prim, params, avals, mask)
        return self.wrap(call_on(self.parent, jaxpr, primals + extra), out_mask)

    def apply_jaxpr(
        self, jaxpr: Jaxpr, primals: Values, extra: Values, mask: Mask, name: str | None
    ) -> Values:
        derived, out_mask = jvp_jaxpr(jaxpr, mask)
        return self.wrap(call_on(self.parent, derived, primals + extra, name), out_mask)

    def wrap(self, outs: list[Any], out_mask: Sequence[bool]) -> list[Any]:
        """Tracers of results; their tangents follow the results in ``outs``."""
        n = len(out_mask)
        tangents = iter(outs[n:])
        return [JVPTracer(self, p, next(tangents)) if m else p for p, m in zip(outs[:n], out_mask)]


def jvp_primitive(
    prim: Primitive, params: dict[str, Any], avals: list[Any], mask: tuple[bool, ...]
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The forward derivative of one operation.

    Args:
      prim: the primitive.
      params: the parameters.
      avals: types of the operands.
      mask: the operands with a tangent that may be nonzero, a bool for each.

    Returns:
      A jaxpr ``(*primals, *tangents) -> (*outs, *out_tangents)``, and the mask of results with
      tangents.

    Raises:
      MissingRule: if the primitive has no jvp rule.

    The rule runs once for each signature; the jaxpr is stored on the primitive.

    >>> from primax_core import lax, typeof
    >>> from primax_core.extend.traces import jvp_primitive
    >>> jaxpr, mask = jvp_primitive(lax.sin_p, {"accuracy": None}, [typeof(1.0)], (True,))
    >>> [eqn.primitive.name for eqn in jaxpr.eqns], mask
    (['sin', 'cos', 'mul'], (True,))
    """

    def make():
        from .rule_results import jvp_results  # loaded with the first rule

        rule = prim.require(rule_kinds.jvp, "forward-mode differentiation")

        def run(*args):
            primals = list(args[: len(avals)])
            nonzero = iter(args[len(avals) :])
            tangents = [next(nonzero) if m else Zero(a.tangent_aval()) for m, a in zip(mask, avals)]
            result = rule(primals, tangents, **params)
            outs, tangents_out = jvp_results(prim, rule, result, params, avals)
            out_mask = tuple(type(t) is not Zero for t in tangents_out)
            return [*outs, *(t for t in tangents_out if type(t) is not Zero)], out_mask

        tangent_avals = [a.tangent_aval() for a, m in zip(avals, mask) if m]
        return stage_with_aux(run, [*avals, *tangent_avals], DebugInfo("jvp", prim.name))

    return derive("jvp", prim, params, (tuple(avals), mask), make)


def jvp_jaxpr(
    jaxpr: Jaxpr, mask: tuple[bool, ...], instantiate_outs: tuple[bool, ...] | bool = False
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The forward-mode jaxpr of a jaxpr, and the mask of results with tangents.

    Args:
      mask: the arguments with a tangent that may be nonzero.
      instantiate_outs: the results whose tangent is always an array.
    """

    def make():
        n = len(jaxpr.invars)
        force = (
            (instantiate_outs,) * len(jaxpr.outvars)
            if isinstance(instantiate_outs, bool)
            else instantiate_outs
        )

        def run(*args):
            nonzero = iter(args[n:])
            tangents = [next(nonzero) if m else None for m in mask]
            outs, out_tangents = jvp_of(lambda *a: eval_jaxpr(jaxpr, a), args[:n], tangents)
            out_tangents = [
                instantiate(Zero.like(o)) if t is None and f else t
                for o, t, f in zip(outs, out_tangents, force)
            ]
            out_mask = tuple(t is not None for t in out_tangents)
            return [*outs, *(t for t in out_tangents if t is not None)], out_mask

        tangent_avals = [v.aval.tangent_aval() for v, m in zip(jaxpr.invars, mask) if m]
        return stage_with_aux(run, [*jaxpr.in_avals, *tangent_avals], jaxpr.debug_info)

    return derive_from_jaxpr(jaxpr, "jvp", (mask, instantiate_outs), make)


def jvp_of(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Evaluate a function of flat values in forward mode.

    Args:
      fun: a function of arrays that returns a list of arrays.
      primals: the arguments.
      tangents: their tangents; ``None`` for zeros.

    Returns:
      The results, and their tangents (``None`` for zeros).

    It is :func:`~primax_core.jvp` without pytrees, for interpreters.

    >>> from primax_core import lax
    >>> from primax_core.extend.traces import jvp_of
    >>> (y,), (dy,) = jvp_of(lambda x, y: [lax.mul(x, y)], [2.0, 3.0], [1.0, None])
    >>> float(y), float(dy)
    (6.0, 3.0)
    """
    return jvp_with_aux(lambda *args: (fun(*args), None), primals, tangents)[:2]


def jvp_with_aux(
    fun: Callable[..., tuple[Any, A]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any], A]:
    """:func:`jvp_of` for a function that returns its results and an auxiliary value."""
    trace = JVPTrace(state.trace)
    ins = [
        p if t is None else tracers.get(type(p), JVPTracer)(trace, p, t)
        for p, t in zip(primals, tangents)
    ]
    try:
        with set_trace(trace):
            outs, aux = fun(*ins)
        split = [trace.split(o) for o in outs]
    finally:
        trace.live = False
    return [p for p, _ in split], [t for _, t in split], aux
