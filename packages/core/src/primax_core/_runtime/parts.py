"""Parts of raw arrays on several devices: taken out and put together without a copy.

Loaded on first use: arrays on one device have no parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from .._base import caches
from .._ir.avals import ShapedArray
from .buffers import put_parts, put_raw
from .capsules import exportable_dtypes, host_view
from .devices import Device
from .jaxlib_versions import GSPMDSharding, HloSharding, _jax, export_capsule, to_host
from .sharding import Index, Shape, Sharding, SingleDeviceSharding

_REUSE: Final = _jax.ArrayCopySemantics.REUSE_INPUT
_SHARED: Final = _jax.HostBufferSemantics.ZERO_COPY
_BOOL: Final = np.dtype(np.bool_)
numpy_dtypes: Final = frozenset(map(np.dtype, "?bhilqBHILQefdFD"))
"""The dtypes that NumPy reads from DLPack and has a buffer for."""


def part_on_host(
    buf: Any, aval: ShapedArray, shape: Shape, sharding: Sharding, device: Device
) -> np.ndarray:
    """The part of a raw array on one device of this process, read-only.

    On a CPU it shares memory with the array and stays valid after the array is deleted.

    Args:
      shape: the shape of the part.
    """
    if 0 in shape:  # DLPack may lose the sizes
        return np.zeros(shape, aval.dtype)
    if not is_exportable(aval.dtype):
        return to_host(buf)[sharding.devices_indices_map(aval.shape)[device]]
    if device.platform != "cpu":
        return to_host(_part_on_accelerator(buf, sharding, device))
    buf.block_until_ready()  # reading an unallocated buffer aborts
    first = _jax.reorder_shards(buf, _led_by(sharding, device, aval.ndim), _REUSE)
    capsule = _jax.buffer_to_dlpack_managed_tensor(first)
    if aval.dtype in numpy_dtypes:  # twice as fast
        return np.from_dlpack(_Capsule(capsule))
    return host_view(capsule, shape, aval.dtype)


def is_exportable(dtype: Any) -> bool:
    """Return True if DLPack exports parts of arrays: their elements have whole bytes."""
    return dtype in exportable_dtypes or dtype == _BOOL


def reader_of_parts(
    aval: ShapedArray, shape: Shape, sharding: Sharding, device: Device
) -> Callable[[Any], np.ndarray]:
    """A function like `part_on_host`, for raw arrays whose values are computed.

    Args:
      aval: the type of the whole arrays.
      shape: the shape of their parts.
    """
    if aval.dtype not in numpy_dtypes or 0 in shape or device.platform != "cpu":
        return lambda buf: part_on_host(buf, aval, shape, sharding, device)
    order = _led_by(sharding, device, aval.ndim)
    reorder, export = _jax.reorder_shards, _jax.buffer_to_dlpack_managed_tensor
    from_dlpack = np.from_dlpack
    return lambda buf: from_dlpack(_Capsule(export(reorder(buf, order, _REUSE))))


def part_on_device(
    buf: Any, values: Callable[[Any], np.ndarray], part: ShapedArray, sharding: Sharding,
    one: SingleDeviceSharding,
) -> Any:  # fmt: skip
    """The part of a raw array on one device of this process, a raw array there.

    Args:
      values: from the raw array to the values of the part (`reader_of_parts`).
      part: the type of the part.
      sharding: the sharding of the whole array.
      one: the sharding of the part.
    """
    device = one._device
    if device.platform != "cpu":
        return _part_on_accelerator(buf, sharding, device)
    return _jax.batched_device_put(
        part, one._jaxlib(part.ndim), [values(buf)], [device], committed=True,
        host_buffer_semantics=_SHARED, enable_x64=True,
    )  # fmt: skip


class _Capsule:
    """A DLPack capsule on the host, for NumPy."""

    __slots__ = ("_capsule",)

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


_orders: dict[tuple, Any] = caches.bounded_cache()


def _led_by(sharding: Sharding, device: Device, ndim: int) -> Any:
    """jaxlib's sharding over the same devices with one of them first: DLPack exports that part."""
    key = (sharding, device, ndim)
    order = _orders.get(key)
    if order is None:
        devices = (device, *(d for d in sharding._devices if d is not device))
        tiles = (len(devices),) + (1,) * (max(ndim, 1) - 1)
        tiling = HloSharding.iota_tile(tiles, tiles[:1], (0,), [])
        kind = None if sharding._on_default_memory() else sharding.memory_kind
        order = _orders[key] = GSPMDSharding(devices, tiling, memory_kind=kind)
    return order


def _part_on_accelerator(buf: Any, sharding: Sharding, device: Device) -> Any:
    stream = device.get_stream_for_external_ready_events()
    first = _jax.reorder_shards(buf, _led_by(sharding, device, len(buf.aval.shape)), _REUSE)
    capsule = export_capsule(first, stream, None, False)
    # Memory of an accelerator has no other interface. jaxlib creates the array; `dlpack.py` says
    # what else that does.
    return _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream, False)


def joined(aval: ShapedArray, sharding: Sharding, parts: Sequence[Any]) -> Any:
    """A raw array of raw parts, one for each device of this process in the sharding's order.

    The caller has compared their devices, shapes and dtypes.
    """
    return _jax.ArrayImpl(aval, sharding._jaxlib(aval.ndim), list(parts), True, True)


def moved(buf: Any, aval: ShapedArray, source: Sharding, target: Sharding) -> Any:
    """A raw array with another sharding, transferred in the parts that each device needs.

    No device and no host memory receives more than it has to keep.
    """
    ndim = aval.ndim
    same_parts = source.num_devices == target.num_devices and (
        source._hlo_sharding(ndim) == target._hlo_sharding(ndim)
    )
    if same_parts and source._devices[0].client is target._devices[0].client:
        if source._devices == target._devices and source.memory_kind == target.memory_kind:
            return buf
        return _jax.batched_copy_array_to_devices_with_sharding(
            [buf], [target._device_list()], [target._jaxlib(ndim)], [_REUSE]
        )[0]
    if source.num_devices == 1:
        return put_raw(to_host(buf), aval, target)
    values: dict[tuple, np.ndarray] = {}
    devices, parts = [], []
    for device, index in target.addressable_devices_indices_map(aval.shape).items():
        bounds = tuple(s.indices(d)[:2] for s, d in zip(index, aval.shape, strict=True))
        value = values.get(bounds)
        if value is None:
            value = values[bounds] = assembled(buf, aval, source, bounds)
        devices.append(device)
        parts.append(value)
    return put_parts(parts, aval, target, devices)


def distinct(
    indices: Mapping[Device, Index], shape: Sequence[int]
) -> Iterator[tuple[Device, tuple[tuple[int, int], ...]]]:
    """One device for each different part, with the bounds of the part along each axis."""
    seen = set()
    for device, index in indices.items():
        bounds = tuple(s.indices(d)[:2] for s, d in zip(index, shape, strict=True))
        if bounds not in seen:
            seen.add(bounds)
            yield device, bounds


def assembled(
    buf: Any, aval: ShapedArray, sharding: Sharding, bounds: Sequence[tuple[int, int]]
) -> np.ndarray:
    """The values between bounds, copied from the parts that contain them.

    Only the parts are read that overlap with the bounds; a single part is not copied.
    """
    out = None
    if any(a == b for a, b in bounds):
        return np.zeros([b - a for a, b in bounds], aval.dtype)
    indices = sharding.addressable_devices_indices_map(aval.shape)
    shape = sharding.shard_shape(aval.shape)
    for device, own in distinct(indices, aval.shape):
        common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(bounds, own)]
        if any(a >= b for a, b in common):
            continue
        part = part_on_host(buf, aval, shape, sharding, device)
        inside = part[tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(common, own))]
        if common == list(bounds):
            return inside
        if out is None:
            out = np.empty([b - a for a, b in bounds], aval.dtype)
        out[tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(common, bounds))] = inside
    if out is None:
        raise ValueError(f"no device of this process has the part {list(bounds)} of {aval}")
    out.flags.writeable = False
    return out
