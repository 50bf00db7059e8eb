"""Construction of jaxprs: the traces that record operations as equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .._base import errors, source
from .._base.config import state
from .._ir import rules as rule_kinds
from .._ir.avals import ShapedArray
from .._ir.check import check_jaxpr
from .._ir.effects import no_effects
from .._ir.jaxpr import (
    DebugInfo,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    is_scalar_literal,
    joined_effects,
    no_debug_info,
)
from .._ir.placement import Casts, is_placed
from .._ir.primitive import Primitive
from .._ir.rule_results import check_effects, result_avals
from .._ir.symbolic_dims import Dimension
from .axes import axis_env, named_axes_of
from .core import (
    Trace,
    Tracer,
    check_leaks,
    check_live,
    close_over as close_over,
    converted,
    has_tracers as has_tracers,
    set_trace,
    typeof,
    without_tracers as without_tracers,
)
from .interpret import eval_jaxpr as eval_jaxpr

A = TypeVar("A")


class JitTracer(Tracer):
    """A value of a jaxpr under construction."""

    __slots__ = ("_var",)

    def __init__(self, trace: JaxprWriter, aval: ShapedArray, var: Var | Literal):
        self._trace = trace
        self.aval = aval
        self._var = var

    def __repr__(self) -> str:
        return f"{self._trace.tracer_name}({self.aval})"

    __str__ = __repr__

    def _origin(self) -> str:
        return self._trace.describe(self)

    def _concrete(self):
        return self._var.scalar if type(self._var) is Literal else None


def _depth(scopes: tuple[str, ...]) -> int:
    """The number of scopes that belong to the equation that calls a new jaxpr.

    Scopes with attributes may belong to the operations of the jaxpr too.
    """
    for i, scope in enumerate(scopes):
        if type(scope) is not str and scope.inner:  # type: ignore[attr-defined]
            return i
    return len(scopes)


# Tracer classes of avals other than arrays.
tracer_classes: dict[type, type[JitTracer]] = {}


class JaxprWriter(Trace):
    """Base of the traces that record operations in a list of equations.

    Values from outside (arrays and tracers of enclosing traces) become constants of the jaxpr.
    Equations get the named scopes entered since the trace began: the outer scopes belong to the
    equation that calls the jaxpr.
    """

    __slots__ = ("eqns", "const_vars", "consts", "debug_info", "invars", "key", "depth")

    tracer_name = "JitTracer"

    def __init__(self, parent: Trace | None, debug_info: DebugInfo = no_debug_info):
        super().__init__(parent)
        self.eqns: list[Eqn] = []
        self.const_vars: dict[int, Var] = {}
        self.consts: list[Any] = []
        self.invars: list[Var] = []
        self.debug_info: DebugInfo = debug_info
        self.key: Any = state.trace_key
        self.depth: int = _depth(state.name_stack)

    # Values

    def new_input(self, aval: ShapedArray) -> JitTracer:
        """A tracer for a new argument of the jaxpr."""
        var = Var(aval)
        self.invars.append(var)
        return tracer_classes.get(type(aval), JitTracer)(self, aval, var)

    def atom(self, x: Any) -> Var | Literal:
        """The variable or literal of a value in this jaxpr."""
        if isinstance(x, Tracer):
            if x._trace is self:
                return x._var
            check_live(x)
            return self._constant(x, x.aval)
        if type(x) is Literal:
            return x
        aval = typeof(x)
        if is_scalar_literal(x):
            return Literal(np.asarray(x, aval.dtype)[()], aval)
        if isinstance(x, Dimension):
            with set_trace(self):
                return x.as_value()._var
        return self._constant(x, aval)

    def _constant(self, x, aval) -> Var:
        var = self.const_vars.get(id(x))
        if var is None:
            var = self.const_vars[id(x)] = Var(aval)
            self.consts.append(x)
        return var

    def lift(self, x: Any) -> JitTracer:
        """A tracer of this trace for any value."""
        if isinstance(x, JitTracer) and x._trace is self:
            return x
        atom = self.atom(x)
        return tracer_classes.get(type(atom.aval), JitTracer)(self, atom.aval, atom)

    # Equations

    def emit(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Append an equation; the abstract rule computes the avals of its results."""
        invars = [
            a._var if type(a) is JitTracer and a._trace is self else self.atom(a) for a in args
        ]
        out_avals, effects, casts = infer(prim, [v.aval for v in invars], params)
        if casts is not None:
            invars = self._cast(args, invars, casts)
        outvars = [Var(a) for a in out_avals]
        scope = state.name_stack
        if scope:
            scope = scope[self.depth :]
        self.eqns.append(Eqn(prim, invars, outvars, params, effects, source.capture(), scope))
        if prim.multiple_results:
            return [JitTracer(self, v.aval, v) for v in outvars]
        var = outvars[0]
        return JitTracer(self, var.aval, var)

    def _cast(self, args: Sequence[Any], invars: list[Any], casts: Casts) -> list[Any]:
        """The operands of an equation after their casts."""
        with set_trace(self):
            return [
                v if c is None else self.atom(c(self.lift(x) if type(x) is Literal else x))
                for x, v, c in zip(args, invars, casts)
            ]

    # The finished jaxpr

    def finish(self, outs: Sequence[Any]) -> Jaxpr:
        """The jaxpr with the results ``outs``; its constants may be outer tracers."""
        outvars = [self.atom(x) for x in outs]
        self.live = False
        constvars = list(self.const_vars.values())
        jaxpr = Jaxpr(
            constvars, [*map(converted, self.consts)], self.invars, outvars, self.eqns,
            joined_effects(self.eqns, [*self.invars, *constvars]), self.debug_info,
        )  # fmt: skip
        if state.enable_checks:
            check_jaxpr(jaxpr)
        return jaxpr

    def describe(self, tracer: JitTracer) -> str:
        """The arguments that a tracer depends on, or the line that computed it."""
        info = self.debug_info
        head = (
            f"The error occurred while tracing the function {info.func_src_info} for "
            f"{info.traced_for}. "
        )
        roots, made_at = self._sources(tracer._var)
        names = [
            info.arg_names[i] if info.arg_names and i < len(info.arg_names) else f"number {i}"
            for i, v in enumerate(self.invars)
            if v in roots
        ]
        if names:
            which = "argument" if len(names) == 1 else "arguments"
            listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            text = (
                f"{head}This concrete value was not available in Python because it depends on "
                f"the value of the {which} {listed}."
            )
        else:
            text = head + "This value became a tracer because it was computed while tracing."
        if made_at is not None:
            text += f"\nIt was computed on line {source.summarize(made_at)}."
        return text

    def _sources(self, var) -> tuple[set, Any]:
        made_by = {v: eqn for eqn in self.eqns for v in eqn.outvars}
        first = made_by.get(var)
        seen, stack = set(), [var]
        while stack:
            v = stack.pop()
            if type(v) is Literal or v in seen:
                continue
            seen.add(v)
            if v in made_by:
                stack.extend(made_by[v].invars)
        return seen, first.source if first is not None else None


class StagingTrace(JaxprWriter):
    """Records every operation in the jaxpr of the traced function."""

    __slots__ = ()

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Append an equation, unless the primitive has a trace rule."""
        rule = prim.rules.get(rule_kinds.trace_rule)
        if rule is not None:
            return rule(self, args, **params)
        return self.emit(prim, args, params)

    def call(self, jaxpr: Jaxpr, args: Sequence[Any], name: str | None = None) -> list[Any]:
        """Inline a jaxpr: rename its variables, copy its equations."""
        env: dict[Any, Any] = {}
        for var, const in zip(jaxpr.constvars, jaxpr.consts):
            env[var] = self.atom(const)
        for var, arg in zip(jaxpr.invars, args):
            env[var] = arg._var if type(arg) is JitTracer and arg._trace is self else self.atom(arg)
        append, scope = self.eqns.append, state.name_stack[self.depth :]
        here = source.capture()
        located = jaxpr.debug_info.filename is not None  # a user's jaxpr has source locations
        for eqn in jaxpr.eqns:
            invars = [v if type(v) is Literal else env[v] for v in eqn.invars]
            outvars = []
            for v in eqn.outvars:
                env[v] = w = Var(v.aval)
                outvars.append(w)
            ctx = scope + eqn.ctx if eqn.ctx else scope
            place = eqn.source or here if located else here
            append(Eqn(eqn.primitive, invars, outvars, eqn.params, eqn.effects, place, ctx))
        out = []
        for v in jaxpr.outvars:
            atom = v if type(v) is Literal else env[v]
            out.append(JitTracer(self, v.aval, atom))
        return out


_no_params: tuple = ()

# A primitive with a rule of these kinds accepts references.
_TAKE_REFS = frozenset(
    (rule_kinds.discharge, rule_kinds.effects, rule_kinds.expand, rule_kinds.transpose_direct)
)


def infer(
    prim: Primitive, in_avals: Sequence[Any], params: dict[str, Any]
) -> tuple[list[Any], frozenset[Any], Casts | None]:
    """Types of the results, effects, and casts of the operands of an operation.

    Args:
      prim: the primitive.
      in_avals: types of the operands.
      params: the parameters.

    Returns:
      A list of types, a frozen set of effects, and the casts of placements (``None`` if there are
      none).

    Raises:
      MissingRule: if the primitive has no abstract rule.

    The result is cached by the signature, so the abstract rule runs once.

    >>> from primax_core import lax, typeof
    >>> from primax_core.extend.traces import infer
    >>> infer(lax.sin_p, [typeof(1.0)], {"accuracy": None})[0]
    [ShapedArray(float32[], weak_type=True)]
    """
    if prim.cache_on is None:
        cache = prim.types
    else:
        cache = prim.cache_on(params)
    key = ("type", prim, state.trace_key, tuple(params.items()), *in_avals)
    try:
        cached = cache.get(key)
    except TypeError as e:
        raise TypeError(
            f"parameters of primitive {prim.name} must be hashable, got {params}"
        ) from e
    if cached:
        return cached
    in_scope = cached is False
    if in_scope:  # the types depend on the named axes in scope
        key = (*key, axis_env.key)
        cached = cache.get(key)
        if cached is not None:
            return cached
    prim.stored_elsewhere |= prim.cache_on is not None
    for i, a in enumerate(in_avals):
        if type(a) in tracer_classes and not _TAKE_REFS.intersection(prim.rules):
            raise TypeError(
                f"{prim.name} got a Ref of type {a} at position {i}, but a Ref can't be passed "
                "where an array is expected. Did you forget to read its value with `ref[...]`?"
            )
    rule = prim.require(rule_kinds.abstract, "tracing")
    casts = None
    if rule_kinds.place in prim.rules or any(map(is_placed, in_avals)):
        from .._ir.placed_types import placed_results

        avals, casts = placed_results(prim, rule, in_avals, params)
        if not in_scope and rule_kinds.place in prim.rules and named_axes_of(prim, params):
            cache[key] = False
            key = (*key, axis_env.key)
    else:
        avals = result_avals(prim, rule_kinds.abstract, rule, rule(*in_avals, **params))
    rule = prim.find(rule_kinds.effects)
    effects = no_effects
    if rule is not None:
        effects = check_effects(prim, rule_kinds.effects, rule, rule(*in_avals, **params))
    cache[key] = result = (avals, effects, casts)
    return result


def stage(
    fun: Callable[..., Sequence],
    in_avals: Sequence[ShapedArray],
    debug_info: DebugInfo = no_debug_info,
    parent: Trace | None = None,
) -> Jaxpr:
    """The jaxpr of a function from tracers to a flat list of values.

    Constants of the result may be tracers of ``parent`` or of traces outside it.
    """
    return stage_with_aux(lambda *args: (fun(*args), None), in_avals, debug_info, parent)[0]


def stage_with_aux(
    fun: Callable[..., tuple[Sequence, A]],
    in_avals: Sequence[ShapedArray],
    debug_info: DebugInfo = no_debug_info,
    parent: Trace | None = None,
) -> tuple[Jaxpr, A]:
    """The jaxpr of a function, and its auxiliary result.

    Args:
      fun: from tracers to a flat list of values and an auxiliary result, which is not a value of
      the jaxpr: a tree structure, mapped axes, a mask of zero results.
    """
    trace = StagingTrace(parent, debug_info)
    tracers = [trace.new_input(a) for a in in_avals]
    try:
        with set_trace(trace):
            outs, aux = fun(*tracers)
            jaxpr = trace.finish(outs)
    except RecursionError as e:
        raise errors.TracingRecursionError(
            f"the recursion limit was reached while tracing {debug_info.func_src_info} for "
            f"{debug_info.traced_for}: the function calls itself without a condition that is "
            "known at tracing time. Use a loop such as lax.while_loop, or make the condition "
            "depend on static values."
        ) from e
    finally:
        trace.live = False
    if state.check_tracer_leaks:
        del tracers, outs
        check_leaks(trace, debug_info.func_src_info)
    return jaxpr, aux
