"""Batched compressed rows (BCSR): a sparse format with two sparse dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import Array
from primax_core.extend import typeof
from primax_core.tree_util import register_pytree_node_class

from . import _compressed as kernels, _coordinates as coordinates
from ._bcoo import BCOO, bcoo_fromdense_p, number_to_store
from ._operators import SparseArray
from ._primitives import SparseInfo, composed
from ._products import Dimensions, canonical_dimensions, dot_kernel, require_matching


def _indices_of(indices: Any, indptr: Any, shape: Sequence[int]) -> Any:
    """The coordinates of the elements."""
    n_batch = typeof(indices).ndim - 1
    return kernels.coordinates(indices, indptr, n_batch=n_batch, n_columns=shape[n_batch + 1])


@composed("bcsr_todense")
def bcsr_todense_p(data: Any, indices: Any, indptr: Any, *, spinfo: SparseInfo) -> Any:
    places = _indices_of(indices, indptr, spinfo.shape)
    return coordinates.todense(data, places, shape=spinfo.shape, n_batch=typeof(indices).ndim - 1)


@composed("bcsr_fromdense", multiple_results=True)
def bcsr_fromdense_p(mat: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any) -> Any:
    data, places = bcoo_fromdense_p.bind(
        mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
    )
    shape = typeof(mat).shape[n_batch : n_batch + 2]
    return (data, *kernels.compressed(places, n_batch=n_batch, shape=shape))


@composed("bcsr_extract")
def bcsr_extract_p(indices: Any, indptr: Any, mat: Any) -> Any:
    places = _indices_of(indices, indptr, typeof(mat).shape)
    return coordinates.extract(places, mat, n_batch=typeof(indices).ndim - 1)


@composed("bcsr_dot_general")
def bcsr_dot_general_p(
    data: Any, indices: Any, indptr: Any, rhs: Any, *, dimension_numbers: Dimensions,
    lhs_spinfo: SparseInfo, precision: Any = None, preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    places = _indices_of(indices, indptr, lhs_spinfo.shape)
    return dot_kernel(
        data, places, rhs, shape=lhs_spinfo.shape, dims=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


@register_pytree_node_class
class BCSR(SparseArray):
    """A sparse array of compressed rows, with batch and dense dimensions.

    The dimensions are batch dimensions, rows and columns, and dense dimensions, in this order.
      Elements with the same indices are summed. Elements after ``indptr[..., -1]``, and those with
      column indices out of bounds, are *padding* and are ignored.

    Args:
      args: ``data`` of shape ``(*batch, nse, *dense)``, column ``indices`` of shape
        ``(*batch, nse)``, and ``indptr`` of shape ``(*batch, rows + 1)``: the elements of row ``i``
        are those from ``indptr[i]`` to ``indptr[i + 1]``. Batch dimensions of size 1 are broadcast.
      shape: the shape of the array.
      indices_sorted: declare that the columns of each row are sorted.
      unique_indices: declare that the indices are unique.

    Raises:
      ValueError: if shapes do not match.
      TypeError: if the indices are not integers.

    It is a pytree of its arrays, and has the operators and methods of :class:`BCOO`. Results are in
      this format if they have two sparse dimensions. ``vmap`` and ``scan`` map over batch
      dimensions.

    >>> import primax_numpy as pnp
    >>> a = BCSR.fromdense(pnp.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]))
    >>> a, a.indices.tolist(), a.indptr.tolist()
    (BCSR(float32[2, 3], nse=3), [1, 0, 2], [0, 1, 3])
    >>> a @ pnp.ones(3)
    Array([1., 5.], dtype=float32)
    >>> (2 * a.T).todense()
    Array([[0., 4.],
           [2., 0.],
           [0., 6.]], dtype=float32)
    """

    data: Array
    indices: Array
    indptr: Array
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        super().__init__(args, shape=shape)
        self.data, self.indices, self.indptr = map(pnp.asarray, args)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        _check(self)
        batch = self.shape[: self.indices.ndim - 1]
        n = len(batch)
        parts = (self.data, self.indices, self.indptr)
        if any(part.shape[:n] != batch for part in parts):
            parts = tuple(pnp.broadcast_to(part, batch + part.shape[n:]) for part in parts)
            self.data, self.indices, self.indptr = parts

    @classmethod
    def stored_names(cls) -> tuple[str, ...]:
        """The names of the stored arrays, in the order of the leaves."""
        return ("data", "indices", "indptr")

    @property
    def nse(self) -> int:
        """The number of stored elements, in each batch."""
        return int(self.indices.shape[-1])

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return self.indices.ndim - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return self.data.ndim - 1 - self.n_batch

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    def _layout(self) -> dict[str, int]:
        return {"nse": self.nse, "n_batch": self.n_batch, "n_dense": self.n_dense}

    # As a pytree

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], Any]:
        """``data``, ``indices`` and ``indptr``; the shape and the index flags."""
        known = self.shape, self.indices_sorted, self.unique_indices
        return (self.data, self.indices, self.indptr), known

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> BCSR:
        """The array of the parts, with their current batch dimensions."""
        out = object.__new__(cls)
        out.data, out.indices, out.indptr = children
        out.shape, out.indices_sorted, out.unique_indices = aux_data
        try:
            batch, rest = out.indices.shape[:-1], out.data.ndim - out.indices.ndim + 2
        except (AttributeError, IndexError, TypeError):  # leaves that are not arrays
            return out
        if 2 <= rest <= len(out.shape):
            out.shape = (*batch, *out.shape[len(out.shape) - rest :])
        return out

    def check_mapped(self) -> None:
        """Check that no transformation removed a dimension other than a batch dimension.

        Raises:
          ValueError: if one did.
        """
        shapes = self.data.shape, self.indices.shape, self.indptr.shape
        rows = self.shape[-2 - self.n_dense] if self.ndim > 1 + self.n_dense >= 1 else -2
        if self.n_batch < 0 or self.n_dense < 0 or shapes[2][-1:] != (rows + 1,):
            raise ValueError(
                f"a BCSR of shape {self.shape} was mapped or sliced along a dimension that is not "
                "a batch dimension: convert it with BCSR.to_bcoo and BCOO.update_layout"
            )

    def with_data(self, data: Any) -> BCSR:
        """An array with other data at the same indices."""
        known = {"indices_sorted": self.indices_sorted, "unique_indices": self.unique_indices}
        return BCSR((data, self.indices, self.indptr), shape=self.shape, **known)

    def without_flags(self) -> BCSR:
        """The array without index flags."""
        return BCSR((self.data, self.indices, self.indptr), shape=self.shape)

    def stored_like(self, out: BCOO) -> Any:
        """A :class:`BCOO` in this format if it has two sparse dimensions."""
        return BCSR.from_bcoo(out) if out.n_sparse == 2 else out

    # Conversion

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """The nonzero elements of an array with two sparse dimensions.

        Arguments and errors are those of :meth:`BCOO.fromdense`.

        Raises:
          ValueError: if the number of sparse dimensions is not two.
        """
        mat = pnp.asarray(mat)
        if mat.ndim - n_batch - n_dense != 2:
            raise ValueError(
                f"a BCSR has two sparse dimensions: an array of shape {mat.shape} with "
                f"n_batch={n_batch} and n_dense={n_dense} has {mat.ndim - n_batch - n_dense}"
            )
        nse = number_to_store(mat, nse, n_batch, n_dense)
        parts = bcsr_fromdense_p.bind(
            mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=np.dtype(index_dtype)
        )
        return cls(tuple(parts), shape=mat.shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The elements of a :class:`BCOO`, sorted by rows.

        Raises:
          ValueError: if it does not have two sparse dimensions.
        """
        if arr.n_sparse != 2:
            raise ValueError(
                f"BCSR.from_bcoo: {arr!r} has {arr.n_sparse} sparse dimensions, not 2: change the "
                "layout with update_layout()"
            )
        arr = arr if arr.indices_sorted else arr.sort_indices()
        shape = arr.shape[arr.n_batch : arr.n_batch + 2]
        indices, indptr = kernels.compressed(arr.indices, n_batch=arr.n_batch, shape=shape)
        known = {"indices_sorted": True, "unique_indices": arr.unique_indices}
        return cls((arr.data, indices, indptr), shape=arr.shape, **known)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """The stored elements of an array of ``scipy.sparse``, of any format.

        Raises:
          NotImplementedError: for batch or dense dimensions.
        """
        if n_dense or n_batch:
            raise NotImplementedError(
                "BCSR.from_scipy_sparse with n_dense or n_batch: convert with BCSR.to_bcoo and "
                "BCOO.update_layout"
            )
        csr = mat.tocsr()
        dtype = np.int32 if index_dtype is None else index_dtype
        parts = csr.data, csr.indices.astype(dtype), csr.indptr.astype(dtype)
        return cls(parts, shape=csr.shape)

    def to_bcoo(self) -> BCOO:
        """The array in coordinate format, with its elements in the same order."""
        self.check_mapped()
        known = {"indices_sorted": self.indices_sorted, "unique_indices": self.unique_indices}
        places = _indices_of(self.indices, self.indptr, self.shape)
        return BCOO((self.data, places), shape=self.shape, **known)

    def todense(self) -> Array:
        """The dense array; elements with the same indices are summed."""
        self.check_mapped()
        dense: Array = bcsr_todense_p.bind(self.data, self.indices, self.indptr, spinfo=self._info)
        return dense

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with sorted, unique indices: see :meth:`BCOO.sum_duplicates`."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def dot_dense(
        self, other: Any, dims: Any, precision: Any = None, preferred_element_type: Any = None
    ) -> Any:
        """General dot product with a dense array."""
        self.check_mapped()
        dims = canonical_dimensions(dims)
        require_matching(self, other, dims)
        dtype = pnp.promote_types(self.dtype, other.dtype)
        return bcsr_dot_general_p.bind(
            self.data.astype(dtype), self.indices, self.indptr, other.astype(dtype),
            dimension_numbers=dims, lhs_spinfo=self._info, precision=precision,
            preferred_element_type=preferred_element_type,
        )  # fmt: skip


def _check(x: BCSR) -> None:
    """Check that the parts of an array match."""
    data, indices, indptr, shape = x.data.shape, x.indices.shape, x.indptr.shape, x.shape
    for name, part in (("indices", x.indices), ("indptr", x.indptr)):
        if not np.issubdtype(part.dtype, np.integer):
            raise TypeError(f"{name} of a BCSR must be integers, got {part.dtype.name}")
    if not indices or len(indptr) != len(indices):
        raise ValueError(
            f"indices of a BCSR have the shape (*batch, nse) and indptr (*batch, rows + 1), got "
            f"{indices} and {indptr}; only batch dimensions can be mapped or sliced"
        )
    n_batch = len(indices) - 1
    if len(shape) < n_batch + 2:
        raise ValueError(
            f"indices of shape {indices} mean {n_batch} batch and 2 sparse dimensions, more than "
            f"shape {shape} has"
        )
    if indptr[-1] != shape[n_batch] + 1:
        raise ValueError(
            f"indptr of shape {indptr} does not match shape {shape}: it needs one more element "
            f"than the {shape[n_batch]} rows"
        )
    expected = (*shape[:n_batch], indices[-1], *shape[n_batch + 2 :])
    if len(data) != len(expected) or data[n_batch:] != expected[n_batch:]:
        raise ValueError(
            f"data of shape {data} does not match indices of shape {indices}, which for shape "
            f"{shape} require data of shape {expected}"
        )
    for part_shape in (data, indices, indptr):
        for size, whole in zip(part_shape[:n_batch], shape):
            if size not in (1, whole):
                raise ValueError(
                    f"batch dimensions of data {data}, indices {indices} and indptr {indptr} do "
                    f"not match shape {shape}"
                )
