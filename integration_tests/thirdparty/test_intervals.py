"""A third-party interpreter: a new rule kind for primitives of all packages."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from primax_core import checkpoint, custom_jvp, grad, jit, lax, vmap
from primax_core.extend import Primitive, RuleState, abstract, expand, lower
from primax_core.extend.lowering import hlo

example = pytest.importorskip("example_intervals", reason="the example packages are not installed")
Interval, bounds, interval = example.Interval, example.bounds, example.interval

RNG = np.random.default_rng(0)


def between(low, high):
    return Interval(np.float32(low), np.float32(high))


def assert_contains(fun, *args, n=200):
    """Assert that the bounds contain the results at random points and are not too wide."""
    actual = bounds(fun)(*args)
    low, high = np.asarray(actual.low), np.asarray(actual.high)
    assert (low <= high).all()
    for _ in range(n):
        point = [np.asarray(RNG.uniform(a.low, a.high), np.float32) for a in args]
        value = np.asarray(fun(*point))
        slack = 1e-5 * (1 + np.abs(value))
        assert (low - slack <= value).all() and (value <= high + slack).all()
    return low, high


CASES = {
    "polynomial": (lambda x: x * x * x - 2.0 * x + 1.0, between(-1, 2)),
    "square": (lambda x: lax.square(x), between(-1, 2)),
    "negative power": (lambda x: lax.integer_pow(x, -3), between(1, 2)),
    "sine": (lambda x: lax.sin(3.0 * x), between(0, 2)),
    "cosine": (lambda x: lax.cos(x), between(-0.5, 1.0)),
    "quotient": (lambda x: (1.0 + x) / (2.0 + x), between(-1, 1)),
    "chain": (lambda x: lax.log1p(lax.exp(-lax.abs(x))), between(-3, 1)),
    "extrema": (lambda x: lax.max(x, lax.neg(x)) - lax.min(x, 0.5), between(-1, 1)),
    "choice": (lambda x: lax.select(x > 0.0, x, lax.exp(x)), between(-1, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_contain_the_values(name):
    fun, x = CASES[name]
    assert_contains(fun, x)


def test_bounds_are_exact_where_a_variable_occurs_once():
    low, high = bounds(lambda x: lax.exp(lax.square(x) - 1.0))(between(-1, 2))
    np.testing.assert_allclose([low, high], np.exp([-1, 3]), rtol=1e-6)


def test_matrices():
    w = RNG.standard_normal((3, 4)).astype(np.float32)
    x = Interval(np.full(3, -1, np.float32), np.full(3, 2, np.float32))
    low, high = assert_contains(lambda v: lax.tanh(lax.dot(v, w)), x)
    assert low.shape == high.shape == (4,)


def inner(x):
    return lax.sin(x) * x


@custom_jvp
def doubled(x):
    return 2.0 * x


doubled.defjvp(lambda p, t: (doubled(*p), 2.0 * t[0]))


@pytest.mark.parametrize("wrap", [jit, checkpoint, grad, lambda f: jit(grad(grad(f)))])
def test_calls_and_derivatives_are_expanded(wrap):
    assert_contains(wrap(inner), between(0.2, 1.5))


def test_custom_rules_are_expanded():
    low, high = bounds(lambda x: doubled(x) + grad(doubled)(x))(between(0, 1))
    np.testing.assert_allclose([low, high], [2, 4])


def test_composition_with_jit_vmap_and_grad():
    f = bounds(lambda x: x * lax.exp(x))
    x = between(0, 1)
    np.testing.assert_allclose(jit(f)(x), f(x), rtol=1e-6)
    lows = np.linspace(-1, 0, 5, dtype=np.float32)
    batch = vmap(f)(Interval(lows, lows + 1))
    for i, low in enumerate(lows):
        np.testing.assert_allclose(
            [np.asarray(b)[i] for b in batch], f(between(low, low + 1)), rtol=1e-5, atol=1e-6
        )
    # The upper bound of x exp(x) on [0, h] is h exp(h).
    derivative = grad(lambda h: f(Interval(np.float32(0), h)).high)(np.float32(1))
    np.testing.assert_allclose(derivative, 2 * np.e, rtol=1e-5)


def test_inside_scan():
    def logistic_map(x):
        _, ys = lax.scan(lambda c, _: (0.5 * c * (1.0 - c), c), x, None, length=4)
        return ys

    low, _ = assert_contains(logistic_map, between(0.2, 0.3))
    assert low.shape == (4,)


def test_inside_cond():
    def either(x):
        return lax.cond(x > 1.0, lambda v: v * 10.0, lambda v: -v, x)

    low, high = assert_contains(either, between(0.5, 2))
    np.testing.assert_allclose([low, high], [-2, 20])
    np.testing.assert_allclose(bounds(either)(between(2, 3)), [20, 30])


def test_inside_while_loop():
    def halved(x):
        return lax.while_loop(lambda v: v > 1.0, lambda v: 0.5 * v, x)

    low, high = assert_contains(halved, between(3, 9))
    np.testing.assert_allclose([low, high], [0.1875, 2.25])  # all states in which it may stop
    np.testing.assert_allclose(bounds(halved)(between(0.2, 0.3)), [0.2, 0.3], rtol=1e-6)
    np.testing.assert_allclose(jit(bounds(halved))(between(3, 9)), [low, high], rtol=1e-6)


def test_possibly_infinite_loop_is_unbounded():
    def stuck(x):
        return lax.while_loop(lambda v: v > 1.0, lambda v: v * 1.0, x)

    assert [float(b) for b in bounds(stuck)(between(0, 2))] == [-np.inf, np.inf]


def strange() -> Primitive:
    p = Primitive("strange")
    p.rule(abstract)(lambda x: x)
    p.rule(lower)(lambda ctx, x: hlo.add(x, x))
    return p


def test_foreign_primitive_needs_exact_operands():
    p = strange()
    assert p.state_of(interval) is RuleState.FALLBACK
    f = bounds(lambda x: p.bind(x) + 1.0)
    assert [float(b) for b in f(between(0, 1))] == [-np.inf, np.inf]
    assert [float(b) for b in f(between(2, 2))] == [5.0, 5.0]


def test_foreign_primitive_uses_its_expansion():
    p = strange()
    p.rule(expand)(lambda x: x + x)
    assert [float(b) for b in bounds(p.bind)(between(0, 1))] == [0.0, 2.0]


def test_rule_for_a_foreign_primitive():
    other = pytest.importorskip("example_hadamard")
    x = Interval(np.zeros(2, np.float32), np.ones(2, np.float32))
    assert np.isinf(bounds(other.hadamard)(x).high).all()

    @other.hadamard_p.rule(interval)
    def _(x, *, axis):
        middle, radius = (x.low + x.high) * 0.5, (x.high - x.low) * 0.5
        out = other.hadamard(middle, axis)
        total = lax.reduce_sum(radius, (axis,))
        spread = lax.broadcast_in_dim(lax.expand_dims(total, (axis,)), out.shape, range(out.ndim))
        return Interval(out - spread, out + spread)

    try:
        np.testing.assert_allclose(bounds(other.hadamard)(x), [[0, -1], [2, 1]])
    finally:
        del other.hadamard_p.rules[interval]


def test_unordered_types_raise():
    with pytest.raises(TypeError, match="there are no intervals of complex64"):
        bounds(lambda x: lax.real(lax.conj(lax.complex(x, x))))(between(0, 1))


@pytest.mark.parametrize("name", ["hadamard", "intervals", "inference"])
def test_packages_use_present_names(name):
    code = ["-W", "error::DeprecationWarning", "-c", f"import example_{name}"]
    process = subprocess.run([sys.executable, *code], text=True, capture_output=True)
    assert process.stderr == ""


LOOK_AROUND = """
import sys
for name in sys.argv[1:]:
    __import__(name)
import numpy as np
from primax_core import grad, lax, make_jaxpr
from primax_core.extend import known_primitives
own = [p for p in known_primitives() if p.home.startswith("primax_core")]
kinds = [sorted(k.name for k in p.rules if k.name != "interval") for p in own]
f = lambda x: lax.scan(lambda c, _: (lax.sin(c) * x, c), x, None, length=3)[0]
print(sorted(zip([p.name for p in own], kinds)), make_jaxpr(grad(f))(1.0), grad(f)(1.0))
"""


def test_importing_the_packages_has_no_other_effect():
    seen = [
        subprocess.run([sys.executable, "-c", LOOK_AROUND, *names], text=True, capture_output=True)
        for names in ([], ["example_hadamard", "example_intervals"])
    ]
    assert [p.stderr for p in seen] == ["", ""]
    assert seen[0].stdout == seen[1].stdout
