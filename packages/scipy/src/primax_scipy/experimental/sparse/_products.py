"""Products of sparse arrays with arrays and with each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import Array, lax, vmap
from primax_core.extend import typeof
from primax_numpy.declaring import compiled

from . import _coordinates as kernels
from ._bcoo import BCOO
from ._coordinates import chosen, gathered, grouped, inside, mapped, masked, normal, spread, sums_at
from ._structure import bcoo_broadcast_in_dim, in_one_layout, require_bcoo

Dimensions = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


# Elementwise


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Array:
    """The elements of a sparse array, multiplied by those of an array at their places.

    Args:
      v: an array whose shape broadcasts to that of ``sp_mat``; it is not made any larger.

    Returns:
      ``data`` of an array that has the indices of ``sp_mat``.
    """
    require_bcoo("bcoo_multiply_dense", sp_mat)
    return at_places(sp_mat, v, pnp.multiply, 0)


def at_places(mat: BCOO, v: Any, operation: Any, fill: Any) -> Array:
    """The operation on stored elements and those of an array at their places."""
    v = pnp.asarray(v)
    if pnp.broadcast_shapes(v.shape, mat.shape) != mat.shape:
        raise ValueError(
            f"a sparse array of shape {mat.shape} would have to grow to go with shape {v.shape}: "
            "use bcoo_broadcast_in_dim"
        )
    if not v.ndim:
        out: Array = operation(mat.data, v)
        return out
    return operation(mat.data, _values_at(mat.indices, v, shape=mat.shape, fill=fill))


@compiled("shape", "fill")
def _values_at(indices: Any, v: Any, *, shape: tuple[int, ...], fill: Any) -> Any:
    """An array's values at the places; its dimensions of size 1 stay in what is dense."""
    nb, ns = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    v = lax.expand_dims(v, range(len(shape) - typeof(v).ndim))
    sizes = typeof(v).shape
    varies = [d for d in range(nb, nb + ns) if sizes[d] == shape[d]]
    v = lax.squeeze(v, [d for d in range(nb, nb + ns) if d not in varies])
    batch = lax.broadcast_shapes(sizes[:nb], typeof(indices).shape[:nb])
    v, indices = spread(v, indices, batch)

    def one(indices: Any, v: Any) -> Any:
        return gathered(v, chosen(indices, [d - nb for d in varies]), fill)

    return mapped(one, nb)(indices, v)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product of two sparse arrays, elementwise.

    It has the places of the operand that the other one broadcasts to, both having dimensions of
    size 1 those of all pairs.

    Raises:
      TypeError: where shapes do not go together.
    """
    require_bcoo("bcoo_multiply_sparse", lhs, rhs)
    if lhs.ndim != rhs.ndim or any(
        a != b and 1 not in (a, b) for a, b in zip(lhs.shape, rhs.shape)
    ):
        raise TypeError(f"mul got incompatible shapes for broadcasting: {lhs.shape}, {rhs.shape}.")
    shape = pnp.broadcast_shapes(lhs.shape, rhs.shape)
    dtype = pnp.promote_types(lhs.dtype, rhs.dtype)
    lhs, rhs = in_one_layout([lhs.astype(dtype), rhs.astype(dtype)])
    if lhs.shape != shape and rhs.shape == shape:
        return bcoo_multiply_sparse(rhs, lhs)
    if lhs.shape != shape:
        lhs = bcoo_broadcast_in_dim(lhs, shape=shape, broadcast_dimensions=range(lhs.ndim))
    data = _multiply_sparse(
        lhs.data, lhs.indices, rhs.data, rhs.indices, shape=shape, other=rhs.shape
    )
    return lhs.like(data)


@compiled("shape", "other")
def _multiply_sparse(
    data: Any, indices: Any, data2: Any, indices2: Any, *,
    shape: tuple[int, ...], other: tuple[int, ...],
) -> Any:  # fmt: skip
    """``data`` times the sum of ``data2`` at the same place: both are sorted by places together."""
    nb, ns = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    sparse, sparse2 = shape[nb : nb + ns], other[nb : nb + ns]
    data2, indices2 = spread(data2, indices2, shape[:nb])
    varies = np.array([a == b for a, b in zip(sparse, sparse2)], np.bool_)

    def one(data: Any, indices: Any, data2: Any, indices2: Any) -> Any:
        nse, nse2 = typeof(data).shape[0], typeof(data2).shape[0]
        limits = np.asarray(sparse2, typeof(indices).dtype)
        within = inside(indices, sparse)[:, None]
        indices = pnp.where(within, pnp.where(varies, normal(indices, sparse), 0), limits)
        both = pnp.concatenate([indices, normal(indices2, sparse2)])
        order, _, group = grouped(both, sparse2)
        total = nse + nse2
        # The elements' groups, in the order in which they are stored
        group = pnp.zeros(total, np.int32).at[order].set(group)
        masked2 = masked(data2, inside(indices2, sparse2))
        sums = sums_at(masked2, group[nse:, None], (total, *typeof(data2).shape[1:]))
        return data * masked(gathered(sums, group[:nse, None]), within[:, 0])

    return mapped(one, nb)(data, indices, data2, indices2)


# Contractions


def _canonical(dimension_numbers: Any) -> Dimensions:
    (lc, rc), (lb, rb) = dimension_numbers
    ints = lambda axes: tuple(map(int, axes))
    return (ints(lc), ints(rc)), (ints(lb), ints(rb))


def _result_shape(lhs: Any, rhs: Any, dimension_numbers: Dimensions) -> tuple[int, ...]:
    """The shape of a product.

    Raises:
      TypeError: where shapes do not go together.
    """
    (lc, rc), (lb, rb) = dimension_numbers
    for kind, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
        sizes = [tuple(x.shape[d] for d in dims) for x, dims in ((lhs, left), (rhs, right))]
        if sizes[0] != sizes[1]:
            raise TypeError(
                f"dot_general requires {kind} dimensions to have the same shape, got {sizes[0]} "
                f"and {sizes[1]}."
            )
    free = lambda x, used: tuple(n for d, n in enumerate(x.shape) if d not in used)
    batch = tuple(lhs.shape[d] for d in lb)
    return (*batch, *free(lhs, (*lc, *lb)), *free(rhs, (*rc, *rb)))


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The product of a sparse array with an array, or of two sparse arrays.

    Args:
      lhs, rhs: arrays, of which one or both are sparse.
      dimension_numbers, precision, preferred_element_type: as for :func:`primax.lax.dot_general`.

    Returns:
      An array if one operand is; a sparse one of two. This one stores as many elements as there
      are pairs of elements, or places.

    Raises:
      TypeError: where shapes do not go together.
    """
    how = {"precision": precision, "preferred_element_type": preferred_element_type}
    dims = _canonical(dimension_numbers)
    lhs, rhs = (x if isinstance(x, BCOO) else pnp.asarray(x) for x in (lhs, rhs))
    if not isinstance(lhs, BCOO) and not isinstance(rhs, BCOO):
        return lax.dot_general(lhs, rhs, dims, **how)
    require_bcoo("bcoo_dot_general", *[x for x in (lhs, rhs) if isinstance(x, BCOO)])
    _result_shape(lhs, rhs, dims)
    dtype = pnp.promote_types(lhs.dtype, rhs.dtype)
    lhs, rhs = lhs.astype(dtype), rhs.astype(dtype)
    (lc, rc), (lb, rb) = dims
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _product_of_sparse(lhs, rhs, dims, preferred_element_type)
    if isinstance(lhs, BCOO):
        return _dot(lhs.data, lhs.indices, rhs, shape=lhs.shape, dims=dims, **how)
    out = _dot(rhs.data, rhs.indices, lhs, shape=rhs.shape, dims=((rc, lc), (rb, lb)), **how)
    # The free axes of the sparse operand come first there.
    n_batch, n_right = len(lb), rhs.ndim - len(rc) - len(rb)
    return pnp.moveaxis(
        out, list(range(n_batch, n_batch + n_right)), list(range(out.ndim - n_right, out.ndim))
    )


@compiled("shape", "dims", "precision", "preferred_element_type")
def _dot(
    data: Any,
    indices: Any,
    other: Any,
    *,
    shape: tuple[int, ...],
    dims: Dimensions,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    """The product of a sparse array with an array.

    Each element is multiplied with the part of ``other`` that its place selects, and added to the
    result where its place says. Axes go by names: those of the sparse operand are called by their
    numbers (also the axes of ``other`` that are joined with them), the free ones of ``other`` by
    -1, -2 and so on.
    """
    (lc, rc), (lb, rb) = dims
    nb, ns = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    joined = dict(zip((*rc, *rb), (*lc, *lb)))
    names = [joined.get(axis, -1 - axis) for axis in range(typeof(other).ndim)]
    one = partial(
        _dot_of_batch,
        shape=shape,
        sparse=range(nb, nb + ns),
        names=[n for n in names if n not in range(nb)],
        contracted=lc,
        how={"precision": precision, "preferred_element_type": preferred_element_type},
    )
    found = _names_out(range(nb, nb + ns), range(nb + ns, len(shape)), names, lc)
    for axis in reversed(range(nb)):
        left = [n for n in names if n not in range(axis)]
        one = vmap(one, (0, 0, left.index(axis) if axis in left else None))
    out, found = one(data, indices, other), [*range(nb), *found]
    if preferred_element_type is not None:
        out = lax.convert_element_type(out, preferred_element_type)
    summed = [k for k, name in enumerate(found) if name in range(nb) and name in lc]
    out = pnp.sum(out, tuple(summed), dtype=typeof(out).dtype) if summed else out
    found = [name for name in found if not (name in range(nb) and name in lc)]
    wanted = [
        *lb,
        *(d for d in range(len(shape)) if d not in lc and d not in lb),
        *(n for n in names if n < 0),
    ]
    return lax.transpose(out, [found.index(name) for name in wanted])


def _names_out(
    sparse: range, dense: range, names: list[int], contracted: Sequence[int]
) -> list[int]:
    """The axes of one batch of the product: places, joined dense ones, and free ones."""
    return [
        *(d for d in sparse if d not in contracted),
        *(d for d in dense if d in names and d not in contracted),
        *(d for d in dense if d not in names),
        *(n for n in names if n < 0),
    ]


def _dot_of_batch(
    data: Any,
    indices: Any,
    other: Any,
    *,
    shape: tuple[int, ...],
    sparse: range,
    names: list[int],
    contracted: Sequence[int],
    how: dict[str, Any],
) -> Any:
    sizes = [shape[d] for d in sparse]
    selecting = [d for d in sparse if d in names]
    placed = [d for d in sparse if d not in contracted]
    at = lambda dims: chosen(indices, [d - sparse.start for d in dims])
    dense = list(range(sparse.stop, len(shape)))
    if not placed:  # otherwise padding is dropped where its place says
        data = masked(data, inside(indices, sizes))
    if selecting:
        rest = [k for k, n in enumerate(names) if n not in selecting]
        other = lax.transpose(other, [*(names.index(d) for d in selecting), *rest])
        names = [names[k] for k in rest]
        other = gathered(other, at(selecting))
    nse = -(10**6)  # the name of the axis of elements
    left, right = [nse, *dense], [nse, *names] if selecting else names
    if not placed and not selecting:
        data, left = pnp.sum(data, 0, dtype=typeof(data).dtype), dense
    out, found = _dense_product(
        data, other, left, right, [d for d in dense if d in contracted], nse, not placed, how
    )
    if placed:
        order = [found.index(nse), *(k for k, n in enumerate(found) if n != nse)]
        out = lax.transpose(out, order)
        found = [found[k] for k in order[1:]]
        limits = [shape[d] for d in placed]
        out = sums_at(out, at(placed), (*limits, *typeof(out).shape[1:]))
        found = [*placed, *found]
    wanted = _names_out(sparse, range(sparse.stop, len(shape)), names, contracted)
    return lax.transpose(out, [found.index(n) for n in wanted])


def _dense_product(
    data: Any, other: Any, left: list[int], right: list[int], contracted: list[int], nse: int,
    over_elements: bool, how: dict[str, Any],
) -> tuple[Any, list[int]]:  # fmt: skip
    """The product of arrays whose axes have names; axes of one name are joined."""
    summed = [*contracted, *([nse] if over_elements and nse in left and nse in right else [])]
    batch = [n for n in left if n in right and n not in summed]
    free = lambda names: [n for n in names if n not in summed and n not in batch]
    at = lambda names, wanted: tuple(names.index(n) for n in wanted)
    found = [*batch, *free(left), *free(right)]
    if not summed:  # nothing to contract: a product of elements
        if how["preferred_element_type"] is not None:
            wide = how["preferred_element_type"]
            data, other = (lax.convert_element_type(x, wide) for x in (data, other))
        spread_left = lax.transpose(data, at(left, [*batch, *free(left)]))
        spread_left = lax.expand_dims(
            spread_left, range(typeof(data).ndim, typeof(data).ndim + len(free(right)))
        )
        spread_right = lax.transpose(other, at(right, [*batch, *free(right)]))
        spread_right = lax.expand_dims(
            spread_right, range(len(batch), len(batch) + len(free(left)))
        )
        return spread_left * spread_right, found
    dims = (at(left, summed), at(right, summed)), (at(left, batch), at(right, batch))
    return lax.dot_general(data, other, dims, **how), found


def _product_of_sparse(lhs: BCOO, rhs: BCOO, dims: Dimensions, dtype: Any) -> BCOO:
    _, (lb, rb) = dims
    shape = _result_shape(lhs, rhs, dims)
    lhs, rhs = lhs.update_layout(n_dense=0), rhs.update_layout(n_dense=0)
    if dtype is not None:
        lhs, rhs = lhs.astype(dtype), rhs.astype(dtype)
    # Batches that go together are mapped over, and those of lhs that come after them in the
    # result; others are told apart by their places.
    nb = len(lb)
    together = tuple(lb) == tuple(rb) == tuple(range(nb)) and nb <= min(lhs.n_batch, rhs.n_batch)
    alone = nb if together else 0
    while together and alone < lhs.n_batch and alone not in dims[0][0]:
        alone += 1
    lhs, rhs = lhs.update_layout(n_batch=alone), rhs.update_layout(n_batch=nb if together else 0)
    data, indices = _dot_sparse(
        lhs.data, lhs.indices, rhs.data, rhs.indices, shapes=(lhs.shape, rhs.shape), dims=dims
    )
    return lhs.like(data, indices, shape)


@compiled("shapes", "dims")
def _dot_sparse(
    data: Any,
    indices: Any,
    data2: Any,
    indices2: Any,
    *,
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    dims: Dimensions,
) -> Any:
    """All pairs of elements that meet, at the places that they have left."""
    (lc, rc), (lb, rb) = dims
    n, n2 = typeof(indices).ndim - 2, typeof(indices2).ndim - 2
    lhs, rhs = shapes[0][n:], shapes[1][n2:]
    told = [(a, b) for a, b in zip(lb, rb) if b >= n2]  # batches that are not mapped over
    met = [(a - n, b - n2) for a, b in [*told, *zip(lc, rc)]]
    free = [d - n for d in range(n, len(shapes[0])) if d not in (*lc, *lb)]
    free2 = [d - n2 for d in range(n2, len(shapes[1])) if d not in (*rc, *rb)]
    outer = [*(a - n for a, _ in told), *free]
    limits = (*(lhs[k] for k in outer), *(rhs[k] for k in free2))

    def one(data: Any, indices: Any, data2: Any, indices2: Any) -> tuple[Any, Any]:
        places, places2 = normal(indices, lhs), normal(indices2, rhs)
        within = inside(places, lhs)[:, None] & inside(places2, rhs)
        meet = within
        for a, b in met:
            meet = meet & (places[:, None, a] == places2[:, b])
        products = masked(data[:, None] * data2, meet).reshape(-1)
        pairs = typeof(meet).shape
        left = [pnp.broadcast_to(places[:, None, k], pairs) for k in outer]
        right = [pnp.broadcast_to(places2[None, :, k], pairs) for k in free2]
        found = [pnp.where(meet, c, n).reshape(-1) for c, n in zip((*left, *right), limits)]
        count = math.prod(pairs)
        places = pnp.stack(found, 1) if found else lax.full((count, 0), 0, typeof(indices).dtype)
        return kernels.fitted(products, places, limits)

    of_rows: Any = one
    for _ in range(n - n2):
        of_rows = vmap(of_rows, (0, 0, None, None))
    return mapped(of_rows, n2)(data, indices, data2, indices2)


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Array:
    """Elements of a product of two arrays, at the given places alone.

    Args:
      A, B, dimension_numbers: as for :func:`primax.lax.dot_general`.
      indices: of a :class:`BCOO` of the product's shape.

    Returns:
      ``data`` of that array.
    """
    A, B, indices = map(pnp.asarray, (A, B, indices))
    dims = _canonical(dimension_numbers)
    shape = _result_shape(A, B, dims)
    nb, ns = indices.ndim - 2, indices.shape[-1]
    if nb or ns != len(shape):
        product = lax.dot_general(A, B, dims)
        out: Array = kernels.extract(indices, product, n_batch=nb)
        return out
    sampled: Array = _dot_at(A, B, indices, dims=dims, shape=shape)
    return sampled


@compiled("dims", "shape")
def _dot_at(a: Any, b: Any, indices: Any, *, dims: Dimensions, shape: tuple[int, ...]) -> Any:
    """Rows of both arrays, and the products of each pair of them."""
    (ac, bc), (ab, bb) = dims
    within = inside(indices, shape)
    free = lambda x, used: [d for d in range(typeof(x).ndim) if d not in used]
    n_batch, n_left = len(ab), len(free(a, (*ac, *ab)))

    def rows(x: Any, batch: Any, contracted: Any, columns: list[int]) -> Any:
        outer = [*batch, *free(x, (*contracted, *batch))]
        x = lax.transpose(x, [*outer, *contracted])
        limits = np.asarray(typeof(x).shape[: len(outer)], typeof(indices).dtype)
        places = pnp.where(within[:, None], chosen(indices, columns), limits)
        found = gathered(x, places)
        return found.reshape(typeof(found).shape[0], -1)

    left = rows(a, ab, ac, list(range(n_batch + n_left)))
    right = rows(b, bb, bc, [*range(n_batch), *range(n_batch + n_left, len(shape))])
    return lax.dot_general(left, right, (((1,), (1,)), ((0,), (0,))))
