"""Design of filters, computed by NumPy in double precision from Python numbers.

Windowed filters and the bilinear transform: Oppenheim and Schafer, Discrete-Time Signal Processing,
chapter 7; smoothing by polynomials: Savitzky and Golay, Anal. Chem. 36 (1964).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core.extend import Array, dtypes
from primax_core.typing import ArrayLike

from .._layout import check_mode
from ._windows import get_window

_BANDS = {
    "lowpass": "lowpass", "low": "lowpass", "lp": "lowpass", "highpass": "highpass",
    "high": "highpass", "hp": "highpass", "bandpass": "bandpass", "band": "bandpass",
    "bp": "bandpass", "bandstop": "bandstop", "stop": "bandstop", "bs": "bandstop",
}  # fmt: skip


def _array(values: Any) -> Array:
    complex_values = np.iscomplexobj(values)
    dtype = dtypes.default_complex() if complex_values else dtypes.default_float()
    return pnp.asarray(values, dtype=dtype)


def window_taps(numtaps: int, edges: Any, window: Any, scale: bool) -> Any:
    """Taps of a filter that passes bands ``edges[i]`` to ``edges[i + 1]`` in units of Nyquist."""
    m = np.arange(numtaps) - (numtaps - 1) / 2
    h = sum(hi * np.sinc(hi * m) - lo * np.sinc(lo * m) for lo, hi in edges)
    h = h * np.asarray(get_window(window, numtaps, fftbins=False), float)
    if scale:
        lo, hi = edges[0]
        center = 0.0 if lo == 0 else 1.0 if hi == 1 else (lo + hi) / 2
        h = h / np.sum(h * np.cos(np.pi * m * center))
    return h


def _cutoffs(name: str, cutoff: Any, fs: float) -> Any:
    edges = np.atleast_1d(np.asarray(cutoff, float)) / (fs / 2)
    if edges.ndim != 1 or not edges.size or not np.all((edges > 0) & (edges < 1)):
        raise ValueError(f"{name}: cutoffs must be greater than 0 and less than {fs / 2}")
    if np.any(np.diff(edges) <= 0):
        raise ValueError(f"{name}: cutoffs must increase")
    return edges


def firwin(
    numtaps: int, cutoff: ArrayLike | Sequence[ArrayLike], *, width: float | None = None,
    window: str | tuple[Any, ...] | ArrayLike = "hamming", pass_zero: bool | str = True,
    scale: bool = True, fs: float = 2.0,
) -> Array:  # fmt: skip
    """Filter of finite impulse response by the window method.

    Args:
      numtaps: the number of taps; it must be odd if the Nyquist frequency passes.
      cutoff: one or more increasing frequencies between 0 and ``fs / 2``.
      width: the width of the transition, which replaces the window by a Kaiser window.
      window: as in `get_window`.
      pass_zero: True if the frequency 0 passes, or ``"lowpass"``, ``"highpass"``, ``"bandpass"`` or
        ``"bandstop"``.
      scale: scale the gain to 1 at 0, at the Nyquist frequency, or in the middle of the first band.
      fs: the sampling frequency.

    Returns:
      The coefficients ``[numtaps]``.

    Raises:
      ValueError: if a cutoff is out of range, the number of taps is even for a filter that passes
        the Nyquist frequency, or ``pass_zero`` does not match.

    >>> [round(float(v), 3) for v in firwin(3, 0.5)]
    [0.046, 0.908, 0.046]
    """
    n = operator.index(numtaps)
    edges = _cutoffs("firwin", cutoff, fs)
    if width is not None:
        attenuation = 2.285 * (n - 1) * math.pi * (float(width) / (fs / 2)) + 7.95
        window = ("kaiser", _kaiser_beta(attenuation))
    if isinstance(pass_zero, str):
        pass_zero = _passes_zero(pass_zero, edges.size)
    bands = [*([0.0] if pass_zero else []), *edges]
    passes_nyquist = bool(edges.size & 1) ^ bool(pass_zero)
    if passes_nyquist:
        bands.append(1.0)
    if passes_nyquist and n % 2 == 0:
        raise ValueError(
            f"firwin: numtaps must be odd for a filter that passes the Nyquist frequency, got {n}"
        )
    pairs = np.array(bands).reshape(-1, 2)
    return _array(window_taps(n, pairs, window, scale))


def _passes_zero(kind: str, count: int) -> bool:
    kind = kind.lower()
    check_mode("firwin", kind, ("lowpass", "highpass", "bandpass", "bandstop"), "pass_zero")
    if (count == 1) != (kind in ("lowpass", "highpass")):
        raise ValueError(f"firwin: pass_zero={kind!r} does not match {count} cutoffs")
    return kind in ("lowpass", "bandstop")


def _kaiser_beta(attenuation: float) -> float:
    """Kaiser's formula for the parameter of a window with an attenuation in decibels."""
    if attenuation > 50:
        return 0.1102 * (attenuation - 8.7)
    if attenuation > 21:
        return 0.5842 * (attenuation - 21) ** 0.4 + 0.07886 * (attenuation - 21)
    return 0.0


def butter(
    N: int, Wn: ArrayLike | Sequence[ArrayLike], btype: str = "low", analog: bool = False,
    output: str = "ba", fs: float | None = None,
) -> Any:  # fmt: skip
    """Butterworth filter.

    Args:
      N: the order.
      Wn: the frequency at which the gain is ``1 / sqrt(2)``, or two for bands: between 0 and the
        Nyquist frequency (1, or ``fs / 2``); angular frequencies for analog filters.
      btype: ``"lowpass"``, ``"highpass"``, ``"bandpass"`` or ``"bandstop"``.
      analog: design an analog filter.
      output: ``"ba"`` for polynomials, ``"zpk"`` for zeros, poles and gain, ``"sos"`` for sections
        of second order, which are more accurate for high orders.
      fs: the sampling frequency.

    Raises:
      ValueError: if a frequency is out of range, or an option is unknown.

    >>> b, a = butter(1, 0.5)
    >>> b.round(3).tolist(), abs(a).round(3).tolist()
    ([0.5, 0.5], [1.0, 0.0])
    """
    order = operator.index(N)
    kind = _BANDS.get(btype.lower()) if isinstance(btype, str) else None
    check_mode("butter", output, ("ba", "zpk", "sos"), "output")
    if kind is None:
        raise ValueError(
            f"butter: btype must be one of {sorted(set(_BANDS.values()))}, got {btype!r}"
        )
    if order < 1:
        raise ValueError(f"butter: the order must be positive, got {order}")
    if order > 500:
        raise ValueError(f"butter: the order must be at most 500, got {order:,}")
    if analog and fs is not None:
        raise ValueError("butter: fs is only for digital filters")
    w = np.atleast_1d(np.asarray(Wn, float)) / (1 if fs is None else fs / 2)
    if w.shape != ((1,) if kind in ("lowpass", "highpass") else (2,)):
        raise ValueError(f"butter: the number of frequencies does not match btype={kind!r}")
    if np.any(w <= 0) or (not analog and np.any(w >= 1)) or np.any(np.diff(w) <= 0):
        raise ValueError(
            "butter: frequencies must increase, between 0 and "
            + ("infinity" if analog else f"{1 if fs is None else fs / 2}")
        )
    z, p, k = _butterworth(order, w if analog else 4 * np.tan(np.pi * w / 2), kind)
    if not analog:
        z, p, k = _bilinear(z, p, k)
    if output == "zpk":
        return _array(z), _array(p), float(k)
    if output == "sos":
        return _array(_second_order(z, p, k))
    return _array(k * np.atleast_1d(np.real(np.poly(z)))), _array(np.real(np.poly(p)))


def _butterworth(n: int, w: Any, kind: str) -> tuple[Any, Any, float]:
    """Zeros, poles and gain of the analog filter."""
    p = -np.exp(1j * np.pi * np.arange(-n + 1, n, 2) / (2 * n))
    if kind == "lowpass":
        return np.zeros(0), w[0] * p, float(w[0] ** n)
    if kind == "highpass":
        return np.zeros(n), w[0] / p, float(np.real(1 / np.prod(-p)))
    width, center = w[1] - w[0], math.sqrt(w[0] * w[1])
    half = p * width / 2 if kind == "bandpass" else width / 2 / p
    root = np.sqrt(half**2 - center**2 + 0j)
    poles = np.concatenate([half + root, half - root])
    if kind == "bandpass":
        return np.zeros(n), poles, float(width**n)
    zeros = np.concatenate([np.full(n, 1j * center), np.full(n, -1j * center)])
    return zeros, poles, float(np.real(1 / np.prod(-p)))


def _bilinear(z: Any, p: Any, k: float) -> tuple[Any, Any, float]:
    gain = k * np.real(np.prod(4.0 - z) / np.prod(4.0 - p))
    zeros = (4.0 + z) / (4.0 - z)
    zeros = np.concatenate([zeros, -np.ones(len(p) - len(z))])
    return zeros, (4.0 + p) / (4.0 - p), float(gain)


def _pairs(values: Any) -> list[tuple[complex, complex]]:
    """Conjugate pairs, and pairs of real numbers; an odd number gets a zero at the origin."""
    values = np.asarray(values, complex)
    real = sorted(v.real for v in values if abs(v.imag) < 1e-9 * max(abs(v), 1e-300))
    upper = [v for v in values if v.imag >= 1e-9 * max(abs(v), 1e-300)]
    out = [(v, v.conjugate()) for v in upper]
    # Real values are paired from both ends: (smallest, largest), and so on.
    while len(real) >= 2:
        out.append((real.pop(0), real.pop()))
    return out + [(real[0], 0j)] if real else out


def _second_order(z: Any, p: Any, k: float) -> Any:
    """Sections of second order, the poles nearest to the unit circle last."""
    poles = sorted(_pairs(p), key=lambda q: (q[1] != 0, abs(q[0])))
    zeros = _pairs(z)
    sections = np.zeros((len(poles), 6))
    for i in range(len(poles) - 1, -1, -1):
        single = poles[i][1] == 0
        matching = [q for q in zeros if (q[1] == 0) == single] or zeros
        if matching:
            pair = min(matching, key=lambda q: abs(q[0] - poles[i][0]))
            zeros.remove(pair)
        else:
            pair = (0j, 0j)
        sections[i, :3], sections[i, 3:] = np.real(np.poly(pair)), np.real(np.poly(poles[i]))
    sections[0, :3] *= k
    return sections


def savgol_coeffs(
    window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, pos: int | None = None,
    use: str = "conv",
) -> Array:  # fmt: skip
    """Taps of a Savitzky-Golay filter.

    Args:
      window_length: the number of taps.
      polyorder: the degree of the polynomials, less than ``window_length``.
      deriv: the order of the derivative.
      delta: the spacing of samples.
      pos: the position at which the polynomial is evaluated, by default the middle.
      use: ``"conv"`` for a convolution, ``"dot"`` for a correlation.

    Returns:
      The coefficients ``[window_length]``.

    Raises:
      ValueError: if an argument is out of its range.

    >>> [round(float(v), 3) for v in savgol_coeffs(5, 2) * 35]
    [-3.0, 12.0, 17.0, 12.0, -3.0]
    """
    check_mode("savgol_coeffs", use, ("conv", "dot"), "use")
    return _array(savgol_taps("savgol_coeffs", window_length, polyorder, deriv, delta, pos, use))


def savgol_taps(
    name: str, length: Any, degree: Any, deriv: Any, delta: float, pos: Any, use: str
) -> Any:
    """Taps as a NumPy array."""
    n, k, d = operator.index(length), operator.index(degree), operator.index(deriv)
    if not 0 <= k < n:
        raise ValueError(f"{name}: polyorder={k} must be less than window_length={n}")
    half, remainder = divmod(n, 2)
    pos = (half if remainder else half - 0.5) if pos is None else pos
    if not 0 <= pos < n:
        raise ValueError(f"{name}: pos={pos} must be nonnegative and less than window_length={n}")
    if d > k:
        return np.zeros(n)
    x = np.arange(-pos, n - pos, dtype=float)
    if use == "conv":
        x = x[::-1]
    target = np.zeros(k + 1)
    target[d] = math.factorial(d) / delta**d
    return np.linalg.lstsq(np.vander(x, k + 1, increasing=True).T, target, rcond=None)[0]
