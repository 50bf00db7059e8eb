"""Solves, roots, platforms and linear calls against the reference."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("jax.custom_derivatives")

from api_sides import OURS, same_error, same_results  # noqa: E402

from primax_core import custom_derivatives  # noqa: E402
from primax_core.lax.control.linear_solve import custom_linear_solve  # noqa: E402
from primax_core.lax.control.platform import platform_dependent  # noqa: E402
from primax_core.lax.control.root import custom_root  # noqa: E402

F32 = np.float32
OWN = {f.__name__: f for f in (custom_linear_solve, custom_root, platform_dependent)}
A = np.array([[4.0, 1.0, 0.5], [0.5, 3.0, 1.0], [0.0, -1.0, 5.0]], F32)
B = np.array([1.0, -2.0, 3.0], F32)
D = np.array([1.0, 2.0, 4.0], F32)


def of(J, name):
    return OWN[name] if J is OURS else getattr(J.lax, name)


def linear_call(J):
    return (custom_derivatives if J is OURS else jax.custom_derivatives).linear_call


def total(J, x):
    return J.lax.reduce_sum(J.lax.sin(x), tuple(range(len(x.shape))))


def inverse(L, a):
    """Newton's iteration for the inverse, not differentiated."""
    at = L.transpose(a, (1, 0))
    x = at / L.reduce_sum(a * a, (0, 1))
    return L.fori_loop(0, 40, lambda _, x: L.dot(x, 2 * np.eye(3, dtype=F32) - L.dot(a, x)), x)


def solver(J, aux=False, transposed=True):
    L = J.lax

    def f(a, b):
        def by(matrix):
            def found(_, y):
                x = L.dot(inverse(L, matrix), y)
                return (x, y * 2) if aux else x

            return found

        back = by(L.transpose(a, (1, 0))) if transposed else None
        return of(J, "custom_linear_solve")(lambda x: L.dot(a, x), b, by(a), back, has_aux=aux)

    return f


def in_trees(J):
    def f(d, b):
        return of(J, "custom_linear_solve")(
            lambda x: {"a": x["b"] * d, "b": x["a"] * d}, {"a": b, "b": b * 2},
            lambda _, y: {"a": y["b"] / d, "b": y["a"] / d}, symmetric=True,
        )  # fmt: skip

    return f


STACK = np.stack([A, A + 1])

SOLVES = {
    "value": lambda J: solver(J)(A, B),
    "jit": lambda J: J.jit(solver(J))(A, B),
    "aux": lambda J: solver(J, aux=True)(A, B),
    "jvp": lambda J: J.jvp(solver(J), (A, B), (A * 2, B + 1)),
    "jvp without transpose": lambda J: J.jvp(lambda b: solver(J, False, False)(A, b), (B,), (B,)),
    "grad": lambda J: J.grad(lambda a, b: total(J, solver(J)(a, b)), (0, 1))(A, B),
    "jit grad": lambda J: J.jit(J.grad(lambda a, b: total(J, solver(J)(a, b)), (0, 1)))(A, B),
    "hessian of b": lambda J: J.hessian(lambda b: total(J, solver(J)(A, b)))(B),
    "hessian of a": lambda J: J.hessian(lambda a: total(J, solver(J)(a, B)))(A),
    "vmap a": lambda J: J.vmap(solver(J), (0, None))(STACK, B),
    "vmap b": lambda J: J.vmap(solver(J), (None, 1))(A, np.stack([B, B + 1], 1)),
    "vmap aux": lambda J: J.vmap(solver(J, aux=True), (None, 1))(A, np.stack([B, B + 1], 1)),
    "vmap grad": lambda J: J.vmap(J.grad(lambda a, b: total(J, solver(J)(a, b)), (0, 1)),
                                  (0, None))(STACK, B),
    "grad vmap": lambda J: J.grad(lambda a: total(
        J, J.vmap(solver(J), (None, 0))(a, np.stack([B, B + 1]))))(A),
    "trees": lambda J: in_trees(J)(D, B),
    "trees jvp": lambda J: J.jvp(in_trees(J), (D, B), (B, D)),
    "trees grad": lambda J: J.grad(lambda d, b: total(J, in_trees(J)(d, b)["a"]), (0, 1))(D, B),
    "weak": lambda J: J.grad(lambda b: of(J, "custom_linear_solve")(
        lambda x: x * 2, b, lambda f, y: y / 2, symmetric=True))(1.0),
}  # fmt: skip


def newton(J, f, x):
    def step(_, x):
        y, derivative = J.jvp(f, (x,), (J.lax.full_like(x, 1),))
        return x - y / derivative

    return J.lax.fori_loop(0, 8, step, x)


def cube_root(J):
    def f(a):
        return of(J, "custom_root")(
            lambda x: x**3 - a, a * 0 + 1.0, lambda f, x: newton(J, f, x), lambda g, y: y / g(1.0)
        )

    return f


def vectors(J):
    L = J.lax

    def f(a):
        def tangent_solve(g, y):
            return L.dot(inverse(L, J.jacfwd(g)(y)), y)

        def solve(f, x):
            return L.fori_loop(0, 60, lambda _, x: x - 0.3 * f(x), x)

        equation = J.jit(lambda x: L.sin(x) * 0.1 + x * a - 1)
        return of(J, "custom_root")(equation, L.full_like(a, 0.5), solve, tangent_solve)

    return f


def with_aux(J):
    return lambda a: of(J, "custom_root")(
        lambda x: x * x - a, 1.0, lambda f, x: (newton(J, f, x), a * 2), lambda g, y: y / g(1.0),
        has_aux=True,
    )  # fmt: skip


THREE = np.array([1.0, 2.0, 3.0], F32)

ROOTS = {
    "value": lambda J: cube_root(J)(2.0),
    "grad": lambda J: J.grad(cube_root(J))(2.0),
    "second": lambda J: J.grad(J.grad(cube_root(J)))(2.0),
    "forward of reverse": lambda J: J.jvp(J.grad(cube_root(J)), (2.0,), (1.0,)),
    "jit": lambda J: J.jit(J.grad(cube_root(J)))(2.0),
    "of jit": lambda J: J.grad(J.jit(cube_root(J)))(F32(2)),
    "vmap": lambda J: J.vmap(J.grad(cube_root(J)))(THREE),
    "jit vmap second": lambda J: J.jit(J.vmap(J.grad(J.grad(cube_root(J)))))(THREE),
    "vector": lambda J: vectors(J)(THREE),
    "vector jvp": lambda J: J.jvp(vectors(J), (THREE,), (THREE + 1,)),
    "vector grad": lambda J: J.grad(lambda a: total(J, vectors(J)(a)))(THREE),
    "vector hessian": lambda J: J.hessian(lambda a: total(J, vectors(J)(a)))(THREE),
    "aux": lambda J: J.jvp(with_aux(J), (F32(2),), (F32(1),)),
    "guess": lambda J: J.grad(lambda g: of(J, "custom_root")(
        lambda x: x * x - 2, g, lambda f, x: newton(J, f, x), lambda g, y: y / g(1.0)))(1.0),
}  # fmt: skip


def square_here(J):
    return lambda x: of(J, "platform_dependent")(
        x, cpu=lambda x: x * x, tpu=J.lax.tan, default=lambda x: -x
    )


PLATFORMS = {
    "value": lambda J: square_here(J)(B),
    "jit": lambda J: J.jit(square_here(J))(B),
    "grad": lambda J: J.grad(lambda x: total(J, square_here(J)(x)))(B),
    "vmap grad": lambda J: J.jit(J.vmap(J.grad(square_here(J))))(B),
    "hessian": lambda J: J.hessian(lambda x: total(J, square_here(J)(x)))(B),
    "default": lambda J: of(J, "platform_dependent")(B, cuda=J.lax.tan, default=lambda x: -x),
}

CALLS = {
    "value": lambda J: linear_call(J)(lambda r, x: x / r, lambda r, t: t / r, 2.0, B),
    "grad": lambda J: J.grad(lambda x: total(J, linear_call(J)(
        lambda r, x: x / r, lambda r, t: 10 * t / r, F32(2), x)))(B),
    "transpose": lambda J: J.linear_transpose(lambda x: linear_call(J)(
        lambda r, x: x / r, lambda r, t: 10 * t / r, F32(2), x), B)(B),
    "trees": lambda J: J.grad(lambda x: total(J, linear_call(J)(
        lambda r, x: {"a": x[0], "b": x[1] * r}, lambda r, t: (t["a"], t["b"] * r), F32(2),
        (x, x * 3))["b"]))(B),
}  # fmt: skip


@pytest.mark.parametrize("case", SOLVES)
def test_linear_solves(case):
    same_results(SOLVES[case])


@pytest.mark.parametrize("case", ROOTS)
def test_roots(case):
    same_results(ROOTS[case])


@pytest.mark.parametrize("case", PLATFORMS)
def test_platforms(case):
    same_results(PLATFORMS[case])


@pytest.mark.parametrize("case", CALLS)
def test_linear_calls(case):
    same_results(CALLS[case])


def linear_solve(J, matvec, b, *args, **options):
    return of(J, "custom_linear_solve")(matvec, b, *args, **options)


def ident(x):
    return x


ERRORS = {
    "matvec tree": (lambda J: linear_solve(J, lambda x: (x,), B, lambda f, b: b), TypeError,
                    "matvec() output pytree structure must match b"),
    "matvec shape": (lambda J: linear_solve(J, lambda x: F32(1), B,
                                            lambda f, b: b), ValueError,
                     "matvec() output shapes must match b, got [()] and [(3,)]"),
    "solve tree": (lambda J: linear_solve(J, ident, B, lambda f, b: (b,)), TypeError,
                   "solve() output pytree structure must match b"),
    "solve shape": (lambda J: linear_solve(J, ident, B, lambda f, b: F32(1)), ValueError,
                    "solve() output shapes must match b, got [()] and [(3,)]"),
    "no aux": (lambda J: linear_solve(J, ident, B, lambda f, b: (b, b, b), has_aux=True),
               ValueError, "too many values to unpack"),
    "no transpose": (lambda J: J.grad(lambda b: total(J, linear_solve(
        J, ident, b, lambda f, b: b)))(B), TypeError,
        "transpose_solve required for backwards mode automatic differentiation of "
        "custom_linear_solve"),
    "transpose tree": (lambda J: linear_solve(J, ident, B, lambda f, b: b, lambda f, b: (b,)),
                       TypeError, "transpose_solve() output pytree structure must match b"),
    "root f": (lambda J: of(J, "custom_root")(lambda x: (x,), 1.0, lambda f, x: x,
                                              lambda g, y: y), TypeError,
               "f() output pytree structure must match initial_guess"),
    "root solve": (lambda J: of(J, "custom_root")(ident, 1.0, lambda f, x: (x,),
                                                  lambda g, y: y), TypeError,
                   "solve() output pytree structure must match initial_guess"),
    "root tangent": (lambda J: of(J, "custom_root")(ident, 1.0, lambda f, x: x,
                                                    lambda g, y: (y,)), TypeError,
                     "tangent_solve() output pytree structure must match x"),
    "root aux": (lambda J: of(J, "custom_root")(ident, 1.0, lambda f, x: x, lambda g, y: y,
                                                has_aux=True), ValueError,
                 "a pytree tuple with auxiliary output was expected because has_aux was set"),
    "no platform": (lambda J: J.jit(lambda x: of(J, "platform_dependent")(
        x, tpu=lambda x: x + 1))(B), NotImplementedError, "platform cpu"),
    "gpu": (lambda J: of(J, "platform_dependent")(B, gpu=ident, default=ident), ValueError,
            "Use 'cuda', 'rocm', or 'oneapi' for lax.platform_dependent."),
    "platforms differ": (lambda J: J.jit(lambda x: of(J, "platform_dependent")(
        x, cpu=ident, tpu=lambda x: total(J, x)))(B), TypeError,
        "The output of branch 0 has type float32[3] but the corresponding output of"),
    "call tree": (lambda J: J.grad(lambda x: total(J, linear_call(J)(
        lambda r, x: x, lambda r, t: (t, t), 1.0, x)))(B), TypeError,
        "transpose output pytree structure must match that of linear inputs"),
    "call shape": (lambda J: J.grad(lambda x: total(J, linear_call(J)(
        lambda r, x: x, lambda r, t: total(J, t), 1.0, x)))(B), ValueError,
        "Expected cotangent type float32[3] but got float32[]"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    call, error, *phrases = ERRORS[case]
    same_error(call, error, tuple(phrases))
