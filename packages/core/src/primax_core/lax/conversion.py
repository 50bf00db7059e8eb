"""Dtype conversions of elements."""

from __future__ import annotations

import operator
import warnings
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.printer import hide_defaults
from .._ir.samples import Sample, bf16, c64, f32, i32, samples, u8
from .._lower.lazy import hlo, mlir, shaped
from .._runtime.dispatch import as_operand
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike, DTypeLike
from .._transform.batching import move_axis
from .._transform.zeros import Zero
from .comparison import compare
from .elementwise import check_kind, elementwise_batching, linear, no_derivative

# convert_element_type

convert_element_type_p: Final = Primitive("convert_element_type")
hide_defaults("convert_element_type", sharding=None)


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The elements converted to another dtype; the result is not weakly typed.

    Float to integer: the fraction is dropped, values out of range are clamped, NaN gives 0.
    Integer to narrower integer: modulo a power of 2. Any dtype to bool: ``True`` for nonzero
    elements. Complex to real: the imaginary part is dropped, with a warning.

    Args:
      operand: an array or a number.
      new_dtype: the dtype; a Python class such as ``int`` means its default dtype.

    Returns:
      An array of the operand's shape and of the new dtype.

    Raises:
      TypeError: if arrays cannot have the dtype.
      ValueError: for conversions to and from extended dtypes, such as those of random keys.

    The derivative is that of the identity between inexact dtypes, and zero otherwise. Under
    ``vmap`` the batch is one operand.

    >>> convert_element_type(np.array([1.7, -1.7, np.nan], np.float32), np.int32).tolist()
    [1, -1, 0]
    >>> int(convert_element_type(300, np.uint8))
    44
    """
    if new_dtype is None:
        raise ValueError("dtype must be specified.")
    dtype = dtypes.canonicalize_user_dtype(new_dtype, "convert_element_type")
    if dtypes.issubdtype(typeof(operand).dtype, np.complexfloating) and not (
        dtypes.issubdtype(dtype, np.complexfloating) or dtype == np.bool_
    ):
        warnings.warn(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=2,
        )
    return convert(operand, dtype, False)


def convert(x: ArrayLike, dtype: DTypeLike, weak_type: bool = False) -> Any:
    """Convert to a canonical dtype and weak type; an array that has both is returned unchanged."""
    aval = typeof(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x if isinstance(x, Array) else as_operand(x)
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type, sharding=None)


@convert_element_type_p.rule(abstract)
def _convert_element_type_abstract(x, *, new_dtype, weak_type, sharding=None):
    extended = dtypes.ExtendedDType
    if x.dtype != new_dtype and (isinstance(x.dtype, extended) or isinstance(new_dtype, extended)):
        raise ValueError(f"Cannot convert_element_type from {x.dtype.name} to {new_dtype.name}")
    return ShapedArray(x.shape, new_dtype, weak_type)


@convert_element_type_p.rule(lower)
def _convert_element_type_lower(ctx, x, *, new_dtype, **_):
    aval = ctx.in_avals[0]
    return converted(ctx, x, aval.dtype, new_dtype, aval.shape)


def converted(ctx: Any, x: Any, old: Any, new: Any, shape: tuple[int, ...]) -> Any:
    """Convert an MLIR value to another dtype."""
    if old == new:
        return x
    if dtypes.issubdtype(old, np.complexfloating) and not dtypes.issubdtype(
        new, np.complexfloating
    ):
        x, old = hlo.real(x), np.finfo(old).dtype
    if new == np.bool_:
        zero = shaped.full(np.zeros((), old), shape)
        return compare("NE", x, zero, old)
    return hlo.convert(mlir.tensor_type(shape, new), x)


@convert_element_type_p.rule(jvp)
def _convert_element_type_jvp(primals, tangents, *, new_dtype, **params):
    (x,), (t,) = primals, tangents
    out = convert_element_type_p.bind(x, new_dtype=new_dtype, **params)
    if type(t) is Zero or not dtypes.issubdtype(new_dtype, np.inexact):
        return out, Zero.like(out)
    return out, convert_element_type_p.bind(t, new_dtype=new_dtype, **params)


@convert_element_type_p.rule(transpose)
def _convert_element_type_transpose(ct, x, **_):
    return [convert(ct, x.aval.dtype, x.aval.weak_type)]


elementwise_batching(convert_element_type_p)


# bitcast_convert_type

bitcast_convert_type_p: Final = Primitive("bitcast_convert_type")


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits of the elements interpreted as another dtype.

    For a narrower dtype each element becomes several elements along a new last axis, lowest bits
    first. For a wider dtype the elements of the last axis, whose size must be the ratio of the
    widths, become one element.

    Args:
      operand: an array or a number of integer or floating dtype.
      new_dtype: the dtype.

    Returns:
      An array of the new dtype, with as many bits as the operand.

    Raises:
      TypeError: for booleans and complex numbers, unless the dtypes are equal.
      ValueError: if the size of the last axis is not the ratio of the widths.

    The derivative is zero. Under ``vmap`` the batch is one operand.

    >>> hex(int(bitcast_convert_type(np.float32(1), np.int32)))
    '0x3f800000'
    >>> bitcast_convert_type(np.float32(1), np.int16).tolist()
    [0, 16256]
    """
    dtype = dtypes.canonicalize_user_dtype(new_dtype, "bitcast_convert_type")
    return bitcast_convert_type_p.bind(operand, new_dtype=dtype)


@bitcast_convert_type_p.rule(abstract)
def _bitcast_convert_type_abstract(x, *, new_dtype):
    old, new = (0 if _unfit(d) else dtypes.itemsize_bits(d) for d in (x.dtype, new_dtype))
    if x.dtype == new_dtype:
        return x.strip_weak_type()
    if not (old and new):
        raise TypeError(
            "lax.bitcast_convert_type does not support bool or complex values unless the operand "
            f"and destination types match. Got operand dtype={x.dtype}, new_dtype={new_dtype!r}. "
            "Consider using the arr.view() method instead."
        )
    if old == new:
        shape = x.shape
    elif old > new and old % new == 0:
        shape = (*x.shape, old // new)
    else:
        last = x.shape[-1] if x.shape else 1
        if not x.shape or last * old != new:
            raise ValueError(
                f"Attempting to convert array of shape {x.shape} from {x.dtype.name} of size {old} "
                f"bits to {new_dtype.name} of size {new} bits, but {last} * {old} != {new}"
            )
        shape = x.shape[:-1]
    return ShapedArray(shape, new_dtype)


def _unfit(dtype: Any) -> bool:
    return (
        isinstance(dtype, dtypes.ExtendedDType)
        or dtype == np.bool_
        or dtypes.issubdtype(dtype, np.complexfloating)
    )


@bitcast_convert_type_p.rule(lower)
def _bitcast_convert_type_lower(ctx, x, *, new_dtype):
    if ctx.in_avals[0].dtype == new_dtype:
        return x
    return hlo.bitcast_convert(mlir.type_of(ctx.out_avals[0]), x)


@bitcast_convert_type_p.rule(batch)
def _bitcast_convert_type_batch(axis, args, dims, *, new_dtype):
    (x,), (d,) = args, dims
    if d == typeof(x).ndim - 1:  # the last axis can become part of an element
        x, d = move_axis(x, d, 0, axis.size), 0
    return bitcast_convert_type_p.bind(x, new_dtype=new_dtype), d


no_derivative(bitcast_convert_type_p)


# reduce_precision

reduce_precision_p: Final = Primitive("reduce_precision")


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Floats rounded to a format with fewer bits, in the same dtype.

    Elements are rounded to the nearest value, halves to even. Elements that exceed the format
    become infinite.

    Args:
      operand: an array or a number of floating dtype.
      exponent_bits: bits of the format's exponent, at least 1.
      mantissa_bits: bits of the format's fraction.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      TypeError: if the operand is not of floating dtype.
      ValueError: if the number of bits is not valid.

    The tangent is rounded in the same way. Under ``vmap`` the batch is one operand.

    >>> float(reduce_precision(np.float32(1.2), 5, 2))
    1.25
    >>> float(reduce_precision(np.float32(1e6), 5, 10))  # float16 has these numbers of bits
    inf
    """
    return reduce_precision_p.bind(
        operand,
        exponent_bits=operator.index(exponent_bits),
        mantissa_bits=operator.index(mantissa_bits),
    )


@reduce_precision_p.rule(abstract)
def _reduce_precision_abstract(x, *, exponent_bits, mantissa_bits):
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive; got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}"
        )
    check_kind("reduce_precision", x.dtype, ("float",))
    return x


@reduce_precision_p.rule(lower)
def _reduce_precision_lower(ctx, x, *, exponent_bits, mantissa_bits):
    return hlo.reduce_precision(x, mlir.i32(exponent_bits), mlir.i32(mantissa_bits))


linear(reduce_precision_p, lambda ct, aval, **params: reduce_precision_p.bind(ct, **params))
elementwise_batching(reduce_precision_p)


@convert_element_type_p.rule(samples)
def _convert_element_type_samples():
    wide, narrow = np.dtype(np.float32), np.dtype(dtypes.bfloat16)
    yield Sample(f32(3, 2), new_dtype=narrow, weak_type=False, sharding=None)
    yield Sample(bf16(), new_dtype=wide, weak_type=True, sharding=None)
    yield Sample(f32(0, 2), new_dtype=np.dtype(np.complex64), weak_type=False, sharding=None)
    yield Sample(c64(3), new_dtype=wide, weak_type=False, sharding=None)
    yield Sample(i32(3), new_dtype=wide, weak_type=False, sharding=None)
    yield Sample(f32(3), new_dtype=np.dtype(np.int8), weak_type=False, sharding=None)


@bitcast_convert_type_p.rule(samples)
def _bitcast_convert_type_samples():
    only = {"symbolic zeros": "there is no derivative"}
    yield Sample(i32(3), new_dtype=np.dtype(np.uint32)).set(without=only)
    yield Sample(i32(2), new_dtype=np.dtype(np.uint8)).set(without=only)
    yield Sample(u8(2, 4), new_dtype=np.dtype(np.int32)).set(without=only)


@reduce_precision_p.rule(samples)
def _reduce_precision_samples():
    rounded = dict.fromkeys(("jvp", "transpose", "second order"), "tangents are rounded too")
    yield Sample(f32(3, 2), exponent_bits=5, mantissa_bits=10).set(without=rounded)
    yield Sample(bf16(0), exponent_bits=8, mantissa_bits=3)
