"""Locks that a forked process finds free.

``os.fork`` copies a lock as it is. One that another thread held stays held in the child, where that
thread does not exist.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Final

_all: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """A lock."""
    lock = threading.Lock()
    _all.add(lock)
    return lock


def new_rlock() -> Any:
    """A lock that the thread which holds it may take again."""
    lock = threading.RLock()
    _all.add(lock)
    return lock


def _free_all() -> None:
    for lock in list(_all):
        lock._at_fork_reinit()  # as the standard library does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
