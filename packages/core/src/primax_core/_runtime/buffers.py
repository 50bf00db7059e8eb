"""Raw jaxlib arrays: transfers, copies and moves. jaxlib does not check types; this module does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._ir.avals import ShapedArray
from .jaxlib_versions import UNKNOWN_DTYPES, _jax
from .sharding import Sharding, SingleDeviceSharding

_COPIED: Final = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_SHARED: Final = _jax.HostBufferSemantics.ZERO_COPY
_REUSE: Final = _jax.ArrayCopySemantics.REUSE_INPUT
_COPY: Final = _jax.ArrayCopySemantics.ALWAYS_COPY


def put_raw(
    value: np.ndarray, aval: ShapedArray, sharding: Sharding, *, share: bool = False
) -> Any:
    """A raw array with the values of a NumPy array of exactly the type ``aval``.

    Args:
      share: use NumPy's memory, if it is aligned, instead of a copy. The memory must not be
        changed afterwards.
    """
    dtype = value.dtype
    if value.shape != aval.shape or dtype is not aval.dtype and dtype != aval.dtype:
        raise TypeError(
            f"values of type {dtype}{list(value.shape)} cannot fill an array of type {aval}"
        )
    if UNKNOWN_DTYPES and dtype in UNKNOWN_DTYPES:
        raise TypeError(f"arrays of {dtype.name} need a newer jaxlib: pip install 'jaxlib>=0.11'")
    if type(sharding) is SingleDeviceSharding:
        return _put([value], aval, sharding, [sharding._device], share)
    indices = sharding.addressable_devices_indices_map(value.shape)
    return put_parts([value[index] for index in indices.values()], aval, sharding, list(indices))


def put_parts(
    values: Sequence[np.ndarray], aval: ShapedArray, sharding: Sharding, devices: list
) -> Any:
    """A raw array on several devices, with copies of the values of each device of this process."""
    parts: list[np.ndarray] = []
    addresses: set[int] = set()
    for value in values:
        part = value
        if type(value) is not np.ndarray or not value.flags.c_contiguous:
            part = np.ascontiguousarray(value).reshape(value.shape)
        address = part.__array_interface__["data"][0]
        if address in addresses and not sharding.is_fully_replicated:
            part = part.copy()  # all devices may read the same memory, but not some of them
        parts.append(part)
        addresses.add(address)
    return _put(parts, aval, sharding, devices, False)


def _put(values: list, aval: ShapedArray, sharding: Sharding, devices: list, share: bool) -> Any:
    # jaxlib refuses the same memory for several, but not all, of the devices.
    return _jax.batched_device_put(
        aval, sharding._jaxlib(aval.ndim), values, devices, committed=True,
        host_buffer_semantics=_SHARED if share else _COPIED, enable_x64=True,
    )  # fmt: skip


def copy_raw(buf: Any, sharding: Sharding) -> Any:
    """Another raw array with the same values and placement."""
    return _copied(buf, sharding, _COPY)


def move_raw(buf: Any, aval: ShapedArray, source: Sharding, target: Sharding) -> Any:
    """A raw array on other devices; it may share memory if the devices are the same."""
    if (
        type(source) is SingleDeviceSharding
        and type(target) is SingleDeviceSharding
        and source._device.client is target._device.client
    ):
        return _copied(buf, target, _REUSE)
    from .parts import moved  # loaded on first use: most arrays are on one device

    return moved(buf, aval, source, target)


def _copied(buf, target, semantics):
    # Donating the input of a copy between devices crashes, whatever the version.
    (copy,) = _jax.batched_copy_array_to_devices_with_sharding(
        [buf], [target._device_list()], [target._jaxlib(buf.aval.ndim)], [semantics]
    )
    return copy
