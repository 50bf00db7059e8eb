"""Reading tables in the FlatBuffers format, with every offset checked.

The format: little-endian; a table begins with the distance back to its list of fields, which has
its own size and the table's, then for each field the distance from the table's start, or 0; strings
and vectors begin with their length. The library's Python side writes the format, and has no
verifier for reading what others wrote.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

from ..._base.errors import InvalidArtifactError

_T = TypeVar("_T")

_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")
_I32: Final = struct.Struct("<i")
_NUMBERS: Final = {"u8": struct.Struct("<B"), "u16": _U16, "u32": _U32, "i32": _I32}

# How deep tables may stand in tables.
DEPTH: Final = 300


def damaged(why: str) -> NoReturn:
    """Raise the error of bytes that do not hold what they should."""
    raise InvalidArtifactError(f"the artifact is damaged: {why}")


class Buffer:
    """Bytes that hold tables.

    A table takes four bytes at least, so there are no more of them than fit: tables that refer to
    each other, which would never end or grow without bound, run out.
    """

    __slots__ = ("data", "tables_left")

    def __init__(self, data: bytes):
        self.data = data
        self.tables_left = len(data) // 4 + 1

    def unpack(self, kind: struct.Struct, at: int) -> int:
        """The number at a place."""
        if at < 0 or at + kind.size > len(self.data):
            damaged("it refers to bytes beyond its end")
        return kind.unpack_from(self.data, at)[0]

    def follow(self, at: int) -> int:
        """Where the reference at a place leads."""
        return at + self.unpack(_U32, at)

    def root(self) -> Table:
        """The outermost table."""
        return Table(self, self.follow(0), 0)


class Table:
    """A table in a buffer; fields are asked for by number, and may be absent."""

    __slots__ = ("buffer", "at", "depth", "fields", "count")

    def __init__(self, buffer: Buffer, at: int, depth: int):
        buffer.tables_left -= 1
        if buffer.tables_left < 0:
            damaged("its tables refer to each other")
        if depth > DEPTH:
            damaged("its tables are nested too deeply")
        self.buffer, self.at, self.depth = buffer, at, depth
        self.fields = at - buffer.unpack(_I32, at)
        size = buffer.unpack(_U16, self.fields)
        if size < 4 or self.fields + size > len(buffer.data):
            damaged("a list of fields has no sensible size")
        self.count = size // 2 - 2

    def _place(self, field: int) -> int:
        """Where a field's value is, 0 if it is absent."""
        if field >= self.count:
            return 0
        distance = self.buffer.unpack(_U16, self.fields + 4 + 2 * field)
        return self.at + distance if distance else 0

    def number(self, field: int, kind: str, default: int) -> int:
        """A number of a kind: ``u8``, ``u16``, ``u32``, ``i32``."""
        at = self._place(field)
        return self.buffer.unpack(_NUMBERS[kind], at) if at else default

    def blob(self, field: int) -> bytes | None:
        """A vector of bytes."""
        at = self._place(field)
        return self._bytes(self.buffer.follow(at)) if at else None

    def _bytes(self, at: int) -> bytes:
        size = self.buffer.unpack(_U32, at)
        if at + 4 + size > len(self.buffer.data):
            damaged("a vector is longer than what follows")
        return self.buffer.data[at + 4 : at + 4 + size]

    def string(self, field: int, default: str = "") -> str:
        """A text."""
        at = self._place(field)
        return self._string(self.buffer.follow(at)) if at else default

    def _string(self, at: int) -> str:
        try:
            return self._bytes(at).decode()
        except UnicodeDecodeError:
            damaged("a text is not UTF-8")

    def table(self, field: int) -> Table | None:
        """A table in this one."""
        at = self._place(field)
        return Table(self.buffer, self.buffer.follow(at), self.depth + 1) if at else None

    def _vector(self, field: int, size: int, read: Callable[[int], _T]) -> list[_T] | None:
        at = self._place(field)
        if not at:
            return None
        start = self.buffer.follow(at)
        count = self.buffer.unpack(_U32, start)
        if start + 4 + size * count > len(self.buffer.data):
            damaged("a vector is longer than what follows")
        return [read(start + 4 + size * i) for i in range(count)]

    def strings(self, field: int) -> list[str]:
        """A vector of texts."""
        follow = self.buffer.follow
        return self._vector(field, 4, lambda at: self._string(follow(at))) or []

    def tables(self, field: int) -> list[Table]:
        """A vector of tables."""
        follow, depth = self.buffer.follow, self.depth + 1
        found = self._vector(field, 4, lambda at: Table(self.buffer, follow(at), depth))
        return found or []

    def numbers(self, field: int) -> list[int]:
        """A vector of numbers of 32 bits."""
        return self._vector(field, 4, lambda at: self.buffer.unpack(_U32, at)) or []


# Writing


def builder() -> Any:
    """The library's writer.

    Raises:
      ImportError: if it is not installed.
    """
    try:
        import flatbuffers  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            "serializing exported functions needs the package flatbuffers: "
            "pip install 'primax-core[export]'"
        ) from None
    return flatbuffers.Builder(1024)


def write_table(b: Any, fields: list[tuple[int, str, Any]]) -> int:
    """Write a table; each field is a number, a kind and a value, of which ``None`` is left out.

    What is referred to (``ref``) was written before.
    """
    b.StartObject(1 + max(number for number, *_ in fields))
    for number, kind, value in fields:
        if value is None:
            continue
        if kind == "ref":
            b.PrependUOffsetTRelativeSlot(number, value, 0)
        else:
            # Against a default that no value equals: readers have defaults of their own.
            getattr(b, _SLOTS[kind])(number, value, None)
    return b.EndObject()


_SLOTS: Final = {
    "u8": "PrependUint8Slot", "u16": "PrependUint16Slot", "u32": "PrependUint32Slot",
    "i32": "PrependInt32Slot",
}  # fmt: skip


def write_refs(b: Any, refs: list[int]) -> int:
    """Write a vector of what was written before."""
    b.StartVector(4, len(refs), 4)
    for ref in reversed(refs):
        b.PrependUOffsetTRelative(ref)
    return b.EndVector()


def write_numbers(b: Any, numbers: list[int]) -> int:
    """Write a vector of numbers of 32 bits."""
    b.StartVector(4, len(numbers), 4)
    for n in reversed(numbers):
        b.PrependUint32(n)
    return b.EndVector()


def write_strings(b: Any, texts: list[str]) -> int:
    """Write a vector of texts."""
    return write_refs(b, [b.CreateString(t) for t in texts])
