"""Levels of the compiler's effort, among the options of ``jit``."""

from __future__ import annotations

import enum
from typing import Any, Final


class CompilerEffortLevel(enum.Enum):
    """Value of the compiler options ``optimization_level`` and ``memory_fitting_level``."""

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


EFFORT_OPTIONS: Final = ("optimization_level", "memory_fitting_level")


def set_level(build: Any, option: str, value: Any) -> None:
    """Set the level of an option: a :class:`CompilerEffortLevel`, its name or its number."""
    by_name = isinstance(value, str)
    try:
        level = CompilerEffortLevel[value] if by_name else CompilerEffortLevel(value)
    except (KeyError, ValueError):
        names = ", ".join(CompilerEffortLevel.__members__)
        raise ValueError(
            f"the compiler option {option} must be a CompilerEffortLevel or one of the names "
            f"{names}, got {value!r}"
        ) from None
    setattr(build, option, level.value)
