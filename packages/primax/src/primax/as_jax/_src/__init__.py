"""Counterparts of the reference's private modules, for libraries that import them.

A private module is a file here, with what has no public name, or only an entry of ``_homes``. Names
that it does not define are those of its public homes.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from ._homes import HOMES as _HOMES, lookup as _lookup

_complete: set[str] = set()


def load(name: str) -> ModuleType:
    """Import a private module by its name below ``_src``.

    Raises:
      ModuleNotFoundError: if there is no counterpart.
    """
    full = f"{__name__}.{name}"
    if full in _complete:
        return sys.modules[full]
    parent = name.rpartition(".")[0]
    if parent:
        load(parent)
    try:
        module = import_module(full)
    except ModuleNotFoundError as e:
        if e.name != full or name not in _HOMES:
            raise
        module = sys.modules[full] = ModuleType(full, f"Names of {', '.join(_HOMES[name])}.")
    if any(other.startswith(f"{name}.") for other in _HOMES):
        vars(module).setdefault("__path__", [])
    if name in _HOMES:
        vars(module)["__getattr__"] = _lookup(module, name, load)
    _complete.add(full)
    return module


def __getattr__(name: str) -> ModuleType:
    """Import a submodule on attribute access, for libraries that do not import it explicitly."""
    if not name.startswith("_"):
        try:
            return load(name)
        except ModuleNotFoundError as e:
            if e.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
