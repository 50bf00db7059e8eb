"""Functions of the NumPy API against NumPy: values, dtypes, derivatives, compiled and mapped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primax_numpy as pnp
from primax_core import Array, jit, make_jaxpr, vmap
from test_support import assert_close, check_batches, check_compiled, check_derivatives

rng = np.random.default_rng(0)


def values(dtype: Any, *shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Random values of a dtype; integral for integers."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -3, 4, shape).astype(dtype)
    real = rng.uniform(low, high, shape)
    if dtype.kind == "c":
        return (real + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return real.astype(dtype)


# Elementwise

FLOAT_FUNCTIONS = [
    ("exp", -2, 2),
    ("expm1", -2, 2),
    ("log", 0.1, 3),
    ("log1p", -0.5, 3),
    ("sin", -4, 4),
    ("cos", -4, 4),
    ("tan", -1, 1),
    ("tanh", -2, 2),
    ("sqrt", 0.1, 4),
]


@pytest.mark.parametrize(("name", "low", "high"), FLOAT_FUNCTIONS)
def test_functions_of_floats(name: str, low: float, high: float) -> None:
    ours, theirs = getattr(pnp, name), getattr(np, name)
    for dtype in (np.float32, np.float16, np.complex64):
        x = values(dtype, 2, 3, low=low, high=high)
        actual = ours(x)
        assert actual.dtype == dtype
        assert_close(actual, theirs(x))
    for dtype in (np.int32, np.uint8, np.bool_):
        x = np.array([1, 0, 1] if dtype == np.bool_ else [1, 2, 3], dtype)
        if name == "log":
            x = np.ones_like(x)
        assert ours(x).dtype == np.float32
        assert_close(ours(x), theirs(x.astype(np.float32)))
    x = values(np.float32, 3, low=low, high=high)
    check_compiled(ours, x)
    check_batches(ours, x)
    check_derivatives(ours, x)
    assert ours(0.5).weak_type and not ours(np.float32(0.5)).weak_type


BINARY = [
    "add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "equal", "greater",
    "less",
]  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name: str) -> None:
    ours, theirs = getattr(pnp, name), getattr(np, name)
    x, y = values(np.float32, 2, 3, low=0.5), values(np.float32, 3)
    assert_close(ours(x, y), theirs(x, y))
    assert_close(ours(x, 2), theirs(x, np.float32(2)))
    assert_close(ours(2.0, 3.0), theirs(2.0, 3.0))
    assert ours(x, 2).dtype == theirs(x, np.float32(2)).dtype
    check_compiled(ours, x, y)
    check_batches(ours, x, y)
    if name not in ("equal", "greater", "less"):
        check_derivatives(ours, x, y)
    for pair in [(np.int32, np.int32), (np.int8, np.int32), (np.int32, np.float32)]:
        a, b = values(pair[0], 4), np.array([1, 2, 1, 3], pair[1])
        promoted = np.float32 if np.float32 in pair else None
        expected = theirs(a.astype(promoted or a.dtype), b.astype(promoted or b.dtype))
        if name == "divide" and promoted is None:
            expected = expected.astype(np.float32)
        assert ours(a, b).dtype == expected.dtype
        assert_close(ours(a, b), expected)


def test_unary_functions_that_keep_the_dtype() -> None:
    for name in ("negative", "abs", "square"):
        ours, theirs = getattr(pnp, name), getattr(np, name)
        for dtype in (np.float32, np.int32, np.complex64):
            x = values(dtype, 3)
            assert ours(x).dtype == theirs(x).dtype
            assert_close(ours(x), theirs(x))
        x = values(np.float32, 2, 3)
        check_compiled(ours, x)
        check_batches(ours, x)
        check_derivatives(ours, x)


def test_infinities_and_nans() -> None:
    x = np.array([1.0, np.nan, -np.inf, np.inf], np.float32)
    np.testing.assert_array_equal(pnp.isnan(x), np.isnan(x))
    np.testing.assert_array_equal(pnp.isfinite(x), np.isfinite(x))
    np.testing.assert_array_equal(pnp.isfinite(np.arange(3)), [True] * 3)
    np.testing.assert_array_equal(pnp.maximum(x, 2.0), np.maximum(x, 2.0))
    np.testing.assert_array_equal(pnp.isnan(np.arange(3)), [False] * 3)


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (None, 0.5), (-0.5, None), (1, -1)])
def test_clip(low: float | None, high: float | None) -> None:
    x = values(np.float32, 5)
    assert_close(pnp.clip(x, low, high), np.clip(x, low, high))
    check_compiled(lambda x: pnp.clip(x, low, high), x)
    assert pnp.clip(np.arange(5), 1, 3).dtype == np.int32


def test_clip_without_bounds_returns_the_array() -> None:
    np.testing.assert_array_equal(pnp.clip(np.arange(3)), np.arange(3))


def test_where() -> None:
    condition = values(np.bool_, 2, 1)
    x, y = values(np.float32, 3), values(np.float32, 2, 3)
    assert_close(pnp.where(condition, x, y), np.where(condition, x, y))
    assert_close(pnp.where(True, x, 0.0), x)
    assert_close(pnp.where(np.array([0, 2, 0]), x, y), np.where([False, True, False], x, y))
    assert pnp.where(condition, 1, 2.0).dtype == np.float32
    assert pnp.where(condition, 1, 2).weak_type
    check_compiled(pnp.where, condition, x, y)
    check_batches(lambda y, c: pnp.where(c, 1.0, y), y, condition)
    check_derivatives(lambda x, y: pnp.where(condition, x * x, y), x, y)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pnp.sin([1.0]),
        lambda: pnp.add([1.0], 2.0),
        lambda: pnp.where([True], 1.0, 2.0),
        lambda: pnp.maximum("a", 1.0),
        lambda: pnp.sum((1.0, 2.0)),
        lambda: pnp.reshape([1.0], (1, 1)),
        lambda: pnp.exp(None),
        lambda: pnp.clip([1.0], 0.0),
    ],
)
def test_sequences_and_other_values_raise_errors(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError):
        call()


def test_errors_name_function_and_position() -> None:
    with pytest.raises(TypeError, match=r"maximum requires ndarray or scalar .* at position 1"):
        pnp.maximum(1.0, [2.0])


# Reductions


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "all", "any"])
def test_reductions(name: str, axis: Any) -> None:
    ours, theirs = getattr(pnp, name), getattr(np, name)
    x = values(np.float32, 2, 3, 4)
    assert_close(ours(x, axis), theirs(x, axis))
    if axis == -1:
        assert_close(ours(x, axis, keepdims=True), theirs(x, axis, keepdims=True))
        check_compiled(lambda x: ours(x, axis), x)
        check_batches(lambda x: ours(x, axis), x)
        if name not in ("all", "any"):
            check_derivatives(lambda x: ours(x, axis), x)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int32, np.float16, np.complex64])
def test_dtypes_of_reductions(dtype: Any) -> None:
    x = values(dtype, 7)
    kind = np.dtype(dtype).kind
    total = {"b": np.int32, "i": np.int32, "u": np.uint32}.get(kind, dtype)
    mean = np.float32 if kind in "biu" else dtype
    assert pnp.sum(x).dtype == pnp.prod(x).dtype == total
    assert pnp.mean(x).dtype == mean
    assert pnp.var(x).dtype == (np.float32 if kind == "c" else mean)
    assert_close(pnp.sum(x), np.sum(x.astype(total)))
    assert_close(pnp.mean(x), np.mean(x.astype(mean)))
    assert pnp.argmax(x.real).dtype == np.int32
    if kind != "c":
        assert pnp.max(x).dtype == dtype


def test_options_of_reductions() -> None:
    x = values(np.float32, 2, 3)
    mask = values(np.bool_, 3)
    assert_close(pnp.sum(x, 1, where=mask), np.sum(x, 1, where=mask))
    assert_close(pnp.sum(x, initial=2.0), np.sum(x, initial=2.0))
    assert_close(pnp.max(x, 0, initial=0.5, where=mask), np.max(x, 0, initial=0.5, where=mask))
    assert_close(pnp.mean(x, where=x > -1.5), np.mean(x, where=x > -1.5))
    assert_close(pnp.var(x, 1, ddof=1), np.var(x, 1, ddof=1))
    assert pnp.sum(np.int8([100, 100]), dtype=np.int8) == np.int8(-56)
    assert pnp.sum(np.int8([1]), promote_integers=False).dtype == np.int8
    assert pnp.mean(np.full(70000, 1, np.float16)) == 1
    assert not pnp.sum(2.0).weak_type


def test_indices_of_extremes() -> None:
    x = np.array([[1.0, 3.0, 3.0], [np.nan, 5.0, np.nan]], np.float32)
    for name in ("argmax", "argmin"):
        ours, theirs = getattr(pnp, name), getattr(np, name)
        for axis in (None, 0, 1, -1):
            np.testing.assert_array_equal(ours(x, axis), theirs(x, axis))
        np.testing.assert_array_equal(ours(x, 1, keepdims=True), theirs(x, 1, keepdims=True))
        check_batches(lambda x, ours=ours: ours(x, 0), values(np.float32, 3, 2))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: pnp.sum(x, 2), ValueError, "axis 2 is out of bounds for array of dimension 2"),
        (lambda x: pnp.sum(x, (0, 0)), ValueError, "duplicate value in 'axis'"),
        (lambda x: pnp.sum(x, 0.5), TypeError, "cannot be interpreted as an integer"),
        (lambda x: pnp.max(x[:0]), ValueError, "zero-size array to reduction operation max"),
        (lambda x: pnp.max(x, where=x > 0), ValueError, "specify 'initial'"),
        (lambda x: pnp.argmin(x[:0]), ValueError, "argmin of an empty sequence"),
        (lambda x: pnp.argmax(x, 5), ValueError, "axis 5 is out of bounds"),
        (lambda x: pnp.sum(x, out=x), NotImplementedError, "'out' argument"),
    ],
)
def test_errors_of_reductions(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(pnp.ones((2, 3)))


# Shapes


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(6, 4), (-1,), (2, -1, 2), 24, (24, 1), (2, 3, 4)])
def test_reshape(shape: Any, order: str) -> None:
    x = values(np.float32, 2, 3, 4)
    expected = np.reshape(x, shape, order=order)  # type: ignore[call-overload]
    np.testing.assert_array_equal(pnp.reshape(x, shape, order), expected)
    np.testing.assert_array_equal(pnp.asarray(x).reshape(shape, order=order), expected)


def test_second_reshape_uses_the_fast_path_by_type() -> None:
    x = pnp.arange(6)
    assert pnp.reshape(x, (2, 3)).shape == pnp.reshape(x, (2, 3)).shape == (2, 3)
    with pytest.raises(TypeError):
        pnp.reshape(x, (2.0, 3))
    with pytest.raises(TypeError, match="not divisible by 4"):
        pnp.reshape(x, (4, -1))
    with pytest.raises(ValueError, match="one unknown dimension"):
        pnp.reshape(x, (-1, -1))
    with pytest.raises(TypeError, match="reshape"):
        pnp.reshape(x, (2, 2))


SHAPES: list[tuple[str, tuple[Any, ...]]] = [
    ("transpose", ()),
    ("transpose", ((1, 2, 0),)),
    ("transpose", ((-1, 0, 1),)),
    ("moveaxis", (0, -1)),
    ("moveaxis", ((0, 1), (2, 0))),
    ("swapaxes", (0, -1)),
    ("expand_dims", (1,)),
    ("expand_dims", ((0, -1),)),
    ("ravel", ()),
    ("broadcast_to", ((5, 2, 3, 4),)),
]


@pytest.mark.parametrize(("name", "args"), SHAPES)
def test_shapes(name: str, args: tuple[Any, ...]) -> None:
    ours, theirs = getattr(pnp, name), getattr(np, name)
    x = values(np.float32, 2, 3, 4)
    np.testing.assert_array_equal(ours(x, *args), theirs(x, *args))
    check_compiled(lambda x: ours(x, *args), x)
    check_batches(lambda x: ours(x, *args), x)
    check_derivatives(lambda x: ours(x, *args), x)


def test_squeeze() -> None:
    x = values(np.float32, 1, 3, 1)
    for axis in (None, 0, -1, (0, 2)):
        np.testing.assert_array_equal(pnp.squeeze(x, axis), np.squeeze(x, axis))
    with pytest.raises(ValueError, match="size"):
        pnp.squeeze(x, 1)


def test_joining() -> None:
    x, y = values(np.float32, 2, 3), values(np.float32, 2, 3)
    for _ in range(2):  # the second time on the fast path
        for axis in (0, 1, -1):
            both = [pnp.asarray(x), pnp.asarray(y)]
            np.testing.assert_array_equal(pnp.concatenate(both, axis), np.concatenate([x, y], axis))
            np.testing.assert_array_equal(pnp.stack(both, axis), np.stack([x, y], axis))
    np.testing.assert_array_equal(pnp.concatenate([x, y], None), np.concatenate([x, y], None))
    np.testing.assert_array_equal(pnp.stack([1, 2.5, True]), np.stack([1, 2.5, 1]))
    np.testing.assert_array_equal(pnp.concatenate(pnp.asarray(x)), np.concatenate(x))
    mixed = pnp.concatenate([np.int32([1]), np.float32([2.5])])
    assert mixed.dtype == np.float32 and mixed.tolist() == [1.0, 2.5]
    assert pnp.concatenate([np.int32([1]), np.int8([2])], dtype=np.int16).dtype == np.int16
    check_compiled(lambda *xs: pnp.stack(xs, -1), x, y)
    check_batches(lambda x, y: pnp.concatenate([x, y], 1), x, y)
    check_derivatives(lambda x, y: pnp.stack([x, y, x], 1), x, y)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: pnp.concatenate([]), ValueError, "at least one array"),
        (lambda: pnp.stack([]), ValueError, "at least one array"),
        (lambda: pnp.concatenate([1.0, 2.0]), ValueError, "Zero-dimensional"),
        (lambda: pnp.concatenate([np.zeros(2)], 1), ValueError, "axis 1 is out of bounds"),
        (lambda: pnp.stack([np.zeros(2), np.zeros(3)]), ValueError, "same shape"),
        (lambda: pnp.concatenate([np.zeros((2, 1)), np.zeros((2, 2))]), TypeError, "concatenate"),
        (lambda: pnp.concatenate([[1.0], [2.0]]), TypeError, "concatenate requires ndarray"),
        (lambda: pnp.broadcast_to(np.zeros(3), (2,)), ValueError, "Incompatible shapes"),
        (lambda: pnp.transpose(np.zeros(3), (1,)), ValueError, "axis 1 is out of bounds"),
        (lambda: pnp.moveaxis(np.zeros((2, 2)), 0, (0, 1)), ValueError, "number of elements"),
    ],
)
def test_errors_of_shapes(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


# Products


PRODUCTS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((5, 1, 2, 3), (4, 3, 2)),
]


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = values(np.float32, *left), values(np.float32, *right)
    assert_close(pnp.matmul(a, b), np.matmul(a, b))
    assert_close(pnp.asarray(a) @ b, a @ b)
    assert_close(a @ pnp.asarray(b), a @ b)
    check_derivatives(pnp.matmul, a, b)
    check_batches(pnp.matmul, a, b)


def test_other_products() -> None:
    a, b = values(np.float32, 2, 3), values(np.float32, 4, 3, 2)
    assert_close(pnp.dot(a, b), np.dot(a, b))
    assert_close(pnp.dot(a, 2.0), a * 2)
    assert_close(pnp.outer(a, b), np.outer(a, b))
    assert pnp.matmul(a, np.ones(3, np.int32)).dtype == np.float32
    with pytest.raises(TypeError, match="incompatible shapes for contraction"):
        pnp.matmul(a, a)
    with pytest.raises(ValueError, match="operand 1 must have ndim at least 1"):
        pnp.matmul(a, 1.0)


# Creation


def test_filled_arrays() -> None:
    for name in ("zeros", "ones"):
        ours, theirs = getattr(pnp, name), getattr(np, name)
        assert ours((2, 3)).dtype == np.float32
        np.testing.assert_array_equal(ours((2, 3), int), theirs((2, 3), np.int32))
        np.testing.assert_array_equal(ours(3), theirs(3))
        like = getattr(pnp, f"{name}_like")(np.zeros((2, 1), np.int8))
        assert like.dtype == np.int8 and like.shape == (2, 1)
    assert pnp.full((2,), 3).weak_type and pnp.full(2, 1.5, np.float16).dtype == np.float16
    np.testing.assert_array_equal(pnp.full((2, 3), np.arange(3)), np.full((2, 3), np.arange(3)))
    np.testing.assert_array_equal(pnp.full_like(np.int32([1, 2]), 2.7), [2, 2])
    spread = pnp.full_like(2, np.int8([[3]]), shape=(2, 2))
    assert spread.dtype == np.int32 and spread.tolist() == [[3, 3], [3, 3]]
    for sizes, k in [((3,), 0), ((2, 3), 0), ((3, 2), 1), ((3,), -1)]:
        np.testing.assert_array_equal(pnp.eye(*sizes, k=k), np.eye(*sizes, k=k))


@pytest.mark.parametrize(
    "args", [(3,), (1, 4), (0, 10, 3), (10, 0, -3), (0.5,), (0, 1, 0.25), (4, 1), (-3,)]
)
def test_arange(args: tuple[Any, ...]) -> None:
    expected = np.arange(*args)
    actual = pnp.arange(*args)
    assert actual.dtype == (np.int32 if expected.dtype.kind == "i" else np.float32)
    assert_close(actual, expected)
    assert pnp.arange(3, dtype=np.float16).dtype == np.float16


def test_arange_errors() -> None:
    with pytest.raises(ZeroDivisionError):
        pnp.arange(0, 3, 0)
    with pytest.raises(TypeError, match="concrete"):
        make_jaxpr(pnp.arange)(3)


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ((0, 1, 5), {}),
        ((0.0, 1.0), {}),
        ((-3.3, 9.7, 11), {"endpoint": False}),
        ((1.0, 2.0, 1), {}),
        ((1.0, 2.0, 0), {}),
        ((0, 10, 4), {"dtype": np.int32}),
        ((np.zeros(3), np.arange(3.0), 4), {"axis": 1}),
    ],
)
def test_linspace(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    assert_close(pnp.linspace(*args, **options), np.linspace(*args, **options))
    numbers, step = pnp.linspace(*args, **options, retstep=True)
    expected = np.linspace(*args, **options, retstep=True)[1]
    assert numbers.shape == np.linspace(*args, **options).shape
    assert_close(step, expected)


def test_arrays_from_values() -> None:
    cases: list[tuple[Any, Any, bool]] = [
        (1, np.int32, True),
        (True, np.bool_, False),
        (1.5, np.float32, True),
        (1j, np.complex64, True),
        ([1, 2], np.int32, False),
        ([1, 2.5], np.float32, False),
        ([[True], [False]], np.bool_, False),
        ([], np.float32, False),
        (np.float16(2), np.float16, False),
        (np.arange(3), np.int32, False),
        (np.zeros(2), np.float32, False),
        ([np.float16(1), 2], np.float16, False),
        (range(3), np.int32, False),
        (memoryview(b"ab"), np.uint8, False),
    ]
    for value, dtype, weak in cases:
        actual = pnp.asarray(value)
        assert actual.dtype == dtype, value
        assert actual.weak_type == weak, value
        np.testing.assert_array_equal(np.asarray(actual), np.asarray(value))


def test_copies_and_dtypes_of_arrays() -> None:
    x = pnp.asarray([1.0, 2.0])
    assert pnp.asarray(x) is x and pnp.array(x) is not x
    assert pnp.asarray(x, np.int32).dtype == np.int32
    assert not pnp.asarray(2.0, np.float32).weak_type
    assert pnp.array([1, 2], ndmin=3).shape == (1, 1, 2)
    assert pnp.asarray([x, x + 1]).shape == (2, 2)
    assert pnp.asarray([x[0], 2]).tolist() == [1.0, 2.0]
    assert pnp.float16(1.5).dtype == np.float16 and pnp.int8([1]).shape == (1,)
    assert np.dtype(pnp.float32) == np.float32 == pnp.float32


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, ValueError),
        ("text", TypeError),
        ([1, None], ValueError),
        ([1, "a"], TypeError),
        (object(), TypeError),
        (2**40, OverflowError),
        ([2**40], OverflowError),
        (np.array(["a"]), TypeError),
    ],
)
def test_values_that_are_not_arrays(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        pnp.asarray(value)


# Methods


def test_methods_are_the_functions() -> None:
    x = values(np.float32, 2, 3)
    array: Any = pnp.asarray(x)
    for name in ("sum", "prod", "max", "min", "mean", "var", "std", "argmax", "argmin"):
        assert_close(getattr(array, name)(1), getattr(x, name)(1))
    for name in ("ravel", "flatten", "squeeze"):
        np.testing.assert_array_equal(getattr(array, name)(), getattr(x, name)())
    for name in ("T", "mT", "real", "imag"):
        np.testing.assert_array_equal(getattr(array, name), getattr(x, name))
    assert (array > 9).any().item() is False and (array < 9).all().item() is True
    assert array.astype(int).dtype == np.int32 and array.astype(np.float32) is array
    assert array.transpose(1, 0).shape == array.transpose().shape == (3, 2)
    assert array.reshape(3, 2).shape == array.reshape((3, 2)).shape == array.swapaxes(0, 1).shape
    assert array.clip(0.0, 1.0).max() <= 1 and array.dot(x.T).shape == (2, 2)
    with pytest.raises(ValueError, match="at least two-dimensional"):
        _ = array[0].mT


def test_methods_work_while_tracing() -> None:
    def fun(x: Any) -> Array:
        y = pnp.asarray(x)
        return (y.T @ y).sum(0) + y[0].reshape(-1).mean() + y.at[0].set(1.0).max()

    check_compiled(fun, values(np.float32, 2, 3))
    check_derivatives(fun, values(np.float32, 2, 3))


class TestAheadOfTime:
    """Functions have the ahead-of-time methods of jitted functions."""

    def test_methods(self) -> None:
        x = np.ones((2, 3), np.float32)
        assert pnp.cos.lower(1.0).as_text().startswith("module @jit_cos")
        assert [e.primitive.name for e in pnp.cos.trace(x).jaxpr.eqns] == ["cos"]
        assert pnp.cos.eval_shape(x).shape == (2, 3)
        pnp.cos.clear_cache()
        assert pnp.cos(np.float32(0)) == 1.0

    def test_arguments_that_are_not_arrays_are_static(self) -> None:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        assert pnp.sum.lower(x, axis=0).compile()(x).tolist() == [3, 5, 7]
        assert pnp.sum.eval_shape(x, 1, keepdims=True).shape == (2, 1)
        assert pnp.reshape.eval_shape(x, (3, 2)).shape == (3, 2)
        assert pnp.concatenate.eval_shape([x, x]).shape == (4, 3)
        assert pnp.einsum.eval_shape("ij->j", x).shape == (3,)

    def test_transformed_functions_do_not_inherit_them(self) -> None:
        assert not hasattr(vmap(pnp.cos), "lower")
        x = np.ones((2, 3), np.float32)
        mapped = jit(vmap(pnp.sum))
        assert mapped.lower(x).out_info.shape == (2,)
        assert jit(pnp.sum).eval_shape(x).shape == ()
