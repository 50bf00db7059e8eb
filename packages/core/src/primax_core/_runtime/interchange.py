"""Export of arrays to other libraries: DLPack capsules and addresses."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from .capsules import address, exportable_dtypes
from .devices import platform_of
from .jaxlib_versions import _jax

if TYPE_CHECKING:
    from .sharding import Sharding


class DLDeviceType(enum.IntEnum):
    """DLPack's device types."""

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
    """DLPack's device of an array.

    Raises:
      BufferError: if the array is on several devices, or on one that DLPack does not support.
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
    raise BufferError(f"DLPack does not support devices of platform {platform}")


def check_exportable(sharding: Sharding, dtype: Any, dl_device: tuple[int, int] | None) -> None:
    """Raise an error for an array that cannot be a DLPack capsule.

    Raises:
      BufferError: if DLPack does not support the dtype or the device, or the requested device
        is another one.
    """
    own = dlpack_device(sharding)
    if dl_device is not None and tuple(dl_device) != own:
        raise BufferError(
            f"the array is on DLPack device {tuple(map(int, own))} and cannot be exported to "
            f"{tuple(map(int, dl_device))}: move it there first with device_put"
        )
    if dtype not in exportable_dtypes:
        raise BufferError(f"dtype {dtype.name} has no DLPack equivalent")


def address_of(buf: Any) -> int:
    """Address of the memory of a raw array on one device."""
    buf.block_until_ready()  # as in to_host
    # jaxlib's own function imports jax for arrays created by a transfer.
    try:
        return address(_jax.buffer_to_dlpack_managed_tensor(buf.clone()))
    except _jax.JaxRuntimeError as e:
        raise NotImplementedError(
            f"arrays of {buf.aval.dtype.name} have no accessible address: {e}"
        ) from e
