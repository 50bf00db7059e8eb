"""The end of the interpreter while other threads compute.

Before Python 3.14 the interpreter ends a daemon thread where that next wants its lock. Within
jaxlib, whose C++ stands on the thread's stack, this aborts the process. So at the end, threads that
are in the library are told to end, as by ``sys.exit``, and waited for.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import time
import types
from typing import Final

from .disk import writer
from .failures import interpreter
from .host_callbacks import HostCall

_PATIENCE: Final = 10.0
_STEP: Final = 0.001
# Arrays are also freed outside the library: a thread that is not seen inside may come from there.
_LOOKS: Final = 5
# A thread that was told to end but catches everything goes on, perhaps to sleep.
_SECONDS_TO_END: Final = 0.5
# Longer than the rest of the exit handlers take, so that no thread runs between them.
_UNDISTURBED: Final = 0.2
_FOLDER: Final = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def _other_threads() -> dict[int, list[types.CodeType]]:
    """What each thread but this one executes, innermost first."""
    found = {}
    for ident, frame in sys._current_frames().items():
        codes = found[ident] = []
        while frame is not None:
            codes.append(frame.f_code)
            frame = frame.f_back
    found.pop(threading.get_ident(), None)
    return found


class _Ending:
    """Which threads were told to end, and when."""

    def __init__(self) -> None:
        self.told: dict[int, float] = {}

    def is_busy(self, ident: int, codes: list[types.CodeType]) -> bool:
        """Whether a thread has to be waited for; it is told to end where it can be."""
        now, last = time.monotonic(), self.told.get(ident)
        lately = last is not None and now - last < _SECONDS_TO_END
        if not any(c.co_filename.startswith(_FOLDER) for c in codes):
            return lately
        # A callback ends by itself, and then the program that waits for it.
        if not lately and HostCall.__call__.__code__ not in codes:
            self.told[ident] = now
            _end(ident)
        return True

    def watch_finalisers(self) -> None:
        """Tell threads again, and show nothing, where Python reports what is raised and goes on.

        It does so in finalisers and in the callbacks of weak references.
        """
        report = sys.unraisablehook

        def hook(unraisable: sys.UnraisableHookArgs) -> None:
            if unraisable.exc_type is not SystemExit:
                report(unraisable)
            self.told.pop(threading.get_ident(), None)

        sys.unraisablehook = hook

    def wait(self) -> None:
        """Wait until no other thread is in the library."""
        looks, deadline = 0, time.monotonic() + _PATIENCE
        while looks < _LOOKS and time.monotonic() < deadline:
            threads = _other_threads()
            if not threads:
                break
            busy = [self.is_busy(ident, codes) for ident, codes in threads.items()]
            looks = 0 if any(busy) else looks + 1
            time.sleep(_STEP)


def _end(ident: int) -> None:
    """Raise ``SystemExit`` in a thread, where it next runs Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(SystemExit))


def _end_threads() -> None:
    writer.finish_at_exit()  # its thread is in the library too
    interpreter.ends = True
    if len(sys._current_frames()) > 1:
        sys.setswitchinterval(max(_UNDISTURBED, sys.getswitchinterval()))
        ending = _Ending()
        ending.watch_finalisers()
        ending.wait()


if sys.version_info < (3, 14):
    atexit.register(_end_threads)
