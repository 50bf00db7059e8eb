"""Exceptions of callbacks: jaxlib keeps only their text.

An exception is recorded under a number in that text, and looked up when the failure of the
executable is raised.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Final, NoReturn

from .._base import caches
from .._base.locks import new_lock
from .._base.source import is_internal
from .jaxlib_errors import JaxRuntimeError


class _Inside(threading.local):
    depth = 0


inside: Final = _Inside()
"""Number of nested callbacks that this thread is running."""


class _Interpreter:
    ends = False


interpreter: Final = _Interpreter()
"""True during shutdown: threads that still compute are then stopped with ``SystemExit``."""


class Failure:
    """An exception of a callback."""

    __slots__ = ("error", "text", "what", "reported")

    def __init__(self, error: BaseException, what: str):
        self.error = error
        self.what = what
        self.text = _text_of(error)
        self.reported = False


explain_other: Callable[[BaseException], BaseException] | None = None
"""Replaces errors that no callback caused; for failures of other processes."""

_LIMIT: Final = 256
_failures: Final[dict[int, Failure]] = {}
_numbers: Final = itertools.count(1)
_lock: Final = new_lock()
_MARK: Final = "[callback failure "
caches.register(_failures.clear)


def note_failure(error: BaseException, what: str) -> str:
    """Record an exception; return a text with its number."""
    _drop_own_frames(error)
    with _lock:
        number = next(_numbers)
        _failures[number] = Failure(error, what)
        if len(_failures) > _LIMIT:
            del _failures[next(iter(_failures))]
    return f"{_MARK}{number}] {type(error).__name__}: {error}"


def _drop_own_frames(error: BaseException) -> None:
    """Begin the traceback at the user's function."""
    entry = error.__traceback__
    while entry is not None and is_internal(entry.tb_frame.f_code):
        entry = entry.tb_next
    if entry is not None or isinstance(error, (TypeError, ValueError)):
        error.__traceback__ = entry


def failure_of(error: BaseException) -> Failure | None:
    """The failure of a callback that caused an executable to fail, or ``None``."""
    _, mark, rest = str(error).partition(_MARK)
    return _failures.get(int(rest.partition("]")[0])) if mark else None


def explained(error: BaseException) -> BaseException:
    """The error for the user in place of jaxlib's; its cause is the exception of a callback."""
    if interpreter.ends and SystemExit.__name__ in str(error):
        return SystemExit()
    failure = failure_of(error)
    if failure is None:
        return error if explain_other is None else explain_other(error)
    failure.reported = True
    return from_callback(failure.error, failure.what, failure.text)


def from_callback(error: BaseException, what: str, text: str | None = None) -> JaxRuntimeError:
    """The error of an executable whose callback raised an exception, which is its cause."""
    if text is None:
        text = _text_of(error)
    raised = JaxRuntimeError(
        f"INTERNAL: CpuCallback error calling callback: {text}\n\nThis was raised in {what}."
    )
    raised.__cause__ = error
    return raised


def raise_explained(error: BaseException) -> NoReturn:
    """Raise :func:`explained` of the handled error."""
    error_for_user = explained(error)
    raise error_for_user from error_for_user.__cause__


def _text_of(error: BaseException) -> str:
    import traceback  # only for error messages

    return "".join(traceback.format_exception(error)).rstrip()
