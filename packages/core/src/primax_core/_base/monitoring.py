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
    """Remove all listeners of all types, in all threads.

    Returns:
      ``None``.

    Listeners of other libraries are removed too: prefer :func:`unregister_event_listener`,
    :func:`unregister_event_duration_listener`, :func:`unregister_event_time_span_listener` and
    :func:`unregister_scalar_listener`. Tests that need a known state can use it.

    >>> from primax_core import monitoring
    >>> monitoring.clear_event_listeners()  # doctest: +SKIP
    """
    with _lock:
        for sort in _ALL:
            sort.callbacks = ()
        _renew()


def record_event(event: str, **kwargs: str | int) -> None:
    """Record an event: call the event listeners.

    The listeners are called in the thread of the caller, in the order of their registration.
    Their errors are raised here.

    Args:
      event: a name, by custom with slashes: ``"/my_library/cache_miss"``.
      kwargs: additional information, passed to the listeners.

    Returns:
      ``None``.

    >>> from primax_core import monitoring
    >>> seen = []
    >>> listener = lambda event, **kwargs: seen.append((event, kwargs))
    >>> monitoring.register_event_listener(listener)
    >>> monitoring.record_event("/my_library/cache_miss", key="a")
    >>> monitoring.unregister_event_listener(listener)
    >>> seen
    [('/my_library/cache_miss', {'key': 'a'})]
    """
    for callback in events.callbacks:
        callback(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Record the duration of an event: call the duration listeners.

    Args:
      event: a name, by custom with slashes: ``"/my_library/load"``.
      duration: the duration in seconds.
      kwargs: additional information, passed to the listeners.

    Returns:
      ``None``.

    >>> from primax_core import monitoring
    >>> seen = []
    >>> listener = lambda event, duration, **kwargs: seen.append((event, duration))
    >>> monitoring.register_event_duration_secs_listener(listener)
    >>> monitoring.record_event_duration_secs("/my_library/load", 0.25)
    >>> monitoring.unregister_event_duration_listener(listener)
    >>> seen
    [('/my_library/load', 0.25)]
    """
    for callback in durations.callbacks:
        callback(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Record the start and the end of an event: call the time span listeners.

    Args:
      event: a name, by custom with slashes: ``"/my_library/load"``.
      start_time: the start, in seconds since the epoch, as of ``time.time()``.
      end_time: the end, in the same unit.
      kwargs: additional information, passed to the listeners.

    Returns:
      ``None``.

    >>> from primax_core import monitoring
    >>> seen = []
    >>> listener = lambda event, start, end, **kwargs: seen.append(end - start)
    >>> monitoring.register_event_time_span_listener(listener)
    >>> monitoring.record_event_time_span("/my_library/load", 10.0, 10.5)
    >>> monitoring.unregister_event_time_span_listener(listener)
    >>> seen
    [0.5]
    """
    for callback in spans.callbacks:
        callback(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Record a number: call the scalar listeners.

    Args:
      event: a name, by custom with slashes: ``"/my_library/batch_size"``.
      value: the number.
      kwargs: additional information, passed to the listeners.

    Returns:
      ``None``.

    >>> from primax_core import monitoring
    >>> seen = []
    >>> listener = lambda event, value, **kwargs: seen.append((event, value))
    >>> monitoring.register_scalar_listener(listener)
    >>> monitoring.record_scalar("/my_library/batch_size", 32)
    >>> monitoring.unregister_scalar_listener(listener)
    >>> seen
    [('/my_library/batch_size', 32)]
    """
    for callback in scalars.callbacks:
        callback(event, value, **kwargs)


def register_event_listener(callback: Callable[..., Any]) -> None:
    """Register a function that is called at each event.

    The library records events itself, for example at a hit in the disk cache.

    Args:
      callback: ``callback(event, **kwargs)``. It is called in the thread that records the event.

    Returns:
      ``None``.

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
    """Register a function that is called with each duration in seconds.

    The library records the durations of tracing, lowering and compilation.

    Args:
      callback: ``callback(event, duration, **kwargs)``. It is called in the thread that records
        the duration.

    Returns:
      ``None``.

    >>> from primax_core import jit, monitoring
    >>> seen = []
    >>> listener = lambda event, duration, **kwargs: seen.append(event)
    >>> monitoring.register_event_duration_secs_listener(listener)
    >>> _ = jit(lambda x: x * 3.0)(2.0)
    >>> monitoring.unregister_event_duration_listener(listener)
    >>> any("compile" in event for event in seen)
    True
    """
    durations.add(callback)


def register_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """Register a function that is called with each time span.

    Args:
      callback: ``callback(event, start_time, end_time, **kwargs)``, with times in seconds since
        the epoch. It is called in the thread that records the time span.

    Returns:
      ``None``.

    Spans of several threads can be drawn on one time axis; see :func:`record_event_time_span`.

    >>> from primax_core import jit, monitoring
    >>> spans = []
    >>> listener = lambda event, start, end, **kwargs: spans.append(end - start)
    >>> monitoring.register_event_time_span_listener(listener)
    >>> _ = jit(lambda x: x * 5.0)(2.0)
    >>> monitoring.unregister_event_time_span_listener(listener)
    >>> min(spans) >= 0
    True
    """
    spans.add(callback)


def register_scalar_listener(callback: Callable[..., Any]) -> None:
    """Register a function that is called with each recorded number.

    Args:
      callback: ``callback(event, value, **kwargs)``. It is called in the thread that records the
        number.

    Returns:
      ``None``.

    The library records the start of each timed event, in seconds since the epoch.

    >>> from primax_core import monitoring
    >>> seen = []
    >>> listener = lambda event, value, **kwargs: seen.append(value)
    >>> monitoring.register_scalar_listener(listener)
    >>> monitoring.record_scalar("/my_library/batch_size", 32)
    >>> monitoring.unregister_scalar_listener(listener)
    >>> seen
    [32]
    """
    scalars.add(callback)


def unregister_event_listener(callback: Callable[..., Any]) -> None:
    """Remove a function that :func:`register_event_listener` has registered.

    Args:
      callback: the registered object itself.

    Returns:
      ``None``. Calls that run in other threads are not interrupted.

    Raises:
      ValueError: if it is not registered.

    A function that was registered twice is removed once.

    >>> from primax_core import monitoring
    >>> listener = lambda event, **kwargs: print(event)
    >>> monitoring.register_event_listener(listener)
    >>> monitoring.unregister_event_listener(listener)
    >>> monitoring.record_event("/my_library/cache_miss")
    """
    events.remove(callback)


def unregister_event_duration_listener(callback: Callable[..., Any]) -> None:
    """Remove a function that :func:`register_event_duration_secs_listener` has registered.

    Args:
      callback: the registered object itself.

    Returns:
      ``None``. Calls that run in other threads are not interrupted.

    Raises:
      ValueError: if it is not registered.

    A function that was registered twice is removed once.

    >>> from primax_core import monitoring
    >>> listener = lambda event, duration, **kwargs: print(event)
    >>> monitoring.register_event_duration_secs_listener(listener)
    >>> monitoring.unregister_event_duration_listener(listener)
    >>> monitoring.record_event_duration_secs("/my_library/load", 0.25)
    """
    durations.remove(callback)


def unregister_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """Remove a function that :func:`register_event_time_span_listener` has registered.

    Args:
      callback: the registered object itself.

    Returns:
      ``None``. Calls that run in other threads are not interrupted.

    Raises:
      ValueError: if it is not registered.

    A function that was registered twice is removed once.

    >>> from primax_core import monitoring
    >>> listener = lambda event, start, end, **kwargs: print(event)
    >>> monitoring.register_event_time_span_listener(listener)
    >>> monitoring.unregister_event_time_span_listener(listener)
    >>> monitoring.record_event_time_span("/my_library/load", 10.0, 10.5)
    """
    spans.remove(callback)


def unregister_scalar_listener(callback: Callable[..., Any]) -> None:
    """Remove a function that :func:`register_scalar_listener` has registered.

    Args:
      callback: the registered object itself.

    Returns:
      ``None``. Calls that run in other threads are not interrupted.

    Raises:
      ValueError: if it is not registered.

    A function that was registered twice is removed once.

    >>> from primax_core import monitoring
    >>> listener = lambda event, value, **kwargs: print(event)
    >>> monitoring.register_scalar_listener(listener)
    >>> monitoring.unregister_scalar_listener(listener)
    >>> monitoring.record_scalar("/my_library/batch_size", 32)
    """
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
