"""Linear assignment."""

from __future__ import annotations

from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import dtypes, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled, is_complex


@compiled("maximize", name="linear_sum_assignment")
def _assignment(cost, *, maximize):
    cost = lax.stop_gradient(cost)
    dtype = typeof(cost).dtype
    if not dtypes.issubdtype(dtype, np.floating) or dtype.itemsize < 4:
        cost = lax.convert_element_type(cost, dtypes.default_float())
    cost = -cost if maximize else cost
    rows, columns = typeof(cost).shape
    if rows > columns:
        by_column, by_row = _augmented(cost.T)
        order = pnp.argsort(by_column)
        return by_column[order], by_row[order]
    row_of, column_of = _augmented(cost)
    return column_of, row_of


def _augmented(cost: Any) -> tuple[Any, Any]:
    """For each row its column, and the rows in order."""
    rows, columns = typeof(cost).shape
    dtype = typeof(cost).dtype
    big = pnp.full((), pnp.inf, dtype)

    def assign(row: Any, state: Any) -> Any:
        u, v, row_of = state

        def going(s: Any) -> Any:
            return s[-1] < 0

        def step(s: Any) -> Any:
            i, lowest, shortest, before, seen_rows, seen, _ = s
            seen_rows = seen_rows.at[i].set(True)
            reduced = lowest + cost[i] - u[i] - v
            closer = ~seen & (reduced < shortest)
            before = pnp.where(closer, i, before)
            shortest = pnp.where(closer, reduced, shortest)
            candidates = pnp.where(seen, big, shortest)
            least = pnp.min(candidates)
            # A free column is preferred among equal ones.
            best = ~seen & (candidates == least)
            j = pnp.argmax(pnp.where(best, pnp.where(row_of < 0, 2, 1), 0))
            j = lax.convert_element_type(j, "int32")
            free = row_of[j] < 0
            return (
                pnp.where(free, i, row_of[j]), least, shortest, before, seen_rows,
                seen.at[j].set(True), pnp.where(free, j, -1),
            )  # fmt: skip

        start = (
            row, pnp.zeros((), dtype), pnp.full(columns, pnp.inf, dtype),
            pnp.full(columns, -1, "int32"), pnp.zeros(rows, bool), pnp.zeros(columns, bool),
            pnp.full((), -1, "int32"),
        )  # fmt: skip
        _, lowest, shortest, before, seen_rows, seen, sink = lax.while_loop(going, step, start)
        # Dual variables
        column_of = _columns(row_of, rows)
        others = seen_rows & (pnp.arange(rows) != row)
        u = pnp.where(others, u + lowest - shortest[column_of], u).at[row].add(lowest)
        v = pnp.where(seen, v - (lowest - shortest), v)

        def trace(s: Any) -> Any:
            row_of, j, _ = s
            i = before[j]
            owned = row_of == i
            # The previous column of this row
            next_j = lax.convert_element_type(pnp.argmax(owned), "int32")
            return row_of.at[j].set(i), next_j, i == row

        row_of, _, _ = lax.while_loop(lambda s: ~s[-1], trace, (row_of, sink, pnp.full((), False)))
        return u, v, row_of

    start = (pnp.zeros(rows, dtype), pnp.zeros(columns, dtype), pnp.full(columns, -1, "int32"))
    _, _, row_of = lax.fori_loop(0, rows, lambda i, s: assign(
        lax.convert_element_type(i, "int32"), s), start)  # fmt: skip
    return _columns(row_of, rows), pnp.arange(rows, dtype="int32")


def _columns(row_of: Any, rows: int) -> Any:
    """The column of each row; 0 for a row that has none yet."""
    where = pnp.where(row_of < 0, rows, row_of)
    columns = pnp.arange(len(row_of), dtype="int32")
    return pnp.zeros(rows + 1, "int32").at[where].set(columns)[:rows]


def linear_sum_assignment(cost_matrix: ArrayLike, maximize: bool = False) -> tuple[Any, Any]:
    """Assignment of rows to columns with the smallest sum of costs.

    Args:
      cost_matrix: real costs ``[m, n]``, finite.
      maximize: find the largest sum instead.

    Returns:
      The rows in ascending order and their columns, ``int32[min(m, n)]``. Without derivatives.

    The algorithm finds shortest augmenting paths (Crouse, IEEE Trans. Aerosp. Electron. Syst. 52,
    2016).

    Raises:
      ValueError: if the costs are not a nonempty matrix of real numbers.

    >>> import numpy as np
    >>> rows, columns = linear_sum_assignment(np.float32([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    >>> rows.tolist(), columns.tolist()
    ([0, 1, 2], [1, 0, 2])
    """
    check_arrays("linear_sum_assignment", cost_matrix)
    shape = typeof(cost_matrix).shape
    if len(shape) != 2 or not all(shape) or is_complex(cost_matrix):
        raise ValueError(
            f"linear_sum_assignment needs a matrix of real costs, got "
            f"{typeof(cost_matrix).dtype.name}{list(shape)}"
        )
    rows, columns = _assignment(cost_matrix, maximize=bool(maximize))
    return rows, columns
