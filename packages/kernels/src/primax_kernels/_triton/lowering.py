"""The call of a kernel in StableHLO, which XLA compiles with its own Triton."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from primax_core.extend import lowering, native
from primax_core.extend.runtime import started_clients

from .._expansions import expansion_of, is_derivative
from .._symbolic_export import has_symbolic_sizes
from .errors import TritonError

if TYPE_CHECKING:
    from .._kernel import Kernel

TARGET: Final = "__gpu$xla.gpu.triton"
"""XLA's name of kernels as text. It ends the process for some wrong attributes."""


def current_target() -> str | None:
    """The GPU that a program is lowered for, as ``"sm_90"``: an absent one, or one that runs here.

    ``None`` if neither is known.
    """
    absent = native.absent_target("cuda")
    if absent is not None:
        return absent if absent.startswith("sm_") else None
    client = started_clients().get("cuda")
    devices = client.local_devices() if client is not None else []
    capability = getattr(devices[0], "compute_capability", None) if devices else None
    return None if capability is None else f"sm_{str(capability).replace('.', '')}"


def launch_attributes(
    name: str, text: str, warps: int, stages: int, grid: tuple[int, int, int]
) -> dict[str, Any]:
    """The attributes of XLA's call of a kernel as text.

    Args:
      name: name of the function.
      text: the module with the function.
      warps, stages: ``num_warps`` and ``num_stages``.
      grid: number of programs along each axis.
    """
    numbers = {
        "num_warps": warps, "num_stages": stages, "grid_x": grid[0], "grid_y": grid[1],
        "grid_z": grid[2],
    }  # fmt: skip
    return {
        "name": name, "ir": text, **{n: np.int32(x) for n, x in numbers.items()}, "debug": False,
    }  # fmt: skip


def lower_to_triton(ctx: Any, *values: Any, kernel: Kernel) -> list[Any]:
    """Lowering rule of kernels for CUDA.

    Args:
      ctx: the context of the lowering rule.
      values: MLIR values of the operands.

    Raises:
      TritonError: if the kernel is one that Triton does not support, see `limits.limits`. A
        derived kernel of tangents is lowered as its expansion then.
    """
    # The rules are loaded by the first program for a GPU.
    from . import types
    from .limits import checked

    if math.prod(kernel.grid) == 0 or has_symbolic_sizes(kernel):
        return expansion_of(ctx, values)
    try:
        program = checked(kernel, kernel.compiler_params, current_target())
    except TritonError:
        if is_derivative(kernel):
            return expansion_of(ctx, values)
        raise
    operands = [values[i] for i in program.operands]
    for o in program.filled:
        aval = kernel.outputs[o].aval
        fill = np.asarray(types.unwritten(aval.dtype)).astype(aval.dtype)[()]
        operands.append(lowering.full(fill, aval.shape))
    attributes = launch_attributes(
        program.name, program.text, program.params.num_warps, program.params.num_stages,
        program.grid,
    )  # fmt: skip
    return native.call(
        ctx, TARGET, operands, kernel.out_avals, attributes=attributes, needs=(),
        input_output_aliases=dict(program.aliases),
    )  # fmt: skip
