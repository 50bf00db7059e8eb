"""The type name by which libraries recognize compiled functions."""

from __future__ import annotations

from typing import Final

from primax_core import jit

_COMPILED: Final[type] = type(jit(lambda: None))
_OWN: Final = _COMPILED.__qualname__
_EXPECTED: Final = "PjitFunction"


def rename() -> None:
    """Rename the type of compiled functions, because libraries search ``str(type(f))``."""
    _COMPILED.__name__ = _COMPILED.__qualname__ = _EXPECTED


def restore() -> None:
    """Undo :func:`rename`."""
    _COMPILED.__name__ = _COMPILED.__qualname__ = _OWN
