"""Locks that are free in a forked process.

``os.fork`` copies a lock in its current state. A lock held by another thread would stay locked in
the child, where that thread does not exist.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Final

from .weak_sets import members

_all: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """A lock that a forked process finds released.

    Returns:
      A lock with the methods of ``threading.Lock``.

    Locks at module level are created by it: a process that forks while another thread has the
    lock would otherwise hang.

    >>> from primax_core.extend.runtime import new_lock
    >>> lock = new_lock()
    >>> with lock:
    ...     lock.locked()
    True
    """
    lock = threading.Lock()
    _all.add(lock)
    return lock


def new_rlock() -> Any:
    """A lock that its owning thread may acquire again."""
    lock = threading.RLock()
    _all.add(lock)
    return lock


def _free_all() -> None:
    for lock in members(_all):
        lock._at_fork_reinit()  # as the standard library does for its own locks


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
