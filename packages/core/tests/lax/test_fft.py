"""Fourier transforms against NumPy, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core._base.config import enable_x64
from primax_core.lax.fourier import FftType, fft, fft_p
from test_support import check_derivatives

RNG = np.random.default_rng(0)
SHAPES = [((6,), 1), ((5,), 1), ((1,), 1), ((2, 3, 4), 2), ((3, 2, 5), 3), ((2, 2, 3, 4), 3)]


def reals(*shape):
    return RNG.standard_normal(shape)


def numbers(*shape):
    return reals(*shape) + 1j * reals(*shape)


@pytest.mark.parametrize("shape, rank", SHAPES)
def test_values(shape, rank):
    axes, lengths = tuple(range(len(shape) - rank, len(shape))), shape[len(shape) - rank :]
    z, x = numbers(*shape), reals(*shape)
    half = np.fft.rfftn(x, axes=axes)
    cases = [
        (z, "FFT", np.fft.fftn(z, axes=axes)),
        (z, FftType.IFFT, np.fft.ifftn(z, axes=axes)),
        (x, "rfft", half),
        (half, "irfft", x),
    ]
    for operand, kind, exact in cases:
        actual = fft(
            operand.astype(np.complex64 if operand.dtype == complex else np.float32), kind, lengths
        )
        assert actual.dtype == (np.complex64 if exact.dtype == complex else np.float32)
        np.testing.assert_allclose(actual, exact, rtol=1e-4, atol=1e-5)
    with enable_x64(True):
        for operand, kind, exact in cases:
            actual = fft(operand, kind, lengths)
            assert actual.dtype == exact.dtype
            np.testing.assert_allclose(actual, exact, rtol=1e-11, atol=1e-12)


def test_half_spectrum_with_invalid_imaginary_parts():
    """Imaginary parts that are zero in the spectrum of real numbers are ignored."""
    z = numbers(3, 4)
    np.testing.assert_allclose(
        fft(z.astype(np.complex64), "IRFFT", (3, 6)),
        np.fft.irfftn(z, (3, 6), (0, 1)),
        rtol=1e-4,
        atol=1e-6,
    )


@pytest.mark.parametrize(
    "kind, shape, lengths",
    [
        ("FFT", (2, 4), (4,)), ("IFFT", (3, 4), (3, 4)), ("RFFT", (2, 6), (6,)),
        ("RFFT", (2, 3, 5), (3, 5)), ("RFFT", (2, 3, 4), (2, 3, 4)), ("IRFFT", (2, 4), (6,)),
        ("IRFFT", (2, 4), (7,)), ("IRFFT", (3, 4), (3, 6)), ("IRFFT", (2, 3, 3), (2, 3, 5)),
        ("IRFFT", (2, 1), (1,)),
    ],
)  # fmt: skip
def test_derivatives(kind, shape, lengths):
    """Derivatives as functions of real numbers, which depend on the transposes' weights."""

    def parts(*xs):
        z = px.lax.complex(*xs) if kind != "RFFT" else xs[0]
        out = fft(z, kind, lengths)
        if kind == "IRFFT":
            return out
        return px.lax.concatenate([px.lax.real(out), px.lax.imag(out)], 0)

    operands = [reals(*shape)] if kind == "RFFT" else [reals(*shape), reals(*shape)]
    check_derivatives(parts, *operands, atol=1e-7)


@pytest.mark.parametrize("kind, lengths", [("FFT", (4,)), ("RFFT", (3, 4)), ("IRFFT", (3, 6))])
def test_batches(kind, lengths):
    x = (reals(2, 3, 4) if kind == "RFFT" else numbers(2, 3, 4)).astype(
        np.float32 if kind == "RFFT" else np.complex64
    )
    for axis in range(4):
        xs = np.stack([x, 2 * x, x + 1], axis)
        got = np.asarray(px.vmap(lambda v: fft(v, kind, lengths), axis)(xs))
        for i in range(3):
            one = fft(np.take(xs, i, axis), kind, lengths)
            np.testing.assert_allclose(got[i], one, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "kind, shape, lengths, dtype, out",
    [
        ("FFT", (3, 0), (0,), np.complex64, (3, 0)), ("FFT", (0, 3), (3,), np.complex64, (0, 3)),
        ("RFFT", (0, 3), (3,), np.float32, (0, 2)), ("RFFT", (3, 0), (0,), np.float32, (3, 1)),
        ("IRFFT", (3, 1), (0,), np.complex64, (3, 0)),
        ("IRFFT", (0, 3), (4,), np.complex64, (0, 4)),
    ],
)  # fmt: skip
def test_empty(kind, shape, lengths, dtype, out):
    x = np.ones(shape, dtype)
    actual, pull = px.vjp(lambda v: fft(v, kind, lengths), x)
    assert actual.shape == out and not np.any(np.asarray(actual))
    assert pull(actual)[0].shape == shape


def test_operands():
    for dtype in (np.int32, np.bool_, np.float16, np.float32):
        assert fft(np.ones(4, dtype), "FFT", (4,)).dtype == np.complex64
        assert fft(np.ones(3, dtype), "IRFFT", (4,)).dtype == np.float32
    assert fft(np.ones(4, np.int32), "RFFT", [4]).dtype == np.complex64
    assert not fft(px.lax.full((4,), 1.0), "FFT", np.array([4])).weak_type
    assert fft(np.ones((2, 2), np.float32), "RFFT", ()).dtype == np.float32
    assert list(FftType) == [0, 1, 2, 3] and FftType.RFFT.name == "RFFT"


@pytest.mark.parametrize(
    "error, text, kind, operand, lengths",
    [
        (TypeError, "Unknown FFT type value '0'", 0, np.ones(4), (4,)),
        (ValueError, "Unknown FFT type 'dct'", "dct", np.ones(4), (4,)),
        (ValueError, "only real valued inputs", "RFFT", np.ones(4, np.complex64), (4,)),
        (ValueError, "must be float32 or float64, got float16", "RFFT", np.ones(4, "f2"), (4,)),
        (ValueError, "at least as many input dimensions", "FFT", np.ones(4), (2, 2)),
        (ValueError, "rank must be between 1 and 3", "FFT", np.ones((2, 2, 2, 2)), (2, 2, 2, 2)),
        (ValueError, "minor dimensions must be equal to fft_lengths", "FFT", np.ones(4), (5,)),
        (ValueError, "RFFT input shape", "RFFT", np.ones(4), (8,)),
        (ValueError, "all except the last", "IRFFT", np.ones((4, 3)), (3, 4)),
        (ValueError, "cut the spectrum", "IRFFT", np.ones(8), (4,)),
        (ValueError, "cut the spectrum", "IRFFT", np.ones(8), (-4,)),
        (TypeError, "sequence of integers", "FFT", np.ones(4), 4),
        (TypeError, "sequence of integers", "FFT", np.ones(4), (4.5,)),
    ],
)
def test_errors(error, text, kind, operand, lengths):
    with pytest.raises(error, match=text):
        fft(operand.astype(np.float32) if operand.dtype == float else operand, kind, lengths)


def test_primitive_refuses_other_dtypes():
    with pytest.raises(ValueError, match="FFT input must be complex"):
        fft_p.bind(np.ones(4, np.float32), fft_type=FftType.FFT, fft_lengths=(4,))
