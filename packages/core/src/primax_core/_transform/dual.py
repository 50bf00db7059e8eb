"""Base of dual traces, whose tracers pair a primal with an additional value, as a tangent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._trace.core import Trace, Tracer, check_live


class DualTracer(Tracer):
    """A primal of the parent trace, and an additional value."""

    __slots__ = ("primal", "extra")

    primal: Any
    extra: Any

    def _concrete(self) -> Any | None:
        value = self.primal
        return value._concrete() if isinstance(value, Tracer) else value


class DualTrace(Trace):
    """Computes primals under its parent, and an additional value for some of them."""

    __slots__ = ("of",)

    tracer: type[DualTracer]

    def __init__(self, parent: Trace | None, of: Callable[..., Any] | None = None):
        super().__init__(parent)
        self.of: Callable[..., Any] | None = of

    def split(self, x: Any) -> tuple[Any, Any]:
        """The primal of an operand, and its additional value or ``None``."""
        if type(x) is self.tracer and x._trace is self:
            return x.primal, x.extra
        if isinstance(x, Tracer):
            check_live(x)
            if x._trace is self:
                return x._split()
        return x, None

    def split_args(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], tuple[bool, ...]]:
        """The primals of operands, the additional values that exist, and their mask."""
        primals, extra, mask = [], [], []
        for a in args:
            p, t = self.split(a)
            primals.append(p)
            mask.append(t is not None)
            if t is not None:
                extra.append(t)
        return primals, extra, tuple(mask)
