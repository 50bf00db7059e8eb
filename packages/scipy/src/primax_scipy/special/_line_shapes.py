"""Voigt's profile, hyperbolic sine and cosine integrals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array
from primax_core.typing import ArrayLike
from primax_numpy.declaring import elementwise

from .._elementary import ROOT_2, bounded, choose, is_double
from ._faddeeva import faddeeva
from ._integrals import _e1, _ei
from ._operands import called, differentiable


def _voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    plain = (sigma != 0) & (gamma != 0) & (lax.abs(x) < np.inf)
    plain = plain & (sigma == sigma) & (gamma == gamma)
    width = choose(plain, sigma, 1.0)
    size = lax.abs(width)
    u = choose(plain, x, 0.0) / (size * ROOT_2)
    v = choose(plain, gamma, 1.0) / (size * ROOT_2)
    profile = lax.real(faddeeva(lax.complex(u, v))) / (size * math.sqrt(2 * math.pi))
    # Normal and Cauchy's densities for one zero
    normal_width = choose(sigma == 0, 1.0, lax.abs(sigma))
    scaled = x / normal_width
    normal = lax.exp(-0.5 * (scaled * scaled)) / (normal_width * math.sqrt(2 * math.pi))
    safe = choose(gamma == 0, 1.0, gamma)
    ratio = x / safe
    cauchy = 1 / (math.pi * safe * (1 + ratio * ratio))
    both = choose(x == 0, np.inf, choose(x != x, x, 0.0))
    limit = choose(sigma == 0, choose(gamma == 0, both, cauchy), normal)
    missing = (x != x) | (sigma != sigma) | (gamma != gamma)
    far = choose(lax.abs(x) == np.inf, 0.0, profile)
    return choose(missing, np.nan, choose((sigma == 0) | (gamma == 0), limit, far))


@elementwise
def voigt_profile(x: ArrayLike, sigma: ArrayLike, gamma: ArrayLike) -> Array:
    """Voigt's profile: the density of the sum of a normal and a Cauchy variable.

    Args:
      x: real numbers.
      sigma: standard deviation of the normal variable.
      gamma: half width at half maximum of the Cauchy variable.

    Both may be zero. Derivatives are those of the Faddeeva function.

    Raises:
      ValueError: if an argument is complex.

    >>> round(float(voigt_profile(0.0, 1.0, 1.0)), 5)
    0.20871
    """
    return called("voigt_profile", _voigt, x, sigma, gamma)


def _hyperbolic_slopes(x: Any, out: Any) -> Any:
    zero = x == 0
    safe = choose(zero, 1.0, x)
    return choose(zero, 1.0, lax.sinh(safe) / safe), lax.cosh(x) / x


@differentiable(_hyperbolic_slopes)
def _hyperbolic_integrals(x: Any) -> tuple[Any, Any]:
    """A power series near 0; ``Ei(x)`` and ``E1(x)`` elsewhere."""
    size = lax.abs(x)
    near = size < 2
    low = choose(near & (size > 0), size, 1.0)
    square = low * low
    s: Any = lax.full_like(x, 0.0)
    c: Any = lax.full_like(x, 0.0)
    for k in reversed(range(12 if is_double(x) else 7)):
        s = s * square + 1 / ((2 * k + 1) * math.factorial(2 * k + 1))
        c = c * square + 1 / ((2 * k + 2) * math.factorial(2 * k + 2))
    s, c = low * s, (lax.log(low) + np.euler_gamma) + square * c
    high = choose(near, 2.0, bounded(size, 2.0, 1e4))
    grown, fallen = _ei(high), _e1(high)
    s = choose(near, s, 0.5 * (grown + fallen))
    c = choose(near, c, 0.5 * (grown - fallen))
    s, c = choose(x == 0, 0.0, s), choose(x == 0, -np.inf, c)
    infinite = size == np.inf
    s, c = choose(infinite, np.inf, s), choose(infinite, np.inf, c)
    bad = x != x
    return choose(bad, x, choose(x < 0, -s, s)), choose(bad, x, c)


@elementwise
def shichi(x: ArrayLike) -> tuple[Array, Array]:
    """Hyperbolic sine and cosine integrals of real numbers.

    The first is the integral of ``sinh(t) / t`` from 0 to ``x``; the second is
    ``log(|x|)`` plus Euler's constant plus the integral of ``(cosh(t) - 1) / t``.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      Two arrays of the shape of ``x``: the sine integral, which is odd, and the cosine integral.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivatives are ``sinh(x) / x`` and ``cosh(x) / x``.

    >>> [round(float(v), 5) for v in shichi(1.0)]
    [1.05725, 0.83787]
    """
    return called("shichi", _hyperbolic_integrals, x)
