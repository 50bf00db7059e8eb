"""The Walsh-Hadamard transform as a primitive: an example of a third-party operation."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import Array, lax
from primax_core.extend import (
    Primitive,
    Sample,
    ShapedArray,
    Zero,
    abstract,
    batch,
    bf16,
    c64,
    dtypes,
    f32,
    jvp,
    lower,
    register_internal_path,
    samples,
    transpose,
    typeof,
)
from primax_core.extend.lowering import hlo, i64s, tensor_type, type_of

register_internal_path(__file__)

hadamard_p = Primitive("hadamard")


def hadamard(x: Any, axis: int = -1) -> Array:
    """Sums and differences of all elements along an axis, in natural order.

    Args:
      x: floats or complex numbers; the length along ``axis`` is a power of two.

    The transform is its own transpose, and its own inverse up to the factor of the length.

    Raises:
      TypeError: for integers.
      ValueError: for another length, or if there is no such axis.

    >>> hadamard(np.array([1.0, 2.0, 3.0, 4.0], np.float32)).tolist()
    [10.0, -2.0, -4.0, 0.0]
    """
    ndim = typeof(x).ndim
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for an array with {ndim} axes")
    return hadamard_p.bind(x, axis=axis % ndim)


@hadamard_p.rule(abstract)
def _abstract(x: ShapedArray, *, axis: int) -> ShapedArray:
    if not dtypes.issubdtype(x.dtype, np.inexact):
        raise TypeError(f"hadamard takes floats or complex numbers, got {x.dtype.name}")
    n = x.shape[axis]
    if n & (n - 1) or not n:
        raise ValueError(f"hadamard needs a length that is a power of two, got {n}")
    return x


@hadamard_p.rule(lower)
def _lower(ctx, x, *, axis: int):
    """Butterfly algorithm: one step for each factor of two."""
    (aval,) = ctx.in_avals
    before, n, after = aval.shape[:axis], aval.shape[axis], aval.shape[axis + 1 :]
    step = 1
    while step < n:
        pairs = (*before, n // (2 * step), 2, step, *after)
        split = hlo.reshape(tensor_type(pairs, aval.dtype), x)
        low, high = (_half(split, pairs, len(before) + 1, i) for i in (0, 1))
        joined = hlo.concatenate([hlo.add(low, high), hlo.subtract(low, high)], len(before) + 1)
        x = hlo.reshape(type_of(aval), joined)
        step *= 2
    return x


def _half(x, shape: tuple[int, ...], place: int, i: int):
    start, limit = [0] * len(shape), list(shape)
    start[place], limit[place] = i, i + 1
    return hlo.slice(x, i64s(start), i64s(limit), i64s([1] * len(shape)))


@hadamard_p.rule(jvp)
def _jvp(primals, tangents, *, axis: int):
    out = hadamard_p.bind(*primals, axis=axis)
    (t,) = tangents
    return out, Zero.like(out) if type(t) is Zero else hadamard_p.bind(t, axis=axis)


@hadamard_p.rule(transpose)
def _transpose(ct, x, *, axis: int):
    return [hadamard_p.bind(ct, axis=axis)]


@hadamard_p.rule(batch)
def _batch(mapped, args, dims, *, axis: int):
    (x,), (d,) = args, dims
    return hadamard_p.bind(x, axis=axis + (d <= axis)), d


@hadamard_p.rule(samples)
def _samples():
    yield Sample(f32(4), axis=0)
    yield Sample(f32(3, 8, 2), axis=1)
    yield Sample(c64(2, 1), axis=1)
    yield Sample(bf16(0, 2), axis=1)
    yield Sample(f32(3), axis=0).set(raises=ValueError)


def inverse(x: Any, axis: int = -1) -> Array:
    """Compute the array whose transform is ``x``."""
    out = hadamard(x, axis)
    return lax.mul(out, lax.full_like(out, 1 / typeof(out).shape[axis]))
