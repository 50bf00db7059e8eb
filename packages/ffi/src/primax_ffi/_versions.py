"""Versions of the interface that typed handlers were built with.

XLA refuses handlers that were built with newer headers than its own, when a program needs them. A
handler is asked here when it is registered, as XLA does: it is called with an extension of the call
frame in which it writes its version (``xla/ffi/api/c_api.h``).
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from primax_core.extend import native

_METADATA: Final = 1
"""Type of the extension that asks for a handler's metadata."""


class _Version(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
    ]


class _Metadata(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("version", _Version),
        ("traits", ctypes.c_uint32),
        ("state_type", ctypes.c_int64),
    ]


class _Extension(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    ]


class _Frame(ctypes.Structure):
    """The call frame, without operands, results and attributes."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.POINTER(_Extension)),
        ("api", ctypes.c_void_p),
        ("rest", ctypes.c_void_p * 30),
    ]


_refuse: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: 1)
"""Function of XLA's that a handler calls to make an error; the error is not looked at."""

_REFUSE: Final = ctypes.cast(_refuse, ctypes.c_void_p).value
_TABLE: Final = (ctypes.c_void_p * 70)(70 * 8, None, 24, None, None, None, *[_REFUSE] * 64)
"""XLA's functions, after the size, the version and a pointer to further ones."""


def check_version(name: str, handlers: Any) -> None:
    """Raise an error if a handler was built with newer headers than the installed jaxlib's.

    Raises:
      RuntimeError: in this case.
    """
    own = installed_version()
    # The handlers of other stages may need types that are not registered yet.
    handler = handlers.get("execute") if isinstance(handlers, Mapping) else handlers
    version = version_of(handler)
    if version is not None and (version[0] != own[0] or version > own):
        raise RuntimeError(
            f"the native function {name!r} was built with the headers of interface version "
            f"{version[0]}.{version[1]}, but the installed jaxlib takes {own[0]}.{own[1]}: "
            "build it with the headers of the oldest jaxlib that you support (include_dir())"
        )


def version_of(handler: Any) -> tuple[int, int] | None:
    """The version of the interface that a typed handler was built with.

    Returns:
      The major and the minor number; ``None`` if the handler does not answer.
    """
    address = _address(handler)
    if not address:
        return None
    size = ctypes.sizeof
    version = _Version(size(_Version), None, -1, -1)
    metadata = _Metadata(size(_Metadata), version, 0, 0)
    extension = _Extension(size(_Extension), _METADATA, None, ctypes.pointer(metadata))
    frame = _Frame(21 * 8, ctypes.pointer(extension), ctypes.addressof(_TABLE))
    for first, words in ((2, 5), (7, 5), (12, 6)):  # operands, results, attributes
        frame.rest[first] = words * 8
    call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))(address)
    if call(ctypes.byref(frame)) or metadata.version.major < 0:
        return None
    return metadata.version.major, metadata.version.minor


@functools.cache
def installed_version() -> tuple[int, int]:
    """The version of the interface of the installed jaxlib, from its headers."""
    text = (Path(native.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text()
    major, minor = (
        int(re.search(rf"#define XLA_FFI_API_{part} (\d+)", text)[1])  # type: ignore[index]
        for part in ("MAJOR", "MINOR")
    )
    return major, minor


def _address(handler: Any) -> int | None:
    if isinstance(handler, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return ctypes.cast(handler, ctypes.c_void_p).value
    if type(handler).__name__ != "PyCapsule":
        return None
    get_name, get = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    name = get_name(handler)
    return None if name is not None else get(handler, name)
