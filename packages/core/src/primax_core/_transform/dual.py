"""Base of the traces whose tracers are pairs: a value and its tangent, its derivatives, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._ir import rules as rule_kinds
from .._ir.avals import ShapedArray
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive
from .._trace.core import (
    DischargeFirst,
    RefTypeError,
    Trace,
    Tracer,
    bind_on,
    call_on,
    check_live,
    typeof,
)
from .._trace.reference_ops import references

Values = list[Any]
Mask = tuple[bool, ...]


class DualTracer(Tracer):
    """The pair ``(primal, extra)``: a value of the parent trace and the second component."""

    __slots__ = ("primal", "extra")

    primal: Any
    extra: Any

    def __init__(self, trace: DualTrace, primal: Any, extra: Any):
        self._trace = trace
        self.aval: ShapedArray = typeof(primal)
        self.primal = primal
        self.extra = extra

    def _concrete(self) -> Any | None:
        value = self.primal
        return value._concrete() if isinstance(value, Tracer) else value


class DualTrace(Trace):
    """Computes primals under its parent trace, and something more for some of them.

    A subclass names its class of tracers, ``tracer``, and defines :meth:`apply` and
    :meth:`apply_jaxpr`. Operations of which no operand is a tracer of this trace are passed to
    the parent; trace rules and operations on references are handled here too.

    Attributes:
      of: the function that is transformed, for messages; may be ``None``.
    """

    __slots__ = ("of",)

    tracer: type[DualTracer]

    def __init__(self, parent: Trace | None, of: Callable[..., Any] | None = None):
        super().__init__(parent)
        self.of: Callable[..., Any] | None = of

    def apply(
        self, prim: Primitive, params: dict[str, Any], primals: Values, extra: Values, mask: Mask
    ) -> Values:
        """The results of a primitive, as values or tracers.

        Args:
          primals: values of the operands under the parent trace.
          extra: the second components, one for each ``True`` in ``mask``.
          mask: which operands have a second component; at least one does.
        """
        raise NotImplementedError

    def apply_jaxpr(
        self, jaxpr: Jaxpr, primals: Values, extra: Values, mask: Mask, name: str | None
    ) -> Values:
        """The results of a jaxpr; arguments as for :meth:`apply`."""
        raise NotImplementedError

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        rule = prim.rules.get(rule_kinds.trace_rule)
        if rule is not None:
            return rule(self, args, **params)
        try:
            primals, extra, mask = self.split_args(args)
        except RefTypeError:
            return references.ops.process(self, prim, args, params)
        if not extra:
            outs = bind_on(self.parent, prim, primals, params)
        else:
            try:
                outs = self.apply(prim, params, primals, extra, mask)
            except DischargeFirst:
                return references.ops.process(self, prim, args, params, True)
        return outs if prim.multiple_results else outs[0]

    def call(self, jaxpr: Jaxpr, args: Sequence[Any], name: str | None = None) -> list[Any]:
        try:
            primals, extra, mask = self.split_args(args)
        except RefTypeError:
            return references.ops.call(self, jaxpr, args, name)
        if not extra:
            return call_on(self.parent, jaxpr, primals, name)
        return self.apply_jaxpr(jaxpr, primals, extra, mask, name)

    def split(self, x: Any) -> tuple[Any, Any]:
        """The primal and the second component of an operand; ``None`` if it has none."""
        if type(x) is self.tracer and x._trace is self:
            return x.primal, x.extra
        if isinstance(x, Tracer):
            check_live(x)
            if x._trace is self:
                return x._split()
        return x, None

    def split_args(self, args: Sequence[Any]) -> tuple[Values, Values, Mask]:
        """Primals of the operands, the second components of some of them, and which have one."""
        primals, extra, mask = [], [], []
        tracer = self.tracer
        for a in args:
            if type(a) is tracer and a._trace is self:  # as in `split`, without its call
                p = a.primal
                t = a.extra
            else:
                p, t = self.split(a)
            primals.append(p)
            mask.append(t is not None)
            if t is not None:
                extra.append(t)
        return primals, extra, tuple(mask)
