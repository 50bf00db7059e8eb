"""The background thread that writes executables.

Serialization holds the interpreter's lock, for about 5 % of the compilation time. So the thread
waits for a second, to not delay the first results, or until the process ends.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from ..._base.identity import CACHE_FOLDER

Job = Callable[[], None]

_DELAY: Final = 1.0
# If executables are compiled faster than they are written, those beyond this number are dropped.
_MOST_WAITING: Final = 4096
_SECONDS_AT_EXIT: Final = 10.0
_SECONDS_FOR_ONE: Final = 60.0


class _Queue:
    """Pending jobs, and the thread that runs them, if there is one."""

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
            thread = threading.Thread(target=self.run, name=f"{CACHE_FOLDER}-cache", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is shutting down
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
            del job  # it references an executable

    def finish(self, seconds: float | None) -> None:
        with self.lock:
            thread = self.thread
            self.hurry.set()
        if thread is not None:
            thread.join(seconds)


_queue = _Queue()


def later(job: Job) -> None:
    """Run a job, which must not raise, in the background thread, in order."""
    _queue.add(job)


def finish(seconds: float | None = None) -> None:
    """Wait until everything is written, at most ``seconds``."""
    _queue.finish(seconds)


@atexit.register
def finish_at_exit() -> None:
    """Wait at the end of the process, for a limited time."""
    finish(_SECONDS_AT_EXIT)
    _queue.jobs.clear()
    # Shutting down the interpreter while its thread is inside jaxlib would abort the process.
    finish(_SECONDS_FOR_ONE)


def _after_fork() -> None:
    # The parent's thread writes the pending jobs; its lock may be held.
    global _queue
    _queue = _Queue()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
