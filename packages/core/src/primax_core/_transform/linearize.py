"""One-pass linearization: computes the values and records the linear part.

For each operation the trace evaluates its *linearized jaxpr*: a jaxpr for the values and residuals,
and a linear jaxpr from tangents to tangents. A tape links the linear jaxprs. It is converted to one
jaxpr (``linearize``) or run backwards directly (``vjp``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .._base import source
from .._base.config import state
from .._ir import rules as rule_kinds
from .._ir.jaxpr import DebugInfo, Jaxpr, Var
from .._ir.primitive import Primitive
from .._trace.core import (
    RefTypeError,
    Tracer,
    bind_on,
    call_on,
    check_leaks,
    made_by,
    set_trace,
    typeof,
)
from .._trace.interpret import apply_equation, interpret
from .._trace.reference_ops import references
from .._trace.staging import (
    JaxprWriter,
    JitTracer,
    StagingTrace,
    eval_jaxpr,
    tracer_classes,
)
from .derived import derive, key_of_derived
from .dual import DualTrace, DualTracer
from .zeros import Zero, instantiate

A = TypeVar("A")


class Tangent:
    """A linear value on the tape: result ``index`` of ``node``, or an input if there is no node."""

    __slots__ = ("node", "index", "aval")

    def __init__(self, node: Node | None, index: int, aval):
        self.node = node
        self.index = index
        self.aval = aval


class Node:
    """One linear jaxpr on the tape.

    ``backward``, if not ``None``, takes ``(residuals, cotangents)`` with ``None`` for zero
    cotangents and returns one cotangent (or ``None``) for each input; it replaces the transpose of
    ``jaxpr``. ``at`` is the pair of named scopes and source location of the node if an enclosing
    trace builds a jaxpr.
    """

    __slots__ = ("jaxpr", "residuals", "inputs", "outputs", "backward", "at")

    def __init__(self, jaxpr: Jaxpr, residuals, inputs, backward=None, at=None):
        self.jaxpr = jaxpr
        self.residuals = residuals
        self.inputs: list[Tangent] = inputs
        n = len(residuals) + len(inputs)
        assert len(jaxpr.invars) == n, (len(jaxpr.invars), n)
        self.outputs = [Tangent(self, i, v.aval) for i, v in enumerate(jaxpr.outvars)]
        self.backward = backward
        self.at = at


class GradTracer(DualTracer):
    """A primal with a linear value on a tape."""

    __slots__ = ()

    def __repr__(self):
        return f"GradTracer(primal={self.primal}, typeof(tangent)={self.extra.aval.str_short()})"

    def _origin(self):
        return made_by("reverse-mode differentiation", self._trace.of, self.primal)


class LinearizeTrace(DualTrace):
    """Computes primals under its parent and records linear jaxprs on a tape."""

    __slots__ = ("tape", "located")

    tracer = GradTracer

    def __init__(self, parent, of: Callable | None = None):
        super().__init__(parent, of)
        self.tape: list[Node] = []
        while parent is not None and not isinstance(parent, JaxprWriter):
            parent = parent.parent
        self.located = parent is not None

    def apply(self, prim, params, primals, extra, mask) -> list[Any]:
        linearized = linearize_primitive(prim, params, [typeof(p) for p in primals], mask)
        return self.run(linearized, primals, extra)

    def apply_jaxpr(self, jaxpr, primals, extra, mask, name) -> list[Any]:
        return self.run(linearize_jaxpr(jaxpr, mask), primals, extra)

    def run(self, linearized: Linearized, primals: list, tangents: list[Tangent]) -> list:
        """Compute the values of a derived jaxpr under the parent and record its linear part."""
        results = call_on(self.parent, linearized.forward, primals)
        outs = results[: linearized.n_outs]
        if linearized.linear is None:
            return outs
        residuals = linearized.residual_values(primals, results)
        node = self.record(linearized.linear, residuals, tangents)
        tangents_out = iter(node.outputs)
        return [
            GradTracer(self, o, next(tangents_out)) if m else o
            for o, m in zip(outs, linearized.out_mask)
        ]

    def record(self, jaxpr: Jaxpr, residuals, tangents, backward=None) -> Node:
        """Append a linear jaxpr to the tape."""
        at = (state.name_stack, source.capture()) if self.located else None
        node = Node(jaxpr, residuals, tangents, backward, at)
        self.tape.append(node)
        return node


class Linearized:
    """A linearized operation.

    Attributes:
      forward: jaxpr ``(*primals) -> (*outs, *extra residuals)``.
      n_outs: the number of ``outs`` among its results.
      residuals: the source of each residual: ``("in" | "out" | "extra", index)``.
      linear: jaxpr ``(*residuals, *tangents) -> (*out tangents)``, or ``None`` without out
        tangents.
      out_mask: the outs with tangents.
    """

    __slots__ = ("forward", "n_outs", "residuals", "linear", "out_mask")

    def __init__(
        self,
        forward: Jaxpr,
        n_outs: int,
        residuals: Sequence[tuple[str, int]],
        linear: Jaxpr | None,
        out_mask: Sequence[bool],
    ):
        self.forward: Jaxpr = forward
        self.n_outs: int = n_outs
        self.residuals: Sequence[tuple[str, int]] = residuals
        self.linear: Jaxpr | None = linear
        self.out_mask: Sequence[bool] = out_mask

    def residual_values(self, primals: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """The residuals, from the arguments and the results of ``forward``."""
        n = self.n_outs
        return [
            primals[i] if origin == "in" else results[i] if origin == "out" else results[n + i]
            for origin, i in self.residuals
        ]


class TangentTrace(JaxprWriter):
    """Records operations on its tracers and evaluates the others under its parent.

    It converts a forward-mode rule to a linear jaxpr: primals come from outside, tangents are the
    arguments of the jaxpr.
    """

    __slots__ = ()

    def process(self, prim, args, params):
        rule = prim.rules.get(rule_kinds.trace_rule)
        if rule is not None:
            return rule(self, args, **params)
        try:
            if self.owns_any(args):
                return self.emit(prim, args, params)
        except RefTypeError:
            return references.ops.process(self, prim, args, params)
        out = bind_on(self.parent, prim, args, params)
        return out if prim.multiple_results else out[0]

    def call(self, jaxpr, args, name=None):
        try:
            if self.owns_any(args):
                return eval_jaxpr(jaxpr, args)
        except RefTypeError:
            return references.ops.call(self, jaxpr, args, name)
        return call_on(self.parent, jaxpr, args, name)

    def owns_any(self, args) -> bool:
        """Return True if an operand is a tracer of this trace."""
        owned = False
        for a in args:
            if isinstance(a, Tracer) and a._trace is self:
                owned = True
                if type(a) is not JitTracer:
                    a._split()
        return owned


def linearize_primitive(
    prim: Primitive, params: dict[str, Any], avals: list[Any], mask: tuple[bool, ...]
) -> Linearized:
    """The linearized jaxprs of one operation.

    Args:
      prim: the primitive.
      params: the parameters.
      avals: types of the operands.
      mask: the operands that are differentiated, a bool for each.

    Returns:
      A ``Linearized``: the forward jaxpr ``(*primals) -> (*outs, *residuals)`` and the linear
      jaxpr ``(*residuals, *tangents) -> (*out_tangents)``.

    Raises:
      MissingRule: if the primitive has no jvp rule.

    They result from the jvp rule; it runs once for each signature.

    >>> from primax_core import lax, typeof
    >>> from primax_core.extend.traces import linearize_primitive
    >>> derived = linearize_primitive(lax.sin_p, {"accuracy": None}, [typeof(1.0)], (True,))
    >>> [eqn.primitive.name for eqn in derived.linear.eqns]
    ['mul']
    """

    def make():
        from .rule_results import jvp_results, linearized_results  # loaded with the first rule

        rule = prim.find(rule_kinds.linearize)
        if rule is not None:

            def linearized(*primals):
                result = rule(primals, mask, **params)
                return linearized_results(prim, rule, result, params, avals, mask)

            sub_jaxpr = params.get("jaxpr")
            info = sub_jaxpr.debug_info if isinstance(sub_jaxpr, Jaxpr) else None
            return build_linearized(linearized, avals, info)
        forward = prim.require(rule_kinds.jvp, "differentiation")

        def differentiated(primals, tangents):
            result = forward(primals, tangents, **params)
            return jvp_results(prim, forward, result, params, avals)

        return build_linearized(
            lambda *primals: linearize_rule(differentiated, primals, mask, prim),
            avals,
            DebugInfo("linearize", prim.name),
        )

    return derive("linearize", prim, params, (tuple(avals), mask), make)


JvpRule = Callable[[list[Any], list[Any]], tuple[Sequence[Any], Sequence[Any]]]
"""From primals and tangents to lists of results and of their tangents."""


def linearize_rule(
    rule: JvpRule, primals: Sequence[Any], mask: Sequence[bool], prim: Primitive
) -> tuple[Sequence[Any], Jaxpr, list[bool]]:
    """The results of a forward-mode rule, its linear part as a jaxpr with constants, and the mask
    of results with tangents.
    """
    parent = state.trace
    trace = TangentTrace(parent)
    tangents = []
    for p, m in zip(primals, mask):
        tangent_aval = typeof(p).tangent_aval()
        tangents.append(trace.new_input(tangent_aval) if m else Zero(tangent_aval))
    try:
        with set_trace(trace):
            outs, out_tangents = rule(list(primals), tangents)
            if any(isinstance(o, Tracer) and o._trace is trace for o in outs):
                # One operation, a loop for instance, computes both results and tangents.
                trace.live = False
                from .fused_jvp import linearize_fused

                with set_trace(parent):
                    return linearize_fused(rule, primals, mask, prim)
            out_mask = [type(t) is not Zero for t in out_tangents]
            linear = trace.finish([t for t in out_tangents if type(t) is not Zero])
    finally:
        trace.live = False
    return outs, linear, out_mask


def build_linearized(linearized: Callable, avals: Sequence, debug_info=None) -> Linearized:
    """Linearized jaxprs from a function ``(*primals) -> (outs, linear jaxpr, out_mask)``.

    The constants of the linear jaxpr are the residuals.
    """
    trace = StagingTrace(None) if debug_info is None else StagingTrace(None, debug_info)
    ins = [trace.new_input(a) for a in avals]
    try:
        with set_trace(trace):
            outs, linear, out_mask = linearized(*ins)
            linear = prune(linear)
            sources, extra = _find_residuals(trace, ins, outs, linear.consts)
            forward = trace.finish([*outs, *extra])
    finally:
        trace.live = False
    n_outs = len(outs)
    if not any(out_mask):
        return Linearized(forward, n_outs, [], None, tuple(out_mask))
    linear = linear.replace(
        constvars=[], consts=[], invars=[*linear.constvars, *linear.invars],
        debug_info=trace.debug_info,
    )  # fmt: skip
    return Linearized(forward, n_outs, sources, linear, tuple(out_mask))


def _find_residuals(trace: StagingTrace, ins, outs, residuals):
    """The source of each residual: an input, a result, or an extra result."""
    by_var: dict[Any, tuple[str, int]] = {}
    for i, o in enumerate(outs):
        v = trace.atom(o)
        if type(v) is Var:
            by_var.setdefault(v, ("out", i))
    for i, t in enumerate(ins):
        by_var[t._var] = ("in", i)
    sources, extra = [], []
    for r in residuals:
        v = trace.atom(r)
        origin = by_var.get(v) if type(v) is Var else None
        if origin is None:
            if type(v.aval) in tracer_classes:
                raise ValueError(
                    f"a reference of type {v.aval} that a function creates is a residual of a "
                    "custom rule, but references cannot leave the function that creates them. "
                    "Pass it as an argument, or save its contents, `ref[...]`."
                )
            origin = ("extra", len(extra))
            extra.append(r)
            if type(v) is Var:
                by_var[v] = origin
        sources.append(origin)
    return sources, extra


def prune(jaxpr: Jaxpr) -> Jaxpr:
    """Drop equations and constants that no result depends on."""
    needed = {v for v in jaxpr.outvars if type(v) is Var}
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if any(v in needed for v in eqn.outvars) or eqn.effects:
            eqns.append(eqn)
            needed.update(v for v in eqn.invars if type(v) is Var)
    eqns.reverse()
    pairs = [(v, c) for v, c in zip(jaxpr.constvars, jaxpr.consts) if v in needed]
    if len(eqns) == len(jaxpr.eqns) and len(pairs) == len(jaxpr.consts):
        return jaxpr
    return jaxpr.replace(eqns=eqns, constvars=[v for v, _ in pairs], consts=[c for _, c in pairs])


def linearize_jaxpr(
    jaxpr: Jaxpr, mask: tuple[bool, ...], instantiate_outs: tuple[bool, ...] | None = None
) -> Linearized:
    """The linearized jaxprs of a jaxpr."""
    key = key_of_derived("linearize", (mask, instantiate_outs))
    result = jaxpr.cache.get(key)
    if result is not None:
        return result

    def linearized(*primals):
        # Few frames: they limit the depth of nested calls that can be differentiated.
        outs, tangents, trace, ins, _ = linearize_with_aux(
            lambda *a: (interpret(jaxpr, a, apply_equation), None), primals, mask
        )
        linear, out_mask = tape_to_jaxpr(outs, tangents, trace.tape, ins, instantiate_outs)
        return outs, linear, out_mask

    result = jaxpr.cache[key] = build_linearized(linearized, jaxpr.in_avals, jaxpr.debug_info)
    return result


def linearize_of(fun: Callable[..., Any], primals: Sequence, mask: Sequence[bool]):
    """Evaluate a function of flat values with a tape.

    Returns:
      The results, their linear values, the trace, and the linear values of the inputs.
    """
    return linearize_with_aux(lambda *args: (fun(*args), None), primals, mask)[:4]


def linearize_with_aux(
    fun: Callable[..., tuple[Any, A]],
    primals: Sequence,
    mask: Sequence[bool],
    of: Callable | None = None,
) -> tuple[list[Any], list[Tangent | None], LinearizeTrace, list[Tangent], A]:
    """:func:`linearize_of` for a function that returns its results and an auxiliary value.

    ``of`` is the user's function, named in error messages.
    """
    trace = LinearizeTrace(state.trace, of)
    ins: list[Tangent] = []
    args = []
    for p, m in zip(primals, mask):
        if m:
            t = Tangent(None, len(ins), typeof(p).tangent_aval())
            ins.append(t)
            args.append(GradTracer(trace, p, t))
        else:
            args.append(p)
    scopes = state.name_stack
    if of is not None and trace.located:
        state.name_stack = (*scopes, "jvp()")
    try:
        with set_trace(trace):
            outs, aux = fun(*args)
        split = [trace.split(o) for o in outs]
    finally:
        trace.live = False
        state.name_stack = scopes
    if state.check_tracer_leaks:
        del args, outs
        check_leaks(trace, f"of differentiation of {source.summarize_function(of or fun)}")
    return [p for p, _ in split], [t for _, t in split], trace, ins, aux


def reachable_nodes(tangents: Sequence[Tangent]) -> set[Node]:
    """The nodes of a tape on which linear values depend."""
    nodes: set[Node] = set()
    stack = [t.node for t in tangents if t.node is not None]
    while stack:
        node = stack.pop()
        if node not in nodes:
            nodes.add(node)
            stack.extend(t.node for t in node.inputs if t.node is not None)
    return nodes


def tape_to_jaxpr(outs, tangents, tape, ins, instantiate_outs=None) -> tuple[Jaxpr, list[bool]]:
    """The tape as one linear jaxpr; its constants are the residuals."""
    used = reachable_nodes([t for t in tangents if t is not None])
    writer = StagingTrace(state.trace)
    values: dict[Tangent, Any] = {t: writer.new_input(t.aval) for t in ins}
    here = state.name_stack, state.source
    try:
        with set_trace(writer):
            for node in tape:
                if node in used:
                    state.name_stack, state.source = node.at or here
                    tangents_out = writer.call(
                        node.jaxpr, [*node.residuals, *(values[t] for t in node.inputs)]
                    )
                    values.update(zip(node.outputs, tangents_out))
            state.name_stack, state.source = here
            results, out_mask = [], []
            for i, (o, t) in enumerate(zip(outs, tangents)):
                forced = instantiate_outs is not None and instantiate_outs[i]
                if t is not None:
                    results.append(values[t])
                elif forced:
                    results.append(instantiate(Zero.like(o)))
                out_mask.append(t is not None or forced)
            linear = writer.finish(results)
    finally:
        writer.live = False
        state.name_stack, state.source = here
    return prune(linear), out_mask
