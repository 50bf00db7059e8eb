"""What arrays offer to other libraries: DLPack capsules and addresses."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from .capsules import address, exportable_dtypes
from .devices import platform_of
from .jaxlib_versions import _jax

if TYPE_CHECKING:
    from .sharding import Sharding


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers of kinds of memory."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLROCM = 10
    kDLROCMHost = 11
    kDLCUDAManaged = 13


HOST_MEMORY = (
    DLDeviceType.kDLCPU,
    DLDeviceType.kDLCUDAHost,
    DLDeviceType.kDLROCMHost,
    DLDeviceType.kDLCUDAManaged,
)


def dlpack_device(sharding: Sharding) -> tuple[DLDeviceType, int]:
    """DLPack's name of the device that holds an array.

    Raises:
      BufferError: if the array lies on several devices, or on one that DLPack has no name for.
    """
    if sharding.num_devices != 1:
        raise BufferError(
            f"an array on {sharding.num_devices} devices cannot be exported as one DLPack tensor: "
            "export the parts in addressable_shards"
        )
    (device,) = sharding._devices
    platform = platform_of(device)
    if platform == "cpu":
        return DLDeviceType.kDLCPU, 0
    if platform in ("cuda", "rocm"):
        kind = DLDeviceType.kDLCUDA if platform == "cuda" else DLDeviceType.kDLROCM
        return kind, device.local_hardware_id
    raise BufferError(f"DLPack has no name for devices of platform {platform}")


def check_exportable(sharding: Sharding, dtype: Any, dl_device: tuple[int, int] | None) -> None:
    """Refuse what a DLPack capsule cannot say.

    Raises:
      BufferError: if DLPack has no type for the elements or no name for the device, or the device
        asked for is another one.
    """
    own = dlpack_device(sharding)
    if dl_device is not None and tuple(dl_device) != own:
        raise BufferError(
            f"the array lies on DLPack device {tuple(map(int, own))} and cannot be exported to "
            f"{tuple(map(int, dl_device))}: move it there first with device_put"
        )
    if dtype not in exportable_dtypes:
        raise BufferError(f"dtype {dtype.name} has no DLPack equivalent")


def address_of(buf: Any) -> int:
    """Address of the memory of a raw array on one device."""
    # jaxlib's own way imports jax for arrays that were put.
    try:
        return address(_jax.buffer_to_dlpack_managed_tensor(buf.clone()))
    except _jax.JaxRuntimeError as e:
        raise NotImplementedError(
            f"the address of an array of {buf.aval.dtype.name} is not known: {e}"
        ) from e
