"""Contractions against NumPy, their derivatives against differences."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import primax_core as px
from primax_core._base.config import default_matmul_precision
from primax_core.lax import contracting, precision
from test_support import check_derivatives

pytestmark = pytest.mark.optimised

rng = np.random.default_rng(0)


def f(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_values():
    x, y = f(2, 3, 4), f(2, 4, 5)
    np.testing.assert_allclose(contracting.batch_matmul(x, y), x @ y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(contracting.dot(x[0], y[0]), x[0] @ y[0], rtol=1e-5, atol=1e-5)
    numbers = (((2, 0), (1, 0)), ((), ()))
    expected = np.einsum("abc,acd->bd", x, y)
    np.testing.assert_allclose(
        contracting.dot_general(x, y, numbers), expected, rtol=1e-5, atol=1e-5
    )
    assert contracting.dot(f(2, 0), f(0, 3)).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize(
    "x, y, numbers",
    [
        ((3, 4), (4, 2), (((1,), (0,)), ((), ()))),
        ((4, 2, 3), (3, 4, 2), (((2, 0), (0, 1)), ((1,), (2,)))),
        ((2, 3), (2,), (((), ()), ((0,), (0,)))),
    ],
)
def test_derivatives(x, y, numbers):
    check_derivatives(lambda a, b: contracting.dot_general(a, b, numbers), f(*x), f(*y))


def test_batches_are_loops():
    x, y = f(5, 2, 3), f(3, 5, 4)
    for axes, args in [((0, 1), (x, y)), ((0, None), (x, y[:, 0])), ((None, 1), (x[0], y))]:
        actual = np.asarray(px.vmap(contracting.dot, axes)(*args))
        for i in range(5):
            one = [a if d is None else np.take(a, i, d) for a, d in zip(args, axes)]
            np.testing.assert_allclose(actual[i], one[0] @ one[1], rtol=1e-5, atol=1e-5)


def test_dtypes():
    i8 = np.full((2, 100), 100, np.int8)
    wide = contracting.dot(i8, i8[0], preferred_element_type=np.int32)
    assert (wide.dtype, wide.tolist()) == (np.int32, [10**6] * 2)
    mixed = contracting.dot(f(2, 3).astype(ml_dtypes.bfloat16), f(3))
    assert mixed.dtype == np.float32
    # Narrow floats have a wider accumulator.
    ones = np.ones(1000, ml_dtypes.bfloat16)
    assert float(contracting.dot(ones, ones)) == 1000
    packed = np.array([1, 2, -3], ml_dtypes.int4)
    assert int(contracting.dot(packed, packed, preferred_element_type=np.int32)) == 14


def test_precision_is_a_parameter():
    x = f(2, 2)
    text = str(px.make_jaxpr(lambda a: contracting.dot(a, a, precision="highest"))(x))
    assert "precision=(Precision.HIGHEST, Precision.HIGHEST)" in text
    assert "precision" not in str(px.make_jaxpr(lambda a: contracting.dot(a, a))(x))
    with default_matmul_precision("float32"):
        assert "HIGHEST" in str(px.make_jaxpr(lambda a: contracting.dot(a, a))(x))
    assert precision.Precision(None) is precision.Precision.DEFAULT
    with pytest.raises(ValueError, match="Precision argument must be one of"):
        contracting.dot(x, x, precision="exact")


def test_errors_show_shapes():
    with pytest.raises(TypeError, match=r"contracting dimensions .* got \(3,\) and \(2,\)"):
        contracting.dot(f(2, 3), f(2, 3))
    with pytest.raises(ValueError, match="dimension_numbers must be specified"):
        contracting.dot(f(2, 2, 2), f(2))
    with pytest.raises(TypeError, match="must be a sequence of integers"):
        contracting.dot_general(f(2), f(2), (((0.5,), (0,)), ((), ())))
    with pytest.raises(ValueError, match="dimension_numbers must be"):
        contracting.dot_general(f(2), f(2), ((0,), (0,)))
