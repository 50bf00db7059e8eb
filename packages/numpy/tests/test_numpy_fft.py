"""Fourier transforms: errors, inverses, wide types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primax_core import enable_x64
from primax_numpy import fft

x = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fft.fft([1.0, 2]), TypeError, r"fft\.fft requires ndarray"),
        (lambda: fft.fft(x, axis=(0, 1)), ValueError, "use fft.fftn"),
        (lambda: fft.hfft(x, axis=2), ValueError, "axis 2 is out of bounds"),
        (lambda: fft.fft(1.0), ValueError, "out of bounds"),
        (lambda: fft.fft(x, n=0), ValueError, r"fft\.fft: sizes must be positive"),
        (lambda: fft.fft(x, n=2.5), TypeError, "integer"),
        (lambda: fft.ifft(x, norm="bad"), ValueError, "Invalid norm value 'bad'"),
        (lambda: fft.rfft(x * 1j), ValueError, "rfft: the operand must be real"),
        (lambda: fft.ihfft(x * 1j), ValueError, "ihfft: the operand must be real"),
        (lambda: fft.rfft(x[:, :0]), ValueError, "cannot transform the empty shape"),
        (lambda: fft.fft2(x, axes=(0,)), ValueError, "fft2 only supports 2 axes"),
        (lambda: fft.fftn(x, axes=(0, -2)), ValueError, "repeated axes"),
        (lambda: fft.fftn(x, s=(2,), axes=(0, 1)), ValueError, "different lengths"),
        (lambda: fft.irfftn(x, s=(2, -1)), ValueError, "sizes must be positive"),
        (lambda: fft.fftfreq(2.5), TypeError, "concrete integer, got 2.5"),
        (lambda: fft.rfftfreq(0), ValueError, "n must be positive"),
        (lambda: fft.fftfreq(3, np.ones(2)), ValueError, "d must be a real scalar"),
        (lambda: fft.fftshift(x, axes=3), ValueError, "axis 3 is out of bounds"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_inverses(norm: str) -> None:
    rng = np.random.default_rng(0)
    real = rng.standard_normal((2, 5, 3, 2, 4)).astype(np.float32)
    whole = real + 1j * rng.standard_normal(real.shape).astype(np.float32)
    for there, back, value in (
        (fft.fftn, fft.ifftn, whole),
        (fft.rfftn, lambda y, norm: fft.irfftn(y, s=real.shape, norm=norm), real),
        (fft.fft, fft.ifft, whole),
        (fft.hfft, lambda y, norm: fft.ihfft(y, norm=norm), None),
    ):
        if value is None:
            value = fft.rfft(real)
        np.testing.assert_allclose(back(there(value, norm=norm), norm=norm), value, atol=1e-5)


def test_shifts_are_inverse() -> None:
    y = np.arange(15).reshape(3, 5)
    assert fft.ifftshift(fft.fftshift(y)).tolist() == y.tolist()


def test_wide_types() -> None:
    with enable_x64(True):
        y = np.random.default_rng(0).standard_normal(8)
        np.testing.assert_allclose(fft.fft(y), np.fft.fft(y), 1e-14, 1e-14)
        assert fft.rfft(np.arange(4)).dtype == np.complex128
        assert fft.fft(np.float16([1, 2])).dtype == np.complex64
