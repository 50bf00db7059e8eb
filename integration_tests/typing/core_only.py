"""A user program over the core alone, for the type checkers; never run."""

from __future__ import annotations

import numpy as np

import primax_core
from primax_core import lax


def energy(x: primax_core.Array) -> primax_core.Array:
    """A scalar function of one array."""
    return lax.dot(lax.sin(x), x)


def derivative(values: np.ndarray) -> np.ndarray:
    """The compiled gradient of ``energy``."""
    x = primax_core.device_put(values)
    return np.asarray(primax_core.jit(primax_core.grad(energy))(x))
