"""``io_callback``: side effects at run time, and their order."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.errors import JaxRuntimeError

S = px.ShapeDtypeStruct


class Log(list):
    """Log of the values that callbacks receive."""

    def __call__(self, *xs):
        self.append(tuple(np.asarray(x).tolist() for x in xs))

    def __hash__(self):
        return id(self)


@pytest.fixture
def log():
    return Log()


def note(log, *xs, ordered=True):
    px.io_callback(log, None, *xs, ordered=ordered)


def values(log):
    px.effects_barrier()
    return [x[0] for x in log]


def test_effects_happen_once_per_call(log):
    f = px.jit(lambda x: note(log, x, ordered=False))
    for i in range(5):
        f(np.int32(i))
    assert sorted(values(log)) == [0, 1, 2, 3, 4]


def test_results():
    state = iter(range(100))
    f = px.jit(lambda: px.io_callback(lambda: np.int32(next(state)), S((), np.int32), ordered=True))
    assert [int(f()) for _ in range(4)] == [0, 1, 2, 3]


def test_order_within_a_function(log):
    def f(x):
        for i in range(6):
            note(log, x + i)
        return x

    px.jit(f)(0)
    assert values(log) == list(range(6))


def test_order_across_functions(log):
    heavy = px.jit(lambda x: (note(log, x), lax.fori_loop(0, 50, lambda i, c: lax.dot(c, c), M))[0])
    M = np.eye(64, dtype=np.float32)
    for i in range(20):
        heavy(np.int32(i))
    assert values(log) == list(range(20))


def test_order_through_calls_loops_and_branches(log):
    @px.jit
    def inner(x):
        note(log, x)
        return x + 1

    def f(x):
        x = inner(inner(x))  # 0 1

        def body(c, _):
            note(log, c)
            return inner(c), None

        x, _ = lax.scan(body, x, None, length=2)  # 2 2 3 3
        x = lax.fori_loop(0, 2, lambda i, c: inner(c), x)  # 4 5
        x = lax.cond(x > 5, inner, lambda c: c, x)  # 6
        x = lax.switch(1, [lambda c: c, inner], x)  # 7
        x = px.checkpoint(inner)(x)  # 8
        note(log, x)  # 9
        return x

    out = px.jit(f)(0)
    assert int(out) == 9
    assert values(log) == [0, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9]


def test_order_of_a_condition(log):
    def cond(c):
        note(log, 100 + c)
        return c < 2

    def body(c):
        note(log, c)
        return c + 1

    assert int(px.jit(lambda x: lax.while_loop(cond, body, x))(0)) == 2
    assert values(log) == [100, 0, 101, 1, 102]


def test_a_loop_without_values(log):
    left = [3]

    def go_on():
        left[0] -= 1
        return np.bool_(left[0] >= 0)

    def f():
        lax.while_loop(
            lambda _: px.io_callback(go_on, S((), np.bool_), ordered=True),
            lambda _: (note(log, 1), ())[1],
            (),
        )
        return 0

    px.jit(f)()
    assert values(log) == [1, 1, 1]


def test_unrolled_scan_keeps_the_order(log):
    px.jit(lambda: lax.scan(lambda c, x: (note(log, x), (c, None))[1], 0, np.arange(5), unroll=2))()
    assert values(log) == [0, 1, 2, 3, 4]


def test_unused_results_do_not_remove_the_call(log):
    def f(x):
        px.io_callback(lambda x: log(x) or np.float32(1), S((), np.float32), x)
        return x

    px.jit(f)(1.5)
    jaxpr = px.make_jaxpr(f)(1.5)
    assert len(jaxpr.eqns) == 1 and str(jaxpr.effects) == "frozenset({IO})"
    assert values(log) == [1.5]


def test_vmap(log):
    f = px.vmap(lambda x: px.io_callback(lambda x: log(x) or x, S((), np.float32), x))
    np.testing.assert_array_equal(f(np.arange(3, dtype=np.float32)), [0, 1, 2])
    np.testing.assert_array_equal(px.jit(f)(np.arange(3, dtype=np.float32)), [0, 1, 2])
    assert values(log) == [0, 1, 2, 0, 1, 2]
    with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callback"):
        px.vmap(lambda x: note(log, x))(np.arange(3))


def test_no_derivative(log):
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        px.grad(lambda x: (note(log, x), x)[1])(1.0)


def test_failures_surface_at_the_barrier():
    def fails(x):
        raise OSError("disk on fire")

    with pytest.raises(JaxRuntimeError, match="disk on fire") as e:
        px.jit(lambda x: px.io_callback(fails, None, x, ordered=True))(1)
        px.effects_barrier()
    assert isinstance(e.value.__cause__, OSError)
    px.effects_barrier()  # the error is raised only once


def test_a_failure_does_not_stop_later_calls(log):
    def fails(x):
        raise OSError("disk on fire")

    with pytest.raises(JaxRuntimeError):
        px.jit(lambda x: px.io_callback(fails, None, x, ordered=True))(1)
        px.effects_barrier()
    px.jit(lambda x: note(log, x))(2)
    assert values(log) == [2]


def test_the_barrier_refuses_to_wait_for_itself():
    with pytest.raises(JaxRuntimeError, match="called inside a callback"):
        px.jit(lambda: px.io_callback(px.effects_barrier, None))()
        px.effects_barrier()


def test_many_programs_in_flight(log):
    f = px.jit(lambda x: note(log, x, ordered=False))
    for i in range(1000):
        f(np.int32(i))
    assert sorted(values(log)) == list(range(1000))


def test_ahead_of_time(log):
    compiled = px.jit(lambda x: note(log, x)).lower(1).compile()
    compiled(1)
    compiled(2)
    assert values(log) == [1, 2]


# Number of calls


def seen_by(log, x):
    return px.io_callback(lambda x: (log(x), np.asarray(x))[1], S((), np.float32), x)


@pytest.mark.parametrize("ordered", [False, True])
def test_no_call_for_masked_examples(log, ordered):
    def noted(x):
        note(log, x, ordered=ordered)
        return x

    def chosen(x):
        return lax.cond(x > 0, noted, lambda x: x, x)

    def looped(n):
        return lax.while_loop(lambda i: i < n, lambda i: noted(i) + 1, np.int32(0))

    with pytest.raises(NotImplementedError, match="IO effect not supported in vmap of a condition"):
        px.vmap(chosen)(np.array([1.0, -1.0], np.float32))
    if not ordered:
        with pytest.raises(NotImplementedError, match="vmap of a loop's condition that differs"):
            px.vmap(looped)(np.array([1, 3], np.int32))
    assert values(log) == []


def test_conditions_that_all_examples_share(log):
    f = px.vmap(lambda x: lax.cond(True, lambda x: seen_by(log, x), lambda x: x, x))
    assert f(np.array([1.0, 2.0], np.float32)).tolist() == [1.0, 2.0]
    assert sorted(values(log)) == [1.0, 2.0]


@pytest.mark.parametrize("how", [lambda f: f, px.jit])
def test_recomputation_does_not_repeat_calls(log, how):
    @px.checkpoint
    def layer(x):
        note(log, lax.stop_gradient(x))
        return lax.sin(lax.sin(x))

    slope = how(px.grad(lambda x: layer(x) * 2))(0.5)
    assert values(log) == [0.5]
    np.testing.assert_allclose(slope, 2 * np.cos(np.sin(0.5)) * np.cos(0.5), rtol=1e-5)


def test_recomputed_loops_do_not_repeat_calls(log):
    @px.checkpoint
    def step(c, x):
        note(log, x)
        return lax.sin(c) * x, None

    xs = np.array([1.0, 2.0, 3.0], np.float32)
    px.jit(px.grad(lambda c: lax.scan(step, c, xs)[0]))(0.5)
    assert values(log) == [1.0, 2.0, 3.0]


def test_an_empty_batch(log):
    out = px.vmap(lambda x: seen_by(log, x))(np.zeros((0,), np.float32))
    assert out.shape == (0,) and out.dtype == np.float32
    assert values(log) == []
