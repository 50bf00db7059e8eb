"""Mapped functions of scalars and vectors, piecewise, interpolation: errors and edge cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import primax_numpy as pnp
from primax_core import grad, jit, vmap

rng = np.random.default_rng(0)
product = pnp.vectorize(lambda a, b: a @ b, signature="(m,n),(n)->(m)")


@given(st.lists(st.integers(1, 3), max_size=2), st.integers(0, 2), st.booleans(), st.integers(1, 3))
@settings(max_examples=25)
def test_signatures_broadcast(shape: list[int], drop: int, one: bool, n: int) -> None:
    a = rng.standard_normal((*shape, 2, n)).astype(np.float32)
    rest = [1 if one else d for d in shape[drop:]]
    b = rng.standard_normal((*rest, n)).astype(np.float32)
    expected = (a @ b[..., None])[..., 0]
    np.testing.assert_allclose(product(a, b), expected, 1e-5, 1e-5)


def _call(fun: Callable[..., Any], signature: str | None, *args: Any, **params: Any) -> Any:
    return pnp.vectorize(fun, signature=signature)(*args, **params)


ones = pnp.ones
REFUSED = [
    (
        lambda: product(ones((2, 3)), ones(2)),
        ValueError,
        "core dimension 'n': 2 vs 3 on vectorized",
    ),
    (
        lambda: product(ones(3), ones(3)),
        ValueError,
        r"input with shape \(3,\) does not have enough",
    ),
    (lambda: product(ones((2, 3))), TypeError, "expected 2, got 1 on vectorized function with"),
    (lambda: product(ones((4, 2, 3)), ones((5, 3))), ValueError, r"shapes=\[\(4,\), \(5,\)\]"),
    (lambda: pnp.vectorize(len, signature="(n->()"), ValueError, "not a valid gufunc signature"),
    (
        lambda: _call(lambda a: (a, a), "()->()", 1),
        TypeError,
        "outputs? arguments: expected 1, got 2",
    ),
    (lambda: _call(lambda a: a, "()->(),()", 1), TypeError, "output must be a tuple"),
    (
        lambda: _call(lambda a: a, "(n)->(m,n)", ones(3)),
        ValueError,
        r"output shape \(3,\) does not",
    ),
    (lambda: _call(lambda a: a[:1], "(n)->(n)", ones(3)), ValueError, "core dimension 'n': 1 vs 3"),
    (
        lambda: _call(lambda a: a, "(3)->(3)", ones((2, 4))),
        ValueError,
        "core dimension '3': 4 vs 3",
    ),
    (lambda: pnp.vectorize(len, excluded=(-1,)), ValueError, "contains negative numbers"),
    (lambda: pnp.vectorize(len, excluded=(1.5,)), TypeError, "only exclude integer or string"),
    (lambda: pnp.apply_along_axis(len, 2, ones((2, 2))), ValueError, "axis 2 is out of bounds"),
    (lambda: pnp.apply_along_axis(len, 0, 1.0), ValueError, "axis 0 is out of bounds"),
    (
        lambda: pnp.apply_over_axes(lambda a, i: a.sum(), ones((2, 2)), 0),
        ValueError,
        "number of axes",
    ),
    (
        lambda: pnp.apply_over_axes(lambda a, i: (a,), ones((2, 2)), 0),
        TypeError,
        "must return an array, but it returned <class 'tuple'>",
    ),
    (lambda: pnp.piecewise(ones(2), [ones(2)] * 3, [1]), ValueError, "either 3 or 4 functions"),
    (lambda: pnp.piecewise(ones(2), [], [1]), ValueError, "at least one condition"),
    (
        lambda: pnp.piecewise(ones(2), [ones(3)], [1]),
        ValueError,
        r"condition 0 of shape \(3,\)|shape",
    ),
    (lambda: pnp.interp(1.0, ones((1, 2)), ones(2)), ValueError, r"got shapes \(1, 2\) and \(2,\)"),
    (lambda: pnp.interp(1.0, ones(0), ones(0)), ValueError, "xp and fp are empty"),
    (lambda: pnp.interp(1.0, ones(2), ones(2), left="flat"), ValueError, "`left` is 'extrapolate'"),
    (lambda: pnp.interp(1.0, ones(2), ones(2), period=0), ValueError, "non-zero"),
    (
        lambda: pnp.interp(1.0, ones(2), ones(2), period=ones(2)),
        ValueError,
        "period must be a scalar",
    ),
    (lambda: pnp.interp(1j, ones(2), ones(2)), ValueError, "complex x values"),
    (lambda: pnp.interp([1.0], ones(2), ones(2)), TypeError, "interp requires"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED, ids=[t for *_, t in REFUSED])
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_excluded_arguments() -> None:
    def scaled(a: Any, how: str, factor: float = 1.0) -> Any:
        assert how == "times"
        return a * factor

    x = np.arange(3)
    for call in (
        lambda: pnp.vectorize(scaled, excluded={1})(x, "times", 2),
        lambda: pnp.vectorize(scaled, excluded={"how"})(x, how="times", factor=2),
        lambda: pnp.vectorize(scaled, excluded={1, "factor"})(x, "times", factor=2),
    ):
        assert call().tolist() == [0, 2, 4]
    assert pnp.vectorize(lambda a, b: a if b is None else b)(x, None).tolist() == [0, 1, 2]
    assert pnp.vectorize(scaled, excluded={1}).__name__ == "scaled"
    assert pnp.vectorize(lambda a: a + 1)([1, 2]).tolist() == [2, 3]
    assert pnp.vectorize(lambda a: {"twice": 2 * a})(x)["twice"].tolist() == [0, 2, 4]


def test_piecewise() -> None:
    x = np.array([-1.0, 0.0, 4.0], np.float32)
    assert pnp.piecewise(x, [x > -2, x > 1], [1, 2]).tolist() == [
        1.0,
        1.0,
        2.0,
    ]  # the last true condition is used
    assert pnp.piecewise(x, x > 1, [1, 2]).tolist() == [2.0, 2.0, 1.0]
    assert pnp.piecewise(x, np.stack([x > 1, x < 0]), [1, 2]).tolist() == [2.0, 0.0, 1.0]
    assert pnp.piecewise(3, [True], [lambda v: v / 2]).dtype == np.int32
    assert pnp.piecewise(x, [x > 0], [lambda v, k: v * k, 0], pnp.asarray(2.0)).tolist() == [
        0,
        0,
        8,
    ]
    for one, other in ((1, 2.0), (True, 1), (1.0, 1)):
        actual = [
            pnp.piecewise(x, [x < 9], [lambda v, k: v * 0 + k], k).tolist() for k in (one, other)
        ]
        assert actual == [[float(one)] * 3, [float(other)] * 3]


def test_piecewise_ignores_derivatives_of_other_branches() -> None:
    def root(x: Any) -> Any:
        return pnp.piecewise(x, [x > 0], [pnp.sqrt, 0.0])

    assert float(grad(root)(0.0)) == 0.0 and float(grad(root)(4.0)) == 0.25
    np.testing.assert_allclose(vmap(grad(root))(np.array([-1.0, 0.0, 4.0])), [0.0, 0.0, 0.25])
    np.testing.assert_allclose(jit(root)(np.array([-1.0, 4.0])), [0.0, 2.0])


def test_interpolation_at_and_beyond_knots() -> None:
    xp, fp = np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 6.0])
    slope = grad(pnp.interp)
    assert [float(slope(x, xp, fp)) for x in (0.5, 1.0, 2.0, -1.0, 4.0)] == [
        1.0,
        2.0,
        2.0,
        0.0,
        0.0,
    ]
    low_high = {"left": "extrapolate", "right": "extrapolate"}
    actual = pnp.interp(np.array([-1.0, 5.0]), xp, fp, **low_high)
    np.testing.assert_allclose(actual, [0.0, 10.0])
    assert pnp.interp(1, xp, fp, left=7).dtype == np.float32
    assert pnp.interp(0.5, xp.astype(np.float16), fp.astype(np.float16)).dtype == np.float16
    np.testing.assert_allclose(pnp.interp(1.0, np.array([1.0, 1.0, 2.0]), fp), 2.0)


@given(st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=9))
@settings(max_examples=40)
def test_unwrapped_angles(angles: list[float]) -> None:
    x = np.array(angles, np.float32)
    actual = np.asarray(pnp.unwrap(x))
    turns = (actual - x) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-3)
    assert np.all(np.abs(np.diff(actual)) <= np.pi + 1e-3)


def test_unwrapped_integers_stay_integers() -> None:
    x = np.array([0, 3, 7, 1, 2])
    actual = pnp.unwrap(x, period=6)
    assert actual.dtype == np.int32
    np.testing.assert_array_equal(actual, np.unwrap(x, period=6))
    assert pnp.unwrap(np.zeros((2, 0))).shape == (2, 0)
