"""Owen's T function."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import Array
from primax_core.typing import ArrayLike
from primax_numpy.declaring import elementwise

from .. import _double_words as double_words
from .._elementary import ROOT_HALF, bounded, choose, exp_of_sum, halves, is_double
from ._error_functions import scaled_complement
from ._operands import called

_NODES: Final = {True: (24, 8.5), False: (12, 6.0)}
"""The number of nodes, and the length in standard deviations on which the integrand is not small;
for double precision, and for single."""


def _product(h: Any, size: Any) -> tuple[Any, Any]:
    """``h * size`` up to 60, and its rounding error; the tails of larger numbers are 0."""
    head, rest = double_words.product(h, bounded(size, 0.0, 1e30))
    value, error = double_words.ordered_total(head, rest)
    return lax.min(value, lax.full_like(value, 60.0)), choose(value < 60, error, 0.0)


def _bell(x: Any, error: Any) -> Any:
    """``exp(-x²/2)`` of ``x`` up to 60 with its rounding error."""
    head, rest = halves(x)
    return exp_of_sum(-0.5 * (head * head), -0.5 * (rest * (head + x)) - x * error)


@custom_jvp
def _owen(h: Any, a: Any) -> Any:
    nan = (h != h) | (a != a)
    h, size = lax.abs(h), lax.abs(a)
    large = size > 1
    # T(h, a) = (Q(h) + Q(ah)) / 2 - Q(h) Q(ah) - T(ah, 1/a), with upper tails Q
    h = bounded(h, 0.0, 60.0)
    height, error = _product(h, choose(large, size, 1.0))
    ratio = choose(large, 1 / size, size)
    count, extent = _NODES[is_double(h)]
    top = lax.min(ratio, extent / lax.max(height, lax.full_like(h, 1e-3)))
    square = -0.5 * lax.square(height)
    total: Any = 0.0
    for node, weight in zip(*np.polynomial.legendre.leggauss(count)):
        u = lax.square(top * (0.5 * (float(node) + 1)))
        total = total + (0.5 * float(weight)) * lax.exp(u * square) / (1 + u)
    total = top * total * (0.5 / math.pi)
    bell = _bell(height, error)
    one = 0.5 * (scaled_complement(ROOT_HALF * h) * _bell(h, 0.0))
    two = 0.5 * scaled_complement(ROOT_HALF * height)
    # Each product with the bell alone could be subnormal.
    outer = 0.5 * one + bell * (two * (0.5 - one) - total)
    out = choose(large, choose(size == np.inf, 0.5 * one, outer), bell * total)
    return choose(nan, np.nan, choose(a < 0, -out, out))


@_owen.defjvp
def _owen_jvp(primals, tangents):
    (h, a), (th, ta) = primals, tangents
    bell = lax.exp(-0.5 * lax.square(h))
    by_h = -bell * lax.erf(ROOT_HALF * (a * h)) / (2 * math.sqrt(2 * math.pi))
    more = 1 + lax.square(a)
    by_a = lax.exp(-0.5 * lax.square(h) * more) / (2 * math.pi * more)
    return _owen(h, a), th * by_h + ta * by_a


@elementwise
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T function, the probability of ``X > h`` and ``0 < Y < a X`` for normal variables.

    It is the integral of ``exp(-h² (1 + t²) / 2) / (1 + t²)`` from 0 to ``a``, divided by ``2π``,
    by Gauss-Legendre quadrature. Beyond 1 the identity for ``T(a h, 1 / a)`` is used (D. Owen,
    "Tables for computing bivariate normal probabilities", Ann. Math. Stat. 27, 1956).

    Args:
      h, a: real numbers whose shapes broadcast; integers are converted to the default float type.

    Returns:
      An array of the common shape and the promoted dtype. It is even in ``h``, and odd in ``a``.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if an argument is complex, or the shapes do not broadcast.

    The derivative with respect to ``a`` is ``exp(-h**2 * (1 + a**2) / 2) / (2 * pi * (1 + a**2))``.

    >>> round(float(owens_t(0.0, 1.0)), 6)
    0.125
    """
    out: Array = called("owens_t", _owen, h, a)
    return out
