"""Reading of arrays of sub-byte elements on jaxlib 0.10, which has no conversion to NumPy.

A compiled conversion to a byte-sized type, which is exact, runs first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxlib import _jax

from .._base import caches
from .._ir.avals import ShapedArray

# MLIR's name of the type, and the name and dtype of the type to which it is converted.
_SIGNED, _UNSIGNED, _FLOAT = ("i8", np.int8), ("ui8", np.uint8), ("f32", np.float32)
_READ_AS = {
    "int2": ("i2", *_SIGNED),
    "int4": ("i4", *_SIGNED),
    "uint2": ("ui2", *_UNSIGNED),
    "uint4": ("ui4", *_UNSIGNED),
    "float4_e2m1fn": ("f4E2M1FN", *_FLOAT),
}

_readers: dict[tuple, tuple[Any, Any]] = caches.bounded_cache(256)


def read_packed(buf: Any, result_handler: Callable) -> np.ndarray:
    """The values of a raw array on one CPU device, converted on the device."""
    aval, sharding = buf.aval, buf._sharding
    key = (aval.shape, aval.dtype, sharding._internal_device_list)
    reader = _readers.get(key)
    if reader is None:
        reader = _readers[key] = _make_reader(aval, sharding, result_handler)
    executable, handler = reader
    (wide,) = executable.execute_sharded([buf]).consume_with_handlers([handler])
    return np.asarray(memoryview(wide)).astype(aval.dtype)


def _make_reader(aval, sharding, result_handler):
    if aval.dtype.name not in _READ_AS:
        raise TypeError(f"arrays of {aval.dtype.name} cannot be read with this jaxlib")
    narrow, wide, dtype = _READ_AS[aval.dtype.name]
    dims = "".join(f"{d}x" for d in aval.shape)
    text = f"""module {{
      func.func @main(%x: tensor<{dims}{narrow}>) -> tensor<{dims}{wide}> {{
        %y = stablehlo.convert %x : (tensor<{dims}{narrow}>) -> tensor<{dims}{wide}>
        return %y : tensor<{dims}{wide}>
      }}
    }}"""
    device = sharding._internal_device_list[0]
    options = _jax.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    options.device_assignment = _jax.DeviceAssignment.create(np.array([[device.id]], np.int32))
    # Not a DeviceList: iterating over one sets an attribute of its class in jaxlib 0.10.
    executable = device.client.compile_and_load(text.encode(), [device], options)
    return executable, result_handler(ShapedArray(aval.shape, np.dtype(dtype)), sharding)
