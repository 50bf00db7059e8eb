"""Symbolic values that transformations hand to rules."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._trace import structural
from .._trace.core import typeof


class Zero:
    """A tangent or cotangent known to be zero; costs nothing."""

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
    """Stands, in a transpose rule, for an argument that the operation is linear in."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval: ShapedArray = aval

    def __repr__(self) -> str:
        return f"Linear({self.aval})"


def is_linear(x: Any) -> bool:
    """Whether a transpose rule's argument is one to give a cotangent for."""
    return type(x) is Linear


def is_zero(x: Any) -> bool:
    """Whether a tangent or cotangent is a symbolic zero."""
    return type(x) is Zero


def instantiate(x: Any) -> Any:
    """An array for a tangent or cotangent that may be symbolic."""
    if type(x) is not Zero:
        return x
    return zeros(x.aval)


def zeros(aval: ShapedArray) -> Any:
    """An array of zeros of a type."""
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return structural.zeros(aval)


add_any_p: Final = Primitive("add_any")


def add_tangents(x: Any, y: Any) -> Any:
    """Sum of two tangents or cotangents, either of which may be symbolic."""
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
