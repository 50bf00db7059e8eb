"""Running executables with side effects: waiting for them, and their order.

An executable with results is waited for through its arrays, but one that only prints has none. It
runs with jaxlib's token, which is stored until it is waited for.
"""

from __future__ import annotations

import atexit
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from .._base.locks import new_lock
from .._base.weak_sets import members
from .failures import explained, failure_of, inside

_LIMIT: Final = 256


class _Started(threading.local):
    """Tokens of executables started by a thread. XLA's callback threads have their own, so a
    callback that runs executables never waits for the executable that called it."""

    def __init__(self) -> None:
        self.tokens: _Tokens = _Tokens()
        with _lock:
            _all.add(self.tokens)


class _Tokens(deque):
    """The tokens of one thread, oldest first, and the token of its last ordered executable."""

    last: Any = None

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


_lock: Final = new_lock()
_all: Final[weakref.WeakSet[_Tokens]] = weakref.WeakSet()
_started: Final = _Started()
_at_exit: list[Callable] = []


def effectful(execute: Callable[..., Any], ordered: bool) -> Callable[[Sequence[Any]], Any]:
    """Runner of an executable with effects, in place of jaxlib's ``execute_sharded``."""
    if not _at_exit:
        _at_exit.append(atexit.register(_finish))

    def run(bufs: Sequence[Any]) -> Any:
        tokens = _started.tokens
        if ordered and tokens.last is not None:
            _wait(tokens.last)
        results = execute(bufs, with_tokens=True)
        token = results.consume_token()
        tokens.append(token)
        if ordered:
            tokens.last = token
        if len(tokens) > _LIMIT:
            _wait(tokens.popleft())
        return results

    return run


def _wait(token: Any) -> BaseException | None:
    try:
        token.block_until_ready()
    except Exception as e:  # raised by the barrier
        return e
    return None


def barrier() -> None:
    """Wait until all effects of executables started by this process have happened.

    Raises:
      JaxRuntimeError: if an executable failed and the error was not raised yet.
      RuntimeError: inside a callback, which would wait for itself.
    """
    if inside.depth:
        raise RuntimeError(
            "effects_barrier was called inside a callback: it would wait for the function that "
            "called it. Call it after that function returns."
        )
    errors = _wait_for_all()
    if errors:
        raise explained(errors[0])


def _wait_for_all() -> list[BaseException]:
    """Wait for all tokens; return the errors that were not raised yet."""
    with _lock:
        threads = [(tokens, len(tokens)) for tokens in members(_all)]
    errors = []
    for tokens, started in threads:
        for _ in range(started):  # other threads may start more executables
            try:
                token = tokens.popleft()
            except IndexError:  # another thread is waiting too
                break
            error = _wait(token)
            failure = None if error is None else failure_of(error)
            if error is not None and (failure is None or not failure.reported):
                errors.append(error)
        tokens.last = None
    return errors


def forget_all() -> None:
    """Called in a forked process: the executables are running in the parent process."""
    for tokens in members(_all):
        tokens.clear()
        tokens.last = None


def _finish() -> None:
    """At exit: wait for the effects, and print errors that were not raised."""
    for error in _wait_for_all():
        failure = failure_of(error)
        if failure is not None and not failure.reported:
            failure.reported = True
            print(
                f"{failure.text}\n\nThis was raised in {failure.what}; the process ended before "
                "its effects were waited for (effects_barrier).",
                file=sys.stderr,
            )
