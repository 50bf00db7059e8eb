"""Elements of given ranks, which backends may select without sorting the others."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._ir.primitive import Primitive, abstract, batch, expand, jvp, lower
from .._ir.samples import Sample, f32, i32, samples
from .._ir.symbolic_dims import min_dim
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.batching import move_axis
from .._transform.jvp import jvp_of
from .._transform.zeros import Zero
from .broadcasting import broadcast_in_dim
from .elementwise import accepts
from .gathering import gather
from .index_numbers import GatherDimensionNumbers, GatherScatterMode
from .reshaping import expand_dims
from .sorting import sort

order_statistics_p: Final = Primitive("order_statistics")


def order_statistics(operand: ArrayLike, ranks: ArrayLike) -> Array:
    """The elements that :func:`sort` would put at indices of the last axis.

    Args:
      operand: real numbers of shape ``[..., n]``.
      ranks: indices in ``[0, n)``, ``int32`` of shape ``[q]``, or ``[..., q]`` with separate ones
        for each row; others give any element.

    Returns:
      An array of shape ``[..., q]``. Its derivative is that of the elements.

    Raises:
      TypeError: if the operand is a scalar or complex, or the ranks have another shape or dtype.

    >>> order_statistics(np.array([3, 1, 2]), np.array([0, 2], np.int32)).tolist()
    [1, 3]
    """
    return order_statistics_p.bind(operand, ranks)


@order_statistics_p.rule(abstract)
def _abstract(x, ranks):
    if not x.shape or accepts(x.dtype, ("complex",)):
        raise TypeError(
            f"order_statistics takes real numbers with at least one axis, got {x.str_short()}"
        )
    if ranks.dtype != np.int32 or ranks.shape[:-1] not in ((), x.shape[:-1]) or not ranks.shape:
        raise TypeError(
            f"order_statistics takes ranks int32[q], or with the leading axes of {x.str_short()}, "
            f"got {ranks.str_short()}"
        )
    return x.update(shape=(*x.shape[:-1], ranks.shape[-1]))


@order_statistics_p.rule(expand)
def _expand(x, ranks):
    x = sort(x)
    shape, rank = typeof(x).shape, typeof(x).ndim
    index = expand_dims(ranks, (typeof(ranks).ndim,))
    if typeof(ranks).ndim > 1:
        rows = tuple(range(rank - 1))
        numbers = GatherDimensionNumbers((), (rank - 1,), (rank - 1,), rows, rows)
        sizes = tuple(min_dim(1, n) for n in shape)
    else:
        numbers = GatherDimensionNumbers(tuple(range(rank - 1)), (rank - 1,), (rank - 1,))
        sizes = (*shape[:-1], min_dim(1, shape[-1]))
    return gather(x, index, numbers, sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)


@order_statistics_p.rule(lower)
def _lower(ctx, x, ranks):
    return ctx.call(_expand, x, ranks)


@order_statistics_p.rule(jvp)
def _jvp(primals, tangents):
    (x, ranks), (t, _) = primals, tangents
    if type(t) is Zero:
        out = order_statistics_p.bind(x, ranks)
        return out, Zero.like(out)
    (out,), (tangent,) = jvp_of(lambda x: [_expand(x, ranks)], [x], [t])
    return out, tangent


@order_statistics_p.rule(batch)
def _batch(axis: Any, args: Any, dims: Any):
    x, ranks = args
    x = move_axis(x, dims[0], 0, axis.size)
    if dims[1] is not None or typeof(ranks).ndim > 1:
        ranks = move_axis(ranks, dims[1], 0, axis.size)
        leading = typeof(x).shape[:-1]
        if typeof(ranks).shape[:-1] != leading:  # shared by the rows of each example
            shape = (*leading, typeof(ranks).shape[-1])
            ranks = broadcast_in_dim(ranks, shape, (0, len(shape) - 1))
    return order_statistics_p.bind(x, ranks), 0


@order_statistics_p.rule(samples)
def _samples():
    yield Sample(f32(5), i32(2, low=0, high=4))
    yield Sample(f32(2, 4), i32(2, 3, low=0, high=3))
