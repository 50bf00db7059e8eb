"""Helpers of samplers: argument normalization, uniform and normal samples.

Each sampler is one executable, also because the last bit of its results depends on fusion.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.dtypes import TypePromotionError
from primax_core.extend import dtypes, is_operand, typeof
from primax_core.extend.dimensions import broadcast_shapes, index

from .._checks import dtype_argument, not_integers
from .._promotion import repeated
from ._ciphers import UNSIGNED
from ._keys import children, random_words

# Arguments


def shape_of(shape: Any, name: str) -> tuple[int, ...]:
    """The normalized shape argument, which may be a number or a sequence."""
    if type(shape) is tuple and all(type(d) is int for d in shape):
        sizes: Any = shape
    else:
        requested = (shape,) if hasattr(shape, "__index__") and not np.ndim(shape) else shape
        sizes = _sizes(requested, name)
    if any(d < 0 for d in sizes):
        raise ValueError(f"{name}: sizes must not be negative, got shape {sizes}")
    out: tuple[int, ...] = sizes
    return out


def _sizes(shape: Any, name: str) -> tuple[int, ...]:
    try:
        return tuple([index(d) for d in shape])
    except (TypeError, AttributeError):
        sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
        raise not_integers(
            f"{name}: Shapes must be 1D sequences of concrete values of integer type, got {shape}",
            *sizes,
        ) from None


def float_dtype(dtype: Any, name: str) -> Any:
    """The canonical real float dtype argument, by default the default float."""
    canonical = dtypes.default_float() if dtype is None else dtype_argument(dtype, name)
    if not dtypes.issubdtype(canonical, np.floating):
        raise ValueError(f"dtype argument to `{name}` must be a float dtype, got {canonical}")
    return canonical


def inexact_dtype(dtype: Any, name: str) -> Any:
    """The canonical float or complex dtype argument, by default the default float."""
    canonical = dtypes.default_float() if dtype is None else dtype_argument(dtype, name)
    if not dtypes.issubdtype(canonical, np.inexact):
        raise ValueError(
            f"dtype argument to `{name}` must be a float or complex dtype, got {canonical}"
        )
    return canonical


def check_parameters(name: str, *values: Any) -> None:
    """Check that parameters are arrays or numbers."""
    for x in values:
        if not is_operand(x):
            raise TypeError(f"{name}: parameters must be arrays or numbers, got {type(x)}")


def narrowed(x: Any) -> Any:
    """A parameter, in 32 bits if 64-bit dtypes were disabled after the array was created."""
    dtype = dtypes.canonicalize_dtype(typeof(x).dtype)
    return x if dtype == typeof(x).dtype else lax.convert_element_type(x, dtype)


def check_narrow(name: str, dtype: Any, *values: Any) -> None:
    """Check that no parameter has a wider dtype than the result.

    Raises:
      TypePromotionError: with both dtypes. Python numbers are weakly typed and accepted.
    """
    for x in values:
        aval = typeof(x)
        if not aval.weak_type and aval.dtype != dtype:
            if dtypes.result_type(aval.dtype, dtype) != dtype:
                raise TypePromotionError(
                    f"In arguments to {name}, cannot safely cast argument of type "
                    f"{aval.dtype.name} to {np.dtype(dtype).name}: convert it, or pass a wider "
                    "dtype"
                )


def joint_shape(name: str, shape: Any, *values: Any) -> tuple[int, ...]:
    """The sample shape, by default the broadcast shape of the parameters, which must broadcast to
    it.
    """
    shapes = [typeof(x).shape for x in values]
    if shape is None:
        try:
            return tuple(broadcast_shapes(*shapes))
        except ValueError:
            raise ValueError(f"{name}: parameters of shapes {shapes} do not broadcast") from None
    sample_shape = shape_of(shape, name)
    for parameter_shape in shapes:
        if parameter_shape and parameter_shape != sample_shape:
            check_fits(name, shapes, sample_shape)
    return sample_shape


def check_fits(name: str, shapes: list[tuple[int, ...]], target: tuple[int, ...]) -> None:
    """Check that shapes broadcast to the shape ``target``."""
    try:
        joint = broadcast_shapes(target, *shapes)
    except ValueError:
        joint = None
    if joint != target:
        raise ValueError(
            f"{name}: parameters of shapes {', '.join(map(str, shapes))} do not broadcast to "
            f"shape={target}"
        )


# Values, inside compiled functions


def number(value: Any, dtype: Any) -> Any:
    """A constant of a dtype."""
    return np.asarray(value).astype(dtype)[()]


def full_rank(x: Any, rank: int) -> Any:
    """An array expanded with leading axes to a rank; scalars of rank 0 and larger ranks are
    handled by broadcasting.
    """
    missing = rank - typeof(x).ndim
    return lax.expand_dims(x, tuple(range(missing))) if missing > 0 else x


def parameter(x: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    """A parameter broadcast to a shape, in a dtype."""
    return repeated(lax.convert_element_type(x, dtype), shape)


def select(condition: Any, x: Any, y: Any) -> Any:
    """Elements of one of two arrays of one dtype, either of which may be a scalar."""
    shape = typeof(condition).shape
    return lax.select(condition, repeated(x, shape), repeated(y, shape))


_NARROW: Final = 8
"""Minimum number of random bits per float, for dtypes with shorter mantissas."""


def drawn_width(dtype: Any) -> int:
    """Number of random bits used for one uniform float."""
    info = dtypes.finfo(dtype)
    return int(info.bits) if int(info.nmant) >= _NARROW else _NARROW


def uniform(key: Any, shape: tuple[int, ...], dtype: Any, low: Any = 0, high: Any = 1) -> Any:
    """Uniform samples in ``[low, high)``."""
    return uniform_of(random_words(key, drawn_width(dtype), shape), dtype, low, high)


def uniform_materialized(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform samples in ``[0, 1)`` behind an optimization barrier, for results with several uses:
    XLA would recompute the bits for each use."""
    words = random_words(key, drawn_width(dtype), shape)
    return uniform_of(lax.optimization_barrier(words), dtype)


def uniform_of(words: Any, dtype: Any, low: Any = 0, high: Any = 1) -> Any:
    """Uniform samples in ``[low, high)`` from words of :func:`drawn_width` bits: random mantissas
    of floats in [1, 2), shifted and scaled."""
    info = dtypes.finfo(dtype)
    n_bits, n_mantissa = int(info.bits), int(info.nmant)
    unsigned = UNSIGNED[n_bits]
    shift = number(drawn_width(dtype) - n_mantissa, unsigned)
    mantissa = lax.shift_right_logical(lax.convert_element_type(words, unsigned), shift)
    one = np.ones((), dtype).view(unsigned)[()]
    floats = lax.bitcast_convert_type(lax.bitwise_or(mantissa, one), dtype)
    unit = lax.sub(floats, number(1, dtype))
    if isinstance(low, _KNOWN) and isinstance(high, _KNOWN):
        low, high = number(low, dtype), number(high, dtype)
        return lax.max(low, lax.add(lax.mul(unit, number(high - low, dtype)), low))
    shape = unit.shape
    low, high = (full_rank(lax.convert_element_type(v, dtype), len(shape)) for v in (low, high))
    span = lax.sub(high, low)
    return lax.max(low, lax.add(lax.mul(unit, _to(span, shape)), _to(low, shape)))


_KNOWN: Final = (int, float, np.generic)


def _to(x: Any, shape: tuple[int, ...]) -> Any:
    own_shape = typeof(x).shape
    if own_shape == shape or len(own_shape) > len(shape):
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape))))


def normal_of(words: Any, dtype: Any) -> Any:
    """Standard normal samples from words of :func:`drawn_width` bits."""
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)[()]
    u = uniform_of(words, dtype, low, number(1, dtype))
    return lax.mul(number(math.sqrt(2), dtype), lax.erf_inv(u))


def normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Standard normal samples by the inverse error function; complex ones from two samples."""
    if dtypes.issubdtype(dtype, np.complexfloating):
        real = np.dtype(np.float32 if dtype == np.complex64 else np.float64)
        parts = [normal(k, shape, real) for k in children(key, 2)]
        root = number(math.sqrt(2), real)
        return lax.complex(*(lax.div(p, repeated(root, shape)) for p in parts))
    return normal_of(random_words(key, drawn_width(dtype), shape), dtype)


def positive_uniform(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform samples in ``(0, 1)``."""
    tiny = number(dtypes.finfo(dtype).tiny, dtype)
    return uniform(key, shape, dtype, tiny, number(1, dtype))


def exponential(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Standard exponential samples."""
    u = uniform(key, shape, dtype)
    return lax.neg(lax.log1p(lax.neg(u)))


def signs(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Rademacher samples: 1 or -1 with equal probability."""
    if dtype == np.bool_:
        return lax.ne(signs(key, shape, np.dtype(np.int32)), np.int32(0))
    drawn = dtypes.default_float()
    flag = lax.lt(uniform(key, shape, drawn), repeated(number(0.5, drawn), shape))
    one = np.ones((), dtype)[()]
    twice = lax.mul(lax.convert_element_type(flag, dtype), number(2, dtype))
    return lax.convert_element_type(lax.sub(twice, one), dtype)


def running_sums(x: Any, axis: int, reverse: bool = False) -> Any:
    """Cumulative sums by ``reduce_window``, from the start or (``reverse``) from the end. The
    order of summation determines the bits of samples."""
    n = x.shape[axis]
    if not n:
        return x
    sizes = tuple(n if i == axis else 1 for i in range(x.ndim))
    over = (0, n - 1) if reverse else (n - 1, 0)
    padding = [over if i == axis else (0, 0) for i in range(x.ndim)]
    return lax.reduce_window(x, number(0, x.dtype), lax.add, sizes, (1,) * x.ndim, padding)
