"""Cosine, sine, Hermitian and Hankel transforms against SciPy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.fft as theirs

from primax_core import enable_x64
from primax_scipy import fft
from test_support import assert_close, check_batches, check_call, check_derivatives

RNG = np.random.default_rng(2)
X = RNG.normal(size=(4, 5))


def compare(name: str, *args: Any, **params: Any) -> None:
    expected = getattr(theirs, name)(*args, **params)
    with enable_x64(True):
        actual = getattr(fft, name)(*args, **params)
    assert_close(actual, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_real_transforms(name: str, kind: int) -> None:
    for n in (1, 2, 5, 8):
        if n == 1 and kind == 1 and "c" in name:
            continue
        x = RNG.normal(size=(n, 2))
        for norm in (None, "ortho", "forward"):
            for orthogonalize in (None, True, False):
                compare(name, x, kind, axis=0, norm=norm, orthogonalize=orthogonalize)
    compare(name, X + 1j * X[::-1], kind, n=7)


def test_several_axes() -> None:
    compare("dctn", X, 1, s=(6, 3))
    compare("idctn", X, 2, axes=(0,))
    compare("dstn", X, 3, norm="ortho")
    compare("idstn", X, 4)
    for norm in (None, "ortho", "forward"):
        for name in ("hfft2", "hfftn"):
            compare(name, X + 1j * X[::-1], norm=norm)
            compare(f"i{name}", X, norm=norm)


@pytest.mark.parametrize("n", [7, 64])
def test_hankel_transform(n: int) -> None:
    x = RNG.normal(size=(2, n))
    for mu, bias in ((0.5, 0.0), (0.0, 0.3), (1.5, -0.4)):
        offset = theirs.fhtoffset(0.1, mu, 0.2, bias)
        assert abs(fft.fhtoffset(0.1, mu, 0.2, bias) - offset) < 1e-12
        compare("fht", x, 0.1, mu, offset, bias)
        compare("ifht", x, 0.1, mu, offset, bias)


def test_lengths() -> None:
    for n in (*range(1, 300), 99991):
        for real in (False, True):
            assert fft.next_fast_len(n, real) == theirs.next_fast_len(n, real)
            assert fft.prev_fast_len(n, real) == theirs.prev_fast_len(n, real)


def test_names_of_scipy() -> None:
    threads = {"get_workers", "set_workers"}
    expected = {n for n in theirs.__all__ if "backend" not in n} - threads
    assert not expected - set(dir(fft))


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_transformations(kind: int) -> None:
    x = X[0]
    for name in ("dct", "dst"):
        fun = getattr(fft, name)
        check_derivatives(lambda v, fun=fun: fun(v, kind), x)
        single = x.astype(np.float32)
        check_batches(lambda v, fun=fun: fun(v, kind, norm="ortho"), single, atol=1e-5)
        check_call(lambda v, fun=fun: fun(v, kind, norm="ortho"), X.astype(np.float32))
    assert fft.dct(np.arange(4, dtype=np.float16), kind).dtype == np.float32
    assert fft.dct(np.arange(4), kind).dtype == np.float32


def test_errors() -> None:
    x = np.ones(3, np.float32)
    cases: list[tuple[Any, str]] = [
        (lambda: fft.dct(x, 5), "dct: type must be 1, 2, 3 or 4, got 5"),
        (lambda: fft.dct(x[:1], 1), "sizes must be at least 2 for type 1"),
        (lambda: fft.dst(x, norm="unit"), "norm must be None, 'backward', 'ortho' or 'forward'"),
        (lambda: fft.dctn(x, s=(2, 2), axes=(0,)), "2 sizes for 1 axes"),
        (lambda: fft.hfftn(x, norm="unit"), "hfftn: norm must be"),
        (lambda: fft.ihfftn(x + 0j), "x must be real"),
        (lambda: fft.fht(x, 0.1, 0.5, bias=2.0), "bias=2.0 must be between"),
        (lambda: fft.next_fast_len(0), "target must be positive"),
    ]
    for call, text in cases:
        with pytest.raises(ValueError, match=re.escape(text)):
            call()
