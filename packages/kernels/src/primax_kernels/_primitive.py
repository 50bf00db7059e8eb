"""The primitive of kernel calls: everything follows from its expansion, except batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from primax_core import named_scope, vmap
from primax_core.extend import (
    Axis,
    Primitive,
    abstract,
    batch,
    batch_jaxpr,
    eval_jaxpr,
    expand,
    expanded,
    lower,
    move_axis,
    partition,
    typeof,
)

from ._batching import BatchedKernel, batched_kernel
from ._cpu.dynamic import run_in_order
from ._cpu.grid import plan_of, run
from ._kernel import Kernel
from ._mosaic.lowering import lower_to_mosaic
from ._partitioning import Division, mapped_division, partitioning
from ._triton.lowering import lower_to_triton

pallas_call_p: Final[Primitive] = Primitive("pallas_call", multiple_results=True)


@pallas_call_p.rule(abstract)
def _abstract(*avals: Any, kernel: Kernel) -> list[Any]:
    return kernel.out_avals


@pallas_call_p.rule(expand)
def _expand(*args: Any, kernel: Kernel) -> list[Any]:
    if isinstance(kernel, BatchedKernel):
        axes = tuple(0 if m else None for m in kernel.mapped)
        return vmap(lambda *xs: _expand(*xs, kernel=kernel.original), axes)(*args)
    with named_scope(kernel.name):  # profiles and `explain` show it
        return run_in_order(kernel, args) if kernel.dynamic else run(plan_of(kernel), args)


@pallas_call_p.rule(batch)
def _batch(
    axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *, kernel: Kernel
) -> tuple[list[Any], list[Any]]:
    batched, mapped = _batched(axis, dims, kernel)
    if batched is None:
        return _batch_of_arrays(axis, args, dims, kernel)
    moved = [move_axis(x, d, 0, axis.size) if m else x for x, d, m in zip(args, dims, mapped)]
    outs = pallas_call_p.bind(*moved, kernel=batched)
    return outs, [0] * len(outs)


def _batched(
    axis: Axis, dims: Sequence[int | None], kernel: Kernel
) -> tuple[BatchedKernel | None, list[bool]]:
    """The kernel of a batch, if there is one, and for each operand whether it has all examples."""
    mapped = [d is not None for d in dims]
    for i, _ in kernel.aliases:  # a result begins with it
        mapped[i] = True
    batched = None
    if axis.name is None and axis.spmd_name is None:
        batched = batched_kernel(kernel, mapped, axis.size)
    return batched, mapped


def _batch_of_arrays(
    axis: Axis, args: Sequence[Any], dims: Sequence[int | None], kernel: Kernel
) -> tuple[list[Any], list[Any]]:
    """The batch of the expansion."""
    avals = [
        a if d is None else a.update(shape=(*a.shape[:d], *a.shape[d + 1 :]))
        for a, d in zip(map(typeof, args), dims)
    ]
    jaxpr = expanded(pallas_call_p, avals, {"kernel": kernel})
    assert jaxpr is not None
    batched, out_dims = batch_jaxpr(jaxpr, dims, axis)
    return eval_jaxpr(batched, args), list(out_dims)


@pallas_call_p.rule(lower.on("cuda"))
def _lower_on_cuda(ctx: Any, *args: Any, kernel: Kernel) -> Any:
    return lower_to_triton(ctx, *args, kernel=kernel)


@pallas_call_p.rule(lower.on("tpu"))
def _lower_on_tpu(ctx: Any, *args: Any, kernel: Kernel) -> Any:
    return lower_to_mosaic(ctx, *args, kernel=kernel)


# Kernels that devices divide

divided_pallas_call_p: Final[Primitive] = Primitive("divided_pallas_call", multiple_results=True)
"""A kernel call of which each device of a program runs some steps.

Derivatives are those of the kernel on arrays, which the compiler divides.
"""


@divided_pallas_call_p.rule(abstract)
def _divided_abstract(*avals: Any, kernel: Kernel, division: Division) -> list[Any]:
    return kernel.out_avals


@divided_pallas_call_p.rule(expand)
def _divided_expand(*args: Any, kernel: Kernel, division: Division) -> list[Any]:
    return _expand(*args, kernel=kernel)


@divided_pallas_call_p.rule(partition)
def _partition(eqn: Any, everywhere: Any) -> Any:
    return partitioning(pallas_call_p.bind, **eqn.params)


@divided_pallas_call_p.rule(lower)
def _divided_lower(ctx: Any, *args: Any, kernel: Kernel, division: Division) -> Any:
    """On one device: the expansion; with its own rule, keys of programs have the division."""
    jaxpr = expanded(pallas_call_p, ctx.in_avals, {"kernel": kernel})
    assert jaxpr is not None
    return ctx.call_jaxpr(jaxpr, kernel.name, args)


@divided_pallas_call_p.rule(lower.on("cuda"))
def _divided_lower_on_cuda(ctx: Any, *args: Any, kernel: Kernel, division: Division) -> Any:
    return _lower_on_cuda(ctx, *args, kernel=kernel)


@divided_pallas_call_p.rule(lower.on("tpu"))
def _divided_lower_on_tpu(ctx: Any, *args: Any, kernel: Kernel, division: Division) -> Any:
    return _lower_on_tpu(ctx, *args, kernel=kernel)


@divided_pallas_call_p.rule(batch)
def _divided_batch(
    axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *, kernel: Kernel,
    division: Division,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    batched, mapped = _batched(axis, dims, kernel)
    if batched is None:
        return _batch_of_arrays(axis, args, dims, kernel)
    moved = [move_axis(x, d, 0, axis.size) if m else x for x, d, m in zip(args, dims, mapped)]
    leading = [*mapped[len(kernel.prefetched) :], *[True] * len(kernel.outputs)]
    own = mapped_division(division, leading)
    outs = divided_pallas_call_p.bind(*moved, kernel=batched, division=own)
    return outs, [0] * len(outs)
