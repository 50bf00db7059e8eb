"""All caches of the library, so that one call can empty them."""

from __future__ import annotations

from collections.abc import Callable

_clearers: list[Callable[[], None]] = []


def register(clear: Callable[[], None]) -> Callable[[], None]:
    """Have ``clear`` called whenever all caches are to be emptied; usable as a decorator."""
    _clearers.append(clear)
    return clear


def clear_all() -> None:
    """Empty every cache. Values in use stay valid; what was cached is made again when needed."""
    for clear in _clearers:
        clear()
