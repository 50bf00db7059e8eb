"""Jaxprs, traces, types and evaluation."""

from typing import Any as _Any

from primax._adapters.jaxprs import Token as Token, abstract_token as _abstract_token
from primax._adapters.running import (
    EvalTrace as EvalTrace,
    eval_trace as eval_trace,
    public_trace as _public_trace,
    trace_state_clean as trace_state_clean,
)
from primax._adapters.sequences import safe_map as safe_map, safe_zip as safe_zip, unzip2 as unzip2
from primax._adapters.values import aval_mappings as _aval_mappings
from primax.core import *
from primax.core import AbstractValue as AbstractValue, Trace as Trace
from primax.extend.core import *
from primax.extend.core import primitives as _primitives
from primax_core import typeof
from primax_core.extend import AbstractRef as AbstractRef
from primax_core.extend.traces import current_trace as _current_trace

get_aval = typeof
pytype_aval_mappings = _aval_mappings


class _TraceContext:
    """The state of tracing in the current thread."""

    @property
    def trace(self) -> _Any:
        """The current trace; ``eval_trace`` outside of transformations."""
        return _public_trace(_current_trace())


trace_ctx = _TraceContext()


def full_lower(x: _Any) -> _Any:
    """Return the value: tracers of known values do not exist here."""
    return x


def physical_aval(aval: _Any) -> _Any:
    """Return the type of the underlying array of numbers; random keys are stored as words."""
    physical = getattr(aval.dtype, "physical_aval", None)
    return aval if physical is None else physical(aval)


def __getattr__(name: str) -> _Any:
    if name in ("call_p", "closed_call_p"):
        return getattr(_primitives, name)
    if name == "abstract_token":
        return _abstract_token()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
