"""The thread that writes what was compiled while the program goes on.

Serialising holds the interpreter's lock, about 5 % of the time that compiling took. So it waits a
little, for the first results to be there, or for the end of the process if that comes before.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

Job = Callable[[], None]

_DELAY: Final = 1.0
# A program that compiles faster than its disk writes loses what is beyond these.
_MOST_WAITING: Final = 4096
_SECONDS_AT_EXIT: Final = 10.0
_SECONDS_FOR_ONE: Final = 60.0


class _Queue:
    """Jobs that wait, and the thread that will run them, if there is one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.hurry = threading.Event()
        self.jobs: deque[Job] = deque()
        self.thread: threading.Thread | None = None

    def add(self, job: Job) -> None:
        with self.lock:
            if len(self.jobs) >= _MOST_WAITING:
                return
            self.jobs.append(job)
            if self.thread is not None:
                return
            self.hurry.clear()
            thread = threading.Thread(target=self.run, name="primax-cache", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is ending
                self.jobs.clear()
                return
            self.thread = thread

    def run(self) -> None:
        self.hurry.wait(_DELAY)
        while True:
            with self.lock:
                if not self.jobs:
                    self.thread = None
                    return
                job = self.jobs.popleft()
            job()
            del job  # it holds an executable

    def finish(self, seconds: float | None) -> None:
        with self.lock:
            thread = self.thread
            self.hurry.set()
        if thread is not None:
            thread.join(seconds)


_queue = _Queue()


def later(job: Job) -> None:
    """Run a job, which must not raise, in a thread of its own and in order."""
    _queue.add(job)


def finish(seconds: float | None = None) -> None:
    """Wait until everything is written, or for so many seconds."""
    _queue.finish(seconds)


@atexit.register
def finish_at_exit() -> None:
    """Wait at the end of the process, for a while."""
    finish(_SECONDS_AT_EXIT)
    _queue.jobs.clear()
    # Ending the interpreter while its thread is inside jaxlib would abort the process.
    finish(_SECONDS_FOR_ONE)


def _after_fork() -> None:
    # The parent's thread writes what was waiting; its lock may have been held.
    global _queue
    _queue = _Queue()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
