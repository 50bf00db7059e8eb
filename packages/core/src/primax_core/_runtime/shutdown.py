"""Shutdown of the interpreter while other threads compute.

Before Python 3.14 the interpreter stops a daemon thread when it next requests the interpreter's
lock. Inside jaxlib, with C++ frames on the thread's stack, this aborts the process. Therefore, at
exit, ``SystemExit`` is raised in the threads inside the library, and they are waited for.
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
# Arrays are also freed outside the library, so a thread that is not inside now may enter it.
_LOOKS: Final = 5
# A thread that catches the ``SystemExit`` may continue, perhaps to sleep.
_SECONDS_TO_END: Final = 0.5
# Longer than the remaining exit handlers, so that no thread runs between them.
_UNDISTURBED: Final = 0.2
_FOLDER: Final = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def _other_threads() -> dict[int, list[types.CodeType]]:
    """The code objects on the stack of each other thread, innermost first."""
    stacks = {}
    for ident, frame in sys._current_frames().items():
        codes = stacks[ident] = []
        while frame is not None:
            codes.append(frame.f_code)
            frame = frame.f_back
    stacks.pop(threading.get_ident(), None)
    return stacks


class _Ending:
    """The threads in which ``SystemExit`` was raised, and the times."""

    def __init__(self) -> None:
        self.stopped: dict[int, float] = {}

    def is_busy(self, ident: int, codes: list[types.CodeType]) -> bool:
        """Return True if a thread must be waited for; raise ``SystemExit`` in it if possible."""
        now, last = time.monotonic(), self.stopped.get(ident)
        recently = last is not None and now - last < _SECONDS_TO_END
        if not any(c.co_filename.startswith(_FOLDER) for c in codes):
            return recently
        # A callback finishes normally, and then the executable that waits for it.
        if not recently and HostCall.__call__.__code__ not in codes:
            self.stopped[ident] = now
            _end(ident)
        return True

    def watch_finalisers(self) -> None:
        """Repeat and hide a ``SystemExit`` that Python only reports, and then ignores.

        This happens in finalizers and in the callbacks of weak references.
        """
        report = sys.unraisablehook

        def hook(unraisable: sys.UnraisableHookArgs) -> None:
            if unraisable.exc_type is not SystemExit:
                report(unraisable)
            self.stopped.pop(threading.get_ident(), None)

        sys.unraisablehook = hook

    def wait(self) -> None:
        """Wait until no other thread is inside the library, and keep all of them outside."""
        looks, deadline = 0, time.monotonic() + _PATIENCE
        while threads := _other_threads():
            busy = [self.is_busy(ident, codes) for ident, codes in threads.items()]
            looks = 0 if any(busy) else looks + 1
            if looks == _LOOKS or time.monotonic() > deadline:
                # Later exit handlers may release the interpreter's lock. A thread that continues
                # then ends at its next instruction, before it can enter the library.
                for ident in threads:
                    _end(ident)
                break
            time.sleep(_STEP)


def _end(ident: int) -> None:
    """Raise ``SystemExit`` in a thread, at its next Python instruction."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(SystemExit))


def _end_threads() -> None:
    """End the threads inside the library, if the interpreter itself calls this at its end."""
    if sys._getframe().f_back is not None:
        # ``atexit._run_exitfuncs()``, which tests of exit handlers call, also drops all handlers.
        threading._register_atexit(atexit.register, _end_threads)  # type: ignore[attr-defined]
        return
    writer.finish_at_exit()  # its thread is inside the library too
    interpreter.ends = True
    if len(sys._current_frames()) > 1:
        sys.setswitchinterval(max(_UNDISTURBED, sys.getswitchinterval()))
        ending = _Ending()
        ending.watch_finalisers()
        ending.wait()


if sys.version_info < (3, 14):
    atexit.register(_end_threads)
