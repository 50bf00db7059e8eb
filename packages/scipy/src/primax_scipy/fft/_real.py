"""Discrete cosine and sine transforms of types 1 to 4, by the FFT.

Types 2 and 3: the even elements followed by the reversed odd elements have a Fourier transform
whose elements, times phase factors, are the transform: Makhoul, IEEE Trans. ASSP 28 (1980). Sine
transforms are cosine transforms of reversed or alternating elements: Martucci, IEEE Trans. Signal
Processing 42 (1994).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import typeof
from primax_numpy.declaring import as_inexact, compiled, is_complex

from .._layout import along, constant, padded, resized, single_at_least


def _edges(x: Any, axis: int, first: float, last: float) -> Any:
    """The first and last elements along an axis times factors."""
    n = typeof(x).shape[axis]
    factors = np.ones(n)
    factors[0] *= first
    factors[-1] *= last
    return x * along(constant(factors, x), axis, typeof(x).ndim)


def _signs(x: Any, axis: int) -> Any:
    """The elements with alternating signs."""
    signs = 1 - 2.0 * (np.arange(typeof(x).shape[axis]) % 2)
    return x * along(constant(signs, x), axis, typeof(x).ndim)


def _phases(x: Any, axis: int, angles: Any) -> Any:
    return along(constant(np.exp(1j * angles), x), axis, typeof(x).ndim)


def _first(x: Any, axis: int) -> Any:
    """The cosine transform of type 1: the spectrum of the even extension."""
    n = typeof(x).shape[axis]
    middle = lax.rev(lax.slice_in_dim(x, 1, n - 1, axis=axis), (axis,))
    return lax.real(pnp.fft.rfft(lax.concatenate([x, middle], axis), axis=axis))


def _second(x: Any, axis: int) -> Any:
    n = typeof(x).shape[axis]
    if n == 1:
        return 2 * x
    even = lax.slice_in_dim(x, 0, n, 2, axis)
    odd = lax.slice_in_dim(x, 1, n, 2, axis)
    permuted = lax.concatenate([even, lax.rev(odd, (axis,))], axis)
    half = pnp.fft.rfft(permuted, axis=axis)
    k = typeof(half).shape[axis]
    turned = half * _phases(x, axis, -math.pi / (2 * n) * np.arange(k))
    # Element n - k is minus the imaginary part of element k.
    rest = lax.slice_in_dim(lax.imag(turned), 1, n - k + 1, axis=axis)
    return 2 * lax.concatenate([lax.real(turned), -lax.rev(rest, (axis,))], axis)


def _third(x: Any, axis: int) -> Any:
    n = typeof(x).shape[axis]
    if n == 1:
        return x
    k = n // 2 + 1
    mirrored = padded(lax.rev(lax.slice_in_dim(x, 1, n, axis=axis), (axis,)), axis, 1, 0)
    half = lax.complex(resized(x, axis, k), -resized(mirrored, axis, k))
    half = half * (n * _phases(x, axis, math.pi / (2 * n) * np.arange(k)))
    permuted = pnp.fft.irfft(half, n, axis=axis)
    middle = (n + 1) // 2
    even = lax.slice_in_dim(permuted, 0, middle, axis=axis)
    odd = lax.rev(lax.slice_in_dim(permuted, middle, n, axis=axis), (axis,))
    even, odd = resized(even, axis, middle), resized(odd, axis, middle)
    shape = [*typeof(x).shape]
    shape[axis] = 2 * middle
    joined = lax.reshape(pnp.stack([even, odd], axis + 1), shape)
    return resized(joined, axis, n)


def _fourth(x: Any, axis: int) -> Any:
    n = typeof(x).shape[axis]
    k = np.arange(n)
    phases = _phases(x, axis, -math.pi / (2 * n) * k)
    turned = lax.convert_element_type(x, phases.dtype) * phases
    spectrum = pnp.fft.fft(turned, 2 * n, axis=axis)
    spectrum = lax.slice_in_dim(spectrum, 0, n, axis=axis)
    return 2 * lax.real(spectrum * _phases(x, axis, -math.pi / (4 * n) * (2 * k + 1)))


def _sine_first(x: Any, axis: int) -> Any:
    n = typeof(x).shape[axis]
    x = padded(x, axis, 1, 0)
    extended = lax.concatenate(
        [x, -lax.rev(padded(lax.slice_in_dim(x, 1, n + 1, axis=axis), axis, 0, 1), (axis,))], axis
    )
    spectrum = pnp.fft.rfft(extended, axis=axis)
    return -lax.slice_in_dim(lax.imag(spectrum), 1, n + 1, axis=axis)


_COSINE = {1: _first, 2: _second, 3: _third, 4: _fourth}
_ROOT = math.sqrt(2)
# The factors of the first and last elements before and after an orthogonal transform
_BEFORE = {(False, 1): (_ROOT, _ROOT), (False, 3): (_ROOT, 1.0), (True, 3): (1.0, _ROOT)}
_AFTER = {(False, 1): (1 / _ROOT, 1 / _ROOT), (False, 2): (1 / _ROOT, 1.0),
          (True, 2): (1.0, 1 / _ROOT)}  # fmt: skip


def _unscaled(x: Any, axis: int, kind: int, sine: bool) -> Any:
    if not sine:
        return _COSINE[kind](x, axis)
    if kind == 1:
        return _sine_first(x, axis)
    if kind == 2:
        return lax.rev(_second(_signs(x, axis), axis), (axis,))
    return _signs(_COSINE[kind](lax.rev(x, (axis,)), axis), axis)


def logical_size(n: int, kind: int, sine: bool) -> int:
    """The period of the extension of ``n`` elements, by which an inverse is divided."""
    return 2 * n if kind != 1 else 2 * (n + 1) if sine else 2 * (n - 1)


def _one_axis(x, axis, kind, sine, norm, orthogonal):
    if is_complex(x):
        parts = (_one_axis(p(x), axis, kind, sine, norm, orthogonal) for p in (lax.real, lax.imag))
        return lax.complex(*parts)
    if orthogonal and (sine, kind) in _BEFORE:
        x = _edges(x, axis, *_BEFORE[sine, kind])
    size = logical_size(typeof(x).shape[axis], kind, sine)
    y = _unscaled(x, axis, kind, sine)
    if orthogonal and (sine, kind) in _AFTER:
        y = _edges(y, axis, *_AFTER[sine, kind])
    if norm == "backward":
        return y
    return y * (1 / size if norm == "forward" else 1 / math.sqrt(size))


@compiled("axes", "sizes", "kind", "sine", "norm", "orthogonal", name="dct")
def transformed(x, *, axes, sizes, kind, sine, norm, orthogonal):
    """Transforms along axes, after truncation or padding to sizes."""
    x = single_at_least(as_inexact(x))
    for axis, n in zip(axes, sizes):
        x = _one_axis(resized(x, axis, n), axis, kind, sine, norm, orthogonal)
    return lax.convert_element_type(x, typeof(x).dtype)
