"""The registry of caches: every module-level cache is bounded, and one call empties all."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

from .locks import new_lock

_clearers: list[Callable[[], None]] = []
_caches: Final[list[Bounded]] = []
T = TypeVar("T")


def register(clear: Callable[[], None]) -> Callable[[], None]:
    """Register a function that empties a cache; usable as a decorator."""
    _clearers.append(clear)
    return clear


register_cache = register


def bounded_cache(limit: int = 4096) -> Bounded:
    """A new module-level cache: bounded, and emptied by ``clear_caches``.

    A cache at module level must be bounded: it keeps keys and values alive.

    Args:
      limit: number of entries. A full cache drops its oldest entry.

    Returns:
      A ``dict``. Reads take no lock.

    Arrays in it belong to the library: ``live_arrays`` does not list them.

    >>> from primax_core.extend.runtime import bounded_cache
    >>> cache = bounded_cache(limit=4)
    >>> for n in range(100):
    ...     cache[n] = n * n
    >>> len(cache) <= 4
    True
    """
    cache = Bounded()
    cache.limit = limit
    _caches.append(cache)
    return cache


def memoize(limit: int = 4096) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """``functools.lru_cache`` with registration: :func:`clear_all` empties it."""

    def decorate(fun: Callable[..., T]) -> Callable[..., T]:
        cached = lru_cache(maxsize=limit)(fun)
        register(cached.cache_clear)
        return cached

    return decorate


def clear_all() -> None:
    """Empty every cache. Values in use stay valid; cached values are recomputed on demand."""
    for clear in _clearers:
        clear()
    for cache in _caches:
        cache.clear()


def cached_values() -> list[Any]:
    """The values of all module-level caches."""
    values: list[Any] = []
    for cache in _caches:
        values.extend(list(cache.values()))
    return values


class Bounded(dict[Any, Any]):
    """A bounded dict of recomputable values: a full dict drops its oldest entry."""

    __slots__ = ("limit",)

    def __init__(self) -> None:
        self.limit: int = 4096

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= self.limit and key not in self:
            try:
                self.pop(next(iter(self)), None)
            except (RuntimeError, StopIteration):
                pass  # another thread changed the dict
        super().__setitem__(key, value)


class Lenient(Bounded):
    """A bounded dict that ignores unhashable keys."""

    __slots__ = ()

    def __init__(self) -> None:
        self.limit = 512

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
    """A dict for each function, freed with the function and emptied with all caches.

    A dict may refer to its function, as the jaxpr of a function with a custom derivative does. Then
    neither would be freed, so only the newest dicts are stored.
    """

    def __init__(self, limit: int = 2048):
        self._limit = limit
        self._lock = new_lock()
        self._dicts: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        register(self.clear)

    def of(self, fun: Any) -> dict:
        """The dict of a function; a new one if it is not hashable or weakly referable."""
        try:
            cache = self._dicts.get(fun)
            if cache is None:
                with self._lock:
                    while len(self._dicts) >= self._limit:
                        self._dicts.pop(next(iter(self._dicts.keys())), None)
                    cache = self._dicts.setdefault(fun, {})
        except TypeError:
            return {}
        return cache

    def clear(self) -> None:
        """Empty the dicts, which may still be in use."""
        with self._lock:
            dicts = list(self._dicts.values())
        for cache in dicts:
            cache.clear()
