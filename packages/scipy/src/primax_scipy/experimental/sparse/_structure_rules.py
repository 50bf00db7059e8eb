"""Sparse rules of structural primitives, reductions and dot products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax

from ._bcoo import BCOO
from ._interpreter import DENSE, any_format, is_sparse, sparse_rule
from ._matrices import SparseMatrix
from ._operators import SparseArray
from ._products import bcoo_dot_general
from ._structure import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_gather,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_transpose,
    clamped_slice,
    require_bcoo,
)


@lax.transpose_p.rule(sparse_rule)
@any_format
def _sparse_transpose(x: Any, *, permutation: Sequence[int]) -> Any:
    if isinstance(x, SparseMatrix):
        return x.transpose(permutation)
    return x.stored_like(bcoo_transpose(x.to_bcoo(), permutation=permutation))


@lax.reshape_p.rule(sparse_rule)
def _sparse_reshape(x: BCOO, *, new_sizes: Sequence[int], dimensions: Any = None, **_: Any) -> BCOO:
    return bcoo_reshape(x, new_sizes=new_sizes, dimensions=dimensions)


@lax.broadcast_in_dim_p.rule(sparse_rule)
def _sparse_broadcast_in_dim(
    x: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any
) -> BCOO:
    return bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=broadcast_dimensions)


@lax.squeeze_p.rule(sparse_rule)
def _sparse_squeeze(x: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    return bcoo_squeeze(x, dimensions=dimensions)


@lax.rev_p.rule(sparse_rule)
def _sparse_rev(x: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    return bcoo_rev(x, dimensions)


@lax.slice_p.rule(sparse_rule)
def _sparse_slice(
    x: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Any = None
) -> BCOO:
    return bcoo_slice(x, start_indices=start_indices, limit_indices=limit_indices, strides=strides)


@lax.split_p.rule(sparse_rule)
def _sparse_split(x: BCOO, *, sizes: Sequence[int], axis: int) -> list[BCOO]:
    ends = np.cumsum(sizes).tolist()
    return [
        bcoo_slice(
            x,
            start_indices=[end - size if d == axis else 0 for d in range(x.ndim)],
            limit_indices=[end if d == axis else n for d, n in enumerate(x.shape)],
        )
        for end, size in zip(ends, sizes)
    ]


@lax.dynamic_slice_p.rule(sparse_rule)
def _sparse_dynamic_slice(x: Any, *starts: Any, slice_sizes: Sequence[int], **_: Any) -> BCOO:
    require_bcoo("dynamic_slice of sparse arrays", x)
    return clamped_slice(x, starts, slice_sizes)


@lax.gather_p.rule(sparse_rule)
def _sparse_gather(
    x: Any, starts: Any, *, dimension_numbers: Any, slice_sizes: Any, mode: Any, **_: Any
) -> BCOO:
    require_bcoo("gather of sparse arrays", x)
    if mode == lax.GatherScatterMode.FILL_OR_DROP:
        raise NotImplementedError(
            "sparse arrays: gather with fill values for indices out of bounds: "
            "index with mode='clip' or 'promise_in_bounds'"
        )
    return bcoo_gather(x, starts, dimension_numbers, slice_sizes)


@lax.concatenate_p.rule(sparse_rule)
def _sparse_concatenate(*xs: Any, dimension: int) -> BCOO:
    if not all(isinstance(x, BCOO) for x in xs):
        raise NotImplementedError(f"sparse arrays: concatenate with other arrays: {DENSE}")
    return bcoo_concatenate(xs, dimension=dimension)


@lax.reduce_sum_p.rule(sparse_rule)
def _sparse_reduce_sum(x: BCOO, *, axes: Sequence[int], **_: Any) -> Any:
    out = bcoo_reduce_sum(x, axes=axes)
    return out if out.shape else out.todense()


@lax.dot_general_p.rule(sparse_rule)
@any_format
def _sparse_dot_general(
    x: Any, y: Any, *, dimension_numbers: Any, precision: Any, preferred_element_type: Any, **_: Any
) -> Any:
    options = {"precision": precision, "preferred_element_type": preferred_element_type}
    if isinstance(x, SparseArray) and not is_sparse(y):
        out = x.dot_dense(y, dimension_numbers, **options)
        if out is not NotImplemented:
            return out
    plain = [a.to_bcoo() if is_sparse(a) else a for a in (x, y)]
    out = bcoo_dot_general(*plain, dimension_numbers=dimension_numbers, **options)
    return x.stored_like(out) if is_sparse(out) else out
