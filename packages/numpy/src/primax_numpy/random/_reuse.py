"""Keys that were used: what the option ``debug_key_reuse`` watches."""

from __future__ import annotations

from typing import Any


def check_unused(name: str, key: Any) -> None:
    """Note the use of a key."""
