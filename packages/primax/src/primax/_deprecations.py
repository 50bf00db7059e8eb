"""Deprecation warnings for former names, with the replacement and the removal version."""

from __future__ import annotations

import warnings
from typing import Any, Final

REMOVAL: Final = "0.3"
"""The version of Primax that removes the currently deprecated names."""


def deprecated(module: str, name: str, value: Any, instead: str) -> Any:
    """Return ``value`` after a deprecation warning for ``module.name`` at the caller's line."""
    warnings.warn(
        f"{module}.{name} is deprecated and will be removed in Primax {REMOVAL}: "
        f"use {instead} instead.",
        DeprecationWarning,
        stacklevel=3,
    )
    return value
