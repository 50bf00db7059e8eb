"""Parameter initializers: functions of a key, a shape and a dtype.

Random values are bit-for-bit equal to the reference.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, dtypes, runtime
from primax_core.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from primax_numpy import random
from primax_numpy.declaring import axes_of, compiled


@runtime_checkable
class Initializer(Protocol):
    """Protocol of initializers: functions from a key to an array.

    Args:
      key: a random key, such as `primax.random.key(0)`.
      shape: the shape of the result; a number means one axis.
      dtype: the dtype of the result, by default that passed to the factory function.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.
    """

    def __call__(
        self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None
    ) -> Array: ...


def _shape_of(shape: Any) -> tuple[int, ...]:
    if hasattr(shape, "__index__") and not np.ndim(shape):
        return (operator.index(shape),)
    return tuple([operator.index(d) for d in shape])


def _dtype_of(dtype: Any, default: Any) -> Any:
    requested = default if dtype is None else dtype
    if requested is None:
        return dtypes.default_float()
    return dtypes.canonicalize_user_dtype(requested, "initializer")


def _is_complex(dtype: Any) -> bool:
    return bool(dtypes.issubdtype(dtype, np.complexfloating))


# Constants


def zeros(
    key: ArrayLike,
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Zeros; the key is unused.

    Args:
      key: unused, and may be ``None``.
      shape: the shape of the result; a number means one axis.
      dtype: the dtype of the result, the default float by default.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of zeros.

    >>> zeros(None, (2,)).tolist()
    [0.0, 0.0]
    """
    if out_sharding is not None:
        return runtime.with_out_sharding(zeros, out_sharding, key, shape, dtype)
    return pnp.zeros(_shape_of(shape), _dtype_of(dtype, None))


def ones(
    key: ArrayLike,
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Ones; the key is unused.

    Args:
      key: unused, and may be ``None``.
      shape: the shape of the result; a number means one axis.
      dtype: the dtype of the result, the default float by default.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of ones.

    >>> ones(None, (2,)).tolist()
    [1.0, 1.0]
    """
    if out_sharding is not None:
        return runtime.with_out_sharding(ones, out_sharding, key, shape, dtype)
    return pnp.ones(_shape_of(shape), _dtype_of(dtype, None))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with a constant value.

    Args:
      value: a number or an array that broadcasts to the shape.
      dtype: the default dtype of the results.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    >>> constant(2.5)(None, (2,)).tolist()
    [2.5, 2.5]
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Array:
        if out_sharding is not None:
            return runtime.with_out_sharding(init, out_sharding, key, shape, dtype)
        return pnp.full(_shape_of(shape), value, _dtype_of(dtype, None))

    return init


# Random values of a scale


_TRUNCATED_SPREAD: Final = 0.87962566103423978
"""Standard deviation of the standard normal distribution truncated to [-2, 2]."""
_TRUNCATED_SPREAD_COMPLEX: Final = 0.95311164380491208
"""Standard deviation of the complex normal distribution truncated to the disk of radius 2."""


@compiled("shape", "dtype", name="normal")
def _normal(key, factor, *, shape, dtype):
    if _is_complex(dtype):
        return random.normal(key, shape, dtype) * factor
    # The normal quantile function, with its factor and the scale multiplied first, like the #
    # reference.
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)[()]
    u = random.uniform(key, shape, dtype, low, np.ones((), dtype)[()])
    root = np.asarray(math.sqrt(2), dtype)[()]
    return lax.erf_inv(u) * (root * factor)


@compiled("shape", "dtype", name="uniform")
def _uniform(key, factor, *, shape, dtype):
    return random.uniform(key, shape, dtype) * factor


@compiled("shape", "dtype", name="uniform")
def _symmetric_uniform(key, factor, *, shape, dtype):
    if _is_complex(dtype):
        return _in_disk(key, lax.sqrt, shape, dtype) * factor
    return random.uniform(key, shape, dtype, -1.0) * factor


@compiled("shape", "dtype", "lower", "upper", name="truncated_normal")
def _truncated_normal(key, factor, *, shape, dtype, lower, upper):
    if _is_complex(dtype):
        within = 1 - math.exp(-(upper**2))
        return _in_disk(key, lambda u: lax.sqrt(-lax.log1p(-within * u)), shape, dtype) * factor
    return random.truncated_normal(key, lower, upper, shape, dtype) * factor


def _in_disk(key: Any, radius: Callable[[Any], Any], shape: Any, dtype: Any) -> Any:
    """Complex numbers of uniform phase, with a radius that is a function of a uniform sample."""
    real = np.finfo(dtype).dtype
    first, second = (lax.index_in_dim(random.split(key), i, keepdims=False) for i in (0, 1))
    size = radius(random.uniform(first, shape, real))
    angle = (2 * math.pi) * random.uniform(second, shape, real)
    return lax.complex(size * lax.cos(angle), size * lax.sin(angle))


def _number(value: Any, dtype: Any) -> Any:
    """A factor in a dtype, concrete or traced."""
    if isinstance(value, (int, float, complex, np.generic, np.ndarray)):
        return np.asarray(value).astype(dtype)[()]
    return lax.convert_element_type(value, dtype)


def _root(value: Any, dtype: Any) -> Any:
    x = _number(value, dtype)
    return np.sqrt(x).astype(dtype) if isinstance(x, np.generic) else lax.sqrt(x)


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with uniform samples in ``[0, scale)``.

    Args:
      scale: a number.
      dtype: the default dtype of the results, a real float.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    Raises:
      TypeError: in a call, if the dtype is not a real float one.

    >>> float(uniform(2.0)(random.key(1), (3,)).max()) < 2.0
    True
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Array:
        if out_sharding is not None:
            return runtime.with_out_sharding(init, out_sharding, key, shape, dtype)
        dtype = _dtype_of(dtype, None)
        out: Array = _uniform(key, _number(scale, dtype), shape=_shape_of(shape), dtype=dtype)
        return out

    return init


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with normal samples of mean 0.

    Args:
      stddev: the standard deviation.
      dtype: the default dtype of the results, a float or complex one.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    Raises:
      ValueError: in a call, if the dtype is not a float or complex one.

    >>> bool(abs(normal(2.0)(random.key(0), (1000,)).std() - 2.0) < 0.2)
    True
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Array:
        if out_sharding is not None:
            return runtime.with_out_sharding(init, out_sharding, key, shape, dtype)
        dtype = _dtype_of(dtype, None)
        _check_inexact("normal", dtype)
        out: Array = _normal(key, _number(stddev, dtype), shape=_shape_of(shape), dtype=dtype)
        return out

    return init


def _check_inexact(name: str, dtype: Any) -> None:
    if not dtypes.issubdtype(dtype, np.inexact):
        raise ValueError(f"{name}: dtype must be a float or complex dtype, got {dtype.name}")


def truncated_normal(
    stddev: ArrayLike = 1e-2,
    dtype: DTypeLike | None = None,
    lower: float = -2.0,
    upper: float = 2.0,
) -> Initializer:
    """An initializer with truncated normal samples of mean 0.

    Args:
      stddev: the standard deviation before truncation; with the default bounds that of the results
        is 0.88 times as large.
      dtype: the default dtype of the results, a real float.
      lower, upper: the bounds, in units of ``stddev``.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    Raises:
      ValueError: in a call, if the dtype is not a float one.

    >>> bool((abs(truncated_normal(0.5)(random.key(0), (100,))) <= 1.0).all())
    True
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Array:
        if out_sharding is not None:
            return runtime.with_out_sharding(init, out_sharding, key, shape, dtype)
        dtype = _dtype_of(dtype, None)
        if not dtypes.issubdtype(dtype, np.floating):
            raise ValueError(f"truncated_normal: dtype must be a float dtype, got {dtype.name}")
        bounds = {"lower": float(lower), "upper": float(upper)}
        out: Array = _truncated_normal(
            key, _number(stddev, dtype), shape=_shape_of(shape), dtype=dtype, **bounds
        )
        return out

    return init


# Scales from fan-in and fan-out

_MODES: Final = ("fan_in", "fan_out", "fan_avg", "fan_geo_avg")
_DISTRIBUTIONS: Final = ("truncated_normal", "normal", "uniform")
_Axes = int | Sequence[int]


def _fans(shape: tuple[int, ...], in_axis: Any, out_axis: Any, batch_axis: Any) -> Any:
    """Fan-in (inputs of an output) and fan-out (outputs of an input)."""
    if len(shape) < 2 and in_axis == -2:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor "
            f"with the default in_axis, got shape {shape}. Must be at least 2D or specify in_axis "
            "explicitly."
        )
    parts = [axes_of(axis, len(shape)) for axis in (in_axis, out_axis, batch_axis)]
    n_in, n_out, batch = (math.prod([shape[i] for i in axes]) for axes in parts)
    known = n_in * n_out * batch
    field = math.prod(shape) / known if known else 1
    return n_in * field, n_out * field


def variance_scaling(
    scale: ArrayLike, mode: str, distribution: str, in_axis: _Axes = -2, out_axis: _Axes = -1,
    batch_axis: _Axes = (), dtype: DTypeLike | None = None,
) -> Initializer:  # fmt: skip
    """An initializer with random samples of variance ``scale / n``, which preserves the variance
    of activations, or of gradients, through layers.

    Args:
      scale: a positive number.
      mode: the definition of ``n``: ``"fan_in"`` the number of inputs of each output,
        ``"fan_out"`` the number of outputs of each input, ``"fan_avg"`` and ``"fan_geo_avg"``
        their arithmetic and geometric means. Axes that are not named, such as the spatial axes of
        a kernel, count for both.
      distribution: ``"normal"``, ``"truncated_normal"`` (at two standard deviations) or
        ``"uniform"`` (with mean 0). Complex samples are in a disk instead of an interval.
      in_axis, out_axis: the axes of inputs and of outputs.
      batch_axis: axes of independent weights, which are ignored.
      dtype: the default dtype of the results, a float or complex one.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    Raises:
      ValueError: in a call, if the mode or the distribution is unknown, the shape lacks an axis,
        or the dtype is an integer.

    >>> init = variance_scaling(1.0, "fan_in", "uniform")
    >>> bool((abs(init(random.key(0), (3, 5))) <= 1.0).all())
    True
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Array:
        if out_sharding is not None:
            return runtime.with_out_sharding(init, out_sharding, key, shape, dtype)
        dtype, shape = _dtype_of(dtype, None), _shape_of(shape)
        if mode not in _MODES:
            raise ValueError(
                f"variance_scaling: mode must be one of {', '.join(_MODES)}; got {mode!r}"
            )
        if distribution not in _DISTRIBUTIONS:
            raise ValueError(
                f"variance_scaling: distribution must be one of {', '.join(_DISTRIBUTIONS)}; got "
                f"{distribution!r}"
            )
        _check_inexact("variance_scaling", dtype)
        if isinstance(scale, (int, float)) and scale < 0:
            raise ValueError(f"variance_scaling: scale must not be negative, got {scale}")
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        n = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }[mode]
        return _of_variance(key, scale / (n or 1), distribution, shape, dtype)

    return init


def _of_variance(key: Any, variance: Any, distribution: str, shape: Any, dtype: Any) -> Array:
    static = {"shape": shape, "dtype": dtype}
    out: Array
    if distribution == "normal":
        out = _normal(key, _root(variance, dtype), **static)
    elif distribution == "uniform":
        times = _number(2 if _is_complex(dtype) else 3, dtype)
        out = _symmetric_uniform(key, _root(times * _number(variance, dtype), dtype), **static)
    else:
        spread = _TRUNCATED_SPREAD_COMPLEX if _is_complex(dtype) else _TRUNCATED_SPREAD
        factor = _root(variance, dtype) / _number(spread, dtype)
        out = _truncated_normal(key, factor, **static, lower=-2.0, upper=2.0)
    return out


def glorot_uniform(
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Uniform samples of variance ``2 / (fan_in + fan_out)`` (Glorot and Bengio, 2010).

    Args:
      in_axis, out_axis, batch_axis, dtype: as for :func:`variance_scaling`, whose errors apply.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    >>> bool((abs(glorot_uniform()(random.key(0), (3, 6))) <= (2 / 3) ** 0.5).all())
    True
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Truncated normal samples of variance ``2 / (fan_in + fan_out)`` (Glorot and Bengio, 2010).

    Args:
      in_axis, out_axis, batch_axis, dtype: as for :func:`variance_scaling`, whose errors apply.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    >>> bool((abs(glorot_normal()(random.key(0), (3, 6))) <= 1.08).all())
    True
    """
    return variance_scaling(
        1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype
    )


def lecun_uniform(
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Uniform samples of variance ``1 / fan_in`` (LeCun et al., 1998).

    Args:
      in_axis, out_axis, batch_axis, dtype: as for :func:`variance_scaling`, whose errors apply.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    >>> bool((abs(lecun_uniform()(random.key(0), (3, 6))) <= 1.0).all())
    True
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Truncated normal samples of variance ``1 / fan_in`` (LeCun et al., 1998).

    Args:
      in_axis, out_axis, batch_axis, dtype: as for :func:`variance_scaling`, whose errors apply.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    >>> bool((abs(lecun_normal()(random.key(0), (3, 6))) <= 1.32).all())
    True
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Uniform samples of variance ``2 / fan_in``, for rectifiers (He et al., 2015).

    Args:
      in_axis, out_axis, batch_axis, dtype: as for :func:`variance_scaling`, whose errors apply.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    >>> bool((abs(he_uniform()(random.key(0), (3, 6))) <= 2**0.5).all())
    True
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Truncated normal samples of variance ``2 / fan_in``, for rectifiers (He et al., 2015).

    Args:
      in_axis, out_axis, batch_axis, dtype: as for :func:`variance_scaling`, whose errors apply.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    >>> bool((abs(he_normal()(random.key(0), (3, 6))) <= 1.86).all())
    True
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform: Final = glorot_uniform
xavier_normal: Final = glorot_normal
kaiming_uniform: Final = he_uniform
kaiming_normal: Final = he_normal


# Orthogonal matrices


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """An initializer with random matrices with orthogonal columns (Saxe et al., 2014).

    Args:
      scale: a factor of the matrices.
      column_axis: the axis of the columns; the others are flattened into rows. If there are fewer
        rows than columns, the rows are orthogonal instead.
      dtype: the default dtype of the results, a float or complex one of 32 bits or more.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    Raises:
      ValueError: in a call, if there are fewer than two axes.

    >>> w = orthogonal()(random.key(0), (5, 2))
    >>> bool((abs(w.T @ w - np.eye(2)) < 1e-5).all())
    True
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Array:
        if out_sharding is not None:
            return runtime.with_out_sharding(init, out_sharding, key, shape, dtype)
        dtype, shape = _dtype_of(dtype, None), _shape_of(shape)
        if len(shape) < 2:
            raise ValueError(
                f"orthogonal initializer requires at least a 2D shape, got shape {shape}"
            )
        (axis,) = axes_of(column_axis, len(shape))
        factor = _number(scale, dtype)
        out: Array = _orthogonal(key, factor, shape=shape, axis=axis, dtype=dtype)
        return out

    return init


@compiled("shape", "axis", "dtype", name="orthogonal")
def _orthogonal(key, factor, *, shape, axis, dtype):
    columns = shape[axis]
    others = tuple(n for i, n in enumerate(shape) if i != axis)
    matrix = random.orthogonal(key, math.prod(others), (), dtype, columns) * factor
    return pnp.moveaxis(lax.reshape(matrix, (*others, columns)), -1, axis)


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """An initializer with convolution kernels that are orthogonal at the centre, and 0 elsewhere
    (Xiao et al., 2018).

    Args:
      scale: a factor of the matrices.
      column_axis: as for :func:`orthogonal`, of the last two axes.
      dtype: the default dtype of the results.

    Returns:
      An :class:`Initializer`: a function of a key, a shape and a dtype.

    Raises:
      ValueError: in a call, if the shape is not ``(*window, inputs, outputs)`` with one to three
        window axes and no more inputs than outputs.

    >>> w = delta_orthogonal()(random.key(0), (3, 2, 4))
    >>> w.shape, bool((w[0] == 0).all())
    ((3, 2, 4), True)
    """
    matrices = orthogonal(scale, column_axis, dtype)

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Array:
        if out_sharding is not None:
            return runtime.with_out_sharding(init, out_sharding, key, shape, dtype)
        dtype, shape = _dtype_of(dtype, None), _shape_of(shape)
        if len(shape) not in (3, 4, 5):
            raise ValueError(
                f"Delta orthogonal initializer requires a 3D, 4D or 5D shape, got shape {shape}"
            )
        if shape[-1] < shape[-2]:
            raise ValueError(
                "Delta orthogonal initializer: the number of inputs, shape[-2], must not be larger "
                f"than that of outputs, shape[-1]; got shape {shape}"
            )
        middle = matrices(key, shape[-2:], dtype)
        padding = [((n - 1) // 2, n - 1 - (n - 1) // 2, 0) for n in shape[:-2]]
        middle = lax.expand_dims(middle, tuple(range(len(padding))))
        zero = np.zeros((), dtype)[()]
        return lax.pad(middle, zero, (*padding, (0, 0, 0), (0, 0, 0)))

    return init
