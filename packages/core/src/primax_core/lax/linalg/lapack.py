"""LAPACK calls in lowering rules for the CPU.

E. Anderson et al., "LAPACK Users' Guide", third edition, SIAM 1999.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..._ir.avals import ShapedArray
from ..._ir.primitive import Primitive, lower
from ..._lower.lazy import hlo, mlir, native, shaped
from ..._runtime import lapack_targets as _provides_them  # noqa: F401

_LETTERS: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_NAMES_OF_COMPLEX: Final = {
    "orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd",
}  # fmt: skip


def info_of(stack: tuple[int, ...]) -> ShapedArray:
    """The type of LAPACK's status codes, one for each matrix of a stack; 0 means success."""
    return ShapedArray(stack, np.dtype(np.int32))


def call(
    ctx: Any,
    routine: str,
    operands: Sequence[tuple[Any, ShapedArray]],
    out_avals: Sequence[ShapedArray],
    aliases: Mapping[int, int] | None = None,
    **attributes: Any,
) -> list[Any]:
    """Call a routine on nonempty stacks of matrices.

    Args:
      routine: the name of the real routine, without the letter of the dtype.
      operands: values with their types.
      aliases: ``{operand: result}``, operands that are overwritten by results.
      attributes: attributes of jaxlib's wrapper; a string is one of LAPACK's letters.
    """
    dtype = operands[0][1].dtype
    if dtype.kind == "c":
        routine = _NAMES_OF_COMPLEX.get(routine, routine)
    return call_target(
        ctx, f"lapack_{_LETTERS[dtype.name]}{routine}_ffi", operands, out_avals, aliases,
        {k: np.uint8(ord(v)) if isinstance(v, str) else v for k, v in attributes.items()},
    )  # fmt: skip


def call_target(
    ctx: Any,
    target: str,
    operands: Sequence[tuple[Any, ShapedArray]],
    out_avals: Sequence[ShapedArray],
    aliases: Mapping[int, int] | None = None,
    attributes: dict[str, Any] | None = None,
) -> list[Any]:
    """Call a function of jaxlib; operands and results of the highest rank are matrices."""
    ctx.needs.add("lapack")
    return call_on_columns(target, operands, out_avals, aliases, attributes)


def call_on_columns(
    target: str,
    operands: Sequence[tuple[Any, ShapedArray]],
    out_avals: Sequence[ShapedArray],
    aliases: Mapping[int, int] | None = None,
    attributes: dict[str, Any] | None = None,
) -> list[Any]:
    """Call a native function; operands and results of the highest rank are column-major."""
    rank = max(a.ndim for a in (*(a for _, a in operands), *out_avals))

    def layout(aval):
        return native.column_major(rank) if aval.ndim == rank else native.row_major(aval.ndim)

    return native.custom_call(
        target,
        [v for v, _ in operands],
        out_avals,
        attributes=attributes,
        operand_layouts=[layout(a) for _, a in operands],
        result_layouts=[layout(a) for a in out_avals],
        input_output_aliases=aliases,
    )


def transposed(value: Any, aval: ShapedArray) -> tuple[Any, ShapedArray]:
    """Transposed matrices; no copy, because row-major becomes column-major."""
    n = aval.ndim
    shape = (*aval.shape[:-2], aval.shape[-1], aval.shape[-2])
    return hlo.transpose(value, mlir.i64s((*range(n - 2), n - 1, n - 2))), aval.update(shape=shape)


def empties(ctx: Any) -> list[Any] | None:
    """Zeros for the results of the current equation if all of them are empty."""
    if all(a.size == 0 for a in ctx.out_avals):
        return [shaped.zeros_of(a) for a in ctx.out_avals]
    return None


def only_on_cpu(prim: Primitive) -> None:
    """Declare that a primitive is implemented by LAPACK, on the CPU only."""
    prim.unsupported(lower, f"{prim.name} is computed by LAPACK, on the CPU only. {_ELSEWHERE}")


def only_with_solvers(prim: Primitive) -> None:
    """Declare that a primitive is implemented on CPUs and NVIDIA GPUs only."""
    prim.unsupported(
        lower,
        f"{prim.name} is computed by LAPACK on CPUs and by cuSOLVER on NVIDIA GPUs. {_ELSEWHERE}",
    )


_ELSEWHERE: Final = "Move the operand to a CPU with device_put, or compute it in a pure_callback."
