"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, lower
from .._lower.lazy import hlo, ir, mlir
from .._trace.array import Array
from .broadcasting import broadcast_in_dim
from .families import _SHOWN, accepts, install_structure, linear
from .shapes import int_tuple, past, without

ArrayLike = Any

reduce_sum_p: Final = Primitive("reduce_sum")


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Sum of the elements along some axes; ``float16`` and ``bfloat16`` are summed in ``float32``.

    Args:
      operand: numbers.
      axes: nonnegative axes, which the result does not have.

    Raises:
      ValueError: if an axis does not exist or is named twice.
      TypeError: if the operand does not hold numbers.

    >>> reduce_sum(np.ones((2, 3)), (1,)).tolist()
    [3.0, 3.0]
    """
    axes = int_tuple("reduce_sum", "axes", axes)
    return reduce_sum_p.bind(operand, axes=axes, out_sharding=out_sharding)


# What reductions have in common


def _reduced(name: str, x: ShapedArray, axes: tuple[int, ...], kinds: Sequence[str]) -> tuple:
    """The shape of a reduction's result, after checks."""
    if not accepts(x.dtype, kinds):
        shown = ", ".join(_SHOWN.get(k, k) for k in kinds)
        raise TypeError(
            f"{name} does not accept dtype {x.dtype.name}. Accepted dtypes are subtypes of {shown}."
        )
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    if not all(0 <= a < x.ndim for a in axes):
        raise ValueError(f"reduction axes {axes} contains out-of-bounds indices for {x}.")
    return without(x.shape, axes)


def emit_reduce(values, inits, axes, body) -> list:
    """A ``reduce`` of several operands; ``body`` combines accumulators with elements."""
    types = [ir.RankedTensorType(v.type) for v in values]
    results = [
        ir.RankedTensorType.get(without(t.shape, axes), t.element_type) for t in types
    ]
    op = hlo.ReduceOp(results, values, inits, mlir.i64s(axes))
    scalars = [ir.RankedTensorType.get((), t.element_type) for t in types]
    block = op.body.blocks.append(*scalars, *scalars)
    with ir.InsertionPoint(block):
        args = list(block.arguments)
        hlo.return_(body(args[: len(values)], args[len(values) :]))
    return list(op.results)


def _axis_reducer(prim: Primitive, kinds: Sequence[str], combine, identity, widen=False) -> None:
    """Type, lowering and batching of a reduction by one associative operation.

    Args:
      combine: ``(a, b) -> value`` on scalars of the lowered program.
      identity: from a dtype to the operation's neutral element.
      widen: whether narrow floats are combined in ``float32``.
    """

    @prim.rule(abstract)
    def _(x, *, axes, **_):
        return ShapedArray(_reduced(prim.name, x, axes, kinds), x.dtype, x.weak_type)

    @prim.rule(lower)
    def _(ctx, x, *, axes, **_):
        aval, out = ctx.in_avals[0], ctx.out_avals[0]
        dtype = aval.dtype
        wide = widen and dtypes.issubdtype(dtype, np.floating) and dtype.itemsize < 4
        if wide:
            dtype = np.dtype(np.float32)
            x = hlo.convert(mlir.tensor_type(aval.shape, dtype), x)
        init = mlir.constant(np.asarray(identity(dtype), dtype))
        (y,) = emit_reduce([x], [init], axes, lambda a, b: [combine(a[0], b[0])])
        return hlo.convert(mlir.type_of(out), y) if wide else y

    @prim.rule(batch)
    def _(axis, args, dims, *, axes, **params):
        (dim,) = dims
        out = prim.bind(args[0], axes=past(dim, axes), **params)
        return out, dim - sum(a < dim for a in axes)


def repeat_along(x: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """A reduction's result repeated along the axes that were reduced."""
    return broadcast_in_dim(x, shape, without(range(len(shape)), axes))


# Sum

_axis_reducer(reduce_sum_p, ("number",), lambda a, b: hlo.add(a, b), lambda dtype: 0, widen=True)
linear(reduce_sum_p, lambda ct, x, *, axes, out_sharding: repeat_along(ct, axes, x.shape))

install_structure(broadcast_in_dim, reduce_sum)
