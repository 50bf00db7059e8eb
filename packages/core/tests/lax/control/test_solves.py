"""``custom_linear_solve`` and ``custom_root``: implicit derivatives of equations."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.lax.control.linear_solve import custom_linear_solve
from primax_core.lax.control.root import custom_root
from test_support import check_derivatives

F32 = np.float32
A = np.array([[4.0, 1.0, 0.5], [0.5, 3.0, 1.0], [0.0, -1.0, 5.0]], F32)
B = np.array([1.0, -2.0, 3.0], F32)


def inverse(a):
    """Matrix inverse by Newton's iteration (Schulz, 1933), which no test differentiates."""
    eye = np.eye(3, dtype=a.dtype)
    at = lax.transpose(a, (1, 0))
    norm = lax.reduce_sum(lax.mul(a, a), (0, 1))
    x = lax.div(at, lax.broadcast(norm, (3, 3)))
    return lax.fori_loop(0, 40, lambda _, x: lax.dot(x, 2 * eye - lax.dot(a, x)), x)


def solve(a, b, *, transposed=True, has_aux=False):
    def by(matrix):
        def apply_inverse(_, b):
            x = lax.dot(inverse(matrix), b)
            return (x, lax.reduce_sum(b, (0,))) if has_aux else x

        return apply_inverse

    back = by(lax.transpose(a, (1, 0))) if transposed else None
    return custom_linear_solve(lambda x: lax.dot(a, x), b, by(a), back, has_aux=has_aux)


def total(x):
    return lax.reduce_sum(lax.sin(x), tuple(range(x.ndim)))


class TestLinearSolve:
    @pytest.mark.parametrize("wrap", [lambda f: f, px.jit], ids=["eager", "jit"])
    def test_values(self, wrap):
        np.testing.assert_allclose(wrap(solve)(A, B), np.linalg.solve(A, B), rtol=1e-4)

    def test_derivatives(self):
        check_derivatives(solve, A, B)
        check_derivatives(px.grad(lambda a, b: total(solve(a, b))), A, B)

    @pytest.mark.parametrize("axes", [(0, None), (None, 1), (2, 0)])
    def test_batches(self, axes):
        both = [v if d is None else np.stack([v, v + F32(0.5)], d) for v, d in zip((A, B), axes)]
        got = px.vmap(solve, axes)(*both)
        grads = px.jit(px.vmap(px.grad(lambda a, b: total(solve(a, b))), axes))(*both)
        for i in range(2):
            one = [v if d is None else np.take(v, i, d) for v, d in zip(both, axes)]
            np.testing.assert_allclose(np.asarray(got)[i], solve(*one), 1e-4)
            expected = px.grad(lambda a, b: total(solve(a, b)))(*one)
            np.testing.assert_allclose(np.asarray(grads)[i], expected, 1e-4, 1e-6)

    def test_a_mapped_closure(self):
        # Only what matvec closes over is mapped; the right-hand side is shared.
        def f(d):
            return custom_linear_solve(lambda x: d * x, B, lambda _, b: b / d, lambda _, b: b / d)

        ds = np.array([[1.0, 2.0, 4.0], [2.0, 2.0, 2.0]], F32)
        np.testing.assert_allclose(px.vmap(f)(ds), B / ds)
        grads = px.vmap(px.grad(lambda d: lax.reduce_sum(f(d), (0,))))(ds)
        np.testing.assert_allclose(grads, -B / ds**2)

    def test_closure_of_an_enclosing_jit(self):
        @px.jit
        def f(d, b):
            inner = px.grad(
                lambda b: total(custom_linear_solve(lambda x: d * x, b, lambda _, y: y / d,
                                                    symmetric=True))
            )  # fmt: skip
            return inner(b)

        d = np.array([1.0, 2.0, 4.0], F32)
        np.testing.assert_allclose(f(d, B), np.cos(B / d) / d, rtol=1e-6)

    def test_trees_and_symmetric(self):
        d = np.array([2.0, 4.0], F32)

        def f(b):
            return custom_linear_solve(
                lambda x: {"a": x["b"] * d, "b": x["a"] * d}, {"a": b, "b": 2 * b},
                lambda _, y: {"a": y["b"] / d, "b": y["a"] / d}, symmetric=True,
            )  # fmt: skip

        b = np.ones(2, F32)
        np.testing.assert_allclose(f(b)["a"], 2 * b / d)
        np.testing.assert_allclose(px.grad(lambda b: lax.reduce_sum(f(b)["b"], (0,)))(b), 1 / d)

    def test_aux_has_no_derivative(self):
        (x, aux), (dx, daux) = px.jvp(lambda b: solve(A, b, has_aux=True), (B,), (B,))
        np.testing.assert_allclose(dx, x, rtol=1e-4)
        assert float(aux) == 2.0 and float(daux) == 0.0
        x, aux = px.vmap(lambda b: solve(A, b, has_aux=True))(np.stack([B, 2 * B]))
        assert aux.tolist() == [2.0, 4.0]

    def test_forward_mode_needs_no_transpose(self):
        f = lambda b: solve(A, b, transposed=False)
        np.testing.assert_allclose(px.jvp(f, (B,), (B,))[1], f(B), rtol=1e-4)
        with pytest.raises(TypeError, match="transpose_solve required for backwards mode"):
            px.grad(lambda b: total(f(b)))(B)

    @pytest.mark.parametrize(
        ("matvec", "solver", "error", "match"),
        [
            (lambda x: (x,), lambda f, b: b, TypeError, r"matvec\(\) output pytree structure"),
            (lambda x: lax.expand_dims(x, (0,)), lambda f, b: b,
             ValueError, r"matvec\(\) output shapes must match b, got \[\(1, 3\)\] and \[\(3,\)\]"),
            (lambda x: x, lambda f, b: [b], TypeError, r"solve\(\) output pytree structure"),
            (lambda x: x, lambda f, b: 1.0, ValueError, r"solve\(\) output shapes"),
            (5, lambda f, b: b, TypeError, "matvec should be callable"),
        ],
    )  # fmt: skip
    def test_refused(self, matvec, solver, error, match):
        with pytest.raises(error, match=match):
            custom_linear_solve(matvec, B, solver)

    def test_missing_aux(self):
        with pytest.raises(ValueError, match="should give"):
            custom_linear_solve(lambda x: x, B, lambda f, b: (b, b, b), has_aux=True)


def newton(f, x):
    def step(_, x):
        y, slope = px.jvp(f, (x,), (lax.full_like(x, 1),))
        return x - y / slope

    return lax.fori_loop(0, 10, step, x)


def cube_root(a):
    return custom_root(lambda x: x**3 - a, a * 0 + 1.0, newton, lambda g, y: y / g(1.0))


class TestRoot:
    def test_values_and_derivatives_of_any_order(self):
        a = 2.0
        assert float(cube_root(a)) == pytest.approx(a ** (1 / 3))
        d1, d2 = px.grad(cube_root), px.grad(px.grad(cube_root))
        assert float(d1(a)) == pytest.approx(a ** (-2 / 3) / 3, rel=1e-5)
        assert float(d2(a)) == pytest.approx(-2 * a ** (-5 / 3) / 9, rel=1e-4)
        assert float(px.jvp(d1, (a,), (1.0,))[1]) == pytest.approx(float(d2(a)), rel=1e-5)
        assert float(px.jit(d2)(a)) == pytest.approx(float(d2(a)), rel=1e-5)

    def test_batches(self):
        a = np.array([1.0, 2.0, 8.0], F32)
        np.testing.assert_allclose(px.vmap(cube_root)(a), np.cbrt(a), rtol=1e-5)
        np.testing.assert_allclose(px.vmap(px.grad(cube_root))(a), a ** (-2 / 3) / 3, rtol=1e-5)

    def test_vectors_solved_by_the_jacobian(self):
        # Through a jitted f: the jacobian of g must not depend on the point.
        def f(a):
            def equation(x):
                return lax.dot(A.astype(a.dtype), x) + 0.1 * lax.sin(x) - a

            def solver(f, x):
                return lax.fori_loop(0, 60, lambda _, x: x - 0.2 * f(x), x)

            def tangent_solve(g, y):
                return lax.dot(inverse(px.jacobian(g)(y)), y)

            return custom_root(px.jit(equation), B.astype(a.dtype), solver, tangent_solve)

        check_derivatives(f, B, atol=1e-5)
        check_derivatives(px.grad(lambda a: total(f(a))), B, atol=1e-5)

    def test_the_guess_has_no_effect(self):
        f = lambda g: custom_root(lambda x: x - 2.0, g, newton, lambda g, y: y / g(1.0))
        assert float(px.grad(f)(3.0)) == 0.0

    def test_aux(self):
        def f(a):
            solver = lambda f, x: (newton(f, x), a * 2)
            return custom_root(lambda x: x * x - a, 1.0, solver, lambda g, y: y / g(1.0), True)

        (x, aux), (dx, daux) = px.jvp(f, (4.0,), (1.0,))
        assert [float(v) for v in (x, aux, dx, daux)] == pytest.approx([2.0, 8.0, 0.25, 0.0])

    @pytest.mark.parametrize(
        ("f", "solver", "tangent", "options", "error", "match"),
        [
            (lambda x: (x,), lambda f, x: x, lambda g, y: y, {}, TypeError,
             r"f\(\) output pytree structure must match initial_guess"),
            (lambda x: x, lambda f, x: (x,), lambda g, y: y, {}, TypeError,
             r"solve\(\) output pytree structure must match initial_guess"),
            (lambda x: x, lambda f, x: x, lambda g, y: (y,), {}, TypeError,
             r"tangent_solve\(\) output pytree structure must match x"),
            (lambda x: x, lambda f, x: x, lambda g, y: y, {"has_aux": True}, ValueError,
             "has_aux was set to True"),
            (lambda x: x, lambda f, x: x, lambda g, y: g((y, y)), {}, TypeError,
             "takes a tangent of the root"),
        ],
    )  # fmt: skip
    def test_refused(self, f, solver, tangent, options, error, match):
        with pytest.raises(error, match=match):
            custom_root(f, 1.0, solver, tangent, **options)
