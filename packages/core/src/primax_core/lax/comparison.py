"""Elementwise comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.element_types import DTypeLike
from .._ir.primitive import Primitive, abstract, lower
from .._lower.lazy import hlo, ir, mlir, shaped
from .._trace.array import Array
from .._trace.typing import ArrayLike
from .elementwise import (
    check_dtypes,
    elementwise_batching,
    elementwise_samples,
    fast_path,
    joint_shape,
    no_derivative,
    same_dtypes,
    same_shapes,
    weak,
)

_ANY: Final = ("number", "bool")
_ORDERED: Final = ("integer", "float", "bool")


def _comparison(name: str, direction: str, kinds: Sequence[str], total: bool = False) -> Primitive:
    """A comparison primitive; ``total`` orders floats -NaN < -inf < -0 < 0 < inf < NaN."""
    prim = Primitive(name)
    keys = direction in ("EQ", "NE") and not total

    @prim.rule(abstract)
    def _abstract(x, y):
        if keys and isinstance(x.dtype, dtypes.ExtendedDType):
            same_dtypes(name, (x, y))
        else:
            check_dtypes(name, (x, y), kinds)
        return ShapedArray(joint_shape(name, (x, y)), np.dtype(np.bool_), weak((x, y)))

    @prim.rule(lower)
    def _lower(ctx, x, y):
        dtype = ctx.in_avals[0].dtype
        if isinstance(dtype, dtypes.ExtendedDType):
            return _compare_buffers(ctx, direction, x, y)
        x, y = same_shapes(ctx, (x, y))
        return compare(direction, x, y, dtype, total)

    elementwise_batching(prim)
    no_derivative(prim)
    return prim


def compare(direction: str, x: Any, y: Any, dtype: DTypeLike, total: bool = False) -> Any:
    """The comparison operation of two MLIR values."""
    kind = dtypes.kind_of(dtype)
    if kind in "fc":
        how = "TOTALORDER" if total else "FLOAT"
    else:
        how = "SIGNED" if kind == "i" else "UNSIGNED"
    return hlo.compare(
        x,
        y,
        hlo.ComparisonDirectionAttr.get(direction),
        compare_type=hlo.ComparisonTypeAttr.get(how),
    )


def _compare_buffers(ctx, direction: str, x, y):
    """Comparison of arrays of an extended dtype: equal where all buffer elements are equal."""
    shape = ctx.out_avals[0].shape
    avals = [a.dtype.physical_aval(a) for a in ctx.in_avals]
    tail = avals[0].shape[ctx.in_avals[0].ndim :]
    full = shape + tail
    values = []
    for value, a in zip((x, y), avals):
        if a.shape != full:
            lead = a.ndim - len(tail)
            dims = [*range(lead), *range(len(shape), len(full))]
            value = shaped.broadcast_in_dim(value, full, dims)
        values.append(value)
    equal = compare(direction, *values, avals[0].dtype)
    combine, start = (hlo.and_, True) if direction == "EQ" else (hlo.or_, False)
    scalar = mlir.tensor_type((), np.dtype(np.bool_))
    op = hlo.ReduceOp(
        [mlir.tensor_type(shape, np.dtype(np.bool_))],
        [equal],
        [mlir.constant(np.asarray(start))],
        mlir.i64s(range(len(shape), len(full))),
    )
    block = op.body.blocks.append(scalar, scalar)
    with ir.InsertionPoint(block):
        hlo.return_([combine(*block.arguments)])
    return op.results[0]


eq_p: Final = _comparison("eq", "EQ", _ANY)
ne_p: Final = _comparison("ne", "NE", _ANY)
lt_p: Final = _comparison("lt", "LT", _ORDERED)
le_p: Final = _comparison("le", "LE", _ORDERED)
gt_p: Final = _comparison("gt", "GT", _ORDERED)
ge_p: Final = _comparison("ge", "GE", _ORDERED)
eq_to_p: Final = _comparison("eq_to", "EQ", _ANY, total=True)
le_to_p: Final = _comparison("le_to", "LE", _ORDERED, total=True)
lt_to_p: Final = _comparison("lt_to", "LT", _ORDERED, total=True)


@fast_path(eq_p)
def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """True where elements are equal; NaN equals nothing, and 0.0 equals -0.0.

    Nothing is promoted: the operands must have the same dtype. They must have the same number of
    axes; scalars and axes of size 1 are broadcast. Random keys can be compared too.

    Args:
      x: an array or a number of any dtype.
      y: an array or a number of the dtype of ``x``.

    Returns:
      A boolean array of the joint shape.

    Raises:
      TypeError: if the dtypes differ or the shapes are incompatible.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> eq(np.array([1, 2]), np.array([1, 3])).tolist()
    [True, False]
    >>> eq(np.array([np.nan, 0.0], np.float32), np.array([np.nan, -0.0], np.float32)).tolist()
    [False, True]
    """
    return eq_p.bind(x, y)


@fast_path(ne_p)
def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """True where elements differ; NaN differs from everything, 0.0 equals -0.0.

    Dtypes and shapes are as for :func:`eq`.

    Args:
      x: an array or a number of any dtype.
      y: an array or a number of the dtype of ``x``.

    Returns:
      A boolean array of the joint shape.

    Raises:
      TypeError: if the dtypes differ or the shapes are incompatible.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> ne(np.array([1, 2]), np.array([1, 3])).tolist()
    [False, True]
    >>> bool(ne(np.float32(np.nan), np.float32(np.nan)))
    True
    """
    return ne_p.bind(x, y)


@fast_path(lt_p)
def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """True where elements of ``x`` are less than those of ``y``; False where one is NaN.

    Dtypes and shapes are as for :func:`eq`. False is less than True.

    Args:
      x: an array or a number of real or boolean dtype.
      y: an array or a number of the dtype of ``x``.

    Returns:
      A boolean array of the joint shape.

    Raises:
      TypeError: if the dtypes differ, the shapes are incompatible, or the numbers are complex and
        have no order.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> lt(np.array([1, 2, 3]), 2).tolist()
    [True, False, False]
    >>> bool(lt(np.float32(np.nan), np.float32(1)))
    False
    """
    return lt_p.bind(x, y)


@fast_path(le_p)
def le(x: ArrayLike, y: ArrayLike) -> Array:
    """True where elements of ``x`` are at most those of ``y``; False where one is NaN.

    Dtypes and shapes are as for :func:`eq`. False is less than True.

    Args:
      x: an array or a number of real or boolean dtype.
      y: an array or a number of the dtype of ``x``.

    Returns:
      A boolean array of the joint shape.

    Raises:
      TypeError: if the dtypes differ, the shapes are incompatible, or the numbers are complex and
        have no order.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> le(np.array([1, 2, 3]), 2).tolist()
    [True, True, False]
    >>> bool(le(np.float32(np.nan), np.float32(1)))
    False
    """
    return le_p.bind(x, y)


@fast_path(gt_p)
def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """True where elements of ``x`` are greater than those of ``y``; False where one is NaN.

    Dtypes and shapes are as for :func:`eq`. True is greater than False.

    Args:
      x: an array or a number of real or boolean dtype.
      y: an array or a number of the dtype of ``x``.

    Returns:
      A boolean array of the joint shape.

    Raises:
      TypeError: if the dtypes differ, the shapes are incompatible, or the numbers are complex and
        have no order.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> gt(np.array([1, 2, 3]), 2).tolist()
    [False, False, True]
    >>> bool(gt(np.float32(np.nan), np.float32(1)))
    False
    """
    return gt_p.bind(x, y)


@fast_path(ge_p)
def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """True where elements of ``x`` are at least those of ``y``; False where one is NaN.

    Dtypes and shapes are as for :func:`eq`. True is greater than False.

    Args:
      x: an array or a number of real or boolean dtype.
      y: an array or a number of the dtype of ``x``.

    Returns:
      A boolean array of the joint shape.

    Raises:
      TypeError: if the dtypes differ, the shapes are incompatible, or the numbers are complex and
        have no order.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> ge(np.array([1, 2, 3]), 2).tolist()
    [False, True, True]
    >>> bool(ge(np.float32(np.nan), np.float32(1)))
    False
    """
    return ge_p.bind(x, y)


for _prim in (eq_p, ne_p):
    elementwise_samples(_prim, "ficb", arity=2)
for _prim in (ge_p, gt_p, le_p, lt_p):
    elementwise_samples(_prim, "fib", arity=2)
for _prim in (eq_to_p, le_to_p, lt_to_p):
    elementwise_samples(_prim, "f", arity=2)
