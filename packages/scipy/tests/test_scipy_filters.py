"""Filters, their design and resampling against SciPy; derivatives; batches; error texts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.signal as theirs

from primax_core import enable_x64, grad, jit
from primax_scipy import signal
from test_support import assert_close, check_batches, check_call, check_derivatives

RNG = np.random.default_rng(1)
ORDERS = [1, 2, 4, 7]


def compare(name: str, args: Any, params: Any, tolerance: float = 1e-8) -> None:
    expected = getattr(theirs, name)(*args, **params)
    with enable_x64(True):
        actual = getattr(signal, name)(*args, **params)
    if not isinstance(expected, tuple):
        actual, expected = (actual,), (expected,)
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [1, 3, 33, 1500])
def test_recursive_filters(order: int, n: int) -> None:
    b, a = theirs.butter(order, 0.2)
    x, zi = RNG.normal(size=(2, n)), RNG.normal(size=(2, order))
    compare("lfilter", (b, a, x), {})
    compare("lfilter", (2 * b[:2], 2 * a, x), {"zi": zi})
    compare("lfilter", (b, a, x.T), {"axis": 0})
    sos = theirs.butter(order, 0.2, output="sos")
    compare("sosfilt", (sos, x), {"zi": RNG.normal(size=(len(sos), 2, 2))})


@pytest.mark.parametrize("n", [256, 300])
def test_blocks_of_a_cascade(n: int) -> None:
    sos = theirs.cheby1(5, 1, [0.2, 0.4], "bandpass", output="sos")
    x, zi = RNG.normal(size=(n, 2)), RNG.normal(size=(len(sos), 2, 2))
    compare("sosfilt", (sos, x), {"axis": 0})
    compare("sosfilt", (sos, x), {"axis": 0, "zi": zi})
    compare("sosfiltfilt", (sos, x[:, 0]), {})
    single = signal.sosfilt(np.float32(sos), np.float32(x[:, 0]))
    assert_close(
        single, theirs.sosfilt(np.float32(sos), np.float64(np.float32(x[:, 0]))), rtol=1e-4
    )
    if n == 256:
        sections = RNG.normal(size=(2, 6)) * 0.3 + [0, 0, 0, 1, 0, 0]
        check_derivatives(lambda s, x: signal.sosfilt(s, x), sections, x[:, 0])


@pytest.mark.parametrize("order", ORDERS)
def test_filters_in_both_directions(order: int) -> None:
    b, a = theirs.butter(order, 0.2)
    sos = theirs.butter(order, 0.2, output="sos")
    x = RNG.normal(size=(2, 100))
    compare("lfilter_zi", (b, a), {})
    compare("sosfilt_zi", (sos,), {})
    compare("filtfilt", (b, a, x), {})
    compare("sosfiltfilt", (sos, x), {})
    for kind in ("even", "constant", None):
        compare("filtfilt", (b, a, x), {"padtype": kind})


def test_filters_of_finite_response() -> None:
    x = RNG.normal(size=500)
    for taps in (5, 101):
        compare("lfilter", (theirs.firwin(taps, 0.3), [1.0], x), {})


def test_a_filter_with_one_pole_is_the_recurrence() -> None:
    x = RNG.normal(size=2000)
    y, last = np.zeros(2000), 0.0
    for i, value in enumerate(x):
        last = y[i] = value + 0.99 * last
    assert_close(signal.lfilter([1.0], [1.0, -0.99], x.astype(np.float32)), y, atol=1e-4)


def test_design() -> None:
    for params in [
        {}, {"pass_zero": False}, {"window": ("kaiser", 3.0)}, {"width": 0.1}, {"scale": False},
    ]:  # fmt: skip
        compare("firwin", (31, 0.3), params)
    for kind in (True, False, "bandpass", "bandstop"):
        compare("firwin", (31, [100, 200]), {"pass_zero": kind, "fs": 1000})
    compare("savgol_coeffs", (7, 3), {"deriv": 1, "delta": 0.5})


@pytest.mark.parametrize("kind, w", [
    ("low", 0.3), ("high", 0.2), ("band", [0.2, 0.5]), ("stop", [0.3, 0.4]),
])  # fmt: skip
def test_butterworth_filters(kind: str, w: Any) -> None:
    for n in (1, 3, 4):
        compare("butter", (n, w, kind), {})
        compare("butter", (n, w, kind), {"analog": True})
        with enable_x64(True):
            sos = np.asarray(signal.butter(n, w, kind, output="sos"))
            z, p, k = signal.butter(n, w, kind, output="zpk")
        expected = theirs.freqz(*theirs.butter(n, w, kind))[1]
        assert_close(theirs.freqz_sos(sos)[1], expected, atol=1e-9)
        assert_close(theirs.freqz_zpk(np.asarray(z), np.asarray(p), k)[1], expected, atol=1e-9)


@pytest.mark.parametrize("n", [9, 10])
def test_resampling(n: int) -> None:
    x = RNG.normal(size=(n, 2))
    compare("hilbert", (x,), {"axis": 0})
    compare("hilbert", (x, 12), {"axis": 0})
    for num in (5, 6, n, 15, 16):
        compare("resample", (x, num), {})
        compare("resample", (x + 1j * x[::-1], num), {})
        compare("resample", (x, num), {"window": "hann"})
    compare("resample", (x, 6, np.arange(n) * 0.5 + 1), {})
    for up, down in ((2, 1), (3, 2), (5, 7), (4, 2)):
        compare("upfirdn", (RNG.normal(size=7), x, up, down), {"axis": 0})
        for kind in ("constant", "mean", "median", "minimum", "maximum"):
            compare("resample_poly", (x, up, down), {"padtype": kind})


def test_smoothing() -> None:
    x = RNG.normal(size=(3, 40))
    for mode in ("interp", "mirror", "constant", "nearest", "wrap"):
        compare("savgol_filter", (x, 7, 2), {"deriv": 1, "mode": mode})
    compare("savgol_filter", (x.T, 7, 2), {"axis": 0})


@pytest.mark.rotate(every=4, whole=True)
def test_derivatives() -> None:
    x, b, a = RNG.normal(size=50), np.array([0.3, 0.2]), np.array([1.0, -0.5, 0.2])
    zi = np.array([0.1, -0.3])
    check_derivatives(lambda *v: signal.lfilter(*v), b, a, x, order=2)
    check_derivatives(lambda b, a, x, zi: signal.lfilter(b, a, x, zi=zi)[1], b, a, x, zi)
    check_derivatives(lambda *v: signal.filtfilt(*v), b, a, x)
    sos = np.array([[0.3, 0.2, 0.1, 1.0, -0.5, 0.2]])
    check_derivatives(lambda s, x: signal.sosfilt(s, x), sos, x)
    check_derivatives(lambda x: signal.resample(x, 30), x)
    check_derivatives(lambda x: signal.resample_poly(x, 3, 2), x)
    check_derivatives(lambda x: signal.savgol_filter(x, 5, 2), x)


def test_batches_and_dtypes() -> None:
    x = RNG.normal(size=70).astype(np.float32)
    b, a = np.float32([0.3, 0.2]), np.float32([1.0, -0.5, 0.2])
    check_batches(lambda v: signal.lfilter(b, a, v), x, atol=1e-5)
    check_batches(lambda v: signal.filtfilt(b, a, v), x, atol=1e-5)
    check_batches(lambda v: signal.resample_poly(v, 3, 2), x, atol=1e-5)
    check_batches(lambda v: signal.hilbert(v).imag, x, atol=1e-5)
    mapped = jit(lambda c: signal.lfilter(b, c, x))(a)
    assert mapped.dtype == np.float32
    assert signal.lfilter(b, a, x.astype(np.complex64)).dtype == np.complex64
    assert signal.lfilter([1.0], [1.0, -1.0], np.arange(4)).tolist() == [0, 1, 3, 6]


@pytest.mark.parametrize("x64", [False, True])
def test_narrow_filters_in_single_precision(x64: bool) -> None:
    """Poles near 1 would cost several digits in ``float32``."""
    x = RNG.normal(size=2000).astype(np.float32)
    b, a = (v.astype(np.float32) for v in theirs.butter(4, 0.02))
    sos = theirs.butter(4, 0.001, output="sos").astype(np.float32)
    wide = x.astype(np.float64)
    direct = theirs.lfilter(b.astype(np.float64), a.astype(np.float64), wide)
    cascade = theirs.sosfilt(sos.astype(np.float64), wide)
    both = theirs.sosfiltfilt(sos.astype(np.float64), wide, padlen=50)
    with enable_x64(x64):
        outs = [signal.lfilter(b, a, x), signal.sosfilt(sos, x),
                signal.sosfiltfilt(sos, x, padlen=50)]  # fmt: skip
        gradient = grad(lambda v: (signal.sosfilt(sos, v) * x).sum())(x)
    exact = theirs.sosfilt(sos.astype(np.float64), wide[::-1])[::-1]
    cases = [(direct, 1e-5), (cascade, 1e-6), (both, 1e-6), (exact, 1e-6)]
    for out, (value, bound) in zip([*outs, gradient], cases, strict=True):
        assert out.dtype == np.float32
        assert_close(out, value, rtol=0, atol=bound * np.abs(value).max())


def test_operands_of_other_ranks() -> None:
    """Initial states broadcast over signals of more axes, as in SciPy; one section is a vector."""
    b, a = theirs.butter(2, 0.3)
    section = np.concatenate([b, a])
    many = RNG.normal(size=(2, 4, 20))
    with enable_x64(True):
        for shape in ((2, 4, 2), (1, 1, 2), (1, 4, 2)):
            zi = RNG.normal(size=shape)
            for ours, other in zip(
                signal.lfilter(b, a, many, zi=zi), theirs.lfilter(b, a, many, zi=zi), strict=True
            ):
                np.testing.assert_allclose(ours, other, 1e-10, 1e-12)
        expected = theirs.sosfilt(section, many)
        np.testing.assert_allclose(signal.sosfilt(section, many), expected, 1e-10, 1e-12)


def test_settings() -> None:
    x, b, a = RNG.normal(size=(2, 60)).astype(np.float32), np.float32([1, 2]), np.float32([1, -0.5])
    check_call(signal.lfilter, b, a, x)
    check_call(signal.filtfilt, b, a, x)
    check_call(signal.sosfiltfilt, np.float32([[1, 2, 1, 1, -0.5, 0.1]]), x)
    check_call(lambda v: signal.resample(v, 20, axis=1), x)
    check_call(lambda v: signal.resample_poly(v, 3, 2, axis=1, padtype="mean"), x)
    check_call(lambda v: signal.savgol_filter(v, 5, 2), x)
    check_call(signal.hilbert, x)


def test_errors() -> None:
    x = np.ones(8, np.float32)
    cases: list[tuple[Any, str]] = [
        (lambda: signal.lfilter([], [1.0], x), "b must be a nonempty vector"),
        (lambda: signal.lfilter([1.0], [0.0, 1.0], x), "a[0] must not be zero"),
        (lambda: signal.lfilter([1.0], [1.0, 1.0], x, zi=x), "zi must have shape (1,), got (8,)"),
        (lambda: signal.filtfilt([1.0], [1.0, 0.5, 1.0], x), "longer than padlen=9"),
        (lambda: signal.filtfilt([1.0], [1.0], x, method="gust"), "only method='pad'"),
        (lambda: signal.sosfilt(np.ones((1, 5)), x), "sos must have shape (sections, 6)"),
        (lambda: signal.firwin(4, 0.5, pass_zero=False), "numtaps must be odd"),
        (lambda: signal.firwin(5, 1.5), "greater than 0 and less than 1.0"),
        (lambda: signal.butter(2, 0.3, "comb"), "btype must be one of"),
        (lambda: signal.butter(2, [0.3, 0.4]), "does not match btype='lowpass'"),
        (lambda: signal.savgol_filter(x, 9, 2), "window_length=9 exceeds"),
        (lambda: signal.savgol_coeffs(3, 3), "polyorder=3 must be less than window_length=3"),
        (lambda: signal.resample(x, 0), "num must be positive"),
        (lambda: signal.upfirdn([1.0], x, 0), "up and down must be positive"),
        (lambda: signal.resample_poly(x, 2, 1, padtype="line"), "padtype must be one of"),
        (lambda: signal.hilbert(x + 0j), "x must be real"),
    ]
    for call, text in cases:
        with pytest.raises(ValueError, match=re.escape(text)):
            call()
