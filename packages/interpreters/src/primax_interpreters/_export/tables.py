"""Reader of tables in the FlatBuffers format that checks every offset.

The format: little-endian. A table begins with the distance back to its list of fields, which
contains its own size, the table's size, and for each field the distance from the table's start, or
0. Strings and vectors begin with their length. The flatbuffers package writes the format in Python,
but has no verifier for untrusted data.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

from primax_core.errors import InvalidArtifactError

_T = TypeVar("_T")

_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")
_I32: Final = struct.Struct("<i")
_NUMBERS: Final = {"u8": struct.Struct("<B"), "u16": _U16, "u32": _U32, "i32": _I32}

# Maximum nesting of tables.
DEPTH: Final = 300


def damaged(why: str) -> NoReturn:
    """Raise the error of damaged bytes."""
    raise InvalidArtifactError(f"the artifact is damaged: {why}")


class Buffer:
    """Bytes with tables.

    A table has at least four bytes, which bounds their number: tables that refer to each other, and
    would be read for ever, raise an error.
    """

    __slots__ = ("data", "tables_left")

    def __init__(self, data: bytes):
        self.data = data
        self.tables_left = len(data) // 4 + 1

    def unpack(self, kind: struct.Struct, at: int) -> int:
        """The number at an offset."""
        if at < 0 or at + kind.size > len(self.data):
            damaged("it refers to bytes beyond its end")
        return kind.unpack_from(self.data, at)[0]

    def follow(self, at: int) -> int:
        """The target of the reference at an offset."""
        return at + self.unpack(_U32, at)

    def root(self) -> Table:
        """The outermost table."""
        return Table(self, self.follow(0), 0)


class Table:
    """A table in a buffer; its fields have numbers and may be absent."""

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
            damaged("a list of fields has an invalid size")
        self.count = size // 2 - 2

    def _offset(self, field: int) -> int:
        """Offset of a field's value; 0 if it is absent."""
        if field >= self.count:
            return 0
        distance = self.buffer.unpack(_U16, self.fields + 4 + 2 * field)
        return self.at + distance if distance else 0

    def number(self, field: int, kind: str, default: int) -> int:
        """A number of a type: ``u8``, ``u16``, ``u32``, ``i32``."""
        at = self._offset(field)
        return self.buffer.unpack(_NUMBERS[kind], at) if at else default

    def blob(self, field: int) -> bytes | None:
        """A vector of bytes."""
        at = self._offset(field)
        return self._bytes(self.buffer.follow(at)) if at else None

    def _bytes(self, at: int) -> bytes:
        size = self.buffer.unpack(_U32, at)
        if at + 4 + size > len(self.buffer.data):
            damaged("a vector is longer than the remaining data")
        return self.buffer.data[at + 4 : at + 4 + size]

    def string(self, field: int, default: str = "") -> str:
        """A string."""
        at = self._offset(field)
        return self._string(self.buffer.follow(at)) if at else default

    def _string(self, at: int) -> str:
        try:
            return self._bytes(at).decode()
        except UnicodeDecodeError:
            damaged("a string is not UTF-8")

    def table(self, field: int) -> Table | None:
        """A nested table."""
        at = self._offset(field)
        return Table(self.buffer, self.buffer.follow(at), self.depth + 1) if at else None

    def _vector(self, field: int, size: int, read: Callable[[int], _T]) -> list[_T] | None:
        at = self._offset(field)
        if not at:
            return None
        start = self.buffer.follow(at)
        count = self.buffer.unpack(_U32, start)
        if start + 4 + size * count > len(self.buffer.data):
            damaged("a vector is longer than the remaining data")
        return [read(start + 4 + size * i) for i in range(count)]

    def strings(self, field: int) -> list[str]:
        """A vector of strings."""
        follow = self.buffer.follow
        return self._vector(field, 4, lambda at: self._string(follow(at))) or []

    def tables(self, field: int) -> list[Table]:
        """A vector of tables."""
        follow, depth = self.buffer.follow, self.depth + 1
        tables = self._vector(field, 4, lambda at: Table(self.buffer, follow(at), depth))
        return tables or []

    def numbers(self, field: int) -> list[int]:
        """A vector of 32-bit numbers."""
        return self._vector(field, 4, lambda at: self.buffer.unpack(_U32, at)) or []


# Writing


def builder() -> Any:
    """The writer of the flatbuffers package.

    Raises:
      ImportError: if it is not installed.
    """
    try:
        import flatbuffers  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            "serializing exported functions needs the package flatbuffers: "
            "pip install 'primax-interpreters[export]'"
        ) from None
    return flatbuffers.Builder(1024)


def write_table(b: Any, fields: list[tuple[int, str, Any]]) -> int:
    """Write a table; each field is a number, a type and a value; ``None`` values are skipped.

    The target of a reference (``ref``) is already written.
    """
    b.StartObject(1 + max(number for number, *_ in fields))
    for number, kind, value in fields:
        if value is None:
            continue
        if kind == "ref":
            b.PrependUOffsetTRelativeSlot(number, value, 0)
        else:
            # Without a default value: readers define their own defaults.
            getattr(b, _SLOTS[kind])(number, value, None)
    return b.EndObject()


_SLOTS: Final = {
    "u8": "PrependUint8Slot", "u16": "PrependUint16Slot", "u32": "PrependUint32Slot",
    "i32": "PrependInt32Slot",
}  # fmt: skip


def write_refs(b: Any, refs: list[int]) -> int:
    """Write a vector of references to written data."""
    b.StartVector(4, len(refs), 4)
    for ref in reversed(refs):
        b.PrependUOffsetTRelative(ref)
    return b.EndVector()


def write_numbers(b: Any, numbers: list[int]) -> int:
    """Write a vector of 32-bit numbers."""
    b.StartVector(4, len(numbers), 4)
    for n in reversed(numbers):
        b.PrependUint32(n)
    return b.EndVector()


def write_strings(b: Any, texts: list[str]) -> int:
    """Write a vector of strings."""
    return write_refs(b, [b.CreateString(t) for t in texts])
