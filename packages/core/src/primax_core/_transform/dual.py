"""What traces have in common that carry something along with each value: tangents, derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._trace.core import Trace, Tracer, check_live


class DualTracer(Tracer):
    """A value of the trace outside, and what is carried along with it."""

    __slots__ = ("primal", "extra")

    primal: Any
    extra: Any

    def _concrete(self) -> Any | None:
        value = self.primal
        return value._concrete() if isinstance(value, Tracer) else value


class DualTrace(Trace):
    """Computes values under its parent and carries something along."""

    __slots__ = ("of",)

    tracer: type[DualTracer]

    def __init__(self, parent: Trace | None, of: Callable[..., Any] | None = None):
        super().__init__(parent)
        self.of: Callable[..., Any] | None = of

    def split(self, x: Any) -> tuple[Any, Any]:
        """The value of an operand, and what is carried along; ``None`` if nothing is."""
        if type(x) is self.tracer and x._trace is self:
            return x.primal, x.extra
        if isinstance(x, Tracer):
            check_live(x)
            if x._trace is self:
                return x._split()
        return x, None

    def split_args(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], tuple[bool, ...]]:
        """Values of operands, what some of them carry, and which do."""
        primals, extra, mask = [], [], []
        for a in args:
            p, t = self.split(a)
            primals.append(p)
            mask.append(t is not None)
            if t is not None:
                extra.append(t)
        return primals, extra, tuple(mask)
