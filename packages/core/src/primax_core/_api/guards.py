"""Context managers that guard what a program does, beyond setting one option."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, Final

from .._base import config
from .._base.config import Override
from .._base.locks import new_lock
from .._base.options import TRACE, Option
from .._runtime import collection
from .._runtime.jaxlib_errors import JaxRuntimeError


def disable_jit(disable: bool = True) -> Override:
    """Within this context (or function) nothing is compiled as a whole: ``jit`` and loops run
    their functions operation by operation, so that values can be looked at.

    >>> with disable_jit():
    ...     pass
    """
    return config.disable_jit(disable)


_TRANSFERS: Final = (
    config.transfer_guard_host_to_device,
    config.transfer_guard_device_to_device,
    config.transfer_guard_device_to_host,
)


class _Several:
    """Several overrides as one context manager or decorator."""

    def __init__(self, overrides: tuple[Override, ...]):
        self._overrides = overrides
        self._stacks: list[ExitStack] = []

    def __enter__(self) -> None:
        stack = ExitStack()
        for override in self._overrides:
            stack.enter_context(override)
        self._stacks.append(stack)

    def __exit__(self, *exc_info: object) -> None:
        self._stacks.pop().close()

    def __call__(self, fun: Callable) -> Callable:
        @wraps(fun)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fun(*args, **kwargs)

        return wrapper


def transfer_guard(new_val: str) -> _Several:
    """Context manager that says what transfers between host and devices do.

    Args:
      new_val: ``"allow"``; ``"log"`` or ``"disallow"`` implicit transfers, of operands that lie
        elsewhere; ``"log_explicit"`` or ``"disallow_explicit"`` also those asked for with
        ``device_put`` and ``device_get``.

    Reading an array that lies on a CPU is no transfer.

    >>> with transfer_guard("disallow"):
    ...     pass
    """
    return _Several(tuple(option(new_val) for option in _TRANSFERS))


# Threads

_guarding = new_lock()
_guards: list[int] = []  # identifiers of the thread whose guards are active


class thread_guard:
    """Context manager in which only this thread may be guarded: a sign that it alone computes.

    Raises:
      JaxRuntimeError: on entry, if a guard of another thread is active.

    >>> with thread_guard():
    ...     pass
    """

    def __init__(self, new_val: bool = True):
        self._override = config.thread_guard(new_val)
        self._on = bool(new_val)

    def __enter__(self) -> None:
        if self._on:
            with _guarding:
                here = threading.get_ident()
                if _guards and _guards[-1] != here:
                    raise JaxRuntimeError(
                        "FAILED_PRECONDITION: a thread guard of another thread is active. Guards "
                        "of several threads cannot be nested: leave the other one first"
                    )
                _guards.append(here)
        self._override.__enter__()

    def __exit__(self, *exc_info: object) -> None:
        self._override.__exit__(*exc_info)
        if self._on:
            with _guarding:
                _guards.pop()


def array_garbage_collection_guard(new_val: str | None) -> Override:
    """Context manager that says what is done about arrays that only the garbage collector frees.

    An array in a cycle of references keeps its memory until the collector finds the cycle.

    Args:
      new_val: ``"allow"``, ``"log"`` (an error is printed for each such array) or ``"fatal"`` (the
        process is ended).

    >>> with array_garbage_collection_guard("log"):
    ...     pass
    """
    override = config.array_garbage_collection_guard(new_val)
    if new_val not in (None, "allow"):
        collection.watch()
    return override


config.on_update(
    "array_garbage_collection_guard",
    lambda value: collection.watch() if value not in (None, "allow") else None,
)


# Contexts of the user's own


_numbers = itertools.count(1)


class UserContext:
    """A value that programs may depend on: another value means another program.

    ``with context(value):`` sets it in this thread, ``context.value`` reads it, and
    ``context.set_global(value)`` sets it for threads without one of their own.
    """

    __slots__ = ("_option",)

    def __init__(self, default_value: Any):
        name = f"user_context_{next(_numbers)}"
        self._option = config.define(
            Option(name, object, default_value, TRACE, "a context of the user's", optional=True)
        )

    @property
    def value(self) -> Any:
        """The value in effect in this thread."""
        return self._option.value

    def get_global(self) -> Any:
        """The value that threads without one of their own see."""
        return config.read_global(self._option.__name__)

    def set_global(self, value: Any) -> None:
        """Set the value for threads without one of their own."""
        config.update(self._option.__name__, value)

    def __call__(self, new_val: Any) -> Override:
        return self._option(new_val)


def make_user_context(default_value: Any = None) -> UserContext:
    """A context whose value is part of what programs are remembered by.

    Functions that read it while they are traced are traced anew where it has another value.

    Args:
      default_value: hashable, as all its values.

    >>> scale = make_user_context(1.0)
    >>> with scale(3.0):
    ...     print(scale.value)
    3.0
    """
    return UserContext(default_value)
