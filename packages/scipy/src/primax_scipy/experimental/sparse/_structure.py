"""Structural operations on sparse arrays: transposes, broadcasts, reshapes, slices."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import typeof
from primax_core.extend.dimensions import min_dim, slice_length
from primax_core.typing import ArrayLike
from primax_numpy.declaring import axes_of, compiled

from ._bcoo import BCOO
from ._coordinates import (
    chosen,
    exceeds,
    fitted,
    inside,
    mapped,
    masked,
    normal,
    size_of,
    sizes_as,
    wide_enough,
)
from ._primitives import SparseInfo, composed


def require_bcoo(name: str, *args: Any) -> None:
    """Check that arguments are valid BCOO arrays.

    Raises:
      TypeError: with the name of the function and the type.
      ValueError: see :attr:`BCOO.n_batch`.
    """
    for x in args:
        if not isinstance(x, BCOO):
            raise TypeError(
                f"{name} expects BCOO arrays, got {type(x)}; see BCOO.fromdense and sparse.todense"
            )
        x.check_mapped()


def without_duplicates(x: BCOO) -> BCOO:
    """The array with unique indices, and at most as many elements as positions."""
    if x.unique_indices:
        return x
    places = math.prod(x.shape[x.n_batch : x.n_batch + x.n_sparse])
    return x.sum_duplicates(nse=min_dim(x.nse, places), remove_zeros=False)


def _check_permutation(permutation: tuple[int, ...], mat: BCOO) -> None:
    kinds = [("batch", mat.n_batch), ("sparse", mat.n_sparse), ("dense", mat.n_dense)]
    start = 0
    for kind, count in kinds:
        among = range(start, start + count)
        if any(axis not in among for axis in permutation[start : start + count]):
            raise NotImplementedError(
                f"transpose permutation {permutation} moves other axes to the {count} {kind} "
                f"axes of {mat!r}: change the layout with update_layout() first"
            )
        start += count


@composed("bcoo_transpose", multiple_results=True)
def bcoo_transpose_p(
    data: Any, indices: Any, *, permutation: tuple[int, ...], spinfo: SparseInfo
) -> Any:
    nb, ns = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    batch = permutation[:nb]
    dense = [axis - ns + 1 for axis in permutation[nb + ns :]]
    sparse = [axis - nb for axis in permutation[nb : nb + ns]]
    return (
        lax.transpose(data, (*batch, nb, *dense)),
        chosen(lax.transpose(indices, (*batch, nb, nb + 1)), sparse),
    )


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with permuted axes.

    Raises:
      TypeError: if this is not a permutation of the axes.
      NotImplementedError: if it mixes batch, sparse and dense axes.
    """
    require_bcoo("bcoo_transpose", mat)
    permutation = tuple(map(operator.index, permutation))
    if sorted(permutation) != list(range(mat.ndim)):
        raise TypeError(
            f"transpose permutation isn't a permutation of operand dimensions, got {permutation} "
            f"for shape {mat.shape}"
        )
    if permutation == tuple(range(mat.ndim)):
        return mat
    _check_permutation(permutation, mat)
    nb, ns = mat.n_batch, mat.n_sparse
    data, indices = bcoo_transpose_p.bind(
        mat.data, mat.indices, permutation=permutation, spinfo=mat._info
    )
    return mat.like(
        data,
        indices,
        [mat.shape[axis] for axis in permutation],
        unique_indices=mat.unique_indices,
        indices_sorted=mat.indices_sorted and permutation[nb : nb + ns] == (*range(nb, nb + ns),),
    )


# Broadcasting


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> BCOO:
    """The array broadcast to a shape, with axis ``i`` mapped to axis ``broadcast_dimensions[i]``.

    New dimensions before the sparse ones are batch dimensions, those after the first dense one are
    dense. Elements are repeated along new sparse dimensions.

    Raises:
      ValueError: if shapes do not match.
    """
    require_bcoo("bcoo_broadcast_in_dim", mat)
    shape = tuple(map(size_of, shape))
    to = tuple(map(operator.index, broadcast_dimensions))
    if len(to) != mat.ndim or list(to) != sorted(set(to)) or any(d >= len(shape) for d in to):
        raise ValueError(
            f"bcoo_broadcast_in_dim: broadcast_dimensions={to} must map the {mat.ndim} axes of "
            f"shape {mat.shape} to axes of shape {shape} in ascending order"
        )
    if any(mat.shape[i] not in (1, shape[d]) for i, d in enumerate(to)):
        raise ValueError(f"bcoo_broadcast_in_dim: shape {mat.shape} does not broadcast to {shape}")
    if to == tuple(range(len(shape))) and shape == mat.shape:
        return mat
    nb, ns = mat.n_batch, mat.n_sparse
    first_dense = to[nb + ns] if mat.n_dense else len(shape)
    first_sparse = to[nb] if ns else first_dense
    data, indices = _broadcast(
        mat.data,
        wide_enough(mat.indices, shape),
        old=mat.shape,
        shape=shape,
        to=to,
        n_batch=first_sparse,
        n_dense=len(shape) - first_dense,
    )
    return mat.like(data, indices, shape)


@compiled("old", "shape", "to", "n_batch", "n_dense")
def _broadcast(
    data: Any,
    indices: Any,
    *,
    old: tuple[int, ...],
    shape: tuple[int, ...],
    to: tuple[int, ...],
    n_batch: int,
    n_dense: int,
) -> Any:
    nb, ns = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    nse = typeof(indices).shape[nb]
    batch, first_dense = shape[:n_batch], len(shape) - n_dense
    dense_to = [d - first_dense + n_batch + 1 for d in to[nb + ns :]]
    data = lax.broadcast_in_dim(
        data, (*batch, nse, *shape[first_dense:]), (*to[:nb], n_batch, *dense_to)
    )
    indices = lax.broadcast_in_dim(indices, (*batch, nse, ns), (*to[:nb], n_batch, n_batch + 1))
    # Sparse dimensions that are new, or broadcast from size 1
    source = dict(zip(to[nb : nb + ns], range(ns)))
    sparse = range(n_batch, first_dense)
    grown = [d for d in sparse if d not in source or old[nb + source[d]] != shape[d]]

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        sizes = [shape[d] for d in grown]
        repeats = math.prod(sizes)
        places = normal(indices, old[nb : nb + ns])
        within = inside(places, old[nb : nb + ns])
        place = np.indices(sizes).reshape(len(sizes), -1).astype(typeof(indices).dtype)
        out_columns = []
        for d in sparse:
            if d in grown:
                column = pnp.tile(pnp.asarray(place[grown.index(d)]), nse)
            else:
                column = pnp.repeat(
                    places[:, source[d]], repeats, total_repeat_length=nse * repeats
                )
            out_columns.append(column)
        within = pnp.repeat(within, repeats, total_repeat_length=nse * repeats)
        limits = sizes_as([shape[d] for d in sparse], typeof(indices).dtype)
        out = (
            pnp.where(within[:, None], pnp.stack(out_columns, 1), limits)
            if out_columns
            else indices
        )
        return pnp.repeat(data, repeats, axis=0, total_repeat_length=nse * repeats), out

    return mapped(one, n_batch)(data, indices) if grown else (data, indices)


# Concatenation


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Arrays concatenated along a dimension.

    Raises:
      TypeError: if other dimensions differ.
      ValueError: if there are no operands.
    """
    operands = list(operands)
    require_bcoo("bcoo_concatenate", *operands)
    if not operands:
        raise ValueError("bcoo_concatenate needs at least one operand")
    (dimension,) = axes_of(dimension, operands[0].ndim)
    others = [x.shape[:dimension] + x.shape[dimension + 1 :] for x in operands]
    if len(set(others)) > 1 or len({x.ndim for x in operands}) > 1:
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one "
            f"being concatenated: dimension {dimension} of shapes "
            f"{', '.join(str(x.shape) for x in operands)}"
        )
    if len(operands) == 1:
        return operands[0]
    operands = in_one_layout(operands)
    first = operands[0]
    sizes = tuple(x.shape[dimension] for x in operands)
    shape = (*first.shape[:dimension], sum(sizes), *first.shape[dimension + 1 :])
    data, indices = _concatenate(
        [x.data for x in operands],
        [wide_enough(x.indices, shape) for x in operands],
        shapes=tuple(x.shape for x in operands),
        shape=shape,
        dimension=dimension,
    )
    return first.like(data, indices, shape)


def in_one_layout(operands: Sequence[BCOO]) -> list[BCOO]:
    """Arrays converted to their common numbers of batch and dense dimensions."""
    n_batch, n_dense = min(x.n_batch for x in operands), min(x.n_dense for x in operands)
    return [x.update_layout(n_batch=n_batch, n_dense=n_dense) for x in operands]


@compiled("shapes", "shape", "dimension")
def _concatenate(
    data: Any,
    indices: Any,
    *,
    shapes: tuple[tuple[int, ...], ...],
    shape: tuple[int, ...],
    dimension: int,
) -> Any:
    nb, ns = typeof(indices[0]).ndim - 2, typeof(indices[0]).shape[-1]
    sparse = shape[nb : nb + ns]
    parts = list(zip(data, indices))
    if dimension < nb:
        most = max(typeof(i).shape[nb] for _, i in parts)
        padded = [_padded(d, i, most, nb, sparse) for d, i in parts]
        return [pnp.concatenate(part, axis=dimension) for part in zip(*padded)]
    start, moved = 0, []
    for (d, i), s in zip(parts, shapes):
        places = mapped(partial(normal, shape=s[nb : nb + ns]), nb)(i)
        if dimension < nb + ns:
            rows = (1,) * (nb + 1)
            shift = np.zeros((*rows, ns), typeof(i).dtype)
            shift[..., dimension - nb] = start
            within = mapped(partial(inside, shape=s[nb : nb + ns]), nb)(places)
            limits = sizes_as(sparse, typeof(i).dtype).reshape(*rows, ns)
            places = pnp.where(within[..., None], places + shift, limits)
        else:
            axis = dimension - ns + 1
            widths = [(0, 0)] * typeof(d).ndim
            widths[axis] = (start, shape[dimension] - start - s[dimension])
            d = pnp.pad(d, widths)
        moved.append((d, places))
        start += s[dimension]
    return [pnp.concatenate(part, axis=nb) for part in zip(*moved)]


def _padded(data: Any, indices: Any, nse: int, n_batch: int, sparse: tuple[int, ...]) -> Any:
    """The elements extended by padding to ``nse``."""
    more = nse - typeof(indices).shape[n_batch]
    widths = [(0, 0)] * typeof(data).ndim
    widths[n_batch] = (0, more)
    batch = typeof(indices).shape[:n_batch]
    limits = sizes_as(sparse, typeof(indices).dtype)
    padding = pnp.broadcast_to(limits[0], (*batch, more, len(sparse)))
    return pnp.pad(data, widths), pnp.concatenate([indices, padding], axis=n_batch)


# Shapes


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None,
    sharding: None = None,
) -> BCOO:  # fmt: skip
    """The array in another shape, with batch, sparse and dense dimensions reshaped separately.
    Dimensions of size 1 between batch and sparse ones become batch dimensions.

    Args:
      dimensions: the permutation of the axes before the reshape, by default the identity.

    Raises:
      ValueError: if the sizes differ, or dimensions of different kinds would be merged.
    """
    require_bcoo("bcoo_reshape", mat)
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    new = tuple(map(size_of, new_sizes))
    if new == mat.shape:
        return mat
    nb, ns = mat.n_batch, mat.n_sparse
    kinds = mat.shape[:nb], mat.shape[nb : nb + ns], mat.shape[nb + ns :]
    parts = _parts(new, kinds)
    if parts is None:
        if math.prod(new) != mat.size:
            raise ValueError(
                f"bcoo_reshape: shape {new} and shape {mat.shape} have different numbers of "
                "elements"
            )
        raise ValueError(
            f"bcoo_reshape: new shape {new} would mix the n_batch={nb} batch, {ns} sparse and "
            f"n_dense={mat.n_dense} dense dimensions of shape {mat.shape}: change the layout "
            "with update_layout() first"
        )
    batch, sparse, dense = parts
    groups = _factors(kinds[1], sparse)
    data, indices = _reshape(
        mat.data,
        _in_32_bits(mat.indices),
        old=mat.shape,
        batch=batch,
        sparse=sparse,
        dense=dense,
        groups=groups,
    )
    return mat.like(data, indices, new)


_Sizes = tuple[int, ...]


def _in_32_bits(indices: Any) -> Any:
    narrow = typeof(indices).dtype.itemsize < 4
    return lax.convert_element_type(indices, np.int32) if narrow else indices


def _parts(
    new: _Sizes, kinds: tuple[_Sizes, _Sizes, _Sizes]
) -> tuple[_Sizes, _Sizes, _Sizes] | None:
    """A split of the new sizes into batch, sparse and dense ones with the same numbers of
    elements: as many batch sizes and as few dense sizes as possible."""
    n = len(new)
    for first in range(n, -1, -1):
        for after in [*range(n - 1, first - 1, -1), n] if kinds[2] else [n]:
            parts = new[:first], new[first:after], new[after:]
            if [math.prod(p) for p in parts] == [math.prod(k) for k in kinds]:
                return parts
    return None


_Groups = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


def _factors(old: tuple[int, ...], new: tuple[int, ...]) -> _Groups:
    """The shortest groups of consecutive old and new axes with equal numbers of elements.

    Raises:
      ValueError: if a group has more elements than 32 bits can count.
    """
    groups, i, j = [], 0, 0
    if 0 in old:
        return ((tuple(range(len(old))), tuple(range(len(new)))),)
    while i < len(old) or j < len(new):
        start = i, j
        a = b = 1
        while True:
            if a <= b and i < len(old):
                a, i = a * old[i], i + 1
            elif j < len(new):
                b, j = b * new[j], j + 1
            else:
                a, i = a * old[i], i + 1
            if a == b:
                break
        if exceeds(a, np.iinfo(np.int32).max, otherwise=False):
            raise ValueError(
                f"bcoo_reshape: indices of {a} elements, of sizes {old[start[0] : i]}, do not fit "
                "32 bits"
            )
        groups.append((tuple(range(start[0], i)), tuple(range(start[1], j))))
    return tuple(groups)


@compiled("old", "batch", "sparse", "dense", "groups")
def _reshape(
    data: Any,
    indices: Any,
    *,
    old: tuple[int, ...],
    batch: tuple[int, ...],
    sparse: tuple[int, ...],
    dense: tuple[int, ...],
    groups: _Groups,
) -> Any:
    *_, nse, ns = typeof(indices).shape
    nb = typeof(indices).ndim - 2
    data, indices = data.reshape(*batch, nse, *dense), indices.reshape(*batch, nse, ns)
    old_sparse = old[nb : nb + ns]

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        places = normal(indices, old_sparse)
        within = inside(places, old_sparse)
        out_columns: list[Any] = [None] * len(sparse)
        for before, after in groups:
            linear = lax.full((nse,), 0, typeof(indices).dtype)
            for axis in before:
                linear = linear * old_sparse[axis] + places[:, axis]
            for axis in reversed(after):
                size = max(sparse[axis], 1)
                out_columns[axis], linear = linear % size, linear // size
        if not out_columns:  # without indices padding cannot be marked
            return masked(data, within), lax.full((nse, 0), 0, typeof(indices).dtype)
        limits = sizes_as(sparse, typeof(indices).dtype)
        return data, pnp.where(within[:, None], pnp.stack(out_columns, 1), limits)

    return mapped(one, len(batch))(data, indices)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without dimensions of size 1.

    Raises:
      ValueError: if a dimension has another size, or does not exist.
    """
    require_bcoo("bcoo_squeeze", arr)
    dimensions = axes_of(tuple(dimensions), arr.ndim)
    if any(arr.shape[d] != 1 for d in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got shape="
            f"{arr.shape} and dimensions={dimensions}"
        )
    nb, ns = arr.n_batch, arr.n_sparse
    data, indices = _without(arr.data, arr.indices, shape=arr.shape, dropped=dimensions)
    batch = tuple(d for d in dimensions if d < nb)
    dense = tuple(d - ns + 1 for d in dimensions if d >= nb + ns)
    return arr.like(
        lax.squeeze(data, (*batch, *dense)),
        lax.squeeze(indices, batch),
        [size for d, size in enumerate(arr.shape) if d not in dimensions],
    )


@compiled("shape", "dropped")
def _without(data: Any, indices: Any, *, shape: tuple[int, ...], dropped: tuple[int, ...]) -> Any:
    """The elements without some columns of their indices."""
    nb, ns = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    sparse = shape[nb : nb + ns]
    remaining = [k for k in range(ns) if k + nb not in dropped]
    if len(remaining) == ns:
        return data, indices

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        within = inside(indices, sparse)
        limits = sizes_as(sparse, typeof(indices).dtype)
        places = pnp.where(within[:, None], indices, limits)
        return masked(data, within), chosen(places, remaining)

    return mapped(one, nb)(data, indices)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over axes. The result may have duplicate indices.

    Raises:
      ValueError: if an axis does not exist or is repeated.
    """
    require_bcoo("bcoo_reduce_sum", mat)
    axes = axes_of(tuple(axes), mat.ndim)
    if not axes:
        return mat
    data, indices = _reduce_sum(mat.data, mat.indices, shape=mat.shape, axes=axes)
    return mat.like(data, indices, [n for d, n in enumerate(mat.shape) if d not in axes])


@compiled("shape", "axes")
def _reduce_sum(data: Any, indices: Any, *, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    nb, ns = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    data, indices = _without(data, indices, shape=shape, dropped=axes)
    dense = tuple(d - ns + 1 for d in axes if d >= nb + ns)
    data = pnp.sum(data, dense, dtype=typeof(data).dtype) if dense else data
    summed = [d for d in axes if d < nb]
    if not summed:
        return data, indices
    batch = [d for d in range(nb) if d not in axes]

    def merged(x: Any) -> Any:
        rest = range(nb, typeof(x).ndim)
        x = lax.transpose(x, (*batch, *summed, *rest))
        sizes = typeof(x).shape
        return x.reshape(
            *sizes[: len(batch)], math.prod(sizes[len(batch) : nb + 1]), *sizes[nb + 1 :]
        )

    return merged(data), merged(indices)


# Slices


def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """A slice of the array, like :func:`primax.lax.slice`.

    Raises:
      ValueError: if indices are out of bounds, or their number is wrong.
    """
    require_bcoo("bcoo_slice", mat)
    start, limit = (
        tuple(map(operator.index, start_indices)),
        tuple(map(size_of, limit_indices)),
    )
    steps = (1,) * mat.ndim if strides is None else tuple(map(operator.index, strides))
    if not len(start) == len(limit) == len(steps) == mat.ndim:
        raise ValueError(
            f"bcoo_slice: {len(start)} start indices, {len(limit)} limit indices and {len(steps)} "
            f"strides for shape {mat.shape}"
        )
    if any(not 0 <= a <= b <= n or s < 1 for a, b, s, n in zip(start, limit, steps, mat.shape)):
        raise ValueError(
            f"bcoo_slice: invalid indices. Got start_indices={start}, limit_indices={limit}, "
            f"strides={steps} and shape={mat.shape}"
        )
    new = tuple((b - a + s - 1) // s for a, b, s in zip(start, limit, steps))
    if new == mat.shape:
        return mat
    data, indices = _slice(
        mat.data, mat.indices, shape=mat.shape, start=start, limit=limit, steps=steps
    )
    return mat.like(data, indices, new)


@compiled("shape", "start", "limit", "steps")
def _slice(
    data: Any,
    indices: Any,
    *,
    shape: tuple[int, ...],
    start: tuple[int, ...],
    limit: tuple[int, ...],
    steps: tuple[int, ...],
) -> Any:
    nb, ns = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    outer = tuple(slice(*part) for part in zip(start[:nb], limit[:nb], steps[:nb]))
    inner = tuple(
        slice(*part) for part in zip(start[nb + ns :], limit[nb + ns :], steps[nb + ns :])
    )
    data, indices = data[(*outer, slice(None), *inner)], indices[outer]
    at = slice(nb, nb + ns)
    if not ns or (start[at], limit[at], steps[at]) == ((0,) * ns, shape[at], (1,) * ns):
        return data, indices
    dtype = typeof(indices).dtype
    first, last, step = (sizes_as(part[at], dtype) for part in (start, limit, steps))
    new = tuple(map(slice_length, start[at], limit[at], steps[at]))

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        places = normal(indices, shape[at])
        hit = (places >= first) & (places < last) & ((places - first) % step == 0)
        within = pnp.all(hit, axis=1)
        places = pnp.where(within[:, None], (places - first) // step, sizes_as(new, dtype))
        return fitted(masked(data, within), places, new)

    return mapped(one, nb)(data, indices)


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A slice with dynamic start indices, like :func:`primax.lax.dynamic_slice`: negative indices
    count from the end, and starts are clamped so that the slice is in bounds.

    Raises:
      ValueError: if sizes exceed the shape, or their number is wrong.
    """
    require_bcoo("bcoo_dynamic_slice", mat)
    starts = [pnp.asarray(i) for i in start_indices]
    sizes = tuple(map(size_of, slice_sizes))
    if not len(starts) == len(sizes) == mat.ndim:
        raise ValueError(
            f"bcoo_dynamic_slice: {len(starts)} start indices and {len(sizes)} sizes for shape "
            f"{mat.shape}"
        )
    if any(not 0 <= size <= n for size, n in zip(sizes, mat.shape)):
        raise ValueError(f"bcoo_dynamic_slice: sizes {sizes} are not within shape {mat.shape}")
    starts = [pnp.where(i < 0, i + n, i) for i, n in zip(starts, mat.shape)]
    return clamped_slice(mat, starts, sizes)


def clamped_slice(mat: BCOO, starts: Sequence[Any], sizes: Sequence[int]) -> BCOO:
    """A slice with dynamic start indices, clamped to the bounds of the array."""
    sizes = tuple(sizes)
    data, indices = _dynamic_slice(
        mat.data, mat.indices, list(starts), shape=mat.shape, sizes=sizes
    )
    return mat.like(data, indices, sizes)


@compiled("shape", "sizes")
def _dynamic_slice(
    data: Any, indices: Any, starts: Any, *, shape: tuple[int, ...], sizes: tuple[int, ...]
) -> Any:
    nb, ns = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    nse, at, zero = typeof(indices).shape[nb], slice(nb, nb + ns), np.int32(0)
    starts = [
        lax.convert_element_type(pnp.clip(s, 0, n - size), np.int32)
        for s, n, size in zip(starts, shape, sizes)
    ]
    outer, inner = starts[:nb], starts[nb + ns :]
    data = lax.dynamic_slice(data, [*outer, zero, *inner], (*sizes[:nb], nse, *sizes[nb + ns :]))
    indices = lax.dynamic_slice(indices, [*outer, zero, zero], (*sizes[:nb], nse, ns))
    if not ns or sizes[at] == shape[at]:
        return data, indices
    dtype = typeof(indices).dtype
    first = pnp.stack(starts[at]).astype(dtype)[None]

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        places = normal(indices, shape[at]) - first
        limits = sizes_as(sizes[at], dtype)
        within = pnp.all((places >= 0) & (places < limits), axis=1)
        places = pnp.where(within[:, None], places, limits)
        return fitted(masked(data, within), places, sizes[at])

    return mapped(one, nb)(data, indices)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array with reversed elements along dimensions.

    Raises:
      ValueError: if a dimension does not exist or is repeated.
    """
    require_bcoo("bcoo_rev", operand)
    dimensions = axes_of(tuple(dimensions), operand.ndim)
    data, indices = _rev(operand.data, operand.indices, shape=operand.shape, dimensions=dimensions)
    return operand.like(data, indices, unique_indices=operand.unique_indices)


@compiled("shape", "dimensions")
def _rev(data: Any, indices: Any, *, shape: tuple[int, ...], dimensions: tuple[int, ...]) -> Any:
    nb, ns = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    batch = tuple(d for d in dimensions if d < nb)
    dense = tuple(d - ns + 1 for d in dimensions if d >= nb + ns)
    data, indices = lax.rev(data, (*batch, *dense)), lax.rev(indices, batch)
    sparse = shape[nb : nb + ns]
    reversed_ = np.array([[d in dimensions for d in range(nb, nb + ns)]])

    def one(indices: Any) -> Any:
        places = normal(indices, sparse)
        last = sizes_as(sparse, typeof(indices).dtype) - 1
        flip = reversed_ & inside(places, sparse)[:, None]
        return pnp.where(flip, last - places, places)

    return data, mapped(one, nb)(indices) if reversed_.any() else indices


def bcoo_gather(
    operand: BCOO,
    start_indices: ArrayLike,
    dimension_numbers: lax.GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | lax.GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> BCOO:
    """Slices of the array at dynamic indices, like :func:`primax.lax.gather`: one batch element of
    the result for each. Indices out of bounds are clamped.

    Raises:
      NotImplementedError: for batching dimensions, and if slice dimensions precede batch
        dimensions in the result and cannot be transposed.
    """
    require_bcoo("bcoo_gather", operand)
    dims = dimension_numbers
    if dims.operand_batching_dims or dims.start_indices_batching_dims:
        raise NotImplementedError("bcoo_gather of operand_batching_dims")
    starts = pnp.asarray(start_indices)
    batch = starts.shape[:-1]

    def one(at: Any) -> BCOO:
        start: list[Any] = [np.int32(0)] * operand.ndim
        for k, d in enumerate(dims.start_index_map):
            start[d] = at[k]
        part = clamped_slice(operand, start, slice_sizes)
        return bcoo_squeeze(part, dimensions=dims.collapsed_slice_dims)

    out: BCOO = mapped(one, len(batch))(starts)
    offsets = dims.offset_dims
    order = [*(d for d in range(out.ndim) if d not in offsets), *offsets]
    permutation = np.argsort(order).tolist()
    if permutation == list(range(out.ndim)):
        return out
    return bcoo_transpose(out.update_layout(n_batch=0), permutation=permutation)
