"""Logarithms of means and differences of exponentials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import custom_jvp, lax
from primax_core.extend import Array, FastPath
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import (
    as_inexact,
    axes_of,
    check_arrays,
    check_not_bool,
    compiled,
    is_complex,
)
from primax_numpy.exponentials import check_mask, log_sum


@compiled("axes", "keepdims", name="logmeanexp")
def _logmeanexp(x, where=None, *, axes, keepdims):
    total = log_sum(x, None, where, axes=axes, keepdims=keepdims, signed=False)
    shape = typeof(x).shape
    if where is None:
        n = math.prod([shape[i] for i in axes])
        return total - (math.log(n) if n else -math.inf)
    counted = lax.convert_element_type(pnp.broadcast_to(where, shape), np.int32)
    counted = lax.reduce_sum(counted, axes)
    counted = lax.expand_dims(counted, axes) if keepdims and axes else counted
    return total - lax.log(lax.convert_element_type(counted, typeof(total).dtype))


def logmeanexp(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    where: ArrayLike | None = None,
    keepdims: bool = False,
) -> Array:
    """Logarithm of the mean of exponentials, without overflow.

    Args:
      x: an array; integers become floats.
      axis: an axis or several; all by default.
      where: a boolean mask that broadcasts to ``x``; elements where it is false are ignored.
      keepdims: retain the reduced axes with size 1.

    Returns:
      The logarithms, NaN for empty reductions.

    Raises:
      ValueError: if an axis does not exist, or the mask is not boolean or does not broadcast.
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is the :func:`softmax` of the elements that are not ignored.

    >>> float(logmeanexp(np.array([1000.0, 1000.0])))
    1000.0
    """
    keepdims = bool(keepdims)
    simple = where is None and (axis is None or type(axis) is int)
    if simple:
        fast: Array | None = _logmeanexps.lookup((axis, keepdims), x)
        if fast is not None:
            return fast
    check_arrays("logmeanexp", x)
    shape = typeof(x).shape
    static = {"axes": axes_of(axis, len(shape)), "keepdims": keepdims}
    if simple:
        return _logmeanexps.call((axis, keepdims), (x,), **static)
    check_mask("logmeanexp", where, shape)
    out: Array = _logmeanexp(*((x,) if where is None else (x, where)), **static)
    return out


_logmeanexps: Final = FastPath(_logmeanexp)


@custom_jvp
def _log1mexp(x: Any) -> Any:
    # Maechler, 2012: one form is accurate below log(2), the other above.
    small = x < math.log(2.0)
    return lax.select(small, lax.log(-lax.expm1(-x)), lax.log1p(-lax.exp(-x)))


@_log1mexp.defjvp
def _log1mexp_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _log1mexp(x), t * (lax.exp(-x) / -lax.expm1(-x))


def log1mexp(x: ArrayLike) -> Array:
    """``log(1 - exp(-x))`` of positive numbers, accurate for small and large numbers.

    The formula is that of Mächler (2012). The result is ``-inf`` at 0 and NaN for negative numbers.

    Args:
      x: an array or a number; integers become floats.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if the dtype is boolean, or ``x`` is not an array or a number.

    The derivative is ``1 / (exp(x) - 1)``, infinite at 0.

    >>> f"{float(log1mexp(1e-30)):.4f}"
    '-69.0776'
    >>> float(log1mexp(0.0))
    -inf
    """
    check_arrays("log1mexp", x)
    out: Array = _log1mexp_of(x)
    return out


@compiled(name="log1mexp")
def _log1mexp_of(x):
    check_not_bool("log1mexp", x)
    x = as_inexact(x)
    if is_complex(x):
        return lax.log(-lax.expm1(-x))
    return _log1mexp(x)
