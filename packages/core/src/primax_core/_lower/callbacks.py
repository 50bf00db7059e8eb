"""Calls of Python functions from executables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jaxlib.mlir import ir

from .._base.source import summarize_function
from .._runtime.buffer_callbacks import BufferCall, check_supported
from .._runtime.host_callbacks import HostCall
from .context import physical, u64
from .native import call as native_call

_TARGETS: Final = {
    "arrays": {
        "cpu": "xla_ffi_python_cpu_callback",
        "cuda": "xla_ffi_python_gpu_callback",
        "rocm": "xla_ffi_python_gpu_callback",
    },
    "parts": {"cpu": "xla_ffi_partitioned_python_cpu_callback"},
    "buffers": {
        "cpu": "xla_buffer_python_cpu_callback",
        "cuda": "xla_buffer_python_gpu_callback",
        "rocm": "xla_buffer_python_gpu_callback",
    },
    "captured buffers": {
        "cpu": "xla_buffer_python_cpu_callback",
        "cuda": "xla_buffer_python_gpu_callback_cmd_buffer",
        "rocm": "xla_buffer_python_gpu_callback_cmd_buffer",
    },
}


def callback(
    ctx: Any,
    fun: Callable[..., Any],
    operands: Sequence[ir.Value[Any]],
    out_avals: Sequence[Any] | None = None,
    *,
    kind: str = "arrays",
    has_side_effect: bool = False,
    ordered: bool = False,
    input_output_aliases: Mapping[int, int] | None = None,
    capture: bool = False,
) -> list[ir.Value[Any]]:
    """Call a Python function, in a lowering rule.

    Args:
      ctx: the context of the lowering rule.
      fun: with ``kind="arrays"``, a function of arrays that returns a sequence of arrays, one for
        each result; their number, shapes and dtypes are checked. With ``kind="buffers"``, a
        function ``fun(context, *operands, *results)`` of buffers, without copies: it writes the
        results, which contain arbitrary values before, and returns ``None``. A buffer has
        ``shape``, ``dtype``, ``ndim``, ``writeable``, is converted by ``np.asarray`` (a view, on a
        CPU), and is valid during the call only; on a GPU ``context.stream`` is its stream.
      operands: MLIR values of the equation's operands.
      out_avals: types of the results; by default those of the equation.
      has_side_effect, ordered, input_output_aliases: as for ``call``.
      capture: with ``kind="buffers"``, the function may be captured in a command buffer of a GPU
        (CUDA graph), and is not called when that runs again. It has no effect on a CPU.

    Returns:
      The values of the results. An exception of the function is raised where a result is used,
      with its traceback.

    Raises:
      NotImplementedError: on platforms, and jaxlib versions, that cannot call Python.
    """
    if kind not in ("arrays", "buffers"):
        raise ValueError(f"kind is {kind!r}: it is 'arrays' or 'buffers'")
    if kind == "arrays" and (input_output_aliases or capture):
        raise ValueError("input_output_aliases and capture require kind='buffers'")
    if len(operands) != len(ctx.in_avals):
        raise ValueError(
            f"the callback receives {len(operands)} operands, but the equation has "
            f"{len(ctx.in_avals)}"
        )
    avals = ctx.out_avals if out_avals is None else out_avals
    what = f"the native callback {summarize_function(fun)}"
    tokens = bool(ordered and ctx.tokens(ctx.eqn.effects))
    function: Callable[..., Any]
    if kind == "buffers":
        check_supported()
        function = BufferCall(fun, len(operands), int(tokens), what)
    else:
        function = HostCall(fun, ctx.in_avals, avals, tokens, what)
    return emit_callback(
        ctx,
        function,
        operands,
        avals,
        has_side_effect=has_side_effect,
        ordered=ordered,
        kind="captured buffers" if capture else kind,
        input_output_aliases=input_output_aliases,
    )


def emit_callback(
    ctx: Any,
    call: Callable[..., Any],
    operands: Sequence[ir.Value[Any]],
    out_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    ordered: bool = False,
    kind: str = "arrays",
    partitioned: bool = False,
    input_output_aliases: Mapping[int, int] | None = None,
) -> list[ir.Value[Any]]:
    """Call a function that XLA calls with arrays or with buffers.

    Args:
      call: the function, a ``HostCall`` or ``BufferCall``.
      has_side_effect: keep the call even if its results are unused.
      ordered: run it after the block's earlier ordered calls.
      partitioned: on several devices each one calls the function, with its parts of the operands.

    Raises:
      NotImplementedError: on platforms that cannot call Python.
    """
    if partitioned and ctx.num_partitions > 1 and ctx.axes is None:
        kind = "parts"
        if ordered:
            raise NotImplementedError(
                "ordered calls by each of several devices (ordered=True, partitioned=True) are not "
                "supported: devices have no common order. Leave one of the options out"
            )
    target = _TARGETS[kind].get(ctx.platform)
    if target is None:
        raise NotImplementedError(
            f"callbacks into Python are not supported on {ctx.platform}"
            + (" for the parts of several devices" if kind == "parts" else "")
            + ": run this part on a CPU"
            + ("" if kind == "parts" else " or a GPU")
        )
    if ctx.num_partitions > 1:
        from .._runtime.several_devices import ContainedCall  # loaded on first use

        n = len(ctx.tokens(ctx.eqn.effects)) if ordered else 0
        call = ContainedCall(call, [physical(a) for a in out_avals], n, kind.endswith("buffers"))
    index = len(ctx.callbacks)
    ctx.callbacks.append(call)
    return native_call(
        ctx,
        target,
        operands,
        out_avals,
        attributes={"index": u64(index)},
        has_side_effect=has_side_effect,
        ordered=ordered,
        input_output_aliases=input_output_aliases,
        needs=(),
        once=True,
    )
