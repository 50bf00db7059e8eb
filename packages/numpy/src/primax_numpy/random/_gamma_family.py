"""Distributions derived from gamma samples."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike

from .._functions import compiled
from .._promotion import repeated
from . import _draws as draws
from ._gamma import check_method, gammas
from ._keys import check_key, children, typed


def _static(name: str, shape: Any, dtype: Any, *parameters: Any) -> dict[str, Any]:
    draws.check_parameters(name, *parameters)
    dtype = draws.float_dtype(dtype, name)
    draws.check_narrow(name, dtype, *parameters)
    return {"shape": draws.joint_shape(name, shape, *parameters), "dtype": dtype}


@compiled("shape", "dtype", "method")
def _beta(key: Any, a: Any, b: Any, *, shape: tuple[int, ...], dtype: Any, method: str) -> Any:
    first, second = children(typed(key), 2)
    a = gammas(first, draws.parameter(a, dtype, shape), shape, dtype, True, method)
    b = gammas(second, draws.parameter(b, dtype, shape), shape, dtype, True, method)
    most = lax.max(a, b)
    a, b = lax.exp(lax.sub(a, most)), lax.exp(lax.sub(b, most))
    return lax.div(a, lax.add(a, b))


def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Beta samples with parameters ``a`` and ``b``: numbers in ``[0, 1]``.

    Args:
      key: one key, typed or raw. It must not be used again.
      a, b: positive floats that broadcast together.
      shape: the sample shape, by default the broadcast shape of the parameters, which must
        broadcast to it.
      dtype: a real float dtype, by default the default float.
      method: the method of gamma sampling, see :func:`gamma`.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float, or the shapes do not match.

    Samples are differentiable with respect to the parameters.

    >>> from primax_numpy import random
    >>> x = random.beta(random.key(0), 2.0, 3.0, (1000,))
    >>> float(x.min()) >= 0 and float(x.max()) <= 1
    True
    """
    if out_sharding is not None:
        return with_out_sharding(beta, out_sharding, key, a, b, shape, dtype, method=method)
    check_key("beta", key)
    check_method("beta", method)
    out: Array = _beta(key, a, b, method=method, **_static("beta", shape, dtype, a, b))
    return out


@compiled("shape", "dtype")
def _dirichlet(key: Any, alpha: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    full = (*shape, alpha.shape[-1])
    logs = gammas(typed(key), alpha, full, dtype, True)
    axis = len(shape)
    most = lax.expand_dims(lax.reduce_max(logs, (axis,)), (axis,))
    e = lax.exp(lax.sub(logs, repeated(lax.stop_gradient(most), full)))
    wide = np.dtype(np.float32) if e.dtype.itemsize < 4 else e.dtype
    total = lax.reduce_sum(lax.convert_element_type(e, wide), (axis,))
    total = lax.convert_element_type(total, e.dtype)
    return lax.div(e, repeated(lax.expand_dims(total, (axis,)), full))


def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Dirichlet samples: nonnegative vectors that sum to 1 along the last axis.

    Args:
      key: one key, typed or raw. It must not be used again.
      alpha: ``float[..., n]``, positive.
      shape: the batch shape, by default that of ``alpha``, which must broadcast to it.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``(*shape, n)``.

    Raises:
      ValueError: if ``alpha`` is a scalar, or the shapes do not match.

    >>> from primax_numpy import random
    >>> import numpy as np
    >>> x = random.dirichlet(random.key(0), np.ones(3, np.float32), (4,))
    >>> x.shape, np.asarray(x.sum(-1)).round(3).tolist()
    ((4, 3), [1.0, 1.0, 1.0, 1.0])
    """
    if out_sharding is not None:
        return with_out_sharding(dirichlet, out_sharding, key, alpha, shape, dtype)
    check_key("dirichlet", key)
    draws.check_parameters("dirichlet", alpha)
    aval = typeof(alpha)
    dtype = draws.float_dtype(dtype, "dirichlet")
    if not aval.ndim:
        raise ValueError("dirichlet requires alpha.ndim >= 1, got a scalar")
    batch = aval.shape[:-1]
    batch_shape = batch if shape is None else draws.shape_of(shape, "dirichlet")
    draws.check_fits("dirichlet", [batch], batch_shape)
    out: Array = _dirichlet(key, alpha, shape=batch_shape, dtype=dtype)
    return out


def _chisquares(
    key: Any, df: Any, shape: tuple[int, ...], dtype: Any, method: str = "exact"
) -> Any:
    df = draws.parameter(df, dtype, shape)
    two = repeated(draws.number(2, dtype), shape)
    logs = gammas(key, lax.div(df, two), shape, dtype, True, method)
    return lax.mul(two, lax.exp(logs))


@compiled("shape", "dtype", "method")
def _chisquare(key: Any, df: Any, *, shape: tuple[int, ...], dtype: Any, method: str) -> Any:
    return _chisquares(typed(key), df, shape, dtype, method)


def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Chi-square samples with ``df`` degrees of freedom.

    Args:
      key: one key, typed or raw. It must not be used again.
      df: positive floats.
      shape: the sample shape, by default that of ``df``, which must broadcast to it.
      dtype: a real float dtype, by default the default float.
      method: the method of gamma sampling, see :func:`gamma`.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float, or the shapes do not match.

    >>> from primax_numpy import random
    >>> x = random.chisquare(random.key(0), 3.0, (1000,))
    >>> x.shape, float(x.min()) >= 0
    ((1000,), True)
    """
    if out_sharding is not None:
        return with_out_sharding(chisquare, out_sharding, key, df, shape, dtype, method=method)
    check_key("chisquare", key)
    check_method("chisquare", method)
    out: Array = _chisquare(key, df, method=method, **_static("chisquare", shape, dtype, df))
    return out


@compiled("shape", "dtype")
def _f(key: Any, dfnum: Any, dfden: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    below, above = children(typed(key), 2)
    dfnum, dfden = (draws.parameter(v, dtype, shape) for v in (dfnum, dfden))
    numerator = lax.div(_chisquares(above, dfnum, shape, dtype), dfnum)
    denominator = lax.div(_chisquares(below, dfden, shape, dtype), dfden)
    return lax.div(numerator, denominator)


def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """F samples: ratios of chi-square samples divided by their degrees of freedom.

    Args:
      key: one key, typed or raw. It must not be used again.
      dfnum, dfden: degrees of freedom of the numerator and the denominator, positive floats.
      shape: the sample shape, by default the broadcast shape of the parameters, which must
        broadcast to it.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float, or the shapes do not match.

    >>> from primax_numpy import random
    >>> x = random.f(random.key(0), 3.0, 5.0, (1000,))
    >>> x.shape, float(x.min()) >= 0
    ((1000,), True)
    """
    if out_sharding is not None:
        return with_out_sharding(f, out_sharding, key, dfnum, dfden, shape, dtype)
    check_key("f", key)
    out: Array = _f(key, dfnum, dfden, **_static("f", shape, dtype, dfnum, dfden))
    return out


@compiled("shape", "dtype")
def _t(key: Any, df: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = children(typed(key), 2)
    df = draws.parameter(df, dtype, shape)
    n = draws.normal(first, shape, dtype)
    half = lax.div(df, repeated(draws.number(2, dtype), shape))
    g = gammas(second, half, shape, dtype, False)
    return lax.mul(n, lax.sqrt(lax.div(half, g)))


def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples of Student's t distribution with ``df`` degrees of freedom.

    Args:
      key: one key, typed or raw. It must not be used again.
      df: positive floats.
      shape: the sample shape, by default that of ``df``, which must broadcast to it.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float, or the shapes do not match.

    >>> from primax_numpy import random
    >>> random.t(random.key(0), 5.0, (2, 3)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return with_out_sharding(t, out_sharding, key, df, shape, dtype)
    check_key("t", key)
    out: Array = _t(key, df, **_static("t", shape, dtype, df))
    return out


@compiled("shape", "dtype")
def _generalized_normal(key: Any, p: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    return _generalized(typed(key), p, shape, dtype)


def _generalized(key: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = children(key, 2)
    g = gammas(first, 1 / p, shape, dtype, False)
    r = draws.signs(second, shape, dtype)
    return r * g ** (1 / p)


def generalized_normal(
    key: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Samples with density proportional to ``exp(-abs(x) ** p)``: Laplace for 1.

    For 2 the samples are normal with variance one half.

    Args:
      key: one key, typed or raw. It must not be used again.
      p: the exponent, a positive number.
      shape: the sample shape, a size or a sequence of sizes, which must be concrete.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the dtype is not a float.

    >>> from primax_numpy import random
    >>> random.generalized_normal(random.key(0), 4.0, (2, 3)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return with_out_sharding(generalized_normal, out_sharding, key, p, shape, dtype)
    check_key("generalized_normal", key)
    draws.check_parameters("generalized_normal", p)
    dtype = draws.float_dtype(dtype, "generalized_normal")
    sample_shape = draws.joint_shape("generalized_normal", shape, p)
    out: Array = _generalized_normal(key, p, shape=sample_shape, dtype=dtype)
    return out


@compiled("d", "shape", "dtype")
def _ball(key: Any, p: Any, *, d: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform samples in the unit ball, by Barthe, Guédon, Mendelson and Naor (Annals of
    Probability 33, 2005).
    """
    first, second = children(typed(key), 2)
    g = _generalized(first, p, (*shape, d), dtype)
    e = draws.exponential(second, shape, dtype)
    axis = len(shape)
    powers = lax.abs(g) ** p
    wide = np.dtype(np.float32) if powers.dtype.itemsize < 4 else powers.dtype
    total = lax.reduce_sum(lax.convert_element_type(powers, wide), (axis,))
    radius = (lax.convert_element_type(total, powers.dtype) + e) ** (1 / p)
    return g / lax.expand_dims(radius, (axis,))


def ball(
    key: ArrayLike,
    d: int,
    p: ArrayLike = 2,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Uniform samples in the unit ball of the ``p``-norm in ``d`` dimensions.

    Args:
      key: one key, typed or raw. It must not be used again.
      d: the number of dimensions, a concrete integer.
      p: the order of the norm, by default 2, the Euclidean norm.
      shape: the sample shape, a size or a sequence of sizes, which must be concrete.
      dtype: a real float dtype, by default the default float.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      ``dtype[*shape, d]``.

    Raises:
      TypeError: if ``d`` is not an integer.
      ValueError: if ``d`` is negative, or ``p`` does not broadcast to the result.

    >>> from primax_numpy import random
    >>> x = random.ball(random.key(0), 3, shape=(1000,))
    >>> x.shape, float((x * x).sum(-1).max()) < 1.001
    ((1000, 3), True)
    """
    if out_sharding is not None:
        return with_out_sharding(ball, out_sharding, key, d, p, shape, dtype)
    check_key("ball", key)
    draws.check_parameters("ball", p)
    dtype = draws.float_dtype(dtype, "ball")
    shape, d = draws.shape_of(shape, "ball"), operator.index(d)
    if d < 0:
        raise ValueError(f"ball: the number of dimensions must not be negative, got {d}")
    draws.check_fits("ball", [typeof(p).shape], (*shape, d))
    if not dtypes.issubdtype(typeof(p).dtype, np.floating):
        p = float(p) if isinstance(p, int) else lax.convert_element_type(p, dtype)
    out: Array = _ball(key, p, d=d, shape=shape, dtype=dtype)
    return out
