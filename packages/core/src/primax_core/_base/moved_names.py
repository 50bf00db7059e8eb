"""Names of the core that the wheel ``primax-interpreters`` defines."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NoReturn

from .identity import how_to_get, layer


def in_interpreters(module: str, name: str) -> AttributeError:
    """The error for a public name of a core module that this wheel defines."""
    return AttributeError(
        f"module {module!r} has no attribute {name!r}: it is in {layer('interpreters')}, which "
        f"{how_to_get('interpreters')} brings"
    )


def missing(module: str, names: Collection[str]) -> Callable[[str], NoReturn]:
    """The ``__getattr__`` of a module some of whose names this wheel defines."""

    def __getattr__(name: str) -> NoReturn:
        if name in names:
            raise in_interpreters(module, name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
