"""Error functions: complements, inverses, the normal distribution.

Scaled functions use Chebyshev series, inverses polynomials of a logarithm, so that all functions
are relatively accurate in the tails.
"""

from __future__ import annotations

import math
import operator
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import Array, cast, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import (
    as_inexact,
    check_arrays,
    compiled,
    elementwise,
    is_complex,
    strong,
)

from .._elementary import (
    LOG_ROOT_TAU,
    ROOT_2,
    ROOT_HALF,
    ROOT_PI,
    bounded,
    chebyshev,
    chebyshev_parts,
    choose,
    exp_of_square,
    exp_of_sum,
    halves,
    is_double,
    widened,
    with_derivative,
)
from .._functions import floats, single_or_double
from ._complex_errors import complex_dawson, complex_erf, complex_erfc
from ._faddeeva import faddeeva
from ._tables import (
    DAWSON_FAR,
    DAWSON_NEAR,
    ERFCINV_DOUBLE,
    ERFCINV_ENDS,
    ERFCINV_SINGLE,
    ERFCX,
    ERFINV_DOUBLE,
    ERFINV_SINGLE,
)


@elementwise
def erf(x: ArrayLike) -> Array:
    """Error function, ``2/sqrt(π)`` times the integral of ``exp(-t²)`` from 0 to ``x``.

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type.

    Returns:
      An array of the shape of ``x``, and of its dtype for inexact numbers. Real results are
      between -1 and 1.

    Raises:
      TypeError: if the argument is not an array or a number. Lists are not converted.

    The derivative is ``2 / sqrt(pi) * exp(-x**2)``.
    Complex results are accurate relative to their modulus; the source is that of :func:`wofz`.

    >>> [round(float(v), 4) for v in erf(np.float32([0.0, 0.5, -1.0]))]
    [0.0, 0.5205, -0.8427]
    """
    x = as_inexact(x)
    return complex_erf(strong(x)) if is_complex(x) else lax.erf(x)


@elementwise
def erfc(x: ArrayLike) -> Array:
    """Complementary error function, ``1 - erf(x)``, accurate for large ``x``.

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type.

    Returns:
      An array of the shape of ``x``, and of its dtype for inexact numbers. Real results are
      between 0 and 2.

    Raises:
      TypeError: if the argument is not an array or a number. Lists are not converted.

    The derivative is ``-2 / sqrt(pi) * exp(-x**2)``. If the result underflows, use :func:`erfcx`.
    Complex results are accurate relative to their modulus; the source is that of :func:`wofz`.

    >>> [round(float(v), 4) for v in erfc(np.float32([0.0, 0.5, -1.0]))]
    [1.0, 0.4795, 1.8427]
    """
    x = as_inexact(x)
    return complex_erfc(strong(x)) if is_complex(x) else lax.erfc(x)


@elementwise
def erfinv(x: ArrayLike) -> Array:
    """Inverse error function; NaN outside [-1, 1].

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats. It is infinite at -1 and 1.

    Raises:
      TypeError: if the argument is complex, or not an array or a number. Lists are not converted.

    The derivative is ``sqrt(pi) / 2 * exp(erfinv(x)**2)``.

    >>> [round(float(v), 4) for v in erfinv(np.float32([0.0, 0.5, -1.0, 2.0]))]
    [0.0, 0.4769, -inf, nan]
    """
    x = as_inexact(x)
    aval = typeof(x)
    if is_complex(x):
        raise TypeError(f"erfinv does not accept dtype {aval.dtype.name}: it is for real numbers.")
    out = widened(inverse_error)(x)
    return cast(out, typeof(out), aval.dtype, aval.weak_type)


@custom_jvp
def inverse_error(x: Any) -> Any:
    """Inverse error function of floats of 32 or 64 bits."""
    return _inverse_error(x, (1 - x) * (1 + x))


def _inverse_error(x: Any, remainder: Any) -> Any:
    """The inverse error function of ``x``, where ``remainder`` is ``1 - x²``.

    The quotient by ``x`` is a smooth function of ``w = -log(1 - x²)``, for large ``w`` of its root.
    All intervals share one evaluation of a polynomial, with selected coefficients.
    """
    w = -lax.log(remainder)
    double = is_double(x)
    near, far = w < (6.25 if double else 5), w >= 16
    center = choose(far, lax.full_like(x, 5.0), 3.0) if double else 3.0
    gap = choose(near, w - 0.5, lax.sqrt(w) - center)
    table = ERFINV_DOUBLE if double else ERFINV_SINGLE
    columns = [list(column) for column in zip_longest(*table, fillvalue=0.0)]
    columns[0] = [c - 1 for c in columns[0]]  # the quotient less 1 has smaller rounding errors
    value: Any = 0.0
    for a, *others in reversed(columns):
        c = choose(far, lax.full_like(x, others[1]), others[0]) if double else others[0]
        value = value * gap + choose(near, lax.full_like(x, a), c)
    change = x * choose(lax.abs(x) == 1, np.inf, value)
    return choose(x == 0, x, x + change)  # with the sign of zero


@inverse_error.defjvp
def _inverse_error_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y = inverse_error(x)
    return y, t * (0.5 * ROOT_PI) * exp_of_square(y, 1.0)


# Scaled functions


def _scaled_series(x: Any) -> tuple[float, Any]:
    """The first term and the sum of the others of ``(1 + 2 x) exp(x²) erfc(x)`` for ``x >= 0``."""
    near = x < 3
    inverse = 1 / (x + 3)
    t = choose(near, 2 * (choose(near, x, 0.0) * inverse) - 1, 1 - 6 * inverse)
    return chebyshev_parts(t, ERFCX)


def scaled_complement(x: Any) -> Any:
    """``exp(x²) erfc(x)`` for ``x >= 0`` of 32 or 64 bits; the series itself is differentiated."""
    first, rest = _scaled_series(x)
    return (rest + first) / (1 + 2 * x)


def _compensated_complement(x: Any) -> Any:
    """As `scaled_complement`, without the rounding errors of the last two sums; below 1/2 they are
    large compared with the result."""
    first, rest = _scaled_series(x)
    numerator, denominator = rest + first, 1 + 2 * x
    lost = lax.stop_gradient((first - numerator) + rest)
    excess = lax.stop_gradient(choose(x < 0.5, (1 - denominator) + 2 * x, 0.0))
    quotient = numerator / denominator
    # The numerator is 1.1 within 8 %, so that 0.9 times the quotient divides by the denominator.
    return quotient + (lost - quotient * excess) * lax.stop_gradient(0.9 * quotient)


@widened
def _erfcx(x: Any) -> Any:
    value = _compensated_complement(lax.abs(x))
    return choose(x < 0, 2 * exp_of_square(choose(x < 0, x, 0.0), 1.0) - value, value)


@elementwise
def erfcx(x: ArrayLike) -> Array:
    """Scaled complementary error function, ``exp(x²) erfc(x)``.

    For complex numbers it is ``wofz(1j * x)``. For real numbers it overflows below about -9.4
    (``float32``) or -26.6 (``float64``).

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.

    The derivative is ``2 * x * erfcx(x) - 2 / sqrt(pi)``.

    >>> round(float(erfcx(100.0)), 6)
    0.005642
    """
    x = strong(x)
    if is_complex(x):
        return faddeeva(lax.complex(-lax.imag(x), lax.real(x)))
    return _erfcx(x)


@with_derivative(lambda x, y: 1 - 2 * (x * y))
def _dawson_near(x: Any) -> Any:
    square = lax.square(x)
    inverse = 1 / (1 + 2 * square)
    return x * inverse * (1 + 2 * square * inverse * chebyshev(square / 8 - 1, DAWSON_NEAR))


@widened
def _dawson(x: Any) -> Any:
    size = lax.abs(x)
    near = size <= 4
    far = choose(near, 4.0, x)
    return choose(
        near,
        _dawson_near(choose(near, x, 0.0)),
        chebyshev(32 / far / far - 1, DAWSON_FAR) / (2 * far),
    )


@elementwise
def dawsn(x: ArrayLike) -> Array:
    """Dawson integral, ``exp(-x²)`` times the integral of ``exp(t²)`` from 0 to ``x``.

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type.

    Returns:
      An array of the shape of ``x``, and of its dtype for inexact numbers.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.

    The function is odd. The derivative is ``1 - 2 * x * dawsn(x)``. Complex results are accurate
    relative to their modulus; the source is that of :func:`wofz`.

    >>> round(float(dawsn(1.0)), 5)
    0.53808
    """
    x = strong(as_inexact(x))
    return complex_dawson(x) if is_complex(x) else _dawson(x)


@elementwise
def wofz(z: ArrayLike) -> Array:
    """Faddeeva function, ``exp(-z²) erfc(-i z)``, of complex numbers.

    The algorithm is that of Al Azah and Chandler-Wilde, SIAM J. Numer. Anal. 59 (2021): a
    trapezoidal or midpoint rule, corrected by the residue of the nearby pole.

    Args:
      z: real or complex numbers, an array or a number; integers are converted to the default float
        type.

    Returns:
      A complex array of the shape of ``z``.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.

    The derivative is ``2j / sqrt(pi) - 2 * z * wofz(z)``.

    >>> complex(wofz(0.0))
    (1+0j)
    """
    z = strong(z)
    if not is_complex(z):
        dtype = np.dtype(np.complex128 if is_double(z) else np.complex64)
        z = lax.convert_element_type(z, dtype)
    return faddeeva(z)


# The normal distribution


def _tail(size: Any) -> Any:
    """Upper tail probability of the normal distribution for a number ``>= 0``."""
    return 0.5 * (scaled_complement(ROOT_HALF * size) * _bell(size))


@custom_jvp
def _lower_tail(x: Any) -> Any:
    size = lax.abs(x)
    middle = _central(choose(size < 1, x, 0.0))
    tail = choose(size == np.inf, 0.0, _tail(size))
    return choose(size < 1, middle, choose(x < 0, tail, 1 - tail))


def _central(x: Any) -> Any:
    """The lower tail for ``|x| < 1``, by the power series: DLMF 7.6.1."""
    square = x * x
    series: Any = 0.0
    for k in reversed(range(15 if is_double(x) else 9)):
        series = series * square + (-0.5) ** k / (math.factorial(k) * (2 * k + 1))
    return 0.5 + x * (series * (1 / math.sqrt(2 * math.pi)))


def _bell(x: Any) -> Any:
    """``exp(-x²/2)``, with the square computed to extra precision."""
    return _half_bell(bounded(x, -60.0, 60.0))


def _half_bell(x: Any) -> Any:
    head, rest = halves(x)
    return exp_of_sum(-0.5 * (head * head), -0.5 * (rest * (head + x)))


@_lower_tail.defjvp
def _lower_tail_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _lower_tail(x), t * (_bell(x) * (1 / math.sqrt(2 * math.pi)))


@elementwise
def ndtr(x: ArrayLike) -> Array:
    """CDF of the standard normal distribution, accurate in the lower tail.

    Args:
      x: an array or a number of dtype ``float32`` or ``float64``.

    Returns:
      An array of the shape of ``x``, between 0 and 1.

    Raises:
      TypeError: if the dtype is neither ``float32`` nor ``float64``, or the argument is not an
        array or a number.

    The derivative is the density, ``exp(-x**2 / 2) / sqrt(2 * pi)``. The inverse is :func:`ndtri`.

    >>> float(ndtr(0.0))
    0.5
    >>> [round(float(v), 4) for v in ndtr(np.float32([-1.0, 1.0, 100.0]))]
    [0.1587, 0.8413, 1.0]
    """
    check_arrays("ndtr", x)
    single_or_double("ndtr", x)
    return _lower_tail(strong(x))


@custom_jvp
def _log_lower_tail(x: Any) -> Any:
    size = lax.abs(x)
    near = size <= 0.5
    # Of larger numbers the scaled tail does not matter.
    z = lax.min(choose(near, 1.0, size), lax.full_like(x, 1e6))
    first, rest = _scaled_series(ROOT_HALF * z)
    # A quotient with two uses would be a loop of its own; a product with a reciprocal is not.
    half = 0.5 * (rest + first) * (1 / (1 + (2 * ROOT_HALF) * z))
    middle = _central(choose(near, x, 0.0))
    low = lax.log(choose(near, middle, half)) - choose(near, 0.0, 0.5 * lax.square(x))
    # log1p(-q) is -2 artanh(r).
    q = choose(near, 1 - middle, half * _bell(z))
    r = q * (1 / (2 - q))
    square = r * r
    series: Any = 0.0
    for k in reversed(range(18 if is_double(x) else 9)):
        series = series * square + 2 / (2 * k + 1)
    return choose(x < 0, low, -r * series)


@_log_lower_tail.defjvp
def _log_lower_tail_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    left = x < -1
    z = choose(left, x, -1.0)
    low = math.sqrt(2 / math.pi) / scaled_complement(-ROOT_HALF * z)
    y = choose(left, 0.0, x)
    high = _bell(y) / ((1 - 0.5 * lax.erfc(ROOT_HALF * y)) * math.sqrt(2 * math.pi))
    return _log_lower_tail(x), t * choose(left, low, high)


@compiled(name="log_ndtr")
def _log_ndtr(x):
    single_or_double("log_ndtr", x)
    return _log_lower_tail(strong(x))


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Logarithm of :func:`ndtr`, accurate in both tails.

    Args:
      x: ``float32`` or ``float64``.
      series_order: an integer from 0 to 30; ignored, because no asymptotic series is used.

    Raises:
      TypeError: if the dtype is neither ``float32`` nor ``float64``, or ``series_order`` is not an
        integer.
      ValueError: if ``series_order`` is out of range.

    >>> round(float(log_ndtr(-100.0)), 3)
    -5005.524
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if not 0 <= operator.index(series_order) <= 30:
        raise ValueError(f"series_order must be from 0 to 30, got {series_order}")
    check_arrays("log_ndtr", x)
    out: Array = _log_ndtr(x)
    return out


@custom_jvp
def _complement_inverse(y: Any) -> Any:
    """Inverse of ``erfc``."""
    return _scaled_complement_inverse(y, 1.0)


def _scaled_complement_inverse(y: Any, scale: float) -> Any:
    """``scale`` times the inverse of ``erfc``.

    As `_inverse_error` up to the end of its first interval; in the tail, where ``w`` is larger, the
    quotient by the root of ``w`` is a smooth function of the root's inverse.
    """
    q = lax.min(y, 2 - y)
    q = choose(q > 0, q, 0.5)
    double = is_double(y)
    x = 1 - q
    w = -lax.log(q * (2 - q))
    ends = ERFCINV_ENDS[double]
    near, root = w < ends[0] ** 2, lax.sqrt(round(scale * scale) * w)
    far, inverse = w >= ends[1] ** 2, 1 / (root * (1 / scale) + 1)
    (a, b), (c, d) = (_onto_unit(1 / (1 + v), 1 / (1 + u)) for u, v in pairwise(ends))
    model = lax.full_like(y, 0.0)
    gap = choose(far, c * inverse + d, a * inverse + b)
    gap = choose(near, w - 0.5, gap)
    first, *rest = (ERFINV_DOUBLE if double else ERFINV_SINGLE)[0]
    middle = (scale * first - 1, *(scale * v for v in rest))  # as in `_inverse_error`
    columns = list(
        zip_longest(middle, *(ERFCINV_DOUBLE if double else ERFCINV_SINGLE), fillvalue=0.0)
    )
    value: Any = 0.0
    for first, *others in reversed(columns):
        tail = choose(far, model + others[1], others[0])
        value = value * gap + choose(near, model + first, tail)
    base = choose(near, x, root)
    lost = choose(near, (1 - x) - q, 0.0)  # the rounding error of x
    size = base + (base * value + lost * (1 + value))
    out = choose(y < 1, size, -size)
    ends_of_domain = choose(y == 0, np.inf, choose(y == 2, lax.full_like(y, -np.inf), np.nan))
    return choose((y > 0) & (y < 2), out, ends_of_domain)


def _onto_unit(low: float, high: float) -> tuple[float, float]:
    """Factor and constant of the linear function that is -1 at ``low`` and 1 at ``high``."""
    return 2 / (high - low), -(high + low) / (high - low)


@_complement_inverse.defjvp
def _complement_inverse_jvp(primals, tangents):
    (y,), (t,) = primals, tangents
    x = _complement_inverse(y)
    tail, derivative = _tail_derivative(y, x)
    near = exp_of_square(choose(tail, 0.0, x), 1.0)
    return x, t * (-0.5 * ROOT_PI) * choose(tail, derivative, near)


def _tail_derivative(y: Any, x: Any) -> tuple[Any, Any]:
    """A condition, and ``exp(x²)`` for ``y = erfc(x)`` where it holds, from ``y``: the square would
    multiply the rounding error of ``x``."""
    q = choose(y < 1, y, 2 - y)
    tail = (q < 0.25) & (q > 0)
    return tail, scaled_complement(choose(tail, lax.abs(x), 1.0)) / choose(tail, q, 1.0)


@elementwise
def erfcinv(y: ArrayLike) -> Array:
    """Inverse complementary error function; NaN outside [0, 2].

    Args:
      y: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``y``. It is infinite at 0 and ``-inf`` at 2.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivative is ``-sqrt(pi) / 2 * exp(erfcinv(y)**2)``.

    >>> round(float(erfcinv(1e-20)), 3)
    6.602
    """
    return widened(_complement_inverse)(strong(*floats("erfcinv", y)))


@custom_jvp
def _normal_quantile(p: Any) -> Any:
    # 2 p is exact; for small p, 1 - p is not.
    x = -_scaled_complement_inverse(2 * p, ROOT_2)
    return choose(x == 0, 0.0, x)


@_normal_quantile.defjvp
def _normal_quantile_jvp(primals, tangents):
    (p,), (t,) = primals, tangents
    x = _normal_quantile(p)
    tail, derivative = _tail_derivative(2 * p, x * ROOT_HALF)
    near = 1 / _half_bell(choose(tail, 0.0, x))
    return x, t * math.exp(LOG_ROOT_TAU) * choose(tail, derivative, near)


@elementwise
def ndtri(p: ArrayLike) -> Array:
    """Quantile function of the standard normal distribution, the inverse of :func:`ndtr`; NaN
    outside [0, 1].

    Args:
      p: probabilities, an array or a number of dtype ``float32`` or ``float64``.

    Returns:
      An array of the shape of ``p``. It is ``-inf`` at 0 and infinite at 1.

    Raises:
      TypeError: if the dtype is neither ``float32`` nor ``float64``, or the argument is not an
        array or a number.

    The derivative is the reciprocal of the density at the result.

    >>> float(ndtri(0.5)), round(float(ndtri(1e-30)), 3)
    (0.0, -11.464)
    """
    check_arrays("ndtri", p)
    single_or_double("ndtri", p)
    return _normal_quantile(strong(p))
