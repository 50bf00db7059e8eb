"""Counterparts of the reference's private modules, for libraries that import them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """Import a submodule on attribute access, for libraries that do not import it explicitly."""
    module = f"{__name__}.{name}"
    if not name.startswith("__"):
        try:
            return import_module(module)
        except ModuleNotFoundError as e:
            if e.name != module:
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
