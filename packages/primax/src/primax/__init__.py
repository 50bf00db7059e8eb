"""Primax: composable transformations of array functions, compiled by XLA.

This is the facade over Primax's wheels, with JAX's module paths. Parts that belong to optional
wheels are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core_version as _core_version
from primax_core import Array as Array
from primax_core import Device as Device
from primax_core import Inline as Inline
from primax_core import ShapeDtypeStruct as ShapeDtypeStruct
from primax_core import Shard as Shard
from primax_core import ad_checkpoint as ad_checkpoint
from primax_core import allow_f16_reductions as allow_f16_reductions
from primax_core import array_garbage_collection_guard as array_garbage_collection_guard
from primax_core import auto_pcast as auto_pcast
from primax_core import block_until_ready as block_until_ready
from primax_core import check_tracer_leaks as check_tracer_leaks
from primax_core import checking_leaks as checking_leaks
from primax_core import checkpoint as checkpoint
from primax_core import checkpoint_policies as checkpoint_policies
from primax_core import clear_caches as clear_caches
from primax_core import closure_convert as closure_convert
from ._config import config as config
from primax_core import copy_to_host_async as copy_to_host_async
from primax_core import custom_batching as custom_batching
from . import custom_derivatives as custom_derivatives
from ._functions import custom_gradient as custom_gradient
from primax_core import custom_jvp as custom_jvp
from primax_core import custom_vjp as custom_vjp
from primax_core import debug_infs as debug_infs
from primax_core import debug_key_reuse as debug_key_reuse
from primax_core import debug_nans as debug_nans
from primax_core import default_backend as default_backend
from primax_core import default_device as default_device
from primax_core import default_matmul_precision as default_matmul_precision
from primax_core import default_prng_impl as default_prng_impl
from primax_core import device_count as device_count
from primax_core import device_get as device_get
from primax_core import device_put as device_put
from primax_core import devices as devices
from primax_core import disable_jit as disable_jit
from primax_core import dlpack as dlpack
from primax_core import ds as ds
from primax_core import dtypes as dtypes
from primax_core import effects_barrier as effects_barrier
from primax_core import enable_checks as enable_checks
from primax_core import enable_custom_prng as enable_custom_prng
from primax_core import enable_x64 as enable_x64
from primax_core import ensure_compile_time_eval as ensure_compile_time_eval
from . import errors as errors
from primax_core import eval_shape as eval_shape
from primax_core import explain_cache_misses as explain_cache_misses
from primax_core import flatten_util as flatten_util
from primax_core import float0 as float0
from primax_core import fwd_and_bwd as fwd_and_bwd
from ._functions import grad as grad
from primax_core import hessian as hessian
from primax_core import jacfwd as jacfwd
from primax_core import jacobian as jacobian
from primax_core import jacrev as jacrev
from primax_core import jit as jit
from primax_core import jvp as jvp
from primax_core import lax as lax
from primax_core import legacy_prng_key as legacy_prng_key
from ._functions import linear_transpose as linear_transpose
from primax_core import linearize as linearize
from primax_core import live_arrays as live_arrays
from primax_core import local_device_count as local_device_count
from primax_core import local_devices as local_devices
from primax_core import log_compiles as log_compiles
from primax_core import make_jaxpr as make_jaxpr
from primax_core import make_user_context as make_user_context
from primax_core import memory as memory
from primax_core import named_call as named_call
from primax_core import named_scope as named_scope
from primax_core import no_execution as no_execution
from primax_core import no_tracing as no_tracing
from primax_core import numpy_dtype_promotion as numpy_dtype_promotion
from primax_core import numpy_rank_promotion as numpy_rank_promotion
from primax_core import print_environment_info as print_environment_info
from primax_core import process_count as process_count
from primax_core import process_index as process_index
from primax_core import process_indices as process_indices
from primax_core import remat as remat
from primax_core import remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type
from primax_core import softmax_custom_jvp as softmax_custom_jvp
from primax_core import stages as stages
from primax_core import thread_guard as thread_guard
from primax_core import threefry_partitionable as threefry_partitionable
from primax_core import transfer_guard as transfer_guard
from primax_core import transfer_guard_device_to_device as transfer_guard_device_to_device
from primax_core import transfer_guard_device_to_host as transfer_guard_device_to_host
from primax_core import transfer_guard_host_to_device as transfer_guard_host_to_device
from primax_core import tree as tree
from primax_core import tree_util as tree_util
from primax_core import typeof as typeof
from primax_core import typing as typing
from ._functions import value_and_grad as value_and_grad
from ._functions import vjp as vjp
from primax_core import vmap as vmap

from primax_core.extend import register_internal_path as _register

from . import _array_methods as _array_methods
from . import _core_attributes as _core_attributes
from . import _modules as _modules
from . import _native_kernels as _native_kernels
from . import _several_devices as _several_devices
from ._hosts import host_count as host_count
from ._hosts import host_id as host_id
from ._hosts import host_ids as host_ids
from ._several_devices import pmap as pmap

if TYPE_CHECKING:
    from primax_core import CompilerEffortLevel as CompilerEffortLevel
    from primax_distributed import NamedSharding as NamedSharding
    from primax_distributed import P as P
    from primax_core import Ref as Ref
    from primax_core import ad as ad
    from primax_core import empty_ref as empty_ref
    from primax_interpreters import explain as explain
    from primax_core import free_ref as free_ref
    from primax_core import freeze as freeze
    from primax_distributed import get_abstract_mesh as get_abstract_mesh
    from primax_distributed import get_mesh as get_mesh
    from primax_distributed import make_array_from_callback as make_array_from_callback
    from primax_distributed import (
        make_array_from_process_local_data as make_array_from_process_local_data,
    )
    from primax_distributed import (
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from primax_distributed import make_mesh as make_mesh
    from primax_distributed import shard_map as shard_map
    from primax_distributed import smap as smap
    from primax_core import monitoring as monitoring
    from primax_ffi_cpu import native_kernels as native_kernels
    from primax_core import new_ref as new_ref
    from primax_core import pure_callback as pure_callback
    from primax_core import ref as ref
    from primax_distributed import reshard as reshard
    from primax_distributed import set_mesh as set_mesh
    from primax_distributed import use_abstract_mesh as use_abstract_mesh

    from . import api_util as api_util
    from . import core as core
    from . import debug as debug
    from . import distributed as distributed
    from . import example_libraries as example_libraries
    from . import experimental as experimental
    from . import export as export
    from . import extend as extend
    from . import ffi as ffi
    from . import image as image
    from . import insight as insight
    from . import interpreters as interpreters
    from . import nn as nn
    from . import numpy as numpy
    from . import ops as ops
    from . import profiler as profiler
    from . import random as random
    from . import scipy as scipy
    from . import sharding as sharding

__version__ = "0.1.0"

_LAZY = (
    *(name for name in _modules.OPTIONAL if "." not in name),
    *_modules.OWN,
    "ad",
    "monitoring",
    "ref",
)
_OF_WHEELS = {"explain": "primax_interpreters", "native_kernels": "primax_ffi_cpu"}
_OF_CORE = (
    "CompilerEffortLevel",
    "Ref",
    "empty_ref",
    "free_ref",
    "freeze",
    "new_ref",
    "pure_callback",
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return import_module(f".{name}", __name__)
    if name in _OF_WHEELS:
        from ._wheels import wheel

        package = _OF_WHEELS[name]
        value = globals()[name] = getattr(wheel(package, _modules.EXTRAS[package]), name)
        return value
    if name in _OF_CORE:
        import primax_core

        value = globals()[name] = getattr(primax_core, name)
        return value
    if name in _several_devices.OF_ROOT:
        value = globals()[name] = _several_devices.of_wheel("primax", name)
        return value
    raise AttributeError(f"module 'primax' has no attribute {name!r}")


def __dir__() -> list[str]:
    names = _several_devices.OF_ROOT if _several_devices.is_installed() else ()
    return sorted({*globals(), *_LAZY, *_OF_CORE, *names, *_OF_WHEELS})


_register(__path__[0])
