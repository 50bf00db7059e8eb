"""Bitwise operations of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.primitive import Primitive
from .._lower.lazy import hlo, mlir, shaped
from .._trace.array import Array
from .._trace.typing import ArrayLike
from .elementwise import binary, elementwise, elementwise_samples, fast_path, no_derivative, unary

_BITS: Final = ("integer", "bool")
_INTEGER: Final = ("integer",)


def _without_derivative(prim: Primitive) -> Primitive:
    no_derivative(prim)
    return prim


def _unary(name: str, kinds: tuple[str, ...], emit: Callable) -> Primitive:
    return _without_derivative(unary(name, kinds, lambda ctx, x: emit(x)))


def _binary(name: str, kinds: tuple[str, ...], emit: Callable) -> Primitive:
    return _without_derivative(binary(name, kinds, emit))


and_p: Final = _binary("and", _BITS, lambda x, y: hlo.and_(x, y))
or_p: Final = _binary("or", _BITS, lambda x, y: hlo.or_(x, y))
xor_p: Final = _binary("xor", _BITS, lambda x, y: hlo.xor(x, y))
not_p: Final = _unary("not", _BITS, lambda x: hlo.not_(x))
shift_left_p: Final = _binary("shift_left", _INTEGER, lambda x, y: hlo.shift_left(x, y))
shift_right_arithmetic_p: Final = _binary(
    "shift_right_arithmetic", _INTEGER, lambda x, y: hlo.shift_right_arithmetic(x, y)
)
shift_right_logical_p: Final = _binary(
    "shift_right_logical", _INTEGER, lambda x, y: hlo.shift_right_logical(x, y)
)
population_count_p: Final = _unary("population_count", _INTEGER, lambda x: hlo.popcnt(x))
clz_p: Final = _unary("clz", _INTEGER, lambda x: hlo.count_leading_zeros(x))


def _emit_mulhi(ctx, x, y):
    """Lowering with wider integers; for 64 bits with halves.

    XLA has an operation, but the CPU compiler of jaxlib 0.10 cannot fuse it with others.
    """
    (aval,) = ctx.out_avals
    bits, signed = dtypes.itemsize_bits(aval.dtype), dtypes.issubdtype(aval.dtype, np.signedinteger)
    shift = hlo.shift_right_arithmetic if signed else hlo.shift_right_logical
    if bits < 64:
        dtype = np.dtype(np.int64 if signed else np.uint64)
        double_type = mlir.tensor_type(aval.shape, dtype)
        product = hlo.multiply(hlo.convert(double_type, x), hlo.convert(double_type, y))
        shifts = shaped.full(np.asarray(bits, dtype), aval.shape)
        return hlo.convert(mlir.type_of(aval), shift(product, shifts))
    if not signed:
        return _mulhi_by_halves(x, y, aval.shape)
    unsigned = mlir.tensor_type(aval.shape, np.dtype(np.uint64))
    high = _mulhi_by_halves(
        hlo.bitcast_convert(unsigned, x), hlo.bitcast_convert(unsigned, y), aval.shape
    )
    sign = shaped.full(np.int64(63), aval.shape)
    for a, b in ((x, y), (y, x)):  # a negative operand counts as 2^64 more than it is
        excess = hlo.and_(hlo.shift_right_arithmetic(a, sign), b)
        high = hlo.subtract(high, hlo.bitcast_convert(unsigned, excess))
    return hlo.bitcast_convert(mlir.type_of(aval), high)


def _mulhi_by_halves(x: Any, y: Any, shape: tuple[int, ...]) -> Any:
    """Knuth, "The Art of Computer Programming", volume 2, algorithm 4.3.1 M for two digits."""
    half, mask = shaped.full(np.uint64(32), shape), shaped.full(np.uint64(0xFFFFFFFF), shape)

    def high(v):
        return hlo.shift_right_logical(v, half)

    def low(v):
        return hlo.and_(v, mask)

    first = high(hlo.multiply(low(x), low(y)))
    second = hlo.add(hlo.multiply(high(x), low(y)), first)
    third = hlo.add(hlo.multiply(low(x), high(y)), low(second))
    return hlo.add(hlo.add(hlo.multiply(high(x), high(y)), high(second)), high(third))


mulhi_p: Final = _without_derivative(Primitive("mulhi"))
elementwise(mulhi_p, _emit_mulhi, _INTEGER)


@fast_path(and_p)
def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits that are set in both operands; logical AND for booleans.

    Args:
      x: an array or a number of integer or boolean dtype.
      y: an array or a number of the dtype of ``x``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype.

    Raises:
      TypeError: if the dtypes differ or are neither integer nor boolean, or the shapes are
        incompatible.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> bitwise_and(np.array([12, 10]), np.array([10, 3])).tolist()
    [8, 2]
    >>> bool(bitwise_and(True, False))
    False
    """
    return and_p.bind(x, y)


@fast_path(or_p)
def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits that are set in at least one operand; logical OR for booleans.

    Args:
      x: an array or a number of integer or boolean dtype.
      y: an array or a number of the dtype of ``x``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype.

    Raises:
      TypeError: if the dtypes differ or are neither integer nor boolean, or the shapes are
        incompatible.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> bitwise_or(np.array([12, 10]), np.array([10, 3])).tolist()
    [14, 11]
    >>> bool(bitwise_or(True, False))
    True
    """
    return or_p.bind(x, y)


@fast_path(xor_p)
def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits that are set in exactly one operand; exclusive OR for booleans.

    Args:
      x: an array or a number of integer or boolean dtype.
      y: an array or a number of the dtype of ``x``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype.

    Raises:
      TypeError: if the dtypes differ or are neither integer nor boolean, or the shapes are
        incompatible.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> bitwise_xor(np.array([12, 10]), np.array([10, 3])).tolist()
    [6, 9]
    >>> bool(bitwise_xor(True, True))
    False
    """
    return xor_p.bind(x, y)


@fast_path(not_p)
def bitwise_not(x: ArrayLike) -> Array:
    """All bits inverted; logical NOT for booleans.

    Args:
      x: an array or a number of integer or boolean dtype.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if ``x`` has another dtype.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> bitwise_not(np.array([0, 5], np.int32)).tolist()
    [-1, -6]
    >>> bitwise_not(np.array([0, 5], np.uint8)).tolist()
    [255, 250]
    >>> bool(bitwise_not(True))
    False
    """
    return not_p.bind(x)


@fast_path(shift_left_p)
def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits of ``x`` shifted left by ``y`` positions, filled with zeros.

    Zero where ``y`` is negative or not less than the number of bits.

    Args:
      x: an array or a number of integer dtype.
      y: the numbers of positions, of the dtype of ``x``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype.

    Raises:
      TypeError: if the dtypes differ or are not integer, or the shapes are incompatible.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> shift_left(np.array([1, 3, 5]), 2).tolist()
    [4, 12, 20]
    >>> int(shift_left(np.int8(1), np.int8(8)))
    0
    """
    return shift_left_p.bind(x, y)


@fast_path(shift_right_arithmetic_p)
def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits of ``x`` shifted right by ``y`` positions, filled with copies of the highest bit.

    The result consists of copies of the highest bit where ``y`` is negative or not less than the
    number of bits. For signed integers it is the quotient by a power of 2, rounded down.

    Args:
      x: an array or a number of integer dtype.
      y: the numbers of positions, of the dtype of ``x``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype.

    Raises:
      TypeError: if the dtypes differ or are not integer, or the shapes are incompatible.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> shift_right_arithmetic(np.array([8, -8, -1]), 1).tolist()
    [4, -4, -1]
    """
    return shift_right_arithmetic_p.bind(x, y)


@fast_path(shift_right_logical_p)
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits of ``x`` shifted right by ``y`` positions, filled with zeros.

    Zero where ``y`` is negative or not less than the number of bits.

    Args:
      x: an array or a number of integer dtype.
      y: the numbers of positions, of the dtype of ``x``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype.

    Raises:
      TypeError: if the dtypes differ or are not integer, or the shapes are incompatible.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> shift_right_logical(np.array([8, -8], np.int8), np.int8(1)).tolist()
    [4, 124]
    """
    return shift_right_logical_p.bind(x, y)


@fast_path(population_count_p)
def population_count(x: ArrayLike) -> Array:
    """Number of set bits of each integer.

    Negative integers count in two's complement.

    Args:
      x: an array or a number of integer dtype.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if ``x`` does not have an integer dtype.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> population_count(np.array([0, 7, 255], np.uint8)).tolist()
    [0, 3, 8]
    >>> int(population_count(-1))
    32
    """
    return population_count_p.bind(x)


@fast_path(clz_p)
def clz(x: ArrayLike) -> Array:
    """Number of leading zero bits of each integer.

    0 has as many as its dtype has bits, and negative integers have none.

    Args:
      x: an array or a number of integer dtype.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if ``x`` does not have an integer dtype.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> clz(np.array([0, 1, 64], np.int8)).tolist()
    [8, 7, 1]
    >>> int(clz(np.int32(1)))
    31
    """
    return clz_p.bind(x)


@fast_path(mulhi_p)
def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """High half of the double-width product of integers.

    For integers of ``n`` bits it is ``(x * y) >> n``, computed without overflow.

    Args:
      x: an array or a number of integer dtype.
      y: an array or a number of the dtype of ``x``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype.

    Raises:
      TypeError: if the dtypes differ or are not integer, or the shapes are incompatible.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> int(mulhi(np.uint8(200), np.uint8(200)))
    156
    >>> 200 * 200 >> 8
    156
    """
    return mulhi_p.bind(x, y)


for _prim in (and_p, or_p, xor_p):
    elementwise_samples(_prim, "iub", arity=2)
for _prim in (not_p, population_count_p, clz_p):
    elementwise_samples(_prim, "iu")
for _prim in (shift_left_p, shift_right_arithmetic_p, shift_right_logical_p, mulhi_p):
    elementwise_samples(_prim, "iu", arity=2)
