"""``debug_nans`` and ``debug_infs`` name the operation and its line."""

from __future__ import annotations

import re

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.extend import Primitive, abstract, lower, run_jaxprs, stage, typeof

HERE = "test_debug_nans.py"


def f(x):
    y = x * 2
    return lax.log(y) + 1  # the line


PLACE = rf"encountered in log \(at .*{HERE}:{f.__code__.co_firstlineno + 2}:\d+ \(f\)\)"


def scanned(x):
    return lax.scan(lambda c, _: (lax.sqrt(c - 1.0), None), x, None, length=5)[0]


def looped(x):
    return lax.while_loop(lambda c: c[1] < 3, lambda c: (lax.sqrt(c[0] - 1.0), c[1] + 1), (x, 0))


def chosen(x):
    return lax.cond(x > 0, lambda x: lax.sqrt(x - 5), lambda x: x, x)


CASES = {
    "eager": (f, -1.0, PLACE),
    "jit": (px.jit(f), -1.0, PLACE),
    "nested": (px.jit(lambda x: px.jit(f)(x)), -1.0, PLACE),
    "vmap": (px.jit(px.vmap(f)), np.array([1.0, -1.0], np.float32), PLACE),
    "scan": (px.jit(scanned), 2.0, r"sqrt \(at .*scanned"),
    "eager scan": (scanned, 2.0, r"sqrt \(at .*scanned"),
    "while": (px.jit(looped), 2.0, r"sqrt \(at .*looped"),
    "cond": (px.jit(chosen), 2.0, r"sqrt \(at .*chosen"),
    "checkpoint": (px.jit(px.checkpoint(f)), -1.0, PLACE),
    "grad": (px.jit(px.grad(lambda x: lax.sqrt(x) * 0.0)), 0.0, r"mul \(at "),
    "eager grad": (px.grad(lambda x: lax.sqrt(x) * 0.0), 0.0, r"mul \(at "),
}


@pytest.mark.parametrize("name", CASES)
def test_nans_are_located(name):
    g, x, text = CASES[name]
    with px.debug_nans(True), pytest.raises(FloatingPointError) as e:
        px.block_until_ready(g(x))
    assert re.search(rf"invalid value \(nan\) .*{text}", str(e.value)), str(e.value)
    px.block_until_ready(g(x))  # no error without the option


def test_infinities():
    g = px.jit(lambda x: lax.exp(x * 1000.0))
    with px.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\) .* exp \(at "):
        g(1.0)
    with px.debug_nans(True):
        assert np.isinf(g(1.0))


def test_finite_values_pass():
    with px.debug_nans(True), px.debug_infs(True):
        assert float(px.jit(f)(1.0)) == pytest.approx(np.log(2.0) + 1)
        assert px.jit(lambda x: x + 1)(3).dtype == np.int32


def test_donated_arguments_can_be_searched():
    with px.debug_nans(True), pytest.raises(FloatingPointError, match=PLACE):
        px.jit(f, donate_argnums=0)(lax.neg(lax.full((3,), 1.0)))


def test_closed_over_arrays():
    big = lax.full((100,), -1.0)
    with px.debug_nans(True), pytest.raises(FloatingPointError, match=PLACE):
        px.jit(lambda x: f(big) * x)(1.0)


def test_side_effects_are_not_repeated():
    seen = []

    def g(x):
        px.io_callback(lambda x: seen.append(float(x)), None, x)
        return f(x)

    with px.debug_nans(True), pytest.raises(FloatingPointError, match=r"encountered in g$"):
        px.jit(g)(-1.0)
    assert seen == [-1.0]


def test_nans_found_through_printed_values(capsys):
    def g(x):
        px.debug.print("x {}", x)
        return f(x)

    with px.debug_nans(True), pytest.raises(FloatingPointError, match=PLACE):
        px.jit(g)(-1.0)
    assert capsys.readouterr().out.startswith("x -1.0\n")


def test_each_use_of_a_primitive_has_its_location():
    """Executables of operations, and of functions of one operation, are shared."""
    x = px.device_put(np.array([-1.0], np.float32))

    def again(y):
        return lax.log(y)

    def once_more(y):
        return lax.log(y)

    for how in (lambda f: f, px.jit, px.vmap):
        for f in (again, once_more):
            line = f.__code__.co_firstlineno + 1
            with px.debug_nans(True), pytest.raises(FloatingPointError) as e:
                how(f)(x)
            assert f"{HERE}:{line}:" in str(e.value), str(e.value)


def holder(with_rule):
    """A primitive that runs a jaxpr, as a third party would define it."""
    held_p = Primitive("held", multiple_results=True)
    held_p.rule(abstract)(lambda *avals, jaxpr: jaxpr.out_avals)
    held_p.rule(lower)(lambda ctx, *xs, jaxpr: ctx.call_jaxpr(jaxpr, "held", xs))
    if with_rule:
        held_p.rule(run_jaxprs)(lambda run, args, *, jaxpr: run(jaxpr, args))
    return lambda x: held_p.bind(x, jaxpr=stage(lambda x: [lax.log(x)], [typeof(x)]))[0]


@pytest.mark.parametrize("with_rule, name", [(True, "log"), (False, "held")])
def test_operations_of_third_parties_are_searched_by_their_rule(with_rule, name):
    with px.debug_nans(True), pytest.raises(FloatingPointError, match=rf" {name} \(at .*{HERE}"):
        px.jit(holder(with_rule))(np.float32(-1.0))


def test_a_nan_of_a_late_iteration_is_found_in_nested_loops():
    def inner(c):
        return lax.fori_loop(0, 3, lambda i, c: lax.square(lax.sqrt(c)) - 0.1, c)

    def outer(x):
        return lax.scan(lambda c, _: (inner(c), None), x, None, length=40)[0]

    with px.debug_nans(True), pytest.raises(FloatingPointError, match=r"sqrt \(at .*inner"):
        px.jit(outer)(np.float32(5.0))
