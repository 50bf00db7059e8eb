"""Element types: canonical forms, classes, limits and names.

Promotion of several types to one is in `promotion`; `dtypes` gathers both.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from .._base import caches
from .._base.config import state
from .._base.source import warn

# Extended dtypes


class extended(np.generic):
    """Scalar class above all element types that NumPy does not know, for `issubdtype`."""


class prng_key(extended):
    """Scalar class of random keys, for `issubdtype`."""


class ExtendedDType:
    """Base of element types that NumPy does not know.

    A subclass gives ``type``, a scalar class below `extended`; ``name``; and ``itemsize``, the
    bytes of an element. Instances are compared and hashed as values.
    """

    __slots__ = ()
    type: type[extended]
    name: str
    itemsize: int
    kind: str = "V"


extended_dtypes: Final[dict[str, ExtendedDType]] = {}
"""Extended dtypes by name: who defines one enters it here, so that programs can be read back."""

DType = np.dtype | ExtendedDType

DTypeLike: TypeAlias = str | type[Any] | np.dtype | ExtendedDType
"""A dtype, its name, or a scalar class."""

float0: Final = np.dtype([("float0", np.void, 0)])
"""Type of the tangents of integers and booleans: no information, no storage."""

# Short names. The values are what NumPy calls "scalar types"; ``np.dtype`` takes each of them.

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

# Canonical dtype of everything asked for so far, by x64 setting. np.dtype(...) is slow in
# comparison.
_canonical: Final[tuple[dict[Any, Any], dict[Any, Any]]] = (
    {**{d: _NARROWED.get(d, d) for d in (*all_dtypes, float0)}, **_PYTHON_32},
    {**{d: d for d in (*all_dtypes, float0)}, **_PYTHON_64},
)


def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: bool = False) -> Any:
    """The dtype that arrays asked for ``dtype`` have: 64-bit types only if ``enable_x64`` is on.

    >>> from primax_core import dtypes
    >>> dtypes.canonicalize_dtype("int64")
    dtype('int32')
    """
    try:
        found = _canonical[state.enable_x64].get(dtype)
    except TypeError:
        found = None
    if found is not None:
        return found
    if isinstance(dtype, ExtendedDType):
        if allow_extended_dtype:
            return dtype
        raise ValueError(f"extended dtype {dtype} has no canonical NumPy dtype")
    exact = as_dtype(dtype)
    if state.enable_x64 or exact not in _NARROWED:
        return exact
    return _NARROWED[exact]


def as_dtype(dtype: DTypeLike) -> Any:
    """The dtype that a dtype, its name, a scalar class or a Python type stands for, as it is.

    ``None`` stands for the default float, wide.
    """
    if isinstance(dtype, (np.dtype, ExtendedDType)):
        return dtype
    if isinstance(dtype, str):
        found = _by_name.get(dtype)
        if found is not None:
            return found
    own = getattr(dtype, "dtype", None)
    if isinstance(own, (np.dtype, ExtendedDType)):
        return own
    return np.dtype(dtype)


_by_name: Final = {d.name: d for d in all_dtypes}


def default_int() -> np.dtype:
    """The dtype of integers that ask for none."""
    return i64 if state.enable_x64 else i32


def default_uint() -> np.dtype:
    """The dtype of unsigned integers that ask for none."""
    return u64 if state.enable_x64 else u32


def default_float() -> np.dtype:
    """The dtype of floating-point numbers that ask for none."""
    return f64 if state.enable_x64 else f32


def default_complex() -> np.dtype:
    """The dtype of complex numbers that ask for none."""
    return c128 if state.enable_x64 else c64


def narrowed(dtype: Any) -> Any:
    """The 32-bit counterpart of a 64-bit dtype; other dtypes as they are."""
    return _NARROWED.get(dtype, dtype)


# What a caller asks for


def canonicalize_user_dtype(dtype: DTypeLike, api_name: str) -> Any:
    """The canonical dtype for a ``dtype=`` argument of the public function ``api_name``.

    Warns (or raises, or obeys; see ``explicit_x64_dtypes``) where 64 bits were asked for by name
    and are off, and refuses what no array can hold. ``None`` is not handled here.
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
            f"JAX only supports number, bool, and string dtypes, got dtype {dtype} in {api_name}"
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
        "option enable_x64, for example with the environment variable PRIMAX_ENABLE_X64=1."
    )
    return narrow


def check_valid_dtype(dtype: Any, value: Any = None) -> None:
    """Raise ``TypeError`` unless arrays can have the dtype."""
    if dtype in _VALID or isinstance(dtype, ExtendedDType):
        return
    text = getattr(dtype, "str", dtype) if getattr(dtype, "kind", "") in "SU" else dtype
    subject = f"dtype {text}" if value is None else f"Value {value!r} with dtype {text}"
    raise TypeError(
        f"{subject} is not a valid JAX array type. Only arrays of numeric types are supported."
    )


def check_python_int(value: int, dtype: Any) -> None:
    """Raise ``OverflowError`` if an integer dtype cannot hold a Python int that was asked to fit.

    The default integer, which is chosen and not asked for, has a text of its own.
    """
    low, high = _int_range(dtype)
    if not low <= value <= high:
        raise OverflowError(f"Python integer {value} out of bounds for {dtype.name}")


def check_default_int(value: int) -> None:
    """Raise ``OverflowError`` if the default integer dtype cannot hold a Python int."""
    dtype = default_int()
    low, high = _int_range(dtype)
    if not low <= value <= high:
        raise OverflowError(f"Python int {value} too large to convert to {dtype.name}")


def _int_range(dtype: Any) -> tuple[int, int]:
    found = _int_ranges.get(dtype)
    if found is None:
        info = ml_dtypes.iinfo(dtype)
        found = _int_ranges[dtype] = int(info.min), int(info.max)
    return found


_int_ranges: Final[dict[Any, tuple[int, int]]] = caches.bounded_cache()


# Values and their types

python_scalars: Final = (bool, int, float, complex)


def is_python_scalar(x: Any) -> bool:
    """Whether ``x`` is a Python bool, int, float or complex, and no NumPy scalar.

    >>> from primax_core._ir.dtypes import is_python_scalar
    >>> import numpy as np
    >>> is_python_scalar(1.0), is_python_scalar(np.float64(1.0))
    (True, False)
    """
    return type(x) in _PYTHON_64 or isinstance(x, python_scalars) and not isinstance(x, np.generic)


def scalar_type_of(x: Any) -> type:
    """The Python type, bool, int, float or complex, that the elements of a value or dtype resemble.

    >>> from primax_core import dtypes
    >>> dtypes.scalar_type_of("bfloat16")
    <class 'float'>
    """
    kind = _kind(dtype_of(x))
    if kind not in _SCALAR_TYPES:
        raise TypeError(f"Invalid scalar value {x}")
    return _SCALAR_TYPES[kind]


_SCALAR_TYPES: Final = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def _kind(dtype: Any) -> str:
    """``b i u f c`` as NumPy has it, also for ml_dtypes; ``V`` for what is no number."""
    if dtype in _CUSTOM_FLOATS:
        return "f"
    if dtype in _CUSTOM_SIGNED:
        return "i"
    if dtype in _CUSTOM_UNSIGNED:
        return "u"
    return dtype.kind


kind_of = _kind


def dtype_of(x: Any) -> Any:
    """The dtype of a value, or that a dtype-like object stands for, uncanonicalised."""
    kind = _PYTHON_64.get(type(x))
    if kind is not None:
        return kind
    found = getattr(x, "dtype", None)
    if isinstance(found, (np.dtype, ExtendedDType)):
        return found
    if isinstance(x, (np.dtype, ExtendedDType, str, type)):
        return _PYTHON_64[x] if isinstance(x, type) and x in _PYTHON_64 else as_dtype(x)
    for python_type in python_scalars:  # subclasses, such as IntEnum
        if isinstance(x, python_type):
            return _PYTHON_64[python_type]
    if hasattr(x, "__jax_array__"):
        return dtype_of(x.__jax_array__())
    raise TypeError(f"Cannot determine dtype of {x!r}")


def dtype(x: Any, *, canonicalize: bool = True) -> Any:
    """The dtype of a value, or that a dtype-like object stands for.

    >>> from primax_core._ir import dtypes
    >>> dtypes.dtype(1.0)
    dtype('float32')
    """
    found = dtype_of(x)
    check_valid_dtype(found, x)
    return canonicalize_dtype(found, allow_extended_dtype=True) if canonicalize else found


def is_weakly_typed(x: Any) -> bool:
    """Whether a value's dtype gives way in promotion: Python numbers but bools, and weak arrays."""
    if type(x) in _PYTHON_64:
        return type(x) is not bool
    weak = getattr(x, "weak_type", None)
    if weak is None:
        return is_python_scalar(x) and not isinstance(x, bool)
    return bool(weak)


# Classes of dtypes

_PYTHON_CLASSES: Final = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}


def issubdtype(a: Any, b: Any) -> bool:
    """Whether dtype or class ``a`` is below ``b``, also for ml_dtypes and extended dtypes.

    >>> import numpy as np
    >>> from primax_core import dtypes
    >>> dtypes.issubdtype("bfloat16", np.floating), dtypes.issubdtype("int4", np.signedinteger)
    (True, True)
    """
    try:
        found = _issubdtype_cache.get((a, b))
    except TypeError:
        return _issubdtype(a, b)
    if found is None:
        found = _issubdtype(a, b)
        _issubdtype_cache[a, b] = found
    return found


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
    """Bits that an element carries: 4 for ``int4``, 8 for ``bool``.

    >>> from primax_core import dtypes
    >>> dtypes.itemsize_bits("int4")
    4
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
    """The dtype's name in printed programs: ``f32``, ``u8``, ``bf16``, ``bool``.

    >>> from primax_core._ir import dtypes
    >>> dtypes.short_name(dtypes.bf16)
    'bf16'
    """
    found = _short_names.get(dtype)
    if found is None:
        found = dtype.name
        if not isinstance(dtype, ExtendedDType):
            for prefix, short in _SHORT_PREFIXES:
                if found.startswith(prefix):
                    found = short + found[len(prefix) :]
                    break
        _short_names[dtype] = found
    return found


def dtype_named(name: str) -> DType | None:
    """The dtype of a name, as ``full_name`` gives it; ``None`` if there is none.

    >>> from primax_core._ir import dtypes
    >>> dtypes.dtype_named("bfloat16") == dtypes.bf16
    True
    """
    if name == "float0":
        return float0
    found: DType | None = _by_name.get(name)
    return extended_dtypes.get(name) if found is None else found


def full_name(dtype: DType) -> str:
    """What `dtype_named` finds a dtype by."""
    return "float0" if dtype == float0 else dtype.name
