"""Sparse matrices without batch dimensions: COO, CSR and CSC."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

import primax_numpy as pnp
from primax_core import Array
from primax_core.extend import typeof
from primax_core.tree_util import register_pytree_node_class

from . import _compressed as kernels
from ._bcoo import BCOO, number_to_store
from ._matrix_primitives import (
    coo_fromdense_p,
    coo_matmat_p,
    coo_matvec_p,
    coo_todense_p,
    csr_fromdense_p,
    csr_matmat_p,
    csr_matvec_p,
    csr_todense_p,
)
from ._operators import SparseArray
from ._primitives import COOInfo

_TRANSPOSED = {((1,), (0,)): False, ((0,), (0,)): True}


class SparseMatrix(SparseArray):
    """Base class of matrices in :class:`COO`, :class:`CSR` and :class:`CSC` format."""

    unique_indices: bool

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int], **known: bool):
        super().__init__(args, shape=tuple(map(operator.index, shape)))
        if len(args) != 3:
            raise ValueError(
                f"a {type(self).__name__} is made of {', '.join(self.stored_names())}, got "
                f"{len(args)} arrays"
            )
        for name, part in zip(self.stored_names(), args, strict=True):
            setattr(self, name, pnp.asarray(part))
        self.unique_indices = False
        if len(self.shape) != 2:
            raise ValueError(
                f"a {type(self).__name__} is a matrix, got shape={self.shape}; use BCOO or BCSR "
                "for arrays with other numbers of dimensions"
            )
        self._check()

    def parts(self) -> tuple[Any, Any, Any]:
        """The stored arrays."""
        data, first, second = (getattr(self, name) for name in self.stored_names())
        return data, first, second

    def _lengths(self) -> tuple[int | None, int | None]:
        """The required lengths of the second and the third array; ``None`` for that of data."""
        return None, None

    def _check(self) -> None:
        """Check that the parts of a matrix match."""
        name, names, parts = type(self).__name__, self.stored_names(), self.parts()
        for label, part in zip(names[1:], parts[1:]):
            if not np.issubdtype(part.dtype, np.integer):
                raise TypeError(f"{label} of a {name} must be integers, got {part.dtype.name}")
        lengths = [part.shape for part in parts]
        nse = lengths[0][0] if len(lengths[0]) == 1 else -1
        expected = [(nse if n is None else n,) for n in (None, *self._lengths())]
        if nse < 0 or lengths != expected:
            shown = ", ".join(f"{k} of shape {v}" for k, v in zip(names, lengths))
            raise ValueError(
                f"the parts of a {name} of shape {self.shape} do not match: {shown}; they are "
                f"vectors, here of lengths {', '.join(str(n) for (n,) in expected)}"
            )

    def check_mapped(self) -> None:
        """Check that no transformation added or removed a dimension.

        Raises:
          ValueError: if one did.
        """
        if any(len(part.shape) != 1 for part in self.parts()):
            raise ValueError(
                f"a {type(self).__name__} of shape {self.shape} has no batch dimensions, but its "
                f"data has the shape {self.data.shape}: use BCSR or BCOO, or vmap"
            )

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return int(self.data.shape[0])

    def _flags(self) -> tuple[Any, ...]:
        """Static declarations about the indices."""
        return (self.unique_indices,)

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], Any]:
        """The stored arrays; the shape and declarations about the indices."""
        return self.parts(), (self.shape, *self._flags())

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Self:
        """The inverse of :meth:`tree_flatten`."""
        out = object.__new__(cls)
        for name, part in zip(cls.stored_names(), children):
            setattr(out, name, part)
        out.shape, *flags = aux_data
        out._set_flags(*flags)
        return out

    def _set_flags(self, unique_indices: bool) -> None:
        self.unique_indices = unique_indices

    def with_data(self, data: Any) -> Self:
        """A matrix with other data at the same indices."""
        _, first, second = self.parts()
        return self.tree_unflatten((self.shape, *self._flags()), (data, first, second))

    def stored_like(self, out: BCOO) -> Any:
        """A :class:`BCOO` in this format if it is a matrix with two sparse dimensions."""
        return self.from_bcoo(out) if out.ndim == out.n_sparse == 2 else out

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> Self:
        """The elements of a :class:`BCOO` matrix.

        Raises:
          ValueError: if it does not have two sparse dimensions only.
        """
        raise NotImplementedError

    def _known(self, unique_indices: bool) -> Self:
        self.unique_indices = unique_indices
        return self

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The transposed matrix; the stored arrays are shared.

        Raises:
          ValueError: if ``axes`` is not a permutation of two axes.
        """
        order = (1, 0) if axes is None else tuple(operator.index(a) % 2 for a in axes)
        if sorted(order) != [0, 1]:
            raise ValueError(f"axes={axes} is not a permutation of the axes of a matrix")
        return self if order == (0, 1) else self._transposed()

    def _transposed(self) -> Any:
        raise NotImplementedError

    def _product(self, other: Any, transpose: bool) -> Array:
        raise NotImplementedError

    def dot_dense(
        self, other: Any, dims: Any, precision: Any = None, preferred_element_type: Any = None
    ) -> Any:
        """The product with a vector or matrix, or ``NotImplemented`` for other contractions."""
        (lc, rc), (lb, _) = dims
        transpose = _TRANSPOSED.get((tuple(lc), tuple(rc)))
        if transpose is None or lb or precision is not None or preferred_element_type is not None:
            return NotImplemented
        other_shape = typeof(other).shape
        if len(other_shape) > 2 or other_shape[0] != self.shape[0 if transpose else 1]:
            return NotImplemented
        self.check_mapped()
        dtype = pnp.promote_types(self.dtype, other.dtype)
        return self.with_data(self.data.astype(dtype))._product(other.astype(dtype), transpose)


def _require_matrix(name: str, arr: BCOO) -> None:
    if arr.ndim != 2 or arr.n_sparse != 2:
        raise ValueError(
            f"{name}.from_bcoo: {arr!r} is not a matrix with two sparse dimensions: change the "
            "layout with update_layout()"
        )


def _matrix(name: str, mat: Any) -> Any:
    mat = pnp.asarray(mat)
    if mat.ndim != 2:
        raise ValueError(
            f"{name}.fromdense needs a matrix, got an array of shape {mat.shape}; use BCOO or BCSR"
        )
    return mat


@register_pytree_node_class
class COO(SparseMatrix):
    """A sparse matrix in coordinate format.

    Elements with the same indices are summed; those with indices out of bounds are *padding* and
      are ignored.

    Args:
      args: ``data``, ``row`` and ``col``: vectors of the same length.
      shape: the shape of the matrix.
      rows_sorted: declare that ``row`` is sorted.
      cols_sorted: declare that ``col`` is sorted.

    Raises:
      ValueError: if shapes do not match.
      TypeError: if the indices are not integers.

    The operators and methods are those of :class:`BCOO`; results that are matrices with two sparse
      dimensions are in this format. It has no batch dimensions: :class:`BCOO` has them.

    >>> import primax_numpy as pnp
    >>> a = COO.fromdense(pnp.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]))
    >>> a, a.row.tolist(), a.col.tolist()
    (COO(float32[2, 3], nse=3), [0, 1, 1], [1, 0, 2])
    >>> a @ pnp.ones(3), a.T
    (Array([1., 5.], dtype=float32), COO(float32[3, 2], nse=3))
    """

    row: Array
    col: Array

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ):
        super().__init__(args, shape=shape)
        self.rows_sorted, self.cols_sorted = bool(rows_sorted), bool(cols_sorted)

    @classmethod
    def stored_names(cls) -> tuple[str, ...]:
        """The names of the stored arrays, in the order of the leaves."""
        return ("data", "row", "col")

    def _flags(self) -> tuple[Any, ...]:
        return self.rows_sorted, self.cols_sorted, self.unique_indices

    def _set_flags(self, rows_sorted: bool, cols_sorted: bool, unique_indices: bool) -> None:
        self.rows_sorted: bool = rows_sorted
        self.cols_sorted: bool = cols_sorted
        self.unique_indices = unique_indices

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self.rows_sorted, self.cols_sorted)

    def without_flags(self) -> COO:
        """The matrix without declarations about its indices."""
        return COO(self.parts(), shape=self.shape)

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
        """The nonzero elements of a matrix; arguments and errors as for :meth:`BCOO.fromdense`."""
        mat = _matrix("COO", mat)
        nse = number_to_store(mat, nse, 0, 0)
        parts = coo_fromdense_p.bind(mat, nse=nse, index_dtype=np.dtype(index_dtype))
        return cls(tuple(parts), shape=mat.shape, rows_sorted=True)._known(True)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> COO:
        """The elements of a :class:`BCOO` matrix, in the same order.

        Raises:
          ValueError: if it does not have two sparse dimensions only.
        """
        _require_matrix("COO", arr)
        parts = arr.data, arr.indices[:, 0], arr.indices[:, 1]
        out = cls(parts, shape=arr.shape, rows_sorted=arr.indices_sorted)
        return out._known(arr.unique_indices)

    def to_bcoo(self) -> BCOO:
        """The matrix as a :class:`BCOO`, with its elements in the same order."""
        self.check_mapped()
        dtype = pnp.promote_types(self.row.dtype, self.col.dtype)
        indices = pnp.stack([self.row.astype(dtype), self.col.astype(dtype)], axis=1)
        return BCOO((self.data, indices), shape=self.shape, unique_indices=self.unique_indices)

    def todense(self) -> Array:
        """The dense matrix; elements with the same indices are summed."""
        self.check_mapped()
        dense: Array = coo_todense_p.bind(*self.parts(), spinfo=self._info)
        return dense

    def sort_indices(self) -> COO:
        """The matrix with its elements sorted by rows, then by columns."""
        return self if self.rows_sorted else COO.from_bcoo(self.to_bcoo().sort_indices())

    _sort_indices = sort_indices

    def _transposed(self) -> COO:
        parts = self.data, self.col, self.row
        known = {"rows_sorted": self.cols_sorted, "cols_sorted": self.rows_sorted}
        return COO(parts, shape=self.shape[::-1], **known)._known(self.unique_indices)

    def _product(self, other: Any, transpose: bool) -> Array:
        prim = coo_matvec_p if typeof(other).ndim == 1 else coo_matmat_p
        out: Array = prim.bind(*self.parts(), other, spinfo=self._info, transpose=transpose)
        return out


class _Compressed(SparseMatrix):
    """Base class of :class:`CSR` and :class:`CSC`."""

    indices: Array
    indptr: Array

    @classmethod
    def stored_names(cls) -> tuple[str, ...]:
        """The names of the stored arrays, in the order of the leaves."""
        return ("data", "indices", "indptr")

    def without_flags(self) -> Self:
        """The matrix without declarations about its indices."""
        return type(self)(self.parts(), shape=self.shape)


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix of compressed rows.

    Args:
      args: ``data`` and column ``indices``, vectors of the same length, and ``indptr`` of one more
        element than rows: the elements of row ``i`` are those from ``indptr[i]`` to
        ``indptr[i + 1]``. Elements after the last one are *padding*, and are ignored.
      shape: the shape of the matrix.

    Raises:
      ValueError: if shapes do not match.
      TypeError: if the indices are not integers.

    The operators and methods are those of :class:`BCOO`; results that are matrices with two sparse
      dimensions are in this format. It has no batch dimensions: :class:`BCSR` has them.

    >>> import primax_numpy as pnp
    >>> a = CSR.fromdense(pnp.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]))
    >>> a, a.indices.tolist(), a.indptr.tolist()
    (CSR(float32[2, 3], nse=3), [1, 0, 2], [0, 1, 3])
    >>> a @ pnp.ones(3), a.T
    (Array([1., 5.], dtype=float32), CSC(float32[3, 2], nse=3))
    """

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        super().__init__(args, shape=shape)

    def _lengths(self) -> tuple[int | None, int | None]:
        return None, self.shape[0] + 1

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
        """The nonzero elements of a matrix; arguments and errors as for :meth:`BCOO.fromdense`."""
        mat = _matrix("CSR", mat)
        nse = number_to_store(mat, nse, 0, 0)
        parts = csr_fromdense_p.bind(mat, nse=nse, index_dtype=np.dtype(index_dtype))
        return cls(tuple(parts), shape=mat.shape)._known(True)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> CSR:
        """The elements of a :class:`BCOO` matrix, sorted by rows.

        Raises:
          ValueError: if it does not have two sparse dimensions only.
        """
        _require_matrix("CSR", arr)
        arr = arr if arr.indices_sorted else arr.sort_indices()
        parts = kernels.compressed(arr.indices, n_batch=0, shape=arr.shape)
        return cls((arr.data, *parts), shape=arr.shape)._known(arr.unique_indices)

    def to_bcoo(self) -> BCOO:
        """The matrix as a :class:`BCOO`, with its elements in the same order."""
        self.check_mapped()
        indices = kernels.coordinates(self.indices, self.indptr, n_batch=0, n_columns=self.shape[1])
        known = {"indices_sorted": self.unique_indices, "unique_indices": self.unique_indices}
        return BCOO((self.data, indices), shape=self.shape, **known)

    def todense(self) -> Array:
        """The dense matrix; elements with the same indices are summed."""
        self.check_mapped()
        dense: Array = csr_todense_p.bind(*self.parts(), shape=self.shape)
        return dense

    def _transposed(self) -> CSC:
        return CSC(self.parts(), shape=self.shape[::-1])._known(self.unique_indices)

    def _product(self, other: Any, transpose: bool) -> Array:
        prim = csr_matvec_p if typeof(other).ndim == 1 else csr_matmat_p
        out: Array = prim.bind(*self.parts(), other, shape=self.shape, transpose=transpose)
        return out


@register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix of compressed columns: the transpose of a :class:`CSR` matrix.

    Args:
      args: ``data`` and row ``indices``, vectors of the same length, and ``indptr`` of one more
        element than columns: the elements of column ``j`` are those from ``indptr[j]`` to
        ``indptr[j + 1]``. Elements after the last one are *padding*, and are ignored.
      shape: the shape of the matrix.

    Raises:
      ValueError: if shapes do not match.
      TypeError: if the indices are not integers.

    >>> import primax_numpy as pnp
    >>> a = CSC.fromdense(pnp.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]))
    >>> a, a.indices.tolist(), a.indptr.tolist()
    (CSC(float32[2, 3], nse=3), [1, 0, 1], [0, 1, 2, 3])
    >>> a @ pnp.ones(3), a.T
    (Array([1., 5.], dtype=float32), CSR(float32[3, 2], nse=3))
    """

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        super().__init__(args, shape=shape)

    def _lengths(self) -> tuple[int | None, int | None]:
        return None, self.shape[1] + 1

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSC:
        """The nonzero elements of a matrix; arguments and errors as for :meth:`BCOO.fromdense`."""
        out: CSC = CSR.fromdense(_matrix("CSC", mat).T, nse=nse, index_dtype=index_dtype).T
        return out

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> CSC:
        """The elements of a :class:`BCOO` matrix, sorted by columns.

        Raises:
          ValueError: if it does not have two sparse dimensions only.
        """
        _require_matrix("CSC", arr)
        out: CSC = CSR.from_bcoo(arr.T).T
        return out

    def to_bcoo(self) -> BCOO:
        """The matrix as a :class:`BCOO`, with its elements in the same order."""
        self.check_mapped()
        transposed: BCOO = self._transposed().to_bcoo().T
        return transposed

    def todense(self) -> Array:
        """The dense matrix; elements with the same indices are summed."""
        self.check_mapped()
        dense: Array = csr_todense_p.bind(*self.parts(), shape=self.shape[::-1])
        return dense.T

    def _transposed(self) -> CSR:
        return CSR(self.parts(), shape=self.shape[::-1])._known(self.unique_indices)

    def _product(self, other: Any, transpose: bool) -> Array:
        return self._transposed()._product(other, not transpose)
