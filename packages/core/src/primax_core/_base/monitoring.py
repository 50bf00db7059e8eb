"""Events for listeners: tracing, lowering, compilation and loading, with durations.

Without listeners an event costs one test of a flag.

The names of the library's events are those that JAX's dashboards use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from .locks import new_rlock

_F = TypeVar("_F", bound=Callable[..., Any])

TRACE: Final = "/jax/core/compile/jaxpr_trace_duration"
LOWER: Final = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE: Final = "/jax/core/compile/backend_compile_duration"
CACHE_REQUEST: Final = "/jax/compilation_cache/compile_requests_use_cache"
CACHE_HIT: Final = "/jax/compilation_cache/cache_hits"
CACHE_MISS: Final = "/jax/compilation_cache/cache_misses"
CACHE_RETRIEVAL: Final = "/jax/compilation_cache/cache_retrieval_time_sec"


class Listeners:
    """The listeners of one type of event. A change replaces the tuple, so that other threads may
    record events at the same time."""

    __slots__ = ("sort", "callbacks")

    def __init__(self, sort: str):
        self.sort = sort
        self.callbacks: tuple[Callable[..., Any], ...] = ()

    def add(self, callback: Callable[..., Any]) -> None:
        """Register a function for later events."""
        if not callable(callback):
            raise TypeError(f"a listener must be callable, got {callback!r}")
        with _lock:
            self.callbacks = (*self.callbacks, callback)
            _renew()

    def remove(self, callback: Callable[..., Any]) -> None:
        """Remove a function.

        Raises:
          ValueError: if it is not registered.
        """
        with _lock:
            left = list(self.callbacks)
            if callback not in left:
                raise ValueError(f"{callback!r} is not registered as a listener of {self.sort}")
            left.remove(callback)
            self.callbacks = tuple(left)
            _renew()


_lock: Final = new_rlock()
events: Final = Listeners("events")
durations: Final = Listeners("durations of events")
spans: Final = Listeners("time spans of events")
scalars: Final = Listeners("scalars")
_ALL: Final = (events, durations, spans, scalars)
listening: bool = False
"""True if any listener is registered."""


def _renew() -> None:
    global listening
    listening = any(sort.callbacks for sort in _ALL)


def clear_event_listeners() -> None:
    """Remove all listeners of all types."""
    with _lock:
        for sort in _ALL:
            sort.callbacks = ()
        _renew()


def record_event(event: str, **kwargs: str | int) -> None:
    """Record an event: call the event listeners.

    Args:
      event: a name, by custom with slashes: ``"/my_library/cache_miss"``.
      kwargs: additional information.
    """
    for callback in events.callbacks:
        callback(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Record the duration of an event, in seconds."""
    for callback in durations.callbacks:
        callback(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Record the start and the end of an event, in seconds since the epoch."""
    for callback in spans.callbacks:
        callback(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Record a number."""
    for callback in scalars.callbacks:
        callback(event, value, **kwargs)


def register_event_listener(callback: Callable[..., Any]) -> None:
    """Register ``callback(event, **kwargs)``, called at each event.

    >>> from primax_core import monitoring
    >>> seen = []
    >>> listener = lambda event, **kwargs: seen.append(event)
    >>> monitoring.register_event_listener(listener)
    >>> monitoring.record_event("/my_library/cache_miss")
    >>> monitoring.unregister_event_listener(listener)
    >>> seen
    ['/my_library/cache_miss']
    """
    events.add(callback)


def register_event_duration_secs_listener(callback: Callable[..., Any]) -> None:
    """Register ``callback(event, duration, **kwargs)``, called with each duration in seconds."""
    durations.add(callback)


def register_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """Register ``callback(event, start_time, end_time, **kwargs)``, called with each time span."""
    spans.add(callback)


def register_scalar_listener(callback: Callable[..., Any]) -> None:
    """Register ``callback(event, value, **kwargs)``, called with each number."""
    scalars.add(callback)


def unregister_event_listener(callback: Callable[..., Any]) -> None:
    """Remove a listener; ``ValueError`` if it is not registered."""
    events.remove(callback)


def unregister_event_duration_listener(callback: Callable[..., Any]) -> None:
    """Remove a listener of durations; ``ValueError`` if it is not registered."""
    durations.remove(callback)


def unregister_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """Remove a listener of time spans; ``ValueError`` if it is not registered."""
    spans.remove(callback)


def unregister_scalar_listener(callback: Callable[..., Any]) -> None:
    """Remove a listener of numbers; ``ValueError`` if it is not registered."""
    scalars.remove(callback)


class timed:
    """Context manager that records the duration of its body, if it succeeds.

    It records the time of the start as a scalar, then the duration and the time span.
    """

    __slots__ = ("event", "name", "since", "began")

    def __init__(self, event: str, name: str):
        self.event = event
        self.name = name
        self.since: float | None = None

    def __enter__(self) -> None:
        if listening:
            self.since = time.time()
            record_scalar(self.event, self.since, fun_name=self.name)
            self.began = time.perf_counter()

    def __exit__(self, kind: object, *exc: object) -> None:
        if self.since is not None and kind is None:
            _record_end(self.event, self.name, self.since, time.perf_counter() - self.began)


def record_timed(event: str, name: str, took: float) -> None:
    """Record an event of ``took`` seconds that ends now, as :class:`timed` does."""
    since = time.time() - took
    record_scalar(event, since, fun_name=name)
    _record_end(event, name, since, took)


def _record_end(event: str, name: str, since: float, took: float) -> None:
    record_event_duration_secs(event, took, fun_name=name)
    record_event_time_span(event, since, since + took, fun_name=name)


def timed_as(event: str, name_of: Callable[..., str]) -> Callable[[_F], _F]:
    """Decorator that records the duration of each call, named ``name_of(*args, **kwargs)``."""

    def decorate(fun: _F) -> _F:
        @wraps(fun)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not listening:
                return fun(*args, **kwargs)
            with timed(event, name_of(*args, **kwargs)):
                return fun(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate
