"""XLA's call frame of a typed handler, for handlers that are compiled from Python functions.

The frame and the structures in it are read as words of 64 bits. Their layout, in
``xla/ffi/api/c_api.h``, has been the same since version 0.3 of the interface. :func:`layout`
describes a signature in words, so that compiled code can compare it with a frame.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from ._signatures import Signature

VERSION: Final = (0, 3)
"""The version of the interface that the layout is known for."""

CODES: Final = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8,
    "uint64": 9, "float32": 11, "float64": 12, "complex64": 15, "complex128": 18,
}  # fmt: skip
"""XLA's numbers of the dtypes that compiled functions have."""

ARRAY, SCALAR = 1, 3
"""Types of attributes."""

_OTHER: Final = {10: "float16", 16: "bfloat16", 17: "token"}
_NAMES: Final = {**{code: name for name, code in CODES.items()}, **_OTHER}

# Positions in the call frame, in words.
EXTENSION, API, STAGE = 1, 2, 4
OPERANDS, RESULTS, ATTRIBUTES = 7, 12, 17
"""The number of operands, results and attributes; types and pointers follow it."""

_ERROR_CREATE: Final = 6
"""Position of ``XLA_FFI_Error_Create`` in XLA's table of functions."""

_INVALID_ARGUMENT, _UNKNOWN = 3, 2

_Create: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class _ErrorCreate(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("code", ctypes.c_int),
    ]


def layout(signature: Signature) -> tuple[np.ndarray, list[Any]]:
    """A signature in words.

    Returns:
      The numbers of operands, results and attributes; for each array its dtype, item size, rank,
      whether it has leading axes, and the position of its axes; for each attribute its type, its
      dtype, and the length and the address of its name; the axes. An axis is a size, or
      ``-1 - 256 * array - axis`` of the first with its name. Also the names, whose memory is used.
    """
    arrays = [*signature.operands, *signature.results]
    attributes = sorted(signature.attrs.items())
    first: dict[str, int] = {}
    axes: list[int] = []
    start = 3 + 5 * len(arrays) + 4 * len(attributes)
    words = [len(signature.operands), len(signature.results), len(attributes)]
    for i, type_ in enumerate(arrays):
        dtype = np.dtype(type_.dtype)
        words += [CODES[dtype.name], dtype.itemsize, len(type_.sizes), type_.leading]
        words.append(start + len(axes))
        for k, size in enumerate(type_.sizes):
            axes.append(first.setdefault(size, -1 - 256 * i - k) if isinstance(size, str) else size)
    names = [ctypes.create_string_buffer(name.encode()) for name, _ in attributes]
    for (_, kind), name in zip(attributes, names):
        words += [ARRAY if kind.endswith("[]") else SCALAR, CODES[attribute_dtype(kind).name]]
        words += [len(name) - 1, ctypes.addressof(name)]
    return np.array([*words, *axes], np.int64), names


def attribute_dtype(kind: str) -> np.dtype:
    """The dtype of a number, or of the elements of an array."""
    (type_,) = Signature([kind.removesuffix("[]")], []).operands
    return np.dtype(type_.dtype)


def new_error(frame: int, text: str, invalid: bool) -> int:
    """An error of XLA.

    Args:
      frame: the address of the call frame.
      invalid: the call does not fit the function; otherwise the function has failed.

    Returns:
      Its address, which the handler returns to XLA.
    """
    create = _Create(_word(_word(frame, API), _ERROR_CREATE))
    code = _INVALID_ARGUMENT if invalid else _UNKNOWN
    message = text.encode(errors="replace").replace(b"\0", b" ")
    arguments = _ErrorCreate(ctypes.sizeof(_ErrorCreate), None, message, code)
    return create(ctypes.addressof(arguments)) or 0


def describe(frame: int) -> str:
    """The types of the operands, results and attributes of a call, for messages."""
    operands, results = (_arrays(frame, first) for first in (OPERANDS, RESULTS))
    names = [_text(_word(_word(frame, ATTRIBUTES + 2), i)) for i in range(_word(frame, ATTRIBUTES))]
    attributes = f"; {', '.join(names)}" if names else ""
    return f"{', '.join(operands)}{attributes} -> {', '.join(results)}"


def _arrays(frame: int, first: int) -> list[str]:
    types = []
    for i in range(_word(frame, first)):
        buffer = _word(_word(frame, first + 2), i)
        code, rank, sizes = _word(buffer, 2) & 0xFFFFFFFF, _word(buffer, 4), _word(buffer, 5)
        shape = " ".join(str(_word(sizes, k)) for k in range(rank))
        types.append(f"{_NAMES.get(code, f'dtype {code}')}[{shape}]")
    return types


def _text(span: int) -> str:
    return ctypes.string_at(_word(span, 0), _word(span, 1)).decode(errors="replace")


def _word(address: int, position: int) -> int:
    return ctypes.c_int64.from_address(address + 8 * position).value
