"""Arrays from other libraries, through DLPack."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.element_types import DTypeLike
from .array import ArrayImpl, copy_array, move, spec_of
from .buffers import put_raw
from .capsules import exportable_dtypes, host_view
from .devices import Device, default_device, local_devices
from .interchange import HOST_MEMORY, DLDeviceType
from .jaxlib_versions import JAXLIB_VERSION, _jax
from .sharding import Sharding, SingleDeviceSharding

_ALIGNMENT: Final = 64  # required by XLA to compute on foreign memory

_PLATFORMS: Final = {DLDeviceType.kDLCUDA: "cuda", DLDeviceType.kDLROCM: "rocm"}


def from_dlpack(
    external_array: Any,
    device: Device | Sharding | None = None,
    copy: bool | None = None,
) -> ArrayImpl:
    """An array with the values of another library's array.

    Args:
      external_array: has the methods ``__dlpack__`` and ``__dlpack_device__``.
      device: the device of the result; by default that of the values.
      copy: ``True`` always copies, ``False`` never. By default memory is shared if possible, which
        on a CPU requires contiguous elements aligned to 64 bytes, of a dtype that is not
        converted. Shared memory must not be changed afterwards.

    Returns:
      An array committed to its device.

    Raises:
      TypeError: if ``external_array`` does not have these methods.
      ValueError: if ``copy=False`` and a copy is needed.
      BufferError: if there is no dtype for the elements.

    >>> import numpy as np
    >>> from_dlpack(np.arange(3, dtype=np.int32))
    Array([0, 1, 2], dtype=int32)
    """
    if not (hasattr(external_array, "__dlpack__") and hasattr(external_array, "__dlpack_device__")):
        raise TypeError(
            "The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods, "
            f"got {type(external_array)}."
        )
    target = _as_sharding(device)
    if isinstance(external_array, ArrayImpl):
        return _from_own(external_array, target, copy)
    kind, number = external_array.__dlpack_device__()
    if kind in HOST_MEMORY:
        return _from_host(external_array, target, copy)
    return _from_accelerator(external_array, DLDeviceType(kind), number, target, copy)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Return True if arrays of a dtype can be exchanged through DLPack.

    Args:
      dtype: a dtype, its name or a scalar class.

    Returns:
      A bool. It is True for booleans and for numbers of at least 8 bits, with ``bfloat16`` and
      8-bit floats.

    Raises:
      TypeError: if it is not a dtype.

    Other libraries may support fewer. See :func:`from_dlpack` and ``array.__dlpack__``.

    >>> from primax_core import dlpack
    >>> dlpack.is_supported_dtype("bfloat16"), dlpack.is_supported_dtype("int4")
    (True, False)
    """
    return dtypes.as_dtype(dtype) in exportable_dtypes


def _as_sharding(device) -> Sharding | None:
    if device is None or isinstance(device, Sharding):
        return device
    return SingleDeviceSharding(device)


def _needs_copy(reason: str) -> ValueError:
    return ValueError(
        f"Specified {reason}, however copy=False. Set copy=True or copy=None to perform the "
        "requested operation."
    )


def _elsewhere(target: Sharding, source) -> str:
    return f"device={target} which requires a copy since the source device is {source}"


def _from_own(x: ArrayImpl, target: Sharding | None, copy: bool | None) -> ArrayImpl:
    x._check_alive()
    target = target or x.sharding
    if copy is False and target is not x.sharding:
        raise _needs_copy(_elsewhere(target, x.device))
    moved = move(copy_array(x) if copy and target is x.sharding else x, target)
    layout = moved._spec.layout
    return spec_of(x.aval.strip_weak_type(), target, True, layout).wrap(moved._buf)


def _from_host(x: Any, target: Sharding | None, copy: bool | None) -> ArrayImpl:
    if target is None:
        here = default_device()
        target = SingleDeviceSharding(
            here if here.platform == "cpu" else local_devices(None, "cpu")[0]
        )
    view = host_view(_capsule(x, {}))
    aval = ShapedArray(view.shape, dtypes.canonicalize_dtype(view.dtype))
    on_cpu = target._devices[0].platform == "cpu" and target.num_devices == 1
    obstacle = (
        _elsewhere(target, "a CPU")
        if not on_cpu
        else f"dtype {view.dtype} which becomes {aval.dtype}, as 64-bit types are off"
        if aval.dtype != view.dtype
        else "input which requires a copy since its elements are not contiguous"
        if not view.flags.c_contiguous
        else "input which requires a copy since the source data buffer is not aligned to "
        f"{_ALIGNMENT} bytes"
        if view.ctypes.data % _ALIGNMENT
        else None
    )
    if obstacle is not None and copy is False:
        raise _needs_copy(obstacle)
    share = obstacle is None and not copy
    value = np.asarray(view, aval.dtype, order="C")
    return spec_of(aval, target, True).wrap(put_raw(value, aval, target, share=share))


def _capsule(x: Any, options: dict[str, Any]) -> Any:
    try:
        return x.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a producer without DLPack versions
        return x.__dlpack__(**options)


def _from_accelerator(
    x: Any, kind: DLDeviceType, number: int, target: Sharding | None, copy: bool | None
) -> ArrayImpl:
    platform = _PLATFORMS.get(kind)
    if platform is None:
        raise BufferError(f"arrays on DLPack device ({kind.name}, {number}) cannot be imported")
    matching = [d for d in local_devices(None, platform) if d.local_hardware_id == number]
    if not matching:
        raise ValueError(
            f"the array is on {platform} device number {number}, which is not one of "
            f"{local_devices(None, platform)}"
        )
    (device,) = matching
    source = SingleDeviceSharding(device)
    if copy is False and target is not None and target is not source:
        raise _needs_copy(_elsewhere(target, device))
    stream = device.get_stream_for_external_ready_events()
    versions = {"max_version": (1, 0)} if JAXLIB_VERSION >= (0, 12) else {}
    capsule = x.__dlpack__(stream=stream, **versions)
    # jaxlib creates the array here, and imports jax if it is installed: accelerator memory has no
    # other interface.
    buf = _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream, copy)
    aval = ShapedArray(tuple(buf.aval.shape), np.dtype(buf.aval.dtype))
    array = spec_of(aval, source, True).wrap(buf)
    return array if target is None else move(array, target)
