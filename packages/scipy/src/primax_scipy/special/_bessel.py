"""Bessel functions."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

from primax_core import custom_jvp, lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import (
    as_inexact,
    check_arrays,
    compiled,
    elementwise,
    is_complex,
    strong,
)

from .._functions import at_least_single, like


@elementwise
def i0e(x: ArrayLike) -> Array:
    """Exponentially scaled modified Bessel function of order 0, ``exp(-|x|) I0(x)``.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats. It is between 0 and 1.

    Raises:
      TypeError: if the argument is complex, or not an array or a number. Lists are not converted.

    The derivative is ``i1e(x) - sign(x) * i0e(x)``. It does not overflow for large ``x``.

    >>> import numpy as np
    >>> [round(float(v), 4) for v in i0e(np.float32([0.0, 1.0, 1000.0]))]
    [1.0, 0.4658, 0.0126]
    """
    return lax.bessel_i0e(as_inexact(x))


@elementwise
def i1e(x: ArrayLike) -> Array:
    """Exponentially scaled modified Bessel function of order 1, ``exp(-|x|) I1(x)``, an odd
    function.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if the argument is complex, or not an array or a number. Lists are not converted.

    The derivative is ``i0e(x) - i1e(x) * (sign(x) + 1 / x)``, and 1/2 at 0.

    >>> import numpy as np
    >>> [round(float(v), 4) for v in i1e(np.float32([0.0, 1.0, -1.0, 1000.0]))]
    [0.0, 0.2079, -0.2079, 0.0126]
    """
    return lax.bessel_i1e(as_inexact(x))


def _check_not_complex(name: str, x: Any) -> None:
    if is_complex(x):
        raise ValueError(
            f"Unsupported input type to {name}: {typeof(x).dtype}; only real dtypes are supported"
        )


@custom_jvp
def _i0(x: Any) -> Any:
    return lax.exp(lax.abs(x)) * lax.bessel_i0e(x)


@custom_jvp
def _i1(x: Any) -> Any:
    return lax.exp(lax.abs(x)) * lax.bessel_i1e(x)


_i0.defjvp(lambda primals, tangents: (_i0(*primals), tangents[0] * _i1(*primals)))


@_i1.defjvp
def _i1_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y = _i1(x)
    zero = x == 0
    half = lax.full_like(x, 0.5)
    ratio = lax.select(zero, half, y / lax.select(zero, lax.full_like(x, 1), x))
    return y, t * (_i0(x) - ratio)


@elementwise
def i0(x: ArrayLike) -> Array:
    """Modified Bessel function of the first kind and order 0.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats. It overflows for ``float32``
      numbers above about 91; :func:`i0e` does not.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivative is ``i1(x)``.

    >>> import numpy as np
    >>> float(i0(0.0))
    1.0
    >>> [round(float(v), 4) for v in i0(np.float32([0.0, 1.0, -1.0]))]
    [1.0, 1.2661, 1.2661]
    """
    _check_not_complex("i0", x)
    return _i0(as_inexact(x))


@elementwise
def i1(x: ArrayLike) -> Array:
    """Modified Bessel function of the first kind and order 1.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats. It overflows for ``float32``
      numbers above about 91; :func:`i1e` does not.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The function is odd. The derivative is ``i0(x) - i1(x) / x``, and 1/2 at 0.

    >>> import numpy as np
    >>> [round(float(v), 4) for v in i1(np.float32([0.0, 1.0, -1.0]))]
    [0.0, 0.5652, -0.5652]
    """
    _check_not_complex("i1", x)
    return _i1(as_inexact(x))


@partial(custom_jvp, nondiff_argnums=(1, 2))
def _orders(z: Any, v: int, n_iter: int) -> Any:
    """``J_0`` to ``J_v``: downward recurrence of ratios, normalized by Neumann's sum, which is
    1."""
    dtype = typeof(z).dtype
    top = lax.full_like(z, 0.0)
    size = max(n_iter, v + 2)

    def down(ratio: Any, k: Any) -> Any:
        # J_k / J_(k-1) = z / (2k - z J_(k+1) / J_k); a divisor of exactly zero is replaced
        bottom = 2 * k - z * ratio
        tiny = float(dtypes.finfo(dtype).eps)
        bottom = lax.select(bottom == 0, lax.full_like(z, tiny), bottom)
        return (z / bottom,) * 2

    index = lax.iota(dtype, size) + 1
    _, ratios = lax.scan(down, top, index, reverse=True)
    products = lax.associative_scan(lambda a, b: a * b, ratios)
    total = 1 + 2 * lax.reduce_sum(products[1::2], (0,))
    first = lax.expand_dims(1 / total, (0,))
    return lax.concatenate([first, products[:v] * first], 0)


@_orders.defjvp
def _orders_jvp(v, n_iter, primals, tangents):
    (z,), (t,) = primals, tangents
    more = _orders(z, v + 1, n_iter)
    below = lax.concatenate([-more[1:2], more[:v]], 0)
    derivatives = 0.5 * (below - more[1 : v + 2])
    return more[: v + 1], derivatives * lax.expand_dims(t, (0,))


@compiled("v", "n_iter", name="bessel_jn")
def _bessel_jn(z, *, v, n_iter):
    z = strong(z)
    if is_complex(z):
        raise ValueError("bessel_jn does not support complex-valued inputs")
    wide = at_least_single(z)
    return like(_orders(wide, v, n_iter), z)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind, of all orders up to ``v``.

    Args:
      z: real numbers of any shape.
      v: the highest order, a Python integer.
      n_iter: the order at which the recurrence starts; it must be well above ``v`` and ``|z|``.

    Returns:
      ``float[v + 1, ...]``, the orders along the first axis.

    Raises:
      ValueError: if ``v`` is negative, or ``z`` is complex.

    >>> round(float(bessel_jn(1.0, v=1)[1]), 4)
    0.4401
    """
    check_arrays("bessel_jn", z)
    v, n_iter = operator.index(v), operator.index(n_iter)
    if v < 0:
        raise ValueError(f"bessel_jn: v must not be negative, got {v}")
    out: Array = _bessel_jn(z, v=v, n_iter=n_iter)
    return out
