"""Kernels of compressed rows: column ``indices`` in row-major order, and ``indptr``, the position
of the first element of each row. Elements after ``indptr[-1]`` are padding.

Functions of one batch element are mapped over the batch dimensions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import typeof
from primax_numpy.declaring import compiled

from ._coordinates import columns, inside, mapped, wide_enough


def _rows(indptr: Any, nse: int) -> Any:
    """The row of each position; the number of rows for padding."""
    ends = lax.convert_element_type(indptr[1:], np.int32)
    starts_here = pnp.zeros(nse, np.int32).at[ends].add(1, mode="drop")
    return pnp.cumsum(starts_here, dtype=np.int32)


@compiled("n_batch", "n_columns")
def coordinates(indices: Any, indptr: Any, *, n_batch: int, n_columns: int) -> Any:
    """The indices ``(*batch, nse, 2)`` of compressed rows."""
    n_rows = typeof(indptr).shape[-1] - 1
    indices = wide_enough(indices, (n_rows, n_columns))

    def one(indices: Any, indptr: Any) -> Any:
        rows = _rows(indptr, typeof(indices).shape[0])
        return pnp.stack([lax.convert_element_type(rows, typeof(indices).dtype), indices], 1)

    return mapped(one, n_batch)(indices, indptr)


@compiled("n_batch", "shape")
def compressed(indices: Any, *, n_batch: int, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Column indices and ``indptr`` of sorted coordinates. Padding between elements stays in the
    row of the next element, with a column out of bounds."""
    n_rows, n_columns = shape

    def one(indices: Any) -> tuple[Any, Any]:
        dtype = typeof(indices).dtype
        within = inside(indices, shape)
        row, column = columns(indices)
        row = pnp.where(within, pnp.where(row < 0, row + n_rows, row), n_rows)
        column = pnp.where(within, pnp.where(column < 0, column + n_columns, column), n_columns)
        row = lax.cummin(lax.convert_element_type(row, np.int32), reverse=True)
        counts = pnp.zeros(n_rows + 1, np.int32).at[row + 1].add(1, mode="drop")
        pointers = pnp.cumsum(counts, dtype=np.int32)
        return lax.convert_element_type(column, dtype), lax.convert_element_type(pointers, dtype)

    return mapped(one, n_batch)(indices)
