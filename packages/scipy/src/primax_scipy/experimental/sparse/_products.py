"""Products of sparse arrays with dense and sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import Array, lax, vmap
from primax_core.extend import typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShardingLike
from primax_numpy.declaring import compiled

from . import _coordinates as kernels
from ._bcoo import BCOO
from ._coordinates import chosen, gathered, grouped, inside, mapped, masked, normal, spread, sums_at
from ._primitives import SparseInfo, composed
from ._structure import bcoo_broadcast_in_dim, in_one_layout, require_bcoo

Dimensions = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


# Elementwise


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """The data of a sparse array multiplied elementwise by a dense array.

    Args:
      v: an array that broadcasts to the shape of ``sp_mat``; it is not materialized in that shape.

    Returns:
      The ``data`` of the product, whose indices are those of ``sp_mat``.
    """
    require_bcoo("bcoo_multiply_dense", sp_mat)
    return at_places(sp_mat, v, pnp.multiply, 0)


def at_places(mat: BCOO, v: Any, operation: Any, fill: Any) -> Array:
    """An operation on the stored elements and the elements of a dense array at their indices."""
    v = pnp.asarray(v)
    if pnp.broadcast_shapes(v.shape, mat.shape) != mat.shape:
        raise ValueError(
            f"a sparse array of shape {mat.shape} does not broadcast implicitly to match "
            f"{v.shape}: use bcoo_broadcast_in_dim"
        )
    if not v.ndim:
        out: Array = operation(mat.data, v)
        return out
    return operation(mat.data, _values_at(mat.indices, v, shape=mat.shape, fill=fill))


@compiled("shape", "fill")
def _values_at(indices: Any, v: Any, *, shape: tuple[int, ...], fill: Any) -> Any:
    """The elements of a dense array at the indices; dense dimensions of size 1 are kept."""
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
    """The elementwise product of two sparse arrays.

    The result has the indices of the operand that the other one broadcasts to. If both operands
    broadcast, it has those of the first operand broadcast to the result shape.

    Raises:
      TypeError: if shapes do not match.
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
    """``data`` times the sum of ``data2`` at the same indices; both are sorted together."""
    nb, ns = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    sparse, sparse2 = shape[nb : nb + ns], other[nb : nb + ns]
    data2, indices2 = spread(data2, indices2, shape[:nb])
    varies = np.array([[a == b for a, b in zip(sparse, sparse2)]], np.bool_)

    def one(data: Any, indices: Any, data2: Any, indices2: Any) -> Any:
        nse, nse2 = typeof(data).shape[0], typeof(data2).shape[0]
        limits = kernels.sizes_as(sparse2, typeof(indices).dtype)
        within = inside(indices, sparse)[:, None]
        indices = pnp.where(within, pnp.where(varies, normal(indices, sparse), 0), limits)
        both = pnp.concatenate([indices, normal(indices2, sparse2)])
        order, _, group = grouped(both, sparse2)
        total = nse + nse2
        # Group numbers in storage order
        group = pnp.zeros(total, np.int32).at[order].set(group)
        masked2 = masked(data2, inside(indices2, sparse2))
        sums = sums_at(masked2, group[nse:, None], (total, *typeof(data2).shape[1:]))
        return data * masked(gathered(sums, group[:nse, None]), within[:, 0])

    return mapped(one, nb)(data, indices, data2, indices2)


# Contractions


def canonical_dimensions(dimension_numbers: Any) -> Dimensions:
    """Dimension numbers as tuples of integers."""
    (lc, rc), (lb, rb) = dimension_numbers
    ints = lambda axes: tuple(map(int, axes))
    return (ints(lc), ints(rc)), (ints(lb), ints(rb))


def _result_shape(lhs: Any, rhs: Any, dimension_numbers: Dimensions) -> tuple[int, ...]:
    """The shape of a product.

    Raises:
      TypeError: if shapes do not match.
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


def require_matching(lhs: Any, rhs: Any, dimension_numbers: Dimensions) -> None:
    """Check the shapes of a product.

    Raises:
      TypeError: if they do not match.
    """
    _result_shape(lhs, rhs, dimension_numbers)


def bcoo_dot_general(
    lhs: ArrayLike | BCOO,
    rhs: ArrayLike | BCOO,
    *,
    dimension_numbers: lax.DotDimensionNumbers,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Any:
    """General dot product of a sparse array and a dense array, or of two sparse arrays.

    Args:
      lhs, rhs: arrays, one or both of which are sparse.
      dimension_numbers, precision, preferred_element_type: as for :func:`primax.lax.dot_general`.
      out_sharding: sharding of a dense result, over mesh axes of the type ``Explicit``.

    Returns:
      A dense array if one operand is dense. The product of two sparse arrays is sparse, and stores
      one element for each pair of elements, or at most one for each position.

    Raises:
      TypeError: if shapes do not match.
    """
    options = {"precision": precision, "preferred_element_type": preferred_element_type}
    dims = canonical_dimensions(dimension_numbers)
    if out_sharding is not None:
        return with_out_sharding(
            bcoo_dot_general, out_sharding, lhs, rhs, dimension_numbers=dims, **options
        )
    lhs, rhs = (x if isinstance(x, BCOO) else pnp.asarray(x) for x in (lhs, rhs))
    if not isinstance(lhs, BCOO) and not isinstance(rhs, BCOO):
        return lax.dot_general(lhs, rhs, dims, **options)
    require_bcoo("bcoo_dot_general", *[x for x in (lhs, rhs) if isinstance(x, BCOO)])
    _result_shape(lhs, rhs, dims)
    dtype = pnp.promote_types(lhs.dtype, rhs.dtype)
    lhs, rhs = lhs.astype(dtype), rhs.astype(dtype)
    (lc, rc), (lb, rb) = dims
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _product_of_sparse(lhs, rhs, dims, preferred_element_type)
    if isinstance(lhs, BCOO):
        return bcoo_dot_general_p.bind(
            lhs.data, lhs.indices, rhs, lhs_spinfo=lhs._info, dimension_numbers=dims, **options
        )
    dims = ((rc, lc), (rb, lb))
    out = bcoo_dot_general_p.bind(
        rhs.data, rhs.indices, lhs, lhs_spinfo=rhs._info, dimension_numbers=dims, **options
    )
    # Here the free axes of the sparse operand come first.
    n_batch, n_right = len(lb), rhs.ndim - len(rc) - len(rb)
    return pnp.moveaxis(
        out, list(range(n_batch, n_batch + n_right)), list(range(out.ndim - n_right, out.ndim))
    )


@composed("bcoo_dot_general")
def bcoo_dot_general_p(
    data: Any, indices: Any, rhs: Any, *, dimension_numbers: Dimensions, lhs_spinfo: SparseInfo,
    precision: Any = None, preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    return dot_kernel(
        data, indices, rhs, shape=lhs_spinfo.shape, dims=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


@compiled("shape", "dims", "precision", "preferred_element_type")
def dot_kernel(
    data: Any,
    indices: Any,
    other: Any,
    *,
    shape: tuple[int, ...],
    dims: Dimensions,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    """General dot product of a sparse and a dense array.

    Each element is multiplied by the slice of ``other`` that its indices select, and added to the
      result at its indices. Axes have names: those of the sparse operand, and the axes of
      ``other`` that are contracted or batched with them, are named by their numbers; free axes of
      ``other`` are named -1, -2 and so on.
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
        options={"precision": precision, "preferred_element_type": preferred_element_type},
    )
    out_names = _names_out(range(nb, nb + ns), range(nb + ns, len(shape)), names, lc)
    for axis in reversed(range(nb)):
        left = [n for n in names if n not in range(axis)]
        one = vmap(one, (0, 0, left.index(axis) if axis in left else None))
    out, out_names = one(data, indices, other), [*range(nb), *out_names]
    if preferred_element_type is not None:
        out = lax.convert_element_type(out, preferred_element_type)
    summed = [k for k, name in enumerate(out_names) if name in range(nb) and name in lc]
    out = pnp.sum(out, tuple(summed), dtype=typeof(out).dtype) if summed else out
    out_names = [name for name in out_names if not (name in range(nb) and name in lc)]
    result_names = [
        *lb,
        *(d for d in range(len(shape)) if d not in lc and d not in lb),
        *(n for n in names if n < 0),
    ]
    return lax.transpose(out, [out_names.index(name) for name in result_names])


def _names_out(
    sparse: range, dense: range, names: list[int], contracted: Sequence[int]
) -> list[int]:
    """Names of the product's axes for one batch element: sparse, shared dense, and free axes."""
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
    options: dict[str, Any],
) -> Any:
    sizes = [shape[d] for d in sparse]
    selecting = [d for d in sparse if d in names]
    placed = [d for d in sparse if d not in contracted]
    at = lambda dims: chosen(indices, [d - sparse.start for d in dims])
    dense = list(range(sparse.stop, len(shape)))
    if not placed:  # otherwise padding is dropped by the scatter
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
    out, out_names = _dense_product(
        data, other, left, right, [d for d in dense if d in contracted], nse, not placed, options
    )
    if placed:
        order = [out_names.index(nse), *(k for k, n in enumerate(out_names) if n != nse)]
        out = lax.transpose(out, order)
        out_names = [out_names[k] for k in order[1:]]
        limits = [shape[d] for d in placed]
        out = sums_at(out, at(placed), (*limits, *typeof(out).shape[1:]))
        out_names = [*placed, *out_names]
    result_names = _names_out(sparse, range(sparse.stop, len(shape)), names, contracted)
    return lax.transpose(out, [out_names.index(n) for n in result_names])


def _dense_product(
    data: Any, other: Any, left: list[int], right: list[int], contracted: list[int], nse: int,
    over_elements: bool, options: dict[str, Any],
) -> tuple[Any, list[int]]:  # fmt: skip
    """Dot product of arrays with named axes; axes of the same name are contracted or batched."""
    summed = [*contracted, *([nse] if over_elements and nse in left and nse in right else [])]
    batch = [n for n in left if n in right and n not in summed]
    free = lambda names: [n for n in names if n not in summed and n not in batch]
    at = lambda names, selected: tuple(names.index(n) for n in selected)
    out_names = [*batch, *free(left), *free(right)]
    if not summed:  # no contraction: an elementwise product
        if options["preferred_element_type"] is not None:
            wide = options["preferred_element_type"]
            data, other = (lax.convert_element_type(x, wide) for x in (data, other))
        spread_left = lax.transpose(data, at(left, [*batch, *free(left)]))
        spread_left = lax.expand_dims(
            spread_left, range(typeof(data).ndim, typeof(data).ndim + len(free(right)))
        )
        spread_right = lax.transpose(other, at(right, [*batch, *free(right)]))
        spread_right = lax.expand_dims(
            spread_right, range(len(batch), len(batch) + len(free(left)))
        )
        return spread_left * spread_right, out_names
    dims = (at(left, summed), at(right, summed)), (at(left, batch), at(right, batch))
    return lax.dot_general(data, other, dims, **options), out_names


def _product_of_sparse(lhs: BCOO, rhs: BCOO, dims: Dimensions, dtype: Any) -> BCOO:
    _, (lb, rb) = dims
    shape = _result_shape(lhs, rhs, dims)
    lhs, rhs = lhs.update_layout(n_dense=0), rhs.update_layout(n_dense=0)
    if dtype is not None:
        lhs, rhs = lhs.astype(dtype), rhs.astype(dtype)
    # Shared leading batch axes are mapped over, and the batch axes of lhs that follow them in the
    # result. The others become sparse axes, distinguished by their indices.
    nb = len(lb)
    together = tuple(lb) == tuple(rb) == tuple(range(nb)) and nb <= min(lhs.n_batch, rhs.n_batch)
    alone = nb if together else 0
    while together and alone < lhs.n_batch and alone not in dims[0][0]:
        alone += 1
    lhs, rhs = lhs.update_layout(n_batch=alone), rhs.update_layout(n_batch=nb if together else 0)
    data, indices = bcoo_spdot_general_p.bind(
        lhs.data, lhs.indices, rhs.data, rhs.indices, lhs_spinfo=lhs._info, rhs_spinfo=rhs._info,
        dimension_numbers=dims,
    )  # fmt: skip
    return lhs.like(data, indices, shape)


@composed("bcoo_spdot_general", multiple_results=True)
def bcoo_spdot_general_p(
    data: Any, indices: Any, data2: Any, indices2: Any, *, lhs_spinfo: SparseInfo,
    rhs_spinfo: SparseInfo, dimension_numbers: Dimensions, preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    if preferred_element_type is not None:
        data, data2 = (lax.convert_element_type(x, preferred_element_type) for x in (data, data2))
    shapes = lhs_spinfo.shape, rhs_spinfo.shape
    return _dot_sparse(data, indices, data2, indices2, shapes=shapes, dims=dimension_numbers)


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
    """Products of all matching pairs of elements, at their free indices."""
    (lc, rc), (lb, rb) = dims
    n, n2 = typeof(indices).ndim - 2, typeof(indices2).ndim - 2
    lhs, rhs = shapes[0][n:], shapes[1][n2:]
    sparse_batch = [
        (a, b) for a, b in zip(lb, rb) if b >= n2
    ]  # batch axes that are not mapped over
    met = [(a - n, b - n2) for a, b in [*sparse_batch, *zip(lc, rc)]]
    free = [d - n for d in range(n, len(shapes[0])) if d not in (*lc, *lb)]
    free2 = [d - n2 for d in range(n2, len(shapes[1])) if d not in (*rc, *rb)]
    outer = [*(a - n for a, _ in sparse_batch), *free]
    limits = (*(lhs[k] for k in outer), *(rhs[k] for k in free2))

    def one(data: Any, indices: Any, data2: Any, indices2: Any) -> tuple[Any, Any]:
        places, places2 = normal(indices, lhs), normal(indices2, rhs)
        within = inside(places, lhs)[:, None] & inside(places2, rhs)[None]
        meet = within
        for a, b in met:
            meet = meet & (places[:, None, a] == places2[None, :, b])
        products = masked(data[:, None] * data2[None], meet).reshape(-1)
        pairs = typeof(meet).shape
        left = [pnp.broadcast_to(places[:, None, k], pairs) for k in outer]
        right = [pnp.broadcast_to(places2[None, :, k], pairs) for k in free2]
        result_columns = [
            pnp.where(meet, c, n).reshape(-1) for c, n in zip((*left, *right), limits)
        ]
        count = math.prod(pairs)
        places = (
            pnp.stack(result_columns, 1)
            if result_columns
            else lax.full((count, 0), 0, typeof(indices).dtype)
        )
        return kernels.fitted(products, places, limits)

    of_rows: Any = one
    for _ in range(n - n2):
        of_rows = vmap(of_rows, (0, 0, None, None))
    return mapped(of_rows, n2)(data, indices, data2, indices2)


def bcoo_dot_general_sampled(
    A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: lax.DotDimensionNumbers
) -> Array:
    """Elements of the product of two dense arrays, only at given indices.

    Args:
      A, B, dimension_numbers: as for :func:`primax.lax.dot_general`.
      indices: the indices of a :class:`BCOO` with the shape of the product.

    Returns:
      The ``data`` of that array.
    """
    A, B, indices = map(pnp.asarray, (A, B, indices))
    dims = canonical_dimensions(dimension_numbers)
    _result_shape(A, B, dims)
    out: Array = bcoo_dot_general_sampled_p.bind(A, B, indices, dimension_numbers=dims)
    return out


@composed("bcoo_dot_general_sampled")
def bcoo_dot_general_sampled_p(
    A: Any, B: Any, indices: Any, *, dimension_numbers: Dimensions
) -> Any:
    shape = _result_shape(typeof(A), typeof(B), dimension_numbers)
    nb, ns = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    if nb or ns != len(shape):
        product = lax.dot_general(A, B, dimension_numbers)
        return kernels.extract(indices, product, n_batch=nb)
    return _dot_at(A, B, indices, dims=dimension_numbers, shape=shape)


@compiled("dims", "shape")
def _dot_at(a: Any, b: Any, indices: Any, *, dims: Dimensions, shape: tuple[int, ...]) -> Any:
    """Dot products of pairs of rows of both arrays."""
    (ac, bc), (ab, bb) = dims
    within = inside(indices, shape)
    free = lambda x, used: [d for d in range(typeof(x).ndim) if d not in used]
    n_batch, n_left = len(ab), len(free(a, (*ac, *ab)))

    def rows(x: Any, batch: Any, contracted: Any, columns: list[int]) -> Any:
        outer = [*batch, *free(x, (*contracted, *batch))]
        x = lax.transpose(x, [*outer, *contracted])
        limits = kernels.sizes_as(typeof(x).shape[: len(outer)], typeof(indices).dtype)
        places = pnp.where(within[:, None], chosen(indices, columns), limits)
        gathered_rows = gathered(x, places)
        return gathered_rows.reshape(typeof(gathered_rows).shape[0], -1)

    left = rows(a, ab, ac, list(range(n_batch + n_left)))
    right = rows(b, bb, bc, [*range(n_batch), *range(n_batch + n_left, len(shape))])
    return lax.dot_general(left, right, (((1,), (1,)), ((0,), (0,))))
