"""The type name by which libraries recognize compiled functions."""

from __future__ import annotations

from typing import Final

from primax_core import jit

_COMPILED: Final[type] = type(jit(lambda: None))
_OWN: Final = _COMPILED.__qualname__
_EXPECTED: Final = "PjitFunction"


def take() -> None:
    """Set the type name of compiled functions to the one that libraries search in
    ``str(type(f))``.
    """
    _COMPILED.__name__ = _COMPILED.__qualname__ = _EXPECTED


def give_back() -> None:
    """Undo :func:`take`."""
    _COMPILED.__name__ = _COMPILED.__qualname__ = _OWN
