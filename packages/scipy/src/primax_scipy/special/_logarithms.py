"""Softmax and log-softmax."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from primax_core import custom_jvp, lax
from primax_core.extend import Array, FastPath
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import (
    axes_of,
    check_arrays,
    check_not_bool,
    compiled,
    is_complex,
    strong,
)
from primax_numpy.exponentials import greatest


def _summed(x: Any, axes: tuple[int, ...]) -> Any:
    total = lax.reduce_sum(x, axes)
    return lax.expand_dims(total, axes) if axes else total


def _shifted(x: Any, axes: tuple[int, ...]) -> Any:
    return x - lax.convert_element_type(
        greatest(lax.real(x) if is_complex(x) else x, axes), typeof(x).dtype
    )


@partial(custom_jvp, nondiff_argnums=(1,))
def _softmax_of(x: Any, axes: tuple[int, ...]) -> Any:
    terms = lax.exp(_shifted(x, axes))
    return terms / _summed(terms, axes)


@_softmax_of.defjvp
def _softmax_of_jvp(axes, primals, tangents):
    (x,), (t,) = primals, tangents
    y = _softmax_of(x, axes)
    return y, y * (t - _summed(y * t, axes))


@partial(custom_jvp, nondiff_argnums=(1,))
def _log_softmax_of(x: Any, axes: tuple[int, ...]) -> Any:
    shifted = _shifted(x, axes)
    return shifted - lax.log(_summed(lax.exp(shifted), axes))


@_log_softmax_of.defjvp
def _log_softmax_of_jvp(axes, primals, tangents):
    (x,), (t,) = primals, tangents
    y = _log_softmax_of(x, axes)
    return y, t - _summed(lax.exp(y) * t, axes)


@compiled("axes", name="softmax")
def _softmax(x, *, axes):
    check_not_bool("softmax", x)
    return _softmax_of(strong(x), axes)


@compiled("axes", name="log_softmax")
def _log_softmax(x, *, axes):
    check_not_bool("log_softmax", x)
    return _log_softmax_of(strong(x), axes)


def softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """Exponentials divided by their sum, ``exp(x) / sum(exp(x))``, without overflow.

    Args:
      x: an array; integers become floats.
      axis: the axis or axes to sum over; all by default.

    Raises:
      ValueError: if an axis does not exist.
      TypeError: if the argument is boolean, or not an array.

    >>> import numpy as np
    >>> softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    return _over_axes(_softmaxes, x, axis)


def log_softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """Logarithm of :func:`softmax`, accurate for small probabilities.

    Args:
      x: an array; integers become floats.
      axis: the axis or axes to sum over; all by default.

    Returns:
      An array of the shape of ``x``. The exponentials sum to 1 along the axes.

    Raises:
      ValueError: if an axis does not exist.
      TypeError: if the argument is boolean, or not an array.

    >>> import numpy as np
    >>> log_softmax(np.array([-1000.0, 0.0])).tolist()
    [-1000.0, 0.0]
    """
    return _over_axes(_log_softmaxes, x, axis)


_softmaxes: Final = FastPath(_softmax)
_log_softmaxes: Final = FastPath(_log_softmax)


def _over_axes(path: FastPath, x: Any, axis: Any) -> Array:
    simple = axis is None or type(axis) is int
    if simple:
        fast: Array | None = path.lookup(axis, x)
        if fast is not None:
            return fast
    check_arrays(path.function.__name__, x)
    axes = axes_of(axis, typeof(x).ndim)
    if simple:
        return path.call(axis, (x,), axes=axes)
    out: Array = path.function(x, axes=axes)
    return out
