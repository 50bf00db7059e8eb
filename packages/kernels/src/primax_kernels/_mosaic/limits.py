"""Kernels that Mosaic refuses, told before it runs."""

from __future__ import annotations

from typing import Any, Final

from primax_core import jit

from .._error_texts import reason_of
from .._kernel import Kernel
from .._linear_calls import running_equations
from .._tpu_info import ChipVersion, get_tpu_info_for_chip
from . import types
from .copied_blocks import with_copied_blocks
from .errors import MosaicError, located_text
from .params import parameter, reasons_of_params
from .program import Program, emit
from .windows import reason_of_buffers, space_of, window_shape

_CHIPS: Final = {
    "v4": ChipVersion.TPU_V4, "v5e": ChipVersion.TPU_V5E, "v5p": ChipVersion.TPU_V5P,
    "v6e": ChipVersion.TPU_V6E, "tpu7x": ChipVersion.TPU_7X,
}  # fmt: skip
"""The chips, by the names of targets."""

_SCOPED: Final = 16 << 20
"""Bytes of vector memory that a kernel has by default."""


def limits(kernel: Kernel, params: Any = None, target: str | None = None) -> tuple[str, ...]:
    """The reasons for which Mosaic refuses a kernel; empty if it accepts it.

    Each reason names the line and what to write instead. Nothing is compiled.

    Args:
      params: parameters of the compiler, such as a ``tpu.CompilerParams``.
      target: the TPU, as ``"v5e"`` or ``"v5e:2x2"``; by default only limits of all are checked.

    Raises:
      ValueError: for another target.
    """
    return _limits(kernel, params, target)[0]


def checked(kernel: Kernel, params: Any = None, target: str | None = None) -> Program:
    """The program of a kernel.

    Raises:
      MosaicError: with the first of its `limits`.
    """
    reasons, program = _limits(kernel, params, target)
    if reasons or program is None:
        raise MosaicError(reasons[0])
    return program


def _limits(
    kernel: Kernel, params: Any, target: str | None
) -> tuple[tuple[str, ...], Program | None]:
    version = None if target is None else target.partition(":")[0]
    if version is not None and version not in _CHIPS:
        raise ValueError(f"target is one of {', '.join(_CHIPS)}, got {target!r}")
    reasons = reasons_of_params(kernel, params)
    try:
        kernel = with_copied_blocks(kernel)
    except MosaicError as error:
        return (reason_of(error),), None
    for mapping in (*kernel.inputs, *kernel.outputs):
        reasons += _of_block(kernel, mapping)
    for j, aval in enumerate(kernel.prefetched):
        if 0 in aval.shape:
            text = f"prefetched scalar {j} of shape {aval.shape} has no elements"
            reasons.append(located_text(text, kernel))
    if reasons:
        return tuple(reasons), None
    try:
        program = emit(kernel)
    except MosaicError as error:
        return (reason_of(error),), None
    return tuple(_of_memory(kernel, program, params, version)), program


def _of_block(kernel: Kernel, mapping: Any) -> list[str]:
    """Reasons about the type and the sizes of an operand's blocks."""
    try:
        types.element(mapping.aval.dtype)
        space = space_of(kernel, mapping)
    except MosaicError as error:
        text = reason_of(error)
        return [text if text.startswith(mapping.name) else
                located_text(f"{mapping.name}: {text}", kernel)]  # fmt: skip
    of_buffers = reason_of_buffers(mapping)
    if of_buffers is not None:
        return [located_text(of_buffers, kernel)]
    shape = mapping.aval.shape
    if 0 in shape:
        text = f"{mapping.name} of shape {shape} has no elements: do not call the kernel for it"
        return [located_text(text, kernel)]
    block = window_shape(mapping)
    if space in ("any", "hbm"):
        if not mapping.whole:
            text = (
                f"{mapping.name} is in {space.upper()} and has blocks; whole arrays are there: "
                "leave block_shape away, or use VMEM"
            )
            return [located_text(text, kernel)]
        return []
    if any(e.padding[0] for e in mapping.extents):
        text = (
            f"{mapping.name}: blocks begin before the array, and Mosaic has padding after it only: "
            "pad the operand before the kernel"
        )
        return [located_text(text, kernel)]
    tiles = types.tile(len(shape), mapping.aval.dtype)
    for axis, (n, size, multiple) in enumerate(zip(shape, block, tiles)):
        if size % multiple and size != n:
            what = "None" if mapping.extents[axis].squeezed else str(size)
            text = (
                f"{mapping.name}: the block of axis {axis} is {what} and the array of shape "
                f"{shape} has {n} there; on a TPU it is a multiple of {multiple}, or the whole "
                f"axis: use {-(-size // multiple) * multiple} or {n}, or put the axis further to "
                "the left"
            )
            return [located_text(text, kernel)]
    return []


def _of_memory(kernel: Kernel, program: Program, params: Any, version: str | None) -> list[str]:
    """Reasons about the size of vector memory."""
    chosen = parameter(params, "vmem_limit_bytes")
    limit = _SCOPED if chosen is None else int(chosen)
    if version is not None:
        available = get_tpu_info_for_chip(_CHIPS[version], 1).vmem_capacity_bytes
        if limit > available:
            text = f"vmem_limit_bytes is {limit}, a {version} has {available} bytes"
            return [located_text(text, kernel)]
    if program.vmem_bytes > limit:
        text = (
            f"blocks (two of each, or one with Buffered(1)) and scratch memory take "
            f"{program.vmem_bytes} bytes of VMEM, the limit is {limit}: use smaller blocks, one "
            "buffer, or a larger vmem_limit_bytes in tpu.CompilerParams"
        )
        return [located_text(text, kernel)]
    return []


def limits_of_function(fun: Any, *args: Any, target: str | None = None) -> tuple[str, ...]:
    """The reasons for which Mosaic would refuse the kernels of a function, see `tpu.limits`."""
    reasons: list[str] = []
    for eqn in running_equations(jit(fun).trace(*args).jaxpr):
        if eqn.primitive.name == "pallas_call":
            kernel = eqn.params["kernel"]
            reasons += limits(kernel, kernel.compiler_params, target)
    return tuple(reasons)
