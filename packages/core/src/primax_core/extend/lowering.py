"""Helpers for lowering rules: jaxlib's dialects, and types, attributes and constants of MLIR.

``hlo`` and ``chlo`` are jaxlib's bindings of StableHLO and CHLO, ``ir`` those of MLIR. They and the
functions here are loaded on first use.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .._lower.lazy import chlo as chlo, hlo as hlo, ir as ir
from .._lower.source_fingerprint import trusted_rules as trusted_rules
from .._runtime.custom_calls import provides_custom_calls as provides_custom_calls

if TYPE_CHECKING:
    from .._lower.axis_rules import (
        AxisRule as AxisRule,
        LoweredForm as LoweredForm,
        LoweredOperation as LoweredOperation,
        axis_rules as axis_rules,
    )
    from .._lower.context import (
        bools as bools,
        constant as constant,
        dense as dense,
        element_type as element_type,
        i32 as i32,
        i64 as i64,
        i64_elements as i64_elements,
        i64s as i64s,
        tensor_type as tensor_type,
        type_of as type_of,
        u64 as u64,
    )
    from .._lower.partitioned import (
        PartitionedBody as PartitionedBody,
        Partitioning as Partitioning,
    )
    from .._lower.shaped import (
        broadcast_in_dim as broadcast_in_dim,
        full as full,
        reshape as reshape,
        size_value as size_value,
    )

_HOMES: Final = {
    **dict.fromkeys(
        (
            "bools",
            "constant",
            "dense",
            "element_type",
            "i32",
            "i64",
            "i64_elements",
            "i64s",
            "tensor_type",
            "type_of",
            "u64",
        ),
        "context",
    ),
    **dict.fromkeys(("AxisRule", "LoweredForm", "LoweredOperation", "axis_rules"), "axis_rules"),
    **dict.fromkeys(("PartitionedBody", "Partitioning"), "partitioned"),
    **dict.fromkeys(("broadcast_in_dim", "full", "reshape", "size_value"), "shaped"),
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        return _of_version_1_3(name)
    module = import_module(f".._lower.{home}", __package__)
    value = globals()[name] = getattr(module, name)
    return value


def _of_version_1_3(name: str) -> Any:
    """A function of the private module that had the name of this one in version 1.3."""
    module = None if name.startswith("_") else import_module(".._lower.module", __package__)
    if module is None or not hasattr(module, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        f"{__name__}.{name} is withdrawn in version 1.4 of the extension API: it belongs to a "
        "private module; it is removed in version 2.0",
        DeprecationWarning,
        stacklevel=3,
    )
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES} - {"TYPE_CHECKING"})
