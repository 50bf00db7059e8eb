"""``custom_jvp``, ``custom_vjp``, ``custom_gradient`` and ``closure_convert``."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import primax_core as px
from primax_core import custom_derivatives, extend, lax
from test_support import assert_close

F32 = np.float32
X = np.array([0.3, -1.2, 2.0], F32)


def marked_jvp(fun=lambda x: x * x, factor=3.0, **options):
    """A function whose custom derivative is ``factor``."""
    f = px.custom_jvp(fun)
    f.defjvp(lambda primals, tangents: (fun(*primals), factor * tangents[0]), **options)
    return f


def marked_vjp(fun=lambda x: x * x, factor=5.0, **options):
    f = px.custom_vjp(fun)
    f.defvjp(lambda *args: (fun(*args), None), lambda _, ct: (factor * ct,), **options)
    return f


WAYS = {
    "grad": lambda f: px.grad(f)(2.0),
    "jit of grad": lambda f: px.jit(px.grad(f))(2.0),
    "grad of jit": lambda f: px.grad(px.jit(f))(2.0),
    "jit of grad of jit": lambda f: px.jit(px.grad(px.jit(f)))(2.0),
    "vmap of grad": lambda f: np.asarray(px.vmap(px.grad(f))(X))[0],
    "grad of vmap": lambda f: np.asarray(px.grad(lambda v: lax.reduce_sum(px.vmap(f)(v), (0,)))(X))[
        0
    ],
    "jacrev": lambda f: px.jacrev(f)(2.0),
    "cond": lambda f: px.grad(lambda x: lax.cond(x > 1.0, f, lambda y: y, x))(2.0),
    "checkpoint": lambda f: px.grad(px.checkpoint(f))(2.0),
    "linearize": lambda f: px.linearize(f, 2.0)[1](1.0),
    "closure": lambda f: px.grad(lambda x: px.jit(lambda: f(x))())(2.0),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_rule_of_custom_jvp_is_used(way):
    assert float(WAYS[way](marked_jvp())) == pytest.approx(3.0)


@pytest.mark.parametrize("way", [w for w in WAYS if w != "linearize"])
def test_the_rule_of_custom_vjp_is_used(way):
    assert float(WAYS[way](marked_vjp())) == pytest.approx(5.0)


@pytest.mark.parametrize("make", [marked_jvp, marked_vjp])
def test_values_are_those_of_the_function(make):
    f = make()
    assert float(f(3.0)) == float(px.jit(f)(3.0)) == 9.0
    np.testing.assert_allclose(px.vmap(f)(X), X * X, rtol=1e-6)


@pytest.mark.parametrize(("make", "factor"), [(marked_jvp, 9.0), (marked_vjp, 25.0)])
def test_inside_a_scan(make, factor):
    f = make()

    def loop(x):
        return lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]

    assert float(px.grad(loop)(2.0)) == factor
    assert float(px.jit(px.grad(loop))(2.0)) == factor


class TestCustomJvp:
    def test_forward_mode(self):
        f = marked_jvp()
        assert float(px.jvp(f, (2.0,), (1.0,))[1]) == 3.0
        assert float(px.jacfwd(f)(2.0)) == 3.0

    def test_higher_order(self):
        f = px.custom_jvp(lambda x: x * x)
        f.defjvp(lambda p, t: (f(*p), 3.0 * p[0] * t[0]))
        assert float(px.grad(f)(2.0)) == 6.0
        assert float(px.grad(px.grad(f))(2.0)) == 3.0
        assert float(px.hessian(f)(2.0)) == 3.0

    def test_several_arguments_and_results(self):
        f = px.custom_jvp(lambda x, y: {"s": x + y, "p": (x * y,)})

        @f.defjvp
        def rule(primals, tangents):
            x, y = primals
            dx, dy = tangents
            return f(x, y), {"s": dx + dy, "p": (10.0 * dx,)}

        _, dy = px.jvp(f, (2.0, 3.0), (1.0, 5.0))
        assert (float(dy["s"]), float(dy["p"][0])) == (6.0, 10.0)

    def test_nondiff_argnums_come_first(self):
        @functools.partial(px.custom_jvp, nondiff_argnums=(1,))
        def apply(x, g):
            return g(x)

        apply.defjvp(lambda g, p, t: (g(p[0]), 4.0 * t[0]))
        assert float(px.grad(apply)(2.0, lax.sin)) == 4.0

    def test_defjvps(self):
        f = px.custom_jvp(lambda x, y: x * y)
        f.defjvps(lambda t, out, x, y: 7.0 * t, None)
        assert [float(g) for g in px.grad(f, (0, 1))(2.0, 3.0)] == [7.0, 0.0]

    def test_keywords_are_resolved_to_positions(self):
        f = px.custom_jvp(lambda x, y=2.0: x * y)
        f.defjvp(lambda p, t: (p[0] * p[1], 3.0 * t[0] + t[1]))
        assert float(px.grad(lambda x: f(y=x, x=1.0))(1.0)) == 1.0
        assert float(px.grad(f)(1.0)) == 3.0

    def test_symbolic_zeros(self):
        seen = []
        f = px.custom_jvp(lambda x, y: x * y)

        def rule(primals, tangents):
            seen.append([type(t).__name__ for t in tangents])
            return f(*primals), 2.0 * tangents[0]

        f.defjvp(rule, symbolic_zeros=True)
        px.jvp(lambda x: f(x, 3.0), (2.0,), (1.0,))
        assert seen[-1][1] == "SymbolicZero" and seen[-1][0] != "SymbolicZero"

    def test_integer_arguments(self):
        f = px.custom_jvp(lambda x, n: x * n)
        f.defjvp(lambda p, t: (f(*p), 3.0 * t[0]))
        assert float(px.grad(f)(2.0, 3)) == 3.0

    def test_unperturbed_calls_skip_the_rule(self):
        f = px.custom_jvp(lambda x: x * x)
        f.defjvp(lambda p, t: pytest.fail("the rule was called"))
        assert float(px.grad(lambda x: x + f(3.0))(1.0)) == 1.0

    @pytest.mark.parametrize(
        ("rule", "message"),
        [
            (lambda p, t: p[0], "must produce a pair"),
            (lambda p, t: (p[0], None), "equal container"),
            (lambda p, t: (p[0], (t[0],)), "equal container"),
            (lambda p, t: (p[0], X), r"corresponding shapes and dtypes.*float32\[3\]"),
            (lambda p, t: (p[0], np.int32(1)), r"corresponding shapes and dtypes.*int32\[\]"),
        ],
    )
    def test_invalid_results_of_rules(self, rule, message):
        f = px.custom_jvp(lambda x: x)
        f.defjvp(rule)
        with pytest.raises(TypeError, match=message):
            px.grad(f)(1.0)

    def test_without_a_rule(self):
        f = px.custom_jvp(lambda x: x)
        with pytest.raises(AttributeError, match="No JVP defined for custom_jvp function <lambda>"):
            f(1.0)

    def test_defjvps_with_nondiff_argnums(self):
        f = px.custom_jvp(lambda x, n: x, nondiff_argnums=(1,))
        with pytest.raises(TypeError, match="nondiff_argnums"):
            f.defjvps(None)


class TestCustomVjp:
    def test_residuals_of_any_structure(self):
        f = px.custom_vjp(lambda x, y: x * y)
        f.defvjp(
            lambda x, y: (x * y, {"x": x, "rest": [y, None]}),
            lambda r, ct: (ct * r["rest"][0], 100.0 * ct * r["x"]),
        )
        assert [float(g) for g in px.grad(f, (0, 1))(2.0, 3.0)] == [3.0, 200.0]

    def test_none_is_zero(self):
        f = px.custom_vjp(lambda p, q: p["a"] * q)
        f.defvjp(lambda p, q: (p["a"] * q, q), lambda q, ct: ({"a": ct * q, "b": None}, None))
        g, h = px.grad(f, (0, 1))({"a": 1.0, "b": 2.0}, 3.0)
        assert (float(g["a"]), float(g["b"]), float(h)) == (3.0, 0.0, 0.0)
        f.defvjp(lambda p, q: (p["a"] * q, q), lambda q, ct: (None, ct))
        assert float(px.grad(f)({"a": 1.0, "b": 2.0}, 3.0)["a"]) == 0.0

    def test_lists_are_accepted_for_tuples(self):
        f = px.custom_vjp(lambda x: x)
        f.defvjp(lambda x: [x, x], lambda r, ct: [2.0 * ct])
        assert float(px.grad(f)(1.0)) == 2.0

    def test_nondiff_argnums(self):
        @functools.partial(px.custom_vjp, nondiff_argnums=(0,))
        def apply(g, x):
            return g(x)

        apply.defvjp(lambda g, x: (g(x), x), lambda g, x, ct: (ct * g(x),))
        assert float(px.grad(lambda x: apply(lambda v: v * 2.0, x))(3.0)) == 6.0

    def test_a_tracer_as_nondiff_argument(self):
        f = px.custom_vjp(lambda n, x: n * x, nondiff_argnums=(0,))
        f.defvjp(lambda n, x: (n * x, None), lambda n, r, ct: (ct,))
        with pytest.raises(px.errors.UnexpectedTracerError, match="nondiff_argnums"):
            px.jit(lambda n: f(n, 1.0))(2.0)

    def test_second_order(self):
        f = px.custom_vjp(lambda x: x * x)
        f.defvjp(lambda x: (x * x, x), lambda x, ct: (5.0 * x * ct,))
        assert float(px.grad(px.grad(f))(1.0)) == 5.0
        assert float(px.hessian(f)(1.0)) == 5.0

    def test_symbolic_zeros(self):
        seen = []

        def fwd(x, y):
            seen.append((x.perturbed, y.perturbed))
            assert isinstance(x, custom_derivatives.CustomVJPPrimal)
            values = custom_derivatives.custom_vjp_primal_tree_values((x, y))
            return (values[0] * values[1], values[0]), values

        def bwd(values, cts):
            seen.append([type(c).__name__ == "SymbolicZero" for c in cts])
            return 7.0 * cts[0], None

        f = px.custom_vjp(lambda x, y: (x * y, x))
        f.defvjp(fwd, bwd, symbolic_zeros=True)
        assert float(px.grad(lambda x: f(x, 3.0)[0])(2.0)) == 7.0
        assert seen == [(True, False), [False, True]]

    def test_without_cotangents_bwd_is_not_called(self):
        f = px.custom_vjp(lambda x: x)
        f.defvjp(lambda x: (x, None), lambda r, ct: pytest.fail("called"), symbolic_zeros=True)
        assert float(px.grad(lambda x: x + 0.0 * lax.stop_gradient(f(x)))(1.0)) == 1.0

    def test_integer_arguments(self):
        f = px.custom_vjp(lambda x, n: x * n)
        f.defvjp(lambda x, n: (x * n, n), lambda n, ct: (ct * n, None))
        assert float(px.grad(f)(2.0, 3)) == 3.0

    def test_forward_mode_is_refused(self):
        f = marked_vjp()
        for run in (lambda: px.jvp(f, (1.0,), (1.0,)), lambda: px.jacfwd(f)(1.0)):
            with pytest.raises(TypeError, match=r"can't apply forward-mode autodiff \(jvp\)"):
                run()

    @pytest.mark.parametrize(
        "body",
        [
            lambda f, x: f(x) * 2,
            lambda f, x: px.jit(lambda x: f(x) * 2)(x),
            lambda f, x: px.checkpoint(lambda x: f(x) * 2)(x),
            lambda f, x: lax.cond(x > 0, lambda x: f(x) * 2, lambda x: x, x),
            lambda f, x: lax.scan(lambda c, _: (f(c) + c, None), x, None, length=2)[0],
            lambda f, x: lax.reduce_sum(
                lax.scan(lambda c, _: (f(c), c), x, None, length=3)[1], (0,)
            ),
            lambda f, x: lax.scan(lambda c, _: (c * 2, f(c)), x, None, length=2)[0],
        ],
        ids=["plain", "jit", "checkpoint", "cond", "scan", "scan outputs", "unused"],
    )
    def test_reverse_mode_of_rules_that_use_forward_mode(self, body):
        f = px.custom_vjp(lax.sin)
        f.defvjp(lambda x: (lax.sin(x), lax.cos(x)), lambda c, ct: (c * ct,))
        fun = px.custom_jvp(lambda x: body(f, x))
        fun.defjvp(lambda primals, tangents: px.jvp(fun.fun, primals, tangents))

        def plain(x):
            return body(lax.sin, x)

        for transform in (
            px.grad,
            lambda fun: px.jit(px.grad(fun)),
            lambda fun: px.grad(px.jit(fun)),
        ):
            assert_close(transform(fun)(0.7), px.grad(plain)(0.7))
        assert_close(px.vmap(px.grad(fun))(X), px.vmap(px.grad(plain))(X))
        assert_close(px.grad(px.grad(fun))(0.7), px.grad(px.grad(plain))(0.7))

    @pytest.mark.parametrize("symbolic_zeros", [False, True])
    @pytest.mark.parametrize(
        ("fun", "expected"),
        [
            (lambda f, g, x, s: g(f(x, s), x), 7.0),
            (lambda f, g, x, s: g(lax.sin(f(x, s)), x), 7.0),
            (lambda f, g, x, s: g(f(f(x, s), s), x), 14.0),
            (lambda f, g, x, s: px.jit(lambda x, s: g(f(x, s), x))(x, s), 7.0),
            (lambda f, g, x, s: px.checkpoint(lambda x: g(f(x, s), x))(x), 7.0),
            (lambda f, g, x, s: lax.cond(x > 0, lambda x: g(f(x, s), x), lambda x: x, x), 7.0),
            (
                lambda f, g, x, s: lax.scan(
                    lambda c, _: (g(f(c, s), c), None), x, None, length=2
                )[0],
                14.0,
            ),
            (lambda f, g, x, s: lax.stop_gradient(f(x, s)) + x, 0.0),
            (lambda f, g, x, s: (f(x, s), x)[1], 0.0),
        ],
        ids=["direct", "through sin", "chain", "jit", "checkpoint", "cond", "scan", "stopped",
             "unused"],
    )  # fmt: skip
    def test_rules_are_called_for_results_without_cotangents(self, fun, expected, symbolic_zeros):
        # As quantized layers do, which return their statistics as a gradient.
        f, g = px.custom_vjp(lambda x, s: x * 2), px.custom_vjp(lambda y, x: y * x)
        value = (lambda x: x.value) if symbolic_zeros else (lambda x: x)
        f.defvjp(
            lambda x, s: (value(x) * 2, None),
            lambda _, ct: (None, F32(7.0)),
            symbolic_zeros=symbolic_zeros,
        )
        g.defvjp(lambda y, x: (y * x, None), lambda _, ct: (None, ct))
        for transform in (px.grad, lambda fun, argnums: px.jit(px.grad(fun, argnums))):
            gradients = transform(lambda x, s: fun(f, g, x, s), argnums=(0, 1))(1.5, 1.0)
            assert [float(x) for x in gradients] == [1.0, expected]

    def test_forward_mode_of_linear_parts_is_refused(self):
        f = marked_vjp()
        for fun in (f, lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]):
            with pytest.raises(TypeError, match=r"forward-mode autodiff \(jvp\)"):
                px.grad(lambda x: px.jvp(fun, (x,), (1.0,))[1])(0.7)  # noqa: B023
            with pytest.raises(TypeError, match=r"forward-mode autodiff \(jvp\)"):
                px.vjp(lambda t: px.jvp(fun, (0.7,), (t,))[1], 1.0)  # noqa: B023

    def test_optimize_remat_is_accepted(self):
        f = marked_vjp(optimize_remat=True)
        assert float(px.grad(px.checkpoint(f))(1.0)) == 5.0

    @pytest.mark.parametrize(
        ("fwd", "bwd", "error", "message"),
        [
            (lambda x: x, lambda r, c: (c,), TypeError, "fwd rule .* must produce a pair"),
            (lambda x: (x, x), lambda r, c: c, TypeError, "bwd rule .* same container"),
            (lambda x: (x, x), lambda r, c: None, TypeError, "bwd rule .* tuple of length 1"),
            (lambda x: (x, x), lambda r, c: (c, c), TypeError, "bwd rule .* tuple of length 1"),
            (lambda x: (x, x), lambda r, c: ((c,),), TypeError, "bwd rule .* same container"),
            (
                lambda x: (x, x),
                lambda r, c: (X,),
                ValueError,
                r"shapes of the arguments.*float32\[3\]",
            ),
            (lambda x: (x, x), lambda r, c: ("a",), TypeError, "not a valid Primax type"),
        ],
    )
    def test_invalid_results_of_rules(self, fwd, bwd, error, message):
        f = px.custom_vjp(lambda x: x)
        f.defvjp(fwd, bwd)
        with pytest.raises(error, match=message):
            px.grad(f)(1.0)

    def test_without_rules(self):
        f = px.custom_vjp(lambda x: x)
        with pytest.raises(AttributeError, match="No VJP defined for custom_vjp function <lambda>"):
            f(1.0)

    def test_keyword_only_arguments_are_refused(self):
        f = px.custom_vjp(lambda x, *, y: x * y)
        f.defvjp(lambda x, y: (x * y, None), lambda r, c: (c, c))
        with pytest.raises(TypeError, match="could not be resolved to positions"):
            f(1.0, y=2.0)

    def test_a_method(self):
        class Layer:
            k = 3.0

            @functools.partial(px.custom_vjp, nondiff_argnums=(0,))
            def apply(self, x):
                return x * x

            apply.defvjp(lambda self, x: (x * x, None), lambda self, r, ct: (self.k * ct,))

        assert float(px.grad(Layer().apply)(2.0)) == 3.0


class TestCustomGradient:
    def test_a_tuple_or_a_bare_value(self):
        f = px.custom_gradient(lambda x: (x * x, lambda g: (3.0 * g * x,)))
        h = px.custom_gradient(lambda x: (x * x, lambda g: 3.0 * g * x))
        assert float(px.grad(f)(2.0)) == float(px.grad(h)(2.0)) == 6.0
        assert float(f(2.0)) == 4.0

    def test_several_arguments_under_vmap_and_jit(self):
        f = px.custom_gradient(lambda x, y: (x * y, lambda g: (g * y, 7.0 * g)))
        g = px.jit(px.vmap(px.grad(f, (0, 1))))(X, 2 * X)
        assert_close(g[0], 2 * X, rtol=1e-6)
        assert_close(g[1], np.full(3, 7.0), rtol=1e-6)


def test_known_operands_of_compiled_functions_are_not_tangents():
    """A literal operand of a rule is not part of the jaxpr of its tangents."""

    @px.custom_jvp
    def f(x, y):
        return x * y

    @f.defjvp
    def _jvp(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        return f(x, y), tx * y + ty * x

    four = F32(4)
    for g in (px.jit(lambda x: f(x, four)), lambda x: f(x, four)):
        assert float(px.grad(g)(F32(3))) == 4.0
        assert px.vmap(px.grad(g))(X).tolist() == [4.0, 4.0, 4.0]
        assert float(px.grad(px.grad(lambda x, g=g: g(x) * x))(F32(3))) == 8.0


class TestClosureConvert:
    def test_tracers_become_arguments(self):
        def f(t):
            converted, values = px.closure_convert(lambda y: lax.sin(y * t), 1.0)
            assert len(values) == 1
            return converted(2.0, *values)

        assert float(px.grad(f)(F32(3))) == pytest.approx(2 * np.cos(6.0), rel=1e-5)

    def test_constants_stay_inside(self):
        converted, values = px.closure_convert(lambda y: y * X, 1.0)
        assert values == []
        np.testing.assert_allclose(converted(2.0), 2 * X)

    def test_other_structures_are_refused(self):
        converted, values = px.closure_convert(lambda y: y, 1.0)
        with pytest.raises(TypeError, match="it was traced for"):
            converted((1.0, 2.0), *values)

    @pytest.mark.parametrize("x", [X, np.int32(2), 1j], ids=["shape", "dtype", "number"])
    def test_other_types_are_refused(self, x):
        converted, values = px.closure_convert(lambda y: y * 2.0, F32(1))
        message = r"at leaf 0, but it was traced for float32\[\]: call closure_convert with example"
        with pytest.raises(TypeError, match=message):
            converted(x, *values)
        with pytest.raises(TypeError, match=message):
            px.jit(converted)(x, *values)

    def test_python_numbers_are_converted(self):
        converted, values = px.closure_convert(lambda y: y * 2.0, F32(1))
        assert float(converted(3, *values)) == 6.0
        assert px.vmap(converted)(X).tolist() == (2 * X).tolist()


def test_zero_from_primal():
    assert float(custom_derivatives.zero_from_primal(1.5)) == 0.0
    zero = custom_derivatives.zero_from_primal(X, symbolic_zeros=True)
    assert isinstance(zero, custom_derivatives.SymbolicZero) and zero.shape == (3,)
    assert custom_derivatives.zero_from_primal(3).dtype == px.float0


def test_rules_that_call_functions_with_rules_have_second_derivatives():
    """The loops have no reverse mode: each derivative uses the rule of the called function."""

    def power(n):
        def looped(x):
            return lax.while_loop(
                lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, lax.full_like(x, 1.0))
            )[1]

        fun = px.custom_jvp(looped)
        fun.defjvp(lambda p, t: (fun(*p), n * power(n - 1)(*p) * t[0]))
        return fun

    cube = power(3)
    x = np.float32(2.0)
    assert px.grad(cube)(x) == 12.0
    assert px.grad(px.grad(cube))(x) == 12.0
    assert px.jit(px.grad(px.grad(cube)))(x) == 12.0


LOOPS = {
    "scan": lambda x: lax.scan(lambda c, _: (2 * c, lax.sin(c)), x, None, length=3)[1],
    "cond": lambda x: lax.cond(x > 0, lax.sin, lax.cos, x),
    "jit": lambda x: px.jit(lax.sin)(x) * x,
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("loop", LOOPS)
def test_reverse_mode_of_rules_that_differentiate_a_loop(loop, nested):
    """The rule computes results and tangents by one operation."""
    fun = LOOPS[loop]

    def with_rule(fun):
        h = px.custom_jvp(fun)
        h.defjvp(lambda primals, tangents: px.jvp(fun, primals, tangents))
        return h

    f = with_rule(with_rule(fun)) if nested else with_rule(fun)
    x, ones = 0.7, lax.full_like(fun(0.7), 1.0)

    def pulled(f):
        return lambda x: px.vjp(f, x)[1](ones)[0]

    assert_close(px.vjp(f, x)[0], fun(x))
    assert_close(pulled(f)(x), np.sum(px.jvp(fun, (x,), (1.0,))[1]))
    assert_close(px.jit(pulled(f))(x), pulled(f)(x))
    assert_close(px.vmap(pulled(f))(np.array([x], np.float32)), [pulled(f)(x)])
    assert_close(px.grad(pulled(f))(x), px.grad(pulled(fun))(x))


def test_rules_that_differentiate_a_branch_without_derivatives_of_results():
    def fun(x):
        return lax.cond(x > 0, lax.sin, lax.cos, x) > 0.5

    h = px.custom_jvp(fun)
    h.defjvp(lambda primals, tangents: px.jvp(fun, primals, tangents))
    f = px.jit(lambda x: x + lax.convert_element_type(h(x), np.float32))
    assert px.grad(f)(np.float32(1.5)) == 1.0
    assert px.vmap(px.grad(f))(np.ones(2, np.float32)).tolist() == [1.0, 1.0]


def test_derivative_of_a_batch_of_a_rule_with_integer_results():
    def fun(x):
        return lax.argmin(x, 0, np.int32), lax.sin(x)

    h = px.custom_jvp(fun)
    h.defjvp(lambda primals, tangents: px.jvp(fun, primals, tangents))

    def total(xs):
        least, sines = px.vmap(h)(xs)
        least = lax.convert_element_type(lax.reduce_sum(least, (0,)), np.float32)
        return lax.reduce_sum(sines, (0, 1)) + least

    xs = np.array([[0.3, -0.2], [1.0, 2.0]], np.float32)
    assert_close(px.grad(total)(xs), np.cos(xs))
    assert_close(px.jvp(total, (xs,), (xs,))[1], np.sum(np.cos(xs) * xs))


class TestNumbersAmongResiduals:
    """A backward rule is passed numbers as the forward rule returned them."""

    @staticmethod
    def recorded():
        seen = []
        f = px.custom_vjp(lambda x, n: x * 2.0)

        def fwd(x, n):
            return x * 2.0, (False, 3, 2.5, 1j, F32(4), n)

        def bwd(residuals, ct):
            seen.append(residuals)
            return (ct if residuals[0] else ct * residuals[1]), None

        f.defvjp(fwd, bwd)
        return f, seen

    @pytest.mark.parametrize(
        "derivative",
        [
            lambda f: px.grad(lambda x: f(x, 7)),
            lambda f: px.grad(px.jit(lambda x: f(x, 7))),
            lambda f: px.jit(px.grad(px.jit(lambda x: f(x, 7)))),
            lambda f: px.grad(lambda x: lax.scan(lambda c, _: (f(c, 7), None), x, None, 1)[0]),
            lambda f: px.grad(px.checkpoint(lambda x: f(x, 7))),
            lambda f: px.grad(lambda x: lax.cond(x > 0, lambda x: f(x, 7), lambda x: x, x)),
        ],
        ids=["eager", "jit", "jit of grad", "scan", "checkpoint", "cond"],
    )
    def test_types(self, derivative):
        f, seen = self.recorded()
        assert float(derivative(f)(F32(2))) == 3.0
        for residuals in seen:
            assert [type(r) for r in residuals[:4]] == [bool, int, float, complex]
            assert residuals[0] is False and residuals[1:4] == (3, 2.5, 1j)
            assert residuals[4].dtype == F32

    def test_leaves_of_a_pullback(self):
        _, pull = px.vjp(lambda x: x * 3.0, 2.0)
        assert pull.opaque_residuals == [3.0] and type(pull.opaque_residuals[0]) is float


class TestPrimalResultsOfRules:
    """The results of a rule have the types of the function's results, where these are known."""

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda x: lax.broadcast(x, (3,)),
            lambda x: lax.convert_element_type(x, np.float16),
            lambda x: (x, x),
        ],
    )
    @pytest.mark.parametrize("kind", ["jvp", "vjp"])
    def test_refused(self, kind, wrong):
        if kind == "jvp":
            f = px.custom_jvp(lambda x: x * 2.0)
            f.defjvp(lambda p, t: (wrong(p[0]), wrong(t[0])))
        else:
            f = px.custom_vjp(lambda x: x * 2.0)
            f.defvjp(lambda x: (wrong(x), None), lambda _, ct: (ct,))
        with pytest.raises(TypeError, match=r"returned the primal results|same container"):
            px.grad(px.jit(f))(F32(1))


class TestKeywordsOfPartials:
    @staticmethod
    def scaled(x, y=2.0, *, s=1.0):
        return x * y * s

    @pytest.mark.parametrize("kind", ["jvp", "vjp"])
    def test_they_belong_to_the_function(self, kind):
        fun = functools.partial(self.scaled, s=3.0)
        if kind == "jvp":
            f = px.custom_jvp(fun)
            f.defjvp(lambda p, t: (fun(*p), 100.0 * t[0]))
        else:
            f = px.custom_vjp(fun)
            f.defvjp(lambda *args: (fun(*args), None), lambda _, ct: (100.0 * ct, None))
        for args, keywords, value in [((1.0, 2.0), {}, 6.0), ((1.0,), {"y": 3.0}, 9.0)]:
            assert float(f(*args, **keywords)) == value
            assert float(px.grad(f)(*args, **keywords)) == 100.0

    def test_defaults_of_keyword_only_arguments(self):
        f = marked_jvp(lambda x, *, s=2.0: x * s)
        assert float(f(3.0)) == 6.0
        with pytest.raises(TypeError, match="The keyword arguments s could not be resolved"):
            f(3.0, s=1.0)

    def test_arguments_that_do_not_fit(self):
        with pytest.raises(TypeError, match=r"arguments of .* do not fit its signature: .* 'q'"):
            marked_jvp()(3.0, q=1.0)


class TestDtypesWithoutNumPyCounterpart:
    """NumPy's kind of these dtypes is that of ``float0``, but their tangents are not zero."""

    @pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float16", "float32"])
    def test_gradient_of_custom_vjp(self, dtype):
        f = px.custom_vjp(lambda x: x)
        f.defvjp(lambda x: (x, None), lambda _, ct: (ct * 3,))

        def loss(fun, x):
            return lax.convert_element_type(fun(x), np.float32)

        x = lax.convert_element_type(F32(1), dtype)
        for g in (
            px.grad(lambda x: loss(f, x)),
            px.jit(px.grad(lambda x: loss(f, x))),
            px.grad(lambda x: loss(px.jit(f), x)),
            lambda x: lax.squeeze(
                px.vmap(px.grad(lambda x: loss(f, x)))(lax.full((1,), 1, dtype)), (0,)
            ),
        ):
            assert float(lax.convert_element_type(g(x), np.float32)) == 3.0


class TestDeadCodeElimination:
    """A call keeps the used results of the function and of its rules, and all arguments."""

    @staticmethod
    def function(kind):
        def both(x, y):
            return lax.sin(x), lax.cos(y)

        if kind == "jvp":
            f = px.custom_jvp(both)
            f.defjvp(lambda p, t: (both(*p), (10.0 * t[0], t[1])))
            return f
        f = px.custom_vjp(both)
        if kind == "vjp":
            f.defvjp(lambda x, y: (both(x, y), None), lambda _, cts: (10.0 * cts[0], cts[1]))
            return f

        def bwd(_, cts):
            assert type(cts[1]) is custom_derivatives.SymbolicZero
            return 10.0 * cts[0], None

        f.defvjp(lambda x, y: (both(x.value, y.value), None), bwd, symbolic_zeros=True)
        return f

    @pytest.mark.parametrize("kind", ["jvp", "vjp", "symbolic zeros"])
    def test_used_results(self, kind):
        jaxpr = px.make_jaxpr(self.function(kind))(1.0, 2.0)
        live, used = extend.dce_jaxpr(jaxpr, (True, False))
        assert used == (True, True)
        (eqn,) = live.eqns
        assert len(eqn.outvars) == 1
        assert [e.primitive.name for e in eqn.params["call_jaxpr"].eqns] == ["sin"]

        def first(x, y):
            (out,) = extend.eval_jaxpr(live, [x, y])
            return out

        assert_close(first(1.0, 2.0), np.sin(np.float32(1)))
        for transformed in (lambda f: f, px.jit):
            assert_close(transformed(px.grad(first, (0, 1)))(1.0, 2.0), (10.0, 0.0))
        assert_close(px.vmap(px.grad(first))(X, X), np.full(3, 10, F32))

    def test_a_call_without_used_results_is_removed(self):
        jaxpr = px.make_jaxpr(self.function("jvp"))(1.0, 2.0)
        live, used = extend.dce_jaxpr(jaxpr, (False, False))
        assert not live.eqns and used == (False, False)


class TestLogs:
    """Values that a backward rule returns beside the cotangents."""

    @staticmethod
    def scaled(name="ct"):
        f = px.custom_vjp(lambda x: lax.sin(x))
        f.defvjp_with_logs(
            lambda x: (lax.sin(x), x),
            lambda x, ct: ((3.0 * ct,), {name: 2.0 * ct, f"{name} tree": [x]}),
        )
        return f

    @pytest.mark.parametrize("way", [lambda f: f, px.jit, px.checkpoint])
    @pytest.mark.parametrize("around", [lambda f: f, px.jit])
    def test_with_logs_returns_them(self, way, around):
        @around
        def run(x):
            return px.vjp(way(self.scaled()), x)[1].with_logs(F32(5))

        cts, logs = run(F32(0.5))
        assert_close((cts, logs), ((15.0,), {"ct": 10.0, "ct tree": [0.5]}))

    def test_they_are_discarded_otherwise(self):
        f = self.scaled()
        assert_close(px.grad(f)(F32(1)), 3.0)
        assert_close(px.jit(px.grad(f))(F32(1)), 3.0)

    def test_of_mapped_functions(self):
        expected = ((3 * X,), {"ct": 2 * X, "ct tree": [X]})
        inside = px.vjp(px.vmap(self.scaled()), X)[1].with_logs(X)
        assert_close(inside, expected)
        outside = px.vmap(lambda x: px.vjp(px.jit(self.scaled()), x)[1].with_logs(x))(X)
        assert_close(outside, expected)

    def test_a_pullback_that_a_compiled_function_returns(self):
        pullback = px.jit(lambda x: px.vjp(self.scaled(), x)[1])(F32(0.5))
        assert_close(pullback.with_logs(F32(1))[1], {"ct": 2.0, "ct tree": [0.5]})

    def test_several_calls(self):
        f, g = self.scaled("f"), self.scaled("g")
        _, pullback = px.vjp(lambda x: g(f(x)), F32(0.0))
        assert_close(pullback.with_logs(F32(1))[1]["f"], 6.0)
        _, pullback = px.vjp(lambda x: f(f(x)), F32(0.0))
        with pytest.raises(ValueError, match="the log key 'f' is used twice"):
            pullback.with_logs(F32(1))

    def test_without_logs(self):
        f = px.custom_vjp(lambda x: x)
        f.defvjp_with_logs(lambda x: (x, None), lambda _, ct: ((ct,), None))
        for fun in (f, lax.sin):
            assert px.vjp(fun, F32(0))[1].with_logs(F32(1)) == ((1.0,), {})

    def test_of_custom_gradient(self):
        f = px.custom_gradient(lambda x: (x * x, lambda ct: (ct, {"ct": ct})), with_logs=True)
        assert_close(px.vjp(f, F32(2))[1].with_logs(F32(3)), ((3.0,), {"ct": 3.0}))
        assert_close(px.grad(f)(F32(2)), 1.0)

    @pytest.mark.parametrize(
        ("result", "said"),
        [
            (lambda ct: (ct,), r"must return a pair \(cotangents, logs\)"),
            (lambda ct: ((ct,), [ct]), "must be a dict of pytrees or None"),
        ],
    )
    def test_invalid_results(self, result, said):
        f = px.custom_vjp(lambda x: x)
        f.defvjp_with_logs(lambda x: (x, None), lambda _, ct: result(ct))
        with pytest.raises(TypeError, match=said):
            px.grad(f)(1.0)

    def test_inside_of_a_loop(self):
        f = self.scaled()
        _, pullback = px.vjp(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 2)[0], F32(0))
        assert_close(pullback(F32(1)), (9.0,))
        with pytest.raises(NotImplementedError, match="cannot leave scan"):
            pullback.with_logs(F32(1))


def test_checks_of_cotangents_can_be_switched_off() -> None:
    @px.custom_vjp
    def f(x):
        return x * 2.0

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (np.ones(2, "f"),))
    with pytest.raises(ValueError, match="shapes of the arguments"):
        px.grad(f)(1.0)
    px.config.update("disable_bwd_checks", True)
    try:
        assert np.asarray(px.grad(f)(1.0)).tolist() == [1, 1]
        assert np.asarray(px.jit(px.grad(f))(1.0)).tolist() == [1, 1]
    finally:
        px.config.update("disable_bwd_checks", False)
    with pytest.raises(ValueError, match="shapes of the arguments"):
        px.jit(px.grad(f))(1.0)


def test_reverse_mode_of_custom_vjp_in_a_custom_jvp_rule() -> None:
    @px.custom_vjp
    def f(x):
        return lax.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (3.0 * ct * lax.cos(x),))

    @px.custom_jvp
    def g(x):
        return f(x)

    g.defjvp(lambda primals, tangents: px.jvp(f, primals, tangents))
    for function in (g, px.jit(g)):
        np.testing.assert_allclose(px.grad(function)(1.0), 3 * np.cos(1.0), rtol=1e-6)
    with pytest.raises(TypeError, match="forward-mode"):
        px.jvp(g, (1.0,), (1.0,))
