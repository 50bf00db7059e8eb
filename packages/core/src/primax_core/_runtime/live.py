"""Enumeration of the existing arrays."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from typing import Any

from .._base.caches import cached_values
from .array import ArrayImpl
from .devices import client_of


def live_arrays(platform: str | None = None) -> list[ArrayImpl]:
    """The arrays of a platform that are not deleted.

    A tool for finding leaks: it searches all objects of the garbage collector, so that arrays
    need no registry. Arrays in the library's caches are not listed.

    Args:
      platform: the platform; by default the default one.

    Returns:
      A list of arrays, in no particular order.

    Raises:
      RuntimeError: if the platform is not available.

    The search takes time in proportion to the number of Python objects.

    >>> from primax_core import device_put, live_arrays
    >>> x = device_put(1.0)
    >>> any(array is x for array in live_arrays())
    True
    """
    client = client_of(platform)
    own = {id(x) for x in _flat(cached_values())}
    return [
        x
        for x in gc.get_objects()
        if issubclass(type(x), ArrayImpl)
        and hasattr(x, "_spec")
        and not x.is_deleted()
        and x.sharding._devices[0].client is client
        and id(x) not in own
    ]


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if type(value) in (list, tuple):
            yield from value
        else:
            yield value
