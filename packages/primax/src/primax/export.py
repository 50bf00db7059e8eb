"""Export of functions as bytes, and shapes with dimension variables.

The functions of symbolic shapes are those of the core; the others are defined by the optional wheel
of interpreters, and imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any as _Any

from primax_core.export import (
    SymbolicScope as SymbolicScope,
    is_symbolic_dim as is_symbolic_dim,
    symbolic_args_specs as symbolic_args_specs,
    symbolic_dim_bounds as symbolic_dim_bounds,
    symbolic_shape as symbolic_shape,
)

from ._wheels import wheel as _wheel

if TYPE_CHECKING:
    from primax_interpreters.export import *

_EXPORT = (
    "DisabledSafetyCheck",
    "Exported",
    "default_export_platform",
    "deserialize",
    "export",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
)


def __getattr__(name: str) -> _Any:
    if name not in _EXPORT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _wheel("primax_interpreters.export", "interpreters")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORT} - {"TYPE_CHECKING"})
