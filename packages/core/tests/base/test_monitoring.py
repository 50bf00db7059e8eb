"""Listeners and the events of the library."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import primax_core as px
from primax_core import lax, monitoring
from primax_core._base import monitoring as source

TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"


@pytest.fixture
def told() -> Iterator[list]:
    events: list = []
    monitoring.register_event_listener(lambda e, **k: events.append(("event", e, k)))
    monitoring.register_event_duration_secs_listener(
        lambda e, d, **k: events.append(("duration", e, d, k))
    )
    monitoring.register_event_time_span_listener(
        lambda e, a, b, **k: events.append(("span", e, a, b, k))
    )
    monitoring.register_scalar_listener(lambda e, v, **k: events.append(("scalar", e, v, k)))
    yield events
    monitoring.clear_event_listeners()


def names(told, sort=None):
    return [x[1] for x in told if sort in (None, x[0])]


def test_each_event_type_reaches_its_listeners(told):
    monitoring.record_event("/a", x=1)
    monitoring.record_event_duration_secs("/b", 0.5)
    monitoring.record_event_time_span("/c", 1.0, 2.0, y="z")
    monitoring.record_scalar("/d", 3)
    assert told == [
        ("event", "/a", {"x": 1}),
        ("duration", "/b", 0.5, {}),
        ("span", "/c", 1.0, 2.0, {"y": "z"}),
        ("scalar", "/d", 3, {}),
    ]


def test_removing_and_clearing():
    def listener(*args, **kwargs):
        raise AssertionError("it was removed")

    for add, remove in (
        (monitoring.register_event_listener, monitoring.unregister_event_listener),
        (
            monitoring.register_event_duration_secs_listener,
            monitoring.unregister_event_duration_listener,
        ),
        (
            monitoring.register_event_time_span_listener,
            monitoring.unregister_event_time_span_listener,
        ),
        (monitoring.register_scalar_listener, monitoring.unregister_scalar_listener),
    ):
        add(listener)
        assert source.listening
        remove(listener)
        assert not source.listening
        with pytest.raises(ValueError, match="not registered"):
            remove(listener)
    for add in (monitoring.register_event_listener, monitoring.register_scalar_listener):
        add(listener)
    monitoring.clear_event_listeners()
    monitoring.record_event("/a")
    assert not source.listening


def test_a_listener_must_be_callable():
    with pytest.raises(TypeError, match="callable"):
        monitoring.register_event_listener(3)


def test_errors_of_listeners_propagate_to_the_recorder(told):
    def bad(event, **kwargs):
        raise KeyError(event)

    monitoring.register_event_listener(bad)
    with pytest.raises(KeyError):
        monitoring.record_event("/a")


def test_a_listener_may_unregister_itself_during_a_call(told):
    def once(event, **kwargs):
        monitoring.unregister_event_listener(once)

    monitoring.register_event_listener(once)
    monitoring.record_event("/a")
    monitoring.record_event("/b")
    assert names(told) == ["/a", "/b"]


def test_events_of_a_compilation(told):
    number = float(np.random.default_rng().random())

    def fun(x):
        return lax.sin(x) * number

    x = np.ones(3, np.float32)
    compiled = px.jit(fun)
    compiled(x)
    assert names(told, "duration") == [TRACE, LOWER, COMPILE]
    assert names(told, "scalar") == names(told, "span") == [TRACE, LOWER, COMPILE]
    assert {x[-1].get("fun_name") for x in told if x[0] != "event"} == {"fun", "jit(fun)"}
    assert all(0 < x[2] < 60 for x in told if x[0] == "duration")
    assert all(x[2] <= x[3] for x in told if x[0] == "span")
    told.clear()
    compiled(x)
    assert told == []


def test_threads_record_concurrently(told):
    def record():
        for _ in range(200):
            monitoring.record_event("/t")

    threads = [threading.Thread(target=record) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert names(told).count("/t") == 1600
