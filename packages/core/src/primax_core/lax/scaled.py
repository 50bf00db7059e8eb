"""``scaled_dot``: products of block-scaled operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower
from .._ir.samples import Sample, bf16, f32, samples
from .._lower.lazy import ir, mlir
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.staging import stage
from .._trace.typing import ArrayLike, DTypeLike
from .._transform.batching import move_axis
from .._transform.jvp import jvp_of
from .._transform.zeros import Zero
from .arithmetic import mul
from .broadcasting import broadcast_in_dim
from .composites import emit_composite
from .contracting import (
    DotDimensionNumbers,
    canonical_numbers,
    check_numbers,
    dot_general,
    element_type,
)
from .conversion import convert_element_type
from .elementwise import check_kind
from .reshaping import reshape
from .shapes import inserted, past

scaled_dot_p: Final = Primitive("scaled_dot")


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Product of two arrays whose blocks are multiplied by scales first.

    A backend that supports block-scaled products (for example of narrow floats in blocks of 32)
    computes the product directly; other backends multiply in ``bfloat16``.

    Args:
      lhs, rhs: real numbers, with at least two axes.
      lhs_scale, rhs_scale: an array with the shape of the operand except for smaller contracting
        axes: each scale applies to a block of consecutive elements along them. ``None`` for no
        scales.
      dimension_numbers: as for :func:`dot_general`; by default a matrix product, batched if there
        is a third, leading axis.
      preferred_element_type: dtype of the result, ``bfloat16`` by default.

    Returns:
      An array: batch axes, then free axes of ``lhs``, then those of ``rhs``.

    Raises:
      TypeError: if the sizes are incompatible.

    >>> x, s = np.ones((2, 4), np.float32), np.full((2, 2), 0.5, np.float32)
    >>> scaled_dot(x, x.T, lhs_scale=s).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    x, y = typeof(lhs), typeof(rhs)
    if min(x.ndim, y.ndim) < 2:
        raise TypeError("scaled_dot does not support 0-rank and 1-rank operands.")
    if dimension_numbers is None:
        stack = tuple(range(x.ndim - 2))
        dimension_numbers = (((x.ndim - 1,), (y.ndim - 2,)), (stack, stack))
    numbers = canonical_numbers(dimension_numbers)
    (xc, yc), _ = numbers
    return scaled_dot_p.bind(
        lhs,
        rhs,
        _no_scale(x, xc) if lhs_scale is None else lhs_scale,
        _no_scale(y, yc) if rhs_scale is None else rhs_scale,
        dimension_numbers=numbers,
        preferred_element_type=element_type(preferred_element_type or ml_dtypes.bfloat16),
    )


def _no_scale(aval: ShapedArray, summed: Sequence[int]) -> Array:
    shape = [1 if a in summed else n for a, n in enumerate(aval.shape)]
    one = np.ones((), ml_dtypes.float8_e8m0fnu)[()]
    return broadcast_in_dim(one, shape, ())


@scaled_dot_p.rule(abstract)
def _abstract(x, y, x_scale, y_scale, *, dimension_numbers, preferred_element_type):
    (xc, yc), (xb, yb) = dimension_numbers
    for i, a in enumerate((x, y, x_scale, y_scale)):
        check_kind("scaled_dot", a.dtype, ("float", "integer"), i)
    check_numbers(x, y, xc, yc, xb, yb)
    for side, aval, scale, summed in (("LHS", x, x_scale, xc), ("RHS", y, y_scale, yc)):
        _check_scale(side, aval, scale, summed)
    free = [n for a, n in enumerate(x.shape) if a not in (*xb, *xc)]
    free += [n for a, n in enumerate(y.shape) if a not in (*yb, *yc)]
    return ShapedArray((*[x.shape[a] for a in xb], *free), preferred_element_type)


def _check_scale(side: str, aval: ShapedArray, scale: ShapedArray, summed: Sequence[int]) -> None:
    if scale.ndim != aval.ndim:
        raise TypeError(
            f"{side} of scaled_dot and its scale must have the same number of axes, got "
            f"{aval.ndim} and {scale.ndim}."
        )
    for a, (n, m) in enumerate(zip(aval.shape, scale.shape)):
        if a not in summed:
            if n != m:
                raise TypeError(f"{side} dim {a} of size {n} does not match scale dim size {m}.")
        elif not m or n % m:
            raise TypeError(
                f"{side} contracting dim {a} of size {n} must be divisible by its scale's dim size "
                f"{m}."
            )
        elif n // m < 2:
            raise TypeError(
                f"The ratio of {side} contracting dim {a} to its scale's dim size ({n // m}) must "
                "be at least 2."
            )


def _decomposed(x, y, x_scale, y_scale, *, dimension_numbers, preferred_element_type):
    return dot_general(
        _scaled(x, x_scale),
        _scaled(y, y_scale),
        dimension_numbers,
        preferred_element_type=preferred_element_type,
    )


def _scaled(x: Any, scale: Any) -> Any:
    shape, blocks = typeof(x).shape, typeof(scale).shape
    for a, (n, m) in enumerate(zip(shape, blocks)):
        if n != m:
            full = (*shape[:a], m, n // m, *blocks[a + 1 :])
            dims = [i + (i > a) for i in range(len(shape))]
            scale = broadcast_in_dim(scale, full, dims)
            scale = reshape(scale, (*shape[: a + 1], *blocks[a + 1 :]))
    bf = ml_dtypes.bfloat16
    return mul(convert_element_type(x, bf), convert_element_type(scale, bf))


_NAME: Final = "xla.scaled_dot"


@scaled_dot_p.rule(lower)
def _lower(ctx, *values, dimension_numbers, preferred_element_type):
    params = {
        "dimension_numbers": dimension_numbers, "preferred_element_type": preferred_element_type
    }  # fmt: skip
    jaxpr = stage(lambda *a: [_decomposed(*a, **params)], ctx.in_avals)
    axes = [[mlir_list(part) for part in pair] for pair in dimension_numbers]
    attributes = {
        "dimension_numbers": ir.ArrayAttr.get([ir.ArrayAttr.get(pair) for pair in axes]),
        "preferred_element_type": ir.TypeAttr.get(mlir.element_type(preferred_element_type)),
    }
    return emit_composite(ctx, values, _NAME, attributes, 0, jaxpr)[0]


def mlir_list(axes: Sequence[int]) -> Any:
    """A list of integers as an attribute of a composite."""
    return ir.ArrayAttr.get([mlir.i64(a) for a in axes])


@scaled_dot_p.rule(jvp)
def _jvp(primals, tangents, **params):
    out = scaled_dot_p.bind(*primals, **params)
    in_tangents = [None if type(t) is Zero else t for t in tangents]
    (tangent,) = jvp_of(lambda *a: [_decomposed(*a, **params)], primals, in_tangents)[1]
    return out, Zero.like(out) if tangent is None else tangent


@scaled_dot_p.rule(batch)
def _batch(axis, args, dims, *, dimension_numbers, preferred_element_type):
    (xc, yc), (xb, yb) = dimension_numbers
    moved = [move_axis(a, d, 0, axis.size) for a, d in zip(args, dims)]
    numbers = canonical_numbers((
        (past(0, xc), past(0, yc)),
        (inserted(past(0, xb), 0, 0), inserted(past(0, yb), 0, 0)),
    ))  # fmt: skip
    out = scaled_dot_p.bind(
        *moved, dimension_numbers=numbers, preferred_element_type=preferred_element_type
    )
    return out, 0


@scaled_dot_p.rule(samples)
def _samples():
    numbers = canonical_numbers((((1,), (0,)), ((), ())))
    wide = {"dimension_numbers": numbers, "preferred_element_type": np.dtype(np.float32)}
    reason = "products are made in bfloat16, whose steps differences cannot see past"
    loose = dict.fromkeys(("jvp", "transpose", "second order"), reason)
    scales = f32(2, 2, low=0.5, high=2), f32(1, 3, low=0.5, high=2)
    yield Sample(f32(2, 4), f32(4, 3), *scales, **wide).set(tolerance=5e-2, without=loose)
    yield Sample(bf16(2, 4), bf16(4, 3), *scales, **wide).set(tolerance=5e-2, without=loose)
