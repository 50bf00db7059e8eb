"""Elementary float distributions with shape parameters."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.extend.dimensions import broadcast_shapes
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike

from .._checks import dtype_argument
from .._functions import compiled
from .._promotion import repeated
from . import _draws as draws
from ._keys import check_key, children, typed

_ONE: Final = np.float32(1.0)


def _arguments(name: str, shape: Any, dtype: Any, *parameters: Any) -> dict[str, Any]:
    """Validated static arguments of a sampler whose parameters are no wider than its dtype."""
    draws.check_parameters(name, *parameters)
    dtype = draws.float_dtype(dtype, name)
    draws.check_narrow(name, dtype, *parameters)
    return {"shape": draws.joint_shape(name, shape, *parameters), "dtype": dtype}


@compiled("shape", "dtype")
def _pareto(key: Any, b: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    e = draws.exponential(typed(key), shape, dtype)
    return lax.exp(lax.div(e, draws.parameter(b, dtype, shape)))


def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Pareto samples: at least 1, with density proportional to ``x ** -(b + 1)``.

    Args:
      key: one key, typed or raw. It must not be used again.
      b: positive floats.
      shape: the sample shape, by default that of ``b``, which must broadcast to it.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float, or the shapes do not match.

    >>> from primax_numpy import random
    >>> x = random.pareto(random.key(0), 3.0, (1000,))
    >>> x.shape, float(x.min()) >= 1
    ((1000,), True)
    """
    if out_sharding is not None:
        return with_out_sharding(pareto, out_sharding, key, b, shape, dtype)
    check_key("pareto", key)
    out: Array = _pareto(key, b, **_arguments("pareto", shape, dtype, b))
    return out


@compiled("shape", "dtype")
def _rayleigh(key: Any, scale: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    logs = lax.log(draws.uniform(typed(key), shape, dtype))
    root = lax.sqrt(lax.mul(logs, repeated(draws.number(-2, dtype), shape)))
    return lax.mul(draws.parameter(scale, dtype, shape), root)


def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Rayleigh samples: lengths of normal vectors in two dimensions, times ``scale``.

    Args:
      key: one key, typed or raw. It must not be used again.
      scale: positive floats.
      shape: the sample shape, by default that of ``scale``, which must broadcast to it.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float, or the shapes do not match.

    >>> from primax_numpy import random
    >>> x = random.rayleigh(random.key(0), 2.0, (1000,))
    >>> x.shape, float(x.min()) >= 0
    ((1000,), True)
    """
    if out_sharding is not None:
        return with_out_sharding(rayleigh, out_sharding, key, scale, shape, dtype)
    check_key("rayleigh", key)
    out: Array = _rayleigh(key, scale, **_arguments("rayleigh", shape, dtype, scale))
    return out


@compiled("shape", "dtype")
def _weibull_min(
    key: Any, scale: Any, concentration: Any, *, shape: tuple[int, ...], dtype: Any
) -> Any:
    e = draws.exponential(typed(key), shape, dtype)
    return (e ** (1.0 / concentration)) * scale


def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Weibull samples: ``scale`` times powers ``1 / concentration`` of exponential samples.

    Args:
      key: one key, typed or raw. It must not be used again.
      scale, concentration: parameters that broadcast with ``shape``.
      shape: the shape of the random numbers, before broadcasting with the parameters; by default a
        single random number is drawn.
      dtype: a real float dtype, by default the default float.

    Returns:
      An array of the broadcast shape.

    Raises:
      ValueError: if the dtype is not a float.

    >>> from primax_numpy import random
    >>> x = random.weibull_min(random.key(0), 2.0, 3.0, (1000,))
    >>> x.shape, float(x.min()) >= 0
    ((1000,), True)
    """
    check_key("weibull_min", key)
    draws.check_parameters("weibull_min", scale, concentration)
    dtype = draws.float_dtype(dtype, "weibull_min")
    shape = draws.shape_of(shape, "weibull_min")
    try:
        broadcast_shapes(shape, typeof(scale).shape, typeof(concentration).shape)
    except ValueError:
        raise ValueError(
            f"weibull_min: scale of shape {typeof(scale).shape} and concentration of shape "
            f"{typeof(concentration).shape} do not broadcast with shape={shape}"
        ) from None
    out: Array = _weibull_min(key, scale, concentration, shape=shape, dtype=dtype)
    return out


@compiled("shape", "dtype")
def _lognormal(key: Any, sigma: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    n = draws.normal(typed(key), shape, dtype)
    return lax.exp(lax.mul(n, draws.parameter(sigma, dtype, shape)))


def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = _ONE,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Log-normal samples: their logarithms are normal with standard deviation ``sigma``.

    Args:
      key: one key, typed or raw. It must not be used again.
      sigma: standard deviations, 1 by default.
      shape: the sample shape, by default that of ``sigma``, which must broadcast to it.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float, or the shapes do not match.

    >>> from primax_numpy import random
    >>> x = random.lognormal(random.key(0), 2.0, (1000,))
    >>> x.shape, float(x.min()) > 0
    ((1000,), True)
    """
    if out_sharding is not None:
        return with_out_sharding(lognormal, out_sharding, key, sigma, shape, dtype)
    check_key("lognormal", key)
    draws.check_parameters("lognormal", sigma)
    dtype = draws.inexact_dtype(dtype, "lognormal")
    draws.check_narrow("lognormal", dtype, sigma)
    sample_shape = draws.joint_shape("lognormal", shape, sigma)
    out: Array = _lognormal(key, sigma, shape=sample_shape, dtype=dtype)
    return out


@compiled("shape", "dtype")
def _triangular(
    key: Any, left: Any, mode: Any, right: Any, *, shape: tuple[int, ...], dtype: Any
) -> Any:
    left, mode, right = (draws.parameter(v, dtype, shape) for v in (left, mode, right))
    split = lax.div(lax.sub(mode, left), lax.sub(right, left))
    u = draws.uniform(typed(key), shape, dtype)
    width = lax.sub(right, left)
    rising = lax.sqrt(lax.mul(lax.mul(u, width), lax.sub(mode, left)))
    one = repeated(draws.number(1, dtype), shape)
    falling = lax.sqrt(lax.mul(lax.mul(lax.sub(one, u), width), lax.sub(right, mode)))
    return lax.select(lax.lt(u, split), lax.add(left, rising), lax.sub(right, falling))


def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Triangular samples, whose density rises from ``left`` to ``mode`` and falls to ``right``.

    Args:
      key: one key, typed or raw. It must not be used again.
      left, mode, right: bounds and most frequent value, which broadcast together.
      shape: the sample shape, by default the broadcast shape of the parameters, which must
        broadcast to it.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float, or the shapes do not match.

    >>> from primax_numpy import random
    >>> x = random.triangular(random.key(0), 0.0, 1.0, 4.0, (1000,))
    >>> float(x.min()) >= 0 and float(x.max()) <= 4
    True
    """
    if out_sharding is not None:
        return with_out_sharding(triangular, out_sharding, key, left, mode, right, shape, dtype)
    check_key("triangular", key)
    static = _arguments("triangular", shape, dtype, left, mode, right)
    out: Array = _triangular(key, left, mode, right, **static)
    return out


@compiled("shape", "dtype")
def _wald(key: Any, mean: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    """Wald samples by the method of Michael, Schucany and Haas (The American Statistician 30,
    1976).
    """
    first, second = children(typed(key), 2)
    m = draws.parameter(mean, dtype, shape)
    v = draws.normal(first, shape, dtype)
    z = draws.uniform(second, shape, dtype)
    y = lax.integer_pow(v, 2)
    m_squared = lax.integer_pow(m, 2)
    root = lax.sqrt(m * 4 * y + m_squared * lax.integer_pow(y, 2))
    x = m + m_squared * y / 2 - m / 2 * root
    return lax.select(lax.le(z, m / (m + x)), x, m_squared / x)


def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Wald (inverse Gaussian) samples of a mean, with scale 1.

    Args:
      key: one key, typed or raw. It must not be used again.
      mean: positive floats.
      shape: the sample shape, by default that of ``mean``, which must broadcast to it.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float, or the shapes do not match.

    >>> from primax_numpy import random
    >>> x = random.wald(random.key(0), 2.0, (1000,))
    >>> x.shape, float(x.min()) > 0
    ((1000,), True)
    """
    if out_sharding is not None:
        return with_out_sharding(wald, out_sharding, key, mean, shape, dtype)
    check_key("wald", key)
    out: Array = _wald(key, mean, **_arguments("wald", shape, dtype, mean))
    return out


@compiled("shape", "dtype")
def _geometric(key: Any, p: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    working = dtypes.canonicalize_dtype(typeof(p).dtype)
    if not dtypes.issubdtype(working, np.floating):
        working = dtypes.result_type(working, np.float32)
    p = draws.parameter(p, working, shape)
    u = draws.uniform(typed(key), shape, working)
    one = repeated(draws.number(1, working), shape)
    u = lax.select(lax.eq(u, repeated(draws.number(0, working), shape)), one, u)
    ratio = lax.div(lax.log(u), lax.log1p(lax.neg(p)))
    return lax.convert_element_type(lax.add(lax.floor(ratio), one), dtype)


def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Geometric samples: numbers of trials up to the first success.

    Args:
      key: one key, typed or raw. It must not be used again.
      p: success probabilities.
      shape: the sample shape, by default that of ``p``, which must broadcast to it.
      dtype: an integer dtype, the default one by default.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An integer array of shape ``shape``, with elements of at least 1.

    Raises:
      ValueError: if the dtype is not an integer dtype.

    >>> from primax_numpy import random
    >>> x = random.geometric(random.key(0), 0.5, (1000,))
    >>> x.shape, int(x.min())
    ((1000,), 1)
    """
    if out_sharding is not None:
        return with_out_sharding(geometric, out_sharding, key, p, shape, dtype)
    check_key("geometric", key)
    draws.check_parameters("geometric", p)
    sample_dtype = dtypes.default_int() if dtype is None else dtype_argument(dtype, "geometric")
    if not dtypes.issubdtype(sample_dtype, np.integer):
        raise ValueError(f"dtype argument to `geometric` must be an int dtype, got {sample_dtype}")
    sample_shape = draws.joint_shape("geometric", shape, p)
    out: Array = _geometric(key, p, shape=sample_shape, dtype=sample_dtype)
    return out
