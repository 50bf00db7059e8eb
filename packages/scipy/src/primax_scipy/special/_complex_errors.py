"""Error functions of complex numbers, by the Faddeeva function and power series near 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import typeof

from .._elementary import ROOT_PI, choose
from ._faddeeva import faddeeva


def _times_i(z: Any) -> Any:
    return lax.complex(-lax.imag(z), lax.real(z))


def _bell(z: Any) -> Any:
    """``exp(-z²)``."""
    x, y = lax.real(z), lax.imag(z)
    size, angle = lax.exp((y - x) * (y + x)), -2 * (x * y)
    # Without the product of an infinite size and a zero sine
    turned = choose(angle == 0, 0.0, size * lax.sin(angle))
    return lax.complex(size * lax.cos(angle), turned)


def _modulus_below(z: Any, limit: float) -> Any:
    x, y = lax.real(z), lax.imag(z)
    return x * x + y * y < limit * limit


def _power_series(z: Any, ratio: Callable[[int], float]) -> Any:
    """``z (1 + r(1) z² (1 + r(2) z² (...)))`` for ``|z| < 1``."""
    square = z * z
    total: Any = lax.full_like(z, 1)
    for k in reversed(range(1, 26 if typeof(z).dtype == np.complex128 else 13)):
        total = 1 + total * square * ratio(k)
    return z * total


def _mirrored(z: Any, flipped: Any) -> Any:
    return choose(flipped, -z, z)


def _finished(z: Any, value: Any, limit: float) -> Any:
    """An odd function that is real on the real axis and imaginary on the other, with the limit on
    the right."""
    x, y = lax.real(z), lax.imag(z)
    end = (lax.abs(x) == np.inf) & (lax.abs(y) < np.inf)
    re = choose(end, lax.sign(x) * limit, choose(x == 0, x, lax.real(value)))
    return lax.complex(re, choose(end, 0.0, choose(y == 0, y, lax.imag(value))))


@custom_jvp
def complex_erf(z: Any) -> Any:
    """Error function; the power series is DLMF 7.6.1."""
    left = lax.real(z) < 0
    near = _modulus_below(z, 1.0)
    right = choose(near, lax.full_like(z, 2), _mirrored(z, left))
    far = 1 - _bell(right) * faddeeva(_times_i(right))
    small = choose(near, z, lax.full_like(z, 0))
    series = _power_series(small, lambda k: -(2 * k - 1) / (k * (2 * k + 1)))
    return _finished(z, choose(near, (2 / ROOT_PI) * series, _mirrored(far, left)), 1.0)


@custom_jvp
def complex_erfc(z: Any) -> Any:
    """Complementary error function: DLMF 7.7.1."""
    left = lax.real(z) < 0
    right = _mirrored(z, left)
    end = (lax.real(right) == np.inf) & (lax.abs(lax.imag(right)) < np.inf)
    value = choose(end, lax.full_like(z, 0), _bell(right) * faddeeva(_times_i(right)))
    return choose(left, 2 - value, value)


@custom_jvp
def complex_dawson(z: Any) -> Any:
    """Dawson integral: DLMF 7.5.1, and 7.6.4 near 0."""
    below = lax.imag(z) < 0
    near = _modulus_below(z, 1.0)
    upper = choose(near, lax.full_like(z, 2), _mirrored(z, below))
    far = _times_i(_bell(upper) - faddeeva(upper)) * (0.5 * ROOT_PI)
    small = choose(near, z, lax.full_like(z, 0))
    series = _power_series(small, lambda k: -2 / (2 * k + 1))
    return _finished(z, choose(near, series, _mirrored(far, below)), 0.0)


@complex_erf.defjvp
def _complex_erf_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    return complex_erf(z), t * (_bell(z) * (2 / math.sqrt(math.pi)))


@complex_erfc.defjvp
def _complex_erfc_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    return complex_erfc(z), t * (_bell(z) * (-2 / math.sqrt(math.pi)))


@complex_dawson.defjvp
def _complex_dawson_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    value = complex_dawson(z)
    return value, t * (1 - 2 * z * value)
