"""Changes of the sampling rate, analytic signals, smoothing."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, compiled, is_complex, one_axis

from .._layout import (
    along,
    as_operand,
    check_mode,
    constant,
    padded,
    real_dtype,
    resized,
    single_at_least,
    together,
)
from ._design import savgol_taps, window_taps
from ._frames import segments
from ._linear_filters import moving_sum
from ._windows import get_window


def hilbert(x: ArrayLike, N: int | None = None, axis: int = -1) -> Array:
    """Analytic signal: the signal plus ``i`` times its Hilbert transform, by the FFT.

    Args:
      x: real signals.
      N: the length of the transform, by default that of the axis.
      axis: the axis.

    Returns:
      The complex analytic signals, whose real part is the signal if ``N`` is its length.

    Raises:
      ValueError: if ``x`` is complex, or ``N`` is not positive.

    >>> hilbert(np.float32([1, 0, -1, 0])).tolist()
    [(1+0j), 1j, (-1+0j), -1j]
    """
    x = as_operand("hilbert", x)
    if is_complex(x):
        raise ValueError("hilbert: x must be real")
    position = one_axis(axis, typeof(x).ndim)
    n = typeof(x).shape[position] if N is None else operator.index(N)
    if n < 1:
        raise ValueError(f"hilbert: N must be positive, got {n}")
    out: Array = _analytic(x, n=n, axis=position)
    return out


@compiled("n", "axis", name="hilbert")
def _analytic(x, *, n, axis):
    x = single_at_least(as_inexact(x))
    weights = np.zeros(n)
    weights[: (n + 1) // 2] = 2
    weights[0] = 1
    if n % 2 == 0:
        weights[n // 2] = 1
    spectrum = pnp.fft.fft(x, n, axis=axis)
    factors = along(constant(weights + 0j, x), axis, typeof(x).ndim)
    return pnp.fft.ifft(spectrum * factors, axis=axis)


def resample(
    x: ArrayLike,
    num: int,
    t: ArrayLike | None = None,
    axis: int = 0,
    window: str | tuple[Any, ...] | ArrayLike | None = None,
    domain: str = "time",
) -> Any:
    """Signals with another number of samples, by the FFT; they are taken as periodic.

    Args:
      x: signals, or their transforms if ``domain`` is ``"freq"``.
      num: the new number of samples.
      t: equally spaced times of the samples.
      axis: the axis.
      window: a window for the spectrum: a name, a tuple, or values in the order of `fftfreq`.
      domain: ``"time"`` or ``"freq"``.

    Returns:
      the signals, and the new times if ``t`` is an argument.

    Raises:
      ValueError: if ``num`` is not positive, or the window or domain does not match.

    >>> [round(float(v), 4) for v in resample(np.float32([0, 1, 0, -1]), 8)[1:4]]
    [0.7071, 1.0, 0.7071]
    """
    check_mode("resample", domain, ("time", "freq"), "domain")
    x, num = as_operand("resample", x), operator.index(num)
    position = one_axis(axis, typeof(x).ndim)
    n = typeof(x).shape[position]
    if num < 1:
        raise ValueError(f"resample: num must be positive, got {num}")
    if window is not None:
        if isinstance(window, (str, tuple, int, float)):
            window = np.fft.ifftshift(np.asarray(get_window(window, n)))
        window = as_operand("resample", window)
        if typeof(window).shape != (n,):
            raise ValueError(f"resample: window must have shape ({n},), got {typeof(window).shape}")
    out = _resampled(x, window, num=num, axis=position, time=domain == "time")
    if t is None:
        return out
    (t,) = together(as_operand("resample", t))
    return out, pnp.arange(num, dtype=typeof(t).dtype) * ((t[1] - t[0]) * (n / num)) + t[0]


@compiled("num", "axis", "time", name="resample")
def _resampled(x, window, *, num, axis, time):
    (x,) = together(x)
    n, ndim = typeof(x).shape[axis], typeof(x).ndim
    real = time and not is_complex(x)
    shared = min(num, n)
    if real:
        spectrum = pnp.fft.rfft(x, axis=axis)
    else:
        spectrum = pnp.fft.fft(x, axis=axis) if time else x
    if window is not None:
        window = lax.convert_element_type(window, real_dtype(x))
        if real:
            mirrored = pnp.concatenate([window[:1], pnp.flip(window[1:])])
            window = ((window + mirrored) * 0.5)[: typeof(spectrum).shape[axis]]
        window = lax.convert_element_type(window, typeof(spectrum).dtype)
        spectrum = spectrum * along(window, axis, ndim)
    half = shared // 2 + 1
    positive = lax.slice_in_dim(spectrum, 0, half, axis=axis)
    if shared % 2 == 0 and num != n:
        # The Nyquist frequency of the shorter length has both signs.
        factors = np.ones(half)
        factors[-1] = (2.0 if num < n else 0.5) if real else 1.0
        positive = positive * along(constant(factors + 0j, x), axis, ndim)
    if real:
        out = pnp.fft.irfft(resized(positive, axis, num // 2 + 1), num, axis=axis)
        return out * (num / n)
    out = _two_sided(spectrum, positive, shared, num, axis)
    return pnp.fft.ifft(out, axis=axis) * (num / n)


def _two_sided(spectrum, positive, shared, num, axis):
    """The spectrum of ``num`` elements from one with more or fewer."""
    n = typeof(spectrum).shape[axis]
    if num == n:
        return spectrum
    out = resized(positive, axis, num)
    count = (shared - 1) // 2
    if count:
        negative = lax.slice_in_dim(spectrum, n - count, n, axis=axis)
        out = out + padded(negative, axis, num - count, 0)
    if shared % 2 == 0:
        middle = shared // 2
        value = lax.slice_in_dim(spectrum, middle, middle + 1, axis=axis)
        if num < n:
            other = lax.slice_in_dim(spectrum, n - middle, n - middle + 1, axis=axis)
            out = out + padded(other, axis, middle, num - middle - 1)
        else:
            half = value * 0.5
            out = out - padded(half, axis, middle, num - middle - 1)
            out = out + padded(half, axis, num - middle, middle - 1)
    return out


def upfirdn(h: ArrayLike, x: ArrayLike, up: int = 1, down: int = 1, axis: int = -1) -> Array:
    """Insert zeros, filter, and take every ``down``-th sample, in one product of matrices.

    Args:
      h: the taps, a vector.
      x: signals.
      up: ``up - 1`` zeros are inserted after each sample.
      down: the factor by which the number of samples is divided.
      axis: the axis.

    Raises:
      ValueError: if ``h`` is not a vector, or a factor is not positive.

    >>> upfirdn([1.0, 1.0, 1.0], np.float32([1, 2, 3]), up=2).tolist()
    [1.0, 1.0, 3.0, 2.0, 5.0, 3.0, 3.0]
    """
    h, x = as_operand("upfirdn", h), as_operand("upfirdn", x)
    up, down = operator.index(up), operator.index(down)
    if typeof(h).ndim != 1 or not typeof(h).shape[0]:
        raise ValueError(f"upfirdn: h must be a nonempty vector, got shape {typeof(h).shape}")
    if up < 1 or down < 1:
        raise ValueError(f"upfirdn: up and down must be positive, got {up} and {down}")
    out: Array = _polyphase(h, x, up=up, down=down, axis=one_axis(axis, typeof(x).ndim))
    return out


@compiled("up", "down", "axis", name="upfirdn")
def _polyphase(h, x, *, up, down, axis):
    h, x = together(h, x)
    rows = pnp.moveaxis(x, axis, -1)
    n, taps, last = typeof(rows).shape[-1], typeof(h).shape[0], typeof(rows).ndim - 1
    total = -(-((n - 1) * up + taps) // down)
    depth = -(-taps // up)
    width = depth + ((up - 1) * down) // up
    # Result q * up + r is a sum over samples from q * down - depth + 1 on.
    r, s = np.arange(up)[None, :], np.arange(width)[:, None] - (depth - 1)
    index = ((r * down) // up - s) * up + (r * down) % up
    index = np.where((index >= 0) & (index < taps), index, taps)
    matrix = pnp.take(resized(h, 0, taps + 1), index, axis=0)
    count = -(-total // up)
    needed = (count - 1) * down + width
    rows = padded(rows, last, depth - 1, max(needed - n - depth + 1, 0))
    rows = lax.slice_in_dim(rows, 0, needed, axis=last)
    parts = pnp.matmul(segments(rows, width, down), matrix, precision="highest")
    out = lax.reshape(parts, (*typeof(parts).shape[:-2], count * up))
    return pnp.moveaxis(lax.slice_in_dim(out, 0, total, axis=last), -1, axis)


_BACKGROUNDS = ("constant", "mean", "median", "minimum", "maximum")


def resample_poly(
    x: ArrayLike, up: int, down: int, axis: int = 0,
    window: str | tuple[Any, ...] | ArrayLike = ("kaiser", 5.0), padtype: str | None = None,
    cval: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Signals with a sampling rate multiplied by ``up / down``, by a filter of finite length.

    Args:
      x: signals.
      up, down: the factors.
      axis: the axis.
      window: the window of the filter, or its taps.
      padtype: the values beyond the ends: ``"constant"`` (the default), ``"mean"``, ``"median"``,
        ``"minimum"`` or ``"maximum"``.
      cval: the value for ``"constant"``, by default 0.

    Returns:
      The resampled signals; the axis has ``ceil(n * up / down)`` elements.

    Raises:
      ValueError: if a factor is not positive, or an option is unknown.

    >>> resample_poly(np.ones(10, np.float32), 3, 2).shape
    (15,)
    """
    name = "resample_poly"
    x = as_operand(name, x)
    up, down = operator.index(up), operator.index(down)
    if up < 1 or down < 1:
        raise ValueError(f"{name}: up and down must be positive, got {up} and {down}")
    padtype = "constant" if padtype is None else padtype
    check_mode(name, padtype, _BACKGROUNDS, "padtype")
    if cval is not None and padtype != "constant":
        raise ValueError(f"{name}: cval is only for padtype='constant'")
    common = math.gcd(up, down)
    up, down = up // common, down // common
    position = one_axis(axis, typeof(x).ndim)
    if isinstance(window, (str, tuple, int, float)):
        half = 10 * max(up, down)
        h = window_taps(2 * half + 1, [(0.0, 1 / max(up, down))], window, True)
    else:
        h = as_operand(name, window)
        if typeof(h).ndim != 1:
            raise ValueError(f"{name}: window must be a vector, got shape {typeof(h).shape}")
        half = (typeof(h).shape[0] - 1) // 2
    if up == down == 1:
        return pnp.asarray(x)
    out: Array = _at_rate(
        x, h, 0 if cval is None else cval, up=up, down=down, half=half, axis=position, kind=padtype
    )
    return out


@compiled("up", "down", "half", "axis", "kind", name="resample_poly")
def _at_rate(x, h, cval, *, up, down, half, axis, kind):
    (x,) = together(x)
    h = lax.convert_element_type(h, real_dtype(x)) * float(up)
    n = typeof(x).shape[axis]
    count = n * up // down + bool(n * up % down)
    before = down - half % down
    skipped = (half + before) // down
    level = _background(x, axis, kind, cval)
    y = _polyphase(padded(h, 0, before, 0), x - level, up=up, down=down, axis=axis)
    y = resized(y, axis, max(typeof(y).shape[axis], skipped + count))
    return lax.slice_in_dim(y, skipped, skipped + count, axis=axis) + level


def _background(x, axis, kind, cval):
    """The values beyond the ends, which are subtracted before the filter."""
    if kind == "constant":
        return lax.convert_element_type(cval, typeof(x).dtype)
    reduce = {"mean": pnp.mean, "median": pnp.median, "minimum": pnp.min, "maximum": pnp.max}
    return reduce[kind](x, axis, keepdims=True)


def savgol_filter(
    x: ArrayLike, window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0,
    axis: int = -1, mode: str = "interp", cval: ArrayLike = 0.0,
) -> Array:  # fmt: skip
    """Smooth by polynomials of least squares in a moving window.

    Args:
      x: signals; integers become floats.
      window_length, polyorder, deriv, delta: as in `savgol_coeffs`.
      axis: the axis.
      mode: ``"interp"`` evaluates the polynomials of the first and last windows at the ends;
        ``"mirror"``, ``"constant"``, ``"nearest"`` and ``"wrap"`` are those of
        `ndimage.convolve1d`.
      cval: the value for ``"constant"``.

    Returns:
      The filtered signals, of the shape of ``x``.

    Raises:
      ValueError: if an argument is out of its range, or the window is longer than the signal.

    >>> [round(float(v), 4) for v in savgol_filter(np.float32([0, 1, 4, 9, 16]), 5, 2)[1:]]
    [1.0, 4.0, 9.0, 16.0]
    """
    name = "savgol_filter"
    check_mode(name, mode, ("mirror", "constant", "nearest", "interp", "wrap"))
    x = as_operand(name, x)
    position = one_axis(axis, typeof(x).ndim)
    taps = savgol_taps(name, window_length, polyorder, deriv, delta, None, "conv")
    (x,) = together(x)
    if mode != "interp":
        kind = {"mirror": "reflect", "nearest": "edge"}.get(mode, mode)
        smooth: Array = _smoothed(x, taps, cval, axis=position, kind=kind)
        return smooth
    n = len(taps)
    if n > typeof(x).shape[position]:
        raise ValueError(
            f"{name}: window_length={n} exceeds the signal's length {typeof(x).shape[position]}: "
            "use a shorter window or another mode."
        )
    half = n // 2
    rows = np.array([savgol_taps(name, n, polyorder, deriv, delta, i, "dot") for i in range(n)])
    y = _smoothed(x, taps, 0.0, axis=position, kind="constant")
    out: Array = _with_ends(x, y, rows[:half], rows[n - half :], axis=position)
    return out


@compiled("axis", "kind", name="convolve")
def _smoothed(x, taps, cval, *, axis, kind):
    """Convolution with taps whose middle is at the position, of an extended axis."""
    rows = pnp.moveaxis(x, axis, -1)
    shape, size = typeof(rows).shape, typeof(taps).shape[0]
    widths = [(0, 0)] * (len(shape) - 1) + [(size - 1 - size // 2, size // 2)]
    if size % 2 == 0:
        widths[-1] = (size // 2, size - 1 - size // 2)
    if kind == "constant":
        fill = lax.convert_element_type(cval, typeof(rows).dtype)
        rows = lax.pad(rows, fill, [(*w, 0) for w in widths])
    else:
        rows = pnp.pad(rows, widths, mode=kind)
    n = typeof(rows).shape[-1]
    rows = lax.reshape(rows, (int(np.prod(shape[:-1])), n))
    out = moving_sum(lax.convert_element_type(taps, typeof(rows).dtype), rows)
    out = lax.reshape(lax.slice_in_dim(out, size - 1, n, axis=1), shape)
    return pnp.moveaxis(out, -1, axis)


@compiled("axis", name="savgol_filter")
def _with_ends(x, y, first, last, *, axis):
    half, n = typeof(first).shape
    if not half:
        return y
    size = typeof(x).shape[axis]
    first, last = (lax.convert_element_type(m, typeof(x).dtype) for m in (first, last))

    def end(matrix, start):
        part = pnp.moveaxis(lax.slice_in_dim(x, start, start + n, axis=axis), axis, -1)
        values = pnp.matmul(part, lax.transpose(matrix, (1, 0)), precision="highest")
        return pnp.moveaxis(values, -1, axis)

    middle = lax.slice_in_dim(y, half, size - half, axis=axis)
    return lax.concatenate([end(first, 0), middle, end(last, size - n)], axis)
