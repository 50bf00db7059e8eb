"""Lengths of fast Fourier transforms."""

from __future__ import annotations

import operator
from functools import lru_cache


def next_fast_len(target: int, real: bool = False) -> int:
    """The smallest length from ``target`` on whose prime factors are at most 11, or 5 if real.

    Args:
      target: a positive number.
      real: the transform is of real numbers.

    Returns:
      A Python integer.

    Raises:
      ValueError: if ``target`` is not positive.

    Transforms of such lengths are fast; arrays can be padded to them with zeros.

    >>> next_fast_len(13), next_fast_len(11, real=True)
    (14, 12)
    """
    n = operator.index(target)
    if n < 1:
        raise ValueError(f"next_fast_len: target must be positive, got {n}")
    return _next(n, (2, 3, 5) if real else (2, 3, 5, 7, 11))


def prev_fast_len(target: int, real: bool = False) -> int:
    """The largest length up to ``target`` whose prime factors are at most 11, or 5 if real.

    Args:
      target: a positive number.
      real: the transform is of real numbers.

    Returns:
      A Python integer.

    Raises:
      ValueError: if ``target`` is not positive.

    >>> prev_fast_len(13)
    12
    """
    n = operator.index(target)
    if n < 1:
        raise ValueError(f"prev_fast_len: target must be positive, got {n}")
    primes = (2, 3, 5) if real else (2, 3, 5, 7, 11)
    while _rest(n, primes) != 1:
        n -= 1
    return n


def _rest(n: int, primes: tuple[int, ...]) -> int:
    for p in primes:
        while n % p == 0:
            n //= p
    return n


@lru_cache(maxsize=1024)
def _next(n: int, primes: tuple[int, ...]) -> int:
    while _rest(n, primes) != 1:
        n += 1
    return n
