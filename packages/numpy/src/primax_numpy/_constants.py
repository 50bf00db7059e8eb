"""Numbers with names."""

from __future__ import annotations

import math

pi: float = math.pi
e: float = math.e
inf: float = math.inf
nan: float = math.nan
newaxis: None = None
