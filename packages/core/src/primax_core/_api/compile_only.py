"""Compilation for devices that this process does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._lower.lazy import compiling, mlir
from .._runtime.absent_devices import AbsentDevice, AbsentExecutable, compile_for, lowering_for
from .stages import Compiled, Lowered


def compile_absent(lowered: Lowered, devices: Sequence[Any], compiler_options: tuple) -> Compiled:
    """``lowered.compile(devices=devices)``.

    Raises:
      TypeError: for devices that are here.
      ValueError: unless there are as many devices as the function is lowered for.
    """
    for d in devices:
        if not isinstance(d, AbsentDevice):
            raise TypeError(
                f"devices has {d!r}: it takes devices of extend.native.compile_only. For a device "
                "of this process place the arguments there with device_put"
            )
    shardings = lowered._module.shardings
    n = 1 if shardings is None else shardings.everywhere.num_devices
    if len(devices) != n:
        what = "one device" if n == 1 else f"{n} devices"
        raise ValueError(
            f"the program is lowered for {what}, but devices has {len(devices)}: pass "
            f"devices[:{n}], or arguments (ShapeDtypeStruct) with shardings over as many devices"
        )
    device = devices[0]
    # Rules may emit other operations for this target than for a device of the process.
    if lowered._module.platform != device.platform or device.platform != "cpu":
        with lowering_for(device):
            lowered = lowered._traced.lower(lowering_platforms=(device.platform,))
    name = f"jit({lowered._traced.fun_name})"
    options = compiling.make_options(tuple(d.raw for d in devices), compiler_options)
    raw = compile_for(lowered._module, mlir.context, devices, options, name)
    return Compiled(lowered, AbsentExecutable(raw, name, device))
