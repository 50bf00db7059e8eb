"""Spherical harmonics and Bernoulli numbers."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, Tracer, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled, strong

from .._elementary import choose
from ._operands import matched, same_shape


def _normalized_legendre(n: Any, m: Any, x: Any, s: Any, n_max: int) -> Any:
    """Associated Legendre functions normalized for spherical harmonics, for ``0 <= m``.

    ``x`` and ``s`` are cosine and sine. The recurrence computes the diagonal ``n = m`` first, then
    increases ``n``: Press et al., *Numerical Recipes* (2007), 6.7.
    """

    def diagonal(k: Any, value: Any) -> Any:
        k = lax.convert_element_type(k, typeof(x).dtype)
        return choose(m >= k, value * (-s * lax.sqrt((2 * k + 1) / (2 * k))), value)

    start = lax.full_like(x, math.sqrt(0.25 / math.pi))
    first = lax.fori_loop(1, n_max + 1, diagonal, start)

    def factor(k: Any) -> Any:
        inside = k > m
        bottom = choose(inside, k * k - m * m, 1.0)
        return choose(inside, lax.sqrt((4 * k * k - 1) / bottom), 1.0)

    def upwards(k: Any, state: Any) -> Any:
        low, high = state
        k = lax.convert_element_type(k, typeof(x).dtype)
        k = lax.full_like(x, 1.0) * k
        before = choose(k - 1 > m, low / factor(k - 1), 0.0)
        new = factor(k) * (x * high - before)
        moving = (k > m) & (k <= n)
        return choose(moving, high, low), choose(moving, new, high)

    _, out = lax.fori_loop(1, n_max + 1, upwards, (lax.full_like(x, 0.0), first))
    return choose((m <= n) & (n >= 0), out, 0.0)


@compiled("n_max", name="sph_harm_y")
def _sph_harm_y(n, m, theta, phi, *, n_max):
    theta, phi = map(strong, matched("sph_harm_y", theta, phi))
    dtype = typeof(theta).dtype
    n, m = (lax.convert_element_type(v, dtype) for v in (n, m))
    n, m, theta, phi = same_shape(n, m, theta, phi)
    size = lax.abs(m)
    sine = lax.sin(theta)
    # Legendre functions contain sqrt(1 - cos²), which is nonnegative at angles outside of [0, π].
    sine = choose((sine < 0) & ((theta < 0) | (theta > 3.2)), -sine, sine)
    out = _normalized_legendre(n, size, lax.cos(theta), sine, n_max)
    odd = lax.rem(size, lax.full_like(size, 2.0)) == 1
    out = choose((m < 0) & odd, -out, out)
    return lax.complex(out * lax.cos(m * phi), out * lax.sin(m * phi))


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Spherical harmonics, with the Condon-Shortley phase.

    Args:
      n: degrees, nonnegative integers.
      m: orders, integers; the result is 0 if ``|m| > n``.
      theta: polar angles, from 0 to π.
      phi: azimuths.
      diff_n: unsupported; differentiate with ``jvp``.
      n_max: the highest degree, a Python integer; required if ``n`` is traced.

    Returns:
      Complex numbers, of the shape that the arguments broadcast to.

    Raises:
      NotImplementedError: if ``diff_n`` is specified.
      TypeError: if degrees or orders are not integers.
      ValueError: if ``n`` is traced and ``n_max`` is ``None``.
    """
    if diff_n is not None:
        raise NotImplementedError(
            "The 'diff_n' argument to sph_harm_y is not supported: differentiate with jvp or grad"
        )
    check_arrays("sph_harm_y", n, m, theta, phi)
    for name, v in (("n", n), ("m", m)):
        if typeof(v).dtype.kind not in "iu":
            raise TypeError(f"sph_harm_y: {name} must be integers, got {typeof(v).dtype.name}")
    if n_max is None:
        if isinstance(n, Tracer):
            raise ValueError("sph_harm_y: pass n_max, the highest degree, if n is traced")
        n_max = int(np.max(np.asarray(n), initial=0))
    out: Array = _sph_harm_y(n, m, theta, phi, n_max=operator.index(n_max))
    return out


def _bernoulli_numbers(n: int) -> list[Fraction]:
    """``B_0`` to ``B_n`` with ``B_1 = -1/2``, by the Akiyama-Tanigawa algorithm."""
    row: list[Fraction] = []
    out = []
    for i in range(n + 1):
        row.append(Fraction(1, i + 1))
        for j in range(i, 0, -1):
            row[j - 1] = j * (row[j - 1] - row[j])
        out.append(row[0])
    if n >= 1:
        out[1] = -out[1]
    return out


LAST_FINITE: Final = 258
"""Index of the last Bernoulli number that is no zero and that ``float64`` can represent."""

MOST_BERNOULLI: Final = 10_000_000


def bernoulli(n: int) -> Array:
    """Bernoulli numbers ``B_0`` to ``B_n``, with ``B_1 = -1/2``, correctly rounded.

    Args:
      n: the last index, a Python integer from 0 to 10,000,000.

    Returns:
      A vector ``[n + 1]`` of the default float dtype. Numbers beyond its range are infinite.

    Raises:
      TypeError: if ``n`` is not an integer, or traced.
      ValueError: if ``n`` is negative or larger than 10,000,000.

    >>> [round(float(b), 4) for b in bernoulli(4)]
    [1.0, -0.5, 0.1667, 0.0, -0.0333]
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError("n must be a non-negative integer.")
    if n > MOST_BERNOULLI:
        raise ValueError(
            f"bernoulli: n is at most {MOST_BERNOULLI:,}, got {n}: beyond B_{LAST_FINITE} all are "
            "zero or infinite"
        )
    few = [float(b) for b in _bernoulli_numbers(min(n, LAST_FINITE))]
    numbers = np.zeros(n + 1)
    numbers[: len(few)] = few
    numbers[LAST_FINITE + 2 :: 4] = -math.inf
    numbers[LAST_FINITE + 4 :: 4] = math.inf
    return pnp.asarray(numbers, dtype=float)
