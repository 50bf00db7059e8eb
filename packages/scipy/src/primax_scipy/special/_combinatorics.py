"""Permutations and Stirling numbers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, Tracer
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, elementwise

from .._elementary import choose
from ._gammas import _rising_of_positive, _whole_where
from ._operands import called


def _permutations(n: Any, k: Any) -> Any:
    inside = (n >= 0) & (k >= 0) & (k <= n)
    top, part = choose(inside, n, 1.0), choose(inside, k, 0.0)
    value = _rising_of_positive(top - part + 1, part)
    whole = (lax.floor(top) == top) & (lax.floor(part) == part)
    out = choose(inside, _whole_where(whole, choose(part == 0, 1.0, value)), 0.0)
    return choose((n != n) | (k != k), np.nan, out)


@elementwise
def _perm(n: Any, k: Any) -> Array:
    return called("perm", _permutations, n, k)


def perm(N: ArrayLike, k: ArrayLike, exact: bool = False) -> Any:
    """Numbers of ordered choices of ``k`` of ``N``: ``N! / (N - k)!``.

    Args:
      N, k: real numbers; the result is 0 unless ``0 <= k <= N``.
      exact: return a Python integer for two Python integers.

    Returns:
      An array of the common shape of ``N`` and ``k``, or a Python integer with ``exact``.

    Raises:
      TypeError: if ``exact`` is set and an argument is not a Python integer.

    >>> float(perm(5, 2)), perm(30, 25, exact=True)
    (20.0, 2210440498434925488635904000000)
    """
    if exact:
        for name, v in (("N", N), ("k", k)):
            if isinstance(v, bool) or not isinstance(v, (int, np.integer)):
                raise TypeError(
                    f"perm: {name} must be a Python integer with exact=True, got "
                    f"{type(v).__name__}; leave exact=False for arrays"
                )
        n, m = int(N), int(k)
        return math.perm(n, m) if 0 <= m <= n else 0
    check_arrays("perm", N, k)
    return _perm(N, k)


_MOST_SUMS: Final = 10_000_000


def _stirling_numbers(pairs: set[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Numbers for pairs ``(n, k)``, by the recurrence ``S(n, k) = k S(n-1, k) + S(n-1, k-1)``."""
    out = {}
    columns = max((k for _, k in pairs), default=0)
    row = [1] + [0] * columns
    for n in range(max((n for n, _ in pairs), default=-1) + 1):
        if n:
            row = [0] + [k * row[k] + row[k - 1] for k in range(1, columns + 1)]
        out.update({(n, k): row[k] for k in range(min(n, columns) + 1) if (n, k) in pairs})
    return out


def stirling2(N: ArrayLike, K: ArrayLike, *, exact: bool = False) -> Any:
    """Stirling numbers of the second kind: the partitions of ``N`` things into ``K`` sets.

    Args:
      N, K: integers that are not traced; the number is 0 unless ``0 <= K <= N``.
      exact: return a Python integer for two Python integers, otherwise floats.

    Returns:
      Numbers computed in integers and rounded to the default float, infinite beyond its range.

    Raises:
      TypeError: if an argument is traced or has no integers, or ``exact`` is set for arrays.
      ValueError: if the product of the largest ``N`` and ``K`` exceeds ten million.

    >>> float(stirling2(5, 2)), stirling2(30, 3, exact=True)
    (15.0, 34314651811530)
    """
    for name, v in (("N", N), ("K", K)):
        if isinstance(v, Tracer):
            raise TypeError(
                f"stirling2: {name} must not be traced: pass it outside of jit and vmap"
            )
    n, k = np.asarray(N), np.asarray(K)
    for name, v in (("N", n), ("K", k)):
        if v.dtype.kind not in "iu":
            raise TypeError(f"stirling2: {name} must be integers, got {v.dtype.name}")
    if exact and (n.ndim or k.ndim):
        raise TypeError("stirling2: exact=True is for two Python integers; leave it for arrays")
    n, k = np.broadcast_arrays(n, k)
    pairs = list(zip(n.ravel().tolist(), k.ravel().tolist()))
    inner = [(a, b) for a, b in pairs if 0 <= b <= a]
    sums = max((a for a, _ in inner), default=0) * max((b for _, b in inner), default=0)
    if sums > _MOST_SUMS:
        raise ValueError(
            f"stirling2: these N and K take {sums:,} sums of long integers, and at most "
            f"{_MOST_SUMS:,} are computed"
        )
    numbers = _stirling_numbers(set(inner))
    values = [numbers.get(pair, 0) for pair in pairs]
    if exact:
        return values[0]
    floats = np.array([_rounded(v) for v in values]).reshape(n.shape)
    return pnp.asarray(floats, dtype=float)


def _rounded(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
