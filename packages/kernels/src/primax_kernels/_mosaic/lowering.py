"""The call of a kernel in StableHLO, which the TPU's compiler compiles with Mosaic."""

from __future__ import annotations

import base64
import json
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from primax_core.extend import ShapedArray, lowering, native

from .._expansions import expansion_of, is_derivative
from .._symbolic_export import has_symbolic_sizes
from .errors import MosaicError

if TYPE_CHECKING:
    from .._kernel import Kernel

TARGET: Final = "tpu_custom_call"
"""The name of Mosaic's kernels."""


def current_target() -> str | None:
    """The TPU that a program is lowered for, as ``"v5e:2x2"``; ``None`` if it is not known."""
    target = native.absent_target("tpu")
    return target or None


def lower_to_mosaic(ctx: Any, *values: Any, kernel: Kernel) -> list[Any]:
    """Lowering rule of kernels for TPUs.

    Args:
      ctx: the context of the lowering rule.
      values: MLIR values of the operands.

    Raises:
      MosaicError: if the kernel is one that Mosaic does not support, see `limits.limits`. A derived
        kernel of tangents is lowered as its expansion then.
    """
    # The rules are loaded by the first program for a TPU.
    from .._emission.elements import unwritten
    from .limits import checked
    from .params import configuration, side_effect

    if math.prod(kernel.grid) == 0 or has_symbolic_sizes(kernel):
        return expansion_of(ctx, values)
    params = kernel.compiler_params
    try:
        program = checked(kernel, params, current_target())
    except MosaicError:
        if is_derivative(kernel):
            return expansion_of(ctx, values)
        raise
    avals = [*kernel.prefetched, *(m.aval for m in kernel.inputs)]
    operands = [_size(values[j]) for j in program.sizes]
    for operand in program.operands:
        if operand.filled:
            aval = kernel.outputs[operand.number].aval
            fill = np.asarray(unwritten(aval.dtype)).astype(_stored(aval).dtype)[()]
            operands.append(lowering.full(fill, _stored(aval).shape))
        else:
            operands.append(_to_memory(values[operand.number], avals[operand.number]))
    body = base64.b64encode(native.mosaic_bytecode(program.text)).decode()
    inside, outside = configuration(params)
    if kernel.communicates:
        inside["has_communication"] = True
    config = {"custom_call_config": {"body": body, **inside}, **outside}
    results = native.call(
        ctx, TARGET, operands, [_stored(a) for a in kernel.out_avals], api_version=1, needs=(),
        backend_config=json.dumps(config), has_side_effect=side_effect(params),
        extra_attributes={"kernel_name": program.name},
        input_output_aliases={i + len(program.sizes): o for i, o in program.aliases},
    )  # fmt: skip
    return [_from_memory(x, a) for x, a in zip(results, kernel.out_avals)]


def _size(x: Any) -> Any:
    """A computed size of the grid, at least 0."""
    return lowering.hlo.maximum(x, lowering.full(np.int32(0), ()))


def _stored(aval: Any) -> ShapedArray:
    """The type of an array for Mosaic: it has an axis, and Booleans are integers."""
    dtype = np.dtype(np.int32) if np.dtype(aval.dtype) == np.bool_ else aval.dtype
    return ShapedArray(tuple(aval.shape) or (1,), dtype)


def _to_memory(x: Any, aval: Any) -> Any:
    """An operand as Mosaic has it."""
    stored = _stored(aval)
    if np.dtype(aval.dtype) == np.bool_:
        x = lowering.hlo.convert(lowering.tensor_type(tuple(aval.shape), stored.dtype), x)
    return x if aval.shape else lowering.reshape(x, (1,))


def _from_memory(x: Any, aval: Any) -> Any:
    """A result of Mosaic with the type that it has outside."""
    x = x if aval.shape else lowering.reshape(x, ())
    if np.dtype(aval.dtype) == np.bool_:
        x = lowering.hlo.convert(lowering.tensor_type(tuple(aval.shape), aval.dtype), x)
    return x
