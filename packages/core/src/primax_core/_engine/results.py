"""Conversion of results to values that user code can use."""

from __future__ import annotations

from typing import Any

from .._ir.jaxpr import Literal
from .._runtime.dispatch import as_operand
from .._trace.core import current_trace
from .._trace.staging import StagingTrace
from .._transform.linearize import TangentTrace


def as_result(x: Any) -> Any:
    """A result as user code sees it.

    Rules of primitives may return literals and Python numbers; functions must not.

    Args:
      x: an array, a tracer, a literal, a number or a NumPy array.

    Returns:
      An array or a tracer. Other values are returned unchanged.

    The value and the weak type do not change. Functions that return results of rules or of
    interpreted jaxprs call it for each.

    >>> from primax_core.extend.runtime import as_result
    >>> as_result(1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if type(x) is Literal or type(x) is float or type(x) is complex:
        trace = current_trace()
        while isinstance(trace, TangentTrace):  # primals belong to its parent
            trace = trace.parent
        return trace.lift(x) if isinstance(trace, StagingTrace) else as_operand(x)
    return x


def as_python(x: Any) -> Any:
    """A value as a user's rule sees it: a literal as a number."""
    return x.val if type(x) is Literal else x
