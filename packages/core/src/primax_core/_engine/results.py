"""Values as users' code may see them."""

from __future__ import annotations

from typing import Any

from .._ir.jaxpr import Literal
from .._runtime.dispatch import as_operand
from .._trace.core import current_trace
from .._trace.staging import StagingTrace
from .._transform.linearize import TangentTrace


def as_result(x: Any) -> Any:
    """A value that may leave the library: literals and Python numbers become arrays or tracers,
    which can be asked for their shape."""
    if type(x) is Literal or type(x) is float or type(x) is complex:
        trace = current_trace()
        while isinstance(trace, TangentTrace):  # it writes down tangents; values live outside
            trace = trace.parent
        return trace.lift(x) if isinstance(trace, StagingTrace) else as_operand(x)
    return x
