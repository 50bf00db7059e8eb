"""Hankel transform of logarithmically spaced samples: Hamilton, MNRAS 312 (2000), appendix B."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, check_arrays, compiled, is_complex

from .._layout import constant, single_at_least


def _loggamma(z: Any) -> Any:
    """Logarithm of the gamma function for a positive real part, by Stirling's series."""
    z = np.asarray(z, complex)
    shift = np.zeros_like(z)
    for _ in range(12):
        shift += np.log(z)
        z = z + 1
    bernoulli = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
    series = sum(c / z ** (2 * k + 1) for k, c in enumerate(bernoulli))
    return (z - 0.5) * np.log(z) - z + 0.5 * math.log(2 * math.pi) + series - shift


def _poles(name: str, mu: float, bias: float) -> tuple[float, float]:
    plus, minus = (mu + 1 + bias) / 2, (mu + 1 - bias) / 2
    if plus <= 0 or minus <= 0:
        raise ValueError(
            f"{name}: bias={bias} must be between -(mu + 1) and mu + 1 for mu={mu}: other "
            "transforms do not converge."
        )
    return plus, minus


def _coefficients(name: str, n: int, dln: float, mu: float, offset: float, bias: float) -> Any:
    plus, minus = _poles(name, mu, bias)
    y = np.linspace(0, math.pi * (n // 2) / (n * dln), n // 2 + 1)
    above, below = _loggamma(plus + 1j * y), _loggamma(minus + 1j * y)
    angle = above.imag + below.imag + 2 * (math.log(2) - offset) * y
    out = np.exp(above.real - below.real + math.log(2) * bias + 1j * angle)
    if n % 2 == 0:
        out[-1] = out[-1].real
    return out


def _checked(name: str, x: Any) -> int:
    check_arrays(name, x)
    if is_complex(x):
        raise ValueError(f"{name}: the input must be real, got dtype {typeof(x).dtype}")
    if not typeof(x).ndim or not typeof(x).shape[-1]:
        raise ValueError(f"{name}: the input must not be empty, got shape {typeof(x).shape}")
    return int(typeof(x).shape[-1])


def fht(a: ArrayLike, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Array:
    """Hankel transform ``A(k) = ∫ a(r) J_mu(k r) k dr`` of samples at logarithmically spaced ``r``.

    Args:
      a: real samples ``[..., n]``, periodic in the logarithm.
      dln: the spacing of the logarithms.
      mu: the order of the Bessel function.
      offset: the logarithm of the product of the middle points of ``k`` and ``r``; see
        `fhtoffset`.
      bias: the exponent of a power law that is removed for the transform.

    Returns:
      An array of the shape of ``a``: samples at logarithmically spaced ``k``.

    Raises:
      ValueError: if ``a`` is complex or empty, or the bias is outside of the domain.

    The transform is linear in the samples, and differentiable in them.

    >>> np.float64(fht(np.float32([1, 2, 1]), 0.5, 0.0)).round(4).tolist()
    [0.871, 1.1485, 1.9805]
    """
    n = _checked("fht", a)
    u = _coefficients("fht", n, dln, mu, offset, bias)
    j = (np.arange(n) - (n - 1) / 2) * dln
    out: Array = _applied(a, np.exp(-bias * j), u, np.exp(-bias * (j + offset)))
    return out


def ifht(A: ArrayLike, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Array:
    """Inverse of the Hankel transform `fht`.

    Args:
      A: real samples ``[..., n]``, periodic in the logarithm.
      dln: the spacing of the logarithms, a Python number.
      mu: the order of the Bessel function, a Python number.
      offset: the logarithm of the product of the middle points of ``k`` and ``r``; see `fhtoffset`.
      bias: the exponent of a power law that is removed for the transform.

    Returns:
      An array of the shape of ``A``: samples at logarithmically spaced ``r``.

    Raises:
      ValueError: if ``A`` is complex or empty, or the bias is outside of the domain.

    The transform is linear in the samples, and differentiable in them.

    >>> a = np.float32([1, 2, 1])
    >>> np.float64(ifht(fht(a, 0.5, 0.0), 0.5, 0.0)).round(4).tolist()
    [1.0, 2.0, 1.0]
    """
    n = _checked("ifht", A)
    u = _coefficients("ifht", n, dln, mu, offset, bias)
    j = (np.arange(n) - (n - 1) / 2) * dln
    out: Array = _applied(A, np.exp(bias * (j + offset)), 1 / np.conj(u), np.exp(bias * j))
    return out


@compiled(name="fht")
def _applied(a, before, u, after):
    a = single_at_least(as_inexact(a))
    batch = (1,) * (typeof(a).ndim - 1)
    before, u, after = (pnp.reshape(_in(v, a), (*batch, -1)) for v in (before, u, after))
    n = typeof(a).shape[-1]
    spectrum = pnp.fft.rfft(a * before) * u
    return pnp.flip(pnp.fft.irfft(spectrum, n), -1) * after


def _in(values, a):
    if isinstance(values, np.ndarray):
        return constant(values, a)
    real = typeof(constant(np.zeros(1), a)).dtype
    complex_dtype = np.result_type(real, np.complex64)
    return pnp.asarray(values, dtype=complex_dtype if is_complex(values) else real)


def fhtoffset(dln: float, mu: float, initial: float = 0.0, bias: float = 0.0) -> float:
    """The offset nearest to an initial one for which `fht` has no ringing.

    Args:
      dln: the spacing of the logarithms, a Python number.
      mu: the order of the Bessel function, a Python number.
      initial: the offset near which the result is.
      bias: the exponent of a power law that is removed for the transform.

    Returns:
      A Python number that differs from ``initial`` by at most ``dln / 2``.

    Raises:
      ValueError: if the bias is outside of the domain.

    >>> round(fhtoffset(0.1, 0.5), 6)
    -0.027643
    """
    plus, minus = _poles("fhtoffset", mu, bias)
    y = math.pi / (2 * dln)
    angle = _loggamma(plus + 1j * y).imag + _loggamma(minus + 1j * y).imag
    turns = (math.log(2) - initial) / dln + angle / math.pi
    return float(initial + (turns - np.round(turns)) * dln)
