"""Exponentially scaled modified Bessel functions of the first kind.

For ``|x| <= 8`` they are computed with their power series, whose terms are all positive; for
larger arguments with Chebyshev series of ``sqrt(x) exp(-x) I(x)`` in ``16 / x - 1``, whose
coefficients were computed with 50 digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from .._trace.array import Array
from .._trace.typing import ArrayLike
from .computed_in_float64 import (
    Real,
    chebyshev,
    computed_in_float64,
    exp,
    horner,
    sign,
    sqrt,
    where,
)
from .elementwise import elementwise_samples, fast_path

_LARGE_0: Final = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11,
    -1.7941785315068062e-12, 7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
    -4.150569347287222e-14, -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15,
    -3.425485619677219e-16, -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17,
)  # fmt: skip

_LARGE_1: Final = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10,
    -1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15,
    3.3082023109209285e-16, 2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17,
)  # fmt: skip

# Number of terms of each series, for float64 and for narrower floats.
_TERMS: Final = {True: (24, 23), False: (16, 9)}


def _of_order(n: int, large: Sequence[float], precise: bool, x: Real) -> tuple[Real, Real]:
    """``exp(-|x|) I(|x|)``: divided by ``(|x| / 2)^n`` for small ``|x|``, and for large ``|x|``."""
    few, many = _TERMS[precise]
    size = x * sign(x)  # whose derivative at 0 is 0
    half = size.min(8) * 0.5
    powers = [1 / (math.factorial(k) * math.factorial(k + n)) for k in range(few)]
    beyond = chebyshev(16 / size.max(8) - 1, large[:many]) / sqrt(size)
    return exp(-size) * horner(half * half, powers), beyond


def _order_0(precise: bool, x: Real) -> Real:
    near, beyond = _of_order(0, _LARGE_0, precise, x)
    return where(abs(x) <= 8, near, beyond)


def _order_1(precise: bool, x: Real) -> Real:
    near, beyond = _of_order(1, _LARGE_1, precise, x)
    return where(abs(x) <= 8, near * x * 0.5, where(x < 0, -beyond, beyond))


bessel_i0e_p: Final = computed_in_float64(
    "bessel_i0e", _order_0, 1, orders=8, narrow=True, short=True
)
bessel_i1e_p: Final = computed_in_float64(
    "bessel_i1e", _order_1, 1, orders=8, narrow=True, short=True
)


@fast_path(bessel_i0e_p)
def bessel_i0e(x: ArrayLike) -> Array:
    """``exp(-|x|) I0(x)``, where ``I0`` is the modified Bessel function of order 0.

    The factor keeps the result in range for large elements.

    Args:
      x: an array or a number of floating dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` does not have a floating dtype, or is not an array or a number.

    The derivative is ``bessel_i1e(x) - sign(x) bessel_i0e(x)``. Under ``vmap`` the batch is one
    operand.

    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 100.0], np.float32)
    >>> print(np.asarray(bessel_i0e(x)).round(4))
    [1.     0.4658 0.0399]
    """
    return bessel_i0e_p.bind(x)


@fast_path(bessel_i1e_p)
def bessel_i1e(x: ArrayLike) -> Array:
    """``exp(-|x|) I1(x)``, where ``I1`` is the modified Bessel function of order 1.

    The factor keeps the result in range for large elements. The function is odd.

    Args:
      x: an array or a number of floating dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` does not have a floating dtype, or is not an array or a number.

    The derivative is ``bessel_i0e(x) - y (sign(x) + 1/x)`` for the result ``y``, and 1/2 at 0.
    Under ``vmap`` the batch is one operand.

    >>> import numpy as np
    >>> x = np.array([0.0, 2.0, -2.0], np.float32)
    >>> print(np.asarray(bessel_i1e(x)).round(4))
    [ 0.      0.2153 -0.2153]
    """
    return bessel_i1e_p.bind(x)


for _prim in (bessel_i0e_p, bessel_i1e_p):
    elementwise_samples(_prim, "f", low=0.3, high=14.0)
