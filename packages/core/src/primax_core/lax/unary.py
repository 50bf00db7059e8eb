"""Elementwise functions of one operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._ir.printer import hide_defaults
from .._ir.primitive import Primitive
from .._lower.lazy import chlo, hlo, mlir
from .._trace.array import Array
from .._trace.core import typeof
from . import binary as b
from .families import derivatives, elementwise

ArrayLike = Any


def _unary(name: str, op: Callable, kinds: tuple[str, ...], out_dtype=None) -> Primitive:
    """A primitive whose lowering is one operation."""
    prim = Primitive(name)

    def emit(ctx, x, **_):
        return op(x)

    elementwise(prim, emit, kinds, out_dtype)
    return prim


def _accurate(name: str, dialect, op: str, kinds: tuple[str, ...]) -> Primitive:
    """A primitive that takes a wanted accuracy, hidden from jaxprs while it is the default."""
    prim = Primitive(name)

    def emit(ctx, x, accuracy):
        return getattr(dialect, op)(x)

    elementwise(prim, emit, kinds)
    hide_defaults(name, accuracy=None)
    return prim


_INEXACT, _FLOAT = ("float", "complex"), ("float",)

exp_p: Final = _accurate("exp", hlo, "exponential", _INEXACT)
exp2_p: Final = Primitive("exp2")
expm1_p: Final = _accurate("expm1", hlo, "exponential_minus_one", _INEXACT)
log_p: Final = _accurate("log", hlo, "log", _INEXACT)
log1p_p: Final = _accurate("log1p", hlo, "log_plus_one", _INEXACT)
sin_p: Final = _accurate("sin", hlo, "sine", _INEXACT)
cos_p: Final = _accurate("cos", hlo, "cosine", _INEXACT)
tan_p: Final = _accurate("tan", chlo, "tan", _INEXACT)
tanh_p: Final = _accurate("tanh", hlo, "tanh", _INEXACT)
logistic_p: Final = _accurate("logistic", hlo, "logistic", _INEXACT)
sqrt_p: Final = _accurate("sqrt", hlo, "sqrt", _INEXACT)
rsqrt_p: Final = _accurate("rsqrt", hlo, "rsqrt", _INEXACT)
cbrt_p: Final = _accurate("cbrt", hlo, "cbrt", _FLOAT)


def _emit_exp2(ctx, x, accuracy):
    aval = ctx.in_avals[0]
    scale = mlir.full(np.log(np.array(2, aval.dtype)), aval.shape)
    return hlo.exponential(hlo.multiply(x, scale))


elementwise(exp2_p, _emit_exp2, _INEXACT)
hide_defaults("exp2", accuracy=None)


def exp(x: ArrayLike, accuracy: Any = None) -> Array:
    """Exponential of each element.

    >>> float(exp(0.0))
    1.0
    """
    return exp_p.bind(x, accuracy=accuracy)


def sin(x: ArrayLike, accuracy: Any = None) -> Array:
    """Sine of each element, in radians."""
    return sin_p.bind(x, accuracy=accuracy)


def cos(x: ArrayLike, accuracy: Any = None) -> Array:
    """Cosine of each element, in radians."""
    return cos_p.bind(x, accuracy=accuracy)


def tanh(x: ArrayLike, accuracy: Any = None) -> Array:
    """Hyperbolic tangent of each element."""
    return tanh_p.bind(x, accuracy=accuracy)


def log(x: ArrayLike, accuracy: Any = None) -> Array:
    """Natural logarithm of each element."""
    return log_p.bind(x, accuracy=accuracy)


derivatives(exp_p, lambda g, out, x, **_: b.mul(g, out))
derivatives(log_p, lambda g, out, x, **_: b.div(g, x))
derivatives(sin_p, lambda g, out, x, **_: b.mul(g, cos(x)))
derivatives(cos_p, lambda g, out, x, **_: b.neg(b.mul(g, sin(x))))
derivatives(
    tanh_p, lambda g, out, x, **_: b.mul(g, b.sub(_one(x), b.mul(out, out)))
)


def _one(x):
    return np.ones((), typeof(x).dtype)


