"""The library's log; the standard module is loaded when there is something to say."""

from __future__ import annotations

from typing import Any

NAME = "primax_core"


def warning(message: str, *args: Any) -> None:
    """Log what an option asked to be told."""
    import logging

    logging.getLogger(NAME).warning(message, *args)
