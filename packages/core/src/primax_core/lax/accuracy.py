"""Accuracy options of transcendental functions."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .._ir.primitive import Primitive, calling_module
from .._ir.printer import hide_defaults
from .._lower.lazy import hlo
from .elementwise import elementwise


class AccuracyMode(enum.Enum):
    """Choice between a platform's implementations of a function.

    ``DEFAULT`` lets the platform choose, ``HIGHEST`` requires its most accurate implementation.
    It is the argument ``accuracy`` of :func:`exp` and other elementwise functions. The accuracy
    is a part of the operation: derivatives of the function do not have it.

    >>> from primax_core.lax import AccuracyMode, exp
    >>> float(exp(0.0, accuracy=AccuracyMode.HIGHEST))
    1.0
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """Permitted error of an elementwise function: the largest of three bounds applies.

    It is the argument ``accuracy`` of :func:`exp` and other functions. The platform may choose a
    faster implementation within the bounds.

    Args:
      atol: absolute error.
      rtol: error relative to the result.
      ulps: error in units in the last place of the result.

    Raises:
      ValueError: if a bound is negative, or none is positive.

    >>> from primax_core.lax import Tolerance, exp
    >>> float(exp(0.0, accuracy=Tolerance(rtol=1e-3)))
    1.0
    >>> Tolerance(ulps=2)
    Tolerance(atol=0.0, rtol=0.0, ulps=2)
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError("Tolerances must be non-negative.")
        if not (atol or rtol or ulps):
            raise ValueError("At least one of atol, rtol and ulps must be set.")
        self.atol: float = float(atol)
        self.rtol: float = float(rtol)
        self.ulps: int = int(ulps)

    def _key(self) -> tuple:
        return (self.atol, self.rtol, self.ulps)

    def __eq__(self, other: object) -> bool:
        return type(other) is Tolerance and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


Accuracy: TypeAlias = AccuracyMode | Tolerance | None
"""The argument ``accuracy`` of elementwise functions; ``None`` is the platform's default."""


def result_accuracy(accuracy: Accuracy) -> Any:
    """The MLIR attribute of an accuracy; ``None`` for the default."""
    if accuracy is None or accuracy is AccuracyMode.DEFAULT:
        return None
    if isinstance(accuracy, Tolerance):
        return hlo.ResultAccuracyAttr.get(*accuracy._key(), "TOLERANCE")
    return hlo.ResultAccuracyAttr.get(0.0, 0.0, 0, accuracy.name)


def check_accuracy(accuracy: Accuracy) -> None:
    """Raise TypeError if ``accuracy`` is not a valid accuracy option."""
    if accuracy is not None and not isinstance(accuracy, (AccuracyMode, Tolerance)):
        raise TypeError(f"accuracy must be None, an AccuracyMode or a Tolerance, got {accuracy!r}")


def accurate(name: str, kinds: Sequence[str], emit: Callable[..., Any]) -> Primitive:
    """Elementwise primitive of one operand with an ``accuracy`` parameter.

    Args:
      emit: ``(ctx, value, attribute) -> value``; the attribute is ``None`` for the default.
    """
    prim = Primitive(name, home=calling_module(2))

    def emit_with(ctx, x, *, accuracy=None):
        return emit(ctx, x, result_accuracy(accuracy))

    elementwise(prim, emit_with, kinds)
    hide_defaults(name, accuracy=None)
    return prim


def operation(name: str) -> Callable[..., Any]:
    """``emit`` for a StableHLO operation with an accuracy attribute."""

    def emit(ctx, x, attribute):
        return getattr(hlo, name)(x, result_accuracy=attribute)

    return emit
