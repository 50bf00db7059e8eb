"""The name by which libraries recognise compiled functions."""

from __future__ import annotations

from typing import Final

from primax_core import jit

_COMPILED: Final[type] = type(jit(lambda: None))
_OWN: Final = _COMPILED.__qualname__
_EXPECTED: Final = "PjitFunction"


def take() -> None:
    """Let the type of compiled functions have the name that ``str(type(f))`` is searched for."""
    _COMPILED.__name__ = _COMPILED.__qualname__ = _EXPECTED


def give_back() -> None:
    """Undo :func:`take`."""
    _COMPILED.__name__ = _COMPILED.__qualname__ = _OWN
