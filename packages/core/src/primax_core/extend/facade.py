"""Access that only the facade ``primax`` needs, for its adapters to the reference's conventions.

These names change without notice and belong to no version of the extension API. Other packages use
:mod:`primax_core.extend` and its other modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

_HOMES: Final = {
    "LoweringContext": "module",
    "context": "context",
    "deserialize_portable_artifact": "portable",
    "hlo_to_stablehlo": "portable",
    "lower_body": "module",
    "lower_module": "module",
    "make_compile_options": "compile",
    "make_context": "context",
    "refine_polymorphic_shapes": "portable",
    "serialize_portable_artifact": "portable",
    "unknown_location": "context",
}
_RENAMED: Final = {"make_compile_options": "make_options"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".._lower.{home}", __package__)
    value = globals()[name] = getattr(module, _RENAMED.get(name, name))
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
