"""The inverse of the short-time Fourier transform."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled, one_axis

from .._layout import as_operand, check_mode, constant, real_dtype
from ._frames import overlap_added
from ._windows import get_window

_SMALL = 1e-10


def istft(
    Zxx: ArrayLike, fs: ArrayLike = 1.0, window: str | tuple[Any, ...] | ArrayLike = "hann",
    nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
    input_onesided: bool = True, boundary: bool = True, time_axis: int = -1, freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Array, Array]:  # fmt: skip
    """Inverse of `stft` with the same window: a least-squares estimate of the signal.

    Griffin and Lim, IEEE Trans. ASSP 32 (1984). Elements where the squared windows sum to zero
    cannot be recovered; they are the unnormalized sums.

    Args:
      Zxx: complex numbers with axes of frequency and time.
      fs, window, nperseg, noverlap, scaling: those of `stft`.
      nfft: the length of the transforms, by default ``nperseg``.
      input_onesided: the spectra are those of real signals.
      boundary: remove half a segment from both ends, which `stft` added.
      time_axis, freq_axis: the axes; they become one, the last axis of time.

    Returns:
      times and the signal.

    Raises:
      ValueError: if the axes are equal, sizes do not match, or the scaling is unknown.

    >>> from primax_scipy.signal import stft
    >>> x = np.float32([1, -2, 3, 4, 0, 1, 1, 2])
    >>> bool(abs(istft(stft(x, nperseg=4)[2], nperseg=4)[1] - x).max() < 1e-6)
    True
    """
    check_arrays("istft", Zxx, fs)
    check_mode("istft", scaling, ("spectrum", "psd"), "scaling")
    ndim = typeof(Zxx).ndim
    if ndim < 2:
        raise ValueError(f"istft: Zxx needs axes of frequency and time, got {typeof(Zxx).shape}")
    time, freq = one_axis(time_axis, ndim), one_axis(freq_axis, ndim)
    if time == freq:
        raise ValueError("istft: time_axis and freq_axis must differ")
    count = typeof(Zxx).shape[freq]
    default = 2 * (count - 1) if input_onesided else count
    if nperseg is None and not isinstance(window, (str, tuple, int, float)):
        nperseg = typeof(as_operand("istft", window)).shape[0]
    nperseg = default if nperseg is None else operator.index(nperseg)
    if nperseg < 1:
        raise ValueError(f"istft: nperseg must be a positive integer, got {nperseg}")
    if nfft is None:
        nfft = nperseg if input_onesided and nperseg == default + 1 else default
    nfft = operator.index(nfft)
    noverlap = nperseg // 2 if noverlap is None else operator.index(noverlap)
    if nfft < nperseg:
        raise ValueError(f"istft: nfft={nfft} must be at least nperseg={nperseg}")
    if not 0 <= noverlap < nperseg:
        raise ValueError(
            f"istft: noverlap={noverlap} must be nonnegative and less than nperseg={nperseg}"
        )
    if isinstance(window, (str, tuple, int, float)):
        values = np.asarray(get_window(window, nperseg))
    else:
        values = as_operand("istft", window)
        if typeof(values).shape != (nperseg,):
            raise ValueError(
                f"istft: the window needs shape ({nperseg},), got {typeof(values).shape}"
            )
    out: tuple[Array, Array] = _inverted(
        Zxx, values, fs, nperseg=nperseg, step=nperseg - noverlap, nfft=nfft, time=time, freq=freq,
        onesided=bool(input_onesided), boundary=bool(boundary), scaling=scaling,
    )  # fmt: skip
    return out


@compiled(
    "nperseg", "step", "nfft", "time", "freq", "onesided", "boundary", "scaling", name="istft"
)
def _inverted(z, window, fs, *, nperseg, step, nfft, time, freq, onesided, boundary, scaling):
    z = pnp.moveaxis(z, (time, freq), (-2, -1))
    parts = (pnp.fft.irfft if onesided else pnp.fft.ifft)(z, nfft)
    axis = typeof(parts).ndim - 1
    parts = lax.slice_in_dim(parts, 0, nperseg, axis=axis)
    real = real_dtype(parts)
    if isinstance(window, np.ndarray):
        window = constant(window, parts)
    window = lax.convert_element_type(window, real)
    fs = lax.convert_element_type(fs, real)
    if scaling == "spectrum":
        scale = pnp.sum(window)
    else:
        scale = lax.sqrt(fs * pnp.sum(lax.square(window)))
    row = lax.reshape(window * scale, (1,) * axis + (nperseg,))
    x = overlap_added(parts * lax.convert_element_type(row, typeof(parts).dtype), step)
    count = typeof(parts).shape[-2]
    squares = pnp.broadcast_to(lax.reshape(lax.square(window), (1, nperseg)), (count, nperseg))
    norm = overlap_added(squares, step)
    if boundary:
        half = nperseg // 2
        n = typeof(x).shape[-1]
        x = lax.slice_in_dim(x, half, n - half, axis=axis - 1)
        norm = lax.slice_in_dim(norm, half, n - half, axis=0)
    norm = lax.select(norm > _SMALL, norm, lax.full_like(norm, 1))
    norm = lax.reshape(norm, (1,) * (axis - 1) + typeof(norm).shape)
    x = x / lax.convert_element_type(norm, typeof(x).dtype)
    t = constant(np.arange(typeof(x).shape[-1]), norm) / fs
    return t, x
