"""Programs under way that do more than compute: waiting for them, and keeping their order.

Arrays tell when a program has ended, but one that only prints has none. So such a program runs with
jaxlib's token, which is kept until somebody waits for it.
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
from .failures import explained, failure_of, inside

_KEPT: Final = 256


class _Started(threading.local):
    """Tokens of what a thread started; XLA's threads that run callbacks have some of their own, so
    a callback that runs programs never waits for the program that called it."""

    def __init__(self) -> None:
        self.tokens: _Tokens = _Tokens()
        with _lock:
            _all.add(self.tokens)


class _Tokens(deque):
    """The tokens of one thread, oldest first, and that of its last ordered program."""

    last: Any = None

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


_lock: Final = new_lock()
_all: Final[weakref.WeakSet[_Tokens]] = weakref.WeakSet()
_started: Final = _Started()
_at_exit: list[Callable] = []


def effectful(execute: Callable[..., Any], ordered: bool) -> Callable[[Sequence[Any]], Any]:
    """How an executable with effects is run, in place of jaxlib's ``execute_sharded``."""
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
        if len(tokens) > _KEPT:
            _wait(tokens.popleft())
        return results

    return run


def _wait(token: Any) -> BaseException | None:
    try:
        token.block_until_ready()
    except Exception as e:  # whoever waits for everything is told
        return e
    return None


def barrier() -> None:
    """Wait until all effects of programs started by this process have happened.

    Raises:
      JaxRuntimeError: if a program failed and nobody was told yet.
      RuntimeError: when called by a callback, which would wait for itself.
    """
    if inside.depth:
        raise RuntimeError(
            "effects_barrier was called inside a callback: it would wait for the program that "
            "called it. Call it after that program"
        )
    errors = _wait_for_all()
    if errors:
        raise explained(errors[0])


def _wait_for_all() -> list[BaseException]:
    """Wait; the errors that nobody was told of."""
    with _lock:
        threads = [(tokens, len(tokens)) for tokens in _all]
    found = []
    for tokens, started in threads:
        for _ in range(started):  # other threads go on starting programs
            try:
                token = tokens.popleft()
            except IndexError:  # another thread waits too
                break
            error = _wait(token)
            failure = None if error is None else failure_of(error)
            if error is not None and (failure is None or not failure.told):
                found.append(error)
        tokens.last = None
    return found


def forget_all() -> None:
    """Called in a process that was just forked: what was under way goes on in the other one."""
    for tokens in list(_all):
        tokens.clear()
        tokens.last = None


def _finish() -> None:
    """At exit: let effects happen, and do not let failures pass in silence."""
    for error in _wait_for_all():
        failure = failure_of(error)
        if failure is not None and not failure.told:
            failure.told = True
            print(
                f"{failure.text}\n\nThis was raised in {failure.what}; the program ended before "
                "anybody waited for it (effects_barrier).",
                file=sys.stderr,
            )
