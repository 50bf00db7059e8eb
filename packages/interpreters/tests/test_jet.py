"""Taylor mode: derivatives of all orders along a curve."""

from __future__ import annotations

from functools import partial
from math import factorial

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.extend import (
    Primitive,
    RuleState,
    abstract,
    jvp,
    lower,
    samples,
    trace_rule,
    walk,
)
from primax_core.testing import primitives_of
from primax_core.testing.calls import Call
from primax_interpreters import taylor
from primax_interpreters.jet import def_comp, def_deriv, deflinear, defzero, fact, jet
from test_support import assert_close

ORDER = 5


def repeated(fun, order):
    """Derivatives of a function of one number by nested forward mode."""

    def slope(f):
        return lambda t: px.jvp(f, (t,), (1.0,))[1]

    chain = [fun]
    for _ in range(order):
        chain.append(slope(chain[-1]))
    return lambda t: [f(t) for f in chain[1:]]


def terms(x, *more, order=ORDER):
    return [x, *more, *[0] * (order - 1 - len(more))]


close = partial(assert_close, rtol=2e-5)

# Every smooth primitive


# Derivatives of these are declared not to exist, or only up to an order.
FEWER = {
    "igamma", "regularized_incomplete_beta", "zeta", "betainc_grad_a", "betainc_grad_b",
}  # fmt: skip
# The order to which repeated forward mode is quick enough to compare with.
ORDERS = {
    "bessel_i0e": 3, "bessel_i1e": 3, "beta_density": 3, "eigh": 3, "svd": 3, "lu": 3, "qr": 3,
    "eig": 3, "householder_product": 3, "gamma_density": 4,
}  # fmt: skip


def smooth():
    for prim in primitives_of(px.lax) + primitives_of(px._transform) + primitives_of(px._engine):
        known = RuleState.PRESENT, RuleState.FALLBACK
        if prim.state_of(samples) is not RuleState.PRESENT or prim.name in FEWER:
            continue
        if prim.state_of(jvp) not in known and prim.state_of(trace_rule) not in known:
            continue
        for i, sample in enumerate(prim.rules[samples]()):
            if sample.raises is not None or {"jvp", "second order"} & {*sample.without}:
                continue
            call = Call(prim, sample, True, 0)
            if call.differentiable and all(np.size(call.args[p]) for p in call.differentiable):
                yield pytest.param(call, id=f"{prim.name}-{i}")
                break


@pytest.mark.rotate()
@pytest.mark.parametrize("call", [*smooth()])
def test_primitives_as_repeated_forward_mode(call):
    order = ORDERS.get(call.prim.name, ORDER)
    draw = np.random.default_rng(1)

    def direction(x):
        r = draw.uniform(-0.3, 0.3, x.shape)
        return (r + 0.2j * r[::-1] if x.dtype.kind == "c" and x.ndim else r).astype(x.dtype)

    with call.mode():
        fun = call.of(call.differentiable)
        x = [np.asarray(call.args[i]) for i in call.differentiable]
        v, w = [direction(a) for a in x], [direction(a) for a in x]

        def curve(t):
            t = {a.dtype: lax.convert_element_type(t, a.dtype) for a in x}
            return fun(*[a + t[a.dtype] * (b + t[a.dtype] * 0.5 * c) for a, b, c in zip(x, v, w)])

        @px.jit
        def both():
            series = [terms(b, c, order=order) for b, c in zip(v, w)]
            return jet(fun, x, series), repeated(curve, order)(0.0)

        (_, result), rows = both()
    for k in range(order):
        for f, expected in zip(result, rows[k]):
            assert f[k].dtype == expected.dtype
            close(f[k], expected, rtol=1e-8 * max(1.0, float(np.max(np.abs(expected)))))


# Conventions


def test_derivatives_are_not_divided_by_factorials():
    y, result = jet(lax.sin, (0.5,), ([1.0, 0.0, 0.0],))
    close(y, np.sin(0.5))
    close(result, [np.cos(0.5), -np.sin(0.5), -np.cos(0.5)])


def test_coefficients_of_a_power_series():
    _, result = jet(lambda x: x * x, (3.0,), ([1.0, 2.0, 0.0],), factorial_scaled=False)
    assert [float(t) for t in result] == [6.0, 13.0, 4.0]
    _, result = jet(lax.exp, (0.0,), ([1.0, 0.0, 0.0],), factorial_scaled=False)
    close(result, [1 / factorial(k) for k in (1, 2, 3)])


def test_polynomials_are_exact():
    y, result = jet(lambda x: lax.integer_pow(x, 5), (0.0,), ([1.0, 0, 0, 0, 0, 0],))
    assert float(y) == 0 and [float(t) for t in result] == [0, 0, 0, 0, 120, 0]


def test_trees_of_arguments_and_results():
    def fun(d, y):
        return {"product": d["p"] * y}, d["p"]

    out, result = jet(fun, ({"p": 2.0}, 3.0), ([{"p": 1.0}, 0], [1.0, 0.0]))
    assert float(out[0]["product"]) == 6.0
    assert [float(t) for t in result[0]["product"]] == [5.0, 2.0]
    assert [float(t) for t in result[1]] == [1.0, 0.0]


def test_results_that_do_not_move():
    (flag, const), (flags, consts) = jet(lambda x: (x > 0, 5.0), (3.0,), ([1.0, 0.0],))
    assert bool(flag) and float(const) == 5.0
    assert [float(t) for t in [*flags, *consts]] == [0, 0, 0, 0]


def test_no_derivatives_at_all():
    y, result = jet(lax.sin, (0.5,), ([],))
    close(y, np.sin(0.5))
    assert result == []


def test_integers_stay_where_they_are():
    _, result = jet(lambda x, n: lax.pow(x, n), (2.0, np.int32(3)), ([1.0, 0], [0, 0]))
    assert [float(t) for t in result] == [12.0, 12.0]


def test_zeros_cost_nothing():
    jaxpr = px.make_jaxpr(lambda x, v: jet(lambda a: 2.0 * a, (x,), ([v, 0, 0, 0],)))(1.0, 1.0)
    assert [e.primitive.name for e in jaxpr.eqns].count("mul") == 2
    assert {e.primitive.name for e in jaxpr.eqns} <= {"mul", "broadcast_in_dim"}


# Programs


def cube(x):
    return x * x * x


def by_reference(x):
    ref = px.new_ref(x)
    ref[...] = ref[...] * x
    return ref[...] * x


CONTROL = {
    "reference": by_reference,
    "jit": px.jit(cube),
    "checkpoint": px.checkpoint(cube),
    "scan": lambda x: lax.scan(lambda c, _: (c * x, c), 1.0, None, length=3)[0],
    "rows of a scan": lambda x: lax.index_in_dim(
        lax.scan(lambda c, _: (c * x, c * x), 1.0, None, length=3)[1], 2, keepdims=False
    ),
    "scan over what moves": lambda x: lax.scan(
        lambda c, a: (c * a, None), 1.0, lax.broadcast(x, (3,))
    )[0],
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))[
        1
    ],
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, 1.0),
    "cond": lambda x: lax.cond(x > 0, cube, lambda y: y, x),
    "branches that move differently": lambda x: lax.cond(x > 0, cube, lambda y: 1.0, x),
    "switch": lambda x: lax.switch(1, (lax.sin, cube), x),
}


@pytest.mark.parametrize("name", CONTROL)
@pytest.mark.parametrize("staged", [False, True], ids=["eager", "jit"])
def test_control_flow(name, staged):
    def run(x):
        return jet(CONTROL[name], (x,), ([1.0, 0.0, 0.0],))

    y, result = (px.jit(run) if staged else run)(2.0)
    close([y, *result], [8, 12, 12, 6])


def test_the_condition_of_python_reads_values():
    assert float(jet(lambda x: x * 3.0 if x > 0 else x, (2.0,), ([1.0],))[1][0]) == 3.0


def test_custom_forward_derivatives_are_followed():
    @px.custom_jvp
    def f(x):
        return lax.sin(x)

    f.defjvp(lambda p, t: (f(*p), 10.0 * lax.cos(p[0]) * t[0]))
    for fun in (f, px.jit(f), lambda x: px.jit(f)(x) + 0.0):
        y, result = jet(fun, (0.5,), ([1.0, 0.0, 0.0],))
        close([y, *result], [np.sin(0.5), *(10 * t for t in (np.cos(0.5), -np.sin(0.5)))]
              + [-10 * np.cos(0.5)])  # fmt: skip


def test_custom_reverse_derivatives_are_looked_through():
    @px.custom_vjp
    def f(x):
        return lax.sin(x)

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (100 * ct,))
    for fun in (f, px.jit(f)):
        close(jet(fun, (0.5,), ([1.0, 0.0],))[1], [np.cos(0.5), -np.sin(0.5)])


# With other transformations


def second(x):
    return jet(lax.sin, (x,), ([1.0, 0.0],))[1][1]


def test_inside_other_transformations():
    close(px.grad(second)(0.5), -np.cos(0.5))
    close(px.jit(px.vmap(second))(np.arange(3.0)), -np.sin(np.arange(3.0)))
    close(px.jvp(second, (0.5,), (2.0,))[1], -2 * np.cos(0.5))


def test_around_other_transformations():
    close(jet(px.grad(lax.sin), (0.5,), ([1.0, 0.0],))[1], [-np.sin(0.5), -np.cos(0.5)])
    x = np.array([0.1, 0.2], np.float32)
    close(jet(px.vmap(lax.sin), (x,), ([np.ones(2, np.float32), 0],))[1][1], -np.sin(x))
    close(jet(lambda x: px.jvp(lax.sin, (x,), (x,))[1], (0.5,), ([1.0],))[1],
          [np.cos(0.5) - 0.5 * np.sin(0.5)])  # fmt: skip


def test_jet_of_jet():
    def inner(x):
        return jet(lax.exp, (2.0 * x,), ([x, 0.0],))[1][1]  # x² exp(2x)

    x, e = 0.3, np.exp(0.6)
    close(jet(inner, (x,), ([1.0, 0.0],))[1],
          [(2 * x + 2 * x * x) * e, (2 + 8 * x + 4 * x * x) * e])  # fmt: skip


def test_programs_grow_polynomially():
    def size(order):
        fun = lambda x: lax.pow(x, lax.sin(x))
        return len(px.make_jaxpr(lambda x: jet(fun, (x,), (terms(1.0, order=order),)))(2.0).eqns)

    assert size(8) < 6 * size(4)


# Rules of others


def sine(name):
    prim = Primitive(name)
    prim.rule(abstract)(lambda x: x)
    prim.rule(lower)(lambda ctx, x: ctx.call(lax.sin, x))
    return prim


def test_short_declarations():
    linear, zero, known, composed = map(sine, ("linear", "zero", "known", "composed"))
    deflinear(linear)
    defzero(zero)
    def_deriv(known, lax.cos)
    def_comp(composed, lambda x, times=1.0: lax.cos(x) * times, times=2.0)
    close(jet(linear.bind, (0.5,), ([1.0, 2.0],))[1], np.sin([1.0, 2.0]))
    close(jet(zero.bind, (0.5,), ([1.0, 2.0],))[1], [0, 0])
    close(jet(known.bind, (0.5,), ([1.0, 2.0, 0.5],))[1],
          jet(lax.sin, (0.5,), ([1.0, 2.0, 0.5],))[1])  # fmt: skip
    y, result = jet(composed.bind, (0.5,), ([1.0, 2.0],))
    close([y, *result], 2 * np.array([np.cos(0.5), -np.sin(0.5), -np.cos(0.5) - 2 * np.sin(0.5)]))


def test_a_rule_of_the_kind_replaces_the_derivative_and_forgets_nothing_else():
    prim, f = sine("ruled"), px.jit(lambda x: lax.cos(x))
    f(1.0)
    prim.rule(jvp)(lambda ps, ts: (prim.bind(*ps), lax.mul(ts[0], lax.cos(*ps))))
    close(jet(prim.bind, (0.5,), ([1.0, 0.0],))[1], [np.cos(0.5), -np.sin(0.5)])
    f(1.0)
    known = f._cache_size()
    prim.rule(taylor)(lambda ps, series: (prim.bind(*ps), [lax.mul(7.0, t) for t in series[0]]))
    close(jet(prim.bind, (0.5,), ([1.0, 2.0],))[1], [7, 14])
    assert f._cache_size() == known == 1


def test_a_rule_that_gives_too_few_derivatives():
    prim = sine("short")
    prim.rule(taylor)(lambda ps, series: (prim.bind(*ps), series[0][:1]))
    with pytest.raises(TypeError, match=r"taylor rule of short .* returned 1 as the 2 derivatives"):
        jet(prim.bind, (0.5,), ([1.0, 2.0],))


def test_a_primitive_without_derivatives_says_what_is_missing():
    with pytest.raises(NotImplementedError, match=r"no jvp rule, which Taylor mode \(jet\)"):
        jet(sine("bare").bind, (0.5,), ([1.0],))


# Bad input


@pytest.mark.parametrize(
    ("primals", "series", "error", "text"),
    [
        ((0.5, 1.0), ([1.0, 0.0], [1.0]), ValueError, "inconsistent lengths"),
        ((0.5, 1.0), ([1.0],), ValueError, "2 arguments and derivatives of 1"),
        (0.5, [1.0], TypeError, "primals given to jet must be a tuple"),
        ((0.5,), (1.0,), TypeError, "argument 0 given to jet must be a list"),
        ((np.ones(3),), ([np.ones(2)],), TypeError, r"shape \(2,\)"),
        ((0.5,), ([1j],), TypeError, "does not fit"),
        ((np.int32(3),), ([1.0],), TypeError, "does not move"),
        (({"a": 1.0},), ([{"b": 1.0}],), TypeError, "tree structure"),
    ],
)
def test_bad_input_is_named(primals, series, error, text):
    with pytest.raises(error, match=text):
        jet(lambda *xs: xs, primals, series)


def test_what_is_no_function_or_gives_no_array():
    with pytest.raises(TypeError, match="callable"):
        jet(3, (0.5,), ([1.0],))
    with pytest.raises(TypeError, match="not a valid Primax type"):
        jet(lambda x: "text", (0.5,), ([1.0],))


def test_derivatives_do_not_leak():
    results = []
    jet(lambda x: results.append(x) or x, (0.5,), ([1.0],))
    with pytest.raises(px.errors.UnexpectedTracerError):
        lax.sin(results[0])


def test_the_order_of_a_program_that_holds_programs():
    jaxpr = px.make_jaxpr(lambda x: jet(px.jit(cube), (x,), ([1.0, 0.0],)))(2.0)
    assert {e.primitive.name for e in walk(jaxpr)} >= {"jit", "mul"}


def test_nothing_leaks():
    with px.checking_leaks():
        y, terms = jet(lambda x: lax.sin(x) * 2, (1.0,), ([1.0, 0.0],))
    np.testing.assert_allclose([y, *terms], [2 * np.sin(1), 2 * np.cos(1), -2 * np.sin(1)], 1e-6)


def test_leaks_are_found():
    results = []
    with px.checking_leaks(), pytest.raises(Exception, match="Leaked trace of Taylor-mode"):
        jet(lambda x: results.append(x) or lax.sin(x), (1.0,), ([1.0, 0.0],))


def test_factorials():
    assert fact(np.arange(6)).tolist() == [1, 1, 2, 6, 24, 120]
