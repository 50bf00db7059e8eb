"""The library's log; the ``logging`` module is loaded at the first message."""

from __future__ import annotations

from typing import Any

NAME = "primax_core"


def warning(message: str, *args: Any) -> None:
    """Log a message that an option requested."""
    import logging

    logging.getLogger(NAME).warning(message, *args)
