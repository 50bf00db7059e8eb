"""Functions of COO and CSR matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import Array
from primax_core.typing import ArrayLike, DTypeLike

from ._matrices import COO, CSR, SparseMatrix


def _require(name: str, cls: type[SparseMatrix], mat: Any) -> None:
    if not isinstance(mat, cls):
        raise TypeError(f"{name} expects a {cls.__name__} matrix, got {type(mat)}")


def coo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> COO:
    """The nonzero elements of a matrix: see :meth:`COO.fromdense`."""
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> CSR:
    """The nonzero elements of a matrix: see :meth:`CSR.fromdense`."""
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def coo_todense(mat: COO) -> Array:
    """The dense matrix: see :meth:`COO.todense`."""
    _require("coo_todense", COO, mat)
    return mat.todense()


def csr_todense(mat: CSR) -> Array:
    """The dense matrix: see :meth:`CSR.todense`."""
    _require("csr_todense", CSR, mat)
    return mat.todense()


def _product(name: str, mat: SparseMatrix, other: Any, ndim: int, transpose: bool) -> Array:
    other = pnp.asarray(other)
    size = mat.shape[0 if transpose else 1]
    if other.ndim != ndim or other.shape[0] != size:
        kind = "a vector" if ndim == 1 else "a matrix"
        raise ValueError(
            f"{name} of a matrix of shape {mat.shape} with transpose={bool(transpose)} needs "
            f"{kind} with {size} rows, got shape {other.shape}"
        )
    if other.dtype != mat.dtype:
        raise TypeError(
            f"{name} needs operands of the same dtype, got {mat.dtype.name} and "
            f"{other.dtype.name}: convert one with astype(), or use the operator @"
        )
    mat.check_mapped()
    return mat._product(other, bool(transpose))


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a matrix and a vector.

    Args:
      mat: a :class:`COO` matrix ``[m, n]``.
      v: a vector ``[n]`` of the same dtype; ``[m]`` for the transposed matrix.
      transpose: multiply by the transposed matrix.

    Raises:
      ValueError: if shapes do not match.
      TypeError: if dtypes differ, or ``mat`` has another format.

    >>> import primax_numpy as pnp
    >>> mat = COO.fromdense(pnp.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> coo_matvec(mat, pnp.ones(2)), coo_matvec(mat, pnp.ones(2), transpose=True)
    (Array([1., 5.], dtype=float32), Array([2., 4.], dtype=float32))
    """
    _require("coo_matvec", COO, mat)
    return _product("coo_matvec", mat, v, 1, transpose)


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a matrix and a dense matrix ``B``: see :func:`coo_matvec`."""
    _require("coo_matmat", COO, mat)
    return _product("coo_matmat", mat, B, 2, transpose)


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a :class:`CSR` matrix and a vector: see :func:`coo_matvec`."""
    _require("csr_matvec", CSR, mat)
    return _product("csr_matvec", mat, v, 1, transpose)


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a :class:`CSR` matrix and a dense matrix ``B``: see :func:`coo_matvec`."""
    _require("csr_matmat", CSR, mat)
    return _product("csr_matmat", mat, B, 2, transpose)
