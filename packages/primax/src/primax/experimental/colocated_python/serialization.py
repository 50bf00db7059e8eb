"""Lists of devices, and copies of functions by pickle."""

from __future__ import annotations

import io
import pickle
from collections import ChainMap
from importlib import import_module as _import_module
from typing import Any, TypeVar

import primax_core as _core
from primax_core import Device

_T = TypeVar("_T")

DeviceList: Any = _import_module("jaxlib._jax").DeviceList
"""jaxlib's immutable list of devices, made of a tuple of devices."""


def copy_of(value: _T) -> _T:
    """Return a copy of a function, or of a tuple of objects, made with cloudpickle.

    Devices and lists of devices in it remain the same objects.

    Raises:
      ModuleNotFoundError: if cloudpickle is not installed.
    """
    try:
        cloudpickle: Any = _import_module("cloudpickle")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "colocated Python copies functions with cloudpickle, which is not installed: pip "
            "install cloudpickle",
            name="cloudpickle",
        ) from None

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        dispatch_table = ChainMap(
            {Device: _reduce_device, DeviceList: _reduce_device_list},
            cloudpickle.CloudPickler.dispatch_table,
        )

    file = io.BytesIO()
    Pickler(file).dump(value)
    copy: _T = pickle.loads(file.getvalue())
    return copy


def _reduce_device(device: Any) -> tuple[Any, ...]:
    return _device, (device.platform, device.id)


def _reduce_device_list(devices: Any) -> tuple[Any, ...]:
    return _device_list, (tuple([_reduce_device(d)[1] for d in devices]),)


def _device(platform: str, device_id: int) -> Any:
    return next(d for d in _core.devices(platform) if d.id == device_id)


def _device_list(devices: tuple[tuple[str, int], ...]) -> Any:
    return DeviceList(tuple([_device(*d) for d in devices]))
