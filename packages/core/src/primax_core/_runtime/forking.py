"""After ``os.fork``: the child has none of the threads that XLA compiles and computes with.

What would wait for them forever raises there instead. Values that were computed before can be read.
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
    raise AssertionError("only a forked process refuses to run programs")


def _check_ready(self: ArrayImpl, error: type[Exception] = RuntimeError) -> None:
    _check_alive(self, error)
    if not self._buf.is_ready():
        devices.check_not_forked()


def _after_fork() -> None:
    if devices.note_fork():
        # Executables are found by these keys, wherever they are kept.
        renew_keys()
        in_flight.forget_all()
        Executable.__call__ = _refuse
        ArrayImpl._check_alive = _check_ready


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
