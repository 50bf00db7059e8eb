"""Kernels for GPUs, beyond `primax_kernels`: masked accesses, atomic updates, hints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from primax_core import default_backend, jit, lax
from primax_core.extend import typeof

from ._access import (
    atomic_add as atomic_add,
    atomic_and as atomic_and,
    atomic_cas as atomic_cas,
    atomic_max as atomic_max,
    atomic_min as atomic_min,
    atomic_or as atomic_or,
    atomic_xchg as atomic_xchg,
    atomic_xor as atomic_xor,
    load as load,
    store as store,
)
from ._block_specs import CompilerParams as _CompilerParams
from ._gpu_info import (
    GpuInfo as GpuInfo,
    GpuVersion as GpuVersion,
    get_gpu_info as get_gpu_info,
    get_gpu_info_from_version as get_gpu_info_from_version,
)
from ._gpu_operations import (
    approx_tanh as approx_tanh,
    debug_barrier as debug_barrier,
    elementwise_inline_asm as elementwise_inline_asm,
    max_contiguous as max_contiguous,
    multiple_of as multiple_of,
)
from ._linear_calls import running_equations
from ._primitive import pallas_call_p
from ._triton.errors import TritonError as TritonError
from ._triton.lowering import TARGET
from ._triton.ptx_call import ptx_call as ptx_call
from ._triton.triton_call import triton_call as triton_call
from ._typing import ArrayLike, PrecisionLike

CUSTOM_CALL_TARGET_NAME: Final = TARGET


@dataclass(frozen=True)
class CompilerParams(_CompilerParams):
    """Parameters of Triton's compiler.

    Args:
      num_warps: groups of 32 threads that compute a step, a power of two.
      num_stages: number of iterations whose loads overlap.

    Raises:
      ValueError: if ``num_warps`` is no power of two, or a number is less than 1.
    """

    num_warps: int | None = None
    num_stages: int | None = None

    def __post_init__(self) -> None:
        for name in ("num_warps", "num_stages"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(f"{name} is a positive integer, got {value!r}")
        if self.num_warps is not None and self.num_warps & (self.num_warps - 1):
            raise ValueError(f"num_warps is a power of two, got {self.num_warps}")


def dot(
    a: ArrayLike,
    b: ArrayLike,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: PrecisionLike | None = None,
) -> Any:
    """The product of two matrices, of 16-bit floats in ``float32``.

    Args:
      a, b: matrices.
      trans_a, trans_b: whether to transpose them first.
      allow_tf32: whether ``float32`` products may use 10 bits of the mantissa; excludes
        ``precision``.
      precision: precision of `lax.dot_general`.

    Raises:
      ValueError: for operands that are no matrices, or both ``allow_tf32`` and ``precision``.
    """
    if allow_tf32 is not None:
        if precision is not None:
            raise ValueError("dot takes allow_tf32 or precision, not both")
        precision = lax.Precision.HIGH if allow_tf32 else lax.Precision.HIGHEST
    for x in (a, b):
        if x.ndim != 2:
            raise ValueError(f"dot takes matrices, got the shape {x.shape}")
    dtype = typeof(a).dtype
    result = (
        dtype if dtype.itemsize >= 4 else np.dtype(np.int32 if dtype.kind in "iu" else np.float32)
    )
    dims = (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ()))
    return lax.dot_general(a, b, dims, precision=precision, preferred_element_type=result)


def limits(fun: Callable[..., Any], *args: Any, target: str | None = None) -> tuple[str, ...]:
    """The reasons for which Triton would refuse the kernels of a function; empty if there are none.

    Nothing is compiled, and no GPU is needed. Each reason has the kernel, the line and what to
    write instead. Lowering for a GPU raises a `TritonError` with the first of them.

    Args:
      fun: function of arrays that calls `pallas_call`, or its result.
      args: arguments, arrays or `ShapeDtypeStruct`.
      target: the GPU, such as ``"sm_90"``; by default only limits of all GPUs are checked.

    Raises:
      ValueError: for a target of another form.

    >>> from primax_core import ShapeDtypeStruct
    >>> from primax_kernels import pallas_call
    >>> def kernel(x, out):
    ...     out[...] = lax.sort(x[...])
    >>> x = ShapeDtypeStruct((8,), np.float32)
    >>> (reason,) = limits(pallas_call(kernel, x), x)
    >>> reason.partition(": ")[2].partition(" (")[0]
    'the operation sort has no rule for Triton; sort before or after the kernel'
    """
    from ._triton.limits import limits as limits_of_kernel

    reasons: list[str] = []
    for eqn in running_equations(jit(fun).trace(*args).jaxpr):
        if eqn.primitive is pallas_call_p:
            kernel = eqn.params["kernel"]
            reasons += limits_of_kernel(kernel, kernel.compiler_params, target)
    return tuple(reasons)


def is_gpu_device() -> bool:
    """True if the default backend is a GPU."""
    return default_backend() in ("gpu", "cuda", "rocm")
