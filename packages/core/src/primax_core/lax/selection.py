"""Elementwise selection and clamping."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.samples import Sample, b1, bf16, c64, f32, i32, samples
from .._lower.lazy import hlo, shaped
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.batching import move_axis
from .._transform.zeros import Zero, add_tangents, instantiate, is_linear, zeros
from .bitwise import bitwise_and
from .comparison import compare, gt, lt
from .elementwise import broadcast_in_dim, same_dtypes, same_shapes, to_shape, weak

# select_n

select_n_p: Final = Primitive("select_n")


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Elements of ``cases[which]``, chosen for each element.

    All cases are computed: use :func:`cond` or :func:`switch` to compute one of several results.

    Args:
      which: integers, or booleans with at most two cases (``False`` is the first); a scalar, or
        of the shape of the cases. Integers out of range are clamped to the first or the last
        case.
      cases: at least one array; arrays of one shape and dtype.

    Returns:
      An array of the shape and dtype of the cases.

    Raises:
      TypeError: if the shapes or dtypes are incompatible, or ``which`` is neither integer nor
        boolean.
      ValueError: if there are no cases.

    The derivative is that of the selected elements; the others receive zeros. Under ``vmap`` a
    mapped scalar ``which`` is broadcast over the examples.

    >>> select_n(np.array([True, False]), np.array([1, 2]), np.array([3, 4])).tolist()
    [3, 2]
    >>> select_n(np.array([0, 9]), np.array([1, 2]), np.array([4, 5]), np.array([7, 8])).tolist()
    [1, 8]
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return select_n_p.bind(which, *cases)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Elements of ``on_true`` where ``pred`` is True, of ``on_false`` elsewhere.

    It is :func:`select_n` with the cases in the other order.

    Args:
      pred: a boolean scalar, or booleans of the shape of the others. Integers select ``on_true``
        if they are positive.
      on_true: an array or a number.
      on_false: an array of the shape and dtype of ``on_true``.

    Returns:
      An array of the shape and dtype of the cases.

    Raises:
      TypeError: if the shapes or dtypes are incompatible, or ``pred`` is neither integer nor
        boolean.

    The derivative is that of the selected elements; the others receive zeros.

    >>> select(np.array([True, False]), np.array([1, 2]), np.array([3, 4])).tolist()
    [1, 4]
    >>> select(True, np.array([1, 2]), np.array([3, 4])).tolist()
    [1, 2]
    """
    return select_n_p.bind(pred, on_false, on_true)


@select_n_p.rule(abstract)
def _select_n_abstract(which, *cases):
    same_dtypes("select", cases)
    shape = cases[0].shape
    if any(c.shape != shape for c in cases):
        shapes = ", ".join(str(c.shape) for c in cases)
        raise TypeError(f"select cases must have the same shapes, got [{shapes}].")
    if which.dtype == np.bool_:
        if len(cases) > 2:
            raise TypeError("select with boolean `which` cannot have > 2 cases.")
    elif not dtypes.issubdtype(which.dtype, np.integer):
        raise TypeError(f"select `which` must be boolean or integer type, got {which.dtype.name}.")
    if which.shape not in ((), shape):
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, got `which` shape "
            f"{which.shape} but case shape {shape}."
        )
    return ShapedArray(shape, cases[0].dtype, weak(cases))


@select_n_p.rule(lower)
def _select_n_lower(ctx, which, *cases):
    aval, case = ctx.in_avals[0], ctx.in_avals[1]
    shape = aval.shape
    if len(cases) == 1:
        return cases[0]
    if isinstance(case.dtype, dtypes.ExtendedDType) and shape:
        buffer = case.dtype.physical_aval(case).shape
        which = shaped.broadcast_in_dim(which, buffer, range(len(shape)))
        shape = buffer
    if aval.dtype == np.bool_:
        return hlo.select(which, cases[1], cases[0])

    def choose(first, last):
        """The selection among ``cases[first:last]``, by bisection."""
        if last - first == 1:
            return cases[first]
        middle = (first + last) // 2
        bound = shaped.full(np.asarray(middle).astype(aval.dtype), shape)
        below = compare("LT", which, bound, aval.dtype)
        return hlo.select(below, choose(first, middle), choose(middle, last))

    return choose(0, len(cases))


@select_n_p.rule(jvp)
def _select_n_jvp(primals, tangents):
    which, *cases = primals
    out = select_n_p.bind(which, *cases)
    if all(type(t) is Zero for t in tangents[1:]):
        return out, Zero.like(out)
    return out, select_n_p.bind(which, *[instantiate(t) for t in tangents[1:]])


@select_n_p.rule(transpose)
def _select_n_transpose(ct, which, *cases):
    none = zeros(typeof(ct))
    return [None] + [
        select_n_p.bind(which, *[ct if j == i else none for j in range(len(cases))])
        if is_linear(c)
        else None
        for i, c in enumerate(cases)
    ]


@select_n_p.rule(batch)
def _select_n_batch(axis, args, dims):
    which, *cases = args
    d_which, *d_cases = dims
    target = next((d for d in d_cases if d is not None), None)
    ndim = typeof(cases[0]).ndim - (d_cases[0] is not None)
    scalar = typeof(which).ndim - (d_which is not None) == 0
    if target is None:
        target = d_which if not scalar else 0
    cases = [move_axis(c, d, target, axis.size) for c, d in zip(cases, d_cases)]
    if d_which is not None and scalar and ndim:
        which = broadcast_in_dim(which, typeof(cases[0]).shape, (target,))
    elif d_which is not None or not scalar:
        which = move_axis(which, d_which, target, axis.size)
    return select_n_p.bind(which, *cases), target


# clamp

clamp_p: Final = Primitive("clamp")


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Elements of ``x`` limited to the interval from ``min`` to ``max``.

    Where ``min > max``, the result is ``max``. NaN is returned unchanged.

    Args:
      min: the lower bounds, a scalar or an array of the shape of ``x``.
      x: an array or a number.
      max: the upper bounds, a scalar or an array of the shape of ``x``.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if the dtypes differ, or a bound is neither a scalar nor of the shape of ``x``.

    The derivative is that of ``x`` strictly between the bounds, and that of the bound strictly
    outside; on a bound it is 0. Under ``vmap`` mapped scalar bounds are broadcast over the
    examples.

    >>> clamp(0, np.array([-1, 1, 5]), 3).tolist()
    [0, 1, 3]
    >>> clamp(np.array([0, 2]), np.array([1, 1]), np.array([9, 9])).tolist()
    [1, 2]
    """
    return clamp_p.bind(min, x, max)


@clamp_p.rule(abstract)
def _clamp_abstract(low, x, high):
    same_dtypes("clamp", (low, x, high))
    for name, bound in (("min", low), ("max", high)):
        if bound.shape not in ((), x.shape):
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got "
                f"{name}.shape={bound.shape}, operand.shape={x.shape}."
            )
    return ShapedArray(x.shape, x.dtype, weak((low, x, high)))


@clamp_p.rule(lower)
def _clamp_lower(ctx, low, x, high):
    return hlo.clamp(*same_shapes(ctx, (low, x, high)))


@clamp_p.rule(jvp)
def _clamp_jvp(primals, tangents):
    low, x, high = primals
    out = clamp_p.bind(low, x, high)
    aval = typeof(out)
    conditions = (
        lambda: bitwise_and(gt(low, x), lt(low, high)),
        lambda: bitwise_and(gt(x, low), lt(x, high)),
        lambda: lt(high, x),
    )
    total: Any = Zero(aval.tangent_aval())
    for t, condition in zip(tangents, conditions):
        if type(t) is not Zero:
            where = to_shape(condition(), aval.shape)
            t = to_shape(t, aval.shape)
            total = add_tangents(total, select_n_p.bind(where, zeros(typeof(t)), t))
    return out, total


@clamp_p.rule(batch)
def _clamp_batch(axis, args, dims):
    ranks = [typeof(a).ndim - (d is not None) for a, d in zip(args, dims)]
    target = dims[1] if dims[1] is not None else 0
    x = move_axis(args[1], dims[1], target, axis.size)
    shape = typeof(x).shape
    bounds = []
    for i in (0, 2):
        bound, d = args[i], dims[i]
        if d is None and ranks[i] == 0:
            bounds.append(bound)
        elif ranks[i] == 0:
            bounds.append(broadcast_in_dim(bound, shape, (target,)))
        else:
            bounds.append(move_axis(bound, d, target, axis.size))
    return clamp_p.bind(bounds[0], x, bounds[1]), target


@select_n_p.rule(samples)
def _select_n_samples():
    yield Sample(b1(3), f32(3), f32(3))
    yield Sample(b1(), c64(2, 3), c64(2, 3))
    yield Sample(i32(4, low=0, high=2), f32(4), f32(4), f32(4))
    yield Sample(b1(0), bf16(0), bf16(0))
    yield Sample(b1(2), f32(3), f32(3)).set(raises=TypeError)


@clamp_p.rule(samples)
def _clamp_samples():
    yield Sample(f32(3, high=-1), f32(3), f32(3, low=1))
    yield Sample(f32(high=-1), f32(2, 3), f32(low=1))
    yield Sample(bf16(high=-1), bf16(0), bf16(low=1))
    yield Sample(i32(high=-2), i32(3), i32(low=2))
