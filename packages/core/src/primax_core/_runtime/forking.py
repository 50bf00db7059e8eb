"""State after ``os.fork``: the child has none of XLA's threads.

Operations that would wait for them raise an error. Computed values can still be read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NoReturn

from .._base.config import renew_keys
from . import devices, in_flight
from .array import ArrayImpl
from .dispatch import Executable

_check_alive = ArrayImpl._check_alive


def _refuse(self: Executable, args: Sequence[ArrayImpl]) -> NoReturn:
    devices.check_not_forked()
    raise AssertionError("only a forked process uses this function")


def _check_ready(self: ArrayImpl, error: type[Exception] = RuntimeError) -> None:
    _check_alive(self, error)
    if not self._buf.is_ready():
        devices.check_not_forked()


def _after_fork() -> None:
    if devices.note_fork():
        # Executables are cached under these keys.
        renew_keys()
        in_flight.forget_all()
        Executable.__call__ = _refuse
        ArrayImpl._check_alive = _check_ready


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
