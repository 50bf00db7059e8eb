"""MLIR: the reference's ``jax.extend.mlir``, and the helpers of ``primax_core.extend.lowering``.

``ir``, ``passmanager`` and ``dialects`` are jaxlib's modules. Types, constants and attributes
(``tensor_type``, ``constant``, ``i64s`` ...) are the core's. The other functions convert modules.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Final
from typing import Any as _Any

from primax_core.extend import facade as _facade
from primax_core.extend import lowering as _lowering
from primax_core.extend.placements import is_placed as _is_placed

from ... import _aliases

if TYPE_CHECKING:
    deserialize_portable_artifact: _Any
    hlo_to_stablehlo: _Any
    refine_polymorphic_shapes: _Any
    serialize_portable_artifact: _Any
    ir: _Any
    passmanager: _Any
    dialects: _Any

_CONVERSIONS: Final = (
    "deserialize_portable_artifact",
    "hlo_to_stablehlo",
    "refine_polymorphic_shapes",
    "serialize_portable_artifact",
)
_CONTEXT: Final = ("context", "make_context", "unknown_location")
_OF_JAXLIB: Final = ("dialects", "ir", "passmanager")

_aliases.install({f"{__name__}.{name}": f"jaxlib.mlir.{name}" for name in _OF_JAXLIB}, {})


def lower_with_sharding_in_types(ctx: _Any, op: _Any, aval: _Any) -> _Any:
    """Return ``op`` unchanged if the type says nothing of the division over devices."""
    if _is_placed(aval):
        raise NotImplementedError(
            f"{aval} has a sharding in its type, which the lowering rules of this module do not "
            "add to operations: use primax.lax.with_sharding_constraint"
        )
    return op


def __getattr__(name: str) -> _Any:
    if name in _OF_JAXLIB:
        return _import_module(f"{__name__}.{name}")
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(_facade if name in (*_CONVERSIONS, *_CONTEXT) else _lowering, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_CONVERSIONS, *_OF_JAXLIB} - {"TYPE_CHECKING"})
