"""Evaluation of polynomials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, jvp, lower, transpose
from .._ir.printer import hide_defaults
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._lower.lazy import hlo
from .._runtime.dispatch import check_range
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.zeros import Zero, add_tangents, instantiate, is_linear
from .arithmetic import add, mul
from .control.scan import scan
from .conversion import convert_element_type
from .elementwise import (
    check_dtypes,
    elementwise_batching,
    joint_shape,
    same_shapes,
    scalar_like,
    sum_to,
    to_shape,
    weak,
)
from .joining import concatenate
from .promotion import cast
from .reshaping import expand_dims
from .stacking import unstack

polynomial_p: Final = Primitive("polynomial")
hide_defaults("polynomial", unroll=None)

# Number of operations up to which XLA compiles straight-line code as fast as a loop.
_STRAIGHT: Final = 64


def polynomial(
    x: ArrayLike, coeffs: ArrayLike | Sequence[ArrayLike], *, unroll: bool | int | None = None
) -> Array:
    """``coeffs[0] + coeffs[1] x + coeffs[2] x² + ...`` of each element, by Horner's rule.

    Args:
      x: an array or a number of integer, floating or complex dtype.
      coeffs: a sequence of coefficients, or an array of them along the first axis. Each is a
        scalar or has the shape of ``x``. They are converted to the dtype of ``x``.
      unroll: number of steps per iteration of the loop; ``True`` for all, ``False`` for one. By
        default short polynomials are evaluated without a loop.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if ``x`` is boolean, or the shapes are incompatible.

    It is differentiable with respect to ``x`` and the coefficients, in both modes and to any
    order. Under ``vmap`` the batch is one operand.

    >>> float(polynomial(2.0, [1.0, 0.0, 3.0]))
    13.0
    >>> x = np.array([0.0, 1.0, 2.0], np.float32)
    >>> polynomial(x, np.array([1.0, 2.0], np.float32)).tolist()
    [1.0, 3.0, 5.0]
    """
    dtype = typeof(x).dtype
    if unroll is not None and not isinstance(unroll, (bool, int)):
        raise TypeError(f"unroll must be None, a bool or an int, got {unroll!r}")
    if isinstance(coeffs, (list, tuple)):
        parts = list(coeffs)
    elif not typeof(coeffs).shape:
        raise TypeError("coeffs must be a sequence or an array with at least one axis")
    else:
        parts = list(unstack(coeffs))
    if not parts:
        parts = [scalar_like(x, 0)]
    return polynomial_p.bind(x, *[_converted(c, dtype) for c in parts], unroll=unroll)


def _converted(coefficient: Any, dtype: Any) -> Any:
    aval = typeof(coefficient)
    if type(coefficient) is int and dtypes.issubdtype(dtype, np.integer):
        check_range(coefficient, ShapedArray((), dtype))
    lossy = dtypes.issubdtype(aval.dtype, np.complexfloating)
    if lossy and not dtypes.issubdtype(dtype, np.complexfloating):
        return convert_element_type(coefficient, dtype)  # warns about dropped imaginary parts
    return cast(coefficient, aval, dtype, aval.weak_type)


@polynomial_p.rule(abstract)
def _abstract(x, *coeffs, unroll=None):
    avals = (x, *coeffs)
    check_dtypes("polynomial", avals, ("number",))
    return ShapedArray(joint_shape("polynomial", avals), x.dtype, weak(avals))


elementwise_batching(polynomial_p)


@polynomial_p.rule(lower)
def _lower(ctx, x, *coeffs, unroll=None):
    if unroll is True or len(coeffs) <= (_STRAIGHT if unroll is None else 1):
        x, *coeffs = same_shapes(ctx, (x, *coeffs))
        out = coeffs[-1]
        for c in reversed(coeffs[:-1]):
            out = hlo.add(hlo.multiply(out, x), c)
        return out
    shape = ctx.out_avals[0].shape

    def looped(x, *coeffs):
        if any(typeof(c).shape for c in coeffs):
            coeffs = [to_shape(c, shape) for c in coeffs]
        rows = concatenate([expand_dims(c, (0,)) for c in coeffs[:-1]], 0)
        x, last = to_shape(x, shape), to_shape(coeffs[-1], shape)
        steps = 16 if unroll is None else int(unroll) or 1
        return scan(lambda out, c: (add(mul(out, x), c), None), last, rows, None, True, steps)[0]

    return ctx.call(looped, x, *coeffs, in_avals=[a.strip_weak_type() for a in ctx.in_avals])


@polynomial_p.rule(jvp)
def _jvp(primals, tangents, *, unroll=None):
    x, *coeffs = primals
    out = polynomial_p.bind(x, *coeffs, unroll=unroll)
    shape = typeof(out).shape
    total: Any = Zero.like(out)
    if type(tangents[0]) is not Zero:
        derivatives = [mul(scalar_like(c, i), c) for i, c in enumerate(coeffs[1:], 1)]
        derivative = polynomial(x, derivatives, unroll=unroll)
        total = to_shape(mul(tangents[0], derivative), shape)
    if any(type(t) is not Zero for t in tangents[1:]):
        part = polynomial_p.bind(x, *[instantiate(t) for t in tangents[1:]], unroll=unroll)
        total = add_tangents(total, to_shape(part, shape))
    return out, total


@polynomial_p.rule(transpose)
def _transpose(ct, x, *coeffs, unroll=None):
    """Cotangents of the coefficients: ``ct`` times the powers of ``x``."""
    if type(ct) is Zero or is_linear(x):
        return [None] * (1 + len(coeffs))
    cts: list = [None]
    for i, c in enumerate(coeffs):
        if i:
            ct = mul(ct, x)
        cts.append(sum_to(ct, c.aval) if is_linear(c) else None)
    return cts


@polynomial_p.rule(samples)
def _samples():
    yield Sample(f32(4), f32(), f32(4), f32())
    yield Sample(f32(), f32(weak_type=True), f32(2))
    yield Sample(f32(2, 3), f32(2, 1), f32(1, 3), unroll=1)
    yield Sample(f32(0), f32(), f32())
    yield Sample(c64(3), c64(), c64(3))
    yield Sample(bf16(3), bf16(), bf16())
