"""The cache of a jitted function: traces, cached results and log messages."""

from __future__ import annotations

import functools
import gc
import logging
import weakref

import numpy as np
import pytest

import primax_core as px
from primax_core import lax

F32 = np.float32
X = np.ones(3, F32)


class Counted:
    """A jitted function that counts its traces."""

    def __init__(self, fun=lambda *a, **k: 1.0, **options):
        self.count = 0

        def counted(*args, **kwargs):
            self.count += 1
            return fun(*args, **kwargs)

        self.plain = counted
        self.jitted = px.jit(counted, **options)

    def __call__(self, *args, **kwargs):
        return self.jitted(*args, **kwargs)


def traces(first, second, **options) -> int:
    """The number of traces for two calls, each ``(args, kwargs)`` or one argument."""
    f = Counted(**options)
    for call in (first, second):
        args, kwargs = call if isinstance(call, tuple) and len(call) == 2 else ((call,), {})
        f(*args, **kwargs)
    return f.count


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 1.0),
        (1, True),
        (1.0, F32(1)),
        (X, X.astype(np.int32)),
        (X, X[:2]),
        ([1.0], {"a": 1.0}),
        ([1.0, None], [None, 1.0]),
        (((1.0,), {}), ((), {"x": 1.0})),
        (((), {"a": 1.0}), ((), {"b": 1.0})),
    ],
    ids=lambda v: repr(v)[:30],
)
def test_cache_misses(first, second):
    assert traces(first, second) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 2),
        (1.0, -3.5),
        (F32(1), np.float64(1)),
        (F32(1), np.asarray(1, F32)),
        (((), {"a": 1.0, "b": 2}), ((), {"b": 2, "a": 1.0})),
        ({"a": 1.0, "b": 2.0}, {"b": 1.0, "a": 2.0}),
        (X, X + 1),
    ],
    ids=lambda v: repr(v)[:30],
)
def test_cache_hits(first, second):
    assert traces(first, second) == 1


def test_a_weakly_typed_array_equals_a_python_scalar():
    weak = px.jit(lambda x: x)(1.0)
    assert weak.weak_type and traces(weak, 1.0) == 1


def test_static_values_by_type_and_equality():
    f = Counted(static_argnums=0)
    for value in (2, 2.0, True, 1, "a"):
        f(value)
        f(value)
    assert f.count == 5


@pytest.mark.parametrize(
    "context",
    [
        px.enable_x64(True),
        px.default_matmul_precision("highest"),
        px.numpy_dtype_promotion("strict"),
        px.numpy_rank_promotion("raise"),
        px.threefry_partitionable(False),
    ],
    ids=["x64", "precision", "dtype_promotion", "rank_promotion", "threefry"],
)
def test_options_of_the_trace_key(context):
    f = Counted()
    f(1.0)
    with context:
        f(1.0)
        f(1.0)
    f(1.0)
    assert f.count == 2


@pytest.mark.parametrize(
    "context", [px.debug_nans(True), px.log_compiles(False), px.named_scope("a")],
    ids=["debug_nans", "log_compiles", "named_scope"],
)  # fmt: skip
def test_options_outside_the_trace_key(context):
    f = Counted()
    f(1.0)
    with context:
        f(1.0)
    assert f.count == 1


def test_two_jits_of_one_function_share():
    f = Counted()
    f(1.0)
    px.jit(f.plain)(1.0)
    assert f.count == 1


def test_partials_do_not_share():
    count = []

    def f(x, y):
        count.append(1)
        return x + y

    for _ in range(2):
        px.jit(functools.partial(f, 1.0))(2.0)
    assert len(count) == 2


def test_transformations_use_the_cached_jaxpr():
    f = Counted(lambda x: x * x)
    f(1.0)
    px.grad(f)(1.0)
    px.jvp(f, (1.0,), (1.0,))
    px.make_jaxpr(f.jitted)(1.0)
    px.jit(lambda x: f(f(x)))(1.0)
    assert f.count == 1
    px.vmap(f)(np.ones(2, F32))
    assert f.count == 2  # an example of a batch of a strong type


def test_clearing():
    f = Counted()
    f(1.0)
    f.jitted.clear_cache()
    f(1.0)
    assert f.count == 2
    px.clear_caches()
    f(1.0)
    assert f.count == 3


def test_closed_over_values_are_read_while_tracing():
    box = [1.0]
    f = px.jit(lambda x: x + box[0])
    assert float(f(1.0)) == 2.0
    box[0] = 5.0
    assert float(f(1.0)) == 2.0
    assert float(f(1)) == 6.0


def test_functions_are_weakly_referenced():
    big = np.ones(1000, F32)

    def f(x):
        return x + big

    ref = weakref.ref(f)
    g = px.jit(f)
    g(1.0)
    del f, g
    gc.collect()
    assert ref() is None


def test_a_deleted_jitted_function_frees_its_jaxprs():
    f = px.jit(lambda x: x * 3.0)
    f(2.0)
    jaxpr = weakref.ref(f.trace(2.0).jaxpr)
    del f
    gc.collect()
    assert jaxpr() is None


def test_explanations_of_misses(caplog):
    f = px.jit(lambda x, n: x, static_argnums=1)
    with px.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        f(1.0, 1)
        f(1, 1)
        f(1.0, 2)
        f([1.0], 1)
        with px.enable_x64(True):
            f(1.0, 1)
    said = [r.getMessage() for r in caplog.records if "TRACING CACHE MISS" in r.getMessage()]
    assert len(said) == 5
    assert "never traced before" in said[0]
    assert "x: a new dtype, int32, previously float32" in said[1]
    assert "static argument 1: a new static value, 2, previously 1" in said[2]
    assert "a new structure" in said[3]
    assert "option enable_x64: a new value, True, previously False" in said[4]


def test_no_explanations_by_default(caplog):
    with caplog.at_level(logging.WARNING):
        px.jit(lambda x: x)(1.0)
    assert not caplog.records


def test_compilations_are_logged(caplog):
    def poorly_named(x):
        return lax.sin(x) * 1.2345

    with px.log_compiles(True), caplog.at_level(logging.WARNING):
        px.jit(poorly_named)(1.0)
    said = " ".join(r.getMessage() for r in caplog.records)
    assert "Finished XLA compilation of jit(poorly_named)" in said


def test_scan_traces_a_jitted_body_once():
    f = Counted(lambda c, x: (c + x, c))
    with px.ensure_compile_time_eval():
        lax.scan(f.jitted, F32(0), X)
        lax.scan(f.jitted, F32(0), X)
    assert f.count == 1


def test_control_flow_caches_its_bodies():
    count = []

    def body(c, x):
        count.append(1)
        return c + x, None

    for _ in range(3):
        lax.scan(body, F32(0), X)
    assert len(count) == 1
