"""Systems with banded matrices, in the storage of LAPACK.

Row ``u + i - j`` of the array contains element ``(i, j)`` of the matrix in column ``j``.
"""

from __future__ import annotations

import operator
from typing import Any

import primax_numpy as pnp
from primax_core import lax, vmap
from primax_core.extend import Array
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, check_arrays, compiled, is_complex

from ._matrices import conjugate, in_common_dtype, with_batch


def _rows(ab: Any, l: int, u: int) -> Any:
    """Rows of the matrix: element ``j`` of row ``i`` is ``A[i, i - l + j]``, zero outside."""
    n = typeof(ab).shape[-1]
    i, j = pnp.arange(n)[:, None], pnp.arange(l + u + 1)[None, :]
    column = i - l + j
    inside = (column >= 0) & (column < n)
    diagonal = pnp.broadcast_to(l + u - j, column.shape)
    return pnp.where(inside, ab[diagonal, pnp.clip(column, 0, n - 1)], 0)


def _transposed_band(ab: Any, l: int, u: int) -> Any:
    """The array of the transposed matrix, whose bandwidths are exchanged."""
    n = typeof(ab).shape[-1]
    d = pnp.arange(l + u + 1)[:, None]  # row l + i - j of the result is element (j, i)
    column = pnp.arange(n)[None, :] + (d - l)
    inside = (column >= 0) & (column < n)
    return pnp.where(
        inside, ab[pnp.broadcast_to(l + u - d, column.shape), column.clip(0, n - 1)], 0
    )


def _banded_product(ab: Any, x: Any, l: int, u: int) -> Any:
    n = typeof(ab).shape[-1]
    rows = _rows(ab, l, u)
    padded = pnp.pad(x, ((l, u), (0, 0)))
    out = pnp.zeros_like(x)
    for j in range(l + u + 1):
        out = out + rows[:, j, None] * padded[j : j + n]
    return out


def _banded_solution(ab: Any, b: Any, l: int, u: int) -> Any:
    """Gaussian elimination with partial pivoting in a window of ``l + 1`` rows."""
    n, width = typeof(ab).shape[-1], l + u + 1
    if l == u == 1 and not is_complex(ab):
        below = pnp.concatenate([pnp.zeros_like(ab[2, :1]), ab[2, :-1]])
        above = pnp.concatenate([ab[0, 1:], pnp.zeros_like(ab[0, :1])])
        return lax.linalg.tridiagonal_solve(below, ab[1], above, b)
    rows = pnp.pad(_rows(ab, l, u), ((0, l + 1), (0, 0)))
    right = pnp.pad(b, ((0, l + 1), (0, 0)))
    first = [pnp.pad(rows[r, l - r :], (0, l - r)) for r in range(l)]
    window = pnp.stack([*first, rows[l]])

    def eliminate(state: Any, new: Any) -> Any:
        window, sides = state
        pivot = pnp.argmax(pnp.abs(window[:, 0]))
        order = pnp.arange(l + 1)
        order = pnp.where(order == 0, pivot, pnp.where(order == pivot, 0, order))
        window, sides = window[order], sides[order]
        factors = window[1:, :1] / window[0, 0]
        rest = (window[1:] - factors * window[:1])[:, 1:]
        rest = pnp.pad(rest, ((0, 0), (0, 1)))
        row, side = new
        state = (
            pnp.concatenate([rest, row[None]]),
            pnp.concatenate([sides[1:] - factors * sides[:1], side[None]]),
        )
        return state, (window[0], sides[0])

    news = rows[l + 1 : l + 1 + n], right[l + 1 : l + 1 + n]
    _, (upper, sides) = lax.scan(eliminate, (window, right[: l + 1]), news)

    def substitute(solved: Any, row: Any) -> Any:
        coefficients, side = row
        x = (side - pnp.sum(coefficients[1:, None] * solved, 0)) / coefficients[0]
        return pnp.concatenate([x[None], solved])[: width - 1], x

    start = pnp.zeros((width - 1, typeof(b).shape[1]), typeof(b).dtype)
    return lax.scan(substitute, start, (upper, sides), reverse=True)[1]


def _one_system(ab: Any, b: Any, l: int, u: int) -> Any:
    fixed = lax.stop_gradient(ab)
    return lax.custom_linear_solve(
        lambda x: _banded_product(ab, x, l, u), b,
        lambda _, y: _banded_solution(fixed, y, l, u),
        lambda _, y: _banded_solution(_transposed_band(fixed, l, u), y, u, l),
    )  # fmt: skip


def _over_batches(fun: Any, ab: Any, b: Any) -> Any:
    """``fun(ab, b)`` for each pair; ``b`` is a vector if it has one axis, or one less than
    ``ab``."""
    ab, b = in_common_dtype(ab, b)
    n_ab, n_b = typeof(ab).ndim, typeof(b).ndim
    vector = n_b == 1 or n_b == n_ab - 1 > 1
    if vector:
        b = b[..., None]
    batch = lax.broadcast_shapes(typeof(ab).shape[:-2], typeof(b).shape[:-2])
    for _ in batch:
        fun = vmap(fun)
    out = fun(with_batch(ab, batch, 2), with_batch(b, batch, 2))
    return out[..., 0] if vector else out


def _check_band(name: str, ab: Any, rows: int | None, b: Any) -> None:
    check_arrays(f"linalg.{name}", ab, *([] if b is None else [b]))
    shape = typeof(ab).shape
    if len(shape) < 2 or not shape[-1] or (rows is not None and shape[-2] != rows):
        expected = "[..., diagonals, n]" if rows is None else f"[..., {rows}, n]"
        raise ValueError(f"linalg.{name}: ab must have the shape {expected}, got {shape}")
    if b is None:
        return
    other = typeof(b).shape
    vector = len(other) == 1 or len(other) == len(shape) - 1 > 1
    if not other or other[-1 if vector else -2] != shape[-1]:
        raise ValueError(
            f"linalg.{name}: ab of shape {shape} does not match b of shape {other}; the equations "
            "are the last axis of b if it has one axis or one less than ab, otherwise the second "
            "to last"
        )


@compiled("l", "u", name="solve_banded")
def _solve_banded(ab, b, *, l, u):
    return _over_batches(lambda a, y: _one_system(a, y, l, u), ab, b)


def solve_banded(
    l_and_u: tuple[int, int], ab: ArrayLike, b: ArrayLike, overwrite_ab: bool = False,
    overwrite_b: bool = False, check_finite: bool = True,
) -> Array:  # fmt: skip
    """Solution ``x`` of ``A @ x = b`` for banded matrices ``A``.

    Args:
      l_and_u: the numbers of diagonals below and above the main one, Python integers.
      ab: the diagonals ``number[..., l + u + 1, n]``: row ``u + i - j`` contains ``A[i, j]`` in
        column ``j``. Corners outside of the matrix are not read.
      b: ``number[..., n]`` or ``number[..., n, k]``; leading axes broadcast.
      overwrite_ab, overwrite_b, check_finite: ignored.

    Gaussian elimination with partial pivoting; derivatives of any order solve further systems.

    Raises:
      ValueError: if sizes do not match.

    >>> import numpy as np
    >>> ab = np.float32([[0, 1, 1], [4, 4, 4], [1, 1, 0]])
    >>> [round(float(x), 4) for x in solve_banded((1, 1), ab, np.float32([5, 6, 5]))]
    [1.0, 1.0, 1.0]
    """
    l, u = (operator.index(v) for v in l_and_u)
    if l < 0 or u < 0:
        raise ValueError(f"linalg.solve_banded: l and u must not be negative, got {(l, u)}")
    _check_band("solve_banded", ab, l + u + 1, b)
    out: Array = _solve_banded(ab, b, l=l, u=u)
    return out


# Positive definite matrices; the kernels use the lower diagonals


def _lower_band(ab: Any) -> Any:
    """The lower diagonals from the upper ones."""
    u, n = typeof(ab).shape[-2] - 1, typeof(ab).shape[-1]
    rows = [
        pnp.concatenate(
            [conjugate(ab[u - d, d:]), pnp.zeros((min(d, n),), typeof(ab).dtype)]
        )[:n]
        for d in range(u + 1)
    ]  # fmt: skip
    return pnp.stack(rows)


def _upper_band(ab: Any) -> Any:
    """The upper diagonals from the lower ones."""
    u, n = typeof(ab).shape[-2] - 1, typeof(ab).shape[-1]
    rows = [
        pnp.concatenate(
            [pnp.zeros((min(d, n),), typeof(ab).dtype), conjugate(ab[d, : max(n - d, 0)])]
        )
        for d in reversed(range(u + 1))
    ]  # fmt: skip
    return pnp.stack(rows)


def _inside_only(ab: Any) -> Any:
    """Lower diagonals with zeros outside of the matrix."""
    rows, n = typeof(ab).shape
    return pnp.where(pnp.arange(rows)[:, None] + pnp.arange(n)[None] < n, ab, 0)


def _factor(ab: Any) -> Any:
    """The Cholesky factor of lower diagonals, column by column in a window of ``u + 1`` rows."""
    u, n = typeof(ab).shape[-2] - 1, typeof(ab).shape[-1]
    ab = _inside_only(ab)
    columns = pnp.pad(ab, ((0, 0), (0, u + 1)))
    # Beyond the matrix the identity, so that the last windows are definite
    columns = columns.at[0, n:].set(1)
    i, j = pnp.arange(u + 1)[:, None], pnp.arange(u + 1)[None]
    window = pnp.where(i >= j, columns[pnp.clip(i - j, 0, u), j], 0)

    def step(window: Any, new: Any) -> Any:
        pivot = lax.real(window[0, 0]) if is_complex(window) else window[0, 0]
        root = pnp.sqrt(pnp.where(pivot > 0, pivot, pnp.nan)).astype(typeof(window).dtype)
        column = pnp.concatenate([root[None], window[1:, 0] / root])
        rest = window[1:, 1:] - column[1:, None] * conjugate(column[1:])[None]
        padded = pnp.pad(rest, ((0, 1), (0, 1)))
        # Row u + 1 of the matrix enters at the bottom.
        return padded.at[u].set(new), column

    # Element d of the row that enters after column k is A[k + u + 1, k + 1 + d].
    k, d = pnp.arange(n)[:, None], pnp.arange(u + 1)[None]
    news = columns[pnp.broadcast_to(u - d, (n, u + 1)), k + 1 + d]
    return lax.scan(step, window, news)[1].T


@compiled("lower", name="cholesky_banded")
def _cholesky_banded(ab, *, lower):
    fun = _factor if lower else lambda a: _upper_band(_factor(_lower_band(a)))
    for _ in typeof(ab).shape[:-2]:
        fun = vmap(fun)
    return fun(as_inexact(ab))


def cholesky_banded(
    ab: ArrayLike, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True
) -> Array:
    """Cholesky factors of banded Hermitian positive definite matrices.

    Args:
      ab: diagonals ``number[..., u + 1, n]``: with ``lower`` the main one and those below, row
        ``i - j`` containing ``A[i, j]`` in column ``j``; otherwise those above and the main one.
      lower: the form of ``ab``, and of the result: ``A = L @ L^H`` or ``A = U^H @ U``.
      overwrite_ab, check_finite: ignored.

    Returns:
      The diagonals of the factor, NaN from the first pivot on that is not positive.

    Raises:
      ValueError: if ``ab`` has less than two axes or no columns.

    >>> import numpy as np
    >>> cholesky_banded(np.float32([[4, 5], [2, 0]]), lower=True).tolist()
    [[2.0, 2.0], [1.0, 0.0]]
    """
    _check_band("cholesky_banded", ab, None, None)
    out: Array = _cholesky_banded(ab, lower=bool(lower))
    return out


def _with_factor(cb: Any, b: Any) -> Any:
    """Solution of a system from the lower diagonals of its factor."""
    cb = _inside_only(cb)
    u, k = typeof(cb).shape[0] - 1, typeof(b).shape[1]
    n = typeof(cb).shape[1]
    start = pnp.zeros((u, k), typeof(b).dtype)

    def forward(changes: Any, row: Any) -> Any:
        column, side = row
        y = (side - changes[0] if u else side) / column[0]
        if not u:
            return changes, y
        shifted = pnp.concatenate([changes[1:], pnp.zeros((1, k), typeof(b).dtype)])
        return shifted + column[1:, None] * y[None], y

    _, y = lax.scan(forward, start, (cb.T, b), length=n)

    def backward(solved: Any, row: Any) -> Any:
        column, side = row
        x = (side - pnp.sum(conjugate(column[1:, None]) * solved, 0)) / conjugate(column[0])
        return pnp.concatenate([x[None], solved])[:u], x

    return lax.scan(backward, start, (cb.T, y), length=n, reverse=True)[1]


@compiled("lower", name="cho_solve_banded")
def _cho_solve_banded(cb, b, *, lower):
    fun = _with_factor if lower else lambda c, y: _with_factor(_lower_band(c), y)
    return _over_batches(fun, cb, b)


def cho_solve_banded(
    cb_and_lower: tuple[Any, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solution of systems from the results of :func:`cholesky_banded`.

    Args:
      cb_and_lower: the factor, and its form.
      b: ``number[..., n]`` or ``number[..., n, k]``; leading axes broadcast.
      overwrite_b, check_finite: ignored.

    Raises:
      ValueError: if sizes do not match.

    >>> import numpy as np
    >>> factor = cholesky_banded(np.float32([[4, 4], [2, 0]]), lower=True)
    >>> cho_solve_banded((factor, True), np.float32([6, 6])).round(4).tolist()
    [1.0, 1.0]
    """
    cb, lower = cb_and_lower
    _check_band("cho_solve_banded", cb, None, b)
    out: Array = _cho_solve_banded(cb, b, lower=bool(lower))
    return out


@compiled("lower", name="solveh_banded")
def _solveh_banded(ab, b, *, lower):
    def fun(a: Any, y: Any) -> Any:
        return _with_factor(_factor(a if lower else _lower_band(a)), y)

    return _over_batches(fun, ab, b)


def solveh_banded(
    ab: ArrayLike,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solution ``x`` of ``A @ x = b`` for banded Hermitian positive definite matrices ``A``.

    Args:
      ab: diagonals, as for :func:`cholesky_banded`.
      b: ``number[..., n]`` or ``number[..., n, k]``; leading axes broadcast.
      overwrite_ab, overwrite_b, check_finite: ignored.
      lower: the form of ``ab``.

    NaN if a matrix is not positive definite. It is differentiable to any order.

    Raises:
      ValueError: if sizes do not match.

    >>> import numpy as np
    >>> ab = np.float32([[4, 4], [2, 0]])
    >>> solveh_banded(ab, np.float32([6, 6]), lower=True).round(4).tolist()
    [1.0, 1.0]
    """
    _check_band("solveh_banded", ab, None, b)
    out: Array = _solveh_banded(ab, b, lower=bool(lower))
    return out
