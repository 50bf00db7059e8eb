"""Direct solution of sparse linear systems on the host, with NumPy or SciPy.

SciPy's SuperLU is used if SciPy is installed. Otherwise the matrix is ordered by the reverse
Cuthill-McKee algorithm (A. George and J. Liu, Computer Solution of Large Sparse Positive Definite
Systems, 1981, section 4.3) and factorized as a band with partial pivoting.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Final

import numpy as np

_Solve = Callable[[np.ndarray], np.ndarray]

COLUMN_ORDERS: Final = {0: "NATURAL", 1: "COLAMD", 2: "MMD_AT_PLUS_A", 3: "MMD_ATA"}
"""The order of columns in SuperLU for values of ``reorder``."""


def factorized(
    values: np.ndarray, rows: np.ndarray, columns: np.ndarray, n: int, reorder: int
) -> _Solve:
    """The solver ``[n, m] -> [n, m]`` of a matrix of elements, which are summed where their
    indices are equal. The solutions are NaN if the matrix is singular."""
    if importlib.util.find_spec("scipy") is None:
        return _factorized_by_numpy(values, rows, columns, n, reorder)
    return _factorized_by_scipy(values, rows, columns, n, reorder)


def _not_a_number(right: np.ndarray) -> np.ndarray:
    return np.full(right.shape, np.nan, right.dtype)


def _factorized_by_scipy(
    values: np.ndarray, rows: np.ndarray, columns: np.ndarray, n: int, reorder: int
) -> _Solve:
    sparse = importlib.import_module("scipy.sparse")
    linalg = importlib.import_module("scipy.sparse.linalg")
    matrix = sparse.coo_matrix((values, (rows, columns)), shape=(n, n)).tocsc()
    try:
        solve: _Solve = linalg.splu(matrix, permc_spec=COLUMN_ORDERS[reorder]).solve
    except RuntimeError:  # the matrix is exactly singular
        return _not_a_number
    return lambda right: solve(np.asfortranarray(right))


def _factorized_by_numpy(
    values: np.ndarray, rows: np.ndarray, columns: np.ndarray, n: int, reorder: int
) -> _Solve:
    order = cuthill_mckee(rows, columns, n) if reorder else np.arange(n)
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    row, column = position[rows], position[columns]
    below = int(max(np.max(row - column, initial=0), 0))
    above = int(max(np.max(column - row, initial=0), 0))
    if 2 * below + above >= n // 2:
        return _dense(values, rows, columns, n)
    banded = _BandedLU(values, row, column, n, below, above)

    def solve(right: np.ndarray) -> np.ndarray:
        if banded.singular:
            return _not_a_number(right)
        out = np.empty_like(right)
        out[order] = banded.solve(right[order])
        return out

    return solve


def _dense(values: np.ndarray, rows: np.ndarray, columns: np.ndarray, n: int) -> _Solve:
    matrix = np.zeros((n, n), values.dtype)
    np.add.at(matrix, (rows, columns), values)

    def solve(right: np.ndarray) -> np.ndarray:
        try:
            return np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:  # the matrix is exactly singular
            return _not_a_number(right)

    return solve


def cuthill_mckee(rows: np.ndarray, columns: np.ndarray, n: int) -> np.ndarray:
    """The reverse Cuthill-McKee order of the symmetric pattern of a matrix."""
    ends = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    by_row = np.argsort(ends[0], kind="stable")
    neighbours = ends[1][by_row]
    starts = np.searchsorted(ends[0][by_row], np.arange(n + 1))
    degrees = np.diff(starts)
    reached = np.zeros(n, bool)
    order: list[int] = []
    for root in np.argsort(degrees, kind="stable"):
        if reached[root]:
            continue
        reached[root] = True
        order.append(int(root))
        done = len(order) - 1
        while done < len(order):
            node = order[done]
            near = np.unique(neighbours[starts[node] : starts[node + 1]])
            near = near[~reached[near]]
            near = near[np.argsort(degrees[near], kind="stable")]
            reached[near] = True
            order.extend(near.tolist())
            done += 1
    return np.array(order[::-1], np.int64)


class _BandedLU:
    """LU factorization of a band matrix with partial pivoting.

    Row ``i`` of the storage contains the columns from ``i - below`` to ``i + below + above``;
    pivoting fills the last ``below`` of them. A block of the matrix is a view with strides
    ``(width - 1, 1)``.
    """

    def __init__(
        self, values: np.ndarray, rows: np.ndarray, columns: np.ndarray, n: int, below: int,
        above: int,
    ) -> None:  # fmt: skip
        self.n, self.below, self.reach = n, below, below + above
        width = below + self.reach + 1
        # The rows after the last one make views of blocks at the end valid.
        self.storage = np.zeros((n + below + 1, width), values.dtype)
        np.add.at(self.storage, (rows, columns - rows + below), values)
        self.pivots = np.arange(n)
        self.singular = False
        for k in range(n):
            self._eliminate(k)
            if self.singular:
                break

    def _block(self, row: int, column: int, height: int, width: int) -> np.ndarray:
        flat = self.storage.reshape(-1)
        size = self.storage.itemsize
        span = self.storage.shape[1]
        start = row * span + column - row + self.below
        return np.lib.stride_tricks.as_strided(
            flat[start:], (height, width), ((span - 1) * size, size)
        )

    def _eliminate(self, k: int) -> None:
        height = min(self.below, self.n - 1 - k) + 1
        width = min(self.reach, self.n - 1 - k) + 1
        block = self._block(k, k, height, width)
        p = int(np.argmax(np.abs(block[:, 0])))
        if block[p, 0] == 0 or not np.isfinite(block[p, 0]):
            self.singular = True
            return
        self.pivots[k] = k + p
        if p:
            block[[0, p]] = block[[p, 0]]
        block[1:, 0] /= block[0, 0]
        block[1:, 1:] -= block[1:, :1] * block[:1, 1:]

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Solutions for the columns of ``right``."""
        x = right.copy()
        for k in range(self.n):
            p = int(self.pivots[k])
            if p != k:
                x[[k, p]] = x[[p, k]]
            height = min(self.below, self.n - 1 - k)
            factors = self._block(k + 1, k, height, 1)
            x[k + 1 : k + 1 + height] -= factors * x[k]
        for k in reversed(range(self.n)):
            width = min(self.reach, self.n - 1 - k) + 1
            row = self._block(k, k, 1, width)[0]
            x[k] = (x[k] - row[1:] @ x[k + 1 : k + width]) / row[0]
        return x
