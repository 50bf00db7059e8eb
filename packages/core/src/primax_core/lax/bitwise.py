"""Operations on the bits of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .._ir.primitive import Primitive
from .._lower.lazy import chlo, hlo
from .._trace.array import Array
from .families import binary, elementwise_samples, no_derivative, short_road, unary

ArrayLike = Any

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
mulhi_p: Final = _binary("mulhi", _INTEGER, lambda x, y: chlo.mulhi(x, y))


@short_road(and_p)
def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits that are set in both operands; of booleans, their conjunction.

    >>> int(bitwise_and(12, 10))
    8
    """
    return and_p.bind(x, y)


@short_road(or_p)
def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits that are set in one operand or in both; of booleans, their disjunction."""
    return or_p.bind(x, y)


@short_road(xor_p)
def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits that are set in exactly one operand."""
    return xor_p.bind(x, y)


@short_road(not_p)
def bitwise_not(x: ArrayLike) -> Array:
    """All bits inverted; of booleans, their negation."""
    return not_p.bind(x)


@short_road(shift_left_p)
def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits moved ``y`` places toward the high end, zeros following.

    Zero where ``y`` is negative or not less than the number of bits.
    """
    return shift_left_p.bind(x, y)


@short_road(shift_right_arithmetic_p)
def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits moved ``y`` places toward the low end, copies of the highest bit following.

    Only copies of the highest bit are left where ``y`` is negative or not less than the number of
    bits.
    """
    return shift_right_arithmetic_p.bind(x, y)


@short_road(shift_right_logical_p)
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits moved ``y`` places toward the low end, zeros following.

    Zero where ``y`` is negative or not less than the number of bits.
    """
    return shift_right_logical_p.bind(x, y)


@short_road(population_count_p)
def population_count(x: ArrayLike) -> Array:
    """How many bits of each integer are set, in the integer's own dtype.

    >>> int(population_count(7))
    3
    """
    return population_count_p.bind(x)


@short_road(clz_p)
def clz(x: ArrayLike) -> Array:
    """How many zeros lead each integer's bits."""
    return clz_p.bind(x)


@short_road(mulhi_p)
def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The high half of the product of integers, computed in twice their width."""
    return mulhi_p.bind(x, y)


for _prim in (and_p, or_p, xor_p):
    elementwise_samples(_prim, "iub", arity=2)
for _prim in (not_p, population_count_p, clz_p):
    elementwise_samples(_prim, "iu")
for _prim in (shift_left_p, shift_right_arithmetic_p, shift_right_logical_p, mulhi_p):
    elementwise_samples(_prim, "iu", arity=2)
