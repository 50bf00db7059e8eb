"""Faddeeva function on the complex plane."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import typeof

from .._elementary import ROOT_PI, choose


def _squares(n: int, step: float, shift: float) -> list[tuple[float, float]]:
    """Squares of equidistant nodes, and their weights exp(-t²)."""
    nodes = [(k + shift) * step for k in range(n)]
    return [(t * t, math.exp(-t * t)) for t in nodes]


def _first_quadrant(z: Any) -> Any:
    """``w(z)`` for ``Re z >= 0`` and ``Im z >= 0``.

    Each element uses one of three formulas, whose poles on the real axis are not close.
    """
    double = typeof(z).dtype == np.complex128
    n = 11 if double else 6
    step = math.sqrt(math.pi / (n + 1))
    x, y = lax.real(z), lax.imag(z)
    scaled = x / step
    part = scaled - lax.floor(scaled)
    high = y >= lax.max(x, lax.full_like(x, math.pi / step))
    midpoint = high | (part < 0.25) | (part > 0.75)
    square = z * z
    total: Any = 0.0
    middle, edge = _squares(n + 1, step, 0.5), _squares(n + 1, step, 1.0)
    for (t0, w0), (t1, w1) in zip(middle, edge):
        t, w = (choose(midpoint, lax.full_like(x, a), b) for a, b in ((t0, t1), (w0, w1)))
        t, w = (lax.convert_element_type(v, square.dtype) for v in (t, w))
        total = total + w / (square - t)
    safe = choose(midpoint, lax.full_like(z, 1), choose(z == 0, lax.full_like(z, 1), z))
    scale = lax.complex(lax.full_like(x, 0.0), lax.full_like(x, 2 * step / math.pi))
    head = lax.complex(lax.full_like(x, 0.0), lax.full_like(x, step / math.pi)) / safe
    sums = scale * z * total + choose(midpoint, lax.full_like(z, 0), head)
    # exp(-z²) / (1 ± exp(-2πi z / step)); the second exponential may be large
    angle = -2 * math.pi * part
    low = choose(high, lax.full_like(y, 0.0), y)
    growth = lax.exp(lax.min(2 * math.pi / step * low, lax.full_like(y, 90.0 if double else 40.0)))
    waves = lax.complex(growth * lax.cos(angle), growth * lax.sin(angle))
    bell = _twice_bell(choose(high, lax.full_like(z, 0), z))
    sign = choose(midpoint, lax.full_like(x, 1.0), -1.0)
    bottom = 1 + lax.convert_element_type(sign, waves.dtype) * waves
    bottom = choose((bottom == 0) | high, lax.full_like(z, 1), bottom)
    return sums + choose(high, lax.full_like(z, 0), bell / bottom)


def _twice_bell(z: Any) -> Any:
    """``2 exp(-z²)``, with both parts infinite on overflow."""
    x, y = lax.real(z), lax.imag(z)
    size, angle = 2 * lax.exp((y - x) * (y + x)), -2 * (x * y)
    return lax.complex(size * lax.cos(angle), size * lax.sin(angle))


@custom_jvp
def faddeeva(z: Any) -> Any:
    """``exp(-z²) erfc(-i z)`` of complex numbers."""
    x, y = lax.real(z), lax.imag(z)
    inner = _first_quadrant(lax.complex(lax.abs(x), lax.abs(y)))
    # w(-conj(z)) = conj(w(z)), and w(-z) = 2 exp(-z²) - w(z)
    upper = choose((x < 0) != (y < 0), lax.conj(inner), inner)
    below = y < 0
    bell = _twice_bell(choose(below, z, lax.full_like(z, 0)))
    out = choose(below, bell - upper, upper)
    return choose(z == 0, lax.full_like(z, 1), out)


@faddeeva.defjvp
def _faddeeva_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    w = faddeeva(z)
    constant = lax.complex(lax.full_like(lax.real(z), 0.0), lax.full_like(lax.real(z), 2 / ROOT_PI))
    return w, t * (constant - 2 * z * w)
