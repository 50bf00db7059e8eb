"""Fingerprint of the source files that lowering depends on."""

from __future__ import annotations

import os
import sys
import time
from functools import cache
from typing import Final

import ml_dtypes
import numpy as np

from .._base.digest import digest
from .._base.identity import ROOT

# A file changed after this time may differ from the source that this process imported.
_STARTED: Final = time.time_ns() - 10 * 10**9


@cache
def stamp() -> bytes | None:
    """A digest that is equal in two processes only if they imported the same sources.

    It covers the data that version control systems use to detect changed files: names, sizes, times
    of writing and of change, and inodes. The last two cannot be forged without the clock. ``None``
    if the files may differ from the imported ones, or if there are no files.
    """
    return None if _stamp is None else digest(repr(_stamp).encode())


def _take(started: int) -> tuple | None:
    path = getattr(sys.modules[ROOT], "__file__", None)
    if path is None or not os.path.isfile(path):
        return None
    try:
        entries = sorted(_files(os.path.dirname(os.path.abspath(path)), ""))
    except OSError:
        return None
    if any(max(written, changed) > started for _, _, written, changed, _ in entries):
        return None
    return (ROOT, path, sys.version, np.__version__, ml_dtypes.__version__, *entries)


def _files(folder: str, name: str) -> list[tuple]:
    listed = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    listed.extend(_files(entry.path, f"{name}{entry.name}/"))
            else:
                s = entry.stat()
                listed.append(
                    (name + entry.name, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino)
                )
    return listed


# Computed during the import: later the files may be of another version.
_stamp: tuple | None = _take(_STARTED)
