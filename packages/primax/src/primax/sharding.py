"""Shardings of the core.

Meshes and shardings over several devices are not part of this version. Their classes exist for
annotations and ``isinstance``, which is always false; creating an instance raises an error.
"""

from __future__ import annotations

from typing import Any as _Any

from primax_core.extend import Sharding as Sharding, SingleDeviceSharding as SingleDeviceSharding

from ._several_devices import OverDevices as _OverDevices


class Mesh(metaclass=_OverDevices):
    """Devices along named axes; creating one raises ``NotImplementedError``."""


class AbstractMesh(metaclass=_OverDevices):
    """The shape of a mesh; creating one raises ``NotImplementedError``."""


class NamedSharding(metaclass=_OverDevices):
    """A sharding over the axes of a mesh; creating one raises ``NotImplementedError``."""


class PartitionSpec(tuple[_Any, ...]):
    """Mesh axis name, tuple of names, or ``None`` for each axis of an array.

    >>> PartitionSpec("data", None)
    PartitionSpec('data', None)
    """

    __slots__ = ()

    def __new__(cls, *partitions: _Any) -> PartitionSpec:
        return super().__new__(cls, partitions)

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def __reduce__(self) -> tuple[_Any, ...]:
        return PartitionSpec, tuple(self)


def __getattr__(name: str) -> _Any:
    from ._several_devices import missing

    raise missing(__name__, name)
