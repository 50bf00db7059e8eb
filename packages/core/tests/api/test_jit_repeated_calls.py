"""Repeated calls of jitted functions, which look up their executable by a key of the arguments."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax

F32 = np.float32


class Counted:
    """A function that counts how often it is traced."""

    def __init__(self, fun):
        self.fun, self.traces = fun, 0
        self.__name__ = "counted"

    def __call__(self, *args, **kwargs):
        self.traces += 1
        return self.fun(*args, **kwargs)


def x(n=3):
    return px.device_put(np.arange(n, dtype=F32))


def second(array):
    return float(np.asarray(array)[1])


def refuse_slow_calls(monkeypatch, f):
    def slow(*_):
        raise AssertionError("the call is not on the fast path")

    monkeypatch.setattr(f, "_call", slow, raising=False)


@pytest.mark.parametrize(
    ("options", "args", "kwargs"),
    [
        ({"static_argnums": 1}, (x(), 3), {}),
        ({"static_argnums": -1}, (x(), 3), {}),
        ({"static_argnums": 0}, (3, x()), {}),
        ({"static_argnums": (0, 2)}, (3, x(), "mode"), {}),
        ({"static_argnames": "n"}, (x(),), {"n": 3}),
        ({"static_argnames": "n"}, ({"a": x(), "b": x()},), {"n": 3}),
        ({"static_argnums": 1}, (x(), 3, (x(), None)), {}),
        ({"static_argnums": 0}, (3,), {}),
        ({}, (x(),), {"b": x(), "a": x()}),
        ({}, (x(), {"a": x()}), {}),
        ({}, ({"a": x()}, x()), {}),
        ({}, (), {}),
        ({"donate_argnums": ()}, ((x(),),), {"t": [x(), x()]}),
    ],
)
def test_repeated_calls_with_static_nested_and_keyword_arguments_take_the_fast_path(
    monkeypatch, options, args, kwargs
):
    def arrays(*args, **kwargs):
        return [v for v in px.tree_util.tree_leaves((args, kwargs)) if hasattr(v, "shape")]

    def named(x, n):
        return arrays(x, n)

    f = px.jit(named if "static_argnames" in options else arrays, **options)
    for _ in range(2):
        f(*args, **kwargs)
    expected = f(*args, **kwargs)
    refuse_slow_calls(monkeypatch, f)
    for value, want in zip(f(*args, **kwargs), expected, strict=True):
        np.testing.assert_array_equal(value, want)


def test_static_values_of_different_types_are_different_signatures():
    f = px.jit(lambda x, n: x * (10 if n is True else 20 if type(n) is int else 30),
               static_argnums=1)  # fmt: skip
    for _ in range(3):
        assert [second(f(x(), n)) for n in (True, 1, 1.0)] == [10.0, 20.0, 30.0]


def test_keyword_arguments_in_any_order():
    f = px.jit(lambda a, b, n: a - b * n, static_argnames="n")
    a, b = x(), x() * 10
    for _ in range(3):
        np.testing.assert_array_equal(f(a=a, b=b, n=1), np.arange(3) * -9.0)
        np.testing.assert_array_equal(f(b=b, n=1, a=a), np.arange(3) * -9.0)
        np.testing.assert_array_equal(f(n=2, b=a, a=b), np.arange(3) * 8.0)


def test_positional_and_keyword_forms_of_a_static_argument():
    f = px.jit(lambda x, n=2: x * n, static_argnames="n")
    for _ in range(3):
        assert [second(v) for v in (f(x()), f(x(), 3), f(x(), n=4))] == [2.0, 3.0, 4.0]


def test_arrays_and_trees_as_the_same_argument():
    f = px.jit(lambda x, t: x + (t["a"] if isinstance(t, dict) else 2 * t))
    for _ in range(4):
        assert second(f(x(), {"a": x()})) == 2.0
        assert second(f(x(), x())) == 3.0
        assert second(f(x(), 5.0)) == 11.0
    g = px.jit(lambda n, t: n * (t["a"] if isinstance(t, dict) else 2 * t), static_argnums=0)
    for _ in range(4):
        assert second(g(3, {"a": x()})) == 3.0
        assert second(g(3, x())) == 6.0
        assert float(g(3, 5.0)) == 30.0


@pytest.mark.parametrize("value", [[1], {}, np.ones(2), px.device_put(np.ones(2, F32))])
def test_unhashable_static_arguments_are_refused_after_calls_that_were_not(value):
    f = px.jit(lambda x, n: x * 2, static_argnums=1)
    for _ in range(3):
        f(x(), (1,))
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        f(x(), value)


def test_an_error_of_the_hash_of_a_static_argument_is_raised():
    class Broken:
        def __hash__(self):
            raise KeyError("broken hash")

    f = px.jit(lambda x, n: x * 2, static_argnums=1)
    for _ in range(3):
        f(x(), 1)
    with pytest.raises(KeyError, match="broken hash"):
        f(x(), Broken())


def test_options_weak_types_and_devices_are_part_of_the_key():
    counted = Counted(lambda x, n: x * n)
    f = px.jit(counted, static_argnums=1)
    weak = px.jit(lambda: 2.0)()
    for _ in range(3):
        assert f(x(), 2).dtype == F32 and not f(x(), 2).weak_type
        assert f(weak, 2).weak_type
        with px.enable_x64(True):
            wide = px.device_put(np.arange(3.0))
            assert f(wide, 2).dtype == np.float64
        with px.disable_jit():
            before = counted.traces
            f(x(), 2)
            assert counted.traces == before + 1
    assert f(x(), 2).dtype == F32


def test_transformations_of_calls_that_are_on_the_fast_path():
    f = px.jit(lambda x, n, t: lax.reduce_sum(x**n * t["a"], (0,)), static_argnums=1)
    for _ in range(3):
        f(x(), 2, {"a": x()})
    np.testing.assert_allclose(px.grad(lambda v: f(v, 2, {"a": v}))(x()), 3.0 * np.arange(3) ** 2)
    batch = px.vmap(lambda v: f(v, 3, {"a": v}))(px.device_put(np.ones((2, 3), F32)))
    np.testing.assert_allclose(batch, [3.0, 3.0])
    assert float(px.jit(lambda v: f(v, 2, {"a": v}))(x())) == 9.0


def test_donated_unused_and_closed_over_arrays_in_repeated_calls():
    table = px.device_put(np.arange(100, dtype=F32))
    step = px.jit(lambda n, t, unused: {k: v + n for k, v in t.items()},
                  static_argnums=0, donate_argnums=1)  # fmt: skip
    state = {"a": x(), "b": x()}
    for _ in range(5):
        old, state = state, step(2, state, table)
        assert all(v.is_deleted() for v in old.values())
    np.testing.assert_array_equal(state["a"], np.arange(3) + 10.0)
    with pytest.raises(RuntimeError, match=r"deleted[\s\S]*argument number 0 of"):
        step(2, old, table)
    closed = px.jit(lambda x, n: (x + lax.slice(table, [0], [3])) * n, static_argnums=1)
    for _ in range(4):
        np.testing.assert_array_equal(closed(x(), 2), 4.0 * np.arange(3))


def test_deleted_arrays_beside_static_arguments_are_named():
    f = px.jit(lambda n, x, y: x + y * n, static_argnums=0)
    for _ in range(3):
        f(2, x(), x())
    gone = x()
    gone.delete()
    with pytest.raises(RuntimeError, match=r"It is argument number 1 of jit\("):
        f(2, x(), gone)


def test_cleared_caches_are_empty_for_calls_with_static_arguments():
    counted = Counted(lambda x, n: x * n)
    f = px.jit(counted, static_argnums=1)
    for _ in range(3):
        f(x(), 2)
    assert counted.traces == 1
    f.clear_cache()
    f(x(), 2)
    assert counted.traces == 2


def test_bound_methods_with_a_static_self():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        def apply(self, x, shift):
            return x * self.scale + shift

        apply = px.jit(apply, static_argnums=0)

    two, three = Model(2.0), Model(3.0)
    for _ in range(3):
        assert second(two.apply(x(), x())) == 3.0
        assert second(three.apply(x(), x())) == 4.0
