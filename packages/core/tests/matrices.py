"""Random matrices of any dtype."""

from __future__ import annotations

import numpy as np


def matrix(*shape, dtype=np.float64, seed=0):
    """A matrix with normally distributed entries, in both parts if complex."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)
