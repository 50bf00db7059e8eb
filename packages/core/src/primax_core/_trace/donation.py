"""Who holds an array, and wants a copy of it before its buffer is given away or freed."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet


def on_donation(array: Any, holder: Any) -> None:
    """Have ``holder.copy_before_donation(array)`` called before the array is donated or deleted.

    Args:
      array: an ``ArrayImpl``.
      holder: is referred to weakly.
    """
    vars(array).setdefault("_donation_listeners", WeakSet()).add(holder)


def notify_donation(array: Any) -> None:
    """Tell those who hold an array that its buffer goes."""
    holders = vars(array).pop("_donation_listeners", None)
    if holders is not None:
        for holder in list(holders):
            holder.copy_before_donation(array)
