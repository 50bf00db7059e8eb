"""The runtime: operands, compiled library functions, devices, caches, and errors at boundaries."""

from __future__ import annotations

from .._api.call_inspection import (
    CompiledCall as CompiledCall,
    Signature as Signature,
    compile_call as compile_call,
)
from .._api.retraces import Change as Change
from .._base.caches import bounded_cache as bounded_cache, register_cache as register_cache
from .._base.config import add_choice as add_choice, state as state
from .._base.locks import new_lock as new_lock
from .._base.source import (
    api_boundary as api_boundary,
    api_boundary_of as api_boundary_of,
    fold_traceback as fold_traceback,
)
from .._engine.jit_cache import library_function as library_function
from .._engine.results import as_result as as_result
from .._lower.compile import guarded_compilation as guarded_compilation
from .._runtime.array import default_sharding as default_sharding
from .._runtime.devices import (
    client_of as client_of,
    clients as clients,
    platform_of as platform_of,
    started_clients as started_clients,
)
from .._runtime.dispatch import as_operand as as_operand, watch_programs as watch_programs
from .._runtime.sharding import Sharding as Sharding, SingleDeviceSharding as SingleDeviceSharding
from ..lax.control.bodies import structure_differences as structure_differences
from .fast_path import FastPath as FastPath
