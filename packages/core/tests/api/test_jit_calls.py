"""Arguments and results of jitted functions."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from typing import Any, NamedTuple

import numpy as np
import pytest

import primax_core as px
from primax_core import lax, tree_util

F32 = np.float32


def traced_twice(fun, *args, **kwargs):
    """The result of the second call, which uses the cached jaxpr."""
    fun(*args, **kwargs)
    return fun(*args, **kwargs)


def test_a_scalar_function():
    f = px.jit(lambda x, y: x * y + 1.0)
    assert float(traced_twice(f, 2.0, 3.0)) == 7.0


def test_numpy_arrays_and_arrays_give_the_same():
    f = px.jit(lambda x: x * 2.0)
    x = np.arange(3, dtype=F32)
    np.testing.assert_array_equal(f(x), f(px.device_put(x)))


def test_weak_type_is_preserved():
    f = px.jit(lambda x: x * 2)
    assert f(1).weak_type and f(1).dtype == np.int32
    assert not f(np.int32(1)).weak_type


def test_results_that_are_literals_become_arrays():
    a, b, c = px.jit(lambda x: (1, 2.0, True))(0.0)
    assert [v.dtype.name for v in (a, b, c)] == ["int32", "float32", "bool"]
    assert a.weak_type and b.weak_type


def test_none_is_an_empty_tree():
    assert px.jit(lambda d: d)({"a": None}) == {"a": None}


class Point(NamedTuple):
    x: Any
    y: Any


@tree_util.register_dataclass
@dataclasses.dataclass
class Weights:
    w: Any
    name: str = dataclasses.field(metadata={"static": True}, default="w")


@tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def tree_flatten(self):
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


@pytest.mark.parametrize(
    "tree",
    [
        (1.0, [2.0, (3.0,)]),
        {"b": 1.0, "a": {"c": 2.0}},
        Point(1.0, [2.0]),
        Weights(3.0, "v"),
        Pair(1.0, (2.0, 3.0)),
        [],
    ],
    ids=lambda t: type(t).__name__,
)
def test_trees(tree):
    out = traced_twice(px.jit(lambda t: tree_util.tree_map(lambda x: x + 1.0, t)), tree)
    assert tree_util.tree_structure(out) == tree_util.tree_structure(tree)
    expected = [x + 1.0 for x in tree_util.tree_leaves(tree)]
    assert [float(x) for x in tree_util.tree_leaves(out)] == expected


def test_keyword_arguments_in_any_order():
    f = px.jit(lambda a, b: a - b)
    assert float(f(b=1.0, a=3.0)) == float(f(a=3.0, b=1.0)) == float(f(3.0, b=1.0)) == 2.0


def test_defaults_of_the_function():
    f = px.jit(lambda x, y=2.0: x * y)
    assert float(f(3.0)) == 6.0


def test_a_method():
    class Scaled:
        k = 3.0

        def run(self, x):
            return px.jit(self.scale)(x)

        def scale(self, x):
            return x * self.k

    assert float(Scaled().run(2.0)) == 6.0


def test_a_method_with_static_self():
    class Power:
        def __init__(self, n):
            self.n = n

        @functools.partial(px.jit, static_argnums=0)
        def __call__(self, x):
            return lax.integer_pow(x, self.n)

    assert float(Power(2)(3.0)) == 9.0
    assert float(Power(3)(3.0)) == 27.0


def test_closures_and_partials():
    x = np.arange(3, dtype=F32)
    np.testing.assert_array_equal(px.jit(lambda y: y + x)(1.0), x + 1)
    f = px.jit(functools.partial(lambda a, b: a - b, 1.0))
    assert float(f(3.0)) == -2.0


def test_a_callable_object():
    class Adder:
        def __call__(self, x):
            return x + 1.0

    assert float(px.jit(Adder())(1.0)) == 2.0


def test_decorators_with_and_without_options():
    @px.jit
    def f(x):
        "Adds."
        return x + 1.0

    @px.jit(static_argnums=1)
    def g(x, n):
        return x * n

    assert f.__name__ == "f" and f.__doc__ == "Adds." and f.__wrapped__(1.0) == 2.0
    assert float(g(2.0, 3)) == 6.0
    assert repr(f).startswith("<JitFunction of <function")


class TestStatic:
    def test_by_position_by_name_and_from_the_end(self):
        def f(x, n):
            return x * (2 if n > 1 else 3)

        for options in ({"static_argnums": 1}, {"static_argnames": "n"}, {"static_argnums": -1}):
            g = px.jit(f, **options)
            assert float(g(2.0, 3)) == float(g(2.0, n=3)) == 4.0

    def test_defaults_of_static_arguments(self):
        f = px.jit(lambda x, n=3: x * n if n > 1 else x, static_argnames="n")
        assert float(f(2.0)) == 6.0 and float(f(2.0, n=1)) == 2.0

    def test_any_name_with_keywords_of_any_name(self):
        f = px.jit(lambda x, **kw: x * kw["k"] if kw["k"] else x, static_argnames=("k",))
        assert float(f(2.0, k=3)) == 6.0

    def test_among_any_number_of_arguments(self):
        f = px.jit(lambda *a: a[0] * a[1], static_argnums=(1,))
        assert float(f(2.0, 3)) == 6.0

    def test_objects_by_hash_and_equality(self):
        class Config:
            def __init__(self, k):
                self.k = k

            def __hash__(self):
                return hash(self.k)

            def __eq__(self, other):
                return type(other) is Config and other.k == self.k

        runs = []
        f = px.jit(lambda c, x: (runs.append(1), x * c.k)[1], static_argnums=0)
        assert float(f(Config(2), 3.0)) == float(f(Config(2), 3.0)) == 6.0
        assert float(f(Config(4), 3.0)) == 12.0
        assert len(runs) == 2

    def test_functions(self):
        f = px.jit(lambda g, x: g(x), static_argnums=0)
        assert float(f(lax.sin, 0.0)) == 0.0 and float(f(lax.cos, 0.0)) == 1.0


class TestNested:
    def test_values(self):
        inner = px.jit(lambda x: x * 2.0)
        assert float(px.jit(lambda x: inner(inner(x)) + 1.0)(3.0)) == 13.0

    def test_inline_leaves_no_equation(self):
        def f(x):
            return x * 2.0

        called = str(px.make_jaxpr(px.jit(f))(1.0))
        inlined = str(px.make_jaxpr(px.jit(f, inline=True))(1.0))
        assert "jit[" in called and "jit[" not in inlined

    def test_closing_over_a_tracer(self):
        def f(x):
            return px.jit(lambda y: x * y)(3.0)

        assert float(px.jit(f)(2.0)) == 6.0
        assert float(px.grad(f)(2.0)) == 3.0
        assert px.vmap(f)(np.arange(2, dtype=F32)).tolist() == [0.0, 3.0]

    def test_static_in_the_inner_one(self):
        inner = px.jit(lambda x, n: lax.integer_pow(x, n), static_argnums=1)
        assert float(px.jit(lambda x: inner(x, 3))(2.0)) == 8.0


@pytest.mark.parametrize("follow", [True, False])
def test_the_signature_is_that_of_the_function(follow):
    def fun(x, y=1, *, z=2):
        return x

    for jitted in (px.jit(fun), px.jit(fun, static_argnums=1)):
        told = inspect.signature(jitted, follow_wrapped=follow)
        assert told == inspect.signature(fun)
    assert "fun" in inspect.signature(type(jitted)).parameters


def test_disable_jit_runs_python():
    f = px.jit(lambda x: x if x > 0 else "negative")
    with px.disable_jit():
        assert f(-1.0) == "negative"


def test_compiler_options_are_passed_to_xla():
    f = px.jit(lambda x: x + 1.0, compiler_options={"xla_embed_ir_in_executable": True})
    assert float(f(1.0)) == 2.0


def test_unused_arguments():
    for keep in (False, True):
        f = px.jit(lambda x, y: x + 1.0, keep_unused=keep)
        assert float(f(1.0, np.zeros(3, F32))) == 2.0
        text = f.lower(1.0, np.zeros(3, F32)).as_text()
        assert ("tensor<3xf32>" in text) is keep


def test_pruned_arguments_may_have_been_deleted():
    dead = px.device_put(np.zeros(3, F32))
    f = px.jit(lambda x, y: x + 1.0)
    f(1.0, dead)
    dead.delete()
    assert float(f(1.0, dead)) == 2.0


class TestPlacement:
    def test_follows_committed_arguments(self):
        second = px.devices()[1]
        x = px.device_put(np.arange(3, dtype=F32), second)
        assert px.jit(lambda x: x * 2.0)(x).devices() == {second}

    def test_shardings_determine_the_device(self):
        second = px.devices()[1]
        f = px.jit(lambda x: x * 2.0, in_shardings=second, out_shardings=second)
        y = f(np.arange(3, dtype=F32))
        assert y.devices() == {second} and y.committed

    def test_two_devices_at_once_are_refused(self):
        a = px.device_put(np.zeros(2, F32), px.devices()[0])
        b = px.device_put(np.zeros(2, F32), px.devices()[1])
        with pytest.raises(ValueError, match="incompatible devices"):
            px.jit(lambda x, y: x + y)(a, b)

    def test_the_device_argument_is_deprecated(self):
        second = px.devices()[1]
        with pytest.warns(DeprecationWarning, match="device_put"):
            f = px.jit(lambda x: x * 2.0, device=second)
        assert f(1.0).devices() == {second}

    def test_default_device(self):
        second = px.devices()[1]
        f = px.jit(lambda x: x * 2.0)
        with px.default_device(second):
            assert f(1.0).devices() == {second}
        assert f(1.0).devices() == {px.devices()[0]}


class TestEffortLevels:
    @pytest.mark.parametrize("option", ["optimization_level", "memory_fitting_level"])
    @pytest.mark.parametrize("level", ["O1", 19, px.CompilerEffortLevel.O1])
    def test_accepted(self, option, level):
        assert float(px.jit(lambda x: x * 2.0, compiler_options={option: level})(1.0)) == 2.0

    def test_reach_the_compiler(self):
        from primax_core._lower.compile import make_options

        devices = tuple(px.devices()[:1])
        options = make_options(devices, (("memory_fitting_level", "O3"), ("optimization_level", 9)))
        build = options.executable_build_options
        assert (build.memory_fitting_level, build.optimization_level) == (39, 9)

    @pytest.mark.parametrize("level", ["O7", 3, None])
    def test_refused(self, level):
        with pytest.raises(ValueError, match="must be a CompilerEffortLevel or one of the names"):
            px.jit(lambda x: x, compiler_options={"optimization_level": level})(1.0)
