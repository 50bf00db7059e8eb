"""The runtime: operands, compiled library functions, devices, caches, and errors at boundaries."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .._base.caches import bounded_cache as bounded_cache, register_cache as register_cache
from .._base.config import (
    ContextOption,
    add_choice as add_choice,
    default_placement as default_placement,
    define,
    state as state,
)
from .._base.errors import ErrorWithPage as ErrorWithPage
from .._base.locks import new_lock as new_lock
from .._base.options import DISPATCH, NONE, TRACE, Option
from .._base.source import (
    api_boundary as api_boundary,
    api_boundary_of as api_boundary_of,
    fold_traceback as fold_traceback,
)
from .._engine.jit_cache import library_function as library_function
from .._engine.results import as_result as as_result
from .._runtime.array import default_sharding as default_sharding
from .._runtime.devices import (
    client_of as client_of,
    clients as clients,
    platform_of as platform_of,
    started_clients as started_clients,
)
from .._runtime.dispatch import as_operand as as_operand, watch_programs as watch_programs
from .._runtime.sharding import (
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
    as_sharding as as_sharding,
    register_mesh as register_mesh,
    register_sharding as register_sharding,
)

if TYPE_CHECKING:
    from .._api.call_inspection import (
        CompiledCall as CompiledCall,
        PartitionMesh as PartitionMesh,
        Signature as Signature,
        compile_call as compile_call,
    )
    from .._api.out_sharding import with_out_sharding as with_out_sharding
    from .._api.retraces import Change as Change
    from .._lower.compile import guarded_compilation as guarded_compilation
    from .._runtime.assembly import (
        array_from_callback as array_from_callback,
        array_from_parts as array_from_parts,
        array_from_values as array_from_values,
    )
    from .._runtime.tiled_sharding import TiledSharding as TiledSharding
    from .._runtime.tilings import Tiling as Tiling
    from ..lax.control.bodies import structure_differences as structure_differences
    from .fast_path import FastPath as FastPath, one_call as one_call

_HOMES: Final = {
    "Change": ".._api.retraces",
    "CompiledCall": ".._api.call_inspection",
    "FastPath": ".fast_path",
    "PartitionMesh": ".._api.call_inspection",
    "Signature": ".._api.call_inspection",
    "TiledSharding": ".._runtime.tiled_sharding",
    "Tiling": ".._runtime.tilings",
    "array_from_callback": ".._runtime.assembly",
    "array_from_parts": ".._runtime.assembly",
    "array_from_values": ".._runtime.assembly",
    "compile_call": ".._api.call_inspection",
    "guarded_compilation": ".._lower.compile",
    "one_call": ".fast_path",
    "structure_differences": "..lax.control.bodies",
    "with_out_sharding": ".._api.out_sharding",
}
"""Names that are imported on first use."""


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home, __package__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES} - {"TYPE_CHECKING"})


def define_option(
    name: str,
    kind: type,
    default: Any,
    scope: str = NONE,
    doc: str = "",
    *,
    choices: tuple[str, ...] | None = None,
    optional: bool = False,
) -> ContextOption:
    """Register a configuration option, and return its context manager.

    Args:
      name: the name in ``config.update(name, value)`` and, in upper case, in the environment
        variable ``PRIMAX_<NAME>``.
      kind: ``bool``, ``int``, ``float``, ``str``, or ``object`` for any hashable value.
      scope: ``"trace"`` if the value changes traced jaxprs or their lowering, ``"dispatch"`` if it
        changes only how they are executed, ``"none"`` if it is read where it is used. Caches of
        jaxprs and executables distinguish values of the first two.
      doc: a description.
      choices: the accepted strings.
      optional: accept ``None``.
      default: the initial value, without the environment variable.

    Returns:
      ``option(value)`` is a context manager and a decorator that sets the option in the current
      thread; ``option.value`` is the value in effect.

    Raises:
      ValueError: the option is defined already, the scope is unknown, or the environment variable
        has an invalid value.

    >>> mesh_axis = define_option("acme_mesh_axis", str, "x", "trace", "axis of the mesh")
    >>> with mesh_axis("y"):
    ...     mesh_axis.value
    'y'
    """
    if scope not in (TRACE, DISPATCH, NONE):
        raise ValueError(
            f"option {name} has the unknown scope {scope!r}: it is 'trace', 'dispatch' or 'none'"
        )
    return define(Option(name, kind, default, scope, doc, choices=choices, optional=optional))
