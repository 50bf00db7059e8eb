"""Transposition and reversal of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, lower
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._lower.lazy import hlo, mlir
from .._trace.array import Array
from .._trace.structural import transpose_p as transpose_p
from .._trace.typing import ArrayLike
from .elementwise import linear
from .shapes import inserted, int_tuple, past, tail_of

rev_p: Final = Primitive("rev")


def transpose(operand: ArrayLike, permutation: Sequence[int] | np.ndarray) -> Array:
    """The array with permuted axes: axis ``i`` of the result is axis ``permutation[i]``.

    Args:
      operand: the array.
      permutation: a permutation of the axes ``0, ..., operand.ndim - 1``.

    Returns:
      An array of the operand's dtype. Compilers often choose a layout in which nothing is copied.

    Raises:
      TypeError: if ``permutation`` is not a permutation of the axes.

    The function is linear; its transpose is the inverse permutation. Under ``vmap`` the mapped
    axis is left out of the operation, which runs on the whole batch.

    >>> transpose(np.zeros((2, 3)), (1, 0)).shape
    (3, 2)
    >>> transpose(np.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    order = int_tuple("transpose", "permutation", permutation)
    if isinstance(operand, Array) and order == tuple(range(operand.ndim)):
        return operand
    return transpose_p.bind(operand, permutation=order)


@transpose_p.rule(abstract)
def _transpose_abstract(x, *, permutation):
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{permutation} for operand shape {x.shape}."
        )
    return ShapedArray(tuple([x.shape[p] for p in permutation]), x.dtype, x.weak_type)


@transpose_p.rule(lower)
def _transpose_lower(ctx, x, *, permutation):
    n = len(permutation)
    order = (*permutation, *range(n, n + len(tail_of(ctx.in_avals[0]))))
    return hlo.transpose(x, mlir.i64s(order))


linear(transpose_p, lambda ct, x, *, permutation: transpose(ct, np.argsort(permutation)))


@transpose_p.rule(batch)
def _transpose_batch(axis, args, dims, *, permutation):
    (x,), (dim,) = args, dims
    order = inserted(past(dim, permutation), dim, dim)
    return transpose(x, order), dim


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array with its elements in reverse order along some axes.

    Args:
      operand: the array.
      dimensions: nonnegative axes.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      TypeError: if an axis is negative, does not exist or appears twice.

    The function is linear, and its own transpose. Under ``vmap`` the mapped axis is left out of
    the operation, which runs on the whole batch.

    >>> rev(np.arange(3), (0,)).tolist()
    [2, 1, 0]
    >>> rev(np.arange(4).reshape(2, 2), (0, 1)).tolist()
    [[3, 2], [1, 0]]
    """
    return rev_p.bind(operand, dimensions=int_tuple("rev", "dimensions", dimensions))


@rev_p.rule(abstract)
def _rev_abstract(x, *, dimensions):
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
    if any(d < 0 for d in dimensions):
        raise TypeError(f"rev dimensions must have every element be nonnegative, got {dimensions}.")
    if any(d >= x.ndim for d in dimensions):
        raise TypeError(
            "rev dimensions must all be less than operand ndim, got dimensions "
            f"{dimensions} for operand ndim {x.ndim}."
        )
    return x


@rev_p.rule(lower)
def _rev_lower(ctx, x, *, dimensions):
    return hlo.reverse(x, mlir.i64s(dimensions))


linear(rev_p, lambda ct, x, *, dimensions: rev(ct, dimensions))


@rev_p.rule(batch)
def _rev_batch(axis, args, dims, *, dimensions):
    return rev(args[0], past(dims[0], dimensions)), dims[0]


@transpose_p.rule(samples)
def _transpose_samples():
    yield Sample(f32(2, 3), permutation=(1, 0))
    yield Sample(f32(2, 3, 4), permutation=(1, 2, 0))
    yield Sample(c64(), permutation=())
    yield Sample(bf16(0, 2), permutation=(1, 0))


@rev_p.rule(samples)
def _rev_samples():
    yield Sample(f32(3), dimensions=(0,))
    yield Sample(c64(2, 3), dimensions=(1, 0))
    yield Sample(bf16(0, 2), dimensions=(0,))
