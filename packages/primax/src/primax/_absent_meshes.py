"""Classes for annotations and ``isinstance`` in programs without ``primax_distributed``.

``isinstance`` is always false; creating an instance raises an error with the command that installs
the wheel.
"""

from __future__ import annotations

from typing import Any

from ._several_devices import NeedsWheel


class Mesh(metaclass=NeedsWheel):
    """Devices along named axes."""


class AbstractMesh(metaclass=NeedsWheel):
    """The shape of a mesh."""


class NamedSharding(metaclass=NeedsWheel):
    """A sharding over the axes of a mesh."""


class PartitionSpec(tuple[Any, ...]):
    """Mesh axis name, tuple of names, or ``None`` for each axis of an array.

    >>> PartitionSpec("data", None)
    P('data', None)
    """

    __slots__ = ()

    def __new__(cls, *partitions: Any) -> PartitionSpec:
        return super().__new__(cls, partitions)

    def __repr__(self) -> str:
        return f"P{tuple(self)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionSpec, tuple(self)
