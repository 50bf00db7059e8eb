"""The functions of ``primax.experimental.colocated_python``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import primax_core as _core

from .func import make_callable
from .obj import wrap_class


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """Return the CPU devices on the hosts of the given devices, in their order.

    Args:
      devices_or_mesh: a sequence of devices, or a mesh. CPU devices are returned as they are; the
        n-th other device of a process has the n-th CPU device of the process.

    Returns:
      A list of devices, or a mesh of the same shape and axes; a mesh of CPU devices is returned
      itself.

    Raises:
      ValueError: if a process has fewer CPU devices than other devices, or for an abstract mesh.

    >>> import primax
    >>> from primax.experimental.colocated_python import colocated_cpu_devices
    >>> colocated_cpu_devices(primax.devices("cpu")[:1])
    [CpuDevice(id=0)]
    """
    if hasattr(devices_or_mesh, "axis_names"):
        return _colocated_mesh(devices_or_mesh)
    return _colocated(devices_or_mesh)


def colocated_python(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs ``fun`` on the hosts of its arguments' devices.

    The function takes and returns pytrees of arrays on CPU devices. A copy of ``fun``, made with
    cloudpickle, is called: what it changes in objects that it refers to remains in the copy. It is
    called with arrays, so it can use NumPy, files and any Python code. It cannot be used in
    ``jit``; there, use :func:`primax.experimental.io_callback`.

    Args:
      fun: a function of pytrees of arrays, which returns a pytree of arrays.

    Returns:
      A function with the method ``specialize(in_specs=None, out_specs_fn=None, devices=None)``,
      which returns it with types of arguments ``(args, kwargs)`` and results to be checked, or with
      the devices of a function without arguments.

    Raises:
      ValueError: when called, if there are no devices, the arguments are on different devices, or a
        type is not the declared one.
      TypeError: if ``fun`` is not callable, or when called, if an argument or a result is not an
        array.
      ModuleNotFoundError: when called, if cloudpickle is not installed.

    Example::

        @colocated_python
        def double(x):
            return primax.device_put(np.asarray(x) * 2, x.sharding)


        double(primax.numpy.arange(3))  # Array([0, 2, 4], dtype=int32)
    """
    if not callable(fun):
        raise TypeError(f"colocated_python takes a function, got {fun!r}")
    return make_callable(fun)


def colocated_python_class(cls: type[object]) -> type[object]:
    """Return a class whose methods run on the hosts of their arguments' devices.

    An instance keeps the arguments of the constructor. The first call of a method makes the object,
    of copies of ``cls`` and the arguments; the object lives as long as the instance. Each method is
    a function as :func:`colocated_python` returns them. Attributes of the object, and methods whose
    names have two underscores on both sides, are not accessible.

    Raises:
      TypeError: if ``cls`` is not a class.
    """
    return wrap_class(cls)


def _colocated(devices: Iterable[Any]) -> list[Any]:
    found = list(devices)
    if all(device.platform == "cpu" for device in found):
        return found
    return [d if d.platform == "cpu" else _cpu_of(d) for d in found]


def _cpu_of(device: Any) -> Any:
    index = device.process_index
    beside = [d for d in device.client.devices() if d.process_index == index]
    cpus = [d for d in _core.devices("cpu") if d.process_index == index]
    position = beside.index(device)
    if position >= len(cpus):
        raise ValueError(
            f"{device} is device {position} of process {index}, which has {len(cpus)} CPU "
            f"device(s): set the option num_cpu_devices to {len(beside)} before the first operation"
        )
    return cpus[position]


def _colocated_mesh(mesh: Any) -> Any:
    if not hasattr(mesh, "devices"):
        raise ValueError(f"{mesh} has no devices: pass a Mesh instead of an AbstractMesh")
    flat = list(mesh.devices.flat)
    cpus = _colocated(flat)
    if all(a is b for a, b in zip(cpus, flat, strict=True)):
        return mesh
    array = np.empty(len(cpus), object)
    array[:] = cpus
    return type(mesh)(
        array.reshape(mesh.devices.shape), mesh.axis_names, axis_types=mesh.axis_types
    )
