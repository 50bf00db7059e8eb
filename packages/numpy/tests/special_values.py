"""Comparison of special values: zeros have signs, NaN equals NaN."""

from __future__ import annotations

import math


def same(found: float, expected: float) -> bool:
    """Equal but for rounding; zeros have signs."""
    if math.isnan(expected):
        return math.isnan(found)
    if expected == 0 or math.isinf(expected):
        return found == expected and math.copysign(1, found) == math.copysign(1, expected)
    return math.isclose(found, expected, rel_tol=1e-5)
