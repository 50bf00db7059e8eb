"""What the cache has to say: one warning for each process, the rest for those who debug it."""

from __future__ import annotations

from typing import Any

from ..._base import log

_said: list[str] = []


def warn(message: str, *args: Any) -> None:
    """Log a warning, the first time that there is something to warn of."""
    if _said:
        return
    _said.append(message)
    log.warning(
        message + " Programs are compiled as if there were no cache on disk; the environment "
        "variable PRIMAX_ENABLE_COMPILATION_CACHE=0 switches it off.",
        *args,
    )
