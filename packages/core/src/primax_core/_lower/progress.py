"""A line about a compilation that takes long, on a terminal or in a notebook."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from .._base.config import state

DELAY: Final = 3.0
"""Seconds after which a compilation counts as long."""
PERIOD: Final = 1.0
"""Seconds between two updates of the line."""

_one_line: Final = threading.Lock()  # of several compilations at once, one is shown


def _stream() -> Any:
    """The stream for the line, or ``None`` if it must not be written."""
    choice = state.compilation_progress
    stream = sys.stderr
    if choice == "off" or stream is None:
        return None
    if choice == "on" or "ipykernel" in sys.modules:
        return stream
    isatty = getattr(stream, "isatty", None)
    try:
        return stream if isatty is not None and isatty() else None
    except ValueError:  # the stream is closed
        return None


@contextmanager
def shown(lowered: Any) -> Iterator[None]:
    """Context manager around a compilation, whose name, source line and time it shows.

    The first line appears after :data:`DELAY` seconds and is removed at the end. The option
    ``compilation_progress`` switches it.
    """
    stream = _stream()
    if stream is None:
        yield
        return
    jaxpr = lowered.jaxpr
    info = None if jaxpr is None else jaxpr.debug_info
    where = f" ({info.filename}:{info.line})" if info is not None and info.filename else ""
    line = _Line(stream, f"Compiling {lowered.name}{where}")
    line.start()
    try:
        yield
    finally:
        line.end()


class _Line(threading.Thread):
    """A thread that writes the line and updates its time."""

    def __init__(self, stream: Any, text: str) -> None:
        super().__init__(name="primax-progress", daemon=True)
        self._stream = stream
        self._text = text
        self._begun = time.perf_counter()
        self._ended = threading.Event()

    def run(self) -> None:
        if self._ended.wait(DELAY) or not _one_line.acquire(blocking=False):
            return
        try:
            width = 0
            while True:
                seconds = time.perf_counter() - self._begun
                text = f"{self._text}: {seconds:.0f} s"
                self._write("\r" + text)
                width = max(width, len(text))
                if self._ended.wait(PERIOD):
                    break
            self._write("\r" + " " * width + "\r")
        finally:
            _one_line.release()

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the stream was closed
            pass

    def end(self) -> None:
        """Remove the line before anything else is written."""
        self._ended.set()
        if time.perf_counter() - self._begun >= DELAY:
            self.join()
