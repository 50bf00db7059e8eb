"""Special functions against the real jax: values, types, derivatives, batches, jaxprs, errors.

Where the reference is less accurate, the tolerance is its error. The core's unit tests compare with
exact values.
"""

import contextlib

import jax
import ml_dtypes
import numpy as np
import pytest
from agreement import check, same, same_text
from jax import lax as theirs

import primax_core as px
from primax_core._base.config import enable_x64
from primax_core.lax import bessel, gamma, incomplete_beta, incomplete_gamma, polynomials, special


class ours:
    """The functions of all modules."""


for page in (bessel, gamma, incomplete_beta, incomplete_gamma, polynomials, special):
    for name, value in vars(page).items():
        if callable(value) and getattr(value, "__module__", "") == page.__name__:
            setattr(ours, name, staticmethod(value))

UNARY = ["lgamma", "digamma", "bessel_i0e", "bessel_i1e", "erf", "erfc"]
BINARY = ["igamma", "igammac", "zeta", "polygamma", "igamma_grad_a", "random_gamma_grad"]
POSITIVE = np.array([0.3, 0.9, 2.2, 4.0, 11.0, 25.0])
OTHER = np.array([0.5, 1.3, 1.1, 3.0, 14.0, 20.0])


def in_double():
    """Enable 64-bit types in both libraries."""
    stack = contextlib.ExitStack()
    stack.enter_context(enable_x64(True))
    stack.enter_context(jax.enable_x64(True))
    return stack


@pytest.mark.parametrize("name", UNARY)
def test_unary_in_double(name):
    x = np.array([0.3, 0.9, 2.2, 4.0, 11.0, -0.4, -3.3])
    with in_double():
        check(getattr(ours, name), getattr(theirs, name), x, text=False, rtol=2e-10)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float8_e5m2"])
def test_unary_values(name, dtype):
    if dtype == "float8_e5m2" and name in ("erfc", "bessel_i1e"):
        pytest.skip("the reference does not compile it")
    x = np.array([0.0, -0.0, 0.3, 2.2, 11.0, -0.4, -3.3, np.inf, -np.inf, np.nan]).astype(dtype)
    rtol = {"float32": 1e-5, "bfloat16": 1e-2, "float16": 2e-3, "float8_e5m2": 0.3}[dtype]
    same(px.jit(getattr(ours, name))(x), jax.jit(getattr(theirs, name))(x), name, rtol)


def both_lists(name):
    """The arguments for functions of two variables."""
    if name == "polygamma":
        return np.array([0.0, 1.0, 2.0, 3.0, 1.0, 5.0]), OTHER
    return (POSITIVE + 1, OTHER) if name == "zeta" else (POSITIVE, OTHER)


@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize("name", BINARY)
def test_binary_values(name):
    """Agreement to 9 digits in float64, for arguments at which the reference is accurate."""
    a, x = both_lists(name)
    with in_double():
        same(getattr(ours, name)(a, x), getattr(theirs, name)(a, x), name, rtol=1e-9)
    a, x = a.astype(np.float32), x.astype(np.float32)
    same(getattr(ours, name)(a, x), getattr(theirs, name)(a, x), name, rtol=2e-4)
    same(getattr(ours, name)(a[2], x), getattr(theirs, name)(a[2], x), name, rtol=2e-4)
    same(getattr(ours, name)(a, x[3]), getattr(theirs, name)(a, x[3]), name, rtol=2e-4)
    column = getattr(ours, name)(a[:2, None], x[None, 1:4])
    same(column, getattr(theirs, name)(a[:2, None], x[None, 1:4]), name, rtol=2e-4)
    if name != "random_gamma_grad":  # the reference fails for Python's numbers
        same(getattr(ours, name)(2.0, 1.5), getattr(theirs, name)(2.0, 1.5), name, rtol=2e-4)
        args = 2.0, np.float32(1.5)
        same(getattr(ours, name)(*args), getattr(theirs, name)(*args), name, rtol=2e-4)


@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_derivatives(name):
    """Derivatives with respect to ``a``, ``x``, both, and of second order except ``a`` twice."""
    a, x = POSITIVE, OTHER
    f, g = getattr(ours, name), getattr(theirs, name)
    ones, none = np.ones(a.shape), np.zeros(a.shape)
    with in_double():
        for t in ((ones, none), (none, ones), (ones, 2 * ones)):
            same(px.jvp(f, (a, x), t), jax.jvp(g, (a, x), t), f"{name} {t}", rtol=1e-8)
        same(px.vjp(f, a, x)[1](ones), jax.vjp(g, a, x)[1](ones), f"{name} back", rtol=1e-8)

        def derivatives(api, fun):
            derivative = api.grad(
                lambda a, x: fun(a, x).sum() if api is jax else total(fun(a, x)), 1
            )
            return api.jvp(derivative, (a, x), (ones, 2 * ones))

        same(derivatives(px, f), derivatives(jax, g), f"{name} twice", rtol=1e-8)


def total(x):
    return px.lax.reduce_sum(x, (0,))


@pytest.mark.rotate(every=5, whole=True)
def test_derivative_of_gamma_samples_is_differentiable():
    a, x = POSITIVE, OTHER
    with in_double():
        actual = px.jvp(ours.random_gamma_grad, (a, x), (a, x))
        same(actual, jax.jvp(theirs.random_gamma_grad, (a, x), (a, x)), rtol=1e-6)


@pytest.mark.parametrize("name", ["zeta", "polygamma"])
def test_derivatives_with_respect_to_the_second_operand(name):
    a, x = both_lists(name)
    f, g = getattr(ours, name), getattr(theirs, name)
    with in_double():
        if name == "polygamma":
            check(lambda x: f(a, x), lambda x: g(a, x), x, text=False, rtol=1e-9)
        else:  # the reference has no derivative
            derivative = px.jvp(lambda x: f(a, x), (x,), (np.ones_like(x),))[1]
            np.testing.assert_allclose(derivative, -a * np.asarray(g(a + 1, x)), rtol=1e-9)


@pytest.mark.rotate(every=5, whole=True)
def test_betainc():
    a, b = np.array([0.5, 2.0, 7.0, 30.0]), np.array([1.5, 0.7, 9.0, 20.0])
    x = np.array([0.2, 0.9, 0.4, 0.6])
    with in_double():
        same(ours.betainc(a, b, x), theirs.betainc(a, b, x), rtol=1e-11)
        check(
            lambda x: ours.betainc(a, b, x), lambda x: theirs.betainc(a, b, x), x,
            text=False, batch=False, rtol=1e-9,
        )  # fmt: skip
    a, b, x = (v.astype(np.float32) for v in (a, b, x))
    same(ours.betainc(a, b, x), theirs.betainc(a, b, x), rtol=1e-4)
    same(ours.betainc(a[1], b, x[0]), theirs.betainc(a[1], b, x[0]), rtol=1e-4)
    same(ours.betainc(1.5, 2.5, 0.5), theirs.betainc(1.5, 2.5, 0.5), rtol=1e-4)


def test_batches():
    x = np.array([[0.5, 2.0, 3.0], [9.0, 0.1, 1.0]], np.float32)
    for axes in ((0, None), (None, 1), (1, 0)):
        args = [x if d != 0 else x[:, :2] if axes == (1, 0) else x for d in axes]
        args = [x[:, :2], x[:, :2]] if axes == (1, 0) else [x, x[:, 0] if axes[1] is None else x]
        args = [np.float32(1.5) if d is None else v for d, v in zip(axes, args)]
        same(
            px.vmap(ours.igamma, axes)(*args), jax.vmap(theirs.igamma, axes)(*args), f"{axes}", 1e-4
        )


PROGRAMS = [
    ("lgamma", (1.0,)), ("digamma", (np.float32(2),)), ("igamma", (np.ones(3, np.float32), 2.0)),
    ("betainc", (1.0, np.float32(2), 0.5)), ("zeta", (2.0, 3.0)), ("bessel_i0e", (1.0,)),
    ("polygamma", (1.0, np.ones((2, 2), np.float32))),
]  # fmt: skip


@pytest.mark.parametrize("name, args", PROGRAMS)
def test_jaxprs(name, args):
    same_text(
        px.make_jaxpr(getattr(ours, name))(*args), jax.make_jaxpr(getattr(theirs, name))(*args)
    )


WRONG = [
    ("lgamma", (1,)), ("digamma", (np.complex64(1),)), ("igamma", (1, 2)), ("zeta", (True, 1.0)),
    ("igammac", (ml_dtypes.bfloat16(1), np.float32(1))), ("bessel_i1e", (np.int8(1),)),
    ("igamma_grad_a", (np.float16(1), np.float32(1))), ("betainc", (np.int32(1), 1.0, 0.5)),
    ("betainc", (np.float16(1), np.float32(1), 0.5)), ("polygamma", (np.int32(1), 1.0)),
]  # fmt: skip


@pytest.mark.parametrize("name, args", WRONG)
def test_errors(name, args):
    with pytest.raises(TypeError) as expected:
        getattr(theirs, name)(*args)
    with pytest.raises(TypeError) as actual:
        getattr(ours, name)(*args)
    assert str(actual.value).split(" (Tip")[0] == str(expected.value)


def test_polygamma_orders():
    with pytest.raises(ValueError) as expected:
        jax.grad(theirs.polygamma)(1.0, 2.0)
    with pytest.raises(ValueError) as actual:
        px.grad(ours.polygamma)(1.0, 2.0)
    assert str(actual.value) == str(expected.value)


# Polynomials

X = np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32)
COEFFICIENTS = [
    lambda c: [1.0, 2.0, 3.0], lambda c: [c, 2.0, c], lambda c: (c, c), lambda c: [1, c, 2, c, 0.5],
]  # fmt: skip


@pytest.mark.parametrize("some", range(len(COEFFICIENTS)))
@pytest.mark.parametrize("scalar", [True, False])
def test_polynomial(some, scalar):
    c = np.float32(0.7) if scalar else X + 1
    make = COEFFICIENTS[some]
    check(
        lambda x, c: ours.polynomial(x, make(c)), lambda x, c: theirs.polynomial(x, make(c)), X, c,
        rtol=1e-4, batch=some < 2,
    )  # fmt: skip


@pytest.mark.parametrize("unroll", [None, 1, 2, True])
def test_polynomial_with_an_array_of_coefficients(unroll):
    c = np.array([1.0, -2.0, 0.5, 3.0], np.float32)
    check(
        lambda x, c: ours.polynomial(x, c, unroll=unroll),
        lambda x, c: theirs.polynomial(x, c, unroll=unroll), X, c, rtol=1e-4,
    )  # fmt: skip


def test_polynomial_types():
    for x, c in [
        (1.0, [1.0, 2]), (np.float32(2), [1.0, 2]), (3, [1, 2]),
        (X, []), (np.int8(3), [1.5, 2]), (X.astype(ml_dtypes.bfloat16), [1.5, np.float32(2)]),
        (np.complex64(1j), [1, 2.0, 3]),
    ]:  # fmt: skip
        same(ours.polynomial(x, c), theirs.polynomial(x, c), f"{x} {c}")
