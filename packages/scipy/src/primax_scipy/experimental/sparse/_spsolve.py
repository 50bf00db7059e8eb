"""Direct solution of linear systems with a matrix of compressed rows."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import Array, ShapeDtypeStruct, lax, pure_callback
from primax_core.extend import (
    Axis,
    Primitive,
    ShapedArray,
    abstract,
    add_tangents,
    batch,
    expand,
    is_linear,
    is_zero,
    jvp,
    move_axis,
    transpose,
    typeof,
)
from primax_core.typing import ArrayLike

from . import _compressed as kernels
from ._coordinates import mapped
from ._factorization import COLUMN_ORDERS, factorized
from ._products import dot_kernel

spsolve_p: Final = Primitive("spsolve")
"""Solution of ``A x = b``. Operands are ``data``, ``indices``, ``indptr`` and ``b``; leading batch
dimensions are equal, or 1 to use an operand for the whole batch. With the parameter ``transpose``
the system is ``A^T x = b``."""


@spsolve_p.rule(abstract)
def _abstract(
    data: ShapedArray, indices: ShapedArray, indptr: ShapedArray, b: ShapedArray, **_: Any
) -> ShapedArray:
    batches = [x.shape[:-1] for x in (data, indices, indptr, b)]
    return b.update(shape=(*np.broadcast_shapes(*batches), b.shape[-1]), weak_type=False)


@spsolve_p.rule(expand)
def _expand(
    data: Any, indices: Any, indptr: Any, b: Any, *, tol: float, reorder: int,
    transpose: bool = False,
) -> Any:  # fmt: skip
    avals = [typeof(x) for x in (data, indices, indptr, b)]
    out = _abstract(*avals)
    run = partial(_solve_on_host, reorder=reorder, transposed=transpose)
    struct = ShapeDtypeStruct(out.shape, out.dtype)
    return pure_callback(run, struct, data, indices, indptr, b)


def _solve_on_host(
    data: Any, indices: Any, indptr: Any, b: Any, *, reorder: int, transposed: bool
) -> np.ndarray:
    data, indices, indptr, b = map(np.asarray, (data, indices, indptr, b))
    dtype, n = b.dtype, b.shape[-1]
    if dtype.itemsize < 4:
        data, b = data.astype(np.float32), b.astype(np.float32)
    sizes = np.broadcast_shapes(*(x.shape[:-1] for x in (data, indices, indptr)))
    matrices = [np.broadcast_to(x, (*sizes, x.shape[-1])) for x in (data, indices, indptr)]
    every = np.broadcast_shapes(sizes, b.shape[:-1])
    right = np.broadcast_to(b, (*every, n))
    out = np.empty((*every, n), b.dtype)
    for at in np.ndindex(*sizes):
        # All right-hand sides of one matrix
        rows = tuple(slice(None) if size == 1 else slice(k, k + 1) for k, size in zip(at, sizes))
        solve = _factorization(*(x[at] for x in matrices), n, reorder, transposed)
        part = right[rows]
        out[rows] = solve(part.reshape(-1, n).T).T.reshape(part.shape)
    return out.astype(dtype)


def _factorization(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n: int, reorder: int,
    transposed: bool,
) -> Any:  # fmt: skip
    rows = np.searchsorted(indptr[1:], np.arange(len(data)), side="right")
    columns = np.where(indices < 0, indices + n, indices)
    stored = (rows < n) & (columns >= 0) & (columns < n)
    rows, columns = rows[stored], columns[stored]
    places = (columns, rows) if transposed else (rows, columns)
    return factorized(data[stored], *places, n, reorder)


@spsolve_p.rule(jvp)
def _jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    data, indices, indptr, b = primals
    data_tangent, _, _, b_tangent = tangents
    x = spsolve_p.bind(data, indices, indptr, b, **params)
    right = None if is_zero(b_tangent) else b_tangent
    if not is_zero(data_tangent):
        moved = -_product(data_tangent, indices, indptr, x, params.get("transpose", False))
        right = moved if right is None else add_tangents(moved, pnp.broadcast_to(right, x.shape))
    return x, spsolve_p.bind(data, indices, indptr, right, **params)


def _product(data: Any, indices: Any, indptr: Any, x: Any, transposed: bool) -> Any:
    """The products of batches of matrices and vectors."""
    sizes, n = typeof(x).shape[:-1], typeof(x).shape[-1]
    parts = [pnp.broadcast_to(v, (*sizes, typeof(v).shape[-1])) for v in (data, indices, indptr)]
    contracted = ((0,), (0,)) if transposed else ((1,), (0,))
    product = partial(
        dot_kernel, shape=(n, n), dims=(contracted, ((), ())), precision=None,
        preferred_element_type=None,
    )  # fmt: skip

    def one(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
        return product(data, kernels.coordinates(indices, indptr, n_batch=0, n_columns=n), x)

    return mapped(one, len(sizes))(*parts, x)


@spsolve_p.rule(transpose)
def _transpose(
    ct: Any, data: Any, indices: Any, indptr: Any, b: Any, *, transpose: bool = False, **params: Any
) -> list[Any]:
    if is_linear(data) or not is_linear(b):
        raise TypeError("spsolve is linear in its right-hand side only")
    if is_zero(ct):
        return [None, None, None, None]
    out = spsolve_p.bind(data, indices, indptr, ct, transpose=not transpose, **params)
    shape = b.aval.shape
    summed = tuple(d for d, size in enumerate(shape) if size != typeof(out).shape[d])
    if summed:
        out = lax.reshape(pnp.sum(out, summed, dtype=typeof(out).dtype), shape)
    return [None, None, None, out]


@spsolve_p.rule(batch)
def _batch(axis: Axis, args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
    operands = [
        lax.expand_dims(x, (0,)) if d is None else move_axis(x, d, 0, axis.size)
        for x, d in zip(args, dims)
    ]
    return spsolve_p.bind(*operands, **params), 0


def spsolve(
    data: ArrayLike,
    indices: ArrayLike,
    indptr: ArrayLike,
    b: ArrayLike,
    tol: float = 1e-6,
    reorder: int = 1,
) -> Array:
    """Solution ``x`` of ``A @ x = b`` by a sparse LU factorization, for a matrix ``A`` of
    compressed rows.

    Args:
      data, indices, indptr: the stored arrays of a :class:`CSR` matrix ``[n, n]``: elements and
        column indices ``[nse]``, integers ``[n + 1]``.
      b: a vector ``[n]`` with the dtype of ``data``: real or complex.
      tol: the threshold of small pivots of the reference's CUDA solver. It is not used: pivots are
        chosen by size, and an exactly singular matrix gives NaN.
      reorder: the order of columns, which determines the number of elements of the factors: 0 for
        that of the matrix, 1 for COLAMD, 2 for minimum degree of ``A^T + A``, 3 for minimum degree
        of ``A^T A``.

    Returns:
      The solution ``[n]``. It is computed on the host, by SuperLU if SciPy is installed. Otherwise
      the matrix is factorized by NumPy: as a band after a reverse Cuthill-McKee ordering (for
      ``reorder`` other than 0), or as a dense matrix if the band is wide.

    Raises:
      ValueError: if shapes or dtypes do not match, or ``reorder`` is unknown.
      TypeError: if the indices are not integers, or the elements are.

    Derivatives of any order with respect to ``data`` and ``b`` are solutions of further systems.
    ``vmap`` over ``b`` factorizes the matrix once.

    >>> import primax_numpy as pnp
    >>> from primax_scipy.experimental.sparse import CSR
    >>> a = CSR.fromdense(pnp.array([[4.0, 1.0], [0.0, 2.0]]))
    >>> spsolve(a.data, a.indices, a.indptr, pnp.array([6.0, 4.0]))
    Array([1., 2.], dtype=float32)
    """
    data, indices, indptr, b = map(pnp.asarray, (data, indices, indptr, b))
    reorder = operator.index(reorder)
    if reorder not in COLUMN_ORDERS:
        raise ValueError(f"reorder={reorder} is not one of {', '.join(map(str, COLUMN_ORDERS))}")
    shapes = [x.shape for x in (data, indices, indptr, b)]
    if any(len(shape) != 1 for shape in shapes):
        raise ValueError(
            "spsolve needs vectors, got data, indices, indptr and b of shapes "
            f"{', '.join(map(str, shapes))}; use vmap for several systems"
        )
    if indices.shape != data.shape or len(indptr) != len(b) + 1:
        raise ValueError(
            f"data of shape {shapes[0]}, indices of shape {shapes[1]} and indptr of shape "
            f"{shapes[2]} are not those of a CSR matrix with the {len(b)} rows of b"
        )
    for name, x in (("indices", indices), ("indptr", indptr)):
        if not np.issubdtype(x.dtype, np.integer):
            raise TypeError(f"{name} of spsolve must be integers, got {x.dtype.name}")
    if data.dtype != b.dtype:
        raise ValueError(
            f"spsolve needs data and b of the same dtype, got {data.dtype.name} and {b.dtype.name}"
        )
    if not pnp.issubdtype(data.dtype, np.inexact):
        raise TypeError(
            f"spsolve needs real or complex elements, got {data.dtype.name}: convert with astype()"
        )
    out: Array = spsolve_p.bind(data, indices, indptr, b, tol=float(tol), reorder=reorder)
    return out
