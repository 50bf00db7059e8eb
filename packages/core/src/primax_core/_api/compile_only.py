"""Compilation for devices that this process does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._lower.lazy import compiling, mlir
from .._runtime.absent_devices import AbsentDevice, AbsentExecutable, compile_for
from .stages import Compiled, Lowered


def compile_absent(lowered: Lowered, devices: Sequence[Any], compiler_options: tuple) -> Compiled:
    """``lowered.compile(devices=devices)``.

    Raises:
      TypeError: for devices that are here.
      ValueError: unless there is one device.
    """
    for d in devices:
        if not isinstance(d, AbsentDevice):
            raise TypeError(
                f"devices has {d!r}: it takes devices of extend.native.compile_only. For a device "
                "of this process place the arguments there with device_put"
            )
    if len(devices) != 1:
        raise ValueError(
            f"a program is compiled for one device, but devices has {len(devices)}: pass "
            "devices[:1]"
        )
    (device,) = devices
    if lowered._module.platform != device.platform:
        lowered = lowered._traced.lower(lowering_platforms=(device.platform,))
    name = f"jit({lowered._traced.fun_name})"
    options = compiling.make_options((device.raw,), compiler_options)
    raw = compile_for(lowered._module, mlir.context, device, options, name)
    return Compiled(lowered, AbsentExecutable(raw, name, device))
