"""Power and cross-spectral densities, coherence, spectrograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, compiled, is_complex

from .._layout import check_mode
from . import _spectra as spectra

_SCALINGS = ("density", "spectrum")
_MODES = ("psd", "complex", "magnitude", "angle", "phase")


def csd(
    x: ArrayLike, y: ArrayLike, fs: ArrayLike = 1.0,
    window: str | tuple[Any, ...] | ArrayLike = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None,
    detrend: str | bool | Callable[..., Any] = "constant", return_onesided: bool = True,
    scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:  # fmt: skip
    """Cross-spectral density by Welch's method: the average of ``conj(X) * Y`` over segments.

    Args:
      x, y: signals, whose other axes broadcast; the shorter one is padded with zeros. None for
        ``y`` is ``x``.
      fs: the sampling frequency, a number or a scalar array.
      window: the name of a window, a tuple for `windows.get_window`, or the values.
      nperseg: the length of segments: by default 256 or that of the window's values, at most that
        of the signals.
      noverlap: the number of common elements of neighbouring segments, by default half.
      nfft: the length of transforms, by default ``nperseg``.
      detrend: ``"constant"``, ``"linear"``, False, or a function of segments ``[..., nperseg]``.
      return_onesided: only nonnegative frequencies, which contain the power of both signs. Spectra
        of complex signals are always two-sided.
      scaling: ``"density"`` for power per frequency, ``"spectrum"`` for power.
      axis: the axis of time.
      average: ``"mean"`` or ``"median"``, corrected for its bias.

    Returns:
      the frequencies, and the spectrum, complex unless ``y`` is None.

    Raises:
      ValueError: if a size does not match, or an option is unknown.

    >>> import numpy as np
    >>> f, p = csd(np.ones(8, np.float32), np.ones(8, np.float32), nperseg=4, detrend=False)
    >>> f.tolist(), [round(float(v), 3) for v in abs(p)]
    ([0.0, 0.25, 0.5], [2.667, 1.333, 0.0])
    """
    return _density(
        "csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis,
        average,
    )  # fmt: skip


def welch(
    x: ArrayLike, fs: ArrayLike = 1.0, window: str | tuple[Any, ...] | ArrayLike = "hann",
    nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
    detrend: str | bool | Callable[..., Any] = "constant", return_onesided: bool = True,
    scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:  # fmt: skip
    """Power spectral density by Welch's method: the average over segments.

    The arguments are those of `csd`. Returns the frequencies and the real spectrum.

    Args:
      x: the signals.
      fs, window, nperseg, noverlap, nfft, detrend: as in `csd`.
      return_onesided, scaling, axis, average: as in `csd`.

    Returns:
      The frequencies ``[f]``, and the real spectrum, whose axis has the size ``f``.

    Raises:
      ValueError: as `csd`.

    It is differentiable with respect to ``x``.

    >>> import numpy as np
    >>> f, power = welch(np.sin(np.arange(64, dtype=np.float32) * np.pi / 4), nperseg=32)
    >>> float(f[int(power.argmax())])
    0.125
    """
    return _density(
        "welch", x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
        axis, average,
    )  # fmt: skip


def _of_one_rank(name: str, x: Any, y: Any, axis: int) -> tuple[Any, Any]:
    """Two signals, of which the one of lower rank gets leading axes of size 1.

    Raises:
      ValueError: for signals of different ranks, if ``axis`` counts from the front.
    """
    ranks = pnp.ndim(x), pnp.ndim(y)
    if ranks[0] == ranks[1] or 0 in ranks:
        return x, y
    if axis >= 0:
        raise ValueError(
            f"{name}: x has {ranks[0]} axes, y has {ranks[1]}, and axis={axis} counts from the "
            "front: pass a negative axis, or signals of one rank"
        )
    x, y = (lax.expand_dims(pnp.asarray(v), range(max(ranks) - pnp.ndim(v))) for v in (x, y))
    return x, y


def _density(
    name, x, y, fs, window, nperseg, noverlap, nfft, detrend, onesided, scaling, axis, average
) -> tuple[Array, Array]:  # fmt: skip
    one = y is None or y is x
    if not one:
        x, y = _of_one_rank(name, x, y, axis)
    signals = (x,) if one else (x, y)
    position, n = spectra.check_signals(name, fs, axis, *signals)
    check_mode(name, scaling, _SCALINGS, "scaling")
    check_mode(name, average, ("mean", "median"), "average")
    values, size = spectra.window_of(name, window, nperseg, n)
    onesided = onesided and not any(is_complex(v) for v in signals)
    plan = spectra.plan(name, size, noverlap, nfft, detrend, onesided, scaling)
    f, p = spectra.cross_spectrum(
        x, x if one else y, values, fs, axis=position, plan=plan, average=average, one=one
    )
    if one and y is not None:  # the cross spectrum of a signal with itself is complex
        p = lax.complex(p, pnp.zeros_like(p))
    return f, p


def periodogram(
    x: ArrayLike, fs: ArrayLike = 1.0, window: str | tuple[Any, ...] | ArrayLike = "boxcar",
    nfft: int | None = None, detrend: str | bool | Callable[..., Any] = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1,
) -> tuple[Array, Array]:  # fmt: skip
    """Power spectral density of the whole signal as one segment; see `welch`.

    Args:
      x: the signals.
      fs, detrend, return_onesided, scaling, axis: as in `csd`.
      window: as in `csd`; None is ``"boxcar"``.
      nfft: the length of the transform: a shorter one truncates the signal.

    Returns:
      The frequencies ``[f]``, and the real spectrum, whose axis has the size ``f``.

    Raises:
      ValueError: as `csd`.

    >>> import numpy as np
    >>> f, power = periodogram(np.sin(np.arange(64, dtype=np.float32) * np.pi / 4))
    >>> float(f[int(power.argmax())])
    0.125
    """
    position, n = spectra.check_signals("periodogram", fs, axis, x)
    window = "boxcar" if window is None else window
    if nfft is not None and nfft < n:
        x, n = lax.slice_in_dim(pnp.asarray(x), 0, nfft, axis=position), nfft
    return welch(
        x, fs, window, n, 0, nfft, detrend, return_onesided, scaling, position
    )  # fmt: skip


def coherence(
    x: ArrayLike, y: ArrayLike, fs: ArrayLike = 1.0,
    window: str | tuple[Any, ...] | ArrayLike = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None,
    detrend: str | bool | Callable[..., Any] = "constant", axis: int = -1,
) -> tuple[Array, Array]:  # fmt: skip
    """Magnitude squared coherence ``|Pxy|² / (Pxx Pyy)`` by Welch's method.

    The arguments are those of `csd`. Returns the frequencies and values in [0, 1].

    Args:
      x, y: the signals, whose shapes broadcast with respect to the other axes.
      fs, window, nperseg, noverlap, nfft, detrend, axis: as in `csd`.

    Returns:
      The frequencies ``[f]``, and values in [0, 1].

    Raises:
      ValueError: as `csd`.

    With one segment all values are 1, up to rounding.

    >>> import numpy as np
    >>> x = np.cos(np.arange(64, dtype=np.float32) ** 2)
    >>> _, values = coherence(x, 2 * x, nperseg=16)
    >>> [round(float(v), 3) for v in values[1:4]]
    [1.0, 1.0, 1.0]
    """
    x, y = _of_one_rank("coherence", x, y, axis)
    f, pxx = welch(x, fs, window, nperseg, noverlap, nfft, detrend, axis=axis)
    _, pyy = welch(y, fs, window, nperseg, noverlap, nfft, detrend, axis=axis)
    _, pxy = csd(x, y, fs, window, nperseg, noverlap, nfft, detrend, axis=axis)
    return f, _ratio(pxy, pxx, pyy)


@compiled(name="coherence")
def _ratio(pxy, pxx, pyy):
    return (lax.square(lax.real(pxy)) + lax.square(lax.imag(pxy))) / pxx / pyy


def spectrogram(
    x: ArrayLike, fs: ArrayLike = 1.0, window: str | tuple[Any, ...] | ArrayLike = ("tukey", 0.25),
    nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
    detrend: str | bool | Callable[..., Any] = "constant", return_onesided: bool = True,
    scaling: str = "density", axis: int = -1, mode: str = "psd",
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Spectra of consecutive segments.

    Args:
      noverlap: by default an eighth of ``nperseg``.
      mode: ``"psd"``, power; ``"complex"``, the transforms; ``"magnitude"``; ``"angle"``;
        ``"phase"``, the angle without jumps along frequencies.
      x, fs, window, nperseg, nfft, detrend, return_onesided, scaling, axis: as in `csd`.

    Returns:
      frequencies, times, and the spectra: the axis becomes that of frequencies, and the last axis
      is time.

    Raises:
      ValueError: if the mode or the scaling is unknown, and as `csd`.

    >>> import numpy as np
    >>> x = np.ones(64, np.float32)
    >>> [v.shape for v in spectrogram(x, nperseg=16, noverlap=8)]
    [(9,), (7,), (9, 7)]
    """
    position, n = spectra.check_signals("spectrogram", fs, axis, x)
    check_mode("spectrogram", mode, _MODES)
    check_mode("spectrogram", scaling, _SCALINGS, "scaling")
    values, size = spectra.window_of("spectrogram", window, nperseg, n)
    noverlap = size // 8 if noverlap is None else noverlap
    plan = spectra.plan(
        "spectrogram", size, noverlap, nfft, detrend, return_onesided and not is_complex(x), scaling
    )
    out: tuple[Array, Array, Array] = segmented(x, values, fs, axis=position, plan=plan, mode=mode)
    return out


@compiled("axis", "plan", "mode", name="stft")
def segmented(x, window, fs, *, axis, plan, mode):
    """Frequencies, times and spectra of segments."""
    n = typeof(x).shape[axis]
    x = pnp.moveaxis(as_inexact(x), axis, -1)
    window, fs, x = spectra.prepared(window, fs, x)
    parts = spectra.transforms(x, window, plan)
    if mode == "psd":
        out = spectra.density(parts, parts, window, fs, plan, True)
    else:
        scale = lax.sqrt(spectra.factor(window, fs, plan.scaling))
        out = parts * lax.convert_element_type(scale, typeof(parts).dtype)
    if mode == "magnitude":
        out = lax.abs(out)
    elif mode in ("angle", "phase"):
        out = pnp.angle(out)
    if mode == "phase":
        out = pnp.unwrap(out, axis=-1)
    return spectra.frequencies(plan, fs), spectra.times(plan, n, fs), pnp.moveaxis(out, -1, axis)


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: str | tuple[Any, ...] | ArrayLike = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str | bool | Callable[..., Any] = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Array, Array, Array]:
    """Short-time Fourier transform: the spectra of overlapping segments.

    Args:
      boundary: the extension of the signal by half a segment on both sides: ``"zeros"``,
        ``"even"``, ``"odd"``, ``"constant"`` or None.
      padded: pad the end with zeros to a whole number of segments.
      scaling: ``"spectrum"`` for amplitudes, ``"psd"`` for densities.
      x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, axis: as in `csd`.

    Returns:
      frequencies, times, and complex numbers: the axis becomes that of frequencies, and the last
      axis is time.

    Raises:
      ValueError: if a size does not match, or an option is unknown.

    >>> import numpy as np
    >>> f, t, z = stft(np.ones(8, np.float32), nperseg=4)
    >>> z.shape, t.tolist()
    ((3, 5), [0.0, 2.0, 4.0, 6.0, 8.0])
    """
    position, n = spectra.check_signals("stft", fs, axis, x)
    check_mode("stft", scaling, ("spectrum", "psd"), "scaling")
    values, size = spectra.window_of("stft", window, nperseg, n)
    plan = spectra.plan(
        "stft", size, noverlap, nfft, detrend, return_onesided and not is_complex(x), scaling,
        boundary, padded,
    )  # fmt: skip
    if boundary in ("even", "odd") and size // 2 >= n:
        raise ValueError(f"stft: {n} elements cannot be reflected by half a segment, {size // 2}")
    out: tuple[Array, Array, Array] = segmented(
        x, values, fs, axis=position, plan=plan, mode="complex"
    )
    return out
