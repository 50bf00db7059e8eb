"""Accesses at arrays of positions, for the tests of Mosaic."""

from __future__ import annotations

from typing import Any

import numpy as np
from triton_operations import F32, I32, Case, array, like

from primax_core import lax
from primax_kernels import ds
from primax_kernels.triton import atomic_add, load, store

_LONG = array((40, 256))


def _rows_at(x: Any, p: Any, o: Any) -> None:
    """Rows at positions that count from the end, and beyond it."""
    o[...] = x[p[...], ds(128, 128)]


def _rows_moved(x: Any, p: Any, o: Any) -> None:
    """Rows written at positions, of which one is beyond the end."""
    o[...] = lax.full(o.shape, 0, F32)
    o[p[...]] = x[0:8]
    atomic_add(o, (p[...], slice(0, 128)), x[8:16, 0:128])


def _masked_positions(x: Any, p: Any, o: Any) -> None:
    chosen = lax.lt(p[...], I32(30))
    o[...] = load(x.at[3, p[...]], mask=chosen, other=F32(-1))
    store(o.at[p[...]], lax.full(p.shape, 7, F32), mask=lax.lt(p[...], I32(12)))


_BACKWARDS = np.arange(128, dtype=I32)[::-1].copy()
_ROWS_AT = np.array([3, -1, 0, 39, 99, 7, 7, -40], I32)
_MOVED = np.array([3, 8, 0, 99, 7, 1, -1, 99], I32)
POSITIONS: dict[str, Case] = {
    "rows_at": Case(_rows_at, like(8, 128), _LONG, _ROWS_AT),
    "rows_moved": Case(_rows_moved, like(40, 256), _LONG, _MOVED),
    "masked_positions": Case(_masked_positions, like(128), _LONG, _BACKWARDS),
}  # fmt: skip
