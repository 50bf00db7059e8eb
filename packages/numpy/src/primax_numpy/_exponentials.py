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
    """Exponential of each element; integers become floats.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``exp(x)``.

    >>> import numpy as np
    >>> exp(np.array([0.0, 1.0, -np.inf], np.float32)).round(4)
    Array([1.       , 2.7182999, 0.       ], dtype=float32)
    """
    return lax.exp(as_inexact(x))


@elementwise
def exp2(x: ArrayLike, /) -> Array:
    """2 to the power of each element; integers become floats.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``log(2) * exp2(x)``.

    >>> import numpy as np
    >>> exp2(np.array([0.0, 0.5, 3.0], np.float32)).round(4)
    Array([1.    , 1.4142, 8.    ], dtype=float32)
    """
    return lax.exp2(as_inexact(x))


@elementwise
def expm1(x: ArrayLike, /) -> Array:
    """``exp(x) - 1`` of each element, accurate near zero; integers become floats.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``exp(x)``.

    >>> import numpy as np
    >>> expm1(np.array([0.0, 0.25, 1.0], np.float32)).round(4)
    Array([0.        , 0.28399998, 1.7183    ], dtype=float32)
    """
    return lax.expm1(as_inexact(x))


@elementwise
def log(x: ArrayLike, /) -> Array:
    """Natural logarithm of each element, NaN for negative floats; integers become floats.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 / x``. The logarithm of 0 is minus infinity.

    >>> import numpy as np
    >>> log(np.array([1.0, 2.0, 0.0], np.float32)).round(4)
    Array([0.    , 0.6931,   -inf], dtype=float32)
    """
    return lax.log(as_inexact(x))


@elementwise
def log2(x: ArrayLike, /) -> Array:
    """Logarithm to base 2 of each element, NaN for negative floats; integers become floats.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 / (x * log(2))``. The logarithm of 0 is minus infinity.

    >>> import numpy as np
    >>> log2(np.array([1.0, 8.0, 0.0], np.float32)).round(4)
    Array([  0.,   3., -inf], dtype=float32)
    """
    return lax.log2(as_inexact(x))


@elementwise
def log10(x: ArrayLike, /) -> Array:
    """Logarithm to base 10 of each element, NaN for negative floats; integers become floats.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 / (x * log(10))``. The logarithm of 0 is minus infinity.

    >>> import numpy as np
    >>> log10(np.array([1.0, 100.0, 0.0], np.float32)).round(4)
    Array([  0.,   2., -inf], dtype=float32)
    """
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
    """``log(1 + x)`` of each element, accurate near zero; integers become floats.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 / (1 + x)``.

    >>> import numpy as np
    >>> log1p(np.array([0.0, 0.25, -1.0], np.float32)).round(4)
    Array([0.        , 0.22309999,       -inf], dtype=float32)
    """
    return lax.log1p(as_inexact(x))


@elementwise
def sqrt(x: ArrayLike, /) -> Array:
    """Square root of each element, NaN for negative floats; integers become floats.

    The root of a complex number has a nonnegative real part.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 / (2 * sqrt(x))``, infinite at 0.

    >>> import numpy as np
    >>> sqrt(np.array([0.0, 2.0, 9.0], np.float32)).round(4)
    Array([0.    , 1.4142, 3.    ], dtype=float32)
    """
    return lax.sqrt(as_inexact(x))


@elementwise
def cbrt(x: ArrayLike, /) -> Array:
    """Real cube root of each element; integers become floats. Complex numbers raise an error.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 / (3 * cbrt(x)**2)``, infinite at 0.

    >>> import numpy as np
    >>> cbrt(np.array([8.0, -27.0, 0.0], np.float32)).round(4)
    Array([ 2., -3.,  0.], dtype=float32)
    """
    return lax.cbrt(as_real("cbrt", x))


@elementwise
def i0(x: ArrayLike) -> Array:
    """Modified Bessel function of the first kind and order 0 of each element.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      ValueError: if ``x`` is complex.

    The derivative is the function of order 1.

    >>> import numpy as np
    >>> i0(np.array([0.0, 1.0, 2.0], np.float32)).round(4)
    Array([1.       , 1.2660999, 2.2796   ], dtype=float32)
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
