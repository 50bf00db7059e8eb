"""Shapes with dimension variables. Export itself is in the wheel of interpreters."""

from collections.abc import Callable as _Callable
from typing import NoReturn as _NoReturn

from ._api.symbolic_shapes import (
    SymbolicScope as SymbolicScope,
    is_symbolic_dim as is_symbolic_dim,
    symbolic_args_specs as symbolic_args_specs,
    symbolic_dim_bounds as symbolic_dim_bounds,
    symbolic_shape as symbolic_shape,
)
from ._base.moved_names import missing as _missing

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

__getattr__: _Callable[[str], _NoReturn] = _missing(__name__, _INTERPRETERS)
