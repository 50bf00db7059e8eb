"""Memory spaces, and copy semantics of transfers."""

from __future__ import annotations

import enum


class ArrayCopySemantics(enum.Enum):
    """Permitted uses of an operand's memory by a transfer."""

    REUSE_INPUT = "reuse"
    ALWAYS_COPY = "copy"
    DONATE_INPUT = "donate"

    __repr__ = enum.Enum.__str__


class Space(enum.Enum):
    """A memory kind without a device."""

    Device = "device"
    Host = "host"
    Any = "any"

    def __str__(self) -> str:
        return f"MemorySpace.{self.name}"

    def __repr__(self) -> str:
        return str(self)
