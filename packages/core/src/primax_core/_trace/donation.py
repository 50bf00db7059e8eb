"""Who holds an array, and wants a copy of it before its buffer is given away or freed."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet


def hold(array: Any, holder: Any) -> None:
    """Have ``holder.part_with(array)`` called before the array is donated or deleted.

    Args:
      array: an ``ArrayImpl``.
      holder: is referred to weakly.
    """
    vars(array).setdefault("_holders", WeakSet()).add(holder)


def release(array: Any) -> None:
    """Tell those who hold an array that its buffer goes."""
    holders = vars(array).pop("_holders", None)
    if holders is not None:
        for holder in list(holders):
            holder.part_with(array)
