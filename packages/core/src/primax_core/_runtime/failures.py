"""What callbacks raised: jaxlib keeps the text alone.

An exception is noted under a number that the text carries, and found again where the failure of the
program comes to light.
"""

from __future__ import annotations

import itertools
import threading
from typing import Final, NoReturn

from .._base import caches
from .._base.locks import new_lock
from .._base.source import is_internal
from .jaxlib_errors import JaxRuntimeError


class _Inside(threading.local):
    depth = 0


inside: Final = _Inside()
"""Whether this thread runs a callback of a compiled program: how many, one within another."""


class _Interpreter:
    ends = False


interpreter: Final = _Interpreter()
"""Whether it ends: threads that still compute are then ended with ``SystemExit``."""


class Failure:
    """An exception that a callback raised."""

    __slots__ = ("error", "text", "what", "told")

    def __init__(self, error: BaseException, what: str):
        self.error = error
        self.what = what
        self.text = _text_of(error)
        self.told = False


_KEPT: Final = 256
_failures: Final[dict[int, Failure]] = {}
_numbers: Final = itertools.count(1)
_lock: Final = new_lock()
_MARK: Final = "[callback failure "
caches.register(_failures.clear)


def note_failure(error: BaseException, what: str) -> str:
    """Keep an exception; the text leads back to it."""
    _drop_own_frames(error)
    with _lock:
        number = next(_numbers)
        _failures[number] = Failure(error, what)
        if len(_failures) > _KEPT:
            del _failures[next(iter(_failures))]
    return f"{_MARK}{number}] {type(error).__name__}: {error}"


def _drop_own_frames(error: BaseException) -> None:
    """Let the traceback begin with the user's function."""
    entry = error.__traceback__
    while entry is not None and is_internal(entry.tb_frame.f_code):
        entry = entry.tb_next
    if entry is not None or isinstance(error, (TypeError, ValueError)):
        error.__traceback__ = entry


def failure_of(error: BaseException) -> Failure | None:
    """The failure of a callback that made a program fail, if that is why it did."""
    _, found, rest = str(error).partition(_MARK)
    return _failures.get(int(rest.partition("]")[0])) if found else None


def explained(error: BaseException) -> BaseException:
    """The error for the user in place of jaxlib's: caused by what a callback raised, if it was."""
    if interpreter.ends and SystemExit.__name__ in str(error):
        return SystemExit()
    failure = failure_of(error)
    if failure is None:
        return error
    failure.told = True
    return from_callback(failure.error, failure.what, failure.text)


def from_callback(error: BaseException, what: str, text: str | None = None) -> JaxRuntimeError:
    """The error of a program whose callback raised; its cause is what was raised."""
    if text is None:
        text = _text_of(error)
    raised = JaxRuntimeError(
        f"INTERNAL: CpuCallback error calling callback: {text}\n\nThis was raised in {what}."
    )
    raised.__cause__ = error
    return raised


def retell(error: BaseException) -> NoReturn:
    """Raise :func:`explained` of an error that is handled."""
    told = explained(error)
    raise told from told.__cause__


def _text_of(error: BaseException) -> str:
    import traceback  # only for error messages

    return "".join(traceback.format_exception(error)).rstrip()
