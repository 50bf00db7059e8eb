"""Kernels of coordinate arrays: ``data`` and their ``indices``.

For a shape that consists of ``n_batch`` batch dimensions, ``n_sparse`` sparse and ``n_dense`` dense
ones, ``data`` has the shape ``(*batch, nse, *dense)`` and ``indices`` ``(*batch, nse, n_sparse)``.
Elements with the same indices are summed. Elements with indices out of bounds are ignored: such
*padding* gives batches of different lengths the same shape.

Functions of one batch element are mapped over the batch dimensions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax, vmap
from primax_core.extend import typeof
from primax_core.extend.dimensions import decided, is_size, is_static, size_as
from primax_numpy.declaring import compiled


def mapped(fun: Callable[..., Any], n_batch: int) -> Callable[..., Any]:
    """The function mapped over leading dimensions of all arguments."""
    for _ in range(n_batch):
        fun = vmap(fun)
    return fun


def spread(data: Any, indices: Any, batch: tuple[int, ...]) -> tuple[Any, Any]:
    """Both arrays with batch dimensions broadcast from size 1 to full size."""
    n = len(batch)
    data = pnp.broadcast_to(data, batch + typeof(data).shape[n:])
    indices = pnp.broadcast_to(indices, batch + typeof(indices).shape[n:])
    return data, indices


def size_of(n: Any) -> Any:
    """The size as a Python integer; a symbolic dimension is returned unchanged."""
    return n if is_size(n) else operator.index(n)


def exceeds(n: Any, bound: int, otherwise: bool) -> bool:
    """Return True if a size exceeds a bound, ``otherwise`` if that depends on its value."""
    return decided(lambda: n > bound, otherwise)


def sizes_as(sizes: Sequence[Any], dtype: Any) -> Any:
    """Sizes as one row of operands."""
    if is_static(sizes):
        return np.array([sizes], dtype)
    return pnp.stack([size_as(n, dtype) for n in sizes])[None]


def wide_enough(indices: Any, shape: Sequence[int]) -> Any:
    """The indices, converted to 32 bits if their dtype is too narrow for the shape."""
    dtype = typeof(indices).dtype
    if dtype.itemsize < 4 and any(exceeds(n, np.iinfo(dtype).max, True) for n in shape):
        return lax.convert_element_type(indices, np.int32)
    return indices


def columns(indices: Any) -> list[Any]:
    """The columns of the indices of one batch element, one for each dimension."""
    return [indices[:, i] for i in range(typeof(indices).shape[1])]


def chosen(indices: Any, dims: Sequence[int]) -> Any:
    """The columns of the indices for some dimensions, in any order."""
    return pnp.stack([indices[..., d] for d in dims], -1) if dims else indices[..., :0]


def inside(indices: Any, shape: Sequence[int]) -> Any:
    """Mask of the indices of one batch element that are in bounds."""
    within: Any = pnp.ones((typeof(indices).shape[0],), np.bool_)
    for column, size in zip(columns(indices), shape):
        within = within & (column >= -size) & (column < size)
    return within


def normal(indices: Any, shape: Sequence[int]) -> Any:
    """Nonnegative indices; those of padding equal the shape."""
    limits = sizes_as(shape, typeof(indices).dtype)
    counted = pnp.where(indices < 0, indices + limits, indices)
    return pnp.where(inside(indices, shape)[:, None], counted, limits)


def masked(data: Any, keep: Any) -> Any:
    """The data, zero where the mask is false."""
    keep = lax.expand_dims(keep, range(typeof(keep).ndim, typeof(data).ndim))
    return pnp.where(keep, data, pnp.zeros((), typeof(data).dtype))


def gathered(dense: Any, indices: Any, fill: Any = 0) -> Any:
    """The rows of an array at the indices of one batch element, ``fill`` for padding."""
    nse, n_sparse = typeof(indices).shape
    if not n_sparse:
        return pnp.broadcast_to(dense, (nse, *typeof(dense).shape))
    if 0 in typeof(dense).shape[:n_sparse]:  # all elements are padding
        return lax.full((nse, *typeof(dense).shape[n_sparse:]), fill, typeof(dense).dtype)
    return dense.at[tuple(columns(indices))].get(mode="fill", fill_value=fill)


def scattered(data: Any, indices: Any, onto: Any) -> Any:
    """The data of one batch element added to an array at their indices."""
    is_bool = typeof(onto).dtype == np.bool_
    if not typeof(indices).shape[1]:
        total = pnp.any(data, 0) if is_bool else pnp.sum(data, 0, dtype=typeof(data).dtype)
        return onto | total if is_bool else onto + total
    at = onto.at[tuple(columns(indices))]
    return at.max(data, mode="drop") if is_bool else at.add(data, mode="drop")


def sums_at(data: Any, indices: Any, shape: Sequence[int]) -> Any:
    """The data of one batch element added to an array of zeros."""
    return scattered(data, indices, lax.full(tuple(shape), 0, typeof(data).dtype))


def grouped(indices: Any, shape: Sequence[int]) -> tuple[Any, Any, Any]:
    """The elements of one batch element sorted by their indices, and grouped by equal indices.

    Returns:
      The permutation, the sorted indices, and the group number of each.
    """
    nse, n_sparse = typeof(indices).shape
    if not n_sparse:
        return lax.iota(np.int32, nse), indices, lax.full((nse,), 0, np.int32)
    *sorted_columns, order = lax.sort(
        [*columns(normal(indices, shape)), lax.iota(np.int32, nse)], num_keys=n_sparse
    )
    places = pnp.stack(sorted_columns, 1)
    differs = pnp.any(places[1:] != places[:-1], axis=1)
    return order, places, pnp.cumsum(pnp.concatenate([pnp.zeros(min(nse, 1), np.bool_), differs]))


# Whole kernels


@compiled("shape", "n_batch")
def todense(data: Any, indices: Any, *, shape: tuple[int, ...], n_batch: int) -> Any:
    """The dense array."""
    return mapped(partial(sums_at, shape=shape[n_batch:]), n_batch)(data, indices)


@compiled("n_batch")
def added(data: Any, indices: Any, onto: Any, *, n_batch: int) -> Any:
    """A dense array with the elements added to it."""
    return mapped(scattered, n_batch)(data, indices, onto)


@compiled("n_batch")
def extract(indices: Any, dense: Any, *, n_batch: int) -> Any:
    """The elements of a dense array at the indices, zero for padding."""
    batch = typeof(dense).shape[:n_batch]
    indices = pnp.broadcast_to(indices, batch + typeof(indices).shape[n_batch:])
    return mapped(lambda i, d: gathered(d, i), n_batch)(indices, dense)


def _occupied(dense: Any, n_batch: int, n_dense: int) -> Any:
    ndim = typeof(dense).ndim
    return pnp.any(dense != 0, axis=tuple(range(ndim - n_dense, ndim)))


@compiled("n_batch", "n_dense")
def most_occupied(dense: Any, *, n_batch: int, n_dense: int) -> Any:
    """The maximum over batches of the number of nonzero elements."""
    counts = pnp.sum(_occupied(dense, n_batch, n_dense), axis=_sparse_axes(dense, n_batch, n_dense))
    return pnp.max(counts, initial=0)


def _sparse_axes(dense: Any, n_batch: int, n_dense: int) -> tuple[int, ...]:
    return tuple(range(n_batch, typeof(dense).ndim - n_dense))


@compiled("nse", "n_batch", "n_dense", "index_dtype")
def fromdense(dense: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any) -> Any:
    """The data and the indices of the first ``nse`` nonzero elements of an array."""

    def one(occupied: Any, dense: Any) -> tuple[Any, Any]:
        shape = typeof(occupied).shape
        if not shape:
            indices = lax.full((nse, 0), 0, index_dtype)
            first = lax.iota(np.int32, nse) == 0
            return masked(gathered(dense, indices), first), indices
        positions = pnp.nonzero(occupied, size=nse, fill_value=shape)
        indices = pnp.stack([lax.convert_element_type(f, index_dtype) for f in positions], 1)
        return gathered(dense, indices), indices

    return mapped(one, n_batch)(_occupied(dense, n_batch, n_dense), dense)


@compiled("shape", "n_batch")
def sorted_by_place(data: Any, indices: Any, *, shape: tuple[int, ...], n_batch: int) -> Any:
    """The elements sorted by their indices."""
    sparse = shape[n_batch : n_batch + typeof(indices).shape[-1]]

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        order, places, _ = grouped(indices, sparse)
        return data[order], places

    return mapped(one, n_batch)(data, indices)


@compiled("shape", "n_batch", "remove_zeros")
def most_places(
    data: Any, indices: Any, *, shape: tuple[int, ...], n_batch: int, remove_zeros: bool
) -> Any:
    """The maximum over batches of the number of unique indices."""
    sparse = shape[n_batch : n_batch + typeof(indices).shape[-1]]

    def one(data: Any, indices: Any) -> Any:
        indices = _without_zeros(data, indices, sparse, remove_zeros)
        _, places, group = grouped(indices, sparse)
        return pnp.sum(_firsts(group) & inside(places, sparse))

    counts = mapped(one, n_batch)(data, indices)
    return pnp.max(counts, initial=0)


def _without_zeros(data: Any, indices: Any, shape: tuple[int, ...], remove_zeros: bool) -> Any:
    """The indices; with ``remove_zeros`` those of zeros are out of bounds."""
    if not remove_zeros or not shape:
        return indices
    occupied = pnp.any(data != 0, axis=tuple(range(1, typeof(data).ndim)))
    return pnp.where(occupied[:, None], indices, sizes_as(shape, typeof(indices).dtype))


def _firsts(group: Any) -> Any:
    first = pnp.ones(min(1, typeof(group).shape[0]), np.bool_)
    return pnp.concatenate([first, group[1:] != group[:-1]])


@compiled("shape", "n_batch")
def first_places(indices: Any, *, shape: tuple[int, ...], n_batch: int) -> Any:
    """Mask of the elements whose indices do not occur before."""
    sparse = shape[n_batch : n_batch + typeof(indices).shape[-1]]

    def one(indices: Any) -> Any:
        order, _, group = grouped(indices, sparse)
        return pnp.zeros(typeof(group).shape, np.bool_).at[order].set(_firsts(group))

    return mapped(one, n_batch)(indices)


def summed(
    data: Any, indices: Any, shape: tuple[int, ...], nse: int, remove_zeros: bool = False
) -> tuple[Any, Any]:
    """The elements of one batch element with unique indices, ``nse`` of them including padding."""
    indices = _without_zeros(data, indices, shape, remove_zeros)
    order, places, group = grouped(indices, shape)
    group = pnp.where(inside(places, shape), group, nse)
    padding = pnp.broadcast_to(sizes_as(shape, typeof(places).dtype), (nse, len(shape)))
    onto = lax.full((nse, *typeof(data).shape[1:]), 0, typeof(data).dtype)
    return (
        scattered(data[order], group[:, None], onto),
        padding.at[group].set(places, mode="drop"),
    )


@compiled("shape", "n_batch", "nse", "remove_zeros")
def sum_duplicates(
    data: Any, indices: Any, *, shape: tuple[int, ...], n_batch: int, nse: int, remove_zeros: bool
) -> Any:
    """The elements summed over equal indices."""
    sparse = shape[n_batch : n_batch + typeof(indices).shape[-1]]
    one = partial(summed, shape=sparse, nse=nse, remove_zeros=remove_zeros)
    return mapped(one, n_batch)(data, indices)


def fitted(data: Any, indices: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The elements of one batch element, at most as many as the shape has."""
    most, nse = math.prod(shape), typeof(indices).shape[0]
    if decided(lambda: nse <= most, otherwise=True):
        return data, indices
    return summed(data, indices, shape, most)
