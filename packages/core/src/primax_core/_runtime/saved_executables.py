"""Serialized executables for users.

::

    magic        8 bytes
    checksum    32 bytes: BLAKE2b of all that follows
    about        8 bytes: length of the description in JSON
    executable   8 bytes: its length
    constants    8 bytes: their length
    the description, the executable, the constants

XLA does not check an executable that it loads, and a damaged one ends the process. Therefore the
checksum and the target machine are compared first. This is no protection against malicious bytes:
an executable is machine code.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import numpy as np

from .._base.digest import SIZE, digest
from .._base.errors import InvalidArtifactError
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .disk import keys
from .jaxlib_versions import build, program_shape, topology_fingerprint

MAGIC: Final = b"PRMXaot1"
_HEAD: Final = struct.Struct("<QQQ")
_BODY: Final = 8 + SIZE


def seal(about: dict[str, Any], executable: bytes, constants: bytes) -> bytes:
    """The bytes of a file."""
    text = json.dumps(about, separators=(",", ":")).encode()
    head = _HEAD.pack(len(text), len(executable), len(constants))
    body = b"".join((head, text, executable, constants))
    return b"".join((MAGIC, digest(body), body))


def unseal(data: bytes) -> tuple[dict[str, Any], bytes, bytes]:
    """The contents of a file.

    Raises:
      InvalidArtifactError: if the bytes are damaged.
    """
    if data[:8] != MAGIC:
        raise InvalidArtifactError(
            "these bytes are not a serialized executable: "
            + (f"they begin with {data[:8]!r}" if data else "they are empty")
        )
    view = memoryview(data)
    if len(data) < _BODY + _HEAD.size or view[8:_BODY] != digest(view[_BODY:]):
        damaged("its checksum is wrong, for example because it is truncated")
    sizes = _HEAD.unpack_from(data, _BODY)
    start = _BODY + _HEAD.size
    if start + sum(sizes) != len(data):
        damaged("its lengths are inconsistent")
    ends = (start + sizes[0], start + sizes[0] + sizes[1])
    try:
        about = json.loads(bytes(view[start : ends[0]]))
    except (ValueError, RecursionError):
        damaged("its description cannot be read")
    if type(about) is not dict:
        damaged("its description cannot be read")
    return about, bytes(view[ends[0] : ends[1]]), bytes(view[ends[1] :])


def damaged(why: str) -> NoReturn:
    """Raise the error of damaged bytes."""
    raise InvalidArtifactError(f"the serialized executable is damaged: {why}")


# Target of the compilation


def machine(devs: tuple) -> dict[str, Any]:
    """Everything that machine code for these devices depends on, by names for messages."""
    client = devs[0].client
    host = keys.host()
    return {
        "jaxlib": repr(build()),
        "system": f"{sys.platform} {host[1]}",
        "processor": repr(host[4:]),
        "platform": client.platform,
        "platform version": client.platform_version,
        "devices": repr([d.device_kind for d in devs]),
        "topology": str(topology_fingerprint(devs)),
    }


def check_machine(target: Any, devs: tuple) -> None:
    """Raise an error for an executable compiled for another machine.

    Raises:
      InvalidArtifactError: with the difference.
    """
    if type(target) is not dict:
        damaged("its target is not described")
    for name, here in machine(devs).items():
        if target.get(name) != here:
            there = str(target.get(name))
            raise InvalidArtifactError(
                f"the executable was compiled for another {name}: {_shortened(there)}, but this is "
                f"{_shortened(here)}. Compile it here; `export` creates artifacts that are "
                "portable between versions and machines."
            )


def _shortened(text: str) -> str:
    return text if len(text) < 200 else text[:200] + "..."


# Avals and values


def type_text(aval: Any) -> list[Any]:
    """An aval as JSON."""
    return [list(aval.shape), dtypes.full_name(aval.dtype), bool(aval.weak_type)]


def type_of(value: Any) -> ShapedArray:
    """The aval of a JSON value."""
    try:
        shape, name, weak = value
        if not all(type(d) is int and 0 <= d < 2**62 for d in shape) or type(weak) is not bool:
            raise TypeError
        dtype = dtypes.dtype_named(name)
    except (TypeError, ValueError):
        damaged("a type cannot be read")
    if dtype is None:
        raise InvalidArtifactError(
            f"the executable has values of dtype {name[:40]!r}, which is unknown: import the "
            "package that defines it (primax.random for the dtypes of keys)"
        )
    return ShapedArray(tuple(shape), dtype, weak)


def constants_of(types: Sequence[ShapedArray], data: bytes) -> list[np.ndarray]:
    """The constant arguments of an executable, as NumPy arrays."""
    constants, start = [], 0
    for aval in types:
        size = aval.size * aval.dtype.itemsize
        if start + size > len(data):
            damaged("constants are missing")
        part = np.frombuffer(data, np.uint8, size, start).view(aval.dtype)
        constants.append(part.reshape(aval.shape))
        start += size
    if start != len(data):
        damaged("there are more constants than described")
    return constants


def check_types(raw: Any, arguments: Sequence[Any], results: Sequence[Any]) -> None:
    """Raise an error for an executable whose buffers differ from its description."""
    for what, buffers, avals in zip(
        ("arguments", "results"), program_shape(raw), (arguments, results)
    ):
        if len(buffers) != len(avals) or any(
            tuple(shape) != a.shape or (dtype is not None and dtype != a.dtype)
            for (shape, dtype), a in zip(buffers, avals)
        ):
            damaged(f"its {what} differ from its description")
