"""Callbacks that copy an array before its buffer is donated or deleted."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet


def on_donation(array: Any, holder: Any) -> None:
    """Register ``holder`` to be called before an array is donated or deleted.

    The call is ``holder.copy_before_donation(array)``.

    Args:
      array: an ``ArrayImpl``.
      holder: the object to call; it is referenced weakly.
    """
    vars(array).setdefault("_donation_listeners", WeakSet()).add(holder)


def notify_donation(array: Any) -> None:
    """Call the registered holders of an array before its buffer is donated or deleted."""
    attributes = vars(array)
    parts = attributes.pop("_own_parts", None)  # those of an array on several devices
    if parts is not None:
        parts.copy_before_donation()
    holders = attributes.pop("_donation_listeners", None)
    if holders is not None:
        for holder in list(holders):
            holder.copy_before_donation(array)
