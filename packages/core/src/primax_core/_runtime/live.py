"""The arrays that exist."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from typing import Any

from .._base.caches import cached_values
from .array import ArrayImpl
from .devices import client_of


def live_arrays(platform: str | None = None) -> list[ArrayImpl]:
    """The arrays of a platform (of the default one without a name) that have not been deleted.

    A tool for finding leaks: it asks the garbage collector for all objects there are, so that
    arrays themselves need no register. Arrays that the library keeps for itself are left out.

    Raises:
      RuntimeError: if there is no such platform.
    """
    client = client_of(platform)
    own = {id(x) for x in _flat(cached_values())}
    return [
        x
        for x in gc.get_objects()
        if type(x) is ArrayImpl
        and hasattr(x, "_buf")
        and not x._buf.is_deleted()
        and x.sharding._devices[0].client is client
        and id(x) not in own
    ]


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if type(value) in (list, tuple):
            yield from value
        else:
            yield value
