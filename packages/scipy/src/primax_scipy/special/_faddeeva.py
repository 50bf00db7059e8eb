"""Faddeeva function on the complex plane."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import typeof

from .._elementary import ROOT_PI, choose, is_double
from ._sines import of_turns, sine_and_cosine_of_moderate


def _squares(n: int, step: float, shift: float) -> list[tuple[float, float]]:
    """Squares of equidistant nodes, and their weights exp(-t²)."""
    nodes = [(k + shift) * step for k in range(n)]
    return [(t * t, math.exp(-t * t)) for t in nodes]


def _first_quadrant(double: bool, x: Any, y: Any, bell: tuple[Any, Any]) -> tuple[Any, Any]:
    """``w(x + i y)`` for ``x >= 0`` and ``y >= 0``, with ``bell = 2 exp(-(x + i y)²)``.

    Each element uses one of three formulas, whose poles on the real axis are not close, or the
    leading term at infinity.
    """
    n = 11 if double else 6
    step = math.sqrt(math.pi / (n + 1))
    far = lax.max(x, y) > (1e10 if double else 1e5)
    x1, y1 = choose(far, 1.0, x), choose(far, 1.0, y)
    scaled = x1 / step
    part = scaled - lax.floor(scaled)
    high = y1 >= lax.max(x1, lax.full_like(x, math.pi / step))
    midpoint = high | (part < 0.25) | (part > 0.75)
    re, im = (x1 - y1) * (x1 + y1), 2 * (x1 * y1)
    # The sum of w / (z² - t). XLA computes a quotient of two arrays that has two uses in a loop of
    # its own, but not a product with a reciprocal.
    total_re: Any = 0.0
    total_im: Any = 0.0
    middle, edge = _squares(n + 1, step, 0.5), _squares(n + 1, step, 1.0)
    for (t0, w0), (t1, w1) in zip(middle, edge):
        t, w = (choose(midpoint, lax.full_like(x, a), b) for a, b in ((t0, t1), (w0, w1)))
        gap = re - t
        share = w * (1 / (gap * gap + im * im))
        total_re, total_im = total_re + gap * share, total_im - im * share
    scale = 2 * step / math.pi
    sums = (
        -scale * (x1 * total_im + y1 * total_re), scale * (x1 * total_re - y1 * total_im)
    )  # fmt: skip
    # exp(-z²) / (1 ± exp(-2πi z / step)); the second exponential may be large
    sine, cosine = of_turns(-part)
    low = choose(high, 0.0, y1)
    growth = lax.exp(lax.min(2 * math.pi / step * low, lax.full_like(y, 90.0 if double else 40.0)))
    growth = choose(midpoint, growth, -growth)
    bottom = 1 + growth * cosine, growth * sine
    square = bottom[0] * bottom[0] + bottom[1] * bottom[1]
    unused = high | far | (square == 0)
    square = choose(unused, 1.0, square)  # two quotients: a reciprocal would be a loop, too
    poles = (
        (bell[0] * bottom[0] + bell[1] * bottom[1]) / square,
        (bell[1] * bottom[0] - bell[0] * bottom[1]) / square,
    )
    # A multiple of i / z
    outside = choose(far, 1 / ROOT_PI, choose(midpoint, lax.full_like(x, 0.0), step / math.pi))
    head = _over_i(x, y, far, outside)
    inner = ((s + choose(unused, 0.0, p)) for s, p in zip(sums, poles, strict=True))
    return tuple(h + choose(far, 0.0, v) for h, v in zip(head, inner, strict=True))


def _over_i(x: Any, y: Any, far: Any, factor: Any) -> tuple[Any, Any]:
    """Parts of ``i factor / (x + i y)``, without overflow; 0 at 0 and at infinity."""
    size = lax.max(x, y)
    finite = (size > 0) & (size < np.inf)
    # Powers of two
    big, small = (2.0**500, 2.0**-600) if is_double(x) else (2.0**50, 2.0**-70)
    scale = choose(size > big, lax.full_like(x, small), 1.0)
    u, v = (choose(finite, part, 1.0) * scale for part in (x, y))
    # Squares of small numbers may be zero; the factor is, too.
    inverse = factor * (1 / choose(factor > 0, u * u + v * v, 1.0))
    v, u = (choose(finite, part * inverse * scale, 0.0) for part in (v, u))
    return v, u


def _twice_bell(x: Any, y: Any) -> tuple[Any, Any]:
    """``2 exp(-(x + i y)²)``, with both parts infinite on overflow."""
    size = 2 * lax.exp((y - x) * (y + x))
    sine, cosine = sine_and_cosine_of_moderate(-2 * (x * y))
    return size * cosine, size * sine


@custom_jvp
def faddeeva(z: Any) -> Any:
    """``exp(-z²) erfc(-i z)`` of complex numbers."""
    x, y = lax.real(z), lax.imag(z)
    bell = _twice_bell(lax.abs(x), lax.abs(y))
    re, im = _first_quadrant(typeof(z).dtype == np.complex128, lax.abs(x), lax.abs(y), bell)
    # w(-conj(z)) = conj(w(z)), and w(-z) = 2 exp(-z²) - w(z)
    mirrored, below = (x < 0) != (y < 0), y < 0
    im = choose(mirrored, -im, im)
    out = lax.complex(
        choose(below, bell[0] - re, re),
        choose(below, choose(mirrored, -bell[1], bell[1]) - im, im),
    )
    return choose(z == 0, lax.full_like(z, 1), out)


@faddeeva.defjvp
def _faddeeva_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    w = faddeeva(z)
    constant = lax.complex(lax.full_like(lax.real(z), 0.0), lax.full_like(lax.real(z), 2 / ROOT_PI))
    return w, t * (constant - 2 * z * w)
