"""The error function, its complement and its inverse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from .._ir import dtypes
from .._lower.lazy import chlo, hlo, mlir
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .accuracy import Accuracy, accurate, check_accuracy
from .arithmetic import add, mul, neg, square, sub
from .conversion import convert, reduce_precision
from .elementwise import derivatives, elementwise_samples, fast_path, scalar_like, unary
from .exponential import exp, expm1
from .selection import clamp

_FLOAT: Final = ("float",)


def _in_float32(op: str) -> Callable:
    """A CHLO operation, computed in ``float32`` for floats with at most 8 bits."""

    def emit(ctx, x, *_):
        aval = ctx.in_avals[0]
        if aval.dtype.itemsize > 1:
            return getattr(chlo, op)(x)
        out = getattr(chlo, op)(hlo.convert(mlir.tensor_type(aval.shape, dtypes.f32), x))
        return hlo.convert(mlir.type_of(aval), out)

    return emit


def _emit_erfc(ctx, x, accuracy):
    if ctx.in_avals[0].dtype in (dtypes.f32, dtypes.f64):
        from .elementary import emit_erfc  # loaded with the first erfc

        return emit_erfc(ctx, x)
    return _in_float32("erfc")(ctx, x)


erf_p: Final = unary("erf", _FLOAT, _in_float32("erf"))
erfc_p: Final = accurate("erfc", _FLOAT, _emit_erfc)
erf_inv_p: Final = unary("erf_inv", _FLOAT, _in_float32("erf_inv"))


@fast_path(erf_p)
def erf(x: ArrayLike) -> Array:
    """Error function ``2/√π ∫ exp(-t²) dt`` from 0 to each element.

    Args:
      x: an array or a number of floating dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` does not have a floating dtype, or is not an array or a number.

    Floats narrower than 32 bits are computed in ``float32``. The derivative is ``2/√π exp(-x²)``.
    Under ``vmap`` the batch is one operand.

    >>> import numpy as np
    >>> x = np.array([0.0, 0.5, 1.0], np.float32)
    >>> print(np.asarray(erf(x)).round(4))
    [0.     0.5205 0.8427]
    """
    return erf_p.bind(x)


@fast_path(erfc_p, accuracy=None)
def erfc(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Complementary error function ``1 - erf(x)``, accurate for large elements.

    Args:
      x: an array or a number of floating dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` does not have a floating dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``-2/√π exp(-x²)``. Under ``vmap`` the batch is one operand.

    >>> import numpy as np
    >>> x = np.array([0.0, 0.5, 1.0], np.float32)
    >>> print(np.asarray(erfc(x)).round(4))
    [1.     0.4795 0.1573]
    >>> f"{float(erfc(np.float32(6))):.3g}"
    '2.15e-17'
    """
    check_accuracy(accuracy)
    return erfc_p.bind(x, accuracy=accuracy)


@fast_path(erf_inv_p)
def erf_inv(x: ArrayLike) -> Array:
    """Inverse error function of each element.

    -1 and 1 give infinities; elements outside [-1, 1] give NaN.

    Args:
      x: an array or a number of floating dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` does not have a floating dtype, or is not an array or a number.

    The derivative is ``√π/2 exp(y²)`` for the result ``y``. Under ``vmap`` the batch is one
    operand.

    >>> import numpy as np
    >>> x = np.array([0.0, 0.5, 1.0, 2.0], np.float32)
    >>> print(np.asarray(erf_inv(x)).round(4))
    [0.     0.4769    inf    nan]
    """
    return erf_inv_p.bind(x)


def _bell(x: Any) -> Any:
    """``exp(-x²)``, with a correction for the rounding error of the square."""
    aval = typeof(x)
    if aval.dtype.itemsize < 4:
        return convert(_bell(convert(x, dtypes.f32)), aval.dtype, aval.weak_type)
    double = aval.dtype == dtypes.f64
    bound = 40.0 if double else 16.0  # the result is 0 beyond this bound
    x = clamp(scalar_like(x, -bound), x, scalar_like(x, bound))
    head = reduce_precision(x, 11 if double else 8, 25 if double else 11)
    rest = mul(sub(head, x), add(head, x))
    return mul(exp(neg(square(head))), add(scalar_like(x, 1), expm1(rest)))


_PEAK: Final = 2 / math.sqrt(math.pi)

derivatives(erf_p, lambda g, out, x: mul(scalar_like(x, _PEAK), mul(g, _bell(x))))
derivatives(erfc_p, lambda g, out, x, **_: mul(scalar_like(x, -_PEAK), mul(g, _bell(x))))
derivatives(erf_inv_p, lambda g, out, x: mul(scalar_like(x, 1 / _PEAK), mul(g, exp(square(out)))))


elementwise_samples(erf_p, "f")
elementwise_samples(erfc_p, "f", accuracy=None)
elementwise_samples(erf_inv_p, "f", low=-0.9, high=0.9)
