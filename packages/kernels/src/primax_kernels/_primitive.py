"""The primitive of kernel calls: rules follow from its expansion, except batches and ``jvp``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from primax_core import lax, named_scope, vmap
from primax_core.extend import (
    Axis,
    Primitive,
    ShapedArray,
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
from primax_core.extend.placements import is_placed

from ._batching import BatchedKernel, batched_kernel
from ._cpu.dynamic import run_in_order
from ._cpu.grid import plan_of, run
from ._derivatives import JvpKernel, active_operands, jvp_kernel
from ._devices import varying
from ._kernel import Kernel
from ._mosaic.lowering import lower_to_mosaic
from ._partitioning import Division, mapped_division, partitioning
from ._symbolic_export import has_symbolic_sizes
from ._triton.lowering import lower_to_triton
from ._uniform import checked

pallas_call_p: Final[Primitive] = Primitive("pallas_call", multiple_results=True)


@pallas_call_p.rule(abstract)
def _abstract(*avals: Any, kernel: Kernel) -> list[Any]:
    return kernel.out_avals


@pallas_call_p.rule(expand)
def _expand(*args: Any, kernel: Kernel) -> list[Any]:
    if kernel.depends_on_device and any(is_placed(typeof(x)) for x in args):
        return on_devices_p.bind(*args, kernel=kernel)
    if isinstance(kernel, BatchedKernel):
        axes = tuple(0 if m else None for m in kernel.mapped)
        return vmap(lambda *xs: _expand(*xs, kernel=kernel.original), axes)(*args)
    if isinstance(kernel, JvpKernel):
        return _expand_jvp(args, kernel)
    args = checked(kernel, args)
    with named_scope(kernel.name):  # profiles and `explain` show it
        if kernel.dynamic or has_symbolic_sizes(kernel):
            return run_in_order(kernel, args)
        results = run(plan_of(kernel), args)
        return results if args else checked(kernel, results)


on_devices_p: Final[Primitive] = Primitive("kernel_on_devices", multiple_results=True)
"""The expansion of a kernel that depends on the device, where types say how values vary.

Loops and conditions of the kernel were traced without these types.
"""


@on_devices_p.rule(abstract)
def _abstract_on_devices(*avals: Any, kernel: Kernel) -> list[Any]:
    return kernel.out_avals


@on_devices_p.rule(lower)
def _lower_on_devices(ctx: Any, *args: Any, kernel: Kernel) -> Any:
    avals = [ShapedArray(a.shape, a.dtype) for a in ctx.in_avals]
    with kernel.without_placements():
        jaxpr = expanded(pallas_call_p, avals, {"kernel": kernel})
    assert jaxpr is not None
    return ctx.call_jaxpr(jaxpr, kernel.name, args)


def _expand_jvp(args: Sequence[Any], kernel: JvpKernel) -> list[Any]:
    """The derivative of the original's expansion."""
    n = len(kernel.active)
    with kernel.without_placements():
        types = _types(kernel, args[:n])
        original = expanded(pallas_call_p, types, {"kernel": kernel.original})
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
    with kernel.without_placements():
        derived = jvp_kernel(kernel, active)
    rest = [instantiate(t) for t, m in zip(tangents, active) if m]
    if isinstance(derived, JvpKernel):
        results, out_mask = pallas_call_p.bind(*primals, *rest, kernel=derived), derived.out_mask
    else:
        with kernel.without_placements():
            jaxpr = expanded(pallas_call_p, _types(kernel, primals), {"kernel": kernel})
            assert jaxpr is not None
            on_arrays, out_mask = jvp_jaxpr(jaxpr, active)
        results = _differing(kernel, eval_jaxpr(on_arrays, [*primals, *rest]))
    outs, dots = results[: len(out_mask)], iter(results[len(out_mask) :])
    return outs, [next(dots) if m else Zero.like(o) for o, m in zip(outs, out_mask)]


def _types(kernel: Kernel, values: Sequence[Any]) -> list[Any]:
    """The types of operands, without placements for jaxprs that are evaluated elsewhere too."""
    avals = list(map(typeof, values))
    if kernel.depends_on_device:
        return [ShapedArray(a.shape, a.dtype) for a in avals]
    return avals


def _differing(kernel: Kernel, values: Sequence[Any]) -> list[Any]:
    """Results of an evaluation, with types that say that devices differ if they do."""
    return [varying(x) for x in values] if kernel.depends_on_device else list(values)


@pallas_call_p.rule(linearize)
def _linearize(
    primals: Sequence[Any], mask: Sequence[bool], *, kernel: Kernel
) -> tuple[list[Any], Any, Sequence[bool]]:
    """Derivative of the expansion: a kernel of values and tangents is not linear in either."""
    if kernel.communicates and any(is_placed(typeof(x)) for x in primals):
        raise NotImplementedError(
            f"reverse mode of the kernel {kernel.source}, which communicates with other devices, "
            "inside of a shard_map whose types say along which axes values vary: pass "
            "check_vma=False to shard_map"
        )
    with kernel.without_placements():
        jaxpr = expanded(pallas_call_p, _types(kernel, primals), {"kernel": kernel})
        assert jaxpr is not None
        linearized = linearize_jaxpr(jaxpr, mask)
    results = _differing(kernel, eval_jaxpr(linearized.forward, primals))
    residuals, linear = linearized.residual_values(primals, results), linearized.linear
    avals = [typeof(x).tangent_aval() for x, m in zip(primals, mask) if m]
    if linear is None:
        linear = stage(lambda *_: [], avals)
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
        for a, d in zip(_types(kernel, args), dims)
    ]
    with kernel.without_placements():
        jaxpr = expanded(pallas_call_p, avals, {"kernel": kernel})
        assert jaxpr is not None
        batched, out_dims = batch_jaxpr(jaxpr, dims, axis)
    return _differing(kernel, eval_jaxpr(batched, args)), list(out_dims)


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
