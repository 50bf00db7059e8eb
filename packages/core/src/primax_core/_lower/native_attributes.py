"""Attributes of native functions: Python values as the handlers of XLA's interface read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from jaxlib.mlir import ir

from .context import dense, element_type, i64

# Numbers of element types in XLA's interface (the values of its enumeration ``DataType``).
_NUMBERS: Final = {
    "bool": 1, "int1": 30, "int2": 26, "int4": 21, "int8": 2, "int16": 3, "int32": 4, "int64": 5,
    "uint1": 31, "uint2": 27, "uint4": 22, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
    "float16": 10, "float32": 11, "float64": 12, "bfloat16": 16, "complex64": 15, "complex128": 18,
    "float8_e5m2": 19, "float8_e3m4": 29, "float8_e4m3": 28, "float8_e4m3fn": 20,
    "float8_e4m3b11fnuz": 23, "float8_e5m2fnuz": 24, "float8_e4m3fnuz": 25,
    "float4_e2m1fn": 32, "float8_e8m0fnu": 33,
}  # fmt: skip

_ELEMENTS: Final = frozenset((
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
))  # fmt: skip
"""Dtypes of the arrays that handlers can read."""


def attribute(value: Any, what: str = "an attribute of a native function") -> ir.Attribute:
    """The MLIR attribute that a handler reads as this value.

    Args:
      what: the name of the attribute in messages.

    Raises:
      TypeError: if handlers cannot read values of this kind.
      OverflowError: for Python integers of more than 64 bits.
    """
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(value))
    if isinstance(value, (str, bytes)):
        return ir.StringAttr.get(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise OverflowError(f"{what} is {value}, which has more than 64 bits: use np.uint64")
        return i64(value)
    if isinstance(value, (float, np.floating, np.integer)):
        return _number(np.asarray(value)[()], what)
    if isinstance(value, Mapping):
        return _dictionary(value, what)
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return _data_type(np.dtype(value), what)
    if isinstance(value, (list, tuple, np.ndarray)):
        return _array(value, what)
    raise TypeError(
        f"{what} has the type {type(value).__name__}, which native functions cannot read: use a "
        "boolean, an integer, a float, a string, an array of these of one axis, a dtype, or a "
        "dictionary; a complex number is an array of two floats"
    )


def _number(value: Any, what: str) -> ir.Attribute:
    if value.dtype.name not in ("float32", "float64") and value.dtype.kind not in "iu":
        raise TypeError(
            f"{what} has dtype {value.dtype.name}, which native functions cannot read: use "
            "np.float32"
        )
    element = element_type(value.dtype)
    if value.dtype.kind in "iu":
        # The bindings take the bits of an unsigned integer as a signed one.
        return ir.IntegerAttr.get(element, int(value.astype(np.int64)))
    return ir.FloatAttr.get(element, float(value))


def _dictionary(value: Mapping[Any, Any], what: str) -> ir.Attribute:
    for key in value:
        if not isinstance(key, str) or not key:
            raise TypeError(f"{what}: the name {key!r} of an attribute is not a text")
    return ir.DictAttr.get({k: attribute(v, f"{k!r} of {what}") for k, v in value.items()})


def _data_type(dtype: np.dtype, what: str) -> ir.Attribute:
    number = _NUMBERS.get(dtype.name)
    if number is None:
        raise TypeError(f"{what} is the dtype {dtype.name}, which XLA's interface does not have")
    return ir.IntegerAttr.get(ir.IntegerType.get_unsigned(8), number)


def _array(value: Any, what: str) -> ir.Attribute:
    """An array of one axis: Python numbers have 64 bits, and booleans become uint8."""
    if not isinstance(value, np.ndarray) and not all(
        isinstance(x, (bool, int, float, np.bool_, np.number)) for x in value
    ):
        raise TypeError(f"{what} is a sequence of values that are not numbers")
    array = np.asarray(value) if len(value) else np.asarray(value, getattr(value, "dtype", int))
    if array.ndim != 1:
        raise TypeError(
            f"{what} is an array with {array.ndim} axes, but native functions read arrays with "
            "one: pass array.ravel(), and the shape as another attribute"
        )
    if array.dtype == np.bool_:  # XLA does not pass arrays of booleans
        array = array.astype(np.uint8)
    if array.dtype.name not in _ELEMENTS:
        raise TypeError(
            f"{what} is an array of dtype {array.dtype.name}, which native functions cannot read: "
            "use integers, np.float32 or np.float64"
        )
    return dense(array)
