"""Exponentials, logarithms and roots."""

from __future__ import annotations

import math
from typing import Any

from primax_core import custom_jvp, lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike

from ._functions import elementwise
from ._promotion import as_inexact, as_real, check_not_complex, is_complex


@elementwise
def exp(x: ArrayLike, /) -> Array:
    """Exponential of each element; integers become floats."""
    return lax.exp(as_inexact(x))


@elementwise
def exp2(x: ArrayLike, /) -> Array:
    """2 to the power of each element; integers become floats."""
    return lax.exp2(as_inexact(x))


@elementwise
def expm1(x: ArrayLike, /) -> Array:
    """``exp(x) - 1`` of each element, accurate near zero; integers become floats."""
    return lax.expm1(as_inexact(x))


@elementwise
def log(x: ArrayLike, /) -> Array:
    """Natural logarithm of each element, NaN for negative floats; integers become floats."""
    return lax.log(as_inexact(x))


@elementwise
def log2(x: ArrayLike, /) -> Array:
    """Logarithm to base 2 of each element, NaN for negative floats; integers become floats."""
    return lax.log2(as_inexact(x))


@elementwise
def log10(x: ArrayLike, /) -> Array:
    """Logarithm to base 10 of each element, NaN for negative floats; integers become floats."""
    x = as_inexact(x)
    natural: Any = lax.log(x)
    scale = math.log10(math.e)  # 1 / log(10) is rounded twice
    if is_complex(x):  # scaled separately: an infinite part must not turn the other into NaN
        scaled = lax.complex(lax.real(natural) * scale, lax.imag(natural) * scale)
    else:
        scaled = natural * scale
    return lax.convert_element_type(scaled, typeof(x).dtype)


@elementwise
def log1p(x: ArrayLike, /) -> Array:
    """``log(1 + x)`` of each element, accurate near zero; integers become floats."""
    return lax.log1p(as_inexact(x))


@elementwise
def sqrt(x: ArrayLike, /) -> Array:
    """Square root of each element, NaN for negative floats; integers become floats.

    The root of a complex number has a nonnegative real part.
    """
    return lax.sqrt(as_inexact(x))


@elementwise
def cbrt(x: ArrayLike, /) -> Array:
    """Real cube root of each element; integers become floats. Complex numbers raise an error."""
    return lax.cbrt(as_real("cbrt", x))


@elementwise
def i0(x: ArrayLike) -> Array:
    """Modified Bessel function of the first kind and order 0 of each element.

    Raises:
      ValueError: if ``x`` is complex.
    """
    check_not_complex("i0", x)
    return _bessel_0(as_inexact(x))


@custom_jvp
def _bessel_0(x: Any) -> Any:
    return lax.exp(lax.abs(x)) * lax.bessel_i0e(x)


@_bessel_0.defjvp
def _bessel_0_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    # The derivative is the function of order 1. Its factors are not differentiable at 0.
    return _bessel_0(x), t * (lax.exp(x * lax.sign(x)) * lax.bessel_i1e(x))
