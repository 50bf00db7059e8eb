"""Calls of Python functions from executables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from jaxlib.mlir import ir

from .context import u64
from .native import custom_call

_TARGETS: Final = {
    "cpu": "xla_ffi_python_cpu_callback",
    "cuda": "xla_ffi_python_gpu_callback",
    "rocm": "xla_ffi_python_gpu_callback",
}


def emit_callback(
    ctx: Any,
    call: Callable[..., Any],
    operands: Sequence[ir.Value],
    out_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    ordered: bool = False,
) -> list[ir.Value]:
    """Call a function of NumPy arrays that returns a tuple of NumPy arrays.

    Args:
      call: the function that XLA calls; it checks its own results (``_runtime.host_callbacks``).
      has_side_effect: keep the call even if its results are unused.
      ordered: run it after the block's earlier ordered calls.

    Raises:
      NotImplementedError: on platforms that cannot call Python.
    """
    target = _TARGETS.get(ctx.platform)
    if target is None:
        raise NotImplementedError(
            f"callbacks into Python are not supported on {ctx.platform}: run this part on a CPU or "
            "a GPU"
        )
    index = len(ctx.callbacks)
    ctx.callbacks.append(call)
    tokens = ctx.tokens(ctx.eqn.effects) if ordered else []
    outs = custom_call(
        target,
        [*tokens, *operands],
        out_avals,
        attributes={"index": u64(index)},
        tokens=len(tokens),
        has_side_effect=has_side_effect,
    )
    return ctx.take_tokens(tokens, outs)
