"""Symbolic values passed to rules: zero tangents, and linear arguments of a transpose."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray, unplaced
from .._ir.primitive import Primitive
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._trace import structural
from .._trace.core import register_value_type, typeof


class Zero:
    """A symbolic zero tangent or cotangent."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval: ShapedArray = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"

    @staticmethod
    def like(x: Any) -> Zero:
        """The zero tangent of a value."""
        return Zero(typeof(x).tangent_aval())

    def instantiate(self) -> Any:
        """An array of zeros."""
        return zeros(self.aval)


class Linear:
    """Symbolic linear argument of a transpose rule."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval: ShapedArray = aval

    def __repr__(self) -> str:
        return f"Linear({self.aval})"


class SymbolicOperandError(TypeError):
    """A symbolic value is used where an operation needs an array."""


def _refuse_zero(x: Zero) -> NoReturn:
    raise SymbolicOperandError(
        f"the symbolic zero {x!r} is used as an operand. Find zeros with is_zero(t), or get an "
        "array with instantiate(t)."
    )


def _refuse_linear(x: Linear) -> NoReturn:
    raise SymbolicOperandError(
        f"the linear operand {x!r} is used as a value. A transpose rule knows the cotangents, and "
        "the operands for which is_linear(x) is false."
    )


register_value_type(Zero, _refuse_zero)
register_value_type(Linear, _refuse_linear)


def is_linear(x: Any) -> bool:
    """Return True if an argument of a transpose rule is linear: the rule returns its cotangent."""
    return type(x) is Linear


def is_zero(x: Any) -> bool:
    """Return True if a tangent or cotangent is a symbolic zero."""
    return type(x) is Zero


def instantiate(x: Any) -> Any:
    """An array for a tangent or cotangent that may be symbolic."""
    if type(x) is not Zero:
        return x
    return zeros(x.aval)


def zeros(aval: ShapedArray) -> Any:
    """An array of zeros of an aval."""
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    placement = aval.placement
    if placement is not unplaced:
        return placement.cast(structural.zeros(aval.update(placement=unplaced)))
    return structural.zeros(aval)


add_any_p: Final = Primitive("add_any")


def add_tangents(x: Any, y: Any) -> Any:
    """Sum of two tangents or cotangents, each possibly symbolic."""
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    if typeof(x).dtype == dtypes.float0:
        return x
    return add_any_p.bind(x, y)


@add_any_p.rule(samples)
def _samples():
    yield Sample(f32(3), f32(3))
    yield Sample(c64(), c64())
    yield Sample(bf16(0, 2), bf16(0, 2))
