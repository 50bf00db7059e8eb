"""Activations where finite differences are unsuitable: at kinks, far from zero, at infinity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nn_cases import ACTIVATIONS, erfc, sigmoid, softplus

import primax_nn as nn
from primax_core import enable_x64, grad, jit, jvp, vmap

INF = np.inf

# name: points with values, first and second derivatives
KINKS: dict[str, list[tuple[float, float, float, float]]] = {
    "relu": [(0.0, 0, 0, 0), (-0.0, 0, 0, 0), (INF, INF, 1, 0), (-INF, 0, 0, 0)],
    "relu6": [(0.0, 0, 0, 0), (6.0, 6, 0, 0), (3.0, 3, 1, 0), (INF, 6, 0, 0), (-INF, 0, 0, 0)],
    "leaky_relu": [(0.0, 0, 1, 0), (-1.0, -0.01, 0.01, 0), (-INF, -INF, 0.01, 0)],
    "elu": [(0.0, 0, 1, 1), (-INF, -1, 0, 0), (-200.0, -1, 0, 0), (INF, INF, 1, 0)],
    "celu": [(0.0, 0, 1, 1), (-INF, -1, 0, 0), (INF, INF, 1, 0)],
    "selu": [(0.0, 0, 1.7580993, 1.7580993), (-INF, -1.7580993, 0, 0), (INF, INF, 1.0507010, 0)],
    "hard_tanh": [(1.0, 1, 1, 0), (-1.0, -1, 1, 0), (2.0, 1, 0, 0), (-INF, -1, 0, 0)],
    "hard_sigmoid": [(3.0, 1, 0, 0), (-3.0, 0, 0, 0), (0.0, 0.5, 1 / 6, 0), (-INF, 0, 0, 0)],
    "hard_silu": [(3.0, 3, 1, 0), (-3.0, 0, 0, 0), (-INF, 0, 0, 0), (INF, INF, 1, 0)],
    "sparse_plus": [(1.0, 1, 1, 0), (-1.0, 0, 0, 0), (-INF, 0, 0, 0), (INF, INF, 1, 0)],
    "sparse_sigmoid": [(1.0, 1, 0.25, 0), (-1.0, 0, 0.25, 0), (0.0, 0.5, 0.5, 0)],
    "sigmoid": [(-INF, 0, 0, 0), (INF, 1, 0, 0), (0.0, 0.5, 0.25, 0)],
    "softplus": [(-INF, 0, 0, 0), (INF, INF, 1, 0)],
    "log_sigmoid": [(-INF, -INF, 1, 0), (INF, 0, 0, 0)],
    "silu": [(-INF, 0, 0, 0), (INF, INF, 1, 0), (0.0, 0, 0.5, 0.5), (3e38, 3e38, 1, 0)],
    "mish": [(-INF, 0, 0, 0), (INF, INF, 1, 0), (0.0, 0, 0.6, 0.64)],
    "gelu": [(-INF, 0, 0, 0), (INF, INF, 1, 0), (0.0, 0, 0.5, 0.7978846)],
    "squareplus": [(-INF, 0, 0, 0), (INF, INF, 1, 0), (0.0, 1, 0.5, 0.25), (3e38, 3e38, 1, 0)],
    "soft_sign": [(-INF, -1, 0, 0), (INF, 1, 0, 0), (0.0, 0, 1, -2)],
}


@pytest.mark.parametrize("name", KINKS)
@pytest.mark.parametrize("compile", [False, True], ids=["eager", "jit"])
def test_kinks_and_infinities(name: str, compile: bool) -> None:
    fun = getattr(nn, name)
    points = np.float32([p[0] for p in KINKS[name]])
    expected = np.float32([p[1:] for p in KINKS[name]]).T
    for order, expected_values in enumerate(expected):
        actual = vmap(_differentiated(fun, order))
        actual = np.asarray((jit(actual) if compile else actual)(points))
        np.testing.assert_allclose(
            actual, expected_values, 1e-6, 1e-18, err_msg=f"{name}, order {order}"
        )


def _differentiated(fun: Callable[..., Any], order: int) -> Callable[..., Any]:
    for _ in range(order):
        fun = grad(fun)
    return fun


def test_the_exact_gelu_at_infinity():
    f = lambda x: nn.gelu(x, approximate=False)
    points = np.float32([-INF, -50, 50, INF])
    assert np.asarray(f(points)).tolist() == [0, 0, 50, INF]
    assert np.asarray(vmap(grad(f))(points)).tolist() == [0, 0, 1, 1]
    assert np.asarray(vmap(grad(grad(f)))(points)).tolist() == [0, 0, 0, 0]


GRID = np.concatenate([np.linspace(-60, 60, 241), np.geomspace(1e-4, 80, 20)])


def _mish(x: Any) -> Any:
    n = np.exp(x) * (np.exp(x) + 2)
    return x * n / (n + 2)


def _normal(x: Any) -> Any:
    return np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


# name: value, first and second derivative, accurate for small results
SMOOTH: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "sigmoid": (
        sigmoid,
        lambda x: sigmoid(x) * sigmoid(-x),
        lambda x: sigmoid(x) * sigmoid(-x) * np.tanh(-x / 2),
    ),
    "softplus": (softplus, sigmoid, lambda x: sigmoid(x) * sigmoid(-x)),
    "log_sigmoid": (
        lambda x: -softplus(-x), lambda x: sigmoid(-x), lambda x: -sigmoid(x) * sigmoid(-x),
    ),
    "silu": (
        lambda x: x * sigmoid(x),
        lambda x: sigmoid(x) + x * sigmoid(x) * sigmoid(-x),
        lambda x: sigmoid(x) * sigmoid(-x) * (2 + x * np.tanh(-x / 2)),
    ),
    "exact gelu": (
        lambda x: x * erfc(-x / np.sqrt(2)) / 2,
        lambda x: erfc(-x / np.sqrt(2)) / 2 + x * _normal(x),
        lambda x: _normal(x) * (2 - x * x),
    ),
    "soft_sign": (
        lambda x: x / (1 + abs(x)),
        lambda x: 1 / (1 + abs(x)) ** 2,
        lambda x: -2 * np.where(x >= 0, 1, -1) / (1 + abs(x)) ** 3,
    ),
    "squareplus": (
        lambda x: np.where(x > 0, (x + np.sqrt(x * x + 4)) / 2, 2 / (np.sqrt(x * x + 4) - x)),
        lambda x: np.where(
            x > 0, (1 + x / np.sqrt(x * x + 4)) / 2,
            2 / (np.sqrt(x * x + 4) * (np.sqrt(x * x + 4) - x)),
        ),
        lambda x: 2 / (x * x + 4) ** 1.5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_tails_are_accurate(name: str) -> None:
    """Relative accuracy unless the result is denormal; for second derivatives without
    cancellation."""
    fun = getattr(nn, name.removeprefix("exact "))
    if name == "exact gelu":
        fun = lambda x: nn.gelu(x, approximate=False)
    points = np.float32(GRID)
    for order, formula in enumerate(SMOOTH[name]):
        with np.errstate(all="ignore"):
            expected = np.asarray(formula(points.astype(np.longdouble)), np.float64)
        actual = np.asarray(vmap(_differentiated(fun, order))(points), np.float64)
        seen = abs(expected) > 1e-30
        slack = (0.0, 1e-7, 2e-7)[order]
        limit = 1e-5 if order == 0 else 1e-4
        np.testing.assert_allclose(actual[seen], expected[seen], limit, slack, err_msg=str(order))


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "silu", "log_sigmoid"])
def test_far_derivatives_have_no_absolute_error(name: str) -> None:
    for order, formula in enumerate(SMOOTH[name]):
        for x in (-40.0, 40.0):
            expected = float(formula(np.longdouble(x)))
            actual = float(_differentiated(getattr(nn, name), order)(np.float32(x)))
            if name != "silu" or order == 2 or x < 0:
                np.testing.assert_allclose(actual, expected, 1e-5)


@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n not in ("tanh",)])
def test_narrow_and_wide_floats(name: str) -> None:
    """Half precision within its rounding, double precision within its own."""
    fun, formula = getattr(nn, name), ACTIVATIONS[name]
    x = np.linspace(-20, 20, 83)
    half = np.asarray(fun(x.astype(np.float16)), np.float64)
    exact = formula(x.astype(np.float16).astype(np.float64))
    np.testing.assert_allclose(half, exact, 1e-2, 2e-2)
    with enable_x64(True):
        actual = np.asarray(fun(x))
        assert actual.dtype == np.float64
        np.testing.assert_allclose(actual, formula(x.astype(np.longdouble)).astype(float), 1e-13,
                                   1e-14)  # fmt: skip
        assert np.isfinite(np.asarray(vmap(grad(fun))(np.array([-800.0, 800.0])))).all()


def test_log1mexp_for_both_formulas():
    x = np.float32([1e-30, 1e-3, 0.5, 0.69, 0.7, 1, 10, 80, 200])
    with np.errstate(divide="ignore"):
        wide = x.astype(np.longdouble)
        expected = np.where(x < 0.7, np.log(-np.expm1(-wide)), np.log1p(-np.exp(-wide)))
    np.testing.assert_allclose(nn.log1mexp(x), expected.astype(float), 1e-6, 1e-38)
    slopes = np.asarray(vmap(grad(nn.log1mexp))(x))
    np.testing.assert_allclose(slopes, 1 / np.expm1(x.astype(float)), 1e-5, 1e-38)
    second = np.asarray(vmap(grad(grad(nn.log1mexp)))(x[1:]))
    e = np.expm1(x[1:].astype(float))
    np.testing.assert_allclose(second, -(e + 1) / e**2, 1e-4, 1e-38)


def test_masked_softmax_has_masked_derivatives():
    x = np.float32([[1, 2, np.nan], [np.inf, 3, 4]])
    where = np.array([[True, True, False], [False, True, True]])
    for fun in (nn.softmax, nn.log_softmax):
        f = lambda x, fun=fun: (
            nn.softmax(x, where=where)[:, 1].sum() + 0 * fun(x, where=where)[:, 1].sum()
        )
        g = np.asarray(grad(f)(x))
        assert np.isfinite(g).all() and (g[~where] == 0).all()
    empty = np.zeros((1, 3), bool)
    assert np.asarray(nn.softmax(x[:1], where=empty)).tolist() == [[0, 0, 0]]
    assert np.asarray(grad(lambda x: nn.softmax(x, where=empty).sum())(x[:1])).tolist() == [[0] * 3]
    assert np.asarray(nn.log_softmax(x[:1], where=empty)).tolist() == [[-INF] * 3]


def test_logsumexp_ignores_elements_without_weight():
    x = np.float32([np.nan, np.inf, 1])
    b = np.float32([0, 0, 1])
    assert float(nn.logsumexp(x, b=b)) == 1.0
    assert np.asarray(grad(lambda x: nn.logsumexp(x, b=b))(x)).tolist() == [0, 0, 1]
    assert np.isnan(nn.logsumexp(np.float32([1, 2]), b=-1.0))
    value, sign = nn.logsumexp(np.float32([-INF]), return_sign=True)
    assert (float(value), float(sign)) == (-INF, 0.0)


def test_attention_without_keys_is_zero():
    q, k = np.ones((1, 2, 1, 4), np.float32), np.ones((1, 0, 1, 4), np.float32)
    out, residual = nn.dot_product_attention(q, k, k, return_residual=True)
    assert not np.asarray(out).any() and (np.asarray(residual) == -INF).all()


def test_attention_with_large_logits():
    q = np.full((1, 1, 1, 4), 300, np.float16)
    k = np.full((1, 2, 1, 4), 300, np.float16)
    v = np.float16([[[[1, 2, 3, 4]], [[3, 4, 5, 6]]]])
    assert np.asarray(nn.dot_product_attention(q, k, v)).ravel().tolist() == [2, 3, 4, 5]


def test_forward_mode_of_custom_rules():
    x = np.float32([-2, 0, 3])
    for name in ("relu", "silu", "gelu", "mish", "softplus", "squareplus", "softmax"):
        fun = getattr(nn, name)
        _, dots = jvp(fun, (x,), (np.ones_like(x),))
        if name != "softmax":
            np.testing.assert_allclose(dots, vmap(grad(fun))(x), 1e-5, 1e-6)
        else:
            np.testing.assert_allclose(dots, np.zeros(3), atol=1e-6)
