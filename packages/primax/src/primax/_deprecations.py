"""Names of earlier versions: each warns, names its successor, and says when it goes."""

from __future__ import annotations

import warnings
from typing import Any, Final

REMOVAL: Final = "0.3"
"""The version of Primax in which the names that are deprecated now no longer exist."""


def give(module: str, name: str, value: Any, instead: str) -> Any:
    """``value``, with a warning at the line that asked for ``module.name``."""
    warnings.warn(
        f"{module}.{name} is deprecated and goes with Primax {REMOVAL}: use {instead} instead.",
        DeprecationWarning,
        stacklevel=3,
    )
    return value
