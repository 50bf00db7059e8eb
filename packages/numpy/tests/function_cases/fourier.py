"""Fourier transforms. Real transforms accept 16-bit floats, which the reference rejects, so they
are not varied."""

from __future__ import annotations

import numpy as np

from primax_core.extend import c64, f32, i32
from test_support import case

REAL = ("rfft", "ihfft")

CASES = [
    *[
        case(f"fft.{name}", f32(2, 5) if name in REAL else c64(2, 5), **params).set(
            vary=name not in REAL and not params, order=1
        )
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
        for params in (
            {}, {"n": 4}, {"n": 7, "axis": 0}, {"norm": "ortho"}, {"norm": "forward", "n": 6},
        )
    ],
    case("fft.fft", f32(4)),
    case("fft.rfft", i32(6)).set(vary=False),
    case("fft.fft", c64(0)).set(order=0, expected=lambda x: x),
    *[
        case(f"fft.{name}", f32(3, 4, 2) if name[0] == "r" else c64(3, 4, 2), **params).set(
            vary=name[0] != "r" and not params, order=1
        )
        for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
        for params in (
            {}, {"s": (5, 2), "axes": (1, 2)}, {"axes": (2, 0), "norm": "ortho"},
            {"norm": "forward"},
        )
    ],
    *[
        case(f"fft.{name}", f32(2, 3, 2, 3, 2) if name[0] == "r" else c64(2, 3, 2, 3, 2)).set(
            vary=False, order=1
        )
        for name in ("fftn", "ifftn", "rfftn", "irfftn")
    ],
    case("fft.fftn", f32(3, 4), axes=(1,), s=(3,)).set(vary=False),
    case("fft.fftfreq", 5),
    case("fft.fftfreq", 6, f32(low=0.5)).set(order=1, vary=False),
    case("fft.rfftfreq", 5, 0.5),
    case("fft.rfftfreq", 6, dtype="float16").set(expected=lambda n, dtype: np.fft.rfftfreq(n)),
    case("fft.fftshift", f32(5, 4)),
    case("fft.fftshift", f32(5, 4), axes=0),
    case("fft.ifftshift", f32(5, 4)),
    case("fft.ifftshift", c64(5, 3), axes=(-1,)),
]  # fmt: skip
