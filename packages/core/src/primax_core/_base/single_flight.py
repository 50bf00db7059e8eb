"""Single flight: one thread computes a value, the others wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from .locks import new_lock

T = TypeVar("T")


class SingleFlight:
    """Computes the value of a key in one thread at a time; the other threads wait.

    >>> values, flight = {}, SingleFlight()
    >>> flight.do("a", values.get, lambda: values.setdefault("a", 1))
    1
    """

    __slots__ = ("_lock", "_busy")

    def __init__(self) -> None:
        self._lock = new_lock()
        self._busy: dict[Hashable, tuple[threading.Event, int]] = {}

    def do(
        self, key: Hashable, lookup: Callable[[Any], T | None], compute: Callable[[], T]
    ) -> T:  # fmt: skip
        """The value that ``lookup`` returns for the key, or else the result of ``compute``.

        ``compute`` stores the value for ``lookup``. If it stores nothing, the waiting threads
        compute it in turn. A thread that is already computing the key (recursion) computes it
        again.
        """
        me = threading.get_ident()
        while True:
            value = lookup(key)
            if value is not None:
                return value
            with self._lock:
                event, owner = self._busy.get(key, (None, me))
                if event is None:
                    event = threading.Event()
                    self._busy[key] = event, me
                    break
            if owner == me:
                return compute()
            event.wait()
        try:
            value = lookup(key)  # another thread may have stored it
            return compute() if value is None else value
        finally:
            with self._lock:
                del self._busy[key]
            event.set()
