"""Counterparts of modules that are private to the reference, for libraries that import them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """A module below this one, for libraries that write ``jax._src.core`` without importing it."""
    module = f"{__name__}.{name}"
    if not name.startswith("__"):
        try:
            return import_module(module)
        except ModuleNotFoundError as e:
            if e.name != module:
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
