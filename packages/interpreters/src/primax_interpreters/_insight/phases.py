"""Phases of a compilation and their durations."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any, Final, NamedTuple

from primax_core import monitoring

# Events of `primax_core.monitoring`.
TRACE: Final = "/jax/core/compile/jaxpr_trace_duration"
LOWER: Final = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE: Final = "/jax/core/compile/backend_compile_duration"
CACHE_HIT: Final = "/jax/compilation_cache/cache_hits"


class Phase(NamedTuple):
    """One phase of a compilation.

    Attributes:
      name: ``trace``, ``lower`` or ``compile``.
      what: what happened: ``traced``, ``loaded from the disk cache``, ``was in memory`` ...
      seconds: how long it took; ``None`` if it did not happen.
    """

    name: str
    what: str
    seconds: float | None


class Watch:
    """Context manager that records what this thread traces, lowers, compiles and loads."""

    def __init__(self) -> None:
        self.durations: dict[str, float] = {}
        self.events: list[str] = []
        self._thread = threading.get_ident()
        self._depth: dict[str, int] = {}

    def __enter__(self) -> Watch:
        monitoring.register_scalar_listener(self._began)
        monitoring.register_event_duration_secs_listener(self._took)
        monitoring.register_event_listener(self._happened)
        return self

    def __exit__(self, *exc: object) -> None:
        for remove, listener in (
            (monitoring.unregister_scalar_listener, self._began),
            (monitoring.unregister_event_duration_listener, self._took),
            (monitoring.unregister_event_listener, self._happened),
        ):
            with suppress(ValueError):  # the function that was traced cleared all listeners
                remove(listener)

    def _mine(self) -> bool:
        return threading.get_ident() == self._thread

    def _began(self, event: str, value: float, **_: Any) -> None:
        if self._mine():
            self._depth[event] = self._depth.get(event, 0) + 1

    def _took(self, event: str, seconds: float, **_: Any) -> None:
        if not self._mine():
            return
        depth = self._depth[event] = self._depth.get(event, 1) - 1
        if depth <= 0:  # what is traced within another trace counts as part of it
            self._depth[event] = 0
            self.durations[event] = self.durations.get(event, 0.0) + seconds

    def _happened(self, event: str, **_: Any) -> None:
        if self._mine():
            self.events.append(event)

    def phases(self) -> tuple[Phase, ...]:
        """The recorded phases."""
        traced = self.durations.get(TRACE)
        lowered = self.durations.get(LOWER)
        compiled = self.durations.get(COMPILE)
        loaded = CACHE_HIT in self.events
        if lowered is not None:
            how = "lowered to StableHLO"
        elif compiled is not None:
            how = "not needed: the disk cache knows this program's module"
        else:
            how = "not needed: the executable was in memory"
        if compiled is None:
            last = "not needed: the executable was in memory"
        else:
            last = "loaded from the disk cache" if loaded else "compiled by XLA"
        return (
            Phase("trace", "not needed: traced before" if traced is None else "traced", traced),
            Phase("lower", how, lowered),
            Phase("compile", last, compiled),
        )
