"""Stacking of arrays along a new axis, and its inverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._lower.lazy import hlo, mlir, shaped
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.batching import move_axis
from .._transform.zeros import Zero, instantiate, is_linear
from .elementwise import same_dtypes, weak
from .shapes import canonical_axis, inserted, tail_of, without

stack_p: Final = Primitive("stack")
unstack_p: Final = Primitive("unstack", multiple_results=True)


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Stack arrays of one shape and dtype along a new axis.

    Args:
      operands: at least one array.
      axis: the new axis of the result; a negative one counts from the end.

    Returns:
      An array with one more axis, whose size is the number of operands.

    Raises:
      ValueError: if there are no arrays, their shapes differ, or the axis is out of range.
      TypeError: if their dtypes differ.

    The function is linear: the cotangent is unstacked. Under ``vmap`` unmapped operands are
    broadcast.

    >>> import numpy as np
    >>> stack([np.arange(2), np.arange(2)], 1).tolist()
    [[0, 0], [1, 1]]
    >>> stack([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    operands = unstack(operands) if isinstance(operands, Array) else list(operands)
    if not operands:
        raise ValueError("stack needs at least one array")
    shapes = [typeof(x).shape for x in operands]
    if len(set(shapes)) > 1:
        listed = ", ".join(map(str, shapes))
        raise ValueError(f"All input arrays must have the same shape. Got {listed}.")
    return stack_p.bind(*operands, axis=canonical_axis(axis, len(shapes[0]) + 1))


@stack_p.rule(abstract)
def _stack_abstract(*xs, axis):
    same_dtypes("stack", xs)
    return ShapedArray(inserted(xs[0].shape, axis, len(xs)), xs[0].dtype, weak(xs))


@stack_p.rule(lower)
def _stack_lower(ctx, *xs, axis):
    aval = ctx.in_avals[0]
    sizes = (*aval.shape, *tail_of(aval))
    row = inserted(sizes, axis, 1)
    rows = [shaped.reshape(x, row) for x in xs]
    return hlo.concatenate(rows, mlir.i64(axis)) if len(rows) > 1 else rows[0]


@stack_p.rule(jvp)
def _stack_jvp(primals, tangents, *, axis):
    out = stack_p.bind(*primals, axis=axis)
    if all(type(t) is Zero for t in tangents):
        return out, Zero.like(out)
    return out, stack_p.bind(*map(instantiate, tangents), axis=axis)


@stack_p.rule(transpose)
def _stack_transpose(ct, *xs, axis):
    if type(ct) is Zero:
        return [None] * len(xs)
    return [p if is_linear(x) else None for x, p in zip(xs, unstack_p.bind(ct, axis=axis))]


@stack_p.rule(batch)
def _stack_batch(mapped, args, dims, *, axis):
    moved = [move_axis(x, d, 0, mapped.size) for x, d in zip(args, dims)]
    return stack_p.bind(*moved, axis=axis + 1), 0


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis, without that axis.

    Args:
      x: an array with at least one axis.
      axis: the axis; a negative one counts from the end.

    Returns:
      A tuple of arrays, as many as the size of the axis.

    Raises:
      ValueError: if the axis is out of range.

    The function is linear: the cotangents are stacked. Under ``vmap`` each example is unstacked.

    >>> import numpy as np
    >>> [float(v) for v in unstack(np.array([1.0, 2.0]))]
    [1.0, 2.0]
    >>> [v.tolist() for v in unstack(np.arange(4).reshape(2, 2), 1)]
    [[0, 2], [1, 3]]
    """
    return tuple(unstack_p.bind(x, axis=canonical_axis(axis, typeof(x).ndim)))


@unstack_p.rule(abstract)
def _unstack_abstract(x, *, axis):
    return [x.update(shape=without(x.shape, (axis,)))] * x.shape[axis]


@unstack_p.rule(lower)
def _unstack_lower(ctx, x, *, axis):
    aval = ctx.in_avals[0]
    limits = [*aval.shape, *tail_of(aval)]
    starts, strides, slices = [0] * len(limits), [1] * len(limits), []
    shape = without(limits, (axis,))
    for i in range(aval.shape[axis]):
        starts[axis], limits[axis] = i, i + 1
        part = shaped.slice(x, starts, limits, strides)
        slices.append(shaped.reshape(part, shape))
    return slices


@unstack_p.rule(jvp)
def _unstack_jvp(primals, tangents, *, axis):
    outs = unstack_p.bind(*primals, axis=axis)
    if type(tangents[0]) is Zero:
        return outs, [Zero.like(o) for o in outs]
    return outs, unstack_p.bind(*tangents, axis=axis)


@unstack_p.rule(transpose)
def _unstack_transpose(cts, x, *, axis):
    return [stack_p.bind(*map(instantiate, cts), axis=axis)]


@unstack_p.rule(batch)
def _unstack_batch(mapped, args, dims, *, axis):
    x = move_axis(args[0], dims[0], 0, mapped.size)
    outs = unstack_p.bind(x, axis=axis + 1)
    return outs, [0] * len(outs)


@stack_p.rule(samples)
def _stack_samples():
    yield Sample(f32(2, 3), f32(2, 3), axis=1)
    yield Sample(bf16(), bf16(), bf16(), axis=0)
    yield Sample(c64(0, 2), axis=2)


@unstack_p.rule(samples)
def _unstack_samples():
    yield Sample(f32(2, 3), axis=1)
    yield Sample(bf16(3), axis=0)
    yield Sample(c64(2, 0), axis=0)
