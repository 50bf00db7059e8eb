"""Kernels for TPUs, beyond `primax_kernels`: memories, semaphores, copies, pipelines."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from primax_core import default_backend, lax
from primax_core.extend.references import parse_index, read_at

from ._access import load as load, store as store
from ._bits import (
    bitcast as bitcast,
    einshape as einshape,
    pack_elementwise as pack_elementwise,
    unpack_elementwise as unpack_elementwise,
)
from ._block_specs import (
    CompilerParams as _CompilerParams,
    PrefetchScalarGridSpec as PrefetchScalarGridSpec,
)
from ._buffered_refs import BufferedRef as BufferedRef, BufferType as BufferType
from ._copies import (
    async_copy as async_copy,
    async_remote_copy as async_remote_copy,
    make_async_copy as make_async_copy,
    make_async_remote_copy as make_async_remote_copy,
    sync_copy as sync_copy,
)
from ._cores import (
    TensorCoreMesh as TensorCoreMesh,
    core_barrier as core_barrier,
    create_tensorcore_mesh as create_tensorcore_mesh,
    run_on_first_core as run_on_first_core,
)
from ._interpret_mode import (
    force_tpu_interpret_mode as force_tpu_interpret_mode,
    reset_tpu_interpret_mode_state as reset_tpu_interpret_mode_state,
    set_tpu_interpret_mode as set_tpu_interpret_mode,
)
from ._interpret_params import InterpretParams as InterpretParams
from ._matrix_units import (
    matmul_acc_lhs as matmul_acc_lhs,
    matmul_lhs_fifo as matmul_lhs_fifo,
    matmul_pop as matmul_pop,
    matmul_pop_fifo as matmul_pop_fifo,
    matmul_push_rhs as matmul_push_rhs,
)
from ._mosaic.errors import LoweringException as LoweringException, MosaicError as MosaicError
from ._on_demand import get_barrier_semaphore as get_barrier_semaphore
from ._packed_bits import (
    join_bits as join_bits,
    pack_fp6 as pack_fp6,
    split_bits as split_bits,
    unpack_fp6 as unpack_fp6,
)
from ._pallas_keys import to_pallas_key as to_pallas_key
from ._pipelines import (
    PipelineStep as PipelineStep,
    emit_pipeline as emit_pipeline,
    emit_pipeline_with_allocations as emit_pipeline_with_allocations,
    emit_pipeline_with_async_prefetch as emit_pipeline_with_async_prefetch,
)
from ._random_bits import (
    prng_random_bits as prng_random_bits,
    prng_seed as prng_seed,
    stateful_bernoulli as stateful_bernoulli,
    stateful_bits as stateful_bits,
    stateful_normal as stateful_normal,
    stateful_uniform as stateful_uniform,
    stochastic_round as stochastic_round,
)
from ._sampling import sample_block as sample_block
from ._semaphores import SemaphoreType as SemaphoreType, dma_semaphore as dma_semaphore
from ._tpu_hints import (
    annotate as annotate,
    conv as conv,
    touch as touch,
    trace_value as trace_value,
    with_memory_space_constraint as with_memory_space_constraint,
)
from ._tpu_info import (
    ChipVersion as ChipVersion,
    CoreType as CoreType,
    SparseCoreInfo as SparseCoreInfo,
    Tiling as Tiling,
    TpuInfo as TpuInfo,
    get_tpu_info as get_tpu_info,
    get_tpu_info_for_chip as get_tpu_info_for_chip,
)
from ._tpu_memory import (
    ACC as ACC,
    CMEM as CMEM,
    HBM as HBM,
    SEMAPHORE as SEMAPHORE,
    SMEM as SMEM,
    VMEM as VMEM,
    VMEM_SHARED as VMEM_SHARED,
    MemorySpace as MemorySpace,
)
from ._typing import ArrayLike, Memory, Reference


class GridDimensionSemantics(enum.Enum):
    """Declaration that the steps along a dimension of the grid are independent, or not."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL: Final = GridDimensionSemantics.PARALLEL
CORE_PARALLEL: Final = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL: Final = GridDimensionSemantics.SUBCORE_PARALLEL
ARBITRARY: Final = GridDimensionSemantics.ARBITRARY


class SideEffectType(enum.Enum):
    """Effects of a kernel besides its results."""

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


@dataclass(frozen=True, kw_only=True)
class CompilerParams(_CompilerParams):
    """Parameters of the TPU's compiler; on other backends ``dimension_semantics`` is used.

    Args:
      dimension_semantics: for each dimension of the grid, whether its steps are independent
        (``PARALLEL``, ``"parallel"``) or not (``ARBITRARY``); by default as the kernel shows.
      vmem_limit_bytes: bytes of VMEM that blocks and scratch memory may take, 16 MiB by default.
      has_side_effects: whether XLA keeps the kernel if its results are unused.
      allow_input_fusion: for each operand, whether XLA may compute it inside of the kernel.
      collective_id, skip_device_barrier, internal_scratch_in_bytes, disable_bounds_checks,
        disable_semaphore_checks, shape_invariant_numerics, needs_layout_passes: passed on.
      serialization_format, flags, allow_collective_id_without_custom_barrier, use_tc_tiling_on_sc,
        fuse_transposed_lhs_in_matmul, opt_level: refused on TPUs unless they have their defaults.
    """

    dimension_semantics: Sequence[Any] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: dict[str, Any] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False
    opt_level: int | None = None


def limits(fun: Callable[..., Any], *args: Any, target: str | None = None) -> tuple[str, ...]:
    """The reasons for which Mosaic would refuse the kernels of a function; empty if there are none.

    Nothing is compiled, and no TPU is needed. Each reason has the kernel, the line and what to
    write instead. Lowering for a TPU raises a `MosaicError` with the first of them.

    Args:
      fun: function of arrays that calls `pallas_call`, or its result.
      args: arguments, arrays or `ShapeDtypeStruct`.
      target: the TPU: ``"v4"``, ``"v5e"``, ``"v5p"``, ``"v6e"`` or ``"tpu7x"``; by default only
        limits of all TPUs are checked.

    Raises:
      ValueError: for another target.

    >>> from primax_core import ShapeDtypeStruct
    >>> from primax_kernels import pallas_call
    >>> def kernel(x, out):
    ...     out[...] = lax.sort(x[...])
    >>> x = ShapeDtypeStruct((8,), np.float32)
    >>> (reason,) = limits(pallas_call(kernel, x), x)
    >>> reason.partition(": ")[2].partition(" (")[0]
    'the operation sort has no rule for Mosaic; sort before or after the kernel'
    """
    from ._mosaic.limits import limits_of_function

    return limits_of_function(fun, *args, target=target)


def is_tpu_device() -> bool:
    """True if the default backend is a TPU."""
    return default_backend() == "tpu"


def has_memory_space(ref: Reference, memory_space: Memory) -> bool:
    """True if a reference lies in a memory."""
    return getattr(ref.aval, "memory_space", None) is memory_space


def reciprocal(x: ArrayLike, *, approx: bool = False, full_range: bool = True) -> Any:
    """``1 / x``.

    Args:
      approx: whether the TPU may use its approximate instruction.
      full_range: whether subnormal and huge numbers matter there.
    """
    return lax.div(lax.full_like(x, 1), x)


def roll(
    x: ArrayLike,
    shift: ArrayLike,
    axis: int,
    *,
    stride: int | None = None,
    stride_axis: int | None = None,
) -> Any:
    """Shift elements cyclically along an axis.

    Args:
      x: an array.
      shift: by how many positions, an integer or an ``int32`` scalar.
      axis: the axis.
      stride, stride_axis: the shift grows by ``stride`` with each position along ``stride_axis``.

    Raises:
      ValueError: for an axis that ``x`` does not have, or only one of the last two.
    """
    if not 0 <= axis < x.ndim:
        raise ValueError(f"roll along axis {axis} of an array with {x.ndim} axes")
    if (stride is None) != (stride_axis is None):
        raise ValueError("roll takes stride and stride_axis together")
    n = x.shape[axis]
    if n == 0:
        return x
    by = lax.rem(lax.convert_element_type(shift, np.int32), np.int32(n))
    if stride is None or stride_axis is None:
        # Between two copies, an array that is shifted to the right begins further to the left.
        start = lax.rem(lax.sub(np.int32(n), by), np.int32(n))
        starts = [start if d == axis else np.int32(0) for d in range(x.ndim)]
        return lax.dynamic_slice(lax.concatenate([x, x], axis), starts, x.shape)
    if not 0 <= stride_axis < x.ndim or stride_axis == axis:
        raise ValueError(f"roll with axis {axis} and stride_axis {stride_axis}")
    indices = [lax.broadcasted_iota(np.int32, x.shape, d) for d in range(x.ndim)]
    by = lax.add(lax.mul(indices[stride_axis], np.int32(stride)), by)
    source = lax.rem(lax.sub(indices[axis], by), np.int32(n))
    indices[axis] = lax.select(lax.lt(source, np.int32(0)), lax.add(source, np.int32(n)), source)
    return read_at(x, *parse_index(x.shape, tuple(indices)))
