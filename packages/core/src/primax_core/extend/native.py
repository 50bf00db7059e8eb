"""Native functions: calls in lowering rules, registration, callbacks into Python, and devices that
programs are compiled for although they are absent.

:func:`call` and :func:`callback` load MLIR on first use; lowering rules run after that anyway.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .._ir.avals import AbstractToken as AbstractToken, abstract_token as abstract_token
from .._runtime.native_targets import (
    batch_partitionable as batch_partitionable,
    include_dir as include_dir,
    is_registered as is_registered,
    register as register,
    register_type as register_type,
)

if TYPE_CHECKING:
    from .._lower.callbacks import callback as callback
    from .._lower.mosaic import mosaic_bytecode as mosaic_bytecode
    from .._lower.native import call as call
    from .._runtime.absent_devices import (
        AbsentDevice as AbsentDevice,
        absent_target as absent_target,
        compile_only as compile_only,
    )
    from .._runtime.buffer_callbacks import (
        Buffer as Buffer,
        ExecutionContext as ExecutionContext,
        ExecutionStage as ExecutionStage,
    )

_HOMES: Final = {
    "AbsentDevice": ".._runtime.absent_devices",
    "absent_target": ".._runtime.absent_devices",
    "Buffer": ".._runtime.buffer_callbacks",
    "ExecutionContext": ".._runtime.buffer_callbacks",
    "ExecutionStage": ".._runtime.buffer_callbacks",
    "call": ".._lower.native",
    "callback": ".._lower.callbacks",
    "compile_only": ".._runtime.absent_devices",
    "mosaic_bytecode": ".._lower.mosaic",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home, __package__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES} - {"TYPE_CHECKING"})
