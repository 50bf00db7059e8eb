"""Exact values of functions that mpmath does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp


def log_add(base: Any) -> Callable[..., Any]:
    """Logarithm of a sum of powers, by base."""
    return lambda x, y: mp.log(mp.mpf(base) ** x + mp.mpf(base) ** y) / mp.log(base)


def erfc_inverse(y: Any) -> Any:
    """Inverse of ``erfc``, by Newton's method for its logarithm."""
    if y == 1:
        return mp.mpf(0)
    if y > 1:
        return -erfc_inverse(2 - y)
    if y > 0.5:
        return mp.erfinv(1 - y)
    target = mp.log(y)
    z = mp.sqrt(-mp.log(y * mp.sqrt(mp.pi * (-target))))
    for _ in range(9):
        value = mp.erfc(z)
        z += (mp.log(value) - target) * value * mp.sqrt(mp.pi) / 2 * mp.exp(z * z)
    return z


def log_lower_tail(x: Any) -> Any:
    """Logarithm of the normal CDF."""
    half = mp.erfc(abs(x) / mp.sqrt(2)) / 2
    return mp.log(half) if x < 0 else mp.log1p(-half)


def log_beta(a: Any, b: Any) -> Any:
    """Logarithm of the absolute value of the beta function."""
    return mp.log(abs(mp.beta(a, b)))


def kl_divergence(p: Any, q: Any) -> Any:
    """``p log(p / q) - p + q``."""
    return p * mp.log(p / q) - p + q


def regularized_beta(a: Any, b: Any, x: Any) -> Any:
    """Regularized incomplete beta function."""
    with mp.workdps(30):
        return mp.betainc(a, b, 0, x, regularized=True)


def lower_gamma(a: Any, x: Any) -> Any:
    """Regularized lower incomplete gamma function."""
    return mp.gammainc(a, 0, x, regularized=True)


def upper_gamma(a: Any, x: Any) -> Any:
    """Regularized upper incomplete gamma function."""
    return mp.gammainc(a, x, mp.inf, regularized=True)


def ei(x: Any) -> Any:
    """Exponential integral."""
    return mp.ei(x) if x > 0 else -mp.e1(-x)


def owens_t(h: Any, a: Any) -> Any:
    """Owen's T function, by quadrature."""
    with mp.workdps(40):
        tilt = -h * h / 2
        value = mp.quad(lambda t: mp.exp(tilt * t * t) / (1 + t * t), mp.linspace(0, a, 5))
        return value * mp.exp(tilt) / (2 * mp.pi)


def voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    """Voigt profile, by the complex error function."""
    z = mp.mpc(x, gamma) / (sigma * mp.sqrt(2))
    return mp.re(mp.exp(-z * z) * mp.erfc(-1j * z)) / (sigma * mp.sqrt(2 * mp.pi))
