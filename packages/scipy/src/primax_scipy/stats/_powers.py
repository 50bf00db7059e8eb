"""Powers of numbers from 0 on, with their one-sided derivatives at 0.

The density of a distribution near an end of its support is a power times a smooth function. The
logarithm is infinite at the end, so the derivative of ``exp(logpdf)`` would be NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax

from .._elementary import choose
from ..special._operands import differentiable


def _by_base(x: Any, s: Any, _: Any) -> Any:
    return choose(s == 0, 0.0, s * power(x, choose(s == 0, 1.0, s - 1)))


def _by_exponent(x: Any, s: Any, out: Any) -> Any:
    some = x > 0
    at_zero = choose(s > 0, 0.0, lax.full_like(s, -np.inf))
    return choose(some, out * lax.log(choose(some, x, 1.0)), at_zero)


@differentiable(_by_base, _by_exponent)
def power(x: Any, s: Any) -> Any:
    """``x**s`` for ``x >= 0`` and all real ``s``, with one-sided derivatives at 0."""
    return lax.pow(x, s)
