"""Work that several threads want at once, done once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from .locks import new_lock

T = TypeVar("T")


class SingleFlight:
    """Lets one thread at a time do the work of a key; the others wait and look again.

    >>> made, turns = {}, SingleFlight()
    >>> turns.once("a", made.get, lambda: made.setdefault("a", 1))
    1
    """

    __slots__ = ("_lock", "_busy")

    def __init__(self) -> None:
        self._lock = new_lock()
        self._busy: dict[Hashable, tuple[threading.Event, int]] = {}

    def once(
        self, key: Hashable, look: Callable[[Any], T | None], make: Callable[[], T]
    ) -> T:  # fmt: skip
        """What ``look`` finds for the key, or what ``make`` makes of it.

        ``make`` keeps it where ``look`` finds it; where it makes nothing, the threads that waited
        try in turn. A thread that comes back to a key it works on does the work itself.
        """
        me = threading.get_ident()
        while True:
            found = look(key)
            if found is not None:
                return found
            with self._lock:
                event, owner = self._busy.get(key, (None, me))
                if event is None:
                    event = threading.Event()
                    self._busy[key] = event, me
                    break
            if owner == me:
                return make()
            event.wait()
        try:
            found = look(key)  # it may have been made since
            return make() if found is None else found
        finally:
            with self._lock:
                del self._busy[key]
            event.set()
