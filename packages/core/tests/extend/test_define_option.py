"""Options that other wheels define."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.extend.runtime import define_option, state, watch_programs

traced = define_option("test_scale", int, 2, "trace", "a factor")
executed = define_option("test_executor", str, "fast", "dispatch", choices=("fast", "exact"))


def test_a_traced_option_is_part_of_the_keys():
    count = []

    @px.jit
    def scaled(x):
        count.append(traced.value)
        return lax.mul(x, np.float32(traced.value))

    assert float(scaled(1.0)) == 2 and float(scaled(1.0)) == 2
    with traced(3):
        assert float(scaled(1.0)) == 3 and state.test_scale == 3
    assert float(scaled(1.0)) == 2 and count == [2, 3]


def test_an_option_of_the_execution_does_not_trace_again():
    count = []
    f = px.jit(lambda x: (count.append(1), lax.sin(x))[1])
    f(1.0)
    key, trace_key = state.key, state.trace_key
    with executed("exact"):
        f(1.0)
        assert state.key is not key and state.trace_key is trace_key
    assert count == [1]


def test_global_values():
    px.config.update("test_scale", 5)
    try:
        assert traced.value == 5
    finally:
        px.config.update("test_scale", 2)


def test_errors():
    with pytest.raises(ValueError, match="option test_scale is already defined"):
        define_option("test_scale", int, 2)
    with pytest.raises(ValueError, match="test_other has the unknown scope 'always'"):
        define_option("test_other", int, 2, "always")
    with pytest.raises(ValueError, match="test_executor"):
        executed("slow")


def test_environment_variables(monkeypatch):
    monkeypatch.setenv("PRIMAX_TEST_FROM_ENVIRONMENT", "7")
    assert define_option("test_from_environment", int, 1).value == 7


def test_watchers_of_options_that_do_not_exist():
    with pytest.raises(ValueError, match="there is no option 'absent'; define it before with"):
        watch_programs("absent", lambda jaxpr: None)
    with pytest.raises(ValueError, match="explain_cache_misses has the scope 'none'"):
        watch_programs("explain_cache_misses", lambda jaxpr: None)
    with pytest.raises(TypeError, match="takes a function of a jaxpr, got 3"):
        watch_programs("test_scale", 3)
    assert float(px.jit(lambda x: lax.add(x, x))(1.5)) == 3.0


def test_defining_an_option_keeps_traced_functions():
    count = []
    f = px.jit(lambda x: (count.append(1), lax.sin(x))[1])
    f(1.0)
    late = define_option("test_late", int, 1, "trace")
    define_option("test_later", int, 1, "dispatch")
    f(1.0)
    assert count == [1]
    with late(2):
        f(1.0)
    f(1.0)
    assert count == [1, 1]
