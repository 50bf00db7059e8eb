"""The extension API: rules and types, for other wheels and for third parties.

Everything here and in the modules beside it is public, documented in ``docs/extending``, and
versioned by :data:`API_VERSION`:

- :mod:`~primax_core.extend.elementwise`: elementwise and linear primitives;
- :mod:`~primax_core.extend.traces`: interpreters that run while Python runs;
- :mod:`~primax_core.extend.lowering`: helpers for lowering rules;
- :mod:`~primax_core.extend.references`: primitives and indices of references, views;
- :mod:`~primax_core.extend.native`: native functions, callbacks, absent devices;
- :mod:`~primax_core.extend.placements`: types that say how values are divided over devices;
- :mod:`~primax_core.extend.runtime`: operands, compiled library functions, devices, caches;
- :mod:`~primax_core.extend.portable_modules`: functions as bytes;
- :mod:`~primax_core.extend.dimensions`: sizes that may be symbolic.

Names that version 1.3 had here are found here still, and imported on first use.
"""

import warnings as _warnings
from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any
from typing import Final as _Final

# Types and jaxprs
from .._base.node_serialization import NodeSerialization as NodeSerialization
from .._base.node_serialization import node_serialization as node_serialization
from .._base.node_serialization import register_node_serialization as register_node_serialization
from .._ir import dtypes as dtypes
from .._ir.avals import ShapedArray as ShapedArray
from .._ir.byte_sizes import nbytes as nbytes
from .._ir.byte_sizes import total_bytes as total_bytes
from .._ir.check import JaxprCheckError as JaxprCheckError
from .._ir.check import check_jaxpr as check_jaxpr
from .._ir.effects import Effect as Effect
from .._ir.effects import NamedEffect as NamedEffect
from .._ir.jaxpr import DebugInfo as DebugInfo
from .._ir.jaxpr import DropVar as DropVar
from .._ir.jaxpr import Eqn as Eqn
from .._ir.jaxpr import Jaxpr as Jaxpr
from .._ir.jaxpr import Literal as Literal
from .._ir.jaxpr import Var as Var
from .._ir.jaxpr import jaxprs_in as jaxprs_in
from .._ir.printer import hide_defaults as hide_defaults
from .._ir.ref_types import AbstractRef as AbstractRef
from .._ir.ref_types import AccumEffect as AccumEffect
from .._ir.ref_types import ReadEffect as ReadEffect
from .._ir.ref_types import RefEffect as RefEffect
from .._ir.ref_types import WriteEffect as WriteEffect
from .._lower.liveness import live_eqns as live_eqns
from .._trace.array import Array as Array
from .._trace.array import register_method as register_method
from .._trace.core import typeof as typeof
from .._transform.batching import Axis as Axis
from .._transform.batching import move_axis as move_axis
from .jaxprs import interpret as interpret
from .jaxprs import map_jaxprs as map_jaxprs
from .jaxprs import stage as stage
from .jaxprs import walk as walk
from .transforms import batch_jaxpr as batch_jaxpr
from .transforms import close_over as close_over
from .transforms import dce_jaxpr as dce_jaxpr
from .transforms import eval_jaxpr as eval_jaxpr
from .transforms import expanded as expanded
from .transforms import jvp_jaxpr as jvp_jaxpr
from .transforms import linearize_jaxpr as linearize_jaxpr
from .transforms import staged as staged
from .transforms import transpose_jaxpr as transpose_jaxpr

# Primitives and kinds of rules
from .._ir.primitive import Primitive as Primitive
from .._ir.primitive import known_primitives as known_primitives
from .._ir.rule_results import RuleResultError as RuleResultError
from .._ir.rule_results import invalid_result as invalid_result
from .._ir.rules import MissingRule as MissingRule
from .._ir.rules import RuleKind as RuleKind
from .._ir.rules import RuleState as RuleState
from .._ir.rules import UnsupportedRule as UnsupportedRule
from .._ir.rules import abstract as abstract
from .._ir.rules import batch as batch
from .._ir.rules import check as check
from .._ir.rules import dce as dce
from .._ir.rules import devices as devices
from .._ir.rules import discharge as discharge
from .._ir.rules import effects as effects
from .._ir.rules import expand as expand
from .._ir.rules import extended_body as extended_body
from .._ir.rules import jvp as jvp
from .._ir.rules import linearize as linearize
from .._ir.rules import lower as lower
from .._ir.rules import memory_kinds as memory_kinds
from .._ir.rules import place as place
from .._ir.rules import partial_eval as partial_eval
from .._ir.rules import partition as partition
from .._ir.rules import run_jaxprs as run_jaxprs
from .._ir.rules import trace_rule as trace_rule
from .._ir.rules import transpose as transpose
from .._ir.rules import transpose_direct as transpose_direct
from .._runtime.dispatch import impl as impl

# Primitives that call jaxprs; those of control flow are in ``lax``
from .._engine.call import jit_p as jit_p
from .._engine.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
from .._engine.custom_vjp import custom_vjp_call_p as custom_vjp_call_p
from .._engine.custom_vmap import custom_vmap_call_p as custom_vmap_call_p
from .._engine.remat import remat_p as remat_p

# Symbolic tangents
from .._transform.zeros import Linear as Linear
from .._transform.zeros import Zero as Zero
from .._transform.zeros import add_any_p as add_any_p
from .._transform.zeros import add_tangents as add_tangents
from .._transform.zeros import instantiate as instantiate
from .._transform.zeros import is_linear as is_linear
from .._transform.zeros import is_zero as is_zero

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

# Source locations
from .._base.source import capture as capture
from .._base.source import is_internal_code as is_internal_code
from .._base.source import locate as locate
from .._base.identity import how_to_get as _how_to_get, layer as _layer
from .._base.source import register_internal_path as register_internal_path
from .._base.source import summarize as summarize
from .._base.source import summarize_function as summarize_function
from .._base.source import unregister_internal_path as unregister_internal_path

# The version of this API
from .versions import API_VERSION as API_VERSION
from .versions import requires as requires

if TYPE_CHECKING:
    from .._api.references import run_state as run_state
    from .._engine.discharge import discharge_jaxpr as discharge_jaxpr
    from ..lax.collective_gathers import reduce_scatter_p as reduce_scatter_p
    from ..lax.random_bits import random_clone_p as random_clone_p
    from ..lax.random_bits import random_unwrap_p as random_unwrap_p
    from ..lax.random_bits import random_wrap_p as random_wrap_p
    from .elementwise import any_number as any_number
    from .elementwise import cast as cast
    from .elementwise import inexact as inexact
    from .elementwise import is_operand as is_operand
    from .elementwise import promoted as promoted
    from .elementwise import same_rank as same_rank
    from .scalar_evaluation import evaluate_scalars as evaluate_scalars
    from .lowering import chlo as chlo
    from .lowering import hlo as hlo
    from .lowering import ir as ir
    from .lowering import provides_custom_calls as provides_custom_calls
    from .runtime import Sharding as Sharding
    from .runtime import FastPath as FastPath
    from .runtime import SingleDeviceSharding as SingleDeviceSharding
    from .runtime import as_operand as as_operand
    from .runtime import bounded_cache as bounded_cache
    from .runtime import as_result as as_result
    from .runtime import clients as clients
    from .runtime import fold_traceback as fold_traceback
    from .runtime import guarded_compilation as guarded_compilation
    from .runtime import library_function as library_function
    from .runtime import one_call as one_call
    from .runtime import register_cache as register_cache
    from .runtime import started_clients as started_clients
    from .runtime import state as state
    from .runtime import watch_programs as watch_programs
    from .traces import BatchTrace as BatchTrace
    from .traces import JVPTrace as JVPTrace
    from .traces import JVPTracer as JVPTracer
    from .traces import JitTracer as JitTracer
    from .traces import StagingTrace as StagingTrace
    from .traces import Trace as Trace
    from .traces import Tracer as Tracer
    from .traces import axes_in_scope as axes_in_scope
    from .traces import backward_pass as backward_pass
    from .traces import batch_of as batch_of
    from .traces import bind_directly as bind_directly
    from .traces import current_trace as current_trace
    from .traces import jvp_of as jvp_of
    from .traces import register_value_type as register_value_type
    from .traces import set_trace as set_trace

_OWN: _Final = {
    "discharge_jaxpr": ".._engine.discharge",
    "evaluate_scalars": ".scalar_evaluation",
    "random_clone_p": "..lax.random_bits",
    "random_unwrap_p": "..lax.random_bits",
    "random_wrap_p": "..lax.random_bits",
    "reduce_scatter_p": "..lax.collective_gathers",
    "run_state": ".._api.references",
}
"""Names of this module whose definitions are imported on first use."""

_MODULES: _Final = (
    "dimensions",
    "elementwise",
    "facade",
    "fast_path",
    "lowering",
    "native",
    "placements",
    "portable_modules",
    "references",
    "runtime",
    "traces",
)

_MOVED: _Final = {
    "BatchTrace": "traces",
    "JVPTrace": "traces",
    "JVPTracer": "traces",
    "JitTracer": "traces",
    "Sharding": "runtime",
    "FastPath": "runtime",
    "bounded_cache": "runtime",
    "SingleDeviceSharding": "runtime",
    "StagingTrace": "traces",
    "Trace": "traces",
    "Tracer": "traces",
    "any_number": "elementwise",
    "as_operand": "runtime",
    "as_result": "runtime",
    "axes_in_scope": "traces",
    "backward_pass": "traces",
    "batch_of": "traces",
    "bind_directly": "traces",
    "cast": "elementwise",
    "chlo": "lowering",
    "clients": "runtime",
    "current_trace": "traces",
    "fold_traceback": "runtime",
    "guarded_compilation": "runtime",
    "hlo": "lowering",
    "inexact": "elementwise",
    "ir": "lowering",
    "is_operand": "elementwise",
    "jvp_of": "traces",
    "library_function": "runtime",
    "one_call": "runtime",
    "promoted": "elementwise",
    "provides_custom_calls": "lowering",
    "register_cache": "runtime",
    "register_value_type": "traces",
    "same_rank": "elementwise",
    "set_trace": "traces",
    "started_clients": "runtime",
    "state": "runtime",
    "watch_programs": "runtime",
}
"""Names that are defined in another module of the extension API since version 1.4."""

_RENAMED: _Final = {
    "ShortRoads": "FastPath",
    "backward": "transpose_direct",
    "finished": "as_result",
    "map_programs": "map_jaxprs",
    "process": "trace_rule",
    "run": "impl",
    "save": "partial_eval",
}
"""Names of versions 1.0 to 1.3 that have another name now."""

_WITHDRAWN: _Final = {
    "compiling": "use extend.runtime.compile_call",
    "mlir": "use the functions of extend.lowering",
    "portable": "use extend.portable_modules",
    "shaped": "use the functions of extend.lowering",
}
"""Names of versions 1.2 and 1.3 for private modules, with the replacement."""

_INTERPRETERS: _Final = ("Check", "Cost", "Run", "cost", "error_checks", "faults", "taylor")
"""Kinds of rules, and what their rules return, that the wheel of the interpreters defines now."""


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f".{name}", __name__)
    if home := _OWN.get(name) or _MOVED.get(name):
        module = _import_module(home if home.startswith(".") else f".{home}", __name__)
        value = globals()[name] = getattr(module, name)
        return value
    if current := _RENAMED.get(name):
        _warn(name, f"is called {current} since version 1.4 of the extension API")
        return globals().get(current) or __getattr__(current)
    if name in _WITHDRAWN:
        _warn(name, f"is withdrawn in version 1.4 of the extension API: {_WITHDRAWN[name]}")
        return getattr(_import_module(".._lower.lazy", __name__), name)
    if name in _INTERPRETERS:
        return _of_interpreters(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _warn(name: str, what: str) -> None:
    _warnings.warn(
        f"{__name__}.{name} {what}; the old name is removed in version 2.0",
        DeprecationWarning,
        stacklevel=3,
    )


def _of_interpreters(name: str) -> _Any:
    wheel = _layer("interpreters")
    try:
        module = _import_module(wheel)
    except ModuleNotFoundError as error:
        if error.name != wheel:
            raise
        raise AttributeError(
            f"{name} is defined by the package {wheel} since version 1.4 of the extension API, "
            f"which is not installed: {_how_to_get('interpreters')}"
        ) from None
    _warnings.warn(
        f"{__name__}.{name} moved to {wheel} in version 1.4 of the extension API; the old name is "
        "removed in version 2.0",
        DeprecationWarning,
        stacklevel=3,
    )
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_OWN, *_MOVED} - {"TYPE_CHECKING"})
