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
    """A memory kind without a device.

    ``Device`` is the memory in which executables compute, ``Host`` the memory of the host that
    the device can read. ``Any`` leaves values where they are. As an argument of ``device_put`` it
    moves values between the memories of their devices.

    >>> from primax_core import device_put
    >>> from primax_core.memory import Space
    >>> device_put(1.0, Space.Device).sharding.memory_kind == device_put(1.0).sharding.memory_kind
    True
    """

    Device = "device"
    Host = "host"
    Any = "any"

    def __str__(self) -> str:
        return f"MemorySpace.{self.name}"

    def __repr__(self) -> str:
        return str(self)
