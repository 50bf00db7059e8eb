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
    """A symbolic zero tangent or cotangent.

    Rules receive it for operands that are not differentiated, and return it for results without a
    derivative, so that nothing is computed for them. The attribute ``aval`` is the type of the
    tangent.

    >>> from primax_core.extend import Zero, typeof
    >>> Zero(typeof(1.0))
    Zero(~float32[])
    """

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
    """Symbolic linear argument of a transpose rule.

    A transpose rule receives it for arguments in which the operation is linear and whose values
    are not known, and returns their cotangents. The attribute ``aval`` is the type.

    >>> from primax_core.extend import Linear, is_linear, typeof
    >>> is_linear(Linear(typeof(1.0)))
    True
    """

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
    """Return True if an argument of a transpose rule is linear.

    The rule returns the cotangents of linear arguments, and ``None`` for the others, which are
    known values.

    Args:
      x: an argument of a transpose rule.

    Returns:
      A bool. A linear argument is a :class:`Linear` with the attribute ``aval``.

    >>> import numpy as np
    >>> from primax_core.extend import Linear, ShapedArray, is_linear
    >>> is_linear(Linear(ShapedArray((3,), np.dtype("float32"))))
    True
    >>> is_linear(np.zeros(3))
    False
    """
    return type(x) is Linear


def is_zero(x: Any) -> bool:
    """Return True if a tangent or cotangent is a symbolic zero.

    Symbolic zeros save computations: rules skip terms with them.

    Args:
      x: a tangent or cotangent: an array or a :class:`Zero`.

    Returns:
      A bool. An array of zeros is not a symbolic zero.

    >>> import numpy as np
    >>> from primax_core.extend import Zero, is_zero, typeof
    >>> is_zero(Zero(typeof(1.0)))
    True
    >>> is_zero(np.zeros(3))
    False
    """
    return type(x) is Zero


def instantiate(x: Any) -> Any:
    """An array for a tangent or cotangent that may be symbolic.

    Args:
      x: an array or a :class:`Zero`.

    Returns:
      An array of zeros for a symbolic zero; other values unchanged.

    Rules that need arrays call it, such as those that call other functions.

    >>> import numpy as np
    >>> from primax_core.extend import Zero, instantiate, typeof
    >>> instantiate(Zero(typeof(np.zeros(3, np.float32)))).tolist()
    [0.0, 0.0, 0.0]
    >>> instantiate(2.0)
    2.0
    """
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
    """Sum of two tangents or cotangents, each possibly symbolic.

    Args:
      x: an array or a :class:`Zero`.
      y: an array or a :class:`Zero` of the same type.

    Returns:
      An array, or a symbolic zero if both are.

    Nothing is computed if one of them is symbolic.

    >>> import numpy as np
    >>> from primax_core.extend import Zero, add_tangents, typeof
    >>> float(add_tangents(1.0, 2.0))
    3.0
    >>> add_tangents(Zero(typeof(1.0)), 2.0)
    2.0
    """
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
