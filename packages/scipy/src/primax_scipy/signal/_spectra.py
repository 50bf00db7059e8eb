"""Spectral estimates from overlapping segments.

Welch, IEEE Trans. Audio Electroacoust. 15 (1967); Heinzel, Rüdiger and Schilling, Spectrum and
spectral density estimation by the DFT (2002), for the scalings.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import dtypes, inexact, promoted, typeof
from primax_numpy.declaring import (
    as_inexact,
    check_arrays,
    compiled,
    is_complex,
    one_axis,
)

from .._layout import as_operand, check_mode, constant, padded, real_dtype, resized, single_at_least
from ._detrending import detrended
from ._frames import segments
from ._windows import get_window


class Segments(NamedTuple):
    """Static parameters of a division into segments."""

    nperseg: int
    step: int
    nfft: int
    detrend: Any
    onesided: bool
    scaling: str
    boundary: str | None
    padded: bool


def window_of(name: str, window: Any, nperseg: int | None, n: int) -> tuple[Any, int]:
    """The values of a window and the length of segments, at most ``n`` for windows by name."""
    by_name = isinstance(window, (str, tuple)) and not _numbers(window)
    if nperseg is not None:
        nperseg = operator.index(nperseg)
        if nperseg < 1:
            raise ValueError(f"{name}: nperseg must be a positive integer, got {nperseg}")
    if by_name or isinstance(window, (int, float)):
        size = 256 if nperseg is None else nperseg
        if size > n:
            if nperseg is not None:
                warnings.warn(
                    f"{name}: nperseg={nperseg} is greater than the length {n} of the input; "
                    f"using nperseg={n}.",
                    UserWarning,
                    stacklevel=4,
                )
            size = n
        return np.asarray(get_window(window, size)), size
    values = as_operand(name, window)
    shape = typeof(values).shape
    if len(shape) != 1:
        raise ValueError(f"{name}: window must be a vector, got shape {shape}")
    if shape[0] > n:
        raise ValueError(f"{name}: the window has {shape[0]} elements, the input only {n}")
    if nperseg not in (None, shape[0]):
        raise ValueError(f"{name}: nperseg={nperseg} differs from the window's length {shape[0]}")
    return values, shape[0]


def _numbers(window: Any) -> bool:
    return isinstance(window, tuple) and not (window and isinstance(window[0], str))


def plan(
    name: str, nperseg: int, noverlap: Any, nfft: Any, detrend: Any, onesided: bool, scaling: str,
    boundary: str | None = None, padded: bool = False,
) -> Segments:  # fmt: skip
    """Checked parameters of a division into segments."""
    nfft = nperseg if nfft is None else operator.index(nfft)
    noverlap = nperseg // 2 if noverlap is None else operator.index(noverlap)
    if nfft < nperseg:
        raise ValueError(f"{name}: nfft={nfft} must be at least nperseg={nperseg}")
    if noverlap >= nperseg:
        raise ValueError(f"{name}: noverlap={noverlap} must be less than nperseg={nperseg}")
    if noverlap < 0:
        raise ValueError(f"{name}: noverlap={noverlap} must not be negative")
    if detrend is not False and not callable(detrend):
        kinds = {"l": "linear", "c": "constant"}
        detrend = kinds.get(detrend, detrend)
        check_mode(name, detrend, ("constant", "linear"), "detrend")
    if boundary is not None:
        check_mode(name, boundary, ("even", "odd", "constant", "zeros"), "boundary")
    return Segments(
        nperseg, nperseg - noverlap, nfft, detrend, onesided, scaling, boundary, padded
    )  # fmt: skip


def extended(x: Any, kind: str, width: int) -> Any:
    """The last axis with ``width`` elements on both sides: zeros, edges, or reflections."""
    axis, n = typeof(x).ndim - 1, typeof(x).shape[-1]
    if kind == "zeros" or not width:
        return padded(x, axis, width, width)
    first, last = (lax.slice_in_dim(x, i, i + 1, axis=axis) for i in (0, n - 1))
    if kind == "constant":
        left, right = (pnp.repeat(e, width, axis=-1) for e in (first, last))
    else:
        left = lax.rev(lax.slice_in_dim(x, 1, width + 1, axis=axis), (axis,))
        right = lax.rev(lax.slice_in_dim(x, n - 1 - width, n - 1, axis=axis), (axis,))
        if kind == "odd":
            left, right = 2 * first - left, 2 * last - right
    return lax.concatenate([left, x, right], axis)


def transforms(x: Any, window: Any, s: Segments) -> Any:
    """Spectra ``[..., count, frequencies]`` of windowed segments of the last axis."""
    if s.boundary is not None:
        x = extended(x, s.boundary, s.nperseg // 2)
    if s.padded:
        n = typeof(x).shape[-1]
        x = resized(x, typeof(x).ndim - 1, n + (-(n - s.nperseg) % s.step) % s.nperseg)
    parts = segments(x, s.nperseg, s.step)
    if callable(s.detrend):
        parts = s.detrend(parts)
    elif s.detrend:
        parts = detrended(parts, typeof(parts).ndim - 1, s.detrend)
    window = lax.reshape(window, (1,) * (typeof(parts).ndim - 1) + (s.nperseg,))
    window = lax.convert_element_type(window, typeof(parts).dtype)
    transform = pnp.fft.rfft if s.onesided else pnp.fft.fft
    return transform(parts * window, s.nfft)


def factor(window: Any, fs: Any, scaling: str) -> Any:
    """The factor of power spectra for a scaling."""
    if scaling in ("density", "psd"):
        return 1 / (fs * pnp.sum(lax.square(window)))
    return 1 / lax.square(pnp.sum(window))


def frequencies(s: Segments, fs: Any) -> Any:
    """The frequencies of the transforms."""
    k = (np.fft.rfftfreq if s.onesided else np.fft.fftfreq)(s.nfft)
    return constant(k, fs) * fs


def times(s: Segments, n: int, fs: Any) -> Any:
    """The middles of the segments of an input of ``n`` elements."""
    if s.boundary is not None:
        n += 2 * (s.nperseg // 2)
    if s.padded:
        n += (-(n - s.nperseg) % s.step) % s.nperseg
    t = np.arange(s.nperseg / 2, n - s.nperseg / 2 + 1, s.step)
    return constant(t - s.nperseg / 2 if s.boundary is not None else t, fs) / fs


def prepared(window: Any, fs: Any, *xs: Any) -> tuple[Any, ...]:
    """The window, the sampling frequency and signals in one precision."""
    xs = tuple(single_at_least(x) for x in xs)
    dtype = real_dtype(xs[0])
    if isinstance(window, np.ndarray):
        window = constant(window, xs[0])
    elif typeof(window).dtype != dtype and not dtypes.issubdtype(
        typeof(window).dtype, np.complexfloating
    ):
        window = lax.convert_element_type(window, dtype)
    return window, lax.convert_element_type(fs, dtype), *xs


def check_signals(name: str, fs: Any, axis: int, *xs: Any) -> tuple[int, int]:
    """Check signals; return the axis and the greatest length."""
    check_arrays(name, *xs)
    check_arrays(name, fs)
    lengths = []
    position = 0
    for x in xs:
        position = one_axis(axis, typeof(x).ndim)
        if not typeof(x).ndim or not typeof(x).shape[position]:
            raise ValueError(f"{name}: the input must not be empty, got shape {typeof(x).shape}")
        lengths.append(typeof(x).shape[position])
    return position, max(lengths)


def same_batch(x: Any, y: Any) -> tuple[Any, Any]:
    """Two signals along the last axis, with the same batch shape and padded to the same length."""
    x, y = promoted("csd", x, y, inexact)
    n = max(typeof(x).shape[-1], typeof(y).shape[-1])
    x, y = (resized(v, typeof(v).ndim - 1, n) for v in (x, y))
    batch = lax.broadcast_shapes(typeof(x).shape[:-1], typeof(y).shape[:-1])
    return tuple(pnp.broadcast_to(v, (*batch, n)) for v in (x, y))  # type: ignore[return-value]


@compiled("axis", "plan", "average", "one", name="csd")
def cross_spectrum(x, y, window, fs, *, axis, plan, average, one):
    """Frequencies and the cross-spectral density; ``one`` for the power spectrum of ``x``."""
    x = pnp.moveaxis(as_inexact(x), axis, -1)
    y = x if one else pnp.moveaxis(as_inexact(y), axis, -1)
    if not one:
        x, y = same_batch(x, y)
    window, fs, x, y = prepared(window, fs, x, y)
    first = transforms(x, window, plan)
    second = first if one else transforms(y, window, plan)
    power = density(first, second, window, fs, plan, one)
    out = averaged(power, average)
    return frequencies(plan, fs), pnp.moveaxis(out, -1, axis if one else axis - typeof(x).ndim)


def density(first: Any, second: Any, window: Any, fs: Any, s: Segments, one: bool) -> Any:
    """Power of each segment and frequency; one-sided spectra contain that of both sides."""
    if one:
        power = lax.square(lax.real(first)) + lax.square(lax.imag(first))
    else:
        power = lax.conj(first) * second
    scale = factor(lax.abs(window) if is_complex(window) else window, fs, s.scaling)
    if s.onesided:
        weights = np.full(s.nfft // 2 + 1, 2.0)
        weights[0] = 1
        if s.nfft % 2 == 0:
            weights[-1] = 1
        weights = constant(weights, power).reshape((1,) * (typeof(power).ndim - 1) + (-1,))
        power = power * lax.convert_element_type(weights, typeof(power).dtype)
    return power * lax.convert_element_type(scale, typeof(power).dtype)


def averaged(power: Any, average: str) -> Any:
    """The mean or the unbiased median over segments."""
    axis = typeof(power).ndim - 2
    count = typeof(power).shape[axis]
    if average == "mean":
        return pnp.mean(power, axis)
    k = 2.0 * np.arange(1, (count - 1) // 2 + 1)
    bias = 1 + float(np.sum(1 / (k + 1) - 1 / k))
    if is_complex(power):
        middle = lax.complex(
            pnp.median(lax.real(power), axis), pnp.median(lax.imag(power), axis)
        )  # fmt: skip
        return middle / bias
    return pnp.median(power, axis) / bias
