"""Batched coordinate (BCOO) arrays, with batch and dense dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import Array
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Tracer, typeof
from primax_core.tree_util import register_pytree_node_class

from . import _coordinates as kernels
from ._operators import SparseArray
from ._primitives import SparseInfo, composed
from ._update_layout import Stored, update_layout


def number_to_store(mat: Any, nse: int | None, n_batch: int, n_dense: int) -> int:
    """The number of elements to store of a dense array.

    Raises:
      ConcretizationTypeError: if the array is traced and ``nse`` is ``None``.
    """
    if nse is not None:
        return int(nse)
    if isinstance(mat, Tracer):
        raise ConcretizationTypeError(
            mat, "The number of nonzero elements is unknown: pass it as `nse`."
        )
    return int(kernels.most_occupied(mat, n_batch=n_batch, n_dense=n_dense))


def _batch_of(indices: Any) -> int:
    return typeof(indices).ndim - 2


@composed("bcoo_todense")
def bcoo_todense_p(data: Any, indices: Any, *, spinfo: SparseInfo) -> Any:
    return kernels.todense(data, indices, shape=spinfo.shape, n_batch=_batch_of(indices))


@composed("bcoo_fromdense", multiple_results=True)
def bcoo_fromdense_p(mat: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any) -> Any:
    dtype = np.dtype(index_dtype)
    return kernels.fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=dtype)


@composed("bcoo_sort_indices", multiple_results=True)
def bcoo_sort_indices_p(data: Any, indices: Any, *, spinfo: SparseInfo) -> Any:
    return kernels.sorted_by_place(data, indices, shape=spinfo.shape, n_batch=_batch_of(indices))


@composed("bcoo_sum_duplicates", multiple_results=True)
def bcoo_sum_duplicates_p(
    data: Any, indices: Any, *, spinfo: SparseInfo, nse: int, remove_zeros: bool = True
) -> Any:
    static = {"shape": spinfo.shape, "n_batch": _batch_of(indices)}
    return kernels.sum_duplicates(data, indices, nse=nse, remove_zeros=remove_zeros, **static)


@register_pytree_node_class
class BCOO(SparseArray):
    """A sparse array in batched coordinate format: data, and their indices.

    The dimensions are batch, sparse and dense dimensions, in this order. Elements with the same
      indices are summed. Elements with indices out of bounds are ignored: such *padding* gives
      arrays with different numbers of elements, such as those of a batch, the same shape.

    Args:
      args: ``data`` of shape ``(*batch, nse, *dense)`` and ``indices``, integers, of shape
        ``(*batch, nse, n_sparse)``. Batch dimensions of size 1 are broadcast.
      shape: the shape of the array.
      indices_sorted: declare that the indices are in row-major order.
      unique_indices: declare that the indices are unique.

    Raises:
      ValueError: if shapes do not match.
      TypeError: if the indices are not integers.

    It is a pytree of ``data`` and ``indices``: an argument and a result of compiled functions, a
      carry of loops, and mapped by ``vmap`` over batch dimensions. Operators and methods of arrays
      are supported if their results are sparse; others raise an error. See :func:`sparsify` for
      functions of sparse arrays, and :func:`grad` for derivatives.

    >>> import primax_numpy as pnp
    >>> a = BCOO.fromdense(pnp.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]))
    >>> a
    BCOO(float32[2, 3], nse=3)
    >>> a @ pnp.ones(3)
    Array([1., 5.], dtype=float32)
    >>> (2 * a.T).todense()
    Array([[0., 4.],
           [2., 0.],
           [0., 6.]], dtype=float32)
    """

    data: Array
    indices: Array
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        data, indices = args
        super().__init__((data, indices), shape=shape)
        self.data, self.indices = pnp.asarray(data), pnp.asarray(indices)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        _check(self)
        batch = self.shape[: self.n_batch]
        if not batch == self.data.shape[: len(batch)] == self.indices.shape[: len(batch)]:
            self.data, self.indices = kernels.spread(self.data, self.indices, batch)
        self.indices = kernels.wide_enough(self.indices, self.shape)
        if not self.n_sparse and self.nse > 1:  # all elements have the same (empty) index
            self.unique_indices = False

    @property
    def nse(self) -> int:
        """The number of stored elements, in each batch."""
        return int(self.indices.shape[-2])

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        self.check_mapped()
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return int(self.indices.shape[-1])

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return self.data.ndim - 1 - self.n_batch

    def check_mapped(self) -> None:
        """Check that no transformation removed a dimension other than a batch dimension.

        Raises:
          ValueError: if one did.
        """
        indices = self.indices.shape
        if len(indices) < 2 or self.ndim != self.data.ndim - 1 + indices[-1]:
            raise ValueError(
                f"a BCOO of shape {self.shape} was mapped or sliced along a dimension that is "
                "not a batch dimension: convert it with BCOO.update_layout"
            )

    # As a pytree

    def tree_flatten(self) -> tuple[tuple[Any, Any], Any]:
        """``data`` and ``indices``; the shape and the index flags."""
        known = self.shape, self.indices_sorted, self.unique_indices
        return (self.data, self.indices), (*known, getattr(self.indices, "shape", ())[-2:-1])

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> BCOO:
        """The array of the parts, with their current batch dimensions."""
        out = object.__new__(cls)
        out.data, out.indices = children
        shape, out.indices_sorted, out.unique_indices, nse = aux_data
        out.shape = _shape_now(out.data, out.indices, shape, nse)
        return out

    def like(self, data: Any, indices: Any = None, shape: Any = None, **known: bool) -> BCOO:
        """An array with other parts; index flags are kept if the indices are."""
        if indices is None:
            indices = self.indices
            known.setdefault("indices_sorted", self.indices_sorted)
            known.setdefault("unique_indices", self.unique_indices)
        return type(self)((data, indices), shape=self.shape if shape is None else shape, **known)

    def with_data(self, data: Any) -> BCOO:
        """An array with other data at the same indices."""
        return self.like(data)

    def without_flags(self) -> BCOO:
        """The array without index flags."""
        return self.like(self.data, self.indices)

    def to_bcoo(self) -> BCOO:
        """The array itself."""
        return self

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    def _layout(self) -> dict[str, int]:
        return {"nse": self.nse, "n_batch": self.n_batch, "n_dense": self.n_dense}

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
    ) -> BCOO:
        """The nonzero elements of an array.

        Args:
          mat: an array of any shape and dtype.
          nse: the number of elements to store, by default the number of nonzero ones (the maximum
            over batches). It is required under transformations. The elements are truncated or
            padded.
          index_dtype: the dtype of the indices.
          n_dense, n_batch: the number of dense and of batch dimensions.

        Raises:
          ConcretizationTypeError: if the array is traced and ``nse`` is ``None``.
          ValueError: if there are more dimensions than the array has.
        """
        mat = pnp.asarray(mat)
        if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
            raise ValueError(
                f"an array of shape {mat.shape} has no n_batch={n_batch} batch and "
                f"n_dense={n_dense} dense dimensions"
            )
        nse = number_to_store(mat, nse, n_batch, n_dense)
        data, indices = bcoo_fromdense_p.bind(
            mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=np.dtype(index_dtype)
        )
        return cls((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The stored elements of an array of ``scipy.sparse``, of any format.

        Raises:
          NotImplementedError: for batch or dense dimensions; see :meth:`update_layout`.
        """
        if n_dense or n_batch:
            raise NotImplementedError(
                "BCOO.from_scipy_sparse with n_dense or n_batch: convert with update_layout()"
            )
        coo = mat.tocoo()
        index_dtype = np.int32 if index_dtype is None else index_dtype
        indices = np.stack([np.asarray(coo.row), np.asarray(coo.col)], 1).astype(index_dtype)
        return cls((pnp.asarray(coo.data), indices), shape=coo.shape)

    def todense(self) -> Array:
        """The dense array; elements with the same indices are summed."""
        self.check_mapped()
        dense: Array = bcoo_todense_p.bind(self.data, self.indices, spinfo=self._info)
        return dense

    # Storage layout

    def sort_indices(self) -> BCOO:
        """The array with sorted indices."""
        self.check_mapped()
        data, indices = bcoo_sort_indices_p.bind(self.data, self.indices, spinfo=self._info)
        known = {"indices_sorted": True, "unique_indices": self.unique_indices}
        return self.like(data, indices, **known)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with sorted, unique indices; elements with the same indices are summed.

        Args:
          nse: the number of elements to store, by default the number of unique indices. It is
            required under transformations. The elements are truncated or padded.
          remove_zeros: drop elements that are zero before the summation.

        Raises:
          ValueError: if the array is traced and ``nse`` is ``None``.
        """
        removing = {"remove_zeros": bool(remove_zeros)}
        if nse is None:
            if isinstance(self.data, Tracer) or isinstance(self.indices, Tracer):
                raise ValueError(
                    "sum_duplicates: pass nse, the number of elements to store, under jit, vmap "
                    "and other transformations: the number of unique indices is unknown there"
                )
            static = {"shape": self.shape, "n_batch": self.n_batch}
            nse = int(kernels.most_places(self.data, self.indices, **static, **removing))
        self.check_mapped()
        data, indices = bcoo_sum_duplicates_p.bind(
            self.data, self.indices, spinfo=self._info, nse=int(nse), **removing
        )
        return self.like(data, indices, indices_sorted=True, unique_indices=True)

    def update_layout(
        self,
        *,
        n_batch: int | None = None,
        n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> BCOO:
        """The array with other numbers of batch and dense dimensions, by default unchanged.

        Args:
          on_inefficient: the reaction if more elements must be stored: ``"error"``, ``"warn"``, or
            ``None``.

        Raises:
          SparseEfficiencyError: in the case ``"error"``.
          ValueError: if the array does not have such dimensions.
        """
        stored = Stored(self.data, self.indices, self.shape)
        data, indices = update_layout(
            stored,
            self.n_batch if n_batch is None else n_batch,
            self.n_dense if n_dense is None else n_dense,
            on_inefficient,
        )
        if data is self.data and indices is self.indices:
            return self
        return self.like(data, indices)


def _check(x: BCOO) -> None:
    """Check that the parts of an array match."""
    data, indices, shape = x.data.shape, x.indices.shape, x.shape
    if not np.issubdtype(x.indices.dtype, np.integer):
        raise TypeError(f"indices of a BCOO must be integers, got {x.indices.dtype.name}")
    if len(indices) < 2:
        raise ValueError(
            f"indices of a BCOO have the shape (*batch, nse, n_sparse), got {indices}; only its "
            "batch dimensions can be mapped or sliced"
        )
    n_batch, n_sparse = len(indices) - 2, indices[-1]
    n_dense = len(shape) - n_batch - n_sparse
    expected = (*shape[:n_batch], indices[-2], *shape[n_batch + n_sparse :])
    if n_dense < 0:
        raise ValueError(
            f"indices of shape {indices} mean {n_batch} batch and {n_sparse} sparse dimensions, "
            f"more than shape {shape} has"
        )
    if len(data) != len(expected) or data[n_batch:] != expected[n_batch:]:
        raise ValueError(
            f"data of shape {data} does not match indices of shape {indices}, which for shape "
            f"{shape} require data of shape {expected}"
        )
    for part in (data, indices):
        for size, whole in zip(part[:n_batch], shape):
            if size not in (1, whole):
                raise ValueError(
                    f"batch dimensions of data {data} and indices {indices} do not match shape "
                    f"{shape}"
                )


def _shape_now(
    data: Any, indices: Any, shape: tuple[int, ...], nse: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape with the current batch dimensions of the parts, after transformations inserted or
    removed some. If other dimensions changed, the result is the old shape, which does not match
    the parts."""
    try:
        n_batch = len(indices.shape) - 2
        rest = int(indices.shape[-1]) + len(data.shape) - 1 - n_batch
    except (AttributeError, IndexError, TypeError):  # leaves that are not arrays
        return shape
    moved = n_batch + rest != len(shape)
    if n_batch < 0 or rest > len(shape) or moved and indices.shape[-2:-1] != nse:
        return shape
    return (*indices.shape[:n_batch], *shape[len(shape) - rest :])
