"""Format of the files of the cache.

::

    magic        8 bytes, with the version of this format
    checksum    32 bytes: BLAKE2b of all that follows, keyed with the file's own key
    about        4 bytes: length of the description
    packed       8 bytes: length of the executable in the file
    plain        8 bytes: its unpacked length; equal to ``packed`` if it is not compressed
    the description: name, platform, jaxlib version, required native functions; one a line
    the executable

A link (from the key of a jaxpr to its module, so that it need not be lowered) is ``magic``,
``checksum`` and 32 bytes: the digest of the module.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ..._base.digest import SIZE, digest

EXECUTABLE: Final = b"PRMXexe1"
LINK: Final = b"PRMXlnk1"
_HEAD: Final = struct.Struct("<IQQ")
_BODY: Final = 8 + SIZE
# Compression does not make a smaller executable occupy fewer blocks of the file system.
_COMPRESSED_FROM: Final = 32 * 1024
# A larger size is an error: no memory is allocated for it.
LARGEST: Final = 1 << 32


class Damaged(ValueError):
    """The contents of a file are not those that were written."""


class Entry:
    """A cached executable.

    Attributes:
      name: the name of the function.
      platform: ``cpu``, ``cuda`` ...
      version: the version of jaxlib.
      needs: names of the required native functions, see ``custom_calls``.
      blob: jaxlib's serialised executable.
    """

    __slots__ = ("name", "platform", "version", "needs", "blob")

    def __init__(self, name: str, platform: str, version: str, needs: Sequence[str], blob: bytes):
        self.name = name
        self.platform = platform
        self.version = version
        self.needs = tuple(needs)
        self.blob = blob


def pack(entry: Entry, key: bytes) -> bytes:
    """The bytes of a file."""
    lines = (entry.name, entry.platform, entry.version, "\0".join(entry.needs))
    about = "\n".join(line.replace("\n", " ") for line in lines).encode()
    blob = entry.blob
    if len(blob) >= _COMPRESSED_FROM:
        import zlib

        packed = zlib.compress(blob, 1)
        blob = packed if len(packed) < len(blob) else blob
    body = b"".join((_HEAD.pack(len(about), len(blob), len(entry.blob)), about, blob))
    return b"".join((EXECUTABLE, digest(body, key), body))


def unpack(data: bytes, key: bytes) -> Entry:
    """The entry in the bytes of a file.

    Raises:
      Damaged: if they are not the bytes written with this key.
    """
    body = _checked(data, key, EXECUTABLE)
    about_size, packed, plain = _HEAD.unpack_from(body)
    start = _HEAD.size + about_size
    if start + packed != len(body) or plain > LARGEST:
        raise Damaged("its lengths are inconsistent")
    blob = bytes(body[start:])
    if packed != plain:
        import zlib

        blob = zlib.decompress(blob, bufsize=plain)
        if len(blob) != plain:
            raise Damaged("its lengths are inconsistent")
    name, platform, version, needs = str(body[_HEAD.size : start], "utf-8").split("\n")
    return Entry(name, platform, version, [n for n in needs.split("\0") if n], blob)


def pack_link(target: bytes, key: bytes) -> bytes:
    """The bytes of a link."""
    return b"".join((LINK, digest(target, key), target))


def unpack_link(data: bytes, key: bytes) -> bytes:
    """The digest in a link.

    Raises:
      Damaged: if it is not the link written with this key.
    """
    return bytes(_checked(data, key, LINK))


def _checked(data: bytes, key: bytes, magic: bytes) -> memoryview:
    view = memoryview(data)
    body = view[_BODY:]
    if view[:8] != magic:
        raise Damaged("it does not begin with the magic number of the format")
    if view[8:_BODY] != digest(body, key):
        raise Damaged("its checksum is wrong")
    return body
