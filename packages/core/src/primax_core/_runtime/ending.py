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

from .callbacks import HostCall

_PATIENCE: Final = 10.0
_STEP: Final = 0.001
# Longer than the rest of the exit handlers take, so that no thread comes back in meanwhile.
_UNDISTURBED: Final = 0.2
_FOLDER: Final = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def _frames_of(top: types.FrameType) -> list[types.CodeType]:
    found, frame = [], top
    while frame is not None:
        found.append(frame.f_code)
        frame = frame.f_back
    return found


def _inside() -> list[tuple[int, bool]]:
    """Threads, but this one, that are in the library, and whether they belong to XLA."""
    me, found = threading.get_ident(), []
    for ident, top in sys._current_frames().items():
        codes = [] if ident == me else _frames_of(top)
        if any(c.co_filename.startswith(_FOLDER) for c in codes):
            found.append((ident, codes[-1] is HostCall.__call__.__code__))
    return found


def _end_threads() -> None:
    if threading.active_count() == 1 and not _inside():
        return
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_UNDISTURBED)
    try:
        told: set[int] = set()
        deadline = time.monotonic() + _PATIENCE
        while (threads := _inside()) and time.monotonic() < deadline:
            for ident, is_xla in threads:
                if not is_xla and ident not in told:
                    told.add(ident)
                    _end(ident)
            time.sleep(_STEP)
    except BaseException:
        sys.setswitchinterval(interval)
        raise


def _end(ident: int) -> None:
    """Raise ``SystemExit`` in a thread, where it next runs Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(SystemExit))


if sys.version_info < (3, 14):
    atexit.register(_end_threads)
