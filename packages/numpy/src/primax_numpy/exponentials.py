"""Log-sum-exp and the logistic function, shared by several packages.

They are numerically stable, and their derivatives are accurate for small results.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import FastPath, inexact, promoted, same_rank
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._shapes import broadcast_arrays, broadcast_to
from .declaring import axes_of, check_arrays, compiled, is_complex, strong


@compiled("axes", "keepdims", "signed", name="logsumexp")
def log_sum(
    a: Any, b: Any = None, where: Any = None, *, axes: Any, keepdims: bool, signed: bool
) -> Any:
    """:func:`logsumexp` of validated arguments, for use in compiled functions."""
    if b is None:
        a = strong(a)
    else:
        a, b = same_rank("logsumexp", *map(strong, promoted("logsumexp", a, b, inexact)))
        a, b = broadcast_arrays(a, b)
        counted = b != 0
        where = counted if where is None else lax.bitwise_and(counted, _repeated(where, counted))
    if where is not None:
        where = _repeated(where, a)
        a = lax.select(where, a, lax.full_like(a, -np.inf))
    top = greatest(lax.real(a) if is_complex(a) else a, axes)
    top = lax.select(lax.abs(top) == np.inf, lax.full_like(top, 0), top)
    terms = lax.exp(a - lax.convert_element_type(top, typeof(a).dtype))
    if b is not None:
        terms = lax.select(where, terms * b, lax.full_like(terms, 0))
    total = lax.reduce_sum(terms, axes)
    total_kept = lax.expand_dims(total, axes) if axes else total
    if signed:
        size = lax.abs(total_kept)
        out, sign = lax.log(size) + top, lax.sign(lax.stop_gradient(total_kept))
        shape = typeof(total_kept).shape if keepdims else typeof(total).shape
        return lax.reshape(out, shape), lax.reshape(sign, shape)
    out = lax.log(total_kept) + lax.convert_element_type(top, typeof(total_kept).dtype)
    return out if keepdims else lax.reshape(out, typeof(total).shape)


def _repeated(x: Any, like: Any) -> Any:
    return broadcast_to(x, typeof(like).shape)


def greatest(x: ArrayLike, axes: tuple[int, ...]) -> Any:
    """Maximum over axes, which are kept with size 1; a constant for differentiation."""
    top = lax.stop_gradient(lax.reduce_max(lax.stop_gradient(x), axes))
    return lax.expand_dims(top, axes) if axes else top


def check_mask(name: str, where: ArrayLike, shape: tuple[int, ...]) -> None:
    """Check that a mask is boolean and broadcasts to the operand.

    Raises:
      ValueError: with the name of the function and the shapes.
    """
    if where is None:
        return
    check_arrays(name, where)
    aval = typeof(where)
    if aval.dtype != np.bool_:
        raise ValueError(
            f"{name}: where must be None or a boolean array, got dtype {aval.dtype.name}"
        )
    tail = shape[len(shape) - aval.ndim :] if aval.ndim <= len(shape) else None
    if tail is None or any(m not in (1, n) for m, n in zip(aval.shape, tail)):
        raise ValueError(
            f"{name}: where has shape {aval.shape}, which does not broadcast to the operand's "
            f"shape {shape}"
        )


def logsumexp(
    a: ArrayLike,
    axis: Any = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """Logarithm of a sum of exponentials, ``log(sum(b * exp(a)))``, without overflow.

    Args:
      a: an array; integers become floats.
      axis: an axis or several; all by default.
      b: factors of the exponentials, which broadcast with ``a``. Elements with a factor 0 are
        ignored, also NaN and infinities.
      keepdims: keep the reduced axes with size 1.
      return_sign: return a pair: the logarithm of the absolute value of the sum, and its sign (for
        complex numbers the phase factor). Without it, negative real sums give NaN.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.

    Returns:
      The logarithms, ``-inf`` for empty sums; or the pair.

    Raises:
      ValueError: if an axis does not exist, or shapes do not broadcast.
      TypeError: if an operand is not an array.

    >>> f"{float(logsumexp(np.array([1000.0, 1000.0]))):.3f}"
    '1000.693'
    """
    signed, keepdims = bool(return_sign), bool(keepdims)
    simple = b is where is None and not signed and (axis is None or type(axis) is int)
    if simple:
        fast: Any = _logsumexps.lookup((axis, keepdims), a)
        if fast is not None:
            return fast
    operands = [a] if b is None else [a, b]
    check_arrays("logsumexp", *operands)
    shape = lax.broadcast_shapes(*[typeof(x).shape for x in operands])
    check_mask("logsumexp", where, shape)
    arrays = (a, b, where) if where is not None else operands
    static = {"axes": axes_of(axis, len(shape)), "keepdims": keepdims, "signed": signed}
    if simple:
        return _logsumexps.call((axis, keepdims), (a,), **static)
    return log_sum(*arrays, **static)


_logsumexps: Final = FastPath(log_sum)


# The logistic function


@custom_jvp
def logistic_sides(x: ArrayLike) -> Any:
    """The logistic function of ``x`` and of ``-x``. The smaller value is not computed as 1 minus
    the larger, which rounds to 0 for ``abs(x) > 17``."""
    e = lax.exp(-lax.abs(x))
    larger = 1 / (1 + e)
    smaller = e * larger
    right = x >= 0
    return lax.select(right, larger, smaller), lax.select(right, smaller, larger)


@logistic_sides.defjvp
def _logistic_sides_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y, z = logistic_sides(x)
    derivative = t * (y * z)
    return (y, z), (derivative, -derivative)


@custom_jvp
def logistic(x: ArrayLike) -> Any:
    """The logistic function, with accurate derivatives for arguments of both signs."""
    return lax.logistic(x)


@logistic.defjvp
def _logistic_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y, z = logistic_sides(x)
    return y, t * (y * z)
