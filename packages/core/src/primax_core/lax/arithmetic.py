"""Elementwise sums, products, quotients, integer powers, maxima and minima."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.primitive import Primitive, abstract, jvp, transpose
from .._ir.printer import hide_defaults
from .._ir.samples import Sample, bf16, c64, f32, i32, samples
from .._lower.lazy import chlo, hlo
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike, DTypeLike
from .._transform.zeros import Zero, add_any_p, is_linear
from .comparison import compare, eq, gt
from .conversion import convert, converted
from .elementwise import (
    binary,
    check_dtypes,
    derivatives,
    elementwise,
    elementwise_batching,
    elementwise_lowering,
    elementwise_samples,
    fast_path,
    filled,
    full_of,
    joint_shape,
    linear,
    scalar_like,
    sum_to,
    to_shape,
    unary,
    weak,
)
from .selection import select

_NUMBER: Final = ("number",)
_ANY: Final = ("number", "bool")

# Sums and differences

neg_p: Final = unary("neg", _NUMBER, lambda ctx, x: hlo.negate(x))
add_p: Final = binary("add", _NUMBER, lambda x, y: hlo.add(x, y))
sub_p: Final = binary("sub", _NUMBER, lambda x, y: hlo.subtract(x, y))
elementwise(add_any_p, lambda ctx, x, y: hlo.add(x, y), _NUMBER)


@fast_path(neg_p)
def neg(x: ArrayLike) -> Array:
    """Elements with their sign changed.

    Unsigned integers wrap, and the smallest signed integer is returned unchanged.

    Args:
      x: an array or a number of integer, floating or complex dtype.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` is boolean, or not an array or a number.

    The function is linear: its derivative is -1. Under ``vmap`` the batch is one operand.

    >>> neg(np.array([1, -2, 0])).tolist()
    [-1, 2, 0]
    >>> int(neg(np.uint8(1)))
    255
    """
    return neg_p.bind(x)


@fast_path(add_p)
def add(x: ArrayLike, y: ArrayLike) -> Array:
    """Sum of two operands, element by element.

    Nothing is promoted: the operands must have the same dtype, except that a Python number adapts
    to an array of the same class of dtypes. They must have the same number of axes; scalars and
    axes of size 1 are broadcast. Integers wrap on overflow.

    Args:
      x: an array or a number of integer, floating or complex dtype.
      y: an array or a number of the dtype of ``x``.

    Returns:
      An array of the joint shape and of the operands' dtype, weakly typed if both operands are.

    Raises:
      TypeError: if the dtypes differ, the shapes are incompatible, or an operand is not a number
        or an array of numbers.

    The function is linear in both operands; where an operand was broadcast, its cotangent is
    summed. Under ``vmap`` the batch is one operand.

    >>> add(np.array([1, 2]), np.array([10, 20])).tolist()
    [11, 22]
    >>> add(np.ones((2, 3), np.float32), 1.0).shape
    (2, 3)
    """
    return add_p.bind(x, y)


@fast_path(sub_p)
def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """Difference ``x - y`` of two operands, element by element.

    Dtypes and shapes are as for :func:`add`. Integers wrap on overflow.

    Args:
      x: an array or a number of integer, floating or complex dtype.
      y: an array or a number of the dtype of ``x``.

    Returns:
      An array of the joint shape and of the operands' dtype, weakly typed if both operands are.

    Raises:
      TypeError: if the dtypes differ, the shapes are incompatible, or an operand is not a number
        or an array of numbers.

    The function is linear in both operands; where an operand was broadcast, its cotangent is
    summed. Under ``vmap`` the batch is one operand.

    >>> sub(np.array([1, 2]), np.array([10, 20])).tolist()
    [-9, -18]
    >>> int(sub(np.uint8(1), np.uint8(2)))
    255
    """
    return sub_p.bind(x, y)


linear(neg_p, lambda ct, aval: neg(ct))


def _sum_rules(prim: Primitive, sign: Callable) -> None:
    """Derivatives of sums and differences."""

    @prim.rule(jvp)
    def _jvp(primals, tangents):
        out = prim.bind(*primals)
        shape = typeof(out).shape
        tx, ty = tangents
        if type(tx) is Zero and type(ty) is Zero:
            return out, Zero.like(out)
        if type(ty) is Zero:
            return out, to_shape(tx, shape)
        if type(tx) is Zero:
            return out, sign(to_shape(ty, shape))
        return out, prim.bind(tx, ty)

    @prim.rule(transpose)
    def _transpose(ct, x, y):
        return [
            sum_to(ct, x.aval) if is_linear(x) else None,
            sum_to(sign(ct), y.aval) if is_linear(y) else None,
        ]


_sum_rules(add_p, lambda t: t)
_sum_rules(add_any_p, lambda t: t)
_sum_rules(sub_p, neg)

# Products

mul_p: Final = Primitive("mul")
hide_defaults("mul", out_dtype=None)


@fast_path(mul_p)
def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """Product of two operands, element by element.

    Dtypes and shapes are as for :func:`add`. Integers wrap on overflow.

    Args:
      x: an array or a number of integer, floating or complex dtype.
      y: an array or a number of the dtype of ``x``.
      out_dtype: dtype to which the operands are converted before the multiplication.

    Returns:
      An array of the joint shape, of the operands' dtype or of ``out_dtype``.

    Raises:
      TypeError: if the dtypes differ, the shapes are incompatible, or an operand is not a number
        or an array of numbers.

    The derivative with respect to one operand is the other. Under ``vmap`` the batch is one
    operand.

    >>> mul(np.array([1, 2]), np.array([10, 20])).tolist()
    [10, 40]
    >>> int(mul(np.int8(100), np.int8(2)))
    -56
    >>> int(mul(np.int8(100), np.int8(2), out_dtype=np.int32))
    200
    """
    if out_dtype is None:
        return mul_p.bind(x, y)
    return mul_p.bind(x, y, out_dtype=dtypes.canonicalize_user_dtype(out_dtype, "mul"))


@mul_p.rule(abstract)
def _mul_abstract(x, y, *, out_dtype=None):
    check_dtypes("mul", (x, y), _NUMBER)
    aval = x.update(shape=joint_shape("mul", (x, y)), weak_type=weak((x, y)))
    return aval if out_dtype is None else aval.update(dtype=out_dtype, weak_type=False)


def _emit_mul(ctx, x, y, *, out_dtype=None):
    if out_dtype is not None:
        old, shape = ctx.in_avals[0].dtype, ctx.out_avals[0].shape
        x, y = (converted(ctx, v, old, out_dtype, shape) for v in (x, y))
    return hlo.multiply(x, y)


elementwise_lowering(mul_p, _emit_mul)
elementwise_batching(mul_p)
derivatives(
    mul_p,
    lambda g, out, x, y, **params: mul(g, y, **params),
    lambda g, out, x, y, **params: mul(x, g, **params),
)


@mul_p.rule(transpose)
def _mul_transpose(ct, x, y, **_):
    def cotangent(known, aval, product):
        known = convert(known, typeof(ct).dtype, typeof(known).weak_type)
        ct_sum = sum_to(product(known), aval)
        return ct_sum if typeof(ct_sum).dtype == aval.dtype else convert(ct_sum, aval.dtype)

    return [
        cotangent(y, x.aval, lambda y: mul(ct, y)) if is_linear(x) else None,
        cotangent(x, y.aval, lambda x: mul(x, ct)) if is_linear(y) else None,
    ]


def _emit_square(ctx, x):
    if dtypes.issubdtype(ctx.in_avals[0].dtype, np.inexact):
        return chlo.square(x)
    return hlo.multiply(x, x)


square_p: Final = unary("square", _NUMBER, _emit_square)


@fast_path(square_p)
def square(x: ArrayLike) -> Array:
    """Square of each element.

    Integers wrap on overflow.

    Args:
      x: an array or a number of integer, floating or complex dtype.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` is boolean, or not an array or a number.

    The derivative is ``2 x``. It costs one multiplication less than that of ``mul(x, x)``. Under
    ``vmap`` the batch is one operand.

    >>> square(np.array([1, -2, 3])).tolist()
    [1, 4, 9]
    >>> square(np.array([1j], np.complex64)).tolist()
    [(-1+0j)]
    """
    return square_p.bind(x)


derivatives(square_p, lambda g, out, x: mul(g, mul(scalar_like(x, 2), x)))


def _emit_one_minus_square(ctx, x):
    one = filled(ctx, 1)
    return hlo.multiply(hlo.add(one, x), hlo.subtract(one, x))


one_minus_square_p: Final = unary("one_minus_square", ("inexact",), _emit_one_minus_square)


@fast_path(one_minus_square_p)
def one_minus_square(x: ArrayLike) -> Array:
    """``1 - x²`` of each element, accurate near 1 and -1.

    It is computed as ``(1 + x) (1 - x)``: no digits cancel, and large elements do not overflow
    before the result does.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` is boolean, or not an array or a number.

    The derivative is ``-2 x``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 0.5, 1.0], np.float32)
    >>> one_minus_square(x).tolist()
    [1.0, 0.75, 0.0]
    """
    return one_minus_square_p.bind(x)


derivatives(one_minus_square_p, lambda g, out, x: mul(g, mul(scalar_like(x, -2), x)))

# Powers with a static exponent

integer_pow_p: Final = Primitive("integer_pow")


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Elements raised to the power of a Python integer, by repeated multiplication.

    The number of multiplications grows with the logarithm of the power. A negative power is the
    reciprocal of the positive one.

    Args:
      x: an array or a number of integer, floating or complex dtype.
      y: the power, a Python integer. It is static: each power has its own operation.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``y`` is negative and the elements are integers, ``y`` is not an integer, or
        ``x`` is boolean.

    The derivative is ``y x^(y-1)``, and 0 for the power 0. Under ``vmap`` the batch is one
    operand.

    >>> integer_pow(np.array([1, 2, 3]), 3).tolist()
    [1, 8, 27]
    >>> float(integer_pow(2.0, -2))
    0.25
    """
    return integer_pow_p.bind(x, y=operator.index(y))


@fast_path(integer_pow_p, y=-1)
def reciprocal(x: ArrayLike) -> Array:
    """Reciprocal ``1 / x`` of each element.

    0 gives an infinity of its sign.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer dtype (convert it first), is boolean, or is not an array
        or a number.

    It is :func:`integer_pow` with the power -1, so its derivative is ``-1 / x²``. Under ``vmap``
    the batch is one operand.

    >>> x = np.array([1.0, 4.0, 0.0], np.float32)
    >>> reciprocal(x).tolist()
    [1.0, 0.25, inf]
    """
    return integer_pow(x, -1)


@integer_pow_p.rule(abstract)
def _integer_pow_abstract(x, *, y):
    check_dtypes("integer_pow", (x,), _NUMBER)
    if y < 0 and dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError(
            "Integers cannot be raised to negative powers, got "
            f"integer_pow({x}, {y}). Convert the integers to floats first."
        )
    return x


def _emit_integer_pow(ctx, x, *, y):
    if y == 0:
        return filled(ctx, 1)
    if y == 3:
        return hlo.multiply(hlo.multiply(x, x), x)
    out, n = None, abs(y)
    while True:
        if n & 1:
            out = x if out is None else hlo.multiply(out, x)
        n >>= 1
        if not n:
            break
        x = hlo.multiply(x, x)
    return hlo.divide(filled(ctx, 1), out) if y < 0 else out


elementwise_lowering(integer_pow_p, _emit_integer_pow)
elementwise_batching(integer_pow_p)


@integer_pow_p.rule(jvp)
def _integer_pow_jvp(primals, tangents, *, y):
    (x,), (g,) = primals, tangents
    out = integer_pow_p.bind(x, y=y)
    if type(g) is Zero or y == 0:
        return out, Zero.like(out)
    if y == 1:
        return out, g
    power = x if y == 2 else integer_pow_p.bind(x, y=y - 1)
    return out, mul(g, mul(scalar_like(x, y), power))


# Quotients

div_p: Final = binary("div", _NUMBER, lambda x, y: hlo.divide(x, y))


@fast_path(div_p)
def div(x: ArrayLike, y: ArrayLike) -> Array:
    """Quotient ``x / y`` of two operands, element by element.

    Dtypes and shapes are as for :func:`add`. Integer division rounds toward zero. An integer
    divided by 0 gives -1 (all bits set), and the smallest integer divided by -1 gives itself.

    Args:
      x: an array or a number of integer, floating or complex dtype.
      y: an array or a number of the dtype of ``x``.

    Returns:
      An array of the joint shape and of the operands' dtype, weakly typed if both operands are.

    Raises:
      TypeError: if the dtypes differ, the shapes are incompatible, or an operand is not a number
        or an array of numbers.

    The derivatives are ``1 / y`` and ``-x / y²``; the function is linear in ``x``. Integers have
    none. Under ``vmap`` the batch is one operand.

    >>> div(np.array([7, -7]), np.array([2, 2])).tolist()
    [3, -3]
    >>> div(1.0, 4.0).item()
    0.25
    """
    return div_p.bind(x, y)


derivatives(
    div_p,
    lambda g, out, x, y: div(g, y),
    lambda g, out, x, y: mul(mul(neg(g), x), integer_pow(y, -2)),
)


@div_p.rule(transpose)
def _div_transpose(ct, x, y):
    return [sum_to(div(ct, y), x.aval), None]


# Maximum and minimum


def _extremum(name: str, op: str, direction: str) -> Primitive:
    def emit(ctx, x, y):
        dtype = ctx.in_avals[0].dtype
        if not dtypes.issubdtype(dtype, np.complexfloating):
            return getattr(hlo, op)(x, y)
        part = np.finfo(dtype).dtype
        real = [hlo.real(x), hlo.real(y)]
        first = hlo.select(
            compare("EQ", *real, part),
            compare(direction, hlo.imag(x), hlo.imag(y), part),
            compare(direction, *real, part),
        )
        return hlo.select(first, x, y)

    prim = Primitive(name)
    elementwise(prim, emit, _ANY)
    return prim


max_p: Final = _extremum("max", "maximum", "GT")
min_p: Final = _extremum("min", "minimum", "LT")


@fast_path(max_p)
def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of two operands, element by element; NaN where one is NaN.

    Dtypes and shapes are as for :func:`add`, and booleans are accepted. Complex numbers are
    ordered by their real parts, then by their imaginary parts.

    Args:
      x: an array or a number of real, complex or boolean dtype.
      y: an array or a number of the dtype of ``x``.

    Returns:
      An array of the joint shape and of the operands' dtype, weakly typed if both operands are.

    Raises:
      TypeError: if the dtypes differ or the shapes are incompatible.

    The larger operand receives the derivative. If the elements are equal, each operand receives
    half of it. Under ``vmap`` the batch is one operand.

    >>> max(np.array([1, 5]), np.array([3, 2])).tolist()
    [3, 5]
    >>> max(np.array([1.0, np.nan], np.float32), 2.0).tolist()
    [2.0, nan]
    """
    return max_p.bind(x, y)


@fast_path(min_p)
def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of two operands, element by element; NaN where one is NaN.

    Dtypes and shapes are as for :func:`add`, and booleans are accepted. Complex numbers are
    ordered by their real parts, then by their imaginary parts.

    Args:
      x: an array or a number of real, complex or boolean dtype.
      y: an array or a number of the dtype of ``x``.

    Returns:
      An array of the joint shape and of the operands' dtype, weakly typed if both operands are.

    Raises:
      TypeError: if the dtypes differ or the shapes are incompatible.

    The smaller operand receives the derivative. If the elements are equal, each operand receives
    half of it. Under ``vmap`` the batch is one operand.

    >>> min(np.array([1, 5]), np.array([3, 2])).tolist()
    [1, 2]
    >>> min(np.array([1.0, np.nan], np.float32), 2.0).tolist()
    [1.0, nan]
    """
    return min_p.bind(x, y)


def _share(larger: Any, smaller: Any, chosen: Any, out: Any) -> Any:
    """1 where ``larger`` is larger, 1/2 where both are equal, 0 elsewhere; not weakly typed.

    Complex numbers cannot be compared; an operand counts as larger where it is the result.
    """
    aval = typeof(out).strip_weak_type()
    shape = aval.shape
    is_complex = dtypes.issubdtype(aval.dtype, np.complexfloating)
    above = to_shape(eq(chosen, out) if is_complex else gt(larger, smaller), shape)
    level = to_shape(eq(larger, smaller), shape)
    one, zero, half = (full_of(aval, v) for v in (1, 0, 0.5))
    if is_complex:
        return select(level, half, select(above, one, zero))
    return select(above, one, select(level, half, zero))


derivatives(
    max_p,
    lambda g, out, x, y: mul(g, _share(x, y, x, out)),
    lambda g, out, x, y: mul(g, _share(y, x, y, out)),
)
derivatives(
    min_p,
    lambda g, out, x, y: mul(g, _share(y, x, x, out)),
    lambda g, out, x, y: mul(g, _share(x, y, y, out)),
)


for _prim in (neg_p, square_p):
    elementwise_samples(_prim, "fci")
for _prim in (add_p, sub_p, mul_p):
    elementwise_samples(_prim, "fci", arity=2)
for _prim in (max_p, min_p):
    elementwise_samples(_prim, "ficb", arity=2)
elementwise_samples(div_p, "fc", arity=2, low=0.5)
elementwise_samples(one_minus_square_p, "fc")


@integer_pow_p.rule(samples)
def _integer_pow_samples():
    for exponent in (0, 1, 3, -2):
        yield Sample(f32(3, low=0.5), y=exponent)
    yield Sample(c64(2), y=2)
    yield Sample(bf16(0, 2), y=3)
    yield Sample(i32(2), y=3)
