"""The limit of the system on the number of memory mappings of a process.

Each executable has several mappings. At the limit LLVM cannot allocate memory for the next one, and
the process ends.
"""

from __future__ import annotations

import gc
from typing import Final

from .._base import caches
from .._base.locks import new_lock

# Mappings are counted again after so many executables. That takes 0.3 ms, and 20 ms at the limit.
_BETWEEN: Final = 32
_EVICT, _REFUSE = 0.75, 0.95
_UNLIMITED: Final = 1 << 62


class _Budget:
    """The number of executables that can be loaded before mappings are counted again."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.left = 0

    def spend(self) -> None:
        """Make room for the mappings of one more executable.

        Above three quarters of the limit, all caches of the library are emptied: executables that
        no function in use needs are freed.

        Raises:
          RuntimeError: if the remaining mappings do not suffice.
        """
        self.left -= 1
        if self.left > 0:
            return
        with self.lock:
            limit = _limit()
            count = 0 if limit == _UNLIMITED else _count()
            if count > _EVICT * limit:
                caches.clear_all()
                gc.collect()
                count = _count()
            if count > _REFUSE * limit:
                raise RuntimeError(
                    f"this process has {count} memory mappings, and the system allows {limit} "
                    "(vm.max_map_count); an executable needs several. Release functions that are "
                    "no longer needed (del, primax.clear_caches()), or compile one function for "
                    "all values (arguments instead of closures, fewer different shapes)."
                )
            self.left = _BETWEEN


def _limit() -> int:
    try:
        with open("/proc/sys/vm/max_map_count") as file:
            return int(file.read())
    except (OSError, ValueError):  # another system
        return _UNLIMITED


def _count() -> int:
    try:
        with open("/proc/self/maps", "rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return 0


budget: Final = _Budget()
