"""Convolution, spectra, windows and peaks against SciPy; derivatives; batches; error texts."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.signal as theirs

from primax_core import enable_x64, grad, jit, vmap
from primax_scipy import signal
from test_support import assert_close, check_batches, check_call, check_derivatives

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(3, 200)), RNG.normal(size=(3, 150))
MATRIX, KERNEL = RNG.normal(size=(5, 6)), RNG.normal(size=(2, 3))


def compare(name: str, args: Any, params: Any, tolerance: float = 1e-9) -> None:
    with enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual = getattr(signal, name)(*args, **params)
        expected = getattr(theirs, name)(*args, **params)
    if not isinstance(expected, tuple):
        actual, expected = (actual,), (expected,)
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e, rtol=tolerance, atol=tolerance)


SHAPES = [((7,), (3,)), ((3,), (7,)), ((4,), (4,)), ((5, 4), (2, 3)), ((2, 2), (4, 5))]


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("method", ["direct", "fft"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution(name: str, method: str, mode: str) -> None:
    for m, n in SHAPES:
        a, b = RNG.normal(size=m), RNG.normal(size=n)
        compare(name, (a, b, mode, method), {})
        compare(name, (a + 1j * a[::-1], b - 2j * b, mode, method), {})


@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
def test_convolution_of_matrices(name: str, boundary: str) -> None:
    for mode in ("full", "same", "valid"):
        compare(name, (MATRIX, KERNEL, mode, boundary, 1.5), {})
        compare(name, (KERNEL[:, :2] + 1j, MATRIX, mode, boundary), {})


@pytest.mark.parametrize("name", ["fftconvolve", "oaconvolve"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution_along_axes(name: str, mode: str) -> None:
    for m, n, axes in [((5,), (700,), None), ((5, 400), (1, 30), [1]), ((400, 5), (31, 4), None)]:
        compare(name, (RNG.normal(size=m), RNG.normal(size=n), mode, axes), {})


def test_method_of_convolution() -> None:
    large = np.zeros((300, 300), np.float32)
    assert signal.choose_conv_method(large, large) == "fft"
    assert signal.choose_conv_method(large, large[:3, :3]) == "direct"


def test_spectral_functions_match_scipy() -> None:
    for params in [
        {}, {"nperseg": 63, "noverlap": 10, "nfft": 80, "window": ("kaiser", 4.0), "fs": 3.0,
             "scaling": "spectrum", "detrend": "linear"},
        {"nperseg": 64, "average": "median"}, {"window": np.hamming(50)},
        {"nperseg": 64, "return_onesided": False, "detrend": False},
    ]:  # fmt: skip
        compare("welch", (X,), params)
        compare("csd", (X, Y), params)
    compare("csd", (X.T, Y.T), {"axis": 0, "nperseg": 64})
    compare("welch", (X[0] + 1j * X[1],), {"nperseg": 64})
    compare("coherence", (X, Y), {"nperseg": 64})
    for params in [{}, {"nfft": 100}, {"nfft": 256, "window": "hann", "scaling": "spectrum"}]:
        compare("periodogram", (X,), params)


@pytest.mark.parametrize("mode", ["psd", "complex", "magnitude", "angle", "phase"])
def test_spectrogram(mode: str) -> None:
    compare("spectrogram", (X,), {"nperseg": 64, "mode": mode}, 1e-7)


STFT: list[dict[str, Any]] = [
    {"nperseg": 64}, {"nperseg": 63, "noverlap": 40, "nfft": 70},
    {"nperseg": 64, "boundary": None, "padded": False},
    {"nperseg": 64, "boundary": "odd", "scaling": "psd", "fs": 2.0},
    {"nperseg": 64, "boundary": "even", "return_onesided": False},
    {"nperseg": 63, "boundary": "constant", "detrend": "constant"},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(STFT)))
def test_short_time_transform_and_inverse(number: int) -> None:
    params = STFT[number]
    compare("stft", (X,), params)
    spectra = theirs.stft(X[0], **params)[2]
    names = ("nperseg", "noverlap", "nfft", "fs", "scaling")
    rest = {k: v for k, v in params.items() if k in names}
    if not params.get("return_onesided", True):
        rest["input_onesided"] = False
    compare("istft", (spectra,), rest)


def test_inverse_recovers_a_batch() -> None:
    x = X.astype(np.float32)
    _, again = signal.istft(signal.stft(x, nperseg=32)[2], nperseg=32)
    assert_close(again[:, :200], x, atol=1e-5)


def test_detrend() -> None:
    for params in [{}, {"type": "constant"}, {"bp": [50, 120]}, {"axis": 0}]:
        compare("detrend", (X,), params)


WINDOWS: list[Any] = [
    "boxcar", "triang", "parzen", "bohman", "blackman", "nuttall", "blackmanharris", "flattop",
    "bartlett", "hann", "barthann", "hamming", "cosine", "lanczos", "tukey", "taylor",
    "exponential", ("kaiser", 4.0), ("gaussian", 3.0), ("general_gaussian", 1.5, 3.0),
    ("general_cosine", [0.5, 0.3, 0.2]), ("general_hamming", 0.6), ("chebwin", 60.0), 4.0,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WINDOWS)))
def test_windows(number: int) -> None:
    for n in (1, 2, 3, 8, 51):
        for periodic in (True, False):
            compare("get_window", (WINDOWS[number], n, periodic), {})


def test_slepian_windows() -> None:
    for norm in (2, "approximate", "subsample"):
        with enable_x64(True):
            actual = signal.windows.dpss(33, 3, 4, norm=norm, return_ratios=True)
        expected = theirs.windows.dpss(33, 3, 4, norm=norm, return_ratios=True)
        for a, e in zip(actual, expected, strict=True):
            assert_close(a, e, rtol=1e-8, atol=1e-8)
    with enable_x64(True):
        kbd = signal.windows.kaiser_bessel_derived(8, 3.0)
    assert_close(kbd, theirs.windows.kaiser_bessel_derived(8, 3.0), rtol=1e-9)


PEAKS: list[dict[str, Any]] = [
    {}, {"height": (-2, 3.0)}, {"threshold": (0.1, 0.8)}, {"distance": 7}, {"prominence": 1.0},
    {"width": (1, 6), "rel_height": 0.8}, {"plateau_size": (1, 4)},
    {"height": -1, "distance": 6, "prominence": 0.5, "width": 1.0},
]  # fmt: skip


@pytest.mark.rotate(every=4, whole=True)
@pytest.mark.parametrize("number", range(len(PEAKS)))
def test_peaks(number: int) -> None:
    params = PEAKS[number]
    walk = RNG.normal(size=300).cumsum()
    for x in (walk,) if "distance" in params else (walk, np.round(walk)):
        expected, properties = theirs.find_peaks(x, **params)
        with enable_x64(True):
            actual, ours = signal.find_peaks(x, **params)
            sized, _ = jit(lambda v: signal.find_peaks(v, **params, size=200))(x)
        assert actual.tolist() == expected.tolist()
        assert sized.tolist() == expected.tolist() + [-1] * (200 - len(expected))
        assert set(ours) == set(properties)
        for k, values in properties.items():
            assert_close(ours[k], values, rtol=1e-9, atol=1e-9, err_msg=k)


def test_derivatives() -> None:
    x, h = X[0, :40], Y[0, :5]
    check_derivatives(lambda a, b: signal.convolve(a, b, "same", "fft"), x, h, order=2)
    check_derivatives(lambda a, b: signal.correlate(a, b, "valid"), x, h)
    check_derivatives(lambda a: signal.welch(a, nperseg=16)[1], x, order=2)
    check_derivatives(lambda a, fs: signal.csd(a, a[::-1], fs, nperseg=16)[1].real, x, 2.0)
    check_derivatives(lambda a: signal.detrend(a, bp=[11]), x)
    check_derivatives(lambda a: signal.oaconvolve(a, h), x)

    def again(a: Any) -> Any:
        return signal.istft(signal.stft(a, nperseg=8)[2], nperseg=8)[1]

    check_derivatives(again, x)


def test_batches() -> None:
    x, h = X[0, :30].astype(np.float32), Y[0, :5].astype(np.float32)
    check_batches(lambda a, b: signal.convolve(a, b, method="direct"), x, h, atol=1e-5)
    check_batches(lambda a, b: signal.fftconvolve(a, b), x, h, atol=1e-5)
    check_batches(lambda a: signal.welch(a, nperseg=8)[1], x, atol=1e-5)
    peaks = vmap(lambda a: signal.find_peaks(a, distance=2, size=5)[0])(X[:, :30])
    for row, x in zip(peaks, X[:, :30], strict=True):
        assert row.tolist() == signal.find_peaks(x, distance=2, size=5)[0].tolist()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64, np.int32])
def test_dtypes(dtype: Any) -> None:
    x = np.arange(12).astype(dtype)
    expected = dtype if np.dtype(dtype).kind in "fc" else np.float32
    for method in ("direct", "fft"):
        assert signal.convolve(x, x, method=method).dtype == expected
    assert signal.detrend(x).dtype == expected
    assert signal.welch(x, nperseg=4)[1].dtype == np.float32


def test_settings() -> None:
    x, h = X.astype(np.float32), Y[0, :5].astype(np.float32)
    check_call(lambda a, b: signal.fftconvolve(a, b[None], axes=1), x, h)
    check_call(lambda a, b: signal.convolve2d(a, b[None], boundary="wrap"), x, h)
    check_call(signal.detrend, x)
    for name in ("welch", "spectrogram", "stft"):
        check_call(lambda v, name=name: getattr(signal, name)(v, nperseg=32), x)
    z = (x[0] + 1j * x[1]).astype(np.complex64)
    check_call(lambda a: signal.welch(a, nperseg=32, detrend="linear"), z)
    check_call(lambda a: signal.csd(a, a[0], nperseg=32, average="median"), x)
    check_call(lambda a: signal.find_peaks(a, distance=3, width=2, size=4), x[0])
    check_call(lambda z: signal.istft(z, nperseg=16), np.asarray(signal.stft(x, nperseg=16)[2]))


def test_errors() -> None:
    x = np.ones(5, np.float32)
    cases: list[tuple[Any, str]] = [
        (lambda: signal.convolve(x, x[None]), "must have the same number of dimensions"),
        (lambda: signal.convolve(x, x, "all"), "mode must be one of ['full', 'same', 'valid']"),
        (lambda: signal.convolve(x, x, method="fast"), "method must be one of"),
        (lambda: signal.convolve(x, x[:0]), "must not be empty"),
        (lambda: signal.convolve(np.ones((2, 3)), np.ones((3, 2)), "valid"), "at least as large"),
        (lambda: signal.convolve2d(x, x), "in1 and in2 must be matrices"),
        (lambda: signal.welch(x, nperseg=4, noverlap=4), "noverlap=4 must be less than nperseg=4"),
        (lambda: signal.welch(x, nperseg=4, nfft=2), "nfft=2 must be at least nperseg=4"),
        (lambda: signal.welch(x, scaling="power"), "scaling must be one of"),
        (lambda: signal.welch(x, detrend="cubic"), "detrend must be one of"),
        (lambda: signal.stft(x, window="hat", nperseg=4), "unknown window 'hat'"),
        (lambda: signal.get_window("kaiser", 5), "needs parameters"),
        (lambda: signal.istft(x), "Zxx needs axes of frequency and time"),
        (lambda: signal.detrend(x, type="cubic"), "type must be 'linear' or 'constant'"),
        (lambda: signal.detrend(x, bp=9), "break points must be between 0 and 5"),
        (lambda: signal.find_peaks(x[None]), "x must be a real vector"),
        (lambda: signal.find_peaks(x, distance=0), "distance must be at least 1"),
    ]
    for call, text in cases:
        with pytest.raises(ValueError, match=re.escape(text)):
            call()
    with pytest.raises(TypeError, match="pass size=, the number of results"):
        jit(signal.find_peaks)(x)
    with pytest.warns(UserWarning, match="nperseg=9 is greater than the length 5"):
        signal.welch(x, nperseg=9)


def test_gradient_of_a_loss_with_the_spectrum() -> None:
    def loss(gain: Any) -> Any:
        return signal.welch(gain * X[0].astype(np.float32), nperseg=32)[1].sum()

    assert_close(grad(loss)(1.0), 2 * loss(1.0), rtol=1e-5)


@pytest.mark.parametrize("name", ["csd", "coherence"])
def test_spectra_of_signals_of_different_ranks(name):
    """The signal of lower rank is repeated; before, values of another axis were taken."""
    many = np.random.default_rng(0).normal(size=(2, 3, 64)).astype(np.float32)
    one = many[0, 0]
    for x, y in ((many, one), (one, many)):
        _, values = getattr(signal, name)(x, y, nperseg=16)
        _, expected = getattr(theirs, name)(x, y, nperseg=16)
        assert_close(values, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=f"{name}: x has 3 axes, y has 1, and axis=2 counts"):
        getattr(signal, name)(many, one, nperseg=16, axis=2)
