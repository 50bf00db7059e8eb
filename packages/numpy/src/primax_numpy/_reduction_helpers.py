"""Helpers shared by reductions: kept axes, masks, and dtypes of computation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, is_operand, typeof

from ._promotion import repeated


def restore_axes(out: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """A reduced array; with ``keepdims`` the reduced axes have size 1."""
    return lax.expand_dims(out, axes) if keepdims and axes else out


def spread_back(x: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """A reduced array broadcast along the reduced axes."""
    return lax.broadcast_in_dim(x, shape, tuple(i for i in range(len(shape)) if i not in axes))


def strong(x: Any) -> Any:
    """The array with a strong type."""
    aval = typeof(x)
    return lax.convert_element_type(x, aval.dtype) if aval.weak_type else x


def squares(x: Any) -> Any:
    """Squared absolute values, which are real."""
    if not is_complex_dtype(typeof(x).dtype):
        return lax.mul(x, x)
    re, im = lax.real(x), lax.imag(x)
    return lax.add(lax.mul(re, re), lax.mul(im, im))


def is_complex_dtype(dtype: Any) -> bool:
    """True if a dtype is complex."""
    return bool(dtypes.issubdtype(dtype, np.complexfloating))


def is_float(dtype: Any) -> bool:
    """True if a dtype is real floating-point."""
    return bool(dtypes.issubdtype(dtype, np.floating))


def is_inexact(dtype: Any) -> bool:
    """True if a dtype is floating-point or complex."""
    return bool(dtypes.issubdtype(dtype, np.inexact))


def float_of(dtype: Any) -> Any:
    """The dtype itself if it is inexact, otherwise the float dtype that integers convert to."""
    if is_inexact(dtype):
        return dtype
    return dtypes.canonicalize_dtype(
        dtypes.f64 if dtypes.itemsize_bits(dtype) == 64 else dtypes.f32
    )


def wide_of(dtype: Any) -> Any:
    """The accumulator dtype of sums: ``float32`` for narrower floats."""
    narrow = is_float(dtype) and dtypes.itemsize_bits(dtype) < 32
    return dtypes.f32 if narrow else dtype


def real_of(dtype: Any) -> Any:
    """The dtype of the real part of a complex dtype; others unchanged."""
    return np.finfo(dtype).dtype if is_complex_dtype(dtype) else dtype


def int_sum_dtype(dtype: Any) -> Any:
    """The accumulator dtype of integers: the default integer of the same signedness."""
    if dtype == np.bool_:
        return dtypes.default_int()
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        wide = dtypes.default_uint()
    elif dtypes.issubdtype(dtype, np.integer):
        wide = dtypes.default_int()
    else:
        return dtype
    if dtypes.itemsize_bits(dtype) < 8:
        raise ValueError(
            f"the sum of {dtype.name} has no default dtype: pass dtype=, or convert "
            "the operand first"
        )
    return dtype if dtype.itemsize >= wide.itemsize else wide


def count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """The number of elements reduced to one."""
    return math.prod([shape[i] for i in axes])


def masked(x: Any, where: Any, fill: Any) -> Any:
    """``x`` where the mask is true, otherwise a scalar."""
    if where is None:
        return x
    aval = typeof(x)
    filled = lax.full(aval.shape, lax.convert_element_type(fill, aval.dtype))
    return lax.select(repeated(where, aval.shape), x, filled)


def check_where(name: str, where: Any, shape: tuple[int, ...]) -> None:
    """Check that a mask is boolean and broadcasts to the operand.

    Raises:
      ValueError: with the name of the function and the shapes.
    """
    if where is None:
        return
    aval = typeof(where) if is_operand(where) else None
    if aval is None or aval.dtype != np.bool_:
        kind = type(where) if aval is None else aval.dtype.name
        raise ValueError(f"{name}: where must be None or a boolean array, got {kind}")
    tail = shape[len(shape) - aval.ndim :] if aval.ndim <= len(shape) else None
    if tail is None or any(m not in (1, n) for m, n in zip(aval.shape, tail)):
        raise ValueError(
            f"{name}: where has shape {aval.shape}, which does not broadcast to the operand's "
            f"shape {shape}"
        )


def check_initial(name: str, initial: Any) -> None:
    """Check that an initial value is a scalar.

    Raises:
      TypeError: if it is not an array or a number.
      ValueError: if it is not a scalar.
    """
    if initial is None:
        return
    if not is_operand(initial):
        raise TypeError(f"{name}: initial must be a number, got {type(initial)}")
    if typeof(initial).ndim:
        raise ValueError(
            f"{name}: initial value must be a scalar, got an array of shape {typeof(initial).shape}"
        )


def short_key(axis: Any, keepdims: Any) -> Any:
    """Dispatch cache key of common arguments: at most one axis, and a flag; otherwise ``None``."""
    simple = (axis is None or type(axis) is int) and type(keepdims) is bool
    return (axis, keepdims) if simple else None
