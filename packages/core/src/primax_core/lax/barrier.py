"""``optimization_barrier``: a barrier for XLA's optimizations and scheduling."""

from __future__ import annotations

from typing import Any, Final

from .._base import pytree
from .._base.pytree import PyTree
from .._base.source import api_boundary
from .._ir.primitive import Primitive, abstract, batch, dce, jvp, lower, transpose
from .._ir.samples import Sample, bf16, c64, f32, i32, samples
from .._lower.lazy import hlo
from .._transform.zeros import Zero

optimization_barrier_p: Final = Primitive("optimization_barrier", multiple_results=True)


@api_boundary
def optimization_barrier(operand: PyTree, /) -> Any:
    """The same values, behind a barrier that the compiler cannot optimize across.

    All values are computed before any result is used. Operations after the barrier are not fused
    with operations before it.

    Args:
      operand: a pytree of arrays.

    Returns:
      A pytree with the values of ``operand``.

    Raises:
      TypeError: if a leaf is not an array.

    Tangents and cotangents pass through a separate barrier. Under ``vmap`` the barrier applies to
    the batches.

    >>> [float(x) for x in optimization_barrier((1.0, 2.0))]
    [1.0, 2.0]
    >>> from primax_core import grad
    >>> float(grad(lambda x: optimization_barrier(x * x))(3.0))
    6.0
    """
    leaves, tree = pytree.tree_flatten(operand)
    return pytree.tree_unflatten(tree, _barrier(leaves))


def _barrier(values: list) -> list:
    return optimization_barrier_p.bind(*values) if values else []


@optimization_barrier_p.rule(abstract)
def _abstract(*avals):
    return list(avals)


@optimization_barrier_p.rule(lower)
def _lower(ctx, *values):
    return list(hlo.OptimizationBarrierOp(values).results)


@optimization_barrier_p.rule(jvp)
def _jvp(primals, tangents):
    outs = optimization_barrier_p.bind(*primals)
    behind = iter(_barrier([t for t in tangents if type(t) is not Zero]))
    return outs, [t if type(t) is Zero else next(behind) for t in tangents]


@optimization_barrier_p.rule(transpose)
def _transpose(cts, *operands):
    behind = iter(_barrier([c for c in cts if type(c) is not Zero]))
    return [None if type(c) is Zero else next(behind) for c in cts]


@optimization_barrier_p.rule(batch)
def _batch(axis, args, dims):
    return optimization_barrier_p.bind(*args), list(dims)


@optimization_barrier_p.rule(dce)
def _dce(used, eqn):
    # Unused outputs impose no order.
    if not any(used):
        return [False] * len(eqn.invars), None
    return list(used), eqn.replace(
        invars=[v for v, u in zip(eqn.invars, used) if u],
        outvars=[v for v, u in zip(eqn.outvars, used) if u],
    )


@optimization_barrier_p.rule(samples)
def _samples():
    yield Sample(f32(3), bf16(0, 2))
    yield Sample(f32())
    yield Sample(c64(2), i32(2))
