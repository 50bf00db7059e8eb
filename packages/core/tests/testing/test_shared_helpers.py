"""The helpers of all test suites: planted wrong values and derivatives are detected."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from primax_core import custom_derivatives, custom_jvp, custom_vjp, float0, lax
from primax_core.extend import Operand, f32, i32
from test_support import (
    assert_close,
    case,
    check_batches,
    check_compiled,
    check_derivatives,
    fixing,
    numbered,
    numerical_gradient,
    tolerance,
)

X = np.array([0.3, -1.2, 2.0], np.float32)


def refused(message: str):
    return pytest.raises(AssertionError, match=message)


class TestAssertClose:
    @pytest.mark.parametrize(
        "dtype", [np.float64, np.float32, np.complex64, np.float16, ml_dtypes.bfloat16]
    )
    def test_tolerances_by_dtype(self, dtype):
        limit = tolerance(dtype)
        expected = np.array([1.0, -2.0])
        actual = expected.astype(dtype)
        assert_close(actual, expected)
        assert_close(actual, expected * (1 + 0.5 * limit))
        with refused("Not equal to tolerance"):
            assert_close(actual, expected + [0, 4 * limit])

    def test_integers_are_exact(self):
        large = np.array([2**62, 2**62 + 1])
        assert_close(large, large.copy())
        with refused("Not equal"):
            assert_close(large, large + [0, 1])
        with refused("Not equal"):
            assert_close(np.array([True]), np.array([False]))

    def test_shapes_are_not_broadcast(self):
        with refused(r"^sum: shape \(3,\) where \(\) is expected"):
            assert_close(np.ones(3), 1.0, err_msg="sum")
        with refused(r"shape \(0,\) where \(1, 0\)"):
            assert_close(np.ones(0), np.ones((1, 0)))

    def test_dtypes(self):
        assert_close(X, X.astype(np.float64))
        with refused("dtype float32 where float64 is expected"):
            assert_close(X, X.astype(np.float64), check_dtype=True)
        zeros = np.zeros(3, float0)
        assert_close(zeros, zeros)
        with refused("dtype float32 where"):
            assert_close(np.zeros(3, np.float32), zeros)

    def test_special_values(self):
        special = np.array([np.nan, np.inf, -np.inf, 0.0])
        assert_close(special, special)
        for i in range(3):
            other = special.copy()
            other[i] = 1.0
            with refused("Not equal"):
                assert_close(special, other)
            with refused("Not equal"):
                assert_close(other, special, rtol=1.0)

    def test_tolerances_can_be_passed(self):
        assert_close(X, X * 1.05, rtol=0.1)
        assert_close(X, X * 1.05, rtol={"float32": 0.1})
        for limits in ({"rtol": 1e-3}, {"rtol": {"float64": 0.1}}, {"atol": 1e-3}):
            with refused("Not equal"):
                assert_close(X, X * 1.05, **limits)
        with refused("Not equal"):
            assert_close(1e-8, 0.0, rtol=1e-3, atol=0.0)

    def test_errors_relative_to_the_largest_value(self):
        expected = np.array([1000.0, 0.0, np.inf])
        assert_close(expected + [0, 0.5, 0], expected, rtol=1e-3, scaled=True)
        with refused("Not equal"):
            assert_close(expected + [0, 1.5, 0], expected, rtol=1e-3, scaled=True)

    def test_containers(self):
        assert_close([X, (X, None)], (X, [X, None]))
        assert_close({"a": X}, {"a": X})
        assert_close(X, [0.3, -1.2, 2.0])
        with refused("^nan where None is expected"):
            assert_close(np.nan, None)
        with refused("1 results where 2 are expected"):
            assert_close([X], [X, X])
        with refused(r"keys \['a'\] where \['b'\]"):
            assert_close({"a": X}, {"b": X})
        with refused("Not equal"):
            assert_close([X, [X]], [X, [X + 1]])


def wrong_forward(x):
    f = custom_jvp(lambda x: lax.sin(x))
    f.defjvp(lambda p, t: (lax.sin(p[0]), 1.00001 * lax.cos(p[0]) * t[0]))
    return f(x)


def wrong_backward(by):
    def fun(x):
        f = custom_vjp(lambda x: lax.sin(x))
        f.defvjp(lambda x: (lax.sin(x), x), lambda x, ct: (by * lax.cos(x) * ct,))
        return f(x)

    return fun


def wrong_second(x):
    derivative = custom_jvp(lambda x: lax.cos(x))
    derivative.defjvp(lambda p, t: (lax.cos(p[0]), lax.sin(p[0]) * t[0]))
    f = custom_jvp(lambda x: lax.sin(x))
    f.defjvp(lambda p, t: (lax.sin(p[0]), derivative(p[0]) * t[0]))
    return f(x)


class TestCheckDerivatives:
    def test_right_derivatives_pass(self):
        check_derivatives(lambda x, y: [lax.sin(x) * y, lax.exp(y)], X, X, order=2, atol=1e-5)

    def test_complex_numbers_and_integers(self):
        z = np.array([1 + 2j, 0.5j], np.complex64)
        check_derivatives(lambda z: lax.exp(z) * z, z, rtol=1e-6)
        n = np.array([1, 2, 3], np.int32)
        scaled = lambda x, n: [x * lax.convert_element_type(n, x.dtype), n + 1]
        check_derivatives(scaled, X, n)
        check_derivatives(lambda p: p["x"] * p["y"][0], {"x": X, "y": [X]})

    def test_wrong_derivatives_fail(self):
        with refused("^fwd: tangent of the JVP"):
            check_derivatives(wrong_forward, X)
        with refused("^rev: inner product with the VJP"):
            check_derivatives(wrong_backward(1.00001), X, modes=("rev",))
        check_derivatives(wrong_second, X)
        with refused("^fwd then fwd: tangent"):
            check_derivatives(wrong_second, X, order=2)

    def test_modes_agree_more_closely_than_with_differences(self):
        def fun(x):
            f = custom_jvp(lambda x: lax.sin(x))

            @f.defjvp
            def rule(p, t):
                return lax.sin(p[0]), wrong_transpose(lax.cos(p[0]), t[0])

            return f(x)

        check_derivatives(fun, X, modes=("fwd",))
        with refused("inner products of the JVP and of the VJP"):
            check_derivatives(fun, X, atol=1e-4)

    def test_gradients(self):
        assert_close(numerical_gradient(lambda x: x * x * x, 2.0), 12.0, rtol=1e-8)
        assert_close(numerical_gradient(lax.sin, X), np.diag(np.cos(X)), rtol=1e-7)


def wrong_transpose(c, t):
    """``c * t`` with a transpose that is wrong by a factor of 1.000001."""
    return custom_derivatives.linear_call(lambda c, t: c * t, lambda c, ct: 1.000001 * c * ct, c, t)


class TestTransformations:
    def test_batches(self):
        check_batches(lambda x, y: x * lax.sin(y), X, X)
        check_batches(lambda x: x + 1, np.float32(2))
        count = itertools.count()
        with refused("axis 0, element 0"):
            check_batches(lambda x: x + next(count), X)
        check_batches(lambda x: x + 1e-3 * next(count), X, atol=1.0)

    def test_compiled(self):
        check_compiled(lax.sin, X)
        count = itertools.count()
        with refused("Not equal"):
            check_compiled(lambda x: lax.add(x, np.float32(next(count))), X)
        dtypes = iter(["float16", "bfloat16"])
        with refused(r"^compiled bfloat16\[3\], eager float16\[3\]"):
            check_compiled(lambda x: lax.convert_element_type(x, next(dtypes)), X)


class TestCases:
    def test_calls(self):
        c = case("sum", f32(2, 3), axis=1)
        (x,) = c.draw()
        assert_close(c.on(np)(x), x.sum(1))
        assert repr(c) == "sum(f32(2, 3), axis=1)" and numbered([c, c]) == ["0-sum", "1-sum"]
        assert_close(c.set(expected=lambda x, axis: x.sum(axis) + 1).oracle()(x), x.sum(1) + 1)
        doubled = c.set(observe=lambda module, out: out * module.float32(2))
        assert_close(doubled.on(np)(x), 2 * x.sum(1))
        with pytest.raises(TypeError, match="order_of"):
            c.set(order_of=1)

    def test_drawn_values(self):
        c = case("f", [f32(2), i32(3)], 7, f32(2))
        (x, n), seven, y = c.draw()
        assert seven == 7 and (x.dtype, n.dtype) == (np.float32, np.int32)
        assert_close(c.draw(), [[x, n], seven, y], rtol=0.0)
        assert not np.array_equal(c.draw(salt=1)[2], y)
        double = c.draw(double=True)
        assert double[2].dtype == np.float64 and double[0][1].dtype == np.int32
        assert c.draw(shape=(4,))[2].shape == (4,)
        assert c.draw(np.float16)[0][1].dtype == np.float16

    def test_positions(self):
        c = case("f", [f32(2), i32(3)], 7, i32(2), Operand(np.complex64))
        assert (c.positions(), c.differentiated()) == ([0, 2, 3], [0, 3])
        assert c.set(by=(3,)).differentiated() == [3] and c.set(order=0).differentiated() == []
        assert fixing(lambda a, b, c: a - b * c, [1, 2, 3], [0, 2])(10, 4) == 2
