"""Window functions as NumPy arrays in double precision.

Each function has the number of points first and computes a symmetric window. Formulas: Harris,
Proc. IEEE 66 (1978), except where noted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def general_cosine(m: int, coefficients: Any) -> Any:
    angles = np.linspace(-np.pi, np.pi, m)
    return sum(c * np.cos(k * angles) for k, c in enumerate(coefficients))


def general_hamming(m: int, alpha: float) -> Any:
    return general_cosine(m, (alpha, 1 - alpha))


def boxcar(m: int) -> Any:
    return np.ones(m)


def triang(m: int) -> Any:
    n = np.arange(1, (m + 1) // 2 + 1)
    if m % 2:
        half = 2 * n / (m + 1.0)
        return np.concatenate([half, half[-2::-1]])
    half = (2 * n - 1.0) / m
    return np.concatenate([half, half[::-1]])


def parzen(m: int) -> Any:
    n = np.abs(np.arange(m) - (m - 1) / 2) / (m / 2)
    return np.where(
        n <= (m - 1) / 4 / (m / 2), 1 - 6 * n**2 + 6 * n**3, 2 * np.maximum(1 - n, 0) ** 3
    )


def bohman(m: int) -> Any:
    f = np.abs(np.linspace(-1, 1, m)[1:-1])
    middle = (1 - f) * np.cos(np.pi * f) + np.sin(np.pi * f) / np.pi
    return np.concatenate([[0.0], middle, [0.0]])


def blackman(m: int) -> Any:
    return general_cosine(m, (0.42, 0.50, 0.08))


def nuttall(m: int) -> Any:
    return general_cosine(m, (0.3635819, 0.4891775, 0.1365995, 0.0106411))


def blackmanharris(m: int) -> Any:
    return general_cosine(m, (0.35875, 0.48829, 0.14128, 0.01168))


def flattop(m: int) -> Any:
    return general_cosine(m, (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368))


def bartlett(m: int) -> Any:
    n = np.arange(m)
    return np.where(n <= (m - 1) / 2, 2.0 * n / (m - 1), 2 - 2.0 * n / (m - 1))


def hann(m: int) -> Any:
    return general_hamming(m, 0.5)


def hamming(m: int) -> Any:
    return general_hamming(m, 0.54)


def barthann(m: int) -> Any:
    f = np.abs(np.arange(m) / (m - 1.0) - 0.5)
    return 0.62 - 0.48 * f + 0.38 * np.cos(2 * np.pi * f)


def cosine(m: int) -> Any:
    return np.sin(np.pi / m * (np.arange(m) + 0.5))


def kaiser(m: int, beta: float) -> Any:
    alpha = (m - 1) / 2
    ratio = (np.arange(m) - alpha) / alpha
    return np.i0(beta * np.sqrt(np.maximum(1 - ratio**2, 0))) / np.i0(beta)


def kaiser_bessel_derived(m: int, beta: float) -> Any:
    if m % 2:
        raise ValueError(f"kaiser_bessel_derived: the number of points must be even, got {m}")
    sums = np.cumsum(kaiser(m // 2 + 1, beta))
    half = np.sqrt(sums[:-1] / sums[-1])
    return np.concatenate([half, half[::-1]])


def gaussian(m: int, std: float) -> Any:
    n = np.arange(m) - (m - 1) / 2
    return np.exp(-(n**2) / (2 * std * std))


def general_gaussian(m: int, p: float, sig: float) -> Any:
    n = np.arange(m) - (m - 1) / 2
    return np.exp(-0.5 * np.abs(n / sig) ** (2 * p))


def exponential(m: int, center: float | None, tau: float) -> Any:
    center = (m - 1) / 2 if center is None else center
    return np.exp(-np.abs(np.arange(m) - center) / tau)


def tukey(m: int, alpha: float) -> Any:
    if alpha <= 0:
        return np.ones(m)
    if alpha >= 1:
        return hann(m)
    n = np.arange(m)
    edge = np.minimum(n, m - 1 - n) / (alpha * (m - 1) / 2)
    return np.where(edge < 1, 0.5 * (1 - np.cos(np.pi * np.minimum(edge, 1))), 1.0)


def lanczos(m: int) -> Any:
    half = np.sinc(2 * np.arange(m // 2, m) / (m - 1) - 1.0)
    return np.concatenate([half[m % 2 :][::-1], half])


def chebwin(m: int, at: float) -> Any:
    """Dolph-Chebyshev window: Lyons, Understanding Digital Signal Processing, 5.3.2."""
    order = m - 1.0
    beta = math.cosh(math.acosh(10 ** (abs(at) / 20)) / order)
    x = beta * np.cos(np.pi * np.arange(m) / m)
    with np.errstate(invalid="ignore"):
        outside = np.cosh(order * np.arccosh(np.maximum(np.abs(x), 1)))
        inside = np.cos(order * np.arccos(np.clip(x, -1, 1)))
    p = np.where(x > 1, outside, np.where(x < -1, (2 * (m % 2) - 1) * outside, inside))
    if m % 2:
        w = np.real(np.fft.fft(p))
        n = (m + 1) // 2
        w = np.concatenate([w[n - 1 : 0 : -1], w[:n]])
    else:
        w = np.real(np.fft.fft(p * np.exp(1j * np.pi / m * np.arange(m))))
        n = m // 2 + 1
        w = np.concatenate([w[n - 1 : 0 : -1], w[1:n]])
    return w / w.max()


def taylor(m: int, nbar: int, sll: float, norm: bool) -> Any:
    """Taylor window: Carrara, Goodman and Majewski, Spotlight Synthetic Aperture Radar, app. D."""
    a = math.acosh(10 ** (sll / 20)) / math.pi
    s2 = nbar**2 / (a**2 + (nbar - 0.5) ** 2)
    k = np.arange(1, nbar)
    f = np.empty(nbar - 1)
    for i, mi in enumerate(k):
        above = (-1) ** (mi + 1) * np.prod(1 - mi**2 / s2 / (a**2 + (k - 0.5) ** 2))
        below = 2 * np.prod(1 - mi**2 / k[k != mi] ** 2.0)
        f[i] = above / below

    def values(n: Any) -> Any:
        return 1 + 2 * np.cos(2 * np.pi * np.outer(n - m / 2 + 0.5, k) / m) @ f

    w = values(np.arange(m))
    return w / values(np.array([(m - 1) / 2]))[0] if norm else w


def dpss(m: int, nw: float, count: int) -> tuple[Any, Any]:
    """Slepian sequences and their concentrations: Percival and Walden, Spectral Analysis, 8.3."""
    w = nw / m
    n = np.arange(m)
    matrix = np.diag(((m - 1 - 2 * n) / 2) ** 2 * math.cos(2 * math.pi * w))
    off = n[1:] * (m - n[1:]) / 2
    matrix = matrix + np.diag(off, 1) + np.diag(off, -1)
    _, vectors = np.linalg.eigh(matrix)
    windows = vectors[:, ::-1][:, :count].T.copy()
    for k, v in enumerate(windows):
        if k % 2 == 0:
            negative = v.sum() < 0
        else:  # the first lobe is positive
            negative = v[np.argmax(v * v > max(1e-7, 1.0 / m))] < 0
        windows[k] = -v if negative else v
    kernel = 2 * w * np.sinc(2 * w * n)
    correlations = [np.correlate(v, v, "full")[m - 1 :] for v in windows]
    ratios = [kernel[0] * c[0] + 2 * (kernel[1:] * c[1:]).sum() for c in correlations]
    return windows, np.array(ratios)


def sampled(shape: Callable[..., Any], m: int, sym: bool, *parameters: Any) -> Any:
    """A window of ``m`` points; a periodic one is the symmetric one without its last point."""
    if m <= 1:
        return np.ones(m)
    w = shape(m if sym else m + 1, *parameters)
    return w if sym else w[:-1]
