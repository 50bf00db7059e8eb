"""Elementwise functions against NumPy in float64, and their derivatives against differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core._base.config import enable_x64
from primax_core.lax import (
    arithmetic as ar,
    bitwise,
    broadcasting,  # noqa: F401
    comparison,
    conversion,
    exponential as ex,
    magnitude,
    permuting,  # noqa: F401
    reducing,  # noqa: F401
    rounding,
    selection,
    special,
    trigonometric as tr,
)
from primax_core.lax.accuracy import AccuracyMode, Tolerance
from primax_core.testing import numerical_jvp
from test_support import assert_close

pytestmark = pytest.mark.optimised

INSIDE = np.array([-0.9, -0.55, -0.2, 0.15, 0.4, 0.8], np.float32)
POSITIVE = np.array([0.1, 0.5, 1.0, 2.5, 7.0], np.float32)
ABOVE_ONE = POSITIVE + 1

UNARY = [
    (ex.exp, np.exp, INSIDE), (ex.exp2, np.exp2, INSIDE), (ex.expm1, np.expm1, INSIDE),
    (ex.log, np.log, POSITIVE), (ex.log2, np.log2, POSITIVE), (ex.log1p, np.log1p, POSITIVE),
    (ex.logistic, lambda x: 1 / (1 + np.exp(-x)), INSIDE), (ex.sqrt, np.sqrt, POSITIVE),
    (ex.rsqrt, lambda x: 1 / np.sqrt(x), POSITIVE), (ex.cbrt, np.cbrt, POSITIVE),
    (tr.sin, np.sin, INSIDE), (tr.cos, np.cos, INSIDE), (tr.tan, np.tan, INSIDE),
    (tr.asin, np.arcsin, INSIDE), (tr.acos, np.arccos, INSIDE), (tr.atan, np.arctan, INSIDE),
    (tr.sinh, np.sinh, INSIDE), (tr.cosh, np.cosh, INSIDE), (tr.tanh, np.tanh, INSIDE),
    (tr.asinh, np.arcsinh, INSIDE), (tr.acosh, np.arccosh, ABOVE_ONE),
    (tr.atanh, np.arctanh, INSIDE), (ar.neg, np.negative, INSIDE), (ar.square, np.square, INSIDE),
    (ar.one_minus_square, lambda x: 1 - x * x, INSIDE), (ar.reciprocal, lambda x: 1 / x, POSITIVE),
    (magnitude.abs, np.abs, INSIDE), (magnitude.sign, np.sign, INSIDE),
    (rounding.floor, np.floor, POSITIVE), (rounding.ceil, np.ceil, POSITIVE),
    (rounding.is_finite, np.isfinite, POSITIVE),
    (special.erf, np.vectorize(math.erf), INSIDE), (special.erfc, np.vectorize(math.erfc), INSIDE),
]  # fmt: skip


@pytest.mark.parametrize("fun, exact, x", UNARY, ids=[f.__name__ for f, _, _ in UNARY])
def test_values(fun, exact, x):
    np.testing.assert_allclose(fun(x), exact(x.astype(float)), rtol=2e-6)
    assert fun(x).dtype == (np.bool_ if fun is rounding.is_finite else np.float32)
    np.testing.assert_array_equal(fun(conversion.convert_element_type(x, "float32")), fun(x))


def test_erf_inv():
    np.testing.assert_allclose(special.erf(special.erf_inv(INSIDE)), INSIDE, rtol=1e-6)


SMOOTH = [c for c in UNARY if c[0] not in (rounding.is_finite,)]


def test_derivatives_against_differences():
    """First and second order, forward and reverse mode, of all functions in float64."""
    with enable_x64(True):
        xs = [np.asarray(x, np.float64) for _, _, x in SMOOTH]

        def values(xs):
            return [f(x) for (f, _, _), x in zip(SMOOTH, xs)]

        def first_derivatives(xs):
            return [px.jvp(f, (x,), (np.ones(x.shape),))[1] for (f, _, _), x in zip(SMOOTH, xs)]

        def derivative(f):
            return lambda x: px.jvp(f, (x,), (np.ones(x.shape),))[1]

        def curvatures(xs):
            return [derivative(derivative(f))(x) for (f, _, _), x in zip(SMOOTH, xs)]

        def cotangents(xs):
            return [px.vjp(f, x)[1](np.ones(x.shape))[0] for (f, _, _), x in zip(SMOOTH, xs)]

        derivatives = first_derivatives, curvatures, cotangents
        first, second, back = (px.jit(fun)(xs) for fun in derivatives)
        ones = [np.ones(x.shape) for x in xs]
        first_numeric, second_numeric = (
            numerical_jvp(px.jit(fun), (xs,), (ones,), 1e-5) for fun in (values, first_derivatives)
        )
        for i, (f, _, x) in enumerate(SMOOTH):
            # Rounding functions are discontinuous at integers.
            smooth = x != np.round(x)
            name = f.__name__
            assert_close(
                np.asarray(first[i])[smooth], first_numeric[i][smooth],
                rtol=1e-6, atol=1e-8, err_msg=name,
            )  # fmt: skip
            assert_close(back[i], first[i], rtol=1e-12, atol=0.0, err_msg=name)
            assert_close(
                np.asarray(second[i])[smooth], second_numeric[i][smooth],
                rtol=1e-5, atol=1e-7, err_msg=name,
            )  # fmt: skip


BINARY = [
    (ar.add, np.add), (ar.sub, np.subtract), (ar.mul, np.multiply), (ar.div, np.divide),
    (ar.max, np.maximum), (ar.min, np.minimum), (rounding.rem, np.fmod), (ex.pow, np.power),
    (tr.atan2, np.arctan2), (comparison.eq, np.equal), (comparison.ne, np.not_equal),
    (comparison.lt, np.less), (comparison.le, np.less_equal), (comparison.gt, np.greater),
    (comparison.ge, np.greater_equal), (rounding.nextafter, np.nextafter),
]  # fmt: skip


@pytest.mark.parametrize("fun, exact", BINARY, ids=[f.__name__ for f, _ in BINARY])
def test_two_operands(fun, exact):
    x, y = np.array(list(itertools.product(POSITIVE, POSITIVE))).T.astype("f").copy()
    np.testing.assert_allclose(fun(x, y), exact(x, y), rtol=2e-6)
    np.testing.assert_allclose(fun(x, np.float32(2)), exact(x, np.float32(2)), rtol=2e-6)
    a, b = POSITIVE[:, None], POSITIVE[None]
    np.testing.assert_allclose(fun(a, b), exact(a, b), rtol=2e-6)


def test_incompatible_shapes():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(TypeError, match=r"add got incompatible shapes .*: \(2, 3\), \(2, 4\)"):
        ar.add(x, np.ones((2, 4), np.float32))
    with pytest.raises(TypeError, match="add: arrays must have the same number of dimensions"):
        ar.add(x, np.ones(3, np.float32))
    with pytest.raises(TypeError, match=r"lax\.add requires arguments to have the same dtypes"):
        ar.add(x, 1)
    with pytest.raises(TypeError, match="sin does not accept dtype int32"):
        tr.sin(1)


def test_bits():
    x = np.array([0, 1, 5, -1, -128, 127], np.int8)
    y = np.array([3, 0, 1, 2, 7, 9], np.int8)
    for fun, exact in (
        (bitwise.bitwise_and, np.bitwise_and), (bitwise.bitwise_or, np.bitwise_or),
        (bitwise.bitwise_xor, np.bitwise_xor),
    ):  # fmt: skip
        np.testing.assert_array_equal(fun(x, y), exact(x, y))
    np.testing.assert_array_equal(bitwise.bitwise_not(x), ~x)
    assert np.asarray(bitwise.shift_left(x, y)).tolist() == [0, 1, 10, -4, 0, 0]
    assert np.asarray(bitwise.shift_right_arithmetic(x, y)).tolist() == [0, 1, 2, -1, -1, 0]
    assert np.asarray(bitwise.shift_right_logical(x, y)).tolist() == [0, 1, 2, 63, 1, 0]
    assert np.asarray(bitwise.population_count(x)).tolist() == [0, 1, 2, 8, 1, 7]
    assert np.asarray(bitwise.clz(x)).tolist() == [8, 7, 5, 0, 0, 1]
    wide = np.array([2**30, -(2**30), 3], np.int32)
    np.testing.assert_array_equal(
        bitwise.mulhi(wide, wide), (wide.astype(np.int64) ** 2 >> 32).astype(np.int32)
    )


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8])
def test_integer_division(dtype):
    info = np.iinfo(dtype)
    x = np.array([7, info.min, info.max, info.min], dtype)
    assert np.asarray(ar.div(x, np.zeros_like(x))).tolist() == [dtype(0) + ~dtype(0)] * 4
    np.testing.assert_array_equal(rounding.rem(x, np.zeros_like(x)), x)
    if info.min:
        minus = np.full_like(x, -1)
        assert int(np.asarray(ar.div(x, minus))[1]) == info.min
        assert int(np.asarray(rounding.rem(x, minus))[1]) == 0


def test_conversions_saturate():
    x = np.array([1.9, -1.9, 300, -300, 1e20, -1e20, np.inf, -np.inf, np.nan], np.float32)
    for dtype in (np.int8, np.uint8, np.int32, np.uint32):
        info = np.iinfo(dtype)
        expected = [min(max(int(v), info.min), info.max) for v in x[:6].tolist()]
        expected += [info.max, info.min, 0]
        actual = np.asarray(conversion.convert_element_type(x, dtype)).tolist()
        if info.bits == 32:  # the largest float below 2**31 is not 2**31 - 1
            assert actual == [int(np.float64(v)) for v in expected]
        assert actual == expected
    actual = conversion.convert_element_type(x, bool)
    assert np.asarray(actual).tolist() == [True] * 9
    assert int(conversion.convert_element_type(np.int32(300), np.int8)) == 44


def test_conversion_warns_about_dropped_imaginary_parts():
    z = np.complex64([1 + 2j])
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        actual = conversion.convert_element_type(z, "float32")
    assert np.asarray(actual).tolist() == [1]
    with pytest.raises(ValueError, match="dtype must be specified"):
        conversion.convert_element_type(z, None)


def test_select_and_clamp():
    x, y = np.arange(3, dtype="f"), np.arange(3, dtype="f") + 10
    which = np.array([True, False, True])
    np.testing.assert_array_equal(selection.select(which, x, y), np.where(which, x, y))
    np.testing.assert_array_equal(selection.select(True, x, y), x)
    np.testing.assert_array_equal(
        selection.select_n(np.int32([0, 1, 2]), x, y, x + 20), [0, 11, 22]
    )
    np.testing.assert_array_equal(selection.clamp(0.5, x, 1.5), [0.5, 1, 1.5])
    _, back = px.vjp(lambda a, x, b: selection.clamp(a, x, b), np.float32(0.5), x, np.float32(1.5))
    low, mid, high = back(np.ones(3, "f"))
    assert (float(low), np.asarray(mid).tolist(), float(high)) == (1, [0, 1, 0], 1)


def test_gradients_at_ties_and_singular_points():
    def derivative(fun, *args, by=0):
        args = [np.float32(a) for a in args]
        return float(px.grad(fun, by)(*args))

    assert [derivative(magnitude.abs, v) for v in (0.0, -0.0, np.nan)] == [1, 1, -1]
    assert [derivative(ar.max, 2, 2, by=i) for i in (0, 1)] == [0.5, 0.5]
    assert [derivative(ar.max, np.nan, 2, by=i) for i in (0, 1)] == [0, 0]
    assert derivative(ex.sqrt, 0) == derivative(ex.log, 0) == derivative(ex.cbrt, 0) == np.inf
    assert derivative(ex.rsqrt, 0) == derivative(tr.acos, 1) == -np.inf
    assert derivative(tr.asin, 1) == derivative(tr.acosh, 1) == derivative(tr.atanh, 1) == np.inf
    assert np.isnan(derivative(ex.pow, 0, 0)) and derivative(ex.pow, 0, 0, by=1) == 0
    assert derivative(ex.pow, 0, 1) == 1 and derivative(ex.pow, 0, 0.5) == np.inf
    assert derivative(ex.pow, -1, 2) == -2 and np.isnan(derivative(ex.pow, -1, 2, by=1))
    assert [derivative(lambda x, n=n: ar.integer_pow(x, n), 0) for n in (0, 1, 2, -1)] == [
        0,
        1,
        0,
        -np.inf,
    ]
    assert derivative(px.grad(lambda x: ar.integer_pow(x, 2)), 0) == 2
    assert np.asarray(px.grad(lambda z: magnitude.abs(z))(np.complex64(0))) == 0
    assert (
        np.asarray(px.grad(lambda z: ar.square(magnitude.abs(z)))(np.complex64(1 + 2j))) == 2 - 4j
    )
    assert np.asarray(px.grad(magnitude.imag)(np.complex64(1))) == -1j


def test_derivative_of_asinh_does_not_overflow():
    for dtype, x in (("float32", 1e30), ("float16", 30000.0), ("bfloat16", 1e30)):
        actual = px.grad(tr.asinh)(conversion.convert_element_type(x, dtype))
        np.testing.assert_allclose(np.float64(actual), 1 / x, rtol=1e-2)


def test_complex_parts():
    x, y = np.float32([1, 2]), np.float32([3, -4])
    z = x + 1j * y
    np.testing.assert_array_equal(magnitude.complex(x, y), z)
    np.testing.assert_array_equal(magnitude.real(z), x)
    np.testing.assert_array_equal(magnitude.imag(z), y)
    np.testing.assert_array_equal(magnitude.conj(z), np.conj(z))
    assert magnitude.conj(x).dtype == np.complex64
    with pytest.raises(TypeError, match="subtypes of float32, float64"):
        magnitude.complex(np.float16(1), np.float16(1))
    large = np.complex64([3e38 + 1j, 3e30 + 4e30j, 1e-30 + 1e-30j])
    np.testing.assert_allclose(magnitude.abs(large), np.abs(large.astype(complex)), rtol=1e-6)


def test_accuracy_is_part_of_the_lowering():
    x = np.float32([0.5])
    shown = str(px.make_jaxpr(lambda x: ex.exp(x, accuracy=AccuracyMode.HIGHEST))(x))
    assert "exp[accuracy=AccuracyMode.HIGHEST]" in shown
    assert "accuracy" not in str(px.make_jaxpr(ex.exp)(x))
    for accuracy in (AccuracyMode.HIGHEST, AccuracyMode.DEFAULT, Tolerance(ulps=2)):
        np.testing.assert_allclose(ex.exp(x, accuracy=accuracy), np.exp(x), rtol=1e-6)
        np.testing.assert_allclose(ex.logistic(x, accuracy=accuracy), ex.logistic(x), rtol=1e-6)
    assert Tolerance(ulps=2) == Tolerance(ulps=2) != Tolerance(ulps=3)
    with pytest.raises(ValueError, match="non-negative"):
        Tolerance(atol=-1.0)
    with pytest.raises(ValueError, match="At least one"):
        Tolerance()
    with pytest.raises(TypeError, match="accuracy must be"):
        ex.exp(x, accuracy=3)


def test_the_fast_path_returns_what_the_first_call_returned():
    x = conversion.convert_element_type(np.float32([0.5, 2]), "float32")
    first, second = ar.add(x, x), ar.add(x, x)
    np.testing.assert_array_equal(first, second)
    assert ar.add(x, y=x).dtype == np.float32
    weak = conversion.convert(x, np.dtype("float32"), True)
    assert ar.neg(weak).weak_type and ar.neg(weak).weak_type and not ar.neg(x).weak_type
    gone = ar.add(x, x)
    gone.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        ar.add(gone, x)


@pytest.mark.parametrize(
    "fun, name, similar",
    [
        (lax.max, "max", "maximum"),
        (lax.sub, "sub", "subtract"),
        (lax.lt, "lt", "less"),
        (lax.igamma, "igamma", None),
    ],
)
def test_mixed_dtypes_are_refused_with_a_valid_hint(fun, name, similar):
    with pytest.raises(TypeError, match=f"lax.{name} requires arguments to have the same") as e:
        fun(np.ones(2, np.float32), np.ones(2, np.float16))
    assert ("Tip" in str(e.value)) == (similar is not None)
    assert similar is None or f"primax.numpy.{similar} is a similar" in str(e.value)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_high_halves_of_products(dtype):
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    x, y = (rng.integers(info.min, info.max, 200, dtype, endpoint=True) for _ in range(2))
    x[:4], y[:4] = (
        (info.min, info.min, info.max, info.max),
        (info.min, info.max, info.min, info.max),
    )
    with enable_x64(True):
        actual = lax.mulhi(x, y)
    expected = [int(a) * int(b) >> info.bits for a, b in zip(x, y)]
    assert np.asarray(actual).tolist() == expected and actual.dtype == dtype
