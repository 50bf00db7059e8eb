"""Functions with custom rules: the common base, and the rules of their call primitives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ClassVar

from .._base.config import state
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive, trace_rule
from .._ir.printer import hide_defaults
from .._ir.rules import memory_kinds
from .._lower.formats import result_kinds
from .._trace.core import Trace, Tracer, check_live, placed_like, run_eagerly, set_trace, typeof
from .._trace.reference_ops import references
from .._trace.staging import JaxprWriter, close_over, eval_jaxpr, stage
from .._transform.call_rules import add_custom_call_rules
from .._transform.linearize import TangentTrace


class CustomFunction:
    """A flat function with custom rules; :func:`configure` configures a subclass.

    Attributes:
      fun: ``(*args) -> list of results``.
      name: the name of the function in messages.
      jaxpr: the jaxpr of ``fun`` if it is already traced; its first arguments are ``num_consts``
        constants.
      primitive: the primitive of a traced call.
      params: the attribute that is the value of each parameter of ``primitive``.
      handlers: the function ``(trace, args, custom)`` that interprets a call, by class of traces.
    """

    __slots__ = ("fun", "name", "jaxpr", "num_consts")

    primitive: ClassVar[Primitive]
    params: ClassVar[Mapping[str, str]]
    handlers: ClassVar[Mapping[type[Trace], Callable[..., list[Any]]]]

    def __init__(
        self, fun: Callable[..., Any], name: str, jaxpr: Jaxpr | None = None, num_consts: int = 0
    ):
        self.fun: Callable[..., Any] = fun
        self.name: str = name
        self.jaxpr: Jaxpr | None = jaxpr
        self.num_consts: int = num_consts

    def call(self, args: Sequence[Any]) -> list[Any]:
        """Call under the current trace."""
        trace = state.trace
        if trace is None:
            for a in args:
                if isinstance(a, Tracer):
                    check_live(a)
                    return self.under(a._trace, args)
            return self.fun(*args)
        return self.under(trace, args)

    def under(self, trace: Trace, args: Sequence[Any]) -> list[Any]:
        """Call under a trace."""
        if references.ops.loaded and references.ops.has_cells(trace, args):
            return references.ops.lend(trace, args, lambda lent: self.under(trace, lent))
        for cls, handler in self.handlers.items():
            if isinstance(trace, cls):
                return handler(trace, args, self)
        return trace.call_custom(self, args)


def configure(
    cls: type[CustomFunction],
    primitive: Primitive,
    params: Mapping[str, str],
    handlers: Mapping[type[Trace], Callable[..., list[Any]]],
    restricted: Callable[..., dict[str, Any]] | None = None,
) -> None:
    """Configure a class of functions with custom rules, and add rules of its primitive.

    Its lowering rule is not among them: the keys of the disk cache contain the parameters that a
    rule names.

    Args:
      params: the arguments of the constructor, except ``fun``, by parameter of the primitive.
      handlers: without the one of traces that write jaxprs.
      restricted: parameters for a part of the results, for dead-code elimination.
    """
    cls.primitive, cls.params = primitive, params
    cls.handlers = {JaxprWriter: _staged, **handlers}
    (sub_jaxpr,) = (p for p, attribute in params.items() if attribute == "jaxpr")
    hide_defaults(primitive.name, num_consts=0)
    add_custom_call_rules(primitive, sub_jaxpr, restricted)
    primitive.rule(memory_kinds)(lambda eqn: result_kinds(eqn.params[sub_jaxpr]))

    @primitive.rule(trace_rule)
    def _trace_rule(trace, args, **params):
        jaxpr = params[sub_jaxpr]
        if trace is None:
            return run_eagerly(jaxpr, list(args))
        attributes = {attribute: params[p] for p, attribute in cls.params.items()}
        return cls(lambda *a: eval_jaxpr(jaxpr, a), **attributes).under(trace, args)


def _staged(trace: JaxprWriter, args: Sequence, custom: CustomFunction) -> list:
    if isinstance(trace, TangentTrace) and not trace.owns_any(args):
        with set_trace(trace.parent):
            return custom.call(args)
    params = {p: getattr(custom, attribute) for p, attribute in custom.params.items()}
    consts: list[Any] = []
    if custom.jaxpr is None:
        jaxpr = stage(lambda *a: custom.fun(*a), [typeof(a) for a in args], parent=trace)
        jaxpr, consts = close_over(jaxpr)
        traced = {"jaxpr": jaxpr, "num_consts": custom.num_consts + len(consts)}
        params |= {p: traced[a] for p, a in custom.params.items() if a in traced}
    return trace.emit(custom.primitive, [*consts, *args], params)


def check_outputs(custom: CustomFunction, outs: Sequence[Any], rule: str) -> Sequence[Any]:
    """The results of a rule, with the types of those of the function, if it is already traced.

    Raises:
      TypeError: if their number, shapes or dtypes differ.
    """
    if custom.jaxpr is None:
        return outs
    expected = [(a.shape, a.dtype) for a in custom.jaxpr.out_avals]
    avals = [typeof(o) for o in outs]
    if [(a.shape, a.dtype) for a in avals] != expected:
        texts = [
            ", ".join(str(a.strip_weak_type()) for a in types)
            for types in (avals, custom.jaxpr.out_avals)
        ]
        raise TypeError(
            f"the {rule} of {custom.name} returned the primal results ({texts[0]}), but the "
            f"function itself returns ({texts[1]}): they must have equal shapes and dtypes"
        )
    return [placed_like(o, a) for o, a in zip(outs, custom.jaxpr.out_avals)]


def split_args(trace: Any, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The first and the second components of operands of a dual trace or a batch trace."""
    pairs = [trace.split(a) for a in args]
    return [value for value, _ in pairs], [extra for _, extra in pairs]


def differentiating(handler: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Handler of a differentiating trace; a call without tangents is passed to its parent.

    Args:
      handler: ``(trace, args, custom, primals, tangents)``.
    """

    @wraps(handler)
    def handle(trace, args, custom):
        primals, tangents = split_args(trace, args)
        if all(t is None for t in tangents):
            with set_trace(trace.parent):
                return custom.call(primals)
        return handler(trace, args, custom, primals, tangents)

    return handle


def selected(values: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    """The values that a mask marks."""
    return [v for v, m in zip(values, mask, strict=True) if m]
