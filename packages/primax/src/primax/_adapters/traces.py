"""``Trace`` as interpreters written for JAX derive from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primax_core import extend
from primax_core.extend import Jaxpr, Literal, Primitive, as_operand, set_trace, trace_rule

from .running import core_trace, eval_trace
from .wrapped import WrappedFun


class _AnyTrace(type):
    """``isinstance(trace, Trace)`` holds for the library's own traces, and for eager evaluation."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Trace and (isinstance(instance, extend.Trace) or instance is eval_trace):
            return True
        return type.__instancecheck__(cls, instance)


class Trace(extend.Trace, metaclass=_AnyTrace):
    """Base of interpreters that run while Python runs, in the reference's convention.

    A subclass writes :meth:`process_primitive`, and where it wants to keep custom derivatives
    :meth:`process_custom_jvp_call` and :meth:`process_custom_vjp_call`; then
    ``with core.set_current_trace(trace)`` makes it current. While one of its methods runs,
    evaluation is eager, and tracers of the traces outside are taken to theirs.

    A subclass that keeps the trace outside as ``parent_trace`` is known by it; otherwise the trace
    outside is the one that was current when this one was made.
    """

    main: Any = None
    requires_low: bool = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(extend.current_trace())

    def entered(self, outside: extend.Trace | None) -> None:
        """Called when the trace is made current."""
        self.parent: extend.Trace | None = (
            core_trace(getattr(self, "parent_trace", None)) or outside
        )
        self.live: bool = True

    # What subclasses write

    def process_primitive(
        self, primitive: Primitive, tracers: Sequence[Any], params: dict[str, Any], /
    ) -> Any:
        """Interpret one application of a primitive.

        Args:
          tracers: the operands: tracers of this trace, or values that it has not seen yet.

        Returns:
          A tracer, or a list of them for a primitive with multiple results.
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
          fun: ``fun.call_wrapped(*args)`` gives a list of results.
          jvp: ``jvp.call_wrapped(*args, *tangents)`` gives results, then their tangents.
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
          fun: ``fun.call_wrapped(*args)`` gives a list of results.
          fwd: ``fwd.call_wrapped(*pairs)``, where pairs are the arguments with whether each is
            differentiated after it, gives residuals, then results.
          bwd: ``bwd.call_wrapped(*residuals, *cotangents)`` gives a list with a cotangent for each
            argument, and ``None``.
          out_trees: structures of results and residuals, and for each residual ``None``, once
            ``fwd`` has run.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define process_custom_vjp_call to interpret functions "
            "with custom derivatives; to ignore the derivatives, return fun.call_wrapped(*tracers) "
            "from it, with the trace set as the current one"
        )

    def stage_value(self, val: Any) -> Any:
        """The value as one of this trace; values are taken as they are here."""
        return val

    full_raise = stage_value

    def invalidate(self) -> None:
        """End the trace: its tracers must not be used from now on."""
        self.live = False

    def is_valid(self) -> bool:
        """Whether the trace has not ended."""
        return self.live

    def __repr__(self) -> str:
        return type(self).__name__

    # What the core asks

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Hand an application of a primitive to :meth:`process_primitive`."""
        rule = prim.rules.get(trace_rule)
        if rule is not None:
            return rule(self, args, **params)
        with set_trace(None):
            found = self.process_primitive(prim, [given_value(a) for a in args], params)
        return list(found) if prim.multiple_results else found

    def call(self, jaxpr: Jaxpr, args: list[Any], name: str | None = None) -> list[Any]:
        """Interpret the operations of a program one by one."""
        with set_trace(self):
            return extend.eval_jaxpr(jaxpr, args)

    def call_custom(self, custom: Any, args: Sequence[Any]) -> list[Any]:
        """Hand a call of a function with custom derivatives to the method for it."""
        from . import custom_calls

        tracers = [given_value(a) for a in args]
        with set_trace(None):
            return list(custom_calls.processed(self, custom, tracers))


def given_value(x: Any) -> Any:
    """An operand as a trace may see it: literals of programs become numbers or arrays."""
    if type(x) is not Literal:
        return x
    aval = x.aval
    if aval.weak_type:
        plain = x.val.item() if hasattr(x.val, "item") else x.val
        if extend.typeof(plain) == aval:
            return plain
    return as_operand(x)
