"""Smooth activations: the logistic function, softplus, and gated units.

All have finite derivatives at both infinities, and small results have full relative accuracy.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import custom_jvp, lax
from primax_core.extend import Array, FastPath, dtypes, inexact, promoted
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import (
    as_inexact,
    check_arrays,
    check_not_bool,
    compiled,
    elementwise,
    is_complex,
    one_axis,
    strong,
)
from primax_numpy.exponentials import logistic, logistic_sides

from ._functions import check_inexact, with_float

# The logistic function and softplus


@elementwise
def sigmoid(x: ArrayLike) -> Array:
    """Logistic function ``1 / (1 + exp(-x))``.

    Args:
      x: a float or complex array, or a number of that kind.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if the dtype is an integer or boolean, or ``x`` is not an array or a number.

    The derivative, ``sigmoid(x) * sigmoid(-x)``, keeps its relative accuracy for large ``x`` and is
    0, not NaN, at both infinities.

    >>> float(sigmoid(0.0))
    0.5
    >>> np.float64(sigmoid(np.array([-2.0, 2.0, np.inf]))).round(4).tolist()
    [0.1192, 0.8808, 1.0]
    """
    check_inexact("sigmoid", x)
    return lax.logistic(x) if is_complex(x) else logistic(x)


@custom_jvp
def _softplus(x: Any) -> Any:
    return pnp.maximum(x, 0) + lax.log1p(lax.exp(-lax.abs(x)))


@_softplus.defjvp
def _softplus_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _softplus(x), t * logistic(x)


def _smooth_positive_part(name: str, x: Any) -> Any:
    boolean = typeof(x).dtype == np.bool_
    x = with_float(name, x) if boolean else as_inexact(x)
    return pnp.logaddexp(x, 0.0) if is_complex(x) else _softplus(x)


@elementwise
def softplus(x: ArrayLike) -> Array:
    """``log(1 + exp(x))``, a smooth rectifier; its derivative is :func:`sigmoid`.

    Args:
      x: an array or a number; integers and booleans become floats.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The result is about ``exp(x)`` for negative numbers and about ``x`` for large ones, without
    overflow.

    >>> np.float64(softplus(np.array([-1.0, 0.0, 1000.0]))).round(4).tolist()
    [0.3133, 0.6931, 1000.0]
    """
    return _smooth_positive_part("softplus", x)


@elementwise
def log_sigmoid(x: ArrayLike) -> Array:
    """Logarithm of :func:`sigmoid`, accurate for arguments of both signs.

    Args:
      x: an array or a number; integers become floats.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if the dtype is boolean, or ``x`` is not an array or a number.

    The derivative is ``sigmoid(-x)``.

    >>> float(log_sigmoid(-1000.0))
    -1000.0
    >>> np.float64(log_sigmoid(np.array([0.0, 2.0]))).round(4).tolist()
    [-0.6931, -0.1269]
    """
    check_not_bool("log_sigmoid", x)
    return -_smooth_positive_part("log_sigmoid", -as_inexact(x))


# Gated activations: x times a gate that saturates at 0 and 1


def _far(x: Any) -> float:
    """Magnitude from which gates saturate in the dtype of an array."""
    dtype = typeof(x).dtype
    return min(750.0 if dtype.itemsize == 8 else 104.0, float(dtypes.finfo(dtype).max))


def _gated(x: Any, gate: Any) -> Any:
    # 0 times minus infinity would be NaN.
    return pnp.maximum(x, -_far(x)) * gate


def _near(x: Any) -> Any:
    """The array clamped to the range where gates have nonzero derivatives."""
    limit = _far(x)
    return lax.clamp(lax.full_like(x, -limit), x, lax.full_like(x, limit))


@elementwise
def silu(x: ArrayLike) -> Array:
    """``x * sigmoid(x)``, also called swish (Elfwing et al., 2017; Ramachandran et al., 2017).

    Args:
      x: a float or complex array, or a number of that kind.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if the dtype is an integer or boolean, or ``x`` is not an array or a number.

    The derivative is finite everywhere: 0 at minus infinity, 1/2 at 0 and 1 at infinity.

    >>> silu(np.float32([-np.inf, 0.0, 100.0])).tolist()
    [-0.0, 0.0, 100.0]
    >>> np.float64(silu(np.array([-1.0, 1.0]))).round(4).tolist()
    [-0.2689, 0.7311]
    """
    check_inexact("silu", x)
    return x * lax.logistic(x) if is_complex(x) else _silu(x)


@custom_jvp
def _silu(x: Any) -> Any:
    return _gated(x, lax.logistic(x))


@_silu.defjvp
def _silu_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    near = _near(x)
    y, z = logistic_sides(near)
    return _gated(x, y), t * (y + near * (y * z))


swish: Final = silu


@elementwise
def mish(x: ArrayLike) -> Array:
    """``x * tanh(softplus(x))`` (Misra, 2019).

    Args:
      x: an array or a number; integers and booleans become floats.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is finite everywhere: 0 at minus infinity, 0.6 at 0 and 1 at infinity.

    >>> np.float64(mish(np.array([-1.0, 0.0, 2.0]))).round(4).tolist()
    [-0.3034, 0.0, 1.944]
    """
    boolean = typeof(x).dtype == np.bool_
    x = with_float("mish", x) if boolean else as_inexact(x)
    return x * lax.tanh(pnp.logaddexp(x, 0.0)) if is_complex(x) else _mish(x)


@custom_jvp
def _mish(x: Any) -> Any:
    return _gated(x, _mish_sides(x)[0])


@_mish.defjvp
def _mish_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    near = _near(x)
    y, z = _mish_sides(near)
    return _gated(x, y), t * (y + near * (z * (1 + y) * logistic(near)))


@custom_jvp
def _mish_sides(x: Any) -> Any:
    """``y = tanh(softplus(x))`` and ``1 - y``, both computed from one exponential."""
    e = lax.exp(-lax.abs(x))
    right = x >= 0
    y = lax.select(right, 1 + 2 * e, e * (2 + e))
    z = lax.select(right, 2 * (e * e), lax.full_like(e, 2))
    total = y + z
    return y / total, z / total


@_mish_sides.defjvp
def _mish_sides_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y, z = _mish_sides(x)
    derivative = t * (z * (1 + y) * logistic(x))
    return (y, z), (derivative, -derivative)


@compiled("approximate", name="gelu")
def _gelu(x, *, approximate):
    x = strong(x)
    if is_complex(x):
        return x * (lax.logistic(_cubic(x)) if approximate else 0.5 * (1 + lax.erf(x * _ROOT)))
    return _tanh_gelu(x) if approximate else _normal_gelu(x)


_ROOT: Final = math.sqrt(0.5)
_SCALE: Final = 2.0 * math.sqrt(2.0 / math.pi)
_CUBIC_TERM: Final = 0.044715


def _cubic(x: Any) -> Any:
    # (1 + tanh(u)) / 2 is the logistic function of 2 u, which is accurate for negative u.
    return _SCALE * (x * (1 + _CUBIC_TERM * (x * x)))


@custom_jvp
def _tanh_gelu(x: Any) -> Any:
    return _gated(x, lax.logistic(_cubic(x)))


@_tanh_gelu.defjvp
def _tanh_gelu_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    near = _near(x)
    y, z = logistic_sides(_cubic(near))
    inner_derivative = _SCALE * (1 + (3 * _CUBIC_TERM) * (near * near))
    return _gated(x, y), t * (y + near * (y * z) * inner_derivative)


@custom_jvp
def _normal_gelu(x: Any) -> Any:
    return _gated(x, 0.5 * lax.erfc(x * -_ROOT))


@_normal_gelu.defjvp
def _normal_gelu_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    near = _near(x)
    y = _normal_cdf(near)
    return _gated(x, y), t * (y + near * _normal_density(near))


@custom_jvp
def _normal_cdf(x: Any) -> Any:
    return 0.5 * lax.erfc(x * -_ROOT)


@_normal_cdf.defjvp
def _normal_cdf_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _normal_cdf(x), t * _normal_density(x)


def _normal_density(x: Any) -> Any:
    return (1 / math.sqrt(2 * math.pi)) * lax.exp(-0.5 * (x * x))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """``x`` times the normal CDF of ``x`` (Hendrycks and Gimpel, 2016).

    Args:
      x: an array; integers become floats.
      approximate: approximate the CDF by ``(1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))) / 2``,
        with an error of less than 0.0003.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    With ``approximate`` true, the derivative is that of the approximation. It is finite everywhere:
    0 at minus infinity and 1 at infinity.

    >>> f"{float(gelu(1.0, approximate=False)):.5f}"
    '0.84134'
    >>> f"{float(gelu(1.0)):.5f}"
    '0.84119'
    """
    fast: Array | None = _gelus.lookup(bool(approximate), x)
    if fast is not None:
        return fast
    check_arrays("gelu", x)
    return _gelus.call(bool(approximate), (x,), approximate=bool(approximate))


_gelus: Final = FastPath(_gelu)


@compiled("axis", name="glu")
def _glu(x, *, axis):
    check_inexact("glu", x)
    half = typeof(x).shape[axis] // 2
    first = lax.slice_in_dim(x, 0, half, axis=axis)
    second = lax.slice_in_dim(x, half, 2 * half, axis=axis)
    return first * (lax.logistic if is_complex(x) else logistic)(second)


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Gated linear unit: the first half of an axis times the sigmoid of the second half.

    From Dauphin et al., 2017.

    Args:
      x: ``float[..., 2 n, ...]``, or complex numbers.
      axis: the axis to split, the last by default.

    Returns:
      An array of the shape of ``x``, with the size ``n`` of the axis.

    Raises:
      ValueError: if the axis does not exist, or its size is odd.
      TypeError: if the dtype is an integer or boolean.

    >>> glu(np.array([[1.0, 2.0, 0.0, 0.0]])).tolist()
    [[0.5, 1.0]]
    """
    fast: Array | None = _glus.lookup(axis, x) if type(axis) is int else None
    if fast is not None:
        return fast
    check_arrays("glu", x)
    shape, key = typeof(x).shape, axis
    axis = one_axis(axis, len(shape))
    if shape[axis] % 2:
        raise ValueError(
            f"glu: the size of axis {axis} must be even, because it is split into halves; got "
            f"shape {shape}"
        )
    return _glus.call(key, (x,), axis=axis)


_glus: Final = FastPath(_glu)


# Algebraic activations


@custom_jvp
def _squareplus(x: Any, b: Any) -> Any:
    limit = _steep(typeof(x).dtype)
    near = pnp.clip(x, -limit, limit)
    r = _hypotenuse(near, b)
    # For negative x, x + r would cancel.
    out = pnp.where(near < 0, (0.5 * b) / (r - near), 0.5 * (near + r))
    return pnp.where(x >= limit, x, out)


@_squareplus.defjvp
def _squareplus_jvp(primals, tangents):
    (x, b), (tx, tb) = primals, tangents
    limit = _steep(typeof(x).dtype)
    near = pnp.clip(x, -limit, limit)
    r = _hypotenuse(near, b)
    return _squareplus(x, b), tx * (_squareplus(near, b) / r) + tb * (0.25 / r)


def _hypotenuse(x: Any, b: Any) -> Any:
    return lax.sqrt(x * x + b)


def _steep(dtype: Any) -> float:
    """Magnitude at which ``sqrt(x**2 + b)`` equals ``x``, while the square is finite."""
    return 0.5 * math.sqrt(float(dtypes.finfo(dtype).max))


@elementwise
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """``(x + sqrt(x**2 + b)) / 2``, a smooth rectifier without exponentials (Barron, 2021).

    Args:
      x: an array; integers become floats.
      b: the smoothness, a positive number or an array; 0 gives :func:`relu`.

    Returns:
      An array of the common shape of ``x`` and ``b``, in their promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number.

    The derivative with respect to ``x`` is 1/2 at 0, for positive ``b``. The result has full
    relative accuracy for negative ``x``, and does not overflow.

    >>> squareplus(np.array([0.0, 1.5])).tolist()
    [1.0, 2.0]
    """
    x = lax.convert_element_type(x, np.int32) if typeof(x).dtype == np.bool_ else x
    x, b = pnp.broadcast_arrays(*promoted("squareplus", x, b, inexact))
    if is_complex(x):
        return 0.5 * (x + lax.sqrt(x * x + b))
    return _squareplus(x, b)


@custom_jvp
def _soft_sign(x: Any) -> Any:
    return lax.select(lax.abs(x) == np.inf, lax.sign(x), x / (lax.abs(x) + 1))


@_soft_sign.defjvp
def _soft_sign_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    q = 1 / (lax.abs(x) + 1)
    return _soft_sign(x), t * (q * q)


@elementwise
def soft_sign(x: ArrayLike) -> Array:
    """``x / (1 + abs(x))``.

    Args:
      x: an array or a number; integers and booleans become floats.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The result is between -1 and 1; the derivative, ``1 / (1 + abs(x))**2``, is 1 at 0 and 0 at both
    infinities.

    >>> soft_sign(np.float32([-1.0, 0.0, np.inf])).tolist()
    [-0.5, 0.0, 1.0]
    """
    boolean = typeof(x).dtype == np.bool_
    x = with_float("soft_sign", x) if boolean else as_inexact(x)
    return x / (lax.abs(x) + 1) if is_complex(x) else _soft_sign(x)


# Identity


def identity(x: ArrayLike) -> Array:
    """The argument as an array.

    Args:
      x: an array or a number, of any dtype.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is 1.

    >>> float(identity(2.0))
    2.0
    >>> identity(np.array([1, 2])).tolist()
    [1, 2]
    """
    check_arrays("identity", x)
    return pnp.asarray(x)
