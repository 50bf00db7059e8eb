"""Meshes of devices, and shardings of arrays along their axes.

``Sharding`` and ``SingleDeviceSharding`` are those of the core; the other names are defined by the
optional wheel for several devices, and imported on first use. Without the wheel, the classes exist
for annotations and ``isinstance``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any as _Any

from primax_core.extend import Sharding as Sharding, SingleDeviceSharding as SingleDeviceSharding

from . import _several_devices

if TYPE_CHECKING:
    from primax_distributed import (
        AbstractDevice as AbstractDevice,
        AbstractMesh as AbstractMesh,
        AxisType as AxisType,
        Infer as Infer,
        ManualAxisType as ManualAxisType,
        Mesh as Mesh,
        NamedSharding as NamedSharding,
        PartitionSpec as PartitionSpec,
        UnreducedKind as UnreducedKind,
        auto_axes as auto_axes,
        explicit_axes as explicit_axes,
        get_abstract_mesh as get_abstract_mesh,
        get_mesh as get_mesh,
        make_single_device_sharding as make_single_device_sharding,
        no_collectives as no_collectives,
        reshard as reshard,
        set_mesh as set_mesh,
        use_abstract_mesh as use_abstract_mesh,
    )

_WITHOUT_WHEEL = ("AbstractMesh", "Mesh", "NamedSharding", "PartitionSpec")


def __getattr__(name: str) -> _Any:
    if name == "__all__":  # read by ``from jax.sharding import *``
        return [n for n in __dir__() if not n.startswith("_") and n != "annotations"]
    if name not in _several_devices.OF_SHARDING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _WITHOUT_WHEEL and not _several_devices.is_installed():
        from . import _absent_meshes

        value = getattr(_absent_meshes, name)
    else:
        value = _several_devices.of_wheel(__name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    names = _several_devices.OF_SHARDING if _several_devices.is_installed() else _WITHOUT_WHEEL
    return sorted({*globals(), *names} - {"TYPE_CHECKING"})
