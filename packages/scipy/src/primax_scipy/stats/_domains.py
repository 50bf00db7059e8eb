"""Domains of parameters: a text for docstrings and a predicate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from primax_core import lax


@dataclass(frozen=True)
class Domain:
    """Values that a parameter accepts; the result of a distribution is NaN for others."""

    text: str
    contains: Callable[[Any], Any]


POSITIVE: Final = Domain("positive", lambda v: v > 0)
NONNEGATIVE: Final = Domain("0 or positive", lambda v: v >= 0)
REAL: Final = Domain("a real number", lambda v: v == v)
FINITE: Final = Domain("a finite number", lambda v: lax.abs(v) < float("inf"))
PROBABILITY: Final = Domain("in [0, 1]", lambda v: (v >= 0) & (v <= 1))
FRACTION: Final = Domain("in (0, 1)", lambda v: (v > 0) & (v < 1))
CHANCE: Final = Domain("in (0, 1]", lambda v: (v > 0) & (v <= 1))
ABOVE_ONE: Final = Domain("above 1", lambda v: v > 1)
WHOLE: Final = Domain("an integer, 0 or positive", lambda v: (v >= 0) & (lax.floor(v) == v))
