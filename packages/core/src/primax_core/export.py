"""Shapes with dimension variables. Export itself is in the wheel of interpreters."""

from typing import NoReturn as _NoReturn

from ._api.symbolic_shapes import (
    SymbolicScope as SymbolicScope,
    is_symbolic_dim as is_symbolic_dim,
    symbolic_args_specs as symbolic_args_specs,
    symbolic_dim_bounds as symbolic_dim_bounds,
    symbolic_shape as symbolic_shape,
)
from ._base.moved_names import in_interpreters as _in_interpreters

_INTERPRETERS = (
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


def __getattr__(name: str) -> _NoReturn:
    if name in _INTERPRETERS:
        raise _in_interpreters(__name__, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
