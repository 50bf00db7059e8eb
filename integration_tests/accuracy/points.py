"""Random arguments: intervals, neighbourhoods of zeros and poles, tails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Draw = Callable[[np.random.Generator, int], Any]


def linear(low: float, high: float) -> Draw:
    """Uniformly distributed numbers of an interval."""
    return lambda random, n: random.uniform(low, high, n)


def scaled(low: float, high: float, sign: int = 1) -> Draw:
    """Numbers of one sign with uniformly distributed logarithms; of both signs for ``sign=0``."""

    def draw(random: np.random.Generator, n: int) -> np.ndarray:
        size = np.exp(random.uniform(np.log(low), np.log(high), n))
        return size * (random.choice([-1.0, 1.0], n) if sign == 0 else sign)

    return draw


def around(center: float, radius: float = 0.1, closest: float = 1e-6, side: int = 0) -> Draw:
    """Numbers on both sides of ``center`` (or on one), most of them close to it."""
    distance = scaled(closest * radius, radius, side)
    return lambda random, n: center + distance(random, n)


def whole(low: int, high: int) -> Draw:
    """Uniformly distributed integers, ends included."""
    return lambda random, n: random.integers(low, high + 1, n)


def natural(low: int, high: int) -> Draw:
    """As `whole`, as floats."""
    return lambda random, n: random.integers(low, high + 1, n).astype(float)


def pair(first: Draw, second: Draw, *more: Draw) -> Draw:
    """Independent operands."""
    return lambda random, n: tuple(draw(random, n) for draw in (first, second, *more))


def near_each_other(first: Draw, gap: float = 0.1, closest: float = 1e-6) -> Draw:
    """Two operands with a small relative difference."""

    def draw(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        x = first(random, n)
        return x, x * (1 + scaled(closest * gap, gap, 0)(random, n))

    return draw


def rows(elements: Draw, length: int) -> Draw:
    """Rows of numbers, the operand of a reduction over the last axis."""
    return lambda random, n: elements(random, n * length).reshape(n, length)


def sums_near_one(length: int) -> Draw:
    """Rows of logarithms of numbers that add up to 1, nearly."""

    def draw(random: np.random.Generator, n: int) -> np.ndarray:
        x = random.uniform(0.1, 1, (n, length))
        x *= around(1.0, 0.3, 0.1)(random, n)[:, None] / x.sum(1, keepdims=True)
        return np.log(x)

    return draw
