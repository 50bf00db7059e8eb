"""Arrays on several devices, assembled from parts.

Loaded on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.element_types import DTypeLike
from .._trace.core import ODD_CHARS, Tracer
from .array import ArrayImpl, move, spec_of
from .buffers import put_parts
from .parts import joined
from .sharding import Index, Shape, Sharding, SingleDeviceSharding


def array_from_parts(
    shape: Shape, sharding: Sharding, parts: Sequence[Any], dtype: DTypeLike | None = None
) -> ArrayImpl:
    """An array of single-device arrays, without copies.

    Args:
      shape: the shape of the whole array.
      sharding: its sharding.
      parts: an array for each device of this process, in any order.
      dtype: the dtype; needed where this process has no part.

    Returns:
      An array that shares the memory of the parts.

    Raises:
      TypeError: if a part is not an array.
      ValueError: if the parts do not fit the shape and the sharding; the message names the part.

    >>> from primax_core import device_put, devices
    >>> from primax_core.extend.runtime import SingleDeviceSharding
    >>> one = SingleDeviceSharding(devices()[0])
    >>> array_from_parts((2,), one, [device_put(np.float32([1, 2]), devices()[0])])
    Array([1., 2.], dtype=float32)
    """
    shape = tuple(shape)
    own = sharding.addressable_devices_indices_map(shape)
    if len(parts) != len(own):
        raise ValueError(
            f"{sharding} has {len(own)} devices of this process, so it needs {len(own)} arrays on "
            f"one device each, but got {len(parts)}"
        )
    by_device: dict[Any, ArrayImpl] = {}
    for i, part in enumerate(parts):
        device = _device_of_part(i, part, sharding)
        if device in by_device:
            raise ValueError(
                f"two of the arrays are on {device}: each device of {sharding} needs one array"
            )
        by_device[device] = part
    first = next(iter(by_device.values()), None)
    element = dtypes.as_dtype(dtype) if first is None else first.dtype
    if dtype is not None and dtypes.as_dtype(dtype) != element:
        requested = dtypes.as_dtype(dtype).name
        raise ValueError(f"dtype is {requested}, but the arrays have dtype {element.name}")
    expected = sharding.shard_shape(shape)
    for device, part in by_device.items():
        if part.shape != expected or part.dtype != element:
            raise ValueError(
                f"the array on {device} has type {part.aval.strip_weak_type()}, but the part of an "
                f"array of shape {shape} with {sharding} is {element.name}{list(expected)}"
            )
        part._check_alive()
    weak = first is not None and all(p.weak_type for p in by_device.values())
    spec = spec_of(ShapedArray(shape, element, weak), sharding, True)
    bufs = [by_device[d]._buf for d in sharding._devices if d in by_device]
    return spec.wrap(joined(spec.stored, sharding, bufs))


def _device_of_part(i: int, part: Any, sharding: Sharding) -> Any:
    if isinstance(part, Tracer) or not isinstance(part, ArrayImpl):
        raise TypeError(
            f"array number {i} must be a concrete array on one device, got {type(part).__name__}. "
            "Put it there with device_put"
        )
    if part.sharding.num_devices != 1:
        raise ValueError(
            f"array number {i} is on {part.sharding.num_devices} devices: pass arrays on one "
            "device each, for example those of x.addressable_shards"
        )
    (device,) = part.sharding._devices
    if device not in sharding._devices:
        raise ValueError(
            f"array number {i} is on {device}, which is not a device of {sharding}: move it with "
            "device_put"
        )
    return device


def array_from_callback(
    shape: Shape,
    sharding: Sharding,
    callback: Callable[[Index], Any],
    dtype: DTypeLike | None = None,
) -> ArrayImpl:
    """An array whose parts a function returns; each device of this process receives its part.

    Args:
      shape: the shape of the whole array.
      sharding: the sharding.
      callback: from the index of a part in the whole array to its values. It is called once for
        each part; devices with copies of a part receive the same values.
      dtype: the dtype of the values; needed where this process has no part.

    Returns:
      An array.

    Raises:
      ValueError: if a part has another shape, or parts have different dtypes.

    No process needs the whole array.

    >>> from primax_core import devices
    >>> from primax_core.extend.runtime import SingleDeviceSharding
    >>> array_from_callback((3,), SingleDeviceSharding(devices()[0]), np.arange(3.0).__getitem__)
    Array([0., 1., 2.], dtype=float32)
    """
    shape = tuple(shape)
    indices = sharding.addressable_devices_indices_map(shape)
    parts: dict[Any, Any] = {}
    values = {}
    for device, index in indices.items():
        edges = tuple([(part.start, part.stop) for part in index])
        if edges not in parts:
            parts[edges] = callback(index)
        values[device] = parts[edges]
    return array_from_values(shape, sharding, values, dtype)


def array_from_values(
    shape: Shape, sharding: Sharding, values: dict[Any, Any], dtype: DTypeLike | None = None
) -> ArrayImpl:
    """An array from the values on each device of this process.

    Args:
      shape: the shape of the whole array.
      sharding: the sharding.
      values: the part of each device of this process, by device.
      dtype: the dtype of the values; needed where this process has no part.

    Returns:
      An array with copies of the values.

    Raises:
      ValueError: if a part has another shape than the sharding gives it, or the dtypes differ.

    >>> from primax_core import devices
    >>> from primax_core.extend.runtime import SingleDeviceSharding, array_from_values
    >>> device = devices()[0]
    >>> array_from_values((2,), SingleDeviceSharding(device), {device: np.ones(2, np.float32)})
    Array([1., 1.], dtype=float32)
    """
    if any(isinstance(v, ArrayImpl) and v._spec.stored is not v.aval for v in values.values()):
        # Extended dtypes have no NumPy values.
        parts = [move(v, SingleDeviceSharding(d)) for d, v in values.items()]
        return array_from_parts(shape, sharding, parts, dtype)
    expected = sharding.shard_shape(tuple(shape))
    arrays, element, origin = [], None, None
    for device, value in values.items():
        part = np.asarray(value)
        if part.shape != expected:
            raise ValueError(
                f"the values for {device} have shape {part.shape}, but the part of an array of "
                f"shape {tuple(shape)} with {sharding} has shape {expected}"
            )
        own = dtypes.canonicalize_dtype(part.dtype.newbyteorder("="))
        if own.char in ODD_CHARS:
            dtypes.check_valid_dtype(own, value)
        if element is not None and own != element:
            raise ValueError(
                f"the values for {device} have dtype {own}, but those for {origin} {element}"
            )
        element, origin = own, origin or device
        arrays.append(np.asarray(part, own))
    if element is None:
        if dtype is None:
            raise ValueError("dtype must be given: no device of the sharding is of this process")
        element = dtypes.as_dtype(dtype)
    elif dtype is not None and dtypes.canonicalize_dtype(dtypes.as_dtype(dtype)) != element:
        requested = dtypes.as_dtype(dtype).name
        raise ValueError(f"dtype is {requested}, but the values have dtype {element}")
    spec = spec_of(ShapedArray(shape, element), sharding, True)
    return spec.wrap(put_parts(arrays, spec.stored, sharding, list(values)))
