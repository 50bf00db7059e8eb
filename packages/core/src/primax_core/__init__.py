"""primax-core: composable transformations of array functions, compiled by XLA.

Rarely used modules and functions are imported on first use.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from . import ad_checkpoint as ad_checkpoint
from . import custom_batching as custom_batching
from . import dlpack as dlpack
from . import dtypes as dtypes
from . import errors as errors
from . import flatten_util as flatten_util
from . import lax as lax
from . import memory as memory
from . import stages as stages
from . import tree as tree
from . import tree_util as tree_util
from . import typing as typing
from ._api.checkpoint import checkpoint as checkpoint
from ._api.checkpoint import checkpoint_policies as checkpoint_policies
from ._api.checkpoint import remat as remat
from ._api.custom_derivatives import custom_jvp as custom_jvp
from ._api.custom_derivatives import custom_vjp as custom_vjp
from ._api.environment import effects_barrier as effects_barrier
from ._api.environment import print_environment_info as print_environment_info
from ._api.forward import jvp as jvp
from ._api.forward import linear_transpose as linear_transpose
from ._api.forward import linearize as linearize
from ._api.grad import grad as grad
from ._api.grad import value_and_grad as value_and_grad
from ._api.guards import array_garbage_collection_guard as array_garbage_collection_guard
from ._api.guards import disable_jit as disable_jit
from ._api.guards import make_user_context as make_user_context
from ._api.guards import thread_guard as thread_guard
from ._api.guards import transfer_guard as transfer_guard
from ._api.jacobians import hessian as hessian
from ._api.jacobians import jacfwd as jacfwd
from ._api.jacobians import jacobian as jacobian
from ._api.jacobians import jacrev as jacrev
from ._api.jit import clear_caches as clear_caches
from ._api.jit import jit as jit
from ._api.shape_struct import ShapeDtypeStruct as ShapeDtypeStruct
from ._api.slices import ds as ds
from ._api.split_vjp import fwd_and_bwd as fwd_and_bwd
from ._api.tracing import eval_shape as eval_shape
from ._api.tracing import make_jaxpr as make_jaxpr
from ._api.tracing import named_call as named_call
from ._api.tracing import named_scope as named_scope
from ._api.transfer import block_until_ready as block_until_ready
from ._api.transfer import copy_to_host_async as copy_to_host_async
from ._api.transfer import device_get as device_get
from ._api.transfer import device_put as device_put
from ._api.vjp import vjp as vjp
from ._api.vmap import vmap as vmap
from ._base.config import allow_f16_reductions as allow_f16_reductions
from ._base.config import auto_pcast as auto_pcast
from ._base.config import check_tracer_leaks as check_tracer_leaks
from ._base.config import checking_leaks as checking_leaks
from ._base.config import config as config
from ._base.config import debug_infs as debug_infs
from ._base.config import debug_key_reuse as debug_key_reuse
from ._base.config import debug_nans as debug_nans
from ._base.config import default_device as default_device
from ._base.config import default_matmul_precision as default_matmul_precision
from ._base.config import default_prng_impl as default_prng_impl
from ._base.config import enable_checks as enable_checks
from ._base.config import enable_custom_prng as enable_custom_prng
from ._base.config import enable_x64 as enable_x64
from ._base.config import explain_cache_misses as explain_cache_misses
from ._base.config import legacy_prng_key as legacy_prng_key
from ._base.config import log_compiles as log_compiles
from ._base.config import no_execution as no_execution
from ._base.config import no_tracing as no_tracing
from ._base.config import numpy_dtype_promotion as numpy_dtype_promotion
from ._base.config import numpy_rank_promotion as numpy_rank_promotion
from ._base.config import remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type
from ._base.config import softmax_custom_jvp as softmax_custom_jvp
from ._base.config import threefry_partitionable as threefry_partitionable
from ._base.config import transfer_guard_device_to_device as transfer_guard_device_to_device
from ._base.config import transfer_guard_device_to_host as transfer_guard_device_to_host
from ._base.config import transfer_guard_host_to_device as transfer_guard_host_to_device
from ._ir.dtypes import float0 as float0
from ._runtime.devices import Device as Device
from ._runtime.devices import default_backend as default_backend
from ._runtime.devices import device_count as device_count
from ._runtime.devices import devices as devices
from ._runtime.devices import local_device_count as local_device_count
from ._runtime.devices import local_devices as local_devices
from ._runtime.devices import process_count as process_count
from ._runtime.devices import process_index as process_index
from ._runtime.devices import process_indices as process_indices
from ._runtime.live import live_arrays as live_arrays
from ._runtime.shards import Shard as Shard
from ._trace.array import Array as Array
from ._trace.core import ensure_compile_time_eval as ensure_compile_time_eval
from ._trace.core import typeof as typeof
from ._engine.call import Inline as Inline

if TYPE_CHECKING:
    from . import custom_derivatives as custom_derivatives
    from . import debug as debug
    from . import export as export
    from . import extend as extend
    from . import layout as layout
    from . import monitoring as monitoring
    from . import ref as ref
    from . import serialize_executable as serialize_executable
    from . import testing as testing
    from ._api.callbacks import io_callback as io_callback
    from ._api.callbacks import pure_callback as pure_callback
    from ._api.closures import closure_convert as closure_convert
    from ._api.custom_gradient import custom_gradient as custom_gradient
    from ._api.references import Ref as Ref
    from ._api.references import empty_ref as empty_ref
    from ._api.references import free_ref as free_ref
    from ._api.references import freeze as freeze
    from ._api.references import new_ref as new_ref
    from ._lower.effort_levels import CompilerEffortLevel as CompilerEffortLevel

__version__ = "0.1.0"

_MODULES = (
    "ad",
    "custom_derivatives",
    "debug",
    "export",
    "extend",
    "layout",
    "monitoring",
    "ref",
    "serialize_executable",
    "testing",
)
_HOMES = {
    "CompilerEffortLevel": "_lower.effort_levels",
    "Ref": "_api.references",
    "closure_convert": "_api.closures",
    "custom_gradient": "_api.custom_gradient",
    "empty_ref": "_api.references",
    "free_ref": "_api.references",
    "freeze": "_api.references",
    "io_callback": "_api.callbacks",
    "new_ref": "_api.references",
    "pure_callback": "_api.callbacks",
}
_INTERPRETERS = ("checkify", "explain", "insight", "jet", "profiler")


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f".{name}", __name__)
    home = _HOMES.get(name)
    if name in _INTERPRETERS:
        from ._base.moved_names import in_interpreters

        raise in_interpreters(__name__, name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(f".{home}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_HOMES} - {"TYPE_CHECKING"})
