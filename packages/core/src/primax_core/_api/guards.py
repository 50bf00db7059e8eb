"""Context managers that guard execution, in addition to the options."""

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
    """Context manager (or decorator) that disables ``jit``, also of loops.

    Functions run operation by operation, so that values can be inspected and ``print`` shows
    numbers. ``scan``, ``cond`` and ``while_loop`` become Python loops and branches.

    Args:
      disable: ``False`` enables ``jit`` inside of an enclosing context.

    Returns:
      A context manager for the current thread, also usable as a decorator.

    It is slow. Results may differ in the last bits, because XLA fuses nothing.

    >>> from primax_core import jit
    >>> traced = []
    >>> f = jit(lambda x: traced.append(type(x).__name__) or x + 1.0)
    >>> with disable_jit():
    ...     _ = f(1.0)
    >>> _ = f(1.0)
    >>> traced
    ['float', 'JitTracer']
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
    """Context manager that sets the treatment of transfers between host and devices.

    Args:
      new_val: ``"allow"``; ``"log"`` or ``"disallow"`` implicit transfers of operands to other
        devices; ``"log_explicit"`` or ``"disallow_explicit"`` also the explicit ones with
        ``device_put`` and ``device_get``.

    Returns:
      A context manager for the current thread.

    Raises:
      ValueError: for another value.
      JaxRuntimeError: raised by a transfer that is disallowed.

    Reading an array on a CPU is not a transfer. The options ``transfer_guard_host_to_device``,
    ``transfer_guard_device_to_host`` and ``transfer_guard_device_to_device`` set one direction
    each.

    >>> with transfer_guard("disallow"):
    ...     pass
    """
    return _Several(tuple(option(new_val) for option in _TRANSFERS))


# Threads

_guarding = new_lock()
_guards: list[int] = []  # identifiers of the thread with active guards


class thread_guard:
    """Context manager that fails if another thread has an active guard.

    Programs over several processes must start executables in the same order in all of them; calls
    from several threads have no fixed order.

    Args:
      new_val: False makes the guard inactive.

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
    """Context manager that sets the treatment of arrays freed only by the garbage collector.

    An array in a reference cycle keeps its memory until the collector finds the cycle.

    Args:
      new_val: ``"allow"``, ``"log"`` (an error is printed for each such array) or ``"fatal"``
        (the process is aborted).

    Returns:
      A context manager for the current thread.

    Raises:
      ValueError: for another value.

    Use it in tests to find cycles, for example of exceptions whose tracebacks hold frames with
    arrays.

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


# User contexts


_numbers = itertools.count(1)


class UserContext:
    """A value that traced functions may depend on: a new value causes a retrace.

    ``with context(value):`` sets it in this thread, ``context.value`` reads it, and
    ``context.set_global(value)`` sets it for threads without a local value.
    """

    __slots__ = ("_option",)

    def __init__(self, default_value: Any):
        name = f"user_context_{next(_numbers)}"
        self._option = config.define(
            Option(name, object, default_value, TRACE, "a user context", optional=True)
        )

    @property
    def value(self) -> Any:
        """The value in effect in this thread."""
        return self._option.value

    def get_global(self) -> Any:
        """The global value, for threads without a local value."""
        return config.read_global(self._option.__name__)

    def set_global(self, value: Any) -> None:
        """Set the global value, for threads without a local value."""
        config.update(self._option.__name__, value)

    def __call__(self, new_val: Any) -> Override:
        return self._option(new_val)


def make_user_context(default_value: Any = None) -> UserContext:
    """A context whose value is part of the keys of traced functions.

    A function that reads the value during tracing is retraced for each new value. A global
    variable would be read once and stay in the executable.

    Args:
      default_value: the value outside of all contexts; hashable, as all values.

    Returns:
      An object ``context``: ``with context(value):`` sets the value in the current thread, and
      ``context.value`` reads it.

    Raises:
      TypeError: if a value is not hashable.

    >>> from primax_core import jit
    >>> scale = make_user_context(1.0)
    >>> f = jit(lambda x: x * scale.value)
    >>> with scale(3.0):
    ...     print(float(f(2.0)))
    6.0
    >>> print(float(f(2.0)))
    2.0
    """
    return UserContext(default_value)
