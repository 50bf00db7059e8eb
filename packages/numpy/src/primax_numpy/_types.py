"""Scalar types, dtype classes and dtype limits."""

from __future__ import annotations

import builtins
from typing import Any, TypeAlias

import numpy as np

from primax_core import ShapeDtypeStruct
from primax_core.extend import Array, dtypes
from primax_core.typing import DTypeLike

from ._creation import asarray

# Classes

character: TypeAlias = np.character
complexfloating: TypeAlias = np.complexfloating
dtype: TypeAlias = np.dtype
flexible: TypeAlias = np.flexible
floating: TypeAlias = np.floating
generic: TypeAlias = np.generic
inexact: TypeAlias = np.inexact
integer: TypeAlias = np.integer
number: TypeAlias = np.number
object_: TypeAlias = np.object_
signedinteger: TypeAlias = np.signedinteger
unsignedinteger: TypeAlias = np.unsignedinteger
ComplexWarning: TypeAlias = np.exceptions.ComplexWarning

# Scalar types


class _ScalarMeta(type):
    dtype: np.dtype[Any]

    def __call__(cls, x: Any) -> Array:
        return asarray(x, dtype=cls.dtype)

    def __eq__(cls, other: Any) -> builtins.bool:
        return cls is other or (not isinstance(other, _ScalarMeta) and _same(cls.dtype, other))

    def __ne__(cls, other: Any) -> builtins.bool:
        return not cls == other

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, instance: Any) -> builtins.bool:
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'primax.numpy.{cls.__name__}'>"


def _same(dtype: np.dtype[Any], other: Any) -> builtins.bool:
    return other is dtype.type or (isinstance(other, np.dtype) and dtype == other)


def _scalar_type(scalar: Any) -> Any:
    dtype = np.dtype(scalar)
    text = f"Scalar type of dtype {dtype.name}; a call converts a value to an array."
    content = {"dtype": dtype, "__doc__": text, "__module__": __package__}
    return _ScalarMeta(dtype.name, (object,), content)


class _MissingMeta(type):
    @property
    def dtype(cls) -> Any:
        raise TypeError(f"the installed ml_dtypes has no {cls.__name__}: install a newer one")

    def __call__(cls, x: Any) -> Array:
        return cls.dtype


def _if_known(name: str) -> Any:
    """A scalar type of ml_dtypes; older versions define fewer of them."""
    for known in dtypes.all_dtypes:
        if known.name == name:
            return _scalar_type(known)
    return _MissingMeta(name, (object,), {"__module__": __package__})


bool: Any = _scalar_type(np.bool_)
bool_: Any = bool
int1: Any = _if_known("int1")
int2: Any = _if_known("int2")
int4: Any = _if_known("int4")
int8: Any = _scalar_type("int8")
int16: Any = _scalar_type("int16")
int32: Any = _scalar_type("int32")
int64: Any = _scalar_type("int64")
int_: Any = int64
uint1: Any = _if_known("uint1")
uint2: Any = _if_known("uint2")
uint4: Any = _if_known("uint4")
uint8: Any = _scalar_type("uint8")
uint16: Any = _scalar_type("uint16")
uint32: Any = _scalar_type("uint32")
uint64: Any = _scalar_type("uint64")
uint: Any = uint64
float4_e2m1fn: Any = _if_known("float4_e2m1fn")
float6_e2m3fn: Any = _if_known("float6_e2m3fn")
float6_e3m2fn: Any = _if_known("float6_e3m2fn")
float8_e3m4: Any = _if_known("float8_e3m4")
float8_e4m3: Any = _if_known("float8_e4m3")
float8_e4m3b11fnuz: Any = _if_known("float8_e4m3b11fnuz")
float8_e4m3fn: Any = _if_known("float8_e4m3fn")
float8_e4m3fnuz: Any = _if_known("float8_e4m3fnuz")
float8_e5m2: Any = _if_known("float8_e5m2")
float8_e5m2fnuz: Any = _if_known("float8_e5m2fnuz")
float8_e8m0fnu: Any = _if_known("float8_e8m0fnu")
bfloat16: Any = _scalar_type(dtypes.bf16)
float16: Any = _scalar_type("float16")
float32: Any = _scalar_type("float32")
single: Any = float32
float64: Any = _scalar_type("float64")
double: Any = float64
float_: Any = float64
complex64: Any = _scalar_type("complex64")
csingle: Any = complex64
complex128: Any = _scalar_type("complex128")
cdouble: Any = complex128
complex_: Any = complex128

# Limits

finfo: Any = dtypes.finfo
iinfo: Any = dtypes.iinfo

# Classes and promotion


def _matches(dtype: Any, kind: str) -> builtins.bool:
    return any(dtypes.issubdtype(dtype, c) for c in _KINDS[kind])


_KINDS: dict[str, tuple[Any, ...]] = {
    "bool": (np.bool_,),
    "signed integer": (np.signedinteger,),
    "unsigned integer": (np.unsignedinteger,),
    "integral": (np.integer,),
    "real floating": (np.floating,),
    "complex floating": (np.complexfloating,),
    "numeric": (np.number,),
}


def isdtype(dtype: DTypeLike, kind: Any) -> builtins.bool:
    """True if a dtype, or that of an array, is of a kind.

    Args:
      dtype: a dtype or an array.
      kind: another dtype; one of ``"bool"``, ``"signed integer"``, ``"unsigned integer"``,
        ``"integral"``, ``"real floating"``, ``"complex floating"``, ``"numeric"``; or a tuple of
        alternatives.

    Returns:
      A Python boolean.

    Raises:
      TypeError, ValueError: if ``kind`` is invalid.

    >>> isdtype("bfloat16", ("real floating", "complex floating"))
    True
    """
    actual = dtypes.dtype_of(dtype)
    if actual == dtypes.float0:
        actual = None
    options = kind if isinstance(kind, tuple) else (kind,)
    matches = [_is_kind(actual, k) for k in options]  # a list: every kind is validated
    return actual is not None and any(matches)


def _is_kind(dtype: Any, kind: Any) -> builtins.bool:
    if isinstance(kind, str):
        if kind in _KINDS:
            return _matches(dtype, kind)
        try:
            return dtype == dtypes.as_dtype(kind)
        except TypeError:
            raise ValueError(
                f"Unrecognized kind={kind!r} expected one of {list(_KINDS)}, or the name of a dtype"
            ) from None
    abstract = isinstance(kind, type) and issubclass(kind, np.generic) and kind in _ABSTRACT
    if abstract or not (isinstance(kind, (type, np.dtype)) or hasattr(kind, "dtype")):
        raise TypeError(f"Expected kind to be a dtype, string, or tuple; got {kind=}")
    return dtype == dtypes.dtype_of(kind)


_ABSTRACT = frozenset(
    (character, complexfloating, flexible, floating, generic, inexact, integer, number,
     signedinteger, unsignedinteger)
)  # fmt: skip


def can_cast(from_: DTypeLike, to: DTypeLike, casting: str = "safe") -> builtins.bool:
    """True if values of a dtype can be cast to another, by NumPy's rules.

    Args:
      from_: a dtype or an array.
      to: a dtype.
      casting: ``"no"``, ``"equiv"``, ``"safe"`` (the default), ``"same_kind"`` or ``"unsafe"``.

    Returns:
      A Python boolean.

    Raises:
      TypeError: if ``from_`` is a Python number, or a dtype is unknown.

    >>> can_cast("int8", "int32"), can_cast("int32", "int8")
    (True, False)
    >>> can_cast("int32", "int8", casting="same_kind")
    True
    """
    return np.can_cast(from_, to, casting=casting)


def issubdtype(arg1: Any, arg2: Any) -> builtins.bool:
    """True if a dtype or class of dtypes is a subclass of another, also for extended floats.

    Args:
      arg1: a dtype, or a class such as ``floating``.
      arg2: a dtype, or a class such as ``floating``.

    Returns:
      A Python boolean.

    Raises:
      TypeError: if an argument is not a dtype or a class of dtypes.

    >>> issubdtype("bfloat16", floating)
    True
    >>> issubdtype("int32", floating)
    False
    """
    return dtypes.issubdtype(arg1, arg2)


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype[Any]:
    """The dtype that two dtypes promote to; 64-bit ones are not narrowed.

    Args:
      a, b: dtypes or their names.

    Returns:
      A dtype.

    Raises:
      TypeError: if an argument is not a dtype.
      TypePromotionError: if the dtypes have no common dtype, such as two extended floats.

    >>> promote_types("int8", "uint8")
    dtype('int16')
    >>> promote_types("int32", "bfloat16")
    dtype(bfloat16)
    """
    return dtypes.promote_types(a, b)


def result_type(*args: Any) -> np.dtype[Any]:
    """The dtype of an operation on arrays, numbers and dtypes; Python numbers are weakly typed.

    Args:
      args: arrays, numbers or dtypes, at least one.

    Returns:
      A dtype. 64-bit ones are narrowed unless they are enabled.

    Raises:
      ValueError: if there are no arguments.
      TypePromotionError: if the dtypes have no common dtype.

    >>> result_type(np.int8(1), 2), result_type("bfloat16", 2.0)
    (dtype('int8'), dtype(bfloat16))
    """
    return dtypes.result_type(*[x.aval if type(x) is ShapeDtypeStruct else x for x in args])
