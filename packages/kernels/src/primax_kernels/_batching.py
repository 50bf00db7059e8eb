"""Mapped kernels: the batch is one more dimension of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from primax_core.extend import Jaxpr, ShapedArray, Var

from ._block_mapping import INDEX, BlockMapping, Extent
from ._cpu.facts import facts_of
from ._kernel import Kernel
from ._symbolic_export import has_symbolic_sizes


@dataclass(frozen=True, eq=False, repr=False)
class BatchedKernel(Kernel):
    """A kernel whose first dimension of the grid is a batch.

    On arrays it is its original, mapped: a plan for the original has fewer cases.

    Attributes:
      original: the kernel of one example.
      mapped: for each operand, whether its first axis is the batch.
    """

    original: Kernel
    mapped: tuple[bool, ...]


def batched_kernel(kernel: Kernel, mapped: Sequence[bool], size: int) -> BatchedKernel | None:
    """The kernel of a batch; ``None`` if examples cannot be steps of one grid.

    That is so if prefetched scalars differ between examples, if a size of the grid is computed, or
    if scratch memory may carry contents from one example to the next.

    Args:
      mapped: for each operand, whether it has the batch as its first axis; others are the same for
        all examples.
      size: the number of examples.
    """
    key = tuple(mapped), size
    kernels: dict[Any, BatchedKernel | None] = vars(kernel).setdefault("_batched", {})
    if key not in kernels:
        kernels[key] = _batched(kernel, *key)
    return kernels[key]


def _batched(kernel: Kernel, mapped: tuple[bool, ...], size: int) -> BatchedKernel | None:
    n = len(kernel.prefetched)
    if any(mapped[:n]) or kernel.dynamic or size == 0 or 0 in kernel.grid or not kernel.outputs:
        return None
    if has_symbolic_sizes(kernel):
        return None
    inputs = [_with_batch(m, size, b) for m, b in zip(kernel.inputs, mapped[n:])]
    changes = {
        "grid": (size, *kernel.grid),
        "inputs": tuple(inputs),
        "outputs": tuple(_with_batch(m, size, True) for m in kernel.outputs),
        "semantics": None if kernel.semantics is None else ("parallel", *kernel.semantics),
        "jaxpr": _with_index(kernel.jaxpr, first_result=False),
    }
    attributes = {f.name: getattr(kernel, f.name) for f in fields(Kernel)}
    batch = BatchedKernel(**{**attributes, **changes}, original=kernel, mapped=mapped)
    return batch if facts_of(batch).parallel[0] else None


def _with_batch(mapping: BlockMapping, size: int, mapped: bool) -> BlockMapping:
    """The blocks of an operand, of each example or the same for all."""
    index_map = _with_index(mapping.index_map, first_result=mapped)
    if not mapped:
        return replace(mapping, index_map=index_map, rank=mapping.rank + 1)
    aval = ShapedArray((size, *mapping.aval.shape), mapping.aval.dtype)
    extents = (Extent(1, 1, squeezed=True), *mapping.extents)
    return replace(
        mapping, aval=aval, extents=extents, index_map=index_map, whole=False,
        rank=mapping.rank + 1,
    )  # fmt: skip


def _with_index(jaxpr: Jaxpr, first_result: bool) -> Jaxpr:
    """A jaxpr with one more index in front, which may be the first result."""
    index = Var(INDEX)
    outvars = [index, *jaxpr.outvars] if first_result else jaxpr.outvars
    return Jaxpr(jaxpr.constvars, jaxpr.consts, [index, *jaxpr.invars], outvars, jaxpr.eqns)
