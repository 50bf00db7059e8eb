"""Traces: interpreters that run while Python runs, and the jaxprs that they derive and reuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._api.arguments import check_callable as check_callable, debug_info, name_of as name_of
from .._base import pytree
from .._base.composite_types import register_composite_type as register_composite_type
from .._engine.call import call_jaxpr as call_jaxpr
from .._engine.custom_jvp import (
    CustomJVP as CustomJVP,
    SymbolicZero as SymbolicZero,
    derivative_jaxpr as derivative_jaxpr,
    rule_applies as rule_applies,
)
from .._engine.custom_vjp import CustomVJP as CustomVJP, PerturbedValue as PerturbedValue
from .._engine.jit_cache import trace_function as _trace_function
from .._trace.axes import (
    axes_in_scope as axes_in_scope,
    named_axes as named_axes,
    owner_of as owner_of,
)
from .._trace.axis_owners import AxisOwner as AxisOwner
from .._trace.core import (
    Trace as Trace,
    Tracer as Tracer,
    bind_on as bind_on,
    call_on as call_on,
    check_leaks as check_leaks,
    current_trace as current_trace,
    is_valid_type as is_valid_type,
    made_by as made_by,
    register_value_type as register_value_type,
    set_trace as set_trace,
    typeof,
)
from .._trace.staging import (
    JitTracer as JitTracer,
    StagingTrace as StagingTrace,
    infer as infer,
)
from .._transform.batching import (
    BatchTrace as BatchTrace,
    batch_of as batch_of,
    batch_primitive as batch_primitive,
)
from .._transform.derived import derive as derive, derive_from_jaxpr as derive_from_jaxpr
from .._transform.direct import bind_directly as bind_directly
from .._transform.dual import DualTrace as DualTrace, DualTracer as DualTracer
from .._transform.jvp import (
    JVPTrace as JVPTrace,
    JVPTracer as JVPTracer,
    jvp_of as jvp_of,
    jvp_primitive as jvp_primitive,
)
from .._transform.linearize import (
    Linearized as Linearized,
    linearize_primitive as linearize_primitive,
)
from .._transform.transpose import backward_pass as backward_pass
from .transforms import TracedFunction as TracedFunction


def trace_function(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    traced_for: str = "an interpreter",
) -> TracedFunction:
    """The jaxpr of a function of pytrees, with the user's names for messages.

    Args:
      fun: a function of pytrees of arrays.
      args, kwargs: example arguments, of which only the types count.
      traced_for: name of the transformation in messages.

    Returns:
      A ``TracedFunction``, whose attributes include ``jaxpr`` and ``out_tree``.

    Raises:
      TypeError: a result is not an array.

    >>> from primax_core import lax
    >>> traced = trace_function(lambda p: {"y": lax.sin(p["x"])}, ({"x": 1.0},))
    >>> [e.primitive.name for e in traced.jaxpr.eqns], traced.out_tree.num_leaves
    (['sin'], 1)
    """
    named = dict(kwargs or {})
    leaves, in_tree = pytree.tree_flatten((tuple(args), named))
    info = debug_info(fun, traced_for, tuple(args), named)
    traced = _trace_function(fun, in_tree, [typeof(x) for x in leaves], info)
    return TracedFunction(traced.jaxpr, traced.consts, traced.out_tree)
