"""Comparison of special values: signed zeros differ, NaN equals NaN."""

from __future__ import annotations

import math


def same(actual: float, expected: float) -> bool:
    """Equal except for rounding, with signed zeros."""
    if math.isnan(expected):
        return math.isnan(actual)
    if expected == 0 or math.isinf(expected):
        return actual == expected and math.copysign(1, actual) == math.copysign(1, expected)
    return math.isclose(actual, expected, rel_tol=1e-5)
