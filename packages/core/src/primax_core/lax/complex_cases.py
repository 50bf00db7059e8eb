"""Special cases of complex functions: zero, infinite and NaN parts.

XLA computes complex functions well, except for these operands. The functions below lower a function
on the quadrant or half plane with nonnegative parts, correct the special cases there, and extend
the result by symmetry, as specified by annex G of the C standard and the Python array API standard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._ir import dtypes
from .._lower.lazy import hlo, mlir, shaped
from .._trace.typing import ArrayLike
from .comparison import compare

_INTEGERS = {4: dtypes.i32, 8: dtypes.i64}

Case = tuple[Any, Any, Any]
Cases = Callable[["Parts", Any, Any], list[Case]]


class Parts:
    """Conditions and constants in the dtype of the real and imaginary parts."""

    def __init__(self, ctx: Any):
        self.shape: tuple[int, ...] = ctx.out_avals[0].shape
        self.dtype: np.dtype[Any] = np.finfo(ctx.in_avals[0].dtype).dtype

    def number(self, value: float) -> Any:
        """A constant."""
        return shaped.full(np.asarray(value, self.dtype), self.shape)

    def is_(self, x: Any, value: float) -> Any:
        """True where a part has a value; infinities are positive, and zeros compare equal."""
        return compare("EQ", x, self.number(value), self.dtype)

    def nan(self, x: Any) -> Any:
        """True where a part is NaN."""
        return compare("NE", x, x, self.dtype)

    def odd(self, x: Any) -> Any:
        """True where a part is infinite or NaN."""
        return hlo.not_(hlo.is_finite(x))

    def negative(self, x: Any) -> Any:
        """True where the sign bit of a part is set."""
        whole = _INTEGERS[self.dtype.itemsize]
        bits = hlo.bitcast_convert(mlir.tensor_type(self.shape, whole), x)
        return compare("LT", bits, shaped.full(np.asarray(0, whole), self.shape), whole)


def both(*conditions: Any) -> Any:
    """True where all conditions are true."""
    result = conditions[0]
    for c in conditions[1:]:
        result = hlo.and_(result, c)
    return result


def either(x: ArrayLike, y: ArrayLike) -> Any:
    """True where at least one of two conditions is true."""
    return hlo.or_(x, y)


def with_cases(emit: Callable[..., Any], symmetry: str, cases: Cases) -> Callable[..., Any]:
    """A lowering with corrected results for complex numbers; real results are unchanged.

    Args:
      emit: ``(ctx, x, ...) -> value``.
      symmetry: ``"odd"``, ``"even"``, or ``""`` for a function without such a symmetry, in which
        case the real part keeps its sign. All functions commute with conjugation.
      cases: ``(Parts, a, b) -> [(condition, real part, imaginary part), ...]`` from nonnegative
        parts; ``None`` leaves a part unchanged. Later cases override earlier ones.
    """

    def emit_corrected(ctx, x, *rest):
        if not dtypes.issubdtype(ctx.in_avals[0].dtype, np.complexfloating):
            return emit(ctx, x, *rest)
        parts = Parts(ctx)
        a, b = hlo.real(x), hlo.imag(x)
        left, below = parts.negative(a), parts.negative(b)
        if symmetry:
            a = hlo.abs(a)
        b = hlo.abs(b)
        out = emit(ctx, hlo.complex(a, b), *rest)
        u, v = hlo.real(out), hlo.imag(out)
        for condition, new_u, new_v in cases(parts, a, b):
            u = u if new_u is None else hlo.select(condition, new_u, u)
            v = v if new_v is None else hlo.select(condition, new_v, v)
        if symmetry == "odd":
            u = hlo.select(left, hlo.negate(u), u)
        if symmetry == "even":
            below = hlo.xor(left, below)
        return hlo.complex(u, hlo.select(below, hlo.negate(v), v))

    return emit_corrected


def circular_cases(cases: Cases) -> Cases:
    """Cases of a circular function from those of the hyperbolic function: the parts are swapped."""

    def of_circular(parts: Parts, a: Any, b: Any) -> list[Case]:
        return [(condition, v, u) for condition, u, v in cases(parts, b, a)]

    return of_circular


def cosine_cases(cases: Cases) -> Cases:
    """Cases of the cosine from those of the hyperbolic cosine."""

    def of_cosine(parts: Parts, a: Any, b: Any) -> list[Case]:
        return [
            (condition, u, None if v is None else hlo.negate(v))
            for condition, u, v in cases(parts, b, a)
        ]

    return of_cosine


_INF = float("inf")
_NAN = float("nan")
_PI = float(np.pi)


def exp_cases(parts: Parts, a: ArrayLike, b: ArrayLike) -> list[Case]:
    """Real operands, and an infinite real part with an undefined angle."""
    number, unknown = parts.number, parts.odd(b)
    return [
        (parts.is_(b, 0), None, number(0)),
        (both(parts.is_(a, _INF), unknown), number(_INF), number(_NAN)),
        (both(parts.is_(a, -_INF), unknown), number(0), number(0)),
    ]


def expm1_cases(parts: Parts, a: ArrayLike, b: ArrayLike) -> list[Case]:
    """Same cases as :func:`exp_cases`."""
    number, unknown = parts.number, parts.odd(b)
    return [
        (parts.is_(b, 0), None, number(0)),
        (both(parts.is_(a, _INF), unknown), number(_INF), number(_NAN)),
        (both(parts.is_(a, -_INF), unknown), number(-1), number(0)),
    ]


def log_cases(parts: Parts, a: ArrayLike, b: ArrayLike) -> list[Case]:
    """Infinite operands, also with an undefined angle."""
    endless = either(parts.is_(hlo.abs(a), _INF), parts.is_(b, _INF))
    unknown = either(parts.nan(a), parts.nan(b))
    return [(both(endless, unknown), parts.number(_INF), parts.number(_NAN))]


def sqrt_cases(parts: Parts, a: ArrayLike, b: ArrayLike) -> list[Case]:
    """Real and infinite operands."""
    number, unknown = parts.number, parts.nan(b)
    root, real = hlo.sqrt(hlo.abs(a)), parts.is_(b, 0)
    positive = compare("GE", a, number(0), parts.dtype)
    return [
        (both(real, positive), root, number(0)),
        (both(real, compare("LT", a, number(0), parts.dtype)), number(0), root),
        (both(parts.is_(a, _INF), unknown), number(_INF), number(_NAN)),
        (both(parts.is_(a, -_INF), unknown), number(_NAN), number(_INF)),
        (parts.is_(b, _INF), number(_INF), number(_INF)),
    ]


def sinh_cases(parts: Parts, a: ArrayLike, b: ArrayLike) -> list[Case]:
    """Operands on the axes, and an infinite real part."""
    number, far, cos, sin = parts.number, parts.is_(a, _INF), hlo.cosine(b), hlo.sine(b)
    return [
        (parts.is_(a, 0), hlo.multiply(a, cos), sin),
        (both(parts.is_(a, 0), parts.odd(b)), number(0), number(_NAN)),
        (far, hlo.multiply(a, cos), hlo.multiply(a, sin)),
        (both(far, parts.odd(b)), number(_INF), number(_NAN)),
        (parts.is_(b, 0), None, number(0)),
        (both(parts.is_(b, 0), far), number(_INF), number(0)),
    ]


def cosh_cases(parts: Parts, a: ArrayLike, b: ArrayLike) -> list[Case]:
    """Operands on the axes, and an infinite real part."""
    number, far, cos, sin = parts.number, parts.is_(a, _INF), hlo.cosine(b), hlo.sine(b)
    return [
        (parts.is_(a, 0), cos, hlo.multiply(a, sin)),
        (both(parts.is_(a, 0), parts.odd(b)), number(_NAN), number(0)),
        (far, hlo.multiply(a, cos), hlo.multiply(a, sin)),
        (both(far, parts.odd(b)), number(_INF), number(_NAN)),
        (parts.is_(b, 0), None, number(0)),
        (both(parts.is_(b, 0), far), number(_INF), number(0)),
    ]


def tanh_cases(parts: Parts, a: ArrayLike, b: ArrayLike) -> list[Case]:
    """Operands on the axes, and an infinite real part."""
    number = parts.number
    return [
        (parts.is_(a, 0), number(0), None),
        (both(parts.is_(a, 0), parts.odd(b)), number(0), number(_NAN)),
        (parts.is_(b, 0), None, number(0)),
        (parts.is_(a, _INF), number(1), number(0)),
    ]


def asinh_cases(parts: Parts, a: ArrayLike, b: ArrayLike) -> list[Case]:
    """Real and infinite operands."""
    number, far, high = parts.number, parts.is_(a, _INF), parts.is_(b, _INF)
    return [
        (parts.is_(b, 0), None, number(0)),
        (both(far, hlo.is_finite(b)), number(_INF), number(0)),
        (both(hlo.is_finite(a), high), number(_INF), number(_PI / 2)),
        (both(far, high), number(_INF), number(_PI / 4)),
        (both(far, parts.nan(b)), number(_INF), number(_NAN)),
        (both(parts.nan(a), high), number(_INF), number(_NAN)),
    ]


def atanh_cases(parts: Parts, a: ArrayLike, b: ArrayLike) -> list[Case]:
    """Operands on the axes, and infinite operands."""
    number, far, high = parts.number, parts.is_(a, _INF), parts.is_(b, _INF)
    unknown = either(parts.nan(a), parts.nan(b))
    real = both(parts.is_(b, 0), compare("LE", a, number(1), parts.dtype))
    return [
        (unknown, number(_NAN), number(_NAN)),
        (either(parts.is_(a, 0), far), number(0), None),
        (both(parts.is_(a, 0), parts.nan(b)), number(0), number(_NAN)),
        (real, None, number(0)),
        (both(far, hlo.not_(parts.nan(b))), number(0), number(_PI / 2)),
        (high, number(0), number(_PI / 2)),
    ]


def acos_cases(parts: Parts, a: ArrayLike, b: ArrayLike) -> list[Case]:
    """Imaginary and infinite operands."""
    number, unknown = parts.number, parts.nan(b)
    return [
        (both(parts.is_(a, 0), unknown), number(_PI / 2), number(_NAN)),
        (both(parts.is_(hlo.abs(a), _INF), unknown), number(_NAN), number(-_INF)),
        (both(parts.nan(a), parts.is_(b, _INF)), number(_NAN), number(-_INF)),
    ]


def acosh_cases(parts: Parts, a: ArrayLike, b: ArrayLike) -> list[Case]:
    """Imaginary and infinite operands."""
    number, unknown = parts.number, parts.nan(b)
    return [
        (both(parts.is_(a, 0), unknown), number(_NAN), number(_PI / 2)),
        (both(parts.is_(hlo.abs(a), _INF), unknown), number(_INF), number(_NAN)),
        (both(parts.nan(a), parts.is_(b, _INF)), number(_INF), number(_NAN)),
    ]


def abs_cases(emit: Callable[..., Any]) -> Callable[..., Any]:
    """A lowering of magnitudes: infinite where a part is infinite, even if the other is NaN."""

    def emit_corrected(ctx, x):
        out = emit(ctx, x)
        if not dtypes.issubdtype(ctx.in_avals[0].dtype, np.complexfloating):
            return out
        parts = Parts(ctx)
        endless = either(*(parts.is_(hlo.abs(p), _INF) for p in (hlo.real(x), hlo.imag(x))))
        return hlo.select(endless, parts.number(_INF), out)

    return emit_corrected
