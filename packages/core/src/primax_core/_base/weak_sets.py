"""Reading weak sets that other threads change."""

from __future__ import annotations

from typing import TypeVar
from weakref import WeakSet

T = TypeVar("T")


def members(objects: WeakSet[T]) -> list[T]:
    """The live objects of a weak set; copying it fails while another thread adds an object."""
    while True:
        try:
            return list(objects)
        except RuntimeError:  # the set changed its size
            continue
