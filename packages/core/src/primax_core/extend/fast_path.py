"""Fast paths: executables of a library function found by a key of the caller's own.

A library function finds its executable by the types of its arguments and by its static parameters,
which the caller computes from its own arguments. If that takes longer than the execution, a caller
keeps the executable under its own arguments instead.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Final

from .._base import caches
from .._base.config import state
from .._runtime.dispatch import as_operand
from .._runtime.launch import launch
from .._trace.array import Array

_all: Final[weakref.WeakSet[FastPath]] = weakref.WeakSet()


@caches.register
def _clear_all() -> None:
    for path in list(_all):
        path.clear()


class FastPath:
    """The dispatch cache of a library function, by keys of the caller's choice.

    Args:
      function: a :func:`library_function` with one result.

    >>> from primax_core import device_put, lax
    >>> from primax_core.extend import library_function
    >>> power = FastPath(library_function(lax.integer_pow, static_argnames=("y",)))
    >>> x = device_put(3.0)
    >>> power.lookup("cubed", x) is None  # the first call
    True
    >>> float(power.call("cubed", (x,), y=3)), float(power.lookup("cubed", x))
    (27.0, 27.0)
    """

    __slots__ = ("__weakref__", "_entries", "_name", "function")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Callable[..., Any] = function
        self._name: str = function.__name__
        self._entries: dict[Any, Any] = caches.Bounded()
        _all.add(self)

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()

    def lookup(self, key: Hashable, *arrays: Any) -> Any:
        """The result on concrete arrays, or ``None`` while tracing and for an unknown key.

        Args:
          key: equal for calls with equal static parameters. Note that ``1 == 1.0 == True``.

        Raises:
          RuntimeError: if an array was deleted or donated.
        """
        if state.trace is not None:
            return None
        entries = self._entries
        try:
            try:
                # One and two arrays without comprehensions, which cost 5 % of a call.
                if len(arrays) == 1:
                    (x,) = arrays
                    entry, buffers = entries[state.key, key, x._spec], [x._buf]
                elif len(arrays) == 2:
                    x, y = arrays
                    entry, buffers = entries[state.key, key, x._spec, y._spec], [x._buf, y._buf]
                else:
                    entry = entries[state.key, key, *[x._spec for x in arrays]]
                    buffers = [x._buf for x in arrays]
            except AttributeError:  # a number, or a NumPy array
                arrays = tuple([as_operand(x) for x in arrays])
                entry = entries[state.key, key, *[x._spec for x in arrays]]
                buffers = [x._buf for x in arrays]
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            return None
        return launch(entry, buffers, arrays, self._name)[0]

    def call(self, key: Hashable, arrays: tuple[Any, ...], /, **static: Any) -> Array:
        """Call the function, and keep its executable under ``key``."""
        out: Array = self.function(*arrays, **static)
        if state.trace is None:
            self._remember(key, arrays, static)
        return out

    def _remember(self, key: Hashable, arrays: tuple[Any, ...], static: dict[str, Any]) -> None:
        try:
            specs = [as_operand(x)._spec for x in arrays]
        except (AttributeError, TypeError):
            return
        # The key under which `make_callable` keeps this call.
        values = tuple(static.values())
        types = (tuple(static), values, tuple(map(type, values))) if static else ()
        cache = self.function.jit_cache  # type: ignore[attr-defined]
        entry = cache.fast_entries.get((state.key, *types, *specs))
        if entry is not None and entry.single:
            self._entries[state.key, key, *specs] = entry

    def quick(self, key: Hashable, *arrays: Any) -> Any:
        """The name of :meth:`lookup` in versions 1.0 to 1.3."""
        _warn("quick", "lookup")
        return self.lookup(key, *arrays)

    def slow(self, key: Hashable, arrays: tuple[Any, ...], /, **static: Any) -> Array:
        """The name of :meth:`call` in versions 1.0 to 1.3."""
        _warn("slow", "call")
        return self.call(key, arrays, **static)


def _warn(name: str, current: str) -> None:
    warnings.warn(
        f"{__name__}.FastPath.{name} is called {current} since version 1.4 of the extension API; "
        "the old name is removed in version 2.0",
        DeprecationWarning,
        stacklevel=3,
    )
