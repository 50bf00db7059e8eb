"""Tables of associated Legendre functions."""

from __future__ import annotations

import math
import operator

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled


@compiled("n", "normalized", name="lpmn_values")
def _tables(z, *, n, normalized):
    dtype = typeof(z).dtype
    sine = lax.sqrt((1 - z) * (1 + z))
    rows = [lax.full_like(z, math.sqrt(0.25 / math.pi) if normalized else 1.0)[None]]
    for degree in range(1, n + 1):
        m = np.arange(degree, dtype=np.float64)[:, None]
        before = degree - 1
        if normalized:
            first = np.sqrt((4 * degree**2 - 1) / (degree**2 - m**2))
            second = first * np.sqrt((before**2 - m**2) / (4 * before**2 - 1 if before else 1))
            last = -math.sqrt((2 * degree + 1) / (2 * degree))
        else:
            first, second = (2 * degree - 1) / (degree - m), (before + m) / (degree - m)
            last = -(2.0 * degree - 1)
        row = first.astype(dtype) * (z * rows[-1])
        if degree > 1:  # of the order degree - 1 there is no function of the degree - 2
            row -= second.astype(dtype) * pnp.pad(rows[-2], ((0, 1), (0, 0)))
        diagonal = np.asarray(last, dtype) * (sine * rows[-1][-1:])
        rows.append(pnp.concatenate([row, diagonal]))
    return pnp.stack([pnp.pad(row, ((0, n + 1 - len(row)), (0, 0))) for row in rows], 1)


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """Associated Legendre functions of all orders and degrees, with the Condon-Shortley phase.

    Args:
      m: the highest order; must equal ``n``.
      n: the highest degree, a nonnegative Python integer.
      z: ``float[k]``, arguments from -1 to 1.
      is_normalized: multiply each function by ``sqrt((2 l + 1) (l - m)! / (4 pi (l + m)!))``, so
        that the spherical harmonic of degree ``l`` and order ``m`` at the polar angle ``theta``
        and the azimuth ``phi`` is its value at ``cos(theta)`` times ``exp(1j * m * phi)``.

    Returns:
      ``float[n + 1, n + 1, k]``, indexed by order, degree and argument; 0 where the order exceeds
      the degree.

    Raises:
      TypeError: if ``z`` is not ``float32`` or ``float64``.
      ValueError: if ``z`` is not a vector, ``m`` differs from ``n``, or ``n`` is negative.

    The recurrence computes the order equal to the degree from the degree before it, and the other
    orders from two degrees: Press et al., *Numerical Recipes* (2007), 6.7; DLMF 14.10.3. It is
    differentiable for arguments inside of the interval. :func:`sph_harm_y` computes single
    functions.

    >>> import numpy as np
    >>> lpmn_values(2, 2, np.array([0.5], np.float32), False)[:, 2, 0].round(4).tolist()
    [-0.125, -1.2990000247955322, 2.25]
    """
    check_arrays("lpmn_values", z)
    aval = typeof(z)
    if aval.dtype not in (np.float32, np.float64):
        raise TypeError(f"lpmn_values: z must be float32 or float64, got {aval.dtype.name}")
    if aval.ndim != 1:
        raise ValueError(f"lpmn_values: z must be a vector, got shape {aval.shape}")
    m, n = operator.index(m), operator.index(n)
    if m != n or n < 0:
        raise ValueError(
            f"lpmn_values: m and n must be the same nonnegative number, got {m} and {n}: compute "
            "with the larger one and take a part of the result"
        )
    if n > 2_000:  # its steps are written out
        raise ValueError(f"lpmn_values: n must be at most 2,000, got {n:,}")
    out: Array = _tables(z, n=n, normalized=bool(is_normalized))
    return out
