"""Short roads: executables found by a key of the caller's own.

A library function finds its executable by the types of its arguments and by its static parameters,
which the caller has worked out from what it was given. Where that work costs more than running the
executable does, a caller remembers the executable under what it was given instead.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, Final

from .._base import caches
from .._base.config import state
from .._runtime.dispatch import as_operand, collect_garbage, garbage_is_due
from .._trace.array import Array

_KEPT: Final = 4096
_all: Final[weakref.WeakSet[ShortRoads]] = weakref.WeakSet()


@caches.register
def _clear_all() -> None:
    for roads in list(_all):
        roads.clear()


class ShortRoads:
    """The executables of a library function by keys of the caller's.

    Args:
      function: a :func:`library_function` with one result.

    >>> from primax_core import device_put, lax
    >>> from primax_core.extend import library_function
    >>> power = ShortRoads(library_function(lax.integer_pow, static_argnames=("y",)))
    >>> x = device_put(3.0)
    >>> power.quick("cubed", x) is None  # not met before
    True
    >>> float(power.slow("cubed", (x,), y=3)), float(power.quick("cubed", x))
    (27.0, 27.0)
    """

    __slots__ = ("__weakref__", "_found", "function")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Callable[..., Any] = function
        self._found: dict[Any, Any] = {}
        _all.add(self)

    def clear(self) -> None:
        """Forget all roads."""
        self._found.clear()

    def quick(self, key: Hashable, *arrays: Any) -> Any:
        """The result on concrete arrays, or ``None``: while tracing, for an unknown key, or where
        running fails (the slow road says why).

        Args:
          key: equal for calls of equal static parameters. Beware that ``1 == 1.0 == True``.
        """
        if state.trace is not None:
            return None
        try:
            try:
                road = self._found[state.key, key, *[x._spec for x in arrays]]
            except AttributeError:  # a number, or an array of NumPy's
                arrays = tuple([as_operand(x) for x in arrays])
                road = self._found[state.key, key, *[x._spec for x in arrays]]
            bufs = [x._buf for x in arrays]
            if garbage_is_due():
                collect_garbage()
            return road.execute(bufs).consume_with_handlers(road.handlers)[0]
        except Exception:
            return None

    def slow(self, key: Hashable, arrays: tuple[Any, ...], /, **static: Any) -> Array:
        """Call the function, and remember how under ``key``."""
        out: Array = self.function(*arrays, **static)
        if state.trace is None:
            self._remember(key, arrays, static)
        return out

    def _remember(self, key: Hashable, arrays: tuple[Any, ...], static: dict[str, Any]) -> None:
        try:
            specs = [as_operand(x)._spec for x in arrays]
        except (AttributeError, TypeError):
            return
        # The key under which `make_front` keeps this call.
        values = tuple(static.values())
        types = (tuple(static), values, tuple(map(type, values))) if static else ()
        road = self.function.staged.short_roads.get((state.key, *types, *specs))  # type: ignore[attr-defined]
        if road is not None and road.single:
            if len(self._found) >= _KEPT:
                self._found.clear()
            self._found[state.key, key, *specs] = road
