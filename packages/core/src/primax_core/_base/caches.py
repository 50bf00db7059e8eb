"""All caches of the library, so that one call can empty them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .locks import new_lock

_clearers: list[Callable[[], None]] = []


def register(clear: Callable[[], None]) -> Callable[[], None]:
    """Have ``clear`` called whenever all caches are to be emptied; usable as a decorator."""
    _clearers.append(clear)
    return clear


register_cache = register


def clear_all() -> None:
    """Empty every cache. Values in use stay valid; what was cached is made again when needed."""
    for clear in _clearers:
        clear()


class Bounded(dict):
    """A dict of what can be made again: it forgets its oldest entry for one too many."""

    __slots__ = ()
    LIMIT = 4096

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= self.LIMIT and key not in self:
            try:
                self.pop(next(iter(self)), None)
            except (RuntimeError, StopIteration):
                pass  # another thread changed it meanwhile
        super().__setitem__(key, value)


class Lenient(Bounded):
    """The same, for keys that may not be hashable: those are never found, and not kept."""

    __slots__ = ()
    LIMIT = 512

    def get(self, key: Any, default: Any = None) -> Any:
        try:
            return super().get(key, default)
        except TypeError:
            return default

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            super().__setitem__(key, value)
        except TypeError:
            pass


class OfFunctions:
    """A dict for each function, kept no longer than the function and emptied with all caches.

    What is kept for a function may refer to it, as the program of a function with a custom
    derivative does, and then neither would ever die; so only the newest are kept.
    """

    def __init__(self, kept: int = 2048):
        self._kept = kept
        self._lock = new_lock()
        self._dicts: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        register(self.clear)

    def of(self, fun: Any) -> dict:
        """The dict of a function; a new one for what cannot be hashed or referred to weakly."""
        try:
            cache = self._dicts.get(fun)
            if cache is None:
                with self._lock:
                    while len(self._dicts) >= self._kept:
                        self._dicts.pop(next(iter(self._dicts.keys())), None)
                    cache = self._dicts.setdefault(fun, {})
        except TypeError:
            return {}
        return cache

    def clear(self) -> None:
        """Empty the dicts, which their users may hold."""
        with self._lock:
            dicts = list(self._dicts.values())
        for cache in dicts:
            cache.clear()
