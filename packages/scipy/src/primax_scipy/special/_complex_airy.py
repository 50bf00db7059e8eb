"""Airy functions of complex numbers, from modified Bessel functions of orders -1/3 and 2/3."""

from __future__ import annotations

import cmath
import math
from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, lax

from .._elementary import choose
from ._complex_bessel_kernels import (
    as_complex,
    modified,
    modified_work,
    phase,
    stretched,
    times,
    times_i,
)
from ._operands import in_blocks

_ROOT_3: Final = math.sqrt(3.0)
_LARGEST: Final = 1e9
_kernel = in_blocks(modified, modified_work)

Four = tuple[Any, Any, Any, Any]


def _series(z: Any) -> Four:
    """``Ai``, ``Ai'``, ``Bi``, ``Bi'`` up to 1: DLMF 9.4."""
    cube = z * z * z
    f = g = f1 = g1 = lax.full_like(z, 0.0)
    for k in reversed(range(9)):
        # Each factor is the quotient of two successive terms.
        f = 1 + f * cube * (1 / ((3 * k + 2) * (3 * k + 3)))
        g = 1 + g * cube * (1 / ((3 * k + 3) * (3 * k + 4)))
        f1 = 1 + f1 * cube * (1 / ((3 * k + 3) * (3 * k + 5)))
        g1 = 1 + g1 * cube * (1 / ((3 * k + 1) * (3 * k + 3)))
    a, b = 0.35502805388781724, -0.2588194037928068  # Ai(0), Ai'(0)
    one, one1, two, two1 = a * f, (0.5 * a) * (z * z) * f1, b * z * g, b * g1
    return one + two, one1 + two1, _ROOT_3 * (one - two), _ROOT_3 * (one1 - two1)


def _bessel(u: Any, exponent: Any) -> Four:
    """``Ai``, ``Ai'`` times ``exp(c)``, ``Bi``, ``Bi'`` times ``exp(-Re c)`` with ``c = 2/3
    u^(3/2)`` in the sector of arguments from 0 to π/3: DLMF 9.6."""
    root = lax.sqrt(u)
    i, i2, k, k2 = _kernel(lax.full_like(lax.real(u), -1 / 3), exponent)
    decay = times(lax.exp(-2 * lax.real(exponent)), phase(-lax.imag(exponent)))
    scale = 1 / (math.pi * _ROOT_3)
    return (
        scale * root * k,
        -scale * u * k2,
        root * ((2 / _ROOT_3) * i - (1 / math.pi) * decay * k),
        u * ((2 / _ROOT_3) * i2 + (1 / math.pi) * decay * k2),
    )


def _conjugate_if(condition: Any, z: Any) -> Any:
    return lax.complex(lax.real(z), choose(condition, -lax.imag(z), lax.imag(z)))


def _turned(ai: Any, bi: Any, c: Any, turn: complex) -> tuple[Any, Any]:
    """The functions of ``u exp(2πi/3)``, or with a factor ``turn`` their derivatives: DLMF 9.2.11.

    Their exponent is ``-c``.
    """
    third = cmath.exp(1j * math.pi / 3) * turn
    decay, wave = lax.exp(-2 * lax.real(c)), phase(lax.imag(c))
    back = lax.conj(wave)
    small = times(decay, back * ai)
    first = (0.5 * third) * (back * (small - times_i(bi)))
    return first, -times_i((2 * third) * small - wave * first)


def _scaled_airy(z: Any) -> tuple[Four, Any]:
    """``Ai``, ``Ai'`` times ``exp(c)``, ``Bi``, ``Bi'`` times ``exp(-|Re c|)``, and the exponent
    ``c = 2/3 z^(3/2)``."""
    lower = lax.imag(z) < 0
    inside = lax.max(lax.abs(lax.real(z)), lax.abs(lax.imag(z))) < _LARGEST
    upper = _conjugate_if(lower, choose(inside, z, 0.0))
    turned = lax.imag(upper) > _ROOT_3 * lax.real(upper)
    u = choose(turned, upper * cmath.exp(-2j * math.pi / 3), upper)
    near = lax.abs(u) < 1
    below = lax.imag(u) < 0
    u = choose(near, 1.0, _conjugate_if(below, u))
    c = (2 / 3) * (u * lax.sqrt(u))
    # Rounding may leave the first quadrant.
    c = lax.complex(lax.abs(lax.real(c)), lax.imag(c))
    ai, ai1, bi, bi1 = (_conjugate_if(below, w) for w in _bessel(u, c))
    c = _conjugate_if(below, c)
    far = (
        _turned(ai, bi, c, 1.0), _turned(ai1, bi1, c, cmath.exp(-2j * math.pi / 3)),
    )  # fmt: skip
    (a, b), (a1, b1) = far
    c = choose(turned, -c, c)
    small = choose(near, upper, 0.0)
    low = (2 / 3) * (small * lax.sqrt(small))
    rise, fall = lax.exp(low), as_complex(lax.exp(-lax.abs(lax.real(low))))
    outs = []
    for direct, other, series, scale in zip(
        (ai, ai1, bi, bi1), (a, a1, b, b1), _series(small), (rise, rise, fall, fall), strict=True
    ):
        value = choose(near, series * scale, choose(turned, other, direct))
        outs.append(choose(inside, _conjugate_if(lower, value), np.nan))
    w, x, y, v = outs
    return (w, x, y, v), _conjugate_if(lower, choose(near, low, c))


@custom_jvp
def complex_airy(z: Any) -> Four:
    """``Ai``, ``Ai'``, ``Bi``, ``Bi'``."""
    (ai, ai1, bi, bi1), c = _scaled_airy(z)
    x, turn = lax.real(c), phase(-lax.imag(c))
    return (
        stretched(-x, turn * ai), stretched(-x, turn * ai1),
        stretched(lax.abs(x), bi), stretched(lax.abs(x), bi1),
    )  # fmt: skip


@complex_airy.defjvp
def _complex_airy_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    ai, ai1, bi, bi1 = out = complex_airy(z)
    return out, (t * ai1, t * (z * ai), t * bi1, t * (z * bi))


@custom_jvp
def complex_airye(z: Any) -> Four:
    """The results of `complex_airy` times ``exp(c)``, and ``exp(-|Re c|)`` for the latter two."""
    return _scaled_airy(z)[0]


@complex_airye.defjvp
def _complex_airye_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    ai, ai1, bi, bi1 = out = complex_airye(z)
    root = lax.sqrt(z)
    rate = lax.real(root * t)
    rate = as_complex(choose(lax.real(z * root) < 0, -rate, rate))
    return out, (
        t * (ai1 + root * ai), t * (z * ai + root * ai1),
        t * bi1 - rate * bi, t * (z * bi) - rate * bi1,
    )  # fmt: skip
