"""Monitoring events and profiles: names, signatures and errors of the reference."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

jax = pytest.importorskip("jax")
reference_monitoring = pytest.importorskip("jax.monitoring")
reference_profiler = pytest.importorskip("jax.profiler")

import primax_core as px  # noqa: E402
from primax_core import monitoring  # noqa: E402
from primax_interpreters import profiler  # noqa: E402

CORE = "/jax/core/compile/"
SIDES = [(reference_monitoring, reference_profiler), (monitoring, profiler)]


def public(module):
    return {n for n in dir(module) if not n.startswith("_")}


def test_all_names_exist():
    assert public(reference_monitoring) <= public(monitoring)
    assert public(reference_profiler) <= public(profiler)


@pytest.mark.parametrize("name", sorted(public(reference_monitoring) | public(reference_profiler)))
def test_parameters(name):
    theirs, ours = (getattr(m, name, None) or getattr(p, name) for m, p in SIDES)
    if not inspect.isfunction(theirs) and name != "ProfileSession":
        return  # a class of jaxlib
    expected = [(p.name, p.kind, p.default) for p in inspect.signature(theirs).parameters.values()]
    results = [(p.name, p.kind, p.default) for p in inspect.signature(ours).parameters.values()]
    assert results == expected


@pytest.mark.parametrize("sort", ["scalar", "event_duration_secs", "event_time_span"])
def test_compilation_events(sort):
    said = []
    for J, m in ((jax, reference_monitoring), (px, monitoring)):
        events: list = []

        def listener(event, *values, events=events, **about):
            if event.startswith(CORE):
                events.append((event, about))

        x = J.device_put(np.ones(5, np.float32))
        number = float(np.random.default_rng().random())

        def fun(x, J=J, number=number):
            return J.lax.mul(x, np.float32(number))

        getattr(m, f"register_{sort}_listener")(listener)
        try:
            J.jit(fun)(x)
        finally:
            m.clear_event_listeners()
        said.append(events)
    assert said[0] == said[1]


def test_session_errors(tmp_path):
    said = []
    for _, p in SIDES:
        errors = []
        p.start_trace(str(tmp_path))
        for call in (lambda p=p: p.start_trace(str(tmp_path)), p.stop_trace, p.stop_trace):
            try:
                call()
                errors.append(None)
            except Exception as e:
                errors.append((type(e), str(e)[:20]))
        for call in (p.stop_server, lambda p=p: p.export_profile_data(b"", str(tmp_path))):
            with pytest.raises((TypeError, ValueError)) as caught:
                call()
            errors.append((caught.type, str(caught.value)[:20]))
        said.append(errors)
    assert said[0] == said[1]


def test_options():
    theirs, ours = reference_profiler.ProfileOptions(), profiler.ProfileOptions()
    for name in public(theirs):
        assert getattr(theirs, name) == getattr(ours, name)
