"""All programs on arrays with explicit mesh axes: the types of their results are compared."""

from __future__ import annotations

import explicit_arithmetic as _arithmetic
import explicit_functions as _functions
import explicit_shapes as _shapes
from explicit_sides import PROGRAMS as PROGRAMS, Side as Side, result as result

__all__ = ["PROGRAMS", "Side", "result", "_arithmetic", "_functions", "_shapes"]
