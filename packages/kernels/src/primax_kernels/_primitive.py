"""The primitive of kernel calls: rules follow from its expansion, except batches and ``jvp``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from primax_core import lax, named_scope, vmap
from primax_core.extend import (
    Axis,
    Primitive,
    Zero,
    abstract,
    batch,
    batch_jaxpr,
    eval_jaxpr,
    expand,
    expanded,
    instantiate,
    is_zero,
    jvp,
    jvp_jaxpr,
    linearize,
    linearize_jaxpr,
    lower,
    move_axis,
    partition,
    stage,
    typeof,
)

from ._batching import BatchedKernel, batched_kernel
from ._cpu.dynamic import run_in_order
from ._cpu.grid import plan_of, run
from ._derivatives import JvpKernel, active_operands, jvp_kernel
from ._kernel import Kernel
from ._mosaic.lowering import lower_to_mosaic
from ._partitioning import Division, mapped_division, partitioning
from ._symbolic_export import has_symbolic_sizes
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
    if isinstance(kernel, JvpKernel):
        return _expand_jvp(args, kernel)
    with named_scope(kernel.name):  # profiles and `explain` show it
        if kernel.dynamic or has_symbolic_sizes(kernel):
            return run_in_order(kernel, args)
        return run(plan_of(kernel), args)


def _expand_jvp(args: Sequence[Any], kernel: JvpKernel) -> list[Any]:
    """The derivative of the original's expansion."""
    n = len(kernel.active)
    original = expanded(pallas_call_p, [typeof(x) for x in args[:n]], {"kernel": kernel.original})
    assert original is not None
    out_mask = kernel.out_mask
    derived, _ = jvp_jaxpr(original, kernel.active, out_mask)
    return eval_jaxpr(derived, args)[: len(kernel.outputs)]


# Derivatives


@pallas_call_p.rule(jvp)
def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, kernel: Kernel
) -> tuple[list[Any], list[Any]]:
    """A kernel of values and tangents if there is one, otherwise the derivative on arrays.

    Of an accelerator's compilers that kernel may ask more than they have: then it is lowered as
    its expansion, which is the derivative on arrays.
    """
    active = active_operands(kernel, [not is_zero(t) for t in tangents])
    derived = jvp_kernel(kernel, active)
    rest = [instantiate(t) for t, m in zip(tangents, active) if m]
    if isinstance(derived, JvpKernel):
        results, out_mask = pallas_call_p.bind(*primals, *rest, kernel=derived), derived.out_mask
    else:
        jaxpr = expanded(pallas_call_p, [typeof(x) for x in primals], {"kernel": kernel})
        assert jaxpr is not None
        on_arrays, out_mask = jvp_jaxpr(jaxpr, active)
        results = eval_jaxpr(on_arrays, [*primals, *rest])
    outs, dots = results[: len(out_mask)], iter(results[len(out_mask) :])
    return outs, [next(dots) if m else Zero.like(o) for o, m in zip(outs, out_mask)]


@pallas_call_p.rule(linearize)
def _linearize(
    primals: Sequence[Any], mask: Sequence[bool], *, kernel: Kernel
) -> tuple[list[Any], Any, Sequence[bool]]:
    """Derivative of the expansion: a kernel of values and tangents is not linear in either."""
    jaxpr = expanded(pallas_call_p, [typeof(x) for x in primals], {"kernel": kernel})
    assert jaxpr is not None
    linearized = linearize_jaxpr(jaxpr, mask)
    results = eval_jaxpr(linearized.forward, primals)
    residuals, linear = linearized.residual_values(primals, results), linearized.linear
    if linear is None:
        linear = stage(
            lambda *_: [], [typeof(x).tangent_aval() for x, m in zip(primals, mask) if m]
        )
    else:
        n = len(residuals)
        linear = linear.replace(
            constvars=linear.invars[:n], consts=residuals, invars=linear.invars[n:]
        )
    return results[: linearized.n_outs], linear, linearized.out_mask


@pallas_call_p.rule(batch)
def _batch(
    axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *, kernel: Kernel
) -> tuple[list[Any], list[Any]]:
    batched, mapped = _batched(axis, dims, kernel)
    if batched is None:
        return _batch_of_arrays(axis, args, dims, kernel)
    moved = [move_axis(x, d, 0, axis.size) if m else x for x, d, m in zip(args, dims, mapped)]
    outs = pallas_call_p.bind(*moved, kernel=batched)
    same = _same_for_all(kernel, dims)
    outs = [lax.index_in_dim(x, 0, keepdims=False) if i < same else x for i, x in enumerate(outs)]
    return outs, [None if i < same else 0 for i in range(len(outs))]


def _same_for_all(kernel: Kernel, dims: Sequence[int | None]) -> int:
    """The number of leading results that all examples share: values, if only tangents differ."""
    while isinstance(kernel, BatchedKernel):
        kernel = kernel.original
    if not isinstance(kernel, JvpKernel) or any(d is not None for d in dims[: len(kernel.active)]):
        return 0
    return len(kernel.original.outputs)


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
