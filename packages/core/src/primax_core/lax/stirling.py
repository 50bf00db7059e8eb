"""Stirling's series and related functions, for quotients of gamma functions."""

from __future__ import annotations

from typing import Any, Final

from .computed_in_float64 import Real, chebyshev, horner, where

SHIFT: Final = {True: 10, False: 5}
"""Smallest argument for which Stirling's series is precise; smaller ones are shifted by as much."""

_SERIES: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)

# Chebyshev series of log Γ(1 + a) / (a (a - 1)) on [0, 1], computed with 60 digits.
_LOG_GAMMA: Final = (
    0.49141539302938714, -0.07611416167043585, 0.008432324965932778, -0.001079493726328608,
    0.00014900748003692963, -2.1512399888556784e-05, 3.1979329860862186e-06, -4.851693012139927e-07,
    7.47148782116316e-08, -1.1638296700170518e-08, 1.829400437118668e-09, -2.8969180607129607e-10,
    4.61570140620909e-11, -7.392810230497983e-12, 1.1894280008333085e-12, -1.9212068676522805e-13,
    3.113975526387164e-14, -5.0628432984486114e-15, 8.254150281631144e-16, -1.3490578987574844e-16,
)  # fmt: skip


def stirling(precise: bool, a: Real) -> Real:
    """``log Γ(a) - (a - 1/2) log a + a - log(2π) / 2``."""
    inverse = 1 / a
    return inverse * horner(inverse * inverse, _SERIES[: 7 if precise else 6])


def stirling_quotient(a: Real, b: Real) -> Real:
    """Difference quotient ``(stirling(a + b) - stirling(a)) / b``, without cancellation."""
    p, q = 1 / a, 1 / (a + b)
    sums: Any = 1.0  # p^m + p^(m-1) q + ... + q^m
    power, total = p, -_SERIES[0] * p * q
    for m in range(1, 13):
        sums, power = q * sums + power, power * p
        if m % 2 == 0:
            total = total - _SERIES[m // 2] * p * q * sums
    return total


def log_gamma_over(precise: bool, a: Real) -> Real:
    """``log Γ(1 + a) / a`` for ``a`` in [0, 1]."""
    return (a - 1) * chebyshev(a * 2 - 1, _LOG_GAMMA[: 20 if precise else 12])


def near_deviance(precise: bool, u: Real) -> Real:
    """``(u - log(1 + u)) / u²``, which is positive and smooth, for ``u`` in (-0.4, 0.4)."""
    inverse = 1 / (u + 2)
    s = u * inverse
    near = 2 * inverse * s * horner(s * s, [1 / (2 * k + 3) for k in range(14 if precise else 9)])
    return (1 - near) * inverse


def deviance(precise: bool, u: Real, log_ratio: Real) -> Real:
    """:func:`near_deviance` for all ``u``.

    Args:
      log_ratio: ``log(1 + u)``, used only for large ``u``.
    """
    return where(abs(u) < 0.4, near_deviance(precise, u), (u - log_ratio) / (u * u))
