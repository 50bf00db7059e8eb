"""Warnings of the cache: one for each process."""

from __future__ import annotations

from typing import Any

from ..._base import log
from ..._base.identity import ENV_PREFIX

_said: list[str] = []


def warn(message: str, *args: Any) -> None:
    """Log a warning, the first time only."""
    if _said:
        return
    _said.append(message)
    log.warning(
        message + " Functions are compiled as if there were no cache on disk; the environment "
        f"variable {ENV_PREFIX}ENABLE_COMPILATION_CACHE=0 disables it.",
        *args,
    )
