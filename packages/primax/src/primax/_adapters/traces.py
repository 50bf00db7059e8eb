"""The base class ``Trace`` of interpreters written for JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from primax_core import extend
from primax_core.extend import Jaxpr, Literal, Primitive, as_operand, set_trace, trace_rule

from .running import core_trace, eval_trace
from .wrapped import WrappedFun


class _AnyTrace(type):
    """Metaclass for which the library's traces and eager evaluation are instances of ``Trace``."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Trace and (isinstance(instance, extend.Trace) or instance is eval_trace):
            return True
        return type.__instancecheck__(cls, instance)


presented: Final[dict[Primitive, Callable[[dict[str, Any]], dict[str, Any]]]] = {}
"""Functions that convert a primitive's parameters for interpreters."""


class Trace(extend.Trace, metaclass=_AnyTrace):
    """Base class of interpreters that run while Python runs, in the reference's convention.

    A subclass defines :meth:`process_primitive`, and to preserve custom derivatives
    :meth:`process_custom_jvp_call` and :meth:`process_custom_vjp_call`. The context manager
    ``core.set_current_trace(trace)`` makes it current. While one of its methods runs, evaluation is
    eager, and tracers of outer traces are passed to those traces.

    If a subclass stores the outer trace as ``parent_trace``, that trace is used. Otherwise the
    outer trace is the one that was current when this trace was created.
    """

    main: Any = None
    requires_low: bool = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(extend.current_trace())

    def entered(self, outside: extend.Trace | None) -> None:
        """Hook: called when the trace becomes current."""
        self.parent: extend.Trace | None = (
            core_trace(getattr(self, "parent_trace", None)) or outside
        )
        self.live: bool = True

    # Methods that subclasses define

    def process_primitive(
        self, primitive: Primitive, tracers: Sequence[Any], params: dict[str, Any], /
    ) -> Any:
        """Interpret one application of a primitive.

        Args:
          tracers: the operands: tracers of this trace, or other values.

        Returns:
          A tracer, or a list of tracers for a primitive with multiple results.
        """
        raise NotImplementedError(f"{type(self).__name__} must define process_primitive")

    def process_custom_jvp_call(
        self,
        primitive: Primitive,
        fun: WrappedFun,
        jvp: WrappedFun,
        tracers: Sequence[Any],
        /,
        *,
        symbolic_zeros: bool,
    ) -> list[Any]:
        """Interpret a call of a function with a custom forward derivative.

        Args:
          fun: ``fun.call_wrapped(*args)`` returns a list of results.
          jvp: ``jvp.call_wrapped(*args, *tangents)`` returns results, then their tangents.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define process_custom_jvp_call to interpret functions "
            "with custom derivatives; to ignore the derivatives, return fun.call_wrapped(*tracers) "
            "from it, with the trace set as the current one"
        )

    def process_custom_vjp_call(
        self,
        primitive: Primitive,
        fun: WrappedFun,
        fwd: WrappedFun,
        bwd: WrappedFun,
        tracers: Sequence[Any],
        /,
        *,
        out_trees: Callable[[], Any],
        symbolic_zeros: bool,
    ) -> list[Any]:
        """Interpret a call of a function with a custom reverse derivative.

        Args:
          fun: ``fun.call_wrapped(*args)`` returns a list of results.
          fwd: ``fwd.call_wrapped(*pairs)`` returns residuals, then results; the pairs are each
            argument followed by whether it is differentiated.
          bwd: ``bwd.call_wrapped(*residuals, *cotangents)`` returns a list with a cotangent, or
            ``None``, for each argument.
          out_trees: structures of results and residuals, and ``None`` for each residual, available
            once ``fwd`` has run.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define process_custom_vjp_call to interpret functions "
            "with custom derivatives; to ignore the derivatives, return fun.call_wrapped(*tracers) "
            "from it, with the trace set as the current one"
        )

    def stage_value(self, val: Any) -> Any:
        """Convert a value to a tracer of this trace; the default returns it unchanged."""
        return val

    full_raise = stage_value

    def invalidate(self) -> None:
        """End the trace; its tracers must not be used afterwards."""
        self.live = False

    def is_valid(self) -> bool:
        """Return True if the trace has not ended."""
        return self.live

    def __repr__(self) -> str:
        return type(self).__name__

    # Methods that the core calls

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Pass an application of a primitive to :meth:`process_primitive`."""
        rule = prim.rules.get(trace_rule)
        if rule is not None:
            return rule(self, args, **params)
        if prim in presented:
            params = presented[prim](params)
        with set_trace(None):
            out = self.process_primitive(prim, [literal_value(a) for a in args], params)
        return list(out) if prim.multiple_results else out

    def call(self, jaxpr: Jaxpr, args: list[Any], name: str | None = None) -> list[Any]:
        """Interpret the equations of a jaxpr one by one."""
        with set_trace(self):
            return extend.eval_jaxpr(jaxpr, args)

    def call_custom(self, custom: Any, args: Sequence[Any]) -> list[Any]:
        """Pass a call of a function with custom derivatives to its method."""
        from . import custom_calls

        tracers = [literal_value(a) for a in args]
        with set_trace(None):
            return list(custom_calls.process_custom_call(self, custom, tracers))


def literal_value(x: Any) -> Any:
    """Convert an operand for a trace: jaxpr literals become numbers or arrays."""
    if type(x) is not Literal:
        return x
    aval = x.aval
    if aval.weak_type:
        plain = x.val
        if extend.typeof(plain) == aval:
            return plain
    return as_operand(x)
