"""Operators of arrays: promotion, broadcasting, fast paths of eager calls, and refused operands."""

from __future__ import annotations

import operator as op

import numpy as np
import pytest

import primax_core as px
from primax_core._base import config
from primax_core.lax import operators  # noqa: F401
from primax_core.lax.conversion import convert_element_type


def array(x, dtype="float32"):
    return convert_element_type(np.asarray(x, dtype), dtype)


ARITHMETIC = [op.add, op.sub, op.mul, op.truediv, op.floordiv, op.mod, op.pow]
COMPARISONS = [op.eq, op.ne, op.lt, op.le, op.gt, op.ge]


@pytest.mark.parametrize("fun", ARITHMETIC + COMPARISONS, ids=lambda f: f.__name__)
def test_values(fun):
    x, y = np.float32([1.5, 2, 7]), np.float32([2, 2, -0.5])
    for _ in range(2):  # the second call uses the fast path
        np.testing.assert_allclose(fun(array(x), array(y)), fun(x, y), rtol=1e-6)
        np.testing.assert_allclose(fun(array(x), 2.0), fun(x, 2.0), rtol=1e-6)
        np.testing.assert_allclose(fun(2.0, array(x)), fun(2.0, x), rtol=1e-6)
        np.testing.assert_allclose(fun(array(x), y), fun(x, y), rtol=1e-6)
        np.testing.assert_allclose(fun(x, array(y)), fun(x, y), rtol=1e-6)
    column = x[:, None]
    np.testing.assert_allclose(fun(array(column), array(y)), fun(column, y), rtol=1e-6)
    np.testing.assert_allclose(px.jit(fun)(x, y), fun(x, y), rtol=1e-6)


@pytest.mark.parametrize("fun", [op.floordiv, op.mod, divmod])
def test_division_rounds_down(fun):
    x, y = np.int32([7, -7, 7, -7, 0]), np.int32([2, 2, -2, -2, 5])
    np.testing.assert_array_equal(fun(array(x, "int32"), array(y, "int32")), fun(x, y))
    np.testing.assert_array_equal(fun(array(x), array(y)), fun(x.astype("f"), y.astype("f")))


def test_division_of_integers_by_zero():
    x, zero = array([7, -7], "int32"), array([0, 0], "int32")
    assert (x // zero).tolist() == [-2, -2]
    assert (x % zero).tolist() == [0, 0]
    assert int(array(-(2**31), "int32") // -1) == -(2**31)
    assert int(array(-(2**31), "int32") % -1) == 0
    assert (array([1.0, 0.0]) / 0).tolist()[0] == np.inf


def test_bits():
    x, y = np.int32([5, -3, 0]), np.int32([1, 2, 40])
    for fun in (op.and_, op.or_, op.xor):
        np.testing.assert_array_equal(fun(array(x, "int32"), array(y, "int32")), fun(x, y))
    assert (array(x, "int32") << array(y, "int32")).tolist() == [10, -12, 0]
    assert (array(x, "int32") >> array(y, "int32")).tolist() == [2, -1, 0]
    assert (~array(x, "int32")).tolist() == (~x).tolist()
    assert (~array([True, False], "bool")).tolist() == [False, True]
    with pytest.raises(TypeError, match="and does not accept dtype float32"):
        array([1.0]) & array([1.0])


def test_promotion():
    cases = [
        (array([1], "int8"), array([1], "float16"), "float16", False),
        (array([1], "int8"), 1, "int8", False),
        (array([1], "int8"), 1.0, "float32", True),
        (array([1], "uint8"), array([1], "int8"), "int16", False),
        (array([True], "bool"), 1, "int32", True),
        (array([1.0], "bfloat16"), 2.5, "bfloat16", False),
        (array([1.0]), 1j, "complex64", False),
        (array([1.0], "bfloat16"), np.float64(1), "float32", False),
    ]
    for x, y, dtype, weak in cases:
        for out in (x + y, y + x):
            assert (out.dtype.name, out.weak_type) == (dtype, weak)
    assert (array([3], "int32") / 2).dtype == np.float32
    assert (array([True], "bool") + True).dtype == np.bool_
    with config.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="promotion path"):
        array([1]) + array([1], "int32")


def test_scalars_are_literals_of_jaxprs():
    x = np.float32([1, 2])
    assert "add a 1.0:f32[]" in str(px.make_jaxpr(lambda x: x + 1)(x))
    assert "mul 2.5:bf16[] a" in str(px.make_jaxpr(lambda x: 2.5 * x)(x.astype("bfloat16")))
    assert "integer_pow[y=3] a" in str(px.make_jaxpr(lambda x: x**3)(x))
    assert "pow a 0.5:f32[]" in str(px.make_jaxpr(lambda x: x**0.5)(x))


def test_signed_zeros_are_distinguished():
    one = array([1.0])
    for _ in range(2):
        assert (one / 0.0).tolist() == [np.inf]
        assert (one / -0.0).tolist() == [-np.inf]
        assert (one / 0).tolist() == [np.inf]


def test_powers():
    x = array([2, 3], "int32")
    assert (x**3).tolist() == [8, 27] and (x**3).tolist() == [8, 27]
    assert (x**0).tolist() == [1, 1]
    assert (x ** array([0, 5], "int32")).tolist() == [1, 243]
    assert (2**x).tolist() == [4, 8]
    with pytest.raises(TypeError, match="Integers cannot be raised to negative powers"):
        x**-1
    with pytest.raises(TypeError):
        pow(x, 2, 5)


def test_values_that_are_not_operands():
    x = array([1.0])
    for other in ([1.0], (1.0,), {1.0}, {}):
        for fun in (op.add, op.mul, op.eq, op.lt):
            with pytest.raises(TypeError):
                fun(x, other)
            with pytest.raises(TypeError):
                fun(other, x)
    for other in (None, "a", object()):
        assert (x == other) is False
        assert (x != other) is True
        with pytest.raises(TypeError):
            x + other
        with pytest.raises(TypeError):
            x < other  # noqa: B015


def test_incompatible_shapes():
    x = array(np.ones((2, 3)))
    with pytest.raises(
        TypeError, match=r"add got incompatible shapes for broadcasting: \(3,\), \(4,\)"
    ):
        array(np.ones(3)) + array(np.ones(4))
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        x + array(np.ones(4))
    with (
        config.numpy_rank_promotion("raise"),
        pytest.raises(ValueError, match="could not be broadcast"),
    ):
        x - array(np.ones(3))
    with config.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank promotion"):
        x - array(np.ones(3))


def test_signs_and_rounding():
    x = array([-1.5, 2.5])
    assert (-x).tolist() == [1.5, -2.5] and abs(x).tolist() == [1.5, 2.5]
    assert (+x) is x and abs(array([1], "uint8")).tolist() == [1]
    assert round(x).tolist() == [-2, 2] and round(x).dtype == np.int32
    assert round(array([1.234, -5.678]), 1).tolist() == pytest.approx([1.2, -5.7])
    with pytest.raises(TypeError, match="neg does not accept dtype bool"):
        -array([True], "bool")
    with pytest.raises(NotImplementedError):
        round(array([1], "int32"), -1)


def test_rows():
    x = np.arange(500, dtype="f").reshape(250, 2)
    rows = list(array(x))
    assert len(rows) == 250 and rows[0].shape == (2,)
    np.testing.assert_array_equal(np.stack(rows), x)
    assert list(array(np.zeros((0, 2)))) == []
    first, second = array([1.0, 2.0])
    assert (float(first), float(second)) == (1, 2)
    with pytest.raises(TypeError, match="0-d"):
        iter(array(1.0))


def test_deleted_operand():
    x, y = array([1.0]), array([2.0])
    x + y
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        x + y


def test_transformations_of_operators():
    x = np.float32([0.5, 2.0])
    np.testing.assert_allclose(px.grad(lambda x: (x * x + 1 / x) ** 2)(np.float32(0.5)), -13.5)
    np.testing.assert_allclose(px.vmap(lambda a: a // 0.3)(x), x // np.float32(0.3))
    assert px.grad(lambda x: x % 0.7)(np.float32(2)) == 1
    assert px.grad(lambda x: 3.0 - x)(1.0).weak_type


class Reflecting(tuple):
    def __rmul__(self, other):
        return "mul"

    def __gt__(self, other):
        return "greater"

    def __rpow__(self, other):
        return "power"


def test_operators_of_subclasses_of_sequences():
    x = px.device_put(np.float32(2))
    other = Reflecting((1, 2))
    assert (x * other, x < other, x**other) == ("mul", "greater", "power")
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+"):
        x + other


@pytest.mark.parametrize("x", [3.3, -3.3, 0.0, 6.0, np.inf])
@pytest.mark.parametrize("y", [2.0, -2.0, 0.0, np.inf])
def test_floor_division_has_no_derivative(x: float, y: float) -> None:
    """The derivative is zero, also where the quotient is that of the true division."""
    f = lambda a, b: a // b
    x, y = array(x), array(y)
    assert [float(g) for g in px.grad(f, (0, 1))(x, y)] == [0, 0]
    assert float(px.jvp(f, (x, y), (x, y))[1]) == 0

    @px.custom_vjp
    def never_differentiated(a):
        return px.lax.sin(a)

    never_differentiated.defvjp(lambda a: (a, None), lambda _, ct: (ct,))
    value, dot = px.jvp(px.jit(lambda a: never_differentiated(a // y) * a), (x,), (array(1.0),))
    assert np.isnan(value) or float(dot) == float(px.lax.sin(x // y))
