"""Gamma and beta functions: logarithms, ratios, derivatives, incomplete functions."""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import Array, cast, dtypes, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import (
    as_inexact,
    check_arrays,
    compiled,
    elementwise,
    is_complex,
    strong,
)

from .. import _double_words as double_words
from .._elementary import LOG_ROOT_TAU, bounded, chebyshev, choose, is_double, widened
from .._functions import floats, like, promoted_floats
from ._complex_integrals import complex_digamma
from ._operands import if_any, matched, same_shape
from ._sines import of_turns
from ._tables import GAMMA

# Bernoulli numbers B(2k) over 2k (2k - 1): Stirling's series in 1 / z
_STIRLING: Final = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400,
)  # fmt: skip


@elementwise
def gammaln(x: ArrayLike) -> Array:
    """Logarithm of the absolute value of the gamma function, for real numbers.

    >>> float(gammaln(1.0))
    0.0
    """
    return lax.lgamma(as_inexact(x))


def _stirling(z: Any) -> Any:
    """The principal branch of log-gamma for complex numbers of real part 1/2 or more."""
    shift = 10 if is_complex(z) and typeof(z).dtype == np.complex128 else 6
    removed: Any = 0.0
    for k in range(shift):
        removed = removed + lax.log(z + k)
    z = z + shift
    inverse = 1 / z
    square = inverse * inverse
    series: Any = 0.0
    for c in reversed(_STIRLING):
        series = series * square + c
    return (z - 0.5) * lax.log(z) - z + LOG_ROOT_TAU + series * inverse - removed


def _log_gamma_complex(z: Any) -> Any:
    """The principal branch, by reflection for real parts below 1/2, with the branch of
    ``log(sin(πz))`` that is analytic in the upper half-plane."""
    left, below = lax.real(z) < 0.5, lax.imag(z) < 0
    upper = choose(below, lax.conj(z), z)
    right = _stirling(choose(left, 1 - upper, upper))
    reflected = choose(left, upper, lax.full_like(z, 0.25))
    cut = reflected - lax.complex(
        lax.floor(lax.real(reflected) + 0.5), lax.full_like(lax.real(z), 0.0)
    )
    quarter = lax.full_like(z, 1j * math.pi)
    # log(sin(πz)) = log(1 - exp(2πiz)) - iπz + iπ/2 - log(2); the exponential has period 1.
    sine = lax.log(-lax.expm1(2 * quarter * cut)) - quarter * (reflected - 0.5) - math.log(2)
    out = choose(left, math.log(math.pi) - sine - right, right)
    out = choose(below, lax.conj(out), out)
    at_pole = (lax.imag(z) == 0) & _is_pole(lax.real(z))
    return choose(at_pole, lax.full_like(out, complex(math.nan, math.nan)), out)


def _digamma_complex(z: Any) -> Any:
    left = lax.real(z) < 0.5
    y = choose(left, 1 - z, z)
    shift = 10 if typeof(z).dtype == np.complex128 else 6
    removed: Any = 0.0
    for k in range(shift):
        removed = removed + 1 / (y + k)
    y = y + shift
    inverse = 1 / y
    square = inverse * inverse
    series: Any = 0.0
    for k, c in reversed(list(enumerate(_STIRLING))):
        series = series * square + c * (2 * k + 1)
    value = lax.log(y) - 0.5 * inverse - series * square - removed
    safe = choose(left, z, lax.full_like(z, 0.25))
    near = safe - lax.complex(lax.floor(lax.real(safe) + 0.5), lax.full_like(lax.real(z), 0.0))
    return choose(left, value - math.pi / lax.tan(math.pi * near), value)


_complex_log_gamma = custom_jvp(_log_gamma_complex)


@_complex_log_gamma.defjvp
def _complex_log_gamma_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    return _complex_log_gamma(z), t * _digamma_complex(z)


@elementwise
def loggamma(x: ArrayLike) -> Array:
    """Logarithm of the gamma function: the principal branch for complex numbers.

    The result is real for real numbers, and NaN for nonpositive ones.

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type.

    The derivative is :func:`digamma`.

    >>> round(float(loggamma(10.0)), 4), float(loggamma(-0.5))
    (12.8018, nan)
    """
    x = as_inexact(x)
    if is_complex(x):
        return _complex_log_gamma(x)
    positive = (x > 0) | (x != x)
    return choose(positive, lax.lgamma(x), np.nan)


def _is_pole(x: Any) -> Any:
    return (x <= 0) & (x == lax.floor(x))


def plain_sign(x: Any) -> Any:
    """The sign of gamma, 1 at its poles."""
    odd = lax.rem(lax.abs(lax.floor(x)), lax.full_like(x, 2.0)) == 1
    return choose((x < 0) & odd & ~_is_pole(x), lax.full_like(x, -1.0), 1.0)


def _sign_of_gamma(x: Any) -> Any:
    """The sign of gamma, 1 or -1; at 0 that of the argument, NaN at the other poles."""
    at_pole = choose(x == 0, lax.sign(1 / x), np.nan)
    sign = choose(_is_pole(x) | (x == -np.inf), at_pole, plain_sign(x))
    return choose(x != x, x, sign)


@elementwise
def gammasgn(x: ArrayLike) -> Array:
    """Sign of the gamma function; at 0 that of the argument, NaN at the other poles.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Raises:
      ValueError: if the argument is complex.

    The derivative is 0.

    >>> [round(float(v), 4) for v in gammasgn(np.float32([2.0, -0.5, -1.5, -1.0]))]
    [1.0, -1.0, 1.0, nan]
    """
    return _sign_of_gamma(strong(*floats("gammasgn", x)))


def _by_product(y: Any, steps: tuple[int, ...]) -> Any:
    """Gamma from 1/2 to 2 plus the sum of ``steps``, by a series on [1, 2] and a product.

    Each step multiplies by its number of factors, or not at all.
    """
    product = lax.full_like(y, 1.0)
    low = y < 1
    rest = choose(low, y + 1, y)
    left = sum(steps)
    for n in steps:
        left -= n
        more = rest > left + 2
        factors = rest - 1
        for k in range(2, n + 1):
            factors = factors * (rest - k)
        product = choose(more, product * factors, product)
        rest = choose(more, rest - n, rest)
    value = product * chebyshev(2 * bounded(rest, 1.0, 2.0) - 3, GAMMA)
    return choose(low, value / y, value)


def _by_stirling(y: Any) -> Any:
    """Gamma from 20 on. The power is split into halves, because the whole would overflow too
    early."""
    half = lax.pow(y, 0.5 * y - 0.25)
    size = lax.exp(_stirling_rest(y) - y)
    return half * (size * half) * math.sqrt(2 * math.pi)


@custom_jvp
def _gamma(x: Any) -> Any:
    """Gamma by a product (in double precision for moderate numbers only), and by reflection below
    1/2."""
    pole = _is_pole(x)
    left, far = x < 0.5, x < -0.5
    # gamma(1 - x) = -x gamma(-x), because rounding 1 - x would cost digits.
    y = choose(left, choose(far, -x, 1 - x), x)
    if is_double(x):
        limit, near = 172.0, y < 20
        few = _by_product(choose(near, y, 1.0), (8, 5, 2, 1, 1, 1))
        right = choose(near, few, _by_stirling(bounded(y, 20.0, limit)))
    else:
        limit = 36.0
        right = _by_product(bounded(y, 0.5, limit), (16, 9, 4, 2, 1, 1, 1))
    right = choose(y > limit, np.inf, right)
    wave, _ = of_turns(0.5 * x)
    mirrored = math.pi / (choose(pole, 1.0, wave) * right) / choose(far, -x, 1.0)
    out = choose(left, mirrored, right)
    at_pole = choose(x == 0, 1 / x, np.nan)
    return choose(pole | (x == -np.inf), at_pole, choose(x != x, x, out))


@_gamma.defjvp
def _gamma_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y = _gamma(x)
    return y, t * (y * lax.digamma(x))


def real_gamma(x: Any) -> Any:
    """Gamma of real numbers of any dtype."""
    return widened(_gamma)(x)


@elementwise
def gamma(x: ArrayLike) -> Array:
    """Gamma function of real and complex numbers; NaN at its poles, infinite at zero.

    >>> float(gamma(5.0))
    24.0
    """
    x = strong(x)
    return lax.exp(_complex_log_gamma(x)) if is_complex(x) else real_gamma(x)


def _whole_where(whole: Any, value: Any) -> Any:
    """Values rounded where they must be integers that the dtype represents; derivatives are
    unchanged."""
    small = lax.abs(value) < 0.25 / float(dtypes.finfo(typeof(value).dtype).eps)
    change = choose(whole & small, lax.floor(value + 0.5) - value, 0.0)
    return value + lax.stop_gradient(change)


@compiled(name="factorial")
def _factorial(n):
    (n,) = floats("factorial", n)
    inside = (n >= 0) | (n != n)
    y = choose(inside, n, 1.0)
    value = _whole_where(lax.floor(y) == y, like(real_gamma(y + 1), n))
    out = choose(inside, value, 0.0)
    return cast(out, typeof(out), typeof(n).dtype, typeof(n).weak_type)


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Factorials, ``gamma(n + 1)``; 0 for negative numbers.

    Args:
      n: real numbers.
      exact: must be ``False``.

    Raises:
      NotImplementedError: for ``exact=True``, which would need integers of arbitrary precision.

    >>> float(factorial(5))
    120.0
    """
    if exact:
        raise NotImplementedError(
            "factorial with exact=True needs integers of arbitrary precision: use math.factorial"
        )
    check_arrays("factorial", n)
    out: Array = _factorial(n)
    return out


# Ratios of gammas


def _stirling_rest(x: Any) -> Any:
    """The error of Stirling's formula for log-gamma, from 8 on."""
    inverse = 1 / x
    series: Any = 0.0
    for c in reversed(_STIRLING):
        series = series * (inverse * inverse) + c
    return series * inverse


@custom_jvp
def log_beta(a: Any, b: Any) -> Any:
    """Logarithm of the absolute value of the beta function, for operands of one dtype and shape.

    For large arguments, terms of Stirling's formula that cancel are omitted.
    """
    low, high = lax.min(a, b), lax.max(a, b)
    large = high >= 8
    both = low >= 8
    big = choose(large, high, 8.0)
    small = choose(low > 0, low, 1.0)
    total = small + big
    tail = _stirling_rest(big) - _stirling_rest(total) - (big - 0.5) * lax.log1p(small / big)
    one = lax.lgamma(small) + tail - small * lax.log(total) + small
    part = choose(both, small, 8.0)
    joint = part + big
    two = (
        (part - 0.5) * lax.log(part / joint) - 0.5 * lax.log(joint) + LOG_ROOT_TAU
        + _stirling_rest(part) + _stirling_rest(big) - _stirling_rest(joint)
        - (big - 0.5) * lax.log1p(part / big)
    )  # fmt: skip
    rounded, error = double_words.total(a, b)
    # Near the zero at (1, 1) the rounding error of a + b matters. It is multiplied by the first
    # terms of the digamma function of z + 1/2, the derivative of DLMF 5.11.8.
    z = choose(low > 0.25, rounded - 0.5, 1.0)
    digamma = lax.log(z) + 1 / (24 * lax.square(z))
    correction = choose(low > 0.25, error, 0.0) * digamma
    plain = lax.lgamma(a) + lax.lgamma(b) - lax.lgamma(rounded) - correction
    far = large & (low > 0) & (high < np.inf)
    return choose(far, choose(both, two, one), plain)


@log_beta.defjvp
def _log_beta_jvp(primals, tangents):
    (a, b), (ta, tb) = primals, tangents
    total = lax.digamma(a + b)
    return log_beta(a, b), ta * (lax.digamma(a) - total) + tb * (lax.digamma(b) - total)


@elementwise
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Logarithm of the absolute value of the beta function.

    >>> round(float(betaln(1e8, 1.0)), 3)
    -18.421
    """
    a, b = matched("betaln", a, b)
    return log_beta(a, b)


@elementwise
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Beta function, ``gamma(a) gamma(b) / gamma(a + b)``.

    >>> round(float(beta(2.0, 3.0)), 5)
    0.08333
    """
    a, b = map(strong, matched("beta", a, b))
    sign = _sign_of_gamma(a) * _sign_of_gamma(b) * _sign_of_gamma(a + b)
    return sign * lax.exp(log_beta(a, b))


@compiled("repetition", name="comb")
def _comb(n, k, *, repetition):
    n, k = matched("comb", n, k)
    none = (k == 0) & (n >= 0)
    if repetition:
        n = n + k - 1
    inside = (n >= 0) & (k >= 0) & (k <= n)
    top, part = choose(inside, n, 1.0), choose(inside, k, 0.0)
    value = lax.exp(-log_beta(top - part + 1, part + 1)) / (top + 1)
    whole = (lax.floor(top) == top) & (lax.floor(part) == part)
    bad = (n != n) | (k != k)
    value = choose(inside, _whole_where(whole, value), choose(none, lax.full_like(n, 1.0), 0.0))
    return choose(bad, np.nan, value)


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """Binomial coefficients: the number of ways to choose ``k`` of ``N``.

    Args:
      N, k: numbers, not necessarily integers; the result is 0 unless ``0 <= k <= N``.
      repetition: count choices with repetition.

    >>> float(comb(5, 2))
    10.0
    """
    check_arrays("comb", N, k)
    out: Array = _comb(N, k, repetition=bool(repetition))
    return out


def _shifted(x: Any) -> tuple[Any, Any]:
    """``y >= 8`` and ``p`` with ``gamma(x) = gamma(y) / p``, for positive ``x``."""
    near = x < 8
    low = choose(near, x, 1.0)
    product = low
    for k in range(1, 8):
        product = product * (low + k)
    return choose(near, x + 8, x), choose(near, product, 1.0)


def _rising_of_positive(z: Any, m: Any) -> Any:
    """``gamma(z + m) / gamma(z)`` for positive ``z`` and ``z + m``: Stirling's formula, without
    the terms that cancel, and with the power as one operation.

    The difference of the arguments is computed from ``m``: the rounding errors of the arguments
    themselves then have almost no influence.
    """
    end = z + m
    (u, below), (v, above) = _shifted(z), _shifted(end)
    moved = choose(end < 8, lax.full_like(m, 8.0), 0.0) - choose(z < 8, lax.full_like(m, 8.0), 0.0)
    gap = m + moved
    rounding = m - (gap - moved)
    # In float64, XLA's log1p errs by 100 ulp near -0.4.
    falls = gap < 0
    sign = choose(falls, lax.full_like(m, -1.0), 1.0)
    log_ratio = sign * lax.log1p(sign * gap / choose(falls, v, u))
    bend = (u - 0.5) * log_ratio - gap + (_stirling_rest(v) - _stirling_rest(u))
    half = lax.pow(v, 0.5 * gap)
    return (half * (lax.exp(bend) * (1 + rounding * lax.log(v)) * (below / above))) * half


@elementwise
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Rising factorial, ``gamma(z + m) / gamma(z)``, which is ``z (z + 1) ... (z + m - 1)``.

    Args:
      z, m: real numbers whose shapes broadcast; integers are converted to the default float type.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      ValueError: if an argument is complex, or the shapes do not broadcast.

    >>> float(poch(1.0, 4.0))
    24.0
    """
    z, m = map(strong, matched("poch", z, m))
    end = z + m
    inner = (z > 0) & (end > 0) & (z < np.inf) & (end < np.inf)
    positive = _rising_of_positive(choose(inner, z, 1.0), choose(inner, m, 1.0))
    (others,) = if_any(~inner, 1, _rising_of_others, z, m)
    return choose(inner, positive, others)


def _rising_of_others(z: Any, m: Any) -> tuple[Any]:
    """``gamma(z + m) / gamma(z)`` also for negative numbers and poles."""
    end = z + m
    from_pole, to_pole = _is_pole(z), _is_pole(end)
    z_safe, end_safe = choose(from_pole, 0.5, z), choose(to_pole, 0.5, end)
    value = (
        plain_sign(z_safe) * plain_sign(end_safe)
        * lax.exp(lax.lgamma(end_safe) - lax.lgamma(z_safe))
    )  # fmt: skip
    # If both are poles, the result is the ratio of residues.
    a, b = choose(from_pole & to_pole, 1 - z, 1.0), choose(from_pole & to_pole, 1 - end, 1.0)
    odd = lax.rem(lax.abs(m), lax.full_like(m, 2.0)) == 1
    ratio = lax.exp(lax.lgamma(a) - lax.lgamma(b)) * choose(odd, lax.full_like(m, -1.0), 1.0)
    out = choose(from_pole, choose(to_pole, ratio, 0.0), choose(to_pole, np.inf, value))
    # The reciprocal of gamma is 0 at its poles, and has a derivative there.
    pole = choose(from_pole & ~to_pole, 1 - z, 1.0)
    alternating = choose(lax.rem(pole, lax.full_like(z, 2.0)) == 1, lax.full_like(z, 1.0), -1.0)
    slope = plain_sign(end_safe) * lax.exp(lax.lgamma(end_safe) + lax.lgamma(pole)) * alternating
    slope = choose(from_pole & ~to_pole, lax.stop_gradient(slope), 0.0)
    out = out + slope * (z - lax.stop_gradient(z))
    # Where `m` is 0, `out` is 1 and has the derivatives of the function, except for infinite `z`.
    out = choose((z != z) | (m != m), np.nan, out)
    return (choose((m == 0) & ~lax.is_finite(z), 1.0, out),)


# Incomplete functions and derivatives


@elementwise
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Regularized incomplete beta function: the integral of ``t^(a-1) (1-t)^(b-1)`` from 0 to
    ``x``, divided by that from 0 to 1. It is differentiable once with respect to ``a`` and ``b``,
    and arbitrarily often with respect to ``x``.

    Args:
      a, b, x: real numbers whose shapes broadcast; integers are converted to the default float
        type; ``x`` is in [0, 1].

    Returns:
      An array of the common shape and the promoted dtype. It is between 0 and 1.

    >>> round(float(betainc(2.0, 3.0, 0.5)), 4)
    0.6875
    """
    return lax.betainc(*matched("betainc", a, b, x))


@elementwise
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularized lower incomplete gamma function: the integral of ``t^(a-1) exp(-t)`` from 0 to
    ``x``, divided by that from 0 to infinity.

    Args:
      a, x: real numbers whose shapes broadcast; integers are converted to the default float type;
        ``a`` is positive, and ``x`` not negative.

    Returns:
      An array of the common shape and the promoted dtype. It is between 0 and 1.

    The derivative with respect to ``x`` is ``x**(a - 1) * exp(-x) / gamma(a)``.

    >>> round(float(gammainc(1.0, 2.0)), 4)
    0.8647
    """
    return lax.igamma(*same_shape(*promoted_floats("gammainc", a, x)))


@elementwise
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularized upper incomplete gamma function, ``1 - gammainc(a, x)``, accurate for small
    results.

    Args:
      a, x: as in :func:`gammainc`.

    The derivatives are minus those of :func:`gammainc`.

    >>> round(float(gammaincc(1.0, 2.0)), 4)
    0.1353
    """
    return lax.igammac(*same_shape(*promoted_floats("gammaincc", a, x)))


@elementwise
def digamma(x: ArrayLike) -> Array:
    """Derivative of the logarithm of the gamma function.

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type. 0 gives ``-inf``, negative integers NaN, and so do all poles for complex numbers.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if the argument is not an array or a number. Lists are not converted.

    The derivative is ``polygamma(1, x)``. For complex numbers it is computed by the recurrence, the
    asymptotic expansion and the reflection formula, DLMF 5.5.2, 5.11.2 and 5.5.4; far from zeros
    the error is a few ulp of the modulus.

    >>> [round(float(v), 4) for v in digamma(np.float32([1.0, 10.0, -0.5]))]
    [-0.5772, 2.2518, 0.0365]
    """
    x = as_inexact(x)
    return complex_digamma(strong(x)) if is_complex(x) else lax.digamma(x)


@elementwise
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Derivative of order ``n`` of :func:`digamma`.

    Args:
      n: integers; the result is NaN for negative ones.
      x: real numbers.

    Raises:
      ValueError: if ``n`` is not of integer dtype.
    """
    if typeof(n).dtype.kind not in "iu":
        raise ValueError(
            f"Argument `n` to polygamma must be of integer type. Got dtype {typeof(n).dtype.name}."
        )
    return lax.polygamma(*same_shape(*promoted_floats("polygamma", n, x)))


@compiled(name="zeta")
def _zeta(x, q):
    return lax.zeta(*same_shape(*promoted_floats("zeta", x, q)))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz zeta function, the sum of ``(k + q)^-x`` over all ``k >= 0``.

    Raises:
      NotImplementedError: if ``q`` is ``None``. The Riemann zeta function for ``x > 1`` is
        ``zeta(x, 1)``.

    >>> round(float(zeta(2.0, 1.0)), 4)
    1.6449
    """
    if q is None:
        raise NotImplementedError(
            "Riemann zeta function not implemented; pass q != None to compute the Hurwitz zeta "
            "function, which is the Riemann zeta function for q=1 and x > 1"
        )
    check_arrays("zeta", x, q)
    out: Array = _zeta(x, q)
    return out


@compiled("d", name="multigammaln")
def _multigammaln(a, *, d):
    a = strong(*floats("multigammaln", a))
    total = lax.full_like(a, 0.25 * d * (d - 1) * math.log(math.pi))
    if d > 32:  # one compiled term
        step = np.asarray(0.5, typeof(a).dtype)
        return lax.fori_loop(
            0, d, lambda k, s: s + lax.lgamma(a - step * lax.convert_element_type(k, step.dtype)),
            total,
        )  # fmt: skip
    for k in range(d):
        total = total + lax.lgamma(a - 0.5 * k)
    return total


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """Logarithm of the multivariate gamma function of dimension ``d``.

    Args:
      a: real numbers above ``(d - 1) / 2``.
      d: an integer.

    Raises:
      ValueError: if ``d`` is not an integer, or above 1,000,000.
    """
    check_arrays("multigammaln", a)
    if d != int(d):
        raise ValueError(f"d should be a positive integer (dimension), got {d}")
    if d > 1_000_000:
        raise ValueError(f"multigammaln: d must be at most 1,000,000, got {int(d):,}")
    out: Array = _multigammaln(a, d=operator.index(int(d)))
    return out
