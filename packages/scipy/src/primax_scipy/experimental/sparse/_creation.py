"""Creation of sparse arrays, and functions equivalent to methods."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import Array, dtypes, vmap
from primax_core.extend import typeof
from primax_core.typing import ArrayLike, DTypeLike
from primax_numpy import random

from . import _coordinates as kernels
from ._bcoo import BCOO
from ._bcsr import BCSR
from ._matrices import COO, CSC, CSR
from ._primitives import composed
from ._structure import require_bcoo, without_duplicates


def bcoo_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCOO:
    """The nonzero elements of an array: see :meth:`BCOO.fromdense`."""
    return BCOO.fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array: see :meth:`BCOO.todense`."""
    require_bcoo("bcoo_todense", mat)
    return mat.todense()


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The array with sorted indices."""
    require_bcoo("bcoo_sort_indices", mat)
    return mat.sort_indices()


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array with unique indices, including zeros: see :meth:`BCOO.sum_duplicates`."""
    require_bcoo("bcoo_sum_duplicates", mat)
    return mat.sum_duplicates(nse=nse, remove_zeros=False)


def bcoo_update_layout(
    mat: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:
    """The array with other numbers of batch and dense dimensions: see
    :meth:`BCOO.update_layout`."""
    require_bcoo("bcoo_update_layout", mat)
    return mat.update_layout(n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


@composed("bcoo_extract")
def bcoo_extract_p(indices: Any, arr: Any, *, assume_unique: bool = True) -> Any:
    n_batch = typeof(indices).ndim - 2
    data = kernels.extract(indices, arr, n_batch=n_batch)
    if assume_unique:
        return data
    firsts = kernels.first_places(indices, shape=typeof(arr).shape, n_batch=n_batch)
    return kernels.masked(data, firsts)


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the indices of a sparse one.

    Args:
      assume_unique: extract an element for each index, also for duplicates. By default, and for
        ``False``, duplicates are removed first.

    Raises:
      ValueError: if the shapes differ.
    """
    require_bcoo("bcoo_extract", sparr)
    arr = pnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"shape mismatch: sparr.shape={sparr.shape} arr.shape={arr.shape}")
    if not (sparr.unique_indices or assume_unique):
        sparr = without_duplicates(sparr)
    return sparr.like(bcoo_extract_p.bind(sparr.indices, arr, assume_unique=True))


_FORMATS: Final = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def _format(sparse_format: str, n_batch: int, n_dense: int) -> Any:
    """The class of a format.

    Raises:
      ValueError: if it is unknown, or has no batch and dense dimensions.
    """
    cls = _FORMATS.get(sparse_format)
    if cls is None:
        raise ValueError(
            f"sparse_format={sparse_format!r} is unknown; use one of {', '.join(_FORMATS)}"
        )
    if cls not in (BCOO, BCSR) and (n_batch or n_dense):
        raise ValueError(
            f"sparse_format={sparse_format!r} has no batch or dense dimensions, got "
            f"n_batch={n_batch} and n_dense={n_dense}; use 'bcoo' or 'bcsr'"
        )
    return cls


def _in_format(mat: BCOO, cls: Any) -> Any:
    return mat if cls is BCOO else cls.from_bcoo(mat)


def _layout(shape: tuple[int, ...], n_batch: int, n_dense: int) -> tuple[Any, Any, Any]:
    n_sparse = len(shape) - n_batch - n_dense
    if n_batch < 0 or n_dense < 0 or n_sparse < 0:
        raise ValueError(
            f"an array of shape {shape} has no n_batch={n_batch} batch and n_dense={n_dense} dense "
            "dimensions"
        )
    return shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]


def empty(
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    *,
    n_batch: int = 0,
    n_dense: int = 0,
    nse: int = 0,
) -> Any:
    """A sparse array of zeros.

    Args:
      shape, dtype: the shape and the dtype of the array; ``float32`` by default.
      sparse_format: ``"bcoo"``, ``"bcsr"``, ``"coo"``, ``"csr"`` or ``"csc"``.
      n_batch, n_dense: the numbers of batch and dense dimensions, for the first two formats.
      nse: the number of stored elements, all of which are padding.

    Raises:
      ValueError: if the format is unknown, or cannot store such an array.

    >>> empty((2, 3), sparse_format="csr")
    CSR(float32[2, 3], nse=0)
    """
    cls = _format(sparse_format, n_batch, n_dense)
    shape = tuple(map(kernels.size_of, shape))
    batch, sparse, dense = _layout(shape, n_batch, n_dense)
    row = kernels.sizes_as(sparse, index_dtype)
    indices = pnp.broadcast_to(row, (*batch, nse, len(sparse)))
    data = pnp.zeros((*batch, nse, *dense), dtype)
    known = {"indices_sorted": True, "unique_indices": True}
    return _in_format(BCOO((data, indices), shape=shape, **known), cls)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    *,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Any:
    """A sparse matrix with ones on a diagonal.

    Args:
      N, M: the numbers of rows and columns; ``M`` is ``N`` by default.
      k: the offset of the diagonal: above the main one, or below for negative numbers.
      dtype, index_dtype: the dtypes of the elements and of the indices.
      sparse_format, n_batch, n_dense: as for :func:`empty`.

    Raises:
      ValueError: if the format is unknown, or cannot store such an array.

    >>> eye(3, sparse_format="csc")
    CSC(float32[3, 3], nse=3)
    """
    cls = _format(sparse_format, n_batch, n_dense)
    if cls is not BCOO:
        mat = eye(N, M, k, dtype, index_dtype, n_batch=n_batch, n_dense=n_dense)
        return cls.from_bcoo(mat)
    N, M, k = operator.index(N), operator.index(N if M is None else M), operator.index(k)
    batch, _, dense = _layout((N, M), n_batch, n_dense)
    rows = np.arange(max(-k, 0), max(min(N, M - k), max(-k, 0)))
    known = {"shape": (N, M), "indices_sorted": True, "unique_indices": True}
    dtype = dtypes.canonicalize_dtype(np.float64 if dtype is None else dtype)
    if not batch and not dense:
        indices = np.stack([rows, rows + k], 1).astype(index_dtype)
        return BCOO((pnp.ones(len(rows), dtype), indices), **known)
    if len(batch) + len(dense) == 2:
        whole = pnp.eye(N, M, k, dtype)
        return BCOO.fromdense(
            whole, nse=1, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
        )
    if batch:
        data = np.zeros((N, 1))
        data[rows] = 1
        indices = np.full((N, 1, 1), M, index_dtype)
        indices[rows, 0, 0] = rows + k
        return BCOO((pnp.asarray(data, dtype), indices), **known)
    data = np.zeros((len(rows), M))
    data[np.arange(len(rows)), rows + k] = 1
    return BCOO((pnp.asarray(data, dtype), rows[:, None].astype(index_dtype)), **known)


def random_bcoo(
    key: ArrayLike,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = np.float64,
    indices_dtype: DTypeLike | None = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """A sparse array of random elements at random indices.

    Args:
      key: a random key.
      nse: the number of elements in each batch; a number below 1 is the density.
      unique_indices: create unique indices.
      sorted_indices: sort the indices.
      generator: a function ``(key, shape, dtype, **kwds)`` that creates the elements.
    """
    shape = tuple(map(operator.index, shape))
    batch, sparse, dense = _layout(shape, n_batch, n_dense)
    places = math.prod(sparse)
    if nse < 0:
        raise ValueError(f"nse={nse} is negative")
    count = math.ceil(nse * places) if 0 < nse < 1 else operator.index(int(nse))
    if unique_indices and count > places:
        raise ValueError(f"nse={count} elements with unique indices do not fit {places} positions")
    indices_dtype = np.int32 if indices_dtype is None else indices_dtype
    data_key, indices_key = random.split(key)

    def draw(key: Any) -> Any:
        if unique_indices:
            linear = random.choice(key, places, (count,), replace=False)
        else:
            linear = random.randint(key, (count,), 0, places)
        positions = pnp.unravel_index(linear, sparse) if sparse else ()
        columns = [i.astype(indices_dtype) for i in positions]
        return pnp.stack(columns, -1) if columns else pnp.zeros((count, 0), indices_dtype)

    keys = random.split(indices_key, math.prod(batch))
    indices = vmap(draw)(keys).reshape(*batch, count, len(sparse))
    dtype = dtypes.canonicalize_dtype(dtype)
    data = generator(data_key, shape=(*batch, count, *dense), dtype=dtype, **kwds)
    out = BCOO((data, indices), shape=shape, unique_indices=unique_indices)
    return out.sort_indices() if sorted_indices else out
