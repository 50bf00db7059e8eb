"""Compilation of single operations, in the reference's convention."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .._adapters.primitives import apply_primitive as apply_primitive
from .._adapters.values import canonicalize_handlers

if TYPE_CHECKING:
    Backend = Any

canonicalize_dtype_handlers: Final[dict[type, Callable[[Any], Any]]] = canonicalize_handlers
"""Conversion functions by operand class: the results are arrays of a canonical dtype.

A new entry, of a function from a value to its array, lets values of a class be operands.
"""


def __getattr__(name: str) -> Any:
    if name == "Backend":
        from primax_core import devices

        return type(devices()[0].client)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "Backend"} - {"TYPE_CHECKING"})
