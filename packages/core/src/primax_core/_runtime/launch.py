"""Launch of executables on concrete arrays: the last step of every eager call."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from .array_text import deleted_text
from .failures import explained
from .jaxlib_versions import collect_garbage

_EXECUTIONS_BETWEEN_COLLECTIONS: Final = 256
garbage_is_due: Final[Callable[[], bool]] = itertools.cycle(
    (True,) + (False,) * (_EXECUTIONS_BETWEEN_COLLECTIONS - 1)
).__next__
"""True once in 256 executions. jaxlib records the Python stack of each execution and may release
the record in another thread, where it cannot be freed; ``collect_garbage`` frees it."""


class Launchable(Protocol):
    """An executable whose arguments are exactly the buffers of the caller's arguments."""

    execute: Callable[[list[Any]], Any]
    handlers: list[Callable[..., Any]]


def launch(entry: Launchable, buffers: list[Any], args: Sequence[Any], name: str) -> list[Any]:
    """Run an executable on raw buffers and wrap its results.

    Args:
      args: the arrays of the buffers, for error messages.
      name: the name of the operation, for error messages.

    Raises:
      RuntimeError: if an argument was deleted.
      Exception: the exception of a callback.
    """
    if garbage_is_due():
        collect_garbage()
    try:
        return entry.execute(buffers).consume_with_handlers(entry.handlers)
    except Exception as e:
        explain_failure(e, args, name)
        raise


def explain_failure(error: Exception | None, args: Sequence[Any], name: str) -> None:
    """Raise a more precise error if an argument was deleted or a callback failed."""
    if error is not None and (cause := explained(error)) is not error:
        raise cause from cause.__cause__
    for i, a in enumerate(args):
        if a._buf.is_deleted():
            if getattr(a._buf, "lost", None):  # the array of a left generation
                a._check_alive()
            raise RuntimeError(
                f"{deleted_text(a)} It is argument number {i} of "
                f"{name or 'the operation'}: it was donated to an earlier call or deleted. Use the "
                "result of that call, or do not donate it."
            ) from error
