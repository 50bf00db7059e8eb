"""The state of the source files that lowering depends on, to be told from any other."""

from __future__ import annotations

import os
import sys
import time
from functools import cache
from typing import Final

import ml_dtypes
import numpy as np

from .._base.digest import digest

ROOT: Final = __name__.partition(".")[0]
"""The package that this is part of; another one in a vendored copy."""

# A file that changed later than this may not be what this process has imported.
_STARTED: Final = time.time_ns() - 10 * 10**9


@cache
def stamp() -> bytes | None:
    """A digest that is equal in two processes only if they have imported the same sources.

    It holds what a version control system looks at to find out which files changed: names, sizes,
    times of writing and of change, and inodes. The last two cannot be forged without the clock.
    ``None`` while the files may differ from what was imported, or where there are no files.
    """
    return None if _stamp is None else digest(repr(_stamp).encode())


def _take(started: int) -> tuple | None:
    path = getattr(sys.modules[ROOT], "__file__", None)
    if path is None or not os.path.isfile(path):
        return None
    try:
        found = sorted(_files(os.path.dirname(os.path.abspath(path)), ""))
    except OSError:
        return None
    if any(max(written, changed) > started for _, _, written, changed, _ in found):
        return None
    return (ROOT, path, sys.version, np.__version__, ml_dtypes.__version__, *found)


def _files(folder: str, name: str) -> list[tuple]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    found.extend(_files(entry.path, f"{name}{entry.name}/"))
            else:
                s = entry.stat()
                found.append((name + entry.name, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino))
    return found


# Taken while this is imported: later the files may be another version's already.
_stamp: tuple | None = _take(_STARTED)
