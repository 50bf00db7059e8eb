"""Calls of NVIDIA's solvers in lowering rules for CUDA.

jaxlib's plugin for CUDA has the native functions and registers them when it starts. They take
stacks of column-major matrices, as LAPACK does. Routines of cuSOLVER have the names of LAPACK's;
those that begin with ``cuhybrid`` compute on the host, or with MAGMA if it is installed.

NVIDIA, "cuSOLVER API Reference", version 12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..._ir.avals import ShapedArray
from . import lapack

_MAGMA: Final = {None: "auto", True: "on", False: "off"}


def call(
    target: str,
    operands: Sequence[tuple[Any, ShapedArray]],
    out_avals: Sequence[ShapedArray],
    aliases: Mapping[int, int] | None = None,
    **attributes: Any,
) -> list[Any]:
    """Call a native function of the plugin on nonempty stacks of matrices.

    Args:
      target: the name of the function, without ``_ffi`` for routines of cuSOLVER.
      operands: values with their types.
      aliases: ``{operand: result}``, operands that are overwritten by results.
    """
    if target.startswith(("cusolver_", "cusparse_")):
        target = f"{target}_ffi"
    return lapack.call_on_columns(target, operands, out_avals, aliases, attributes)


def magma(use: bool | None) -> str:
    """The attribute that chooses MAGMA: always, never, or for large matrices if it is there."""
    return _MAGMA[use]
