"""The incomplete gamma functions.

They are computed with the power series of the lower function, Legendre's continued fraction of the
upper one (W. Press et al., "Numerical Recipes", section 6.2) and, for large ``a``, Temme's uniform
expansion in the form of A. Gil, J. Segura and N. Temme, "Efficient and accurate algorithms for the
computation and inversion of the incomplete gamma function ratios" (2012), each with a fixed number
of terms. For small ``a`` and ``x`` the upper function is the difference of section 2.3 of
A. DiDonato and A. Morris, "Computation of the incomplete gamma function ratios" (1986). Each method
computes the smaller of the two functions, or one that is not small, as ``D(a, x) G(a, x)`` with
``D = x^a exp(-x) / Γ(a + 1)``.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from operator import mul
from typing import Any, Final, NamedTuple

from .._ir import dtypes
from .._ir.samples import Sample, bf16, f32, samples
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.jvp import jvp_of
from . import arithmetic, exponential
from .computed_in_float64 import (
    Real,
    Truth,
    chebyshev,
    computed_in_float64,
    exp,
    expm1,
    floor,
    horner,
    log,
    pow,
    rarely,
    sqrt,
    where,
)
from .conversion import convert
from .elementwise import fast_path, full_like, scalar_like
from .gamma import digamma
from .promotion import same_rank
from .stirling import SHIFT, deviance, log_gamma_over, stirling


class _Terms(NamedTuple):
    """Numbers of terms of the series, and their ranges."""

    uniform: int
    series: int
    fraction: int
    difference: int
    error: int
    large: float  # smallest large `a`
    small: float  # largest small `x`


_TERMS: Final = {
    True: _Terms(29, 45, 45, 28, 25, 12.0, 2.0),
    False: _Terms(18, 25, 10, 22, 16, 10.0, 4.0),
}
_NEAR: Final = (0.3, 2.35)  # range of x / a for the uniform expansion
_TINY: Final = 1e-20  # smallest x whose powers are computed directly: they do not underflow
_HUGE: Final = 1e4  # exp(-x) is 0 for larger x

# Taylor coefficients of η / (λ - 1) in η, where η²/2 = λ - 1 - log λ.
_TEMME: Final = (
    1.0, -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
    0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
    -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
    1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11,
    -5.830772132550426e-11, 2.4361948020667415e-11, -5.0276692801141755e-12, 1.1004392031956135e-13,
    3.371763262400985e-13, -1.392388722418162e-13, 2.8534893807047445e-14, -5.139111834242572e-16,
    -1.9752288294349442e-15, 8.099521156704561e-16, -1.6522531216398162e-16, 2.5305430097478883e-18,
    1.1686939738559576e-17,
)  # fmt: skip

# Chebyshev series of (1 + 2z) exp(z²) erfc(z) in (z - 3.75) / (z + 3.75), after M. Shepherd and
# J. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x²) erfc x" (1981).
_ERFCX: Final = (
    1.1775789345674017, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189,
    -0.026658668435305753, 0.009074997670705265, -0.002413163540417608, 0.0004907758365258086,
    -6.916973302501207e-05, 4.13902798607301e-06, 7.74038306619849e-07, -2.1886401049234397e-07,
    1.076499946567091e-08, 4.521959811218287e-09, -7.754400208831351e-10, -6.318088340886684e-11,
    2.86879501093067e-11, 1.9455868545777347e-13, -9.65469674843344e-13, 3.25254814814874e-14,
    3.3478119482868056e-14, -1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624044e-17,
    5.068148904796111e-17,
)  # fmt: skip


class _Factors(NamedTuple):
    """One of the two functions as ``exp(exponent) scale factor``.

    Attributes:
      lower: True where it is the lower function.
      series: True where it is computed with the power series.
    """

    exponent: Real
    scale: Real
    factor: Real
    lower: Truth
    series: Truth


def _factors(precise: bool, a: Real, x: Real) -> _Factors:
    terms, shift = _TERMS[precise], SHIFT[precise]
    few = a < shift
    shifted, steps = where(few, a + shift, a), where(few, shift, 0, a)
    u, log_ratio = (x - shifted) / shifted, log(x / shifted)
    curve = deviance(precise, u, log_ratio)
    log_shifted = log(shifted)
    exponent = where(
        abs(u) < 0.4,
        -shifted * u * u * curve - steps * (log_ratio + log_shifted),
        a * log_ratio - shifted * u - steps * log_shifted,
    )
    exponent = exponent - stirling(precise, shifted)
    product = reduce(mul, [a + i for i in range(1, shift + 1)])
    root = sqrt(shifted * (2 * math.pi))
    scale = where(few, product, 1) / root
    if precise:
        # The exponent has terms near 30, whose rounding errors the exponential function enlarges.
        direct = few & (x > _TINY)
        powers = pow(where(direct, x.min(_HUGE), 1, x), where(direct, a, 1, a))
        exponent = where(direct, -x, exponent)
        scale = where(direct, powers / _factorial(where(direct, a, 1, a), shift), scale)

    ratio = x / a
    uniform = (a >= terms.large) & (ratio > _NEAR[0]) & (ratio < _NEAR[1])
    series = ~uniform & (x <= a.max(terms.small))
    power: Any = 1.0
    for n in range(terms.series, 0, -1):
        power = x / (a + n) * power + 1
    factor = where(
        uniform,
        _uniform(terms, a, u * sqrt(2 * curve), root),
        where(series, power, a / _fraction(terms, a, x)),
    )
    return _Factors(
        exponent,
        scale,
        factor,
        uniform & (u < 0) | series,
        series,
    )


def _factorial(a: Real, largest: int) -> Real:
    """``Γ(a + 1)`` for ``a`` in [0, largest), as a multiple of its value in [1, 2]."""
    whole = floor(a)
    rest = a - whole
    steps = [where(whole >= i, rest + i, 1) for i in range(1, largest)]
    return exp(rest * log_gamma_over(True, rest)) * reduce(mul, steps)


def _uniform(terms: _Terms, a: Real, eta: Real, root: Real) -> Real:
    inverse = 1 / a
    t: list[Any] = [0.0] * (terms.uniform + 2)
    for m in range(terms.uniform, 0, -1):
        t[m - 1] = inverse * ((m + 1) * t[m + 1]) + _TEMME[m]
    total = horner(eta, t[: terms.uniform])
    # exp(z²) erfc(z), with z² = a η²/2
    z = abs(eta) * sqrt(a * 0.5)
    error = chebyshev((z - 3.75) / (z + 3.75), _ERFCX[: terms.error]) / (z * 2 + 1)
    half = root * (t[1] * inverse + 1) * 0.5 * error
    return where(eta < 0, half - total, half + total)


def _fraction(terms: _Terms, a: Real, x: Real) -> Real:
    """``x^a exp(-x) / Γ(a, x)``."""
    n = terms.fraction
    out = x - a + (2 * n + 1)
    for i in range(n, 0, -1):
        out = x - a + (2 * i - 1) + i * (a - i) / out
    return out


def _limits(a: Real, x: Real, value: Real, at_zero: float, at_infinity: float) -> Real:
    """The values of a function at the borders of the quadrant, NaN outside it.

    Args:
      at_zero: the value for ``x = 0`` and for infinite ``a``.
      at_infinity: the value for infinite ``x`` and for ``a = 0``.
    """
    low, high = x.equals(0) | a.equals(math.inf), x.equals(math.inf) | a.equals(0)
    value = where(low, at_zero, where(high, at_infinity, value))
    outside = (x < 0) | (a < 0) | a.isnan() | x.isnan() | (low & high)
    return where(outside, math.nan, value)


def _lower(precise: bool, a: Real, x: Real) -> Real:
    p = _factors(precise, a, x)
    part = exp(p.exponent) * p.scale * p.factor
    return _limits(a, x, where(p.lower, part, 1 - part), 0, 1)


def _upper(precise: bool, a: Real, x: Real) -> Real:
    p = _factors(precise, a, x)
    part = exp(p.exponent) * p.scale * p.factor
    part = where(p.lower, 1 - part, part)
    needed = p.series & (a < 1)
    value = where(needed, rarely(needed, partial(_difference, precise), a.min(1), x), part)
    return _limits(a, x, value, 1, 0)


def _difference(precise: bool, a: Real, x: Real) -> Real:
    """``1 - x^a / Γ(1 + a) (1 + a Σ)``, if both terms are near 1."""
    rest: Any = 0.0
    for n in range(_TERMS[precise].difference, 0, -1):
        rest = -x / n * (1 / (a + n) + rest)
    power = a * (log(x) - log_gamma_over(precise, a))
    return -expm1(power) - exp(power) * a * rest


def _derivative_over_density(precise: bool, a: Real, x: Real) -> tuple[Real, Real]:
    """``D(a, x)``, and the derivative of the lower function by ``a``, divided by ``D``."""

    def parts(y):
        p = _factors(precise, Real(y), x)
        return [p.exponent.x, p.scale.x, p.factor.x, p.lower.x]

    values, tangents = jvp_of(parts, [a.x], [full_like(a.x, 1)])
    exponent, scale, factor = map(Real, values[:3])
    by_exponent, by_scale, by_factor = map(Real, tangents[:3])
    total = (by_exponent + by_scale / scale) * factor + by_factor
    return exp(exponent) * scale, where(Truth(values[3]), total, -total)


def _derivative(precise: bool, a: Real, x: Real) -> Real:
    density, derivative = _derivative_over_density(precise, a, x)
    return _limits(a, x, density * derivative, 0, math.nan)


def _density(precise: bool, a: Real, x: Real) -> Real:
    p = _factors(precise, a, x)
    at_zero = where(a < 1, math.inf, where(a.equals(1), 1.0, 0.0, a))
    value = where(x.equals(0), at_zero, exp(p.exponent) * p.scale * a / x)
    return where(x.equals(math.inf) & (a >= 0), 0, where((x < 0) | (a <= 0), math.nan, value))


def _sample_derivative(precise: bool, a: Real, x: Real) -> Real:
    _, derivative = _derivative_over_density(precise, a, x)
    return _limits(a, x, -x / a * derivative, 0, math.nan)


def _score(a: Any, x: Any) -> Any:
    """Derivative of the log-density with respect to ``a``."""
    return arithmetic.sub(exponential.log(x), digamma(a))


def _decline(a: Any, x: Any) -> Any:
    """Derivative of the log-density with respect to ``x``."""
    one = scalar_like(a, 1)
    return arithmetic.sub(arithmetic.div(arithmetic.sub(a, one), x), one)


def _density_times(factor: Any) -> Any:
    return lambda a, x: arithmetic.mul(density_p.bind(a, x), factor(a, x))


def _minus(fun: Any) -> Any:
    return lambda *operands: arithmetic.neg(fun(*operands))


def _derivative_by_sample(a: Any, x: Any) -> Any:
    moved = arithmetic.mul(random_gamma_grad_p.bind(a, x), _decline(a, x))
    return arithmetic.neg(arithmetic.add(_score(a, x), moved))


density_p: Final = computed_in_float64(
    "gamma_density",
    _density,
    2,
    _density_times(_score),
    _density_times(_decline),
)
igamma_grad_a_p: Final = computed_in_float64(
    "igamma_grad_a", _derivative, 2, None, _density_times(_score)
)
igamma_p: Final = computed_in_float64("igamma", _lower, 2, igamma_grad_a_p.bind, density_p.bind)
igammac_p: Final = computed_in_float64(
    "igammac", _upper, 2, _minus(igamma_grad_a_p.bind), _minus(density_p.bind)
)
random_gamma_grad_p: Final = computed_in_float64(
    "random_gamma_grad", _sample_derivative, 2, None, _derivative_by_sample
)


@fast_path(igamma_p)
def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function.

    ``∫ t^(a-1) exp(-t) dt / Γ(a)`` from 0 to ``x``: the probability that a gamma variable with
    parameter ``a`` is at most ``x``.

    Args:
      a: nonnegative floats. The result is NaN for other values.
      x: nonnegative floats of the dtype of ``a``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype, with values in [0, 1].

    Raises:
      TypeError: if the dtypes differ or are not floating, or the shapes are incompatible.

    The derivative with respect to ``a`` is :func:`igamma_grad_a`, with respect to ``x`` ``x^(a-1)
    exp(-x) / Γ(a)``. Under ``vmap`` the batch is one operand.

    >>> import numpy as np
    >>> round(float(igamma(1.0, 1.0)), 6)  # 1 - 1/e
    0.632121
    >>> x = np.array([0.0, 1.0, 5.0], np.float32)
    >>> print(np.asarray(igamma(2.0, x)).round(4))
    [0.     0.2642 0.9596]
    """
    return igamma_p.bind(a, x)


@fast_path(igammac_p)
def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function, ``1 - igamma(a, x)`` without cancellation.

    Args:
      a: nonnegative floats. The result is NaN for other values.
      x: nonnegative floats of the dtype of ``a``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype, with values in [0, 1].

    Raises:
      TypeError: if the dtypes differ or are not floating, or the shapes are incompatible.

    The derivatives are those of :func:`igamma` with the sign changed. Under ``vmap`` the batch is
    one operand.

    >>> round(float(igammac(1.0, 1.0)), 6)  # 1/e
    0.367879
    >>> round(float(igammac(1.0, 50.0)) * 1e22, 4)  # exp(-50)
    1.9287
    """
    return igammac_p.bind(a, x)


@fast_path(igamma_grad_a_p)
def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of :func:`igamma` with respect to ``a``.

    Args:
      a: nonnegative floats. The result is NaN for other values.
      x: nonnegative floats of the dtype of ``a``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype.

    Raises:
      TypeError: if the dtypes differ or are not floating, or the shapes are incompatible.

    Under ``vmap`` the batch is one operand.

    >>> import numpy as np
    >>> round(float(igamma_grad_a(1.0, 1.0)), 5)
    -0.43173
    >>> x = np.array([0.0, 1.0, 5.0], np.float32)
    >>> print(np.asarray(igamma_grad_a(2.0, x)).round(4))
    [ 0.     -0.2762 -0.0559]
    """
    return igamma_grad_a_p.bind(a, x)


def random_gamma_grad(*args: ArrayLike) -> Array:
    """Derivative of a sample of a gamma distribution with respect to its parameter.

    ``random_gamma_grad(a, sample)`` is the derivative of a sample with respect to ``a`` for a
    constant value of the distribution function (M. Figurnov, S. Mohamed and A. Mnih, "Implicit
    reparameterization gradients", 2018).

    Args:
      args: ``a``, positive floats, the parameter; and ``sample``, nonnegative floats, with a
        shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the dtype of ``a``.

    Raises:
      TypeError: if the number of operands is not 2, or ``a`` is not floating.

    Under ``vmap`` the batch is one operand.

    >>> import numpy as np
    >>> round(float(random_gamma_grad(1.0, 1.0)), 5)
    1.17356
    >>> a = np.array([0.5, 1.0, 2.0], np.float32)
    >>> print(np.asarray(random_gamma_grad(a, a)).round(4))
    [1.3374 1.1736 1.0862]
    """
    if len(args) != 2:
        raise TypeError(f"random_gamma_grad takes 2 arguments, a and the sample, got {len(args)}")
    a, x = args
    dtype, other = typeof(a).dtype, typeof(x).dtype
    if dtype == other or dtypes.f64 in (dtype, other):
        return random_gamma_grad_p.bind(*same_rank("random_gamma_grad", a, x))
    a, x = same_rank("random_gamma_grad", convert(a, dtypes.f32), convert(x, dtypes.f32))
    return convert(random_gamma_grad_p.bind(a, x), dtype)


_SLOW: Final = {"second order": "slow to compile, and tried with igamma"}


def _samples(prim: Any):
    first = Sample(f32(3, low=0.3, high=4), f32(3, low=0.5, high=20))
    yield first if prim in (igamma_p, density_p) else first.set(without=_SLOW)
    yield Sample(bf16(low=11, high=14), bf16(2, low=9, high=16)).set(without=_SLOW)


for _prim in (igamma_p, igammac_p, igamma_grad_a_p, random_gamma_grad_p, density_p):
    _prim.rule(samples)(partial(_samples, _prim))
