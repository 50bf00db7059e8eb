"""Traced arguments: numbers that may depend on values, and errors for those that may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primax_core as px
import primax_numpy as pnp
from test_support import check_derivatives

X = np.array([0, 3, 0, 4], np.int32)
ANGLES = np.array([0.0, 2.5, 5.25, 1.0], np.float32)
MATRIX = np.arange(24, dtype=np.float32).reshape(3, 4, 2)


@pytest.mark.parametrize(
    "fill, dtype",
    [
        (7, "int32"),
        (True, "int32"),
        (1.5, "float32"),
        (np.int8(-1), "int32"),
        (np.float16(1.5), "float16"),
        (3j, "complex64"),
    ],
    ids=str,
)
def test_padding_of_positions(fill, dtype):
    def positions(fill):
        return pnp.nonzero(X, size=3, fill_value=fill)[0]

    for out in (positions(fill), px.jit(positions)(fill)):
        assert out.dtype == dtype
        assert out.tolist() == [1, 3, fill]


def test_padding_for_each_axis():
    def positions(n):
        return pnp.argwhere(np.ones((2, 2)), size=5, fill_value=(n, 3))

    assert px.jit(positions)(8).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [8, 3]]
    assert px.jit(lambda n: pnp.flatnonzero(X[:0], size=2, fill_value=n))(5).tolist() == [5, 5]
    batch = px.vmap(lambda n: pnp.where(X, size=3, fill_value=n)[0])(np.array([7, 9], np.int32))
    assert batch.tolist() == [[1, 3, 7], [1, 3, 9]]


@pytest.mark.parametrize("period", [4.0, np.float32(6)], ids=str)
def test_period(period):
    out = px.jit(lambda period: pnp.unwrap(ANGLES, period=period))(period)
    assert np.allclose(out, np.unwrap(ANGLES, period=float(period)))
    check_derivatives(lambda p, period: pnp.unwrap(p, period=period), ANGLES, np.float32(period))


@pytest.mark.parametrize("period", [5, 6, np.int16(6)], ids=str)
def test_period_of_integers(period):
    steps = np.array([0, 2, 5, 1, -2], np.int32)
    expected = np.unwrap(steps, period=int(period))
    for apply in (lambda f: f, px.jit):
        out = apply(lambda period: pnp.unwrap(steps, period=period))(period)
        assert out.dtype == "int32" and np.array_equal(out, expected)


def test_a_period_is_a_scalar():
    with pytest.raises(ValueError, match=r"period must be a scalar, got shape \(4,\)"):
        pnp.unwrap(ANGLES, period=ANGLES)


@pytest.mark.parametrize("offset", [-4, -2, 0, 1, 3, 9])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (-1, 0)], ids=str)
def test_offset_of_a_trace(offset, axes):
    out = px.jit(lambda offset: pnp.trace(MATRIX, offset, *axes))(offset)
    assert np.array_equal(out, np.trace(MATRIX, offset, *axes))


# Sizes and axes must be known while tracing.

STATIC: dict[str, tuple[Callable[[Any], Any], str]] = {
    "reshape": (lambda n: pnp.reshape(X, (n, 2)), "Shapes must be 1D sequences"),
    "broadcast_to": (lambda n: pnp.broadcast_to(X, (n, 4)), "Shapes must be 1D sequences"),
    "random": (lambda n: pnp.random.normal(pnp.random.key(0), (n,)), "normal: Shapes must be 1D"),
    "eye": (lambda n: pnp.eye(2, n), "eye: sizes must be concrete integers"),
    "tril_indices": (lambda n: pnp.tril_indices(n), "tril_indices: sizes must be concrete"),
    "tile": (lambda n: pnp.tile(X, n), "tile: reps must be concrete integers"),
    "nonzero": (lambda n: pnp.nonzero(X, size=n), "nonzero: size must be a concrete integer"),
    "concatenate": (lambda n: pnp.concatenate([X, X], axis=n), "__index__"),
    "stack": (lambda n: pnp.stack([X, X], axis=n), "__index__"),
}


@pytest.mark.parametrize("name", STATIC)
def test_errors_name_the_argument(name):
    run, message = STATIC[name]
    with pytest.raises(TypeError) as caught:
        px.jit(run)(2)
    assert message in str(caught.value)
    assert "depends on the value of the argument n" in str(caught.value)
    assert "static (static_argnums) in jit" in str(caught.value)
