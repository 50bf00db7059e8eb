"""Element types: canonical forms, classes, limits and names.

The promotion of types is in `promotion`; `dtypes` re-exports both.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from .._base import caches
from .._base.config import state
from .._base.identity import ENV_PREFIX
from .._base.source import warn

# Extended dtypes


class extended(np.generic):
    """Scalar class of all element types that NumPy does not have, for `issubdtype`."""


class prng_key(extended):
    """Scalar class of random keys, for `issubdtype`."""


class ExtendedDType:
    """Base of element types that NumPy does not have.

    A subclass defines ``type``, a scalar class below `extended`; ``name``; and ``itemsize``, the
    bytes of an element. Instances are compared and hashed by value.
    """

    __slots__ = ()
    type: type[extended]
    name: str
    itemsize: int
    kind: str = "V"


extended_dtypes: Final[dict[str, ExtendedDType]] = {}
"""Extended dtypes by name. The defining module registers them, so that serialized jaxprs can be
read."""

DType = np.dtype | ExtendedDType

DTypeLike: TypeAlias = str | type[Any] | np.dtype | ExtendedDType
"""A dtype, its name, or a scalar class."""

float0: Final = np.dtype([("float0", np.void, 0)])
"""Type of the tangents of integers and booleans: no information, no storage."""

# Short names. The values are NumPy's "scalar types"; ``np.dtype`` accepts each of them.

bool_: Final = np.dtype(np.bool_)
i8: Final = np.dtype(np.int8)
i16: Final = np.dtype(np.int16)
i32: Final = np.dtype(np.int32)
i64: Final = np.dtype(np.int64)
u8: Final = np.dtype(np.uint8)
u16: Final = np.dtype(np.uint16)
u32: Final = np.dtype(np.uint32)
u64: Final = np.dtype(np.uint64)
bf16: Final = np.dtype(ml_dtypes.bfloat16)
f16: Final = np.dtype(np.float16)
f32: Final = np.dtype(np.float32)
f64: Final = np.dtype(np.float64)
c64: Final = np.dtype(np.complex64)
c128: Final = np.dtype(np.complex128)
bfloat16: Final = ml_dtypes.bfloat16


def _ml_dtypes(*names: str) -> tuple[np.dtype, ...]:
    return tuple([np.dtype(getattr(ml_dtypes, name)) for name in names if hasattr(ml_dtypes, name)])


small_ints: Final = _ml_dtypes("int1", "int2", "int4")
small_uints: Final = _ml_dtypes("uint1", "uint2", "uint4")
narrow_floats: Final = _ml_dtypes(
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
)  # fmt: skip

signed_dtypes: Final = (*small_ints, i8, i16, i32, i64)
unsigned_dtypes: Final = (*small_uints, u8, u16, u32, u64)
integer_dtypes: Final = (*signed_dtypes, *unsigned_dtypes)
float_dtypes: Final = (*narrow_floats, bf16, f16, f32, f64)
complex_dtypes: Final = (c64, c128)
all_dtypes: Final = (bool_, *integer_dtypes, *float_dtypes, *complex_dtypes)

_CUSTOM_FLOATS: Final = frozenset({bf16, *narrow_floats})
_CUSTOM_SIGNED: Final = frozenset(small_ints)
_CUSTOM_UNSIGNED: Final = frozenset(small_uints)
_VALID: Final = frozenset({*all_dtypes, float0})

_NARROWED: Final = {i64: i32, u64: u32, f64: f32, c128: c64}
wide_dtypes: Final = frozenset(_NARROWED)
_PYTHON_64: Final[dict[Any, np.dtype]] = {bool: bool_, int: i64, float: f64, complex: c128}
_PYTHON_32: Final[dict[Any, np.dtype]] = {bool: bool_, int: i32, float: f32, complex: c64}

# Canonical dtypes by dtype-like object, for each x64 setting: faster than np.dtype(...).
_canonical: Final[tuple[dict[Any, Any], dict[Any, Any]]] = (
    {**{d: _NARROWED.get(d, d) for d in (*all_dtypes, float0)}, **_PYTHON_32},
    {**{d: d for d in (*all_dtypes, float0)}, **_PYTHON_64},
)


def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: bool = False) -> Any:
    """The dtype of arrays created with ``dtype``: 64-bit types only if ``enable_x64`` is set.

    Args:
      dtype: a dtype, its name, a scalar class or a Python type.
      allow_extended_dtype: accept dtypes that NumPy does not have, such as those of random keys.

    Returns:
      A dtype that arrays can have.

    Raises:
      ValueError: for an extended dtype, unless it is allowed.
      TypeError: if it is not a dtype.

    The result depends on the current thread's options.

    >>> from primax_core import dtypes, enable_x64
    >>> dtypes.canonicalize_dtype("int64")
    dtype('int32')
    >>> with enable_x64():
    ...     dtypes.canonicalize_dtype("int64")
    dtype('int64')
    """
    try:
        canonical = _canonical[state.enable_x64].get(dtype)
    except TypeError:
        canonical = None
    if canonical is not None:
        return canonical
    if isinstance(dtype, ExtendedDType):
        if allow_extended_dtype:
            return dtype
        raise ValueError(f"extended dtype {dtype} has no canonical NumPy dtype")
    exact = as_dtype(dtype)
    if state.enable_x64 or exact not in _NARROWED:
        return exact
    return _NARROWED[exact]


def as_dtype(dtype: DTypeLike) -> Any:
    """The dtype of a dtype, its name, a scalar class or a Python type, not canonicalized.

    ``None`` is the 64-bit default float.
    """
    if isinstance(dtype, (np.dtype, ExtendedDType)):
        return dtype
    if isinstance(dtype, str):
        named = _by_name.get(dtype)
        if named is not None:
            return named
    own = getattr(dtype, "dtype", None)
    if isinstance(own, (np.dtype, ExtendedDType)):
        return own
    return np.dtype(dtype)


_by_name: Final = {d.name: d for d in all_dtypes}


def default_int() -> np.dtype:
    """The default dtype of integers."""
    return i64 if state.enable_x64 else i32


def default_uint() -> np.dtype:
    """The default dtype of unsigned integers."""
    return u64 if state.enable_x64 else u32


def default_float() -> np.dtype:
    """The default dtype of floating-point numbers."""
    return f64 if state.enable_x64 else f32


def default_complex() -> np.dtype:
    """The default dtype of complex numbers."""
    return c128 if state.enable_x64 else c64


def narrowed(dtype: Any) -> Any:
    """The 32-bit counterpart of a 64-bit dtype; other dtypes unchanged."""
    return _NARROWED.get(dtype, dtype)


# Requested dtypes


def canonicalize_user_dtype(dtype: DTypeLike, api_name: str) -> Any:
    """The canonical dtype for a ``dtype=`` argument of the public function ``api_name``.

    If 64 bits are requested by name but disabled, it warns, raises or accepts, according to
    ``explicit_x64_dtypes``. It raises for dtypes that arrays cannot have. ``None`` is not
    supported.
    """
    if dtype in _PYTHON_64:
        return _canonical[state.enable_x64][dtype]
    if isinstance(dtype, ExtendedDType):
        return dtype
    exact = as_dtype(dtype)
    if isinstance(exact, ExtendedDType):
        return exact
    if exact not in _VALID:
        raise TypeError(
            f"only number and bool dtypes are supported, got dtype {dtype} in {api_name}"
        )
    if state.enable_x64 or exact not in _NARROWED:
        return exact
    narrow = _NARROWED[exact]
    mode = state.explicit_x64_dtypes
    if mode == "allow":
        return exact
    text = f"Explicitly requested dtype {exact.name} requested in {api_name} is not available"
    if mode == "error":
        raise ValueError(
            f"{text}. To have 64-bit types, turn on the option enable_x64, or set "
            "explicit_x64_dtypes to allow."
        )
    warn(
        f"{text}, and will be truncated to dtype {narrow.name}. To have 64-bit types, turn on the "
        "option enable_x64, for example with the environment variable "
        f"{ENV_PREFIX}ENABLE_X64=1."
    )
    return narrow


def check_valid_dtype(dtype: Any, value: Any = None) -> None:
    """Raise ``TypeError`` if arrays cannot have the dtype."""
    if dtype in _VALID or isinstance(dtype, ExtendedDType):
        return
    text = getattr(dtype, "str", dtype) if getattr(dtype, "kind", "") in "SU" else dtype
    subject = f"dtype {text}" if value is None else f"Value {value!r} with dtype {text}"
    raise TypeError(
        f"{subject} is not a valid Primax array type. Only arrays of numeric types are supported."
    )


def check_python_int(value: int, dtype: Any) -> None:
    """Raise ``OverflowError`` if a Python int does not fit a requested integer dtype.

    :func:`check_default_int` has another message, for the default integer dtype.
    """
    low, high = _int_range(dtype)
    if not low <= value <= high:
        raise OverflowError(f"Python integer {value} out of bounds for {dtype.name}")


def check_default_int(value: int) -> None:
    """Raise ``OverflowError`` if a Python int does not fit the default integer dtype."""
    dtype = default_int()
    low, high = _int_range(dtype)
    if not low <= value <= high:
        raise OverflowError(f"Python int {value} too large to convert to {dtype.name}")


def _int_range(dtype: Any) -> tuple[int, int]:
    limits = _int_ranges.get(dtype)
    if limits is None:
        info = ml_dtypes.iinfo(dtype)
        limits = _int_ranges[dtype] = int(info.min), int(info.max)
    return limits


_int_ranges: Final[dict[Any, tuple[int, int]]] = caches.bounded_cache()


# Dtypes of values

python_scalars: Final = (bool, int, float, complex)


def is_python_scalar(x: Any) -> bool:
    """Return True if ``x`` is a Python bool, int, float or complex, and not a NumPy scalar.

    >>> from primax_core._ir.dtypes import is_python_scalar
    >>> import numpy as np
    >>> is_python_scalar(1.0), is_python_scalar(np.float64(1.0))
    (True, False)
    """
    return type(x) in _PYTHON_64 or isinstance(x, python_scalars) and not isinstance(x, np.generic)


def scalar_type_of(x: Any) -> type:
    """The Python type of the elements of a value or dtype.

    Args:
      x: an array, a number, a dtype, its name or a scalar class.

    Returns:
      ``bool``, ``int``, ``float`` or ``complex``.

    Raises:
      TypeError: if ``x`` has no dtype, or one without a Python type.

    The values of an array are not read.

    >>> from primax_core import dtypes
    >>> dtypes.scalar_type_of("bfloat16")
    <class 'float'>
    >>> dtypes.scalar_type_of(1j)
    <class 'complex'>
    """
    kind = _kind(dtype_of(x))
    if kind not in _SCALAR_TYPES:
        raise TypeError(f"Invalid scalar value {x}")
    return _SCALAR_TYPES[kind]


_SCALAR_TYPES: Final = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def _kind(dtype: Any) -> str:
    """NumPy's kind ``b i u f c`` of a dtype, also for ml_dtypes; ``V`` for other dtypes."""
    if dtype in _CUSTOM_FLOATS:
        return "f"
    if dtype in _CUSTOM_SIGNED:
        return "i"
    if dtype in _CUSTOM_UNSIGNED:
        return "u"
    return dtype.kind


kind_of = _kind


def dtype_of(x: Any) -> Any:
    """The dtype of a value or of a dtype-like object, not canonicalized."""
    kind = _PYTHON_64.get(type(x))
    if kind is not None:
        return kind
    attribute = getattr(x, "dtype", None)
    if isinstance(attribute, (np.dtype, ExtendedDType)):
        return attribute
    if isinstance(x, (np.dtype, ExtendedDType, str, type)):
        return _PYTHON_64[x] if isinstance(x, type) and x in _PYTHON_64 else as_dtype(x)
    for python_type in python_scalars:  # subclasses, such as IntEnum
        if isinstance(x, python_type):
            return _PYTHON_64[python_type]
    if callable(getattr(x, "__jax_array__", None)):
        return dtype_of(x.__jax_array__())
    raise TypeError(f"Cannot determine dtype of {x!r}")


def dtype(x: Any, *, canonicalize: bool = True) -> Any:
    """The dtype of a value or of a dtype-like object.

    >>> from primax_core._ir import dtypes
    >>> dtypes.dtype(1.0)
    dtype('float32')
    """
    value_dtype = dtype_of(x)
    check_valid_dtype(value_dtype, x)
    return (
        canonicalize_dtype(value_dtype, allow_extended_dtype=True) if canonicalize else value_dtype
    )


def is_weakly_typed(x: Any) -> bool:
    """Return True if a value has a weak type: Python numbers except bools, and weak arrays."""
    if type(x) in _PYTHON_64:
        return type(x) is not bool
    weak = getattr(x, "weak_type", None)
    if weak is None:
        return is_python_scalar(x) and not isinstance(x, bool)
    return bool(weak)


# Classes of dtypes

_PYTHON_CLASSES: Final = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}


def issubdtype(a: Any, b: Any) -> bool:
    """Return True if dtype or class ``a`` is below ``b``.

    Unlike NumPy's function it knows the dtypes of ``ml_dtypes`` (``bfloat16``, ``int4``, 8-bit
    floats) and extended dtypes.

    Args:
      a: a dtype, its name or a scalar class.
      b: a dtype, its name or a scalar class such as ``np.floating``.

    Returns:
      A bool.

    Raises:
      TypeError: if an argument is not a dtype or class.

    >>> import numpy as np
    >>> from primax_core import dtypes
    >>> dtypes.issubdtype("bfloat16", np.floating), dtypes.issubdtype("int4", np.signedinteger)
    (True, True)
    >>> dtypes.issubdtype("float32", np.integer)
    False
    """
    try:
        below = _issubdtype_cache.get((a, b))
    except TypeError:
        return _issubdtype(a, b)
    if below is None:
        below = _issubdtype(a, b)
        _issubdtype_cache[a, b] = below
    return below


_issubdtype_cache: Final[dict[tuple[Any, Any], bool]] = caches.bounded_cache()


def _issubdtype(a: Any, b: Any) -> bool:
    a_class, b_class = _scalar_class(a), _scalar_class(b)
    if issubclass(a_class, extended) or issubclass(b_class, extended):
        return issubclass(a_class, b_class)
    if a_class in _ML_CLASSES or b_class in _ML_CLASSES:
        if a_class is b_class:
            return True
        if b_class in _ML_CLASSES:
            return False
        return issubclass(_ML_CLASSES[a_class], b_class)
    return bool(np.issubdtype(a_class, b_class))


_ML_CLASSES: Final[dict[type, type]] = {
    **{d.type: np.floating for d in _CUSTOM_FLOATS},
    **{d.type: np.signedinteger for d in _CUSTOM_SIGNED},
    **{d.type: np.unsignedinteger for d in _CUSTOM_UNSIGNED},
}


def _scalar_class(x: Any) -> type:
    if isinstance(x, type):
        if x in _PYTHON_CLASSES:
            return _PYTHON_CLASSES[x]
        if issubclass(x, np.generic):
            return x
    return as_dtype(x).type


# Limits and sizes

finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo

_ODD_BITS: Final = {
    "int1": 1, "uint1": 1, "int2": 2, "uint2": 2, "int4": 4, "uint4": 4,
    "float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6,
}  # fmt: skip


def itemsize_bits(dtype: DTypeLike) -> int:
    """Number of significant bits of an element.

    Args:
      dtype: a dtype, its name or a scalar class.

    Returns:
      An integer: 4 for ``int4``, 8 for ``bool``, 64 for ``complex64``.

    Raises:
      TypeError: if it is not a dtype.

    An element of ``int4`` occupies a byte on the host, and half a byte on some devices.

    >>> from primax_core import dtypes
    >>> dtypes.itemsize_bits("int4"), dtypes.itemsize_bits("float32")
    (4, 32)
    >>> dtypes.itemsize_bits(bool)
    8
    """
    if dtype is None:
        raise ValueError("dtype cannot be None.")
    exact = as_dtype(dtype)
    if isinstance(exact, ExtendedDType):
        raise ValueError(f"unexpected input: dtype={dtype}")
    return _ODD_BITS.get(exact.name) or exact.itemsize * 8


# Names

_SHORT_PREFIXES: Final = (
    ("bfloat", "bf"), ("uint", "u"), ("int", "i"), ("float", "f"), ("complex", "c"),
)  # fmt: skip
_short_names: Final[dict[Any, str]] = {float0: "float0"}


def short_name(dtype: Any) -> str:
    """The dtype's name in printed jaxprs: ``f32``, ``u8``, ``bf16``, ``bool``.

    >>> from primax_core._ir import dtypes
    >>> dtypes.short_name(dtypes.bf16)
    'bf16'
    """
    name = _short_names.get(dtype)
    if name is None:
        name = dtype.name
        if not isinstance(dtype, ExtendedDType):
            for prefix, short in _SHORT_PREFIXES:
                if name.startswith(prefix):
                    name = short + name[len(prefix) :]
                    break
        _short_names[dtype] = name
    return name


def dtype_named(name: str) -> DType | None:
    """The dtype with a ``full_name``; ``None`` if there is none.

    >>> from primax_core._ir import dtypes
    >>> dtypes.dtype_named("bfloat16") == dtypes.bf16
    True
    """
    if name == "float0":
        return float0
    named: DType | None = _by_name.get(name)
    return extended_dtypes.get(name) if named is None else named


def full_name(dtype: DType) -> str:
    """The name of a dtype for `dtype_named`."""
    return "float0" if dtype == float0 else dtype.name
