"""Primitives of COO and CSR matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core.extend import typeof

from . import _compressed as compressed_rows, _coordinates as coordinates
from ._bcoo import bcoo_fromdense_p
from ._primitives import COOInfo, composed
from ._products import dot_kernel

_PRODUCT = {False: (((1,), (0,)), ((), ())), True: (((0,), (0,)), ((), ()))}


def _pairs(row: Any, col: Any) -> Any:
    """Indices ``(nse, 2)`` of two vectors."""
    return pnp.stack([row, col], axis=1)


def _multiply(data: Any, places: Any, other: Any, shape: tuple[int, int], transpose: bool) -> Any:
    return dot_kernel(
        data, places, other, shape=tuple(shape), dims=_PRODUCT[bool(transpose)], precision=None,
        preferred_element_type=None,
    )  # fmt: skip


@composed("coo_todense")
def coo_todense_p(data: Any, row: Any, col: Any, *, spinfo: COOInfo) -> Any:
    return coordinates.todense(data, _pairs(row, col), shape=spinfo.shape, n_batch=0)


@composed("coo_fromdense", multiple_results=True)
def coo_fromdense_p(mat: Any, *, nse: int, index_dtype: Any) -> Any:
    data, places = bcoo_fromdense_p.bind(
        mat, nse=nse, n_batch=0, n_dense=0, index_dtype=np.dtype(index_dtype)
    )
    return data, places[:, 0], places[:, 1]


@composed("coo_matvec")
def coo_matvec_p(data: Any, row: Any, col: Any, v: Any, *, spinfo: COOInfo, transpose: bool) -> Any:
    return _multiply(data, _pairs(row, col), v, spinfo.shape, transpose)


@composed("coo_matmat")
def coo_matmat_p(data: Any, row: Any, col: Any, B: Any, *, spinfo: COOInfo, transpose: bool) -> Any:
    return _multiply(data, _pairs(row, col), B, spinfo.shape, transpose)


def _rows_and_columns(indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    return compressed_rows.coordinates(indices, indptr, n_batch=0, n_columns=shape[1])


@composed("csr_todense")
def csr_todense_p(data: Any, indices: Any, indptr: Any, *, shape: tuple[int, int]) -> Any:
    places = _rows_and_columns(indices, indptr, shape)
    return coordinates.todense(data, places, shape=tuple(shape), n_batch=0)


@composed("csr_fromdense", multiple_results=True)
def csr_fromdense_p(mat: Any, *, nse: int, index_dtype: Any) -> Any:
    data, places = bcoo_fromdense_p.bind(
        mat, nse=nse, n_batch=0, n_dense=0, index_dtype=np.dtype(index_dtype)
    )
    return (data, *compressed_rows.compressed(places, n_batch=0, shape=typeof(mat).shape))


@composed("csr_matvec")
def csr_matvec_p(
    data: Any, indices: Any, indptr: Any, v: Any, *, shape: tuple[int, int], transpose: bool
) -> Any:
    return _multiply(data, _rows_and_columns(indices, indptr, shape), v, shape, transpose)


@composed("csr_matmat")
def csr_matmat_p(
    data: Any, indices: Any, indptr: Any, B: Any, *, shape: tuple[int, int], transpose: bool
) -> Any:
    return _multiply(data, _rows_and_columns(indices, indptr, shape), B, shape, transpose)
