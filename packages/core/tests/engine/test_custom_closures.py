"""Custom rules that close over values of enclosing transformations."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax

VALUES = np.array([0.5, -1.5, 2.0], np.float32)


def forward_rule(a):
    """``x -> a * x`` with twice its derivative, where ``a`` is a closed-over value."""
    f = px.custom_jvp(lambda x: a * x)
    f.defjvp(lambda p, t: (f(*p), t[0] * a * 2.0))
    return f


def backward_rule(a):
    f = px.custom_vjp(lambda x: a * x)
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * a * 2.0,))
    return f


both = pytest.mark.parametrize("rule", [forward_rule, backward_rule])


def slope(a, rule, through=lambda f: f):
    """Derivative of ``(a x) ** 2`` at 3 with a doubled inner derivative: ``12 a ** 2``."""
    return px.grad(through(lambda x: rule(a)(x) ** 2))(3.0)


@both
@pytest.mark.parametrize("through", [lambda f: f, px.jit, px.checkpoint], ids=range(3))
class TestEnclosing:
    def test_jit(self, rule, through):
        assert float(px.jit(lambda a: slope(a, rule, through))(2.0)) == 48.0

    def test_vmap(self, rule, through):
        got = px.vmap(lambda a: slope(a, rule, through))(VALUES)
        np.testing.assert_allclose(got, 12 * VALUES**2, rtol=1e-6)

    def test_jit_of_vmap(self, rule, through):
        got = px.jit(px.vmap(lambda a: slope(a, rule, through)))(VALUES)
        np.testing.assert_allclose(got, 12 * VALUES**2, rtol=1e-6)


@both
class TestSameBatch:
    def test_value(self, rule):
        got = px.vmap(lambda a, x: rule(a)(x))(VALUES, VALUES)
        np.testing.assert_allclose(got, VALUES**2, rtol=1e-6)

    def test_only_the_closure_is_mapped(self, rule):
        got = px.vmap(lambda a: rule(a)(3.0))(VALUES)
        np.testing.assert_allclose(got, 3 * VALUES, rtol=1e-6)

    def test_gradient_outside(self, rule):
        f = lambda x: lax.reduce_sum(px.vmap(lambda a, y: rule(a)(y))(VALUES, x), (0,))
        np.testing.assert_allclose(px.grad(f)(VALUES), 2 * VALUES, rtol=1e-6)

    def test_two_axes(self, rule):
        outer = px.vmap(lambda a: px.vmap(lambda x: px.grad(rule(a))(x))(VALUES))
        np.testing.assert_allclose(outer(VALUES), np.repeat(2 * VALUES[:, None], 3, 1), rtol=1e-6)


@both
class TestDifferentiated:
    def test_only_the_closure(self, rule):
        # The rule does not cover the closed-over value, so the function itself is differentiated.
        assert float(px.grad(lambda a: rule(a)(5.0))(2.0)) == 5.0
        assert float(px.grad(px.jit(lambda a: rule(a)(5.0)))(2.0)) == 5.0
        assert float(px.grad(lambda a: slope(a, rule))(2.0)) == 48.0

    @pytest.mark.parametrize("through", [lambda f: f, px.jit], ids=["eager", "jit"])
    def test_together_with_the_argument(self, rule, through):
        f = through(lambda a, x: rule(a)(x))
        with pytest.raises(px.errors.UnexpectedTracerError) as caught:
            px.grad(f, argnums=(0, 1))(2.0, 3.0)
        text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
        assert "closes over another value that is differentiated" in text
        assert "pass that value as an argument" in text


def test_a_rule_in_a_loop_cannot_use_enclosing_values():
    def f(a):
        g = backward_rule(a)
        return px.grad(lambda x: lax.scan(lambda c, _: (g(c), None), x, None, length=2)[0])(3.0)

    with pytest.raises(px.errors.UnexpectedTracerError, match="pass it as an argument"):
        px.jit(f)(2.0)


def test_values_of_another_trace():
    def f(x):
        with px.ensure_compile_time_eval():
            return (
                px.jit(lambda y: y * x)(2.0),
                lax.scan(lambda c, _: (c * x, None), 1.0, None, length=2)[0],
                px.grad(lambda y: y * x * y)(2.0),
                px.vmap(lambda y: y * x)(VALUES),
            )

    for transformed in (f, px.jit(f), lambda x: px.jvp(f, (x,), (1.0,))[0]):
        a, b, c, d = transformed(3.0)
        assert (float(a), float(b), float(c)) == (6.0, 9.0, 12.0)
        np.testing.assert_allclose(d, 3 * VALUES)
