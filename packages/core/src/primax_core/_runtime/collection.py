"""Reports of arrays freed only by the garbage collector, as an option requests."""

from __future__ import annotations

import gc
import os
import sys
import weakref
from typing import Any

from .._base.config import state
from .array import ArrayImpl

_seen: list[tuple[weakref.ref, str]] = []


def watch() -> None:
    """Observe each collection; without cost while the option allows all."""
    if _around_collection not in gc.callbacks:
        gc.callbacks.append(_around_collection)


def _around_collection(phase: str, info: dict[str, Any]) -> None:
    # A collection may begin while the values of this thread are initialized, before there is a
    # level.
    level = state.__dict__.get("array_garbage_collection_guard")
    if level in (None, "allow"):
        _seen.clear()
        return
    if phase == "start":
        _seen[:] = [
            (weakref.ref(x), str(x._spec.aval)) for x in gc.get_objects() if type(x) is ArrayImpl
        ]
        return
    freed = [text for ref, text in _seen if ref() is None]
    _seen.clear()
    for text in freed:
        print(
            f"RuntimeError: an array of type {text} was deleted by the Python garbage collector "
            "instead of reference counting. Break the reference cycle that contains it, so that "
            "its memory is freed immediately.",
            file=sys.stderr,
        )
    if freed and level == "fatal":
        sys.stderr.flush()
        os.abort()
