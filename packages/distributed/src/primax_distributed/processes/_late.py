"""Reports of late processes, by counts of the programs that each has begun.

Processes that compute together begin the same programs in the same order. One that has begun fewer
than the others for some seconds is late, and its coordinator tells the others where it is.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from types import FrameType
from typing import Any, Final

_log: Final = logging.getLogger("primax_distributed")
_NAMES: Final = 4096
_STILL: Final = 1.0


class Counts:
    """The programs over several processes that this one has begun.

    ``begin`` costs about 0.3 µs a program.
    """

    def __init__(self) -> None:
        self.begun: int = 0
        self._names: list[str] = [""] * _NAMES
        self._since = time.monotonic()
        self._thread = threading.get_ident()
        self._seen = 0

    def begin(self, name: str) -> None:
        """Count a program. It is called before each run."""
        self.begun = n = self.begun + 1
        self._names[n % _NAMES] = name

    def restart(self) -> None:
        """Begin at 0, in a new generation; this thread is the one that computes."""
        self.begun = self._seen = 0
        self._since = time.monotonic()
        self._thread = threading.get_ident()

    def name(self, number: int) -> str:
        """The name of a program by its number, if it is recent."""
        recent = 0 < number <= self.begun < number + _NAMES
        return self._names[number % _NAMES] if recent else ""

    def report(self) -> tuple[int, str]:
        """The count, and the line of the computing thread if the count stands still."""
        begun, now = self.begun, time.monotonic()
        if begun != self._seen:
            self._seen, self._since = begun, now
        return begun, place_of(self._thread) if now - self._since > _STILL else ""

    def tell(self, rank: int, late: list[list[Any]]) -> None:
        """Log which ranks this one waits for."""
        seconds = time.monotonic() - self._since
        for text in late_texts(rank, late, self.name, seconds):
            _log.warning(text)


def late_texts(rank: int, late: list[list[Any]], name: Any, seconds: float) -> list[str]:
    """A sentence for each rank that is late.

    >>> late_texts(0, [[1, 30, "loader.py:34 in next_batch"]], lambda n: "train_step", 3.0)
    ['rank 0 waits in program 31 (train_step) for 3.0 s: rank 1 has begun only 30; it is at \
loader.py:34 in next_batch']
    """
    texts = []
    for other, begun, where in late:
        title = name(begun + 1)
        program = f"program {begun + 1}" + (f" ({title})" if title else "")
        texts.append(
            f"rank {rank} waits in {program} for {seconds:.1f} s: rank {other} has begun only "
            f"{begun}; it is at {where or 'an unknown place'}"
        )
    return texts


def place_of(thread: int) -> str:
    """File, line, function and source of the innermost frame of a thread outside of libraries."""
    frame: FrameType | None = sys._current_frames().get(thread)
    innermost = frame
    while frame is not None and _is_library(frame):
        frame = frame.f_back
    frame = frame or innermost
    if frame is None:
        return ""
    import linecache  # only for the report

    path, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(path, line).strip()
    text = f"{path.rpartition('/')[2]}:{line} in {frame.f_code.co_name}"
    return f"{text}: {source}" if source else text


_LIBRARIES: Final = ("primax", "numpy", "jaxlib", "threading", "importlib")


def _is_library(frame: FrameType) -> bool:
    module = frame.f_globals.get("__name__", "")
    root = str(module).partition(".")[0]
    return root.startswith("primax") or root in _LIBRARIES
