"""DLPack capsules on the host, read as NumPy arrays over their memory.

The layout of the structures is DLPack's (https://dmlc.github.io/dlpack/latest/c_api.html).
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from .._ir import dtypes

_UNVERSIONED: Final = b"dltensor"
_VERSIONED: Final = b"dltensor_versioned"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _tensor(capsule: Any) -> _Tensor:
    """The tensor of a capsule; valid as long as the capsule."""
    if _is_valid(capsule, _UNVERSIONED):
        return _Tensor.from_address(_pointer(capsule, _UNVERSIONED))
    if _is_valid(capsule, _VERSIONED):
        versioned = _Versioned.from_address(_pointer(capsule, _VERSIONED))
        if versioned.major > 1:
            raise BufferError(
                f"a DLPack capsule of version {versioned.major}.{versioned.minor} cannot be read: "
                "only versions 0 and 1 are supported"
            )
        return versioned.tensor
    raise TypeError(f"expected an unused DLPack capsule, got {capsule!r}")


def address(capsule: Any) -> int:
    """Address of a capsule's first element."""
    tensor = _tensor(capsule)
    return (tensor.data or 0) + tensor.byte_offset


class _Memory:
    """Memory with an array interface for NumPy, and its owner, which it keeps alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, pointer, typestr, shape, strides, owner):
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (pointer, True),
            "typestr": typestr,
            "shape": shape,
            "strides": strides,
        }


def host_view(capsule: Any, shape: tuple[int, ...] | None = None, dtype: Any = None) -> np.ndarray:
    """A read-only array over the memory of a capsule on the host, which it keeps alive.

    The capsule is not marked as used: its own destructor frees the memory after the view. Shape and
    dtype default to those of the capsule.
    """
    tensor = _tensor(capsule)
    if dtype is None:
        dtype = _dtype_of(tensor)
    if shape is None:
        shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = None
    if tensor.strides:
        strides = tuple(tensor.strides[i] * dtype.itemsize for i in range(tensor.ndim))
    pointer = (tensor.data or 0) + tensor.byte_offset
    if not pointer or 0 in shape:
        return np.empty(shape, dtype)
    # NumPy accepts the type strings of its own dtypes only.
    typestr = dtype.str if dtype.isbuiltin == 1 else f"|V{dtype.itemsize}"
    view = np.asarray(_Memory(pointer, typestr, shape, strides, capsule))
    return view.view(dtype)


# Element types


def _codes() -> dict[tuple[int, int], np.dtype]:
    table: dict[tuple[int, int], Any] = {(6, 8): np.bool_}
    for bits in (8, 16, 32, 64):
        table[0, bits] = f"int{bits}"
        table[1, bits] = f"uint{bits}"
    table.update({(2, 16): "float16", (2, 32): "float32", (2, 64): "float64"})
    table.update({(4, 16): dtypes.bf16, (5, 64): "complex64", (5, 128): "complex128"})
    by_name = {d.name: d for d in dtypes.narrow_floats}
    names = (
        "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
        "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    )  # fmt: skip
    table.update({(7 + i, 8): by_name[n] for i, n in enumerate(names) if n in by_name})
    return {key: np.dtype(value) for key, value in table.items()}


_DTYPES: Final = _codes()
exportable_dtypes: Final = frozenset(_DTYPES.values())
"""The dtypes with a DLPack type of whole bytes."""


def _dtype_of(tensor: _Tensor) -> np.dtype:
    dtype = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise BufferError(
            f"DLPack type (code={tensor.code}, bits={tensor.bits}, lanes={tensor.lanes}) has no "
            "array dtype"
        )
    return dtype
