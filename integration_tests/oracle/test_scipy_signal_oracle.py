"""Signals, images, grids and cosine transforms against the reference, where it has them."""

from __future__ import annotations

import warnings
from typing import Any

import jax.scipy as theirs
import jax.scipy.fft
import jax.scipy.interpolate
import jax.scipy.ndimage
import jax.scipy.signal
import numpy as np
import pytest

import primax_scipy as ours
from test_support import assert_close

RNG = np.random.default_rng(0)
X, Y = (RNG.normal(size=(2, n)).astype(np.float32) for n in (300, 280))
A, B = (RNG.normal(size=s).astype(np.float32) for s in ((5, 6), (2, 3)))
SPECTRA = np.asarray(jax.scipy.signal.stft(X[0], nperseg=32)[2])
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("signal.convolve", (X[0], Y[0, :7]), {"mode": "same"}),
    ("signal.convolve", (np.arange(5), np.arange(3)), {}),
    ("signal.correlate", (A, B), {"mode": "same", "method": "fft"}),
    ("signal.convolve2d", (A, B), {"mode": "same"}),
    ("signal.correlate2d", (A, B), {"mode": "same"}),
    ("signal.correlate2d", (B[:, :2], A), {"mode": "valid"}),
    ("signal.fftconvolve", (X, Y), {"axes": 1}),
    ("signal.csd", (X, Y[:, :280]), {"nperseg": 64, "fs": 3.0}),
    ("signal.welch", (X,), {"nperseg": 64, "detrend": "linear", "average": "median"}),
    ("signal.welch", (X.astype(np.int32),), {"nperseg": 50, "scaling": "spectrum"}),
    ("signal.stft", (X,), {"nperseg": 64, "boundary": "odd"}),
    ("signal.istft", (SPECTRA,), {"nperseg": 32}),
    ("signal.detrend", (X,), {"bp": [100]}),
    ("signal.detrend", (X.astype(np.float16),), {"type": "constant"}),
    ("fft.dct", (X,), {"norm": "ortho"}),
    ("fft.idct", (X,), {"n": 200}),
    ("fft.dctn", (A,), {}),
    ("fft.idctn", (A,), {"axes": (0,), "norm": "ortho"}),
]


def compare(actual: Any, expected: Any, what: str, tolerance: float = 1e-4) -> None:
    leaves = jax.tree.leaves(actual), jax.tree.leaves(expected)
    assert [(x.shape, x.dtype) for x in leaves[0]] == [(x.shape, x.dtype) for x in leaves[1]], what
    assert_close(*leaves, rtol=tolerance, scaled=True, err_msg=what)


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_values(number: int) -> None:
    path, args, params = CALLS[number]
    module, name = path.split(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual = getattr(getattr(ours, module), name)(*args, **params)
        expected = getattr(getattr(theirs, module), name)(*args, **params)
    compare(actual, expected, path)


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_coordinates(mode: str, dtype: Any) -> None:
    points = RNG.uniform(-9, 14, size=(2, 60)).astype(np.float32)
    image = (10 * A).astype(dtype)
    for order in (0, 1):
        actual = ours.ndimage.map_coordinates(image, points, order, mode, 3.0)
        expected = theirs.ndimage.map_coordinates(image, points, order, mode, 3.0)
        compare(actual, expected, f"{order} {mode}")


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_grids(method: str) -> None:
    grid = np.float32([0, 1, 3, 4, 7]), np.float32([1, 2, 4, 5, 6, 9])
    points = RNG.uniform(0, 9, size=(30, 2)).astype(np.float32)
    for fill in (np.nan, None, 2.5):
        classes = (m.interpolate.RegularGridInterpolator for m in (ours, theirs))
        actual, expected = (c(grid, A, method, fill_value=fill)(points) for c in classes)
        compare(actual, expected, f"{method} {fill}")
