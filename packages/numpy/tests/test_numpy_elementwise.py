"""Elementwise functions: errors, promotion and rank options, properties against NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import primax_numpy as pnp
from primax_core import grad, jit, make_jaxpr, numpy_dtype_promotion, numpy_rank_promotion, vmap
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import register_value_type, typeof

rng = np.random.default_rng(0)
UNARY = (
    "abs absolute acos acosh angle around asin asinh atan atanh bitwise_count bitwise_invert "
    "bitwise_not cbrt ceil conj cos cosh deg2rad degrees exp exp2 expm1 fabs floor frexp i0 imag "
    "invert iscomplex isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 "
    "logical_not modf nan_to_num negative positive rad2deg radians real reciprocal rint round sign "
    "signbit sin sinc sinh spacing sqrt square tan tanh trunc packbits unpackbits unwrap"
).split()
BINARY = (
    "add allclose arctan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift "
    "bitwise_xor copysign divide divmod equal float_power floor_divide fmax fmin fmod gcd greater "
    "greater_equal heaviside hypot isclose lcm ldexp left_shift less less_equal logaddexp "
    "logaddexp2 logical_and logical_or logical_xor maximum minimum mod multiply nextafter "
    "not_equal pow power remainder right_shift subtract true_divide"
).split()


PROPER = {
    "absolute": "abs", "around": "round", "bitwise_not": "invert", "bitwise_invert": "invert",
    "radians": "deg2rad", "degrees": "rad2deg",
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_reject_other_arguments(name: str) -> None:
    fun = getattr(pnp, name)
    name = PROPER.get(name, name)
    for bad in ([1], None, "one", (1.0,), {}):
        with pytest.raises(TypeError, match=f"{name} requires .* got .* at position 0"):
            fun(bad)
    with pytest.raises(TypeError, match=f"{name}|argument"):
        fun()


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_reject_other_arguments(name: str) -> None:
    fun = getattr(pnp, name)
    one = np.ones(2, np.int32)
    for place, args in enumerate([([1], one), (one, [1])]):
        with pytest.raises(TypeError, match=f"requires .* <class 'list'> at position {place}"):
            fun(*args)
        with pytest.raises(TypeError, match=f"requires .* <class 'list'> at position {place}"):
            fun(*[pnp.asarray(a) if a is one else a for a in args])
    with pytest.raises((TypeError, ValueError), match=r"incompatible shapes|Incompatible shapes"):
        fun(np.ones(3, np.int32), np.ones(2, np.int32))
    with pytest.raises(ValueError, match=r"shapes=\[\(2, 3\), \(2,\)\]"):
        fun(np.ones((2, 3), np.int32), np.ones(2, np.int32))


def test_shapes_in_messages() -> None:
    with pytest.raises(
        TypeError, match=r"add got incompatible shapes for broadcasting: \(3,\), \(2,\)"
    ):
        pnp.add(np.ones(3), np.ones(2))


REFUSED = [
    (lambda: pnp.cbrt(1j), TypeError, "cbrt"),
    (lambda: pnp.fabs(1j), TypeError, "fabs"),
    (lambda: pnp.floor(1j), TypeError, "floor"),
    (lambda: pnp.frexp(1j), TypeError, "frexp"),
    (lambda: pnp.copysign(1j, 1.0), TypeError, "copysign"),
    (lambda: pnp.hypot(1j, 1.0), ValueError, "hypot"),
    (lambda: pnp.i0(1j), ValueError, "i0"),
    (lambda: pnp.signbit(1j), ValueError, "signbit"),
    (lambda: pnp.spacing(1j), ValueError, "spacing"),
    (lambda: pnp.isposinf(1j), ValueError, "isposinf"),
    (lambda: pnp.unwrap(np.ones(2, np.complex64)), ValueError, "unwrap"),
    (lambda: pnp.unwrap(1.0), ValueError, "unwrap"),
    (lambda: pnp.floor_divide(1j, 1j), TypeError, "floor_divide"),
    (lambda: pnp.gcd(1.0, 2), ValueError, "Arguments to gcd must be integers, got float32"),
    (lambda: pnp.lcm(True, False), ValueError, "Arguments to lcm must be integers, got bool"),
    (lambda: pnp.ldexp(1.0, 2.0), ValueError, "ldexp not supported for input types float32"),
    (lambda: pnp.bitwise_count(1.0), TypeError, "bitwise_count"),
    (lambda: pnp.invert(1.0), TypeError, "float32"),
    (lambda: pnp.sign(True), TypeError, "sign does not accept dtype bool"),
    (lambda: pnp.negative(True), TypeError, "neg does not accept dtype bool"),
    (lambda: pnp.round(True), ValueError, "round does not support booleans"),
    (lambda: pnp.round(7, -1), NotImplementedError, "integers to negative decimals"),
    (lambda: pnp.round(7.0, 1.5), TypeError, "integer"),
    (lambda: pnp.round(7.0, out=1), NotImplementedError, "'out' argument of primax.numpy.round"),
    (lambda: pnp.modf(7.0, out=1), NotImplementedError, "'out' argument of primax.numpy.modf"),
    (
        lambda: pnp.isneginf(7.0, out=1),
        NotImplementedError,
        "'out' argument of primax.numpy.isneginf",
    ),
    (lambda: pnp.power(2, -1), TypeError, "negative powers"),
    (lambda: pnp.clip(), ValueError, "No input was provided"),
    (lambda: pnp.clip(1j, 0, 1), ValueError, "Complex values have no ordering"),
    (lambda: pnp.clip([1], 0, 1), TypeError, "clip requires"),
    (lambda: pnp.where(True, 1), TypeError, "where requires .* at position 2"),
    (lambda: pnp.where(True, 1, 2, size=3), ValueError, "size and fill_value"),
    (lambda: pnp.select([], []), ValueError, "non-empty"),
    (lambda: pnp.select([True], [1, 2]), ValueError, r"\(1 vs 2\)"),
    (lambda: pnp.packbits(1.0), TypeError, "packbits: .* got float32"),
    (lambda: pnp.packbits(1, bitorder="middle"), ValueError, "'little' or 'big', got 'middle'"),
    (lambda: pnp.packbits(np.ones(3, int), axis=1), ValueError, "axis 1 is out of bounds"),
    (lambda: pnp.unpackbits(1), TypeError, "unpackbits: .* got int32"),
    (lambda: pnp.unpackbits(np.ones(1, np.uint8), count=-9), ValueError, "count=-9"),
    (lambda: pnp.broadcast_shapes((2,), (3,)), ValueError, r"shapes=\[\(2,\), \(3,\)\]"),
    (lambda: pnp.nan_to_num(1.0, nan=[1]), TypeError, "nan_to_num"),
    (lambda: pnp.isclose(1.0, 1.0, rtol=[1]), TypeError, "isclose .* position 2"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED, ids=[t for *_, t in REFUSED])
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_indices_need_a_size_when_traced() -> None:
    with pytest.raises(ConcretizationTypeError, match="size"):
        jit(pnp.where)(np.ones(2))
    actual = jit(lambda x: pnp.where(x, size=3, fill_value=7))(np.array([0, 1]))
    assert [f.tolist() for f in actual] == [[1, 7, 7]]


def test_strict_promotion() -> None:
    x = np.ones(2, np.float32)
    with numpy_dtype_promotion("strict"):
        for fun in (pnp.add, pnp.maximum, pnp.arctan2, pnp.fmax, pnp.isclose, pnp.logaddexp):
            with pytest.raises(ValueError, match="no available implicit dtype promotion path"):
                fun(x, np.ones(2, np.int32))
            assert fun(x, 2.0).shape == (2,)
        names = (
            "sinc hypot sin nan_to_num round sign deg2rad log10 logaddexp2 heaviside copysign modf "
            "frexp remainder"
        )
        for name in names.split():
            fun = getattr(pnp, name)
            fun(x, x) if name in BINARY else fun(x)
        pnp.ldexp(x, np.ones(2, np.int32))
        pnp.clip(x, 0.0, 1.0)
        pnp.gcd(np.arange(3), np.arange(3))


def test_rank_promotion() -> None:
    x, y = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    with numpy_rank_promotion("raise"):
        for name in ("add", "maximum", "hypot", "logaddexp", "arctan2", "less", "isclose"):
            with pytest.raises(ValueError, match=r"\(2, 3\) \(3,\).*numpy_rank_promotion"):
                getattr(pnp, name)(x, y)
        assert pnp.add(x, 1.0).shape == (2, 3)
    with numpy_rank_promotion("warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pnp.multiply(x[:, :2], y[:2])
    assert "rank promotion for multiply" in str(caught[0].message)


def test_operations_are_inlined_into_traces() -> None:
    text = str(make_jaxpr(lambda x: pnp.sin(x) + pnp.abs(x))(1.0))
    assert "sin" in text and "abs" in text and "jit" not in text


def test_arrays_that_need_no_change_are_returned() -> None:
    x = pnp.arange(3)
    assert pnp.clip(x) is x and pnp.round(x, 2) is x


# Python values


def test_predicates_of_python_values() -> None:
    assert [pnp.isscalar(v) for v in (1, "a", 1j, np.float32(1), pnp.asarray(1))] == [True] * 5
    assert not any(pnp.isscalar(v) for v in ([1], None, np.ones(1), pnp.ones(1)))
    assert pnp.iterable([1]) and pnp.iterable(pnp.ones(2))
    assert not pnp.iterable(1) and not pnp.iterable(pnp.asarray(1))
    assert pnp.iscomplexobj([1, 1j]) and not pnp.iscomplexobj(None)
    assert pnp.isrealobj(pnp.ones(2)) and not pnp.isrealobj(np.complex64(1))
    assert type(pnp.iscomplexobj(1j)) is bool


def test_values_of_registered_classes() -> None:
    class Samples:
        elements = np.array([0.5, 1.5], np.float32)

    register_value_type(Samples, lambda x: typeof(x.elements), lambda x: x.elements)
    assert np.allclose(pnp.sin(Samples()), np.sin(Samples.elements))
    assert pnp.add(Samples(), 1).tolist() == [1.5, 2.5]


def test_shapes_that_broadcast() -> None:
    assert pnp.broadcast_shapes() == ()
    assert pnp.broadcast_shapes((2, 1), 3, ()) == (2, 3)
    assert pnp.broadcast_shapes((0, 1), (1, 5)) == (0, 5)


def test_equality_of_other_objects() -> None:
    assert pnp.array_equal([1, 2], np.array([1, 2])) and not pnp.array_equal([1], [1, 2])
    assert pnp.array_equiv([1], [[1, 1]]) and not pnp.array_equiv([1, 2], [1, 2, 3])
    assert pnp.array_equal([1.0, np.nan], [1.0, np.nan], equal_nan=True)
    assert pnp.array_equal([], []) and pnp.allclose(np.zeros((0, 2)), 1.0)


def test_constants() -> None:
    assert (pnp.pi, pnp.e, pnp.inf) == (np.pi, np.e, np.inf)
    assert pnp.euler_gamma == np.euler_gamma and pnp.newaxis is None and pnp.nan != pnp.nan


# Properties

shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
dtypes = st.sampled_from(["bool", "int8", "uint8", "int32", "float16", "float32", "complex64"])


@given(shapes, dtypes, st.sampled_from(["add", "multiply", "maximum", "equal", "logical_xor"]))
@settings(max_examples=40)
def test_broadcasting(shape: tuple[int, ...], dtype: str, name: str) -> None:
    x = rng.integers(0, 3, shape).astype(dtype)
    y = rng.integers(0, 3, shape[1:]).astype(dtype)
    actual, expected = getattr(pnp, name)(x, y), getattr(np, name)(x, y)
    np.testing.assert_array_equal(actual, expected)
    assert actual.dtype == expected.dtype


@given(st.integers(-60000, 60000), st.integers(-60000, 60000))
@settings(max_examples=50)
def test_division_of_integers(a: int, b: int) -> None:
    x, y = np.int32(a), np.int32(b)
    assert int(pnp.gcd(x, y)) == np.gcd(x, y) and int(pnp.lcm(x, y)) == np.lcm(x, y)
    if b:
        quotient, left = pnp.divmod(x, y)
        assert (int(quotient), int(left)) == divmod(a, b)
        assert int(pnp.fmod(x, y)) == np.fmod(x, y)


@given(st.floats(width=32), st.floats(width=32, allow_subnormal=False))
@settings(max_examples=100)
def test_parts_of_floats(a: float, b: float) -> None:
    x, y = np.float32(a), np.float32(b)
    assert bool(pnp.signbit(x)) == np.signbit(x)
    np.testing.assert_array_equal(pnp.copysign(x, y), np.copysign(x, y))
    if abs(y) > 1e-37 or y == 0:
        for actual, expected in zip(pnp.frexp(y), np.frexp(y), strict=True):
            np.testing.assert_array_equal(actual, expected)
        for actual, expected in zip(pnp.modf(y), np.modf(y), strict=True):
            np.testing.assert_array_equal(actual, expected)
            assert np.signbit(actual) == np.signbit(expected)


@given(st.floats(-1e4, 1e4, width=32), st.floats(-1e4, 1e4, width=32, allow_subnormal=False))
@settings(max_examples=100)
def test_remainders_of_floats(a: float, b: float) -> None:
    x, y = np.float32(a), np.float32(b)
    if abs(a) < 1e-30 or abs(b) < 1e-30:
        return
    np.testing.assert_array_equal(pnp.remainder(x, y), np.remainder(x, y))
    np.testing.assert_array_equal(pnp.floor_divide(x, y), np.floor_divide(x, y))
    np.testing.assert_array_equal(pnp.fmod(x, y), np.fmod(x, y))


@given(st.lists(st.booleans(), max_size=40), st.sampled_from(["big", "little"]))
@settings(max_examples=40)
def test_packing_and_unpacking(bits: list[bool], order: str) -> None:
    x = np.array(bits, np.bool_)
    packed = pnp.packbits(x, bitorder=order)
    np.testing.assert_array_equal(packed, np.packbits(x, bitorder=order))
    np.testing.assert_array_equal(pnp.unpackbits(packed, count=x.size, bitorder=order), x)


# Derivatives at special points


def test_derivatives_at_special_points() -> None:
    assert float(grad(grad(pnp.sinc))(0.0)) == pytest.approx(-(np.pi**2) / 3)
    assert np.isnan(float(grad(pnp.hypot)(0.0, 0.0)))
    assert float(grad(pnp.abs)(0.0)) == 1.0
    assert float(grad(grad(pnp.i0))(0.0)) == pytest.approx(0.5)
    assert [float(g) for g in grad(pnp.maximum, (0, 1))(2.0, 2.0)] == [0.5, 0.5]
    assert [float(g) for g in grad(pnp.fmax, (0, 1))(2.0, 2.0)] == [0.0, 1.0]
    assert [float(g) for g in grad(pnp.fmax, (0, 1))(np.nan, 2.0)] == [0.0, 1.0]
    assert [float(g) for g in grad(pnp.remainder, (0, 1))(-0.0, 2.0)] == [1.0, 0.0]
    assert [float(g) for g in grad(pnp.logaddexp, (0, 1))(3.0, 3.0)] == [0.5, 0.5]
    for x in (-2.0, -0.0, 0.0, 1.5):
        assert float(grad(lambda v: pnp.modf(v)[0])(x)) == 1.0
    assert float(grad(pnp.where, 1)(True, 1.0, 2.0)) == 1.0
    assert float(grad(pnp.clip)(3.0, 0.0, 1.0)) == 0.0


def test_mapped_loops_of_divisors() -> None:
    x = np.array([[12, 18], [0, 35]])
    actual = vmap(pnp.gcd)(x, np.array([8, 21]))
    np.testing.assert_array_equal(actual, np.gcd(x, np.array([[8], [21]])))


@pytest.mark.parametrize("scale", [1.0, 1e36, 1e-33])
def test_hypot_within_one_unit(scale) -> None:
    a = np.abs(rng.standard_cauchy(5000)).clip(1e-3, 100).astype(np.float32) * np.float32(scale)
    expected = np.hypot(a.astype(np.float64), a[::-1].astype(np.float64))
    error = np.abs(np.asarray(pnp.hypot(a, a[::-1]), np.float64) - expected)
    assert np.max(error / np.spacing(expected.astype(np.float32))) < 1.2
