"""Concatenation and splitting of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._lower.lazy import hlo, mlir, shaped
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike, Shape
from .._transform.batching import move_axis
from .._transform.zeros import Zero, instantiate, is_linear
from .elementwise import same_dtypes
from .shapes import canonical_axis, inserted, int_tuple, tail_of, without
from .slicing import index_in_dim

concatenate_p: Final = Primitive("concatenate")
split_p: Final = Primitive("split", multiple_results=True)


def concatenate(operands: Array | Sequence[ArrayLike], dimension: int) -> Array:
    """Concatenate arrays of one dtype along an axis.

    Args:
      operands: at least one array; or one array, whose slices along its first axis are
        concatenated.
      dimension: nonnegative axis. Along the other axes the sizes are equal.

    Returns:
      An array of the operands' dtype; its size along the axis is the sum of theirs.

    Raises:
      ValueError: if there are no operands.
      TypeError: if the dtypes or the sizes along other axes differ, or the axis does not exist.

    The function is linear: the cotangent is split. Under ``vmap`` unmapped operands are
    broadcast.

    >>> import numpy as np
    >>> concatenate([np.zeros(1), np.ones(2)], 0).tolist()
    [0.0, 1.0, 1.0]
    >>> concatenate([np.zeros((2, 1)), np.ones((2, 3))], 1).shape
    (2, 4)
    """
    if isinstance(operands, Array):
        operands = [index_in_dim(operands, i, keepdims=False) for i in range(len(operands))]
    operands = list(operands)
    if not operands:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and isinstance(operands[0], Array):
        return operands[0]
    return concatenate_p.bind(*operands, dimension=int(dimension))


@concatenate_p.rule(abstract)
def _concatenate_abstract(*xs, dimension):
    shapes = [x.shape for x in xs]
    listed = ", ".join(map(str, shapes))
    if len({len(s) for s in shapes}) != 1:
        raise TypeError(
            f"Cannot concatenate arrays with different numbers of dimensions: got {listed}."
        )
    if not 0 <= dimension < len(shapes[0]):
        raise TypeError(
            f"concatenate dimension out of bounds: dimension {dimension} for shapes {listed}."
        )
    if len({without(s, (dimension,)) for s in shapes}) != 1:
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one "
            f"being concatenated: concatenating along dimension {dimension} for shapes {listed}."
        )
    same_dtypes("concatenate", xs)
    size = sum(s[dimension] for s in shapes)
    shape = inserted(without(shapes[0], (dimension,)), dimension, size)
    return ShapedArray(shape, xs[0].dtype, all(x.weak_type for x in xs))


@concatenate_p.rule(lower)
def _concatenate_lower(ctx, *xs, dimension):
    return hlo.concatenate(xs, mlir.i64(dimension))


@concatenate_p.rule(jvp)
def _concatenate_jvp(primals, tangents, *, dimension):
    out = concatenate_p.bind(*primals, dimension=dimension)
    if all(type(t) is Zero for t in tangents):
        return out, Zero.like(out)
    return out, concatenate_p.bind(*map(instantiate, tangents), dimension=dimension)


@concatenate_p.rule(transpose)
def _concatenate_transpose(ct, *xs, dimension):
    if type(ct) is Zero:
        return [None] * len(xs)
    shapes = [x.aval.shape if is_linear(x) else typeof(x).shape for x in xs]
    parts = split(ct, [s[dimension] for s in shapes], dimension)
    return [p if is_linear(x) else None for x, p in zip(xs, parts)]


@concatenate_p.rule(batch)
def _concatenate_batch(axis, args, dims, *, dimension):
    at = next(d for d in dims if d is not None)
    moved = [move_axis(x, d, at, axis.size) for x, d in zip(args, dims)]
    return concatenate_p.bind(*moved, dimension=dimension + (dimension >= at)), at


def split(operand: ArrayLike, sizes: Shape, axis: int = 0) -> Sequence[Array]:
    """Consecutive parts of an array, with the given sizes along an axis.

    Args:
      operand: the array.
      sizes: nonnegative sizes, whose sum is the size of the axis.
      axis: the axis; a negative one counts from the end.

    Returns:
      A list of arrays, one for each size.

    Raises:
      ValueError: if the sum of the sizes is not the size of the axis, or the axis does not exist.

    The function is linear: the cotangents are concatenated. Under ``vmap`` each example is split.

    >>> import numpy as np
    >>> [part.tolist() for part in split(np.arange(3), (1, 2))]
    [[0], [1, 2]]
    >>> [part.shape for part in split(np.zeros((2, 3)), (1, 2), axis=-1)]
    [(2, 1), (2, 2)]
    """
    axis = canonical_axis(axis, typeof(operand).ndim)
    return split_p.bind(operand, sizes=int_tuple("split", "sizes", sizes), axis=axis)


@split_p.rule(abstract)
def _split_abstract(x, *, sizes, axis):
    if any(n < 0 for n in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
    if sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand shape "
            f"{list(x.shape)}"
        )
    return [x.update(shape=(*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in sizes]


@split_p.rule(lower)
def _split_lower(ctx, x, *, sizes, axis):
    aval = ctx.in_avals[0]
    limits = [*aval.shape, *tail_of(aval)]
    starts, strides = [0] * len(limits), [1] * len(limits)
    parts = []
    for n in sizes:
        limits[axis] = starts[axis] + n
        parts.append(shaped.slice(x, starts, limits, strides))
        starts[axis] += n
    return parts


@split_p.rule(jvp)
def _split_jvp(primals, tangents, *, sizes, axis):
    outs = split_p.bind(*primals, sizes=sizes, axis=axis)
    if type(tangents[0]) is Zero:
        return outs, [Zero.like(o) for o in outs]
    return outs, split_p.bind(*tangents, sizes=sizes, axis=axis)


@split_p.rule(transpose)
def _split_transpose(cts, x, *, sizes, axis):
    return [concatenate(list(map(instantiate, cts)), axis)]


@split_p.rule(batch)
def _split_batch(mapped, args, dims, *, sizes, axis):
    (dim,) = dims
    return split_p.bind(args[0], sizes=sizes, axis=axis + (axis >= dim)), [dim] * len(sizes)


@concatenate_p.rule(samples)
def _concatenate_samples():
    yield Sample(f32(2, 3), f32(1, 3), dimension=0)
    yield Sample(f32(2, 1), f32(2, 0), f32(2, 2), dimension=1)
    yield Sample(c64(3), c64(1), dimension=0)
    yield Sample(bf16(2), dimension=0)
    yield Sample(f32(2, 3), f32(2, 2), dimension=0).set(raises=TypeError)


@split_p.rule(samples)
def _split_samples():
    yield Sample(f32(5, 2), sizes=(2, 3), axis=0)
    yield Sample(c64(2, 4), sizes=(1, 0, 3), axis=1)
    yield Sample(bf16(3), sizes=(3,), axis=0)
    yield Sample(f32(3), sizes=(1, 1), axis=0).set(raises=ValueError)
