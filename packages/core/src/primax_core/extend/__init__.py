"""The door: what other wheels and third parties build on.

Everything here is public, documented in ``docs/extending``, and versioned by :data:`API_VERSION`.
What it does not offer, the core does not offer.
"""

import warnings
from typing import Any, Final

# Types, programs
from .._ir import dtypes as dtypes
from .._ir.avals import ShapedArray as ShapedArray
from .._ir.check import JaxprCheckError as JaxprCheckError
from .._ir.check import check_jaxpr as check_jaxpr
from .._ir.effects import Effect as Effect
from .._ir.jaxpr import DebugInfo as DebugInfo
from .._ir.jaxpr import DropVar as DropVar
from .._ir.jaxpr import Eqn as Eqn
from .._ir.jaxpr import Jaxpr as Jaxpr
from .._ir.jaxpr import Literal as Literal
from .._ir.jaxpr import Var as Var
from .._ir.jaxpr import jaxprs_in as jaxprs_in
from .._ir.printer import hide_defaults as hide_defaults
from .._trace.core import typeof as typeof
from .._trace.staging import eval_jaxpr as eval_jaxpr
from .._api.references import run_state as run_state
from .._ir.ref_types import AbstractRef as AbstractRef
from .._ir.ref_types import AccumEffect as AccumEffect
from .._ir.ref_types import ReadEffect as ReadEffect
from .._ir.ref_types import RefEffect as RefEffect
from .._ir.ref_types import WriteEffect as WriteEffect
from .._transform.dce import dce_jaxpr as dce_jaxpr
from .._engine.discharge import discharge_jaxpr as discharge_jaxpr
from .._transform.expansion import expanded as expanded
from .jaxprs import interpret as interpret
from .jaxprs import map_jaxprs as map_jaxprs
from .jaxprs import stage as stage
from .jaxprs import walk as walk

# Primitives and kinds of rules
from .._ir.primitive import Primitive as Primitive
from .._ir.primitive import known_primitives as known_primitives
from .._ir.rules import MissingRule as MissingRule
from .._ir.rules import RuleKind as RuleKind
from .._ir.rules import RuleState as RuleState
from .._ir.rules import UnsupportedRule as UnsupportedRule
from .._ir.rules import abstract as abstract
from .._ir.rules import batch as batch
from .._ir.rules import check as check
from .._ir.rules import dce as dce
from .._ir.rules import discharge as discharge
from .._ir.rules import effects as effects
from .._ir.rules import expand as expand
from .._ir.rules import jvp as jvp
from .._ir.rules import linearize as linearize
from .._ir.rules import lower as lower
from .._ir.rules import memory_kinds as memory_kinds
from .._ir.rules import trace_rule as trace_rule
from .._ir.rules import partial_eval as partial_eval
from .._ir.rules import taylor as taylor
from .._ir.rules import transpose as transpose
from .._ir.rules import transpose_direct as transpose_direct
from .._runtime.dispatch import impl as impl

# What operations cost, for ``explain``
from .._ir.costs import Cost as Cost
from .._ir.costs import Run as Run
from .._ir.costs import cost as cost

# What can go wrong in operations, for ``checkify`` and ``debug_nans``
from .._engine.faults import Check as Check
from .._engine.faults import error_checks as error_checks
from .._engine.faults import faults as faults

# Samples for the conformance kit
from .._ir.samples import Operand as Operand
from .._ir.samples import Sample as Sample
from .._ir.samples import b1 as b1
from .._ir.samples import bf16 as bf16
from .._ir.samples import c64 as c64
from .._ir.samples import f16 as f16
from .._ir.samples import f32 as f32
from .._ir.samples import i8 as i8
from .._ir.samples import i32 as i32
from .._ir.samples import samples as samples
from .._ir.samples import u8 as u8
from .._ir.samples import u32 as u32

# What rules work with
from .._lower.lazy import chlo as chlo
from .._lower.lazy import hlo as hlo
from .._lower.lazy import ir as ir
from .._lower.lazy import compiling as compiling
from .._lower.lazy import lowering as lowering
from .._lower.lazy import mlir as mlir
from .._lower.lazy import portable as portable
from .._lower.lazy import shaped as shaped
from .._runtime.custom_calls import provides_custom_calls as provides_custom_calls
from .._transform.batching import Axis as Axis
from .._transform.batching import batch_jaxpr as batch_jaxpr
from .._transform.batching import batch_of as batch_of
from .._transform.batching import move_axis as move_axis
from .._transform.direct import bind_directly as bind_directly
from .._transform.jvp import JVPTrace as JVPTrace
from .._transform.jvp import JVPTracer as JVPTracer
from .._transform.jvp import jvp_jaxpr as jvp_jaxpr
from .._transform.jvp import jvp_of as jvp_of
from .._transform.linearize import linearize_jaxpr as linearize_jaxpr
from .._transform.zeros import Linear as Linear
from .._transform.zeros import Zero as Zero
from .._transform.zeros import add_any_p as add_any_p
from .._transform.zeros import add_tangents as add_tangents
from .._transform.zeros import instantiate as instantiate
from .._transform.zeros import is_linear as is_linear
from .._transform.zeros import is_zero as is_zero
from .._transform.transpose import backward_pass as backward_pass

# Traces: interpreters that run while Python runs
from .._trace.core import Trace as Trace
from .._trace.core import Tracer as Tracer
from .._trace.core import current_trace as current_trace
from .._trace.core import register_value_type as register_value_type
from .._trace.core import set_trace as set_trace
from .._trace.axes import axes_in_scope as axes_in_scope
from .._trace.staging import JitTracer as JitTracer
from .._trace.staging import StagingTrace as StagingTrace
from .._transform.batching import BatchTrace as BatchTrace

# Arrays, library functions, places
from .._base.caches import bounded_cache as bounded_cache
from .._base.caches import register_cache as register_cache
from .._base.config import state as state
from .._base.source import fold_traceback as fold_traceback
from .._base.source import is_internal_code as is_internal_code
from .._base.source import register_internal_path as register_internal_path
from .._base.source import unregister_internal_path as unregister_internal_path
from .._base.source import capture as capture
from .._base.source import summarize as summarize
from .._runtime.dispatch import as_operand as as_operand
from .._lower.compile import guarded_compilation as guarded_compilation
from .._runtime.devices import clients as clients
from .._runtime.devices import started_clients as started_clients
from .._runtime.dispatch import watch_programs as watch_programs
from .._runtime.sharding import Sharding as Sharding
from .._runtime.sharding import SingleDeviceSharding as SingleDeviceSharding
from .._trace.array import Array as Array
from .._trace.array import register_method as register_method
from .._engine.results import as_result as as_result
from .._engine.jit_cache import library_function as library_function
from ..lax.promotion import any_number as any_number
from ..lax.promotion import cast as cast
from ..lax.promotion import inexact as inexact
from ..lax.promotion import is_operand as is_operand
from ..lax.promotion import promoted as promoted
from ..lax.promotion import same_rank as same_rank
from ..lax.random_bits import random_clone_p as random_clone_p
from ..lax.random_bits import random_unwrap_p as random_unwrap_p
from ..lax.random_bits import random_wrap_p as random_wrap_p
from .fast_path import FastPath as FastPath

# The version of this API
from .versions import API_VERSION as API_VERSION
from .versions import requires as requires

_RENAMED: Final = {
    "ShortRoads": "FastPath",
    "backward": "transpose_direct",
    "finished": "as_result",
    "map_programs": "map_jaxprs",
    "process": "trace_rule",
    "run": "impl",
    "save": "partial_eval",
}
"""Names of versions 1.0 to 1.3 that have another name now."""


def __getattr__(name: str) -> Any:
    """Resolve a former name, with a warning; these names are removed in version 2.0."""
    current = _RENAMED.get(name)
    if current is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        f"{__name__}.{name} is called {current} since version 1.4 of the extension API; the old "
        "name is removed in version 2.0",
        DeprecationWarning,
        stacklevel=2,
    )
    return globals()[current]
