"""The library's log; the ``logging`` module is loaded at the first message."""

from __future__ import annotations

from typing import Any

from .identity import ROOT


def warning(message: str, *args: Any) -> None:
    """Log a message that an option requested."""
    import logging

    logging.getLogger(ROOT).warning(message, *args)
