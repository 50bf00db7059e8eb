"""Blocks of bounded slices and at positions, as copies that the kernel makes itself.

Windows have one size and begin at tiles. An operand with other blocks stays where it is; each step
copies the rows of its block into vector memory, and those of a result back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from primax_core import ds, lax
from primax_core.extend import AbstractRef, ShapedArray, eval_jaxpr, stage

from .._block_mapping import INDEX, BlockMapping, Extent
from .._copies import make_async_copy
from .._emission.usage import accesses_of
from .._kernel import GridMapping, Kernel
from .._memory_spaces import ANY, unwritten_value
from .._semaphores import SemaphoreType
from .._tpu_memory import VMEM
from .errors import located


def with_copied_blocks(kernel: Kernel) -> Kernel:
    """The kernel whose blocks are all windows, or whole arrays of which it copies blocks.

    Raises:
      MosaicError: for a block that cannot be copied by rows.
    """
    mappings = (*kernel.inputs, *kernel.outputs)
    if all(m.is_plain for m in mappings):
        return kernel
    if "_with_copied_blocks" not in vars(kernel):
        vars(kernel)["_with_copied_blocks"] = _rewritten(kernel, mappings)
    return vars(kernel)["_with_copied_blocks"]


def _rewritten(kernel: Kernel, mappings: Sequence[BlockMapping]) -> Kernel:
    ids, first = len(kernel.grid), len(kernel.prefetched)
    blocks = [
        _Block(kernel, m, first + i, i >= len(kernel.inputs))
        for i, m in enumerate(mappings)
        if not m.is_plain
    ]
    buffers = [AbstractRef(ShapedArray(b.shape, b.mapping.aval.dtype), VMEM) for b in blocks]
    semaphore = SemaphoreType.DMA.get_ref_aval()
    whole = [m if m.is_plain else _whole(m) for m in mappings]
    n = len(kernel.inputs)
    mapping = GridMapping(**{f.name: getattr(kernel, f.name) for f in fields(GridMapping)})
    mapping = replace(
        mapping, inputs=tuple(whole[:n]), outputs=tuple(whole[n:]),
        scratch=(*kernel.scratch, *buffers, semaphore),
    )  # fmt: skip

    def body(*args: Any) -> list[Any]:
        indices, refs = args[:ids], list(args[ids:])
        *own, sem = refs[len(refs) - len(blocks) - 1 :]
        refs = refs[: len(refs) - len(blocks) - 1]
        copies = []
        for block, buffer in zip(blocks, own):
            index = eval_jaxpr(block.mapping.index_map, [*indices, *refs[:first]])
            copies.append(_Copies(block, refs[block.number], buffer, sem, index))
        for copy in copies:
            copy.read()
            refs[copy.block.number] = copy.buffer
        eval_jaxpr(kernel.jaxpr, [*indices, *refs])
        for copy in copies:
            copy.write()
        return []

    jaxpr = stage(body, [INDEX] * ids + list(mapping.ref_avals), kernel.name)
    attributes = {f.name: getattr(mapping, f.name) for f in fields(GridMapping)}
    return Kernel(**attributes, jaxpr=jaxpr)


def _whole(mapping: BlockMapping) -> BlockMapping:
    """The blocks of an operand that stays where it is."""
    extents = tuple(Extent(n, n) for n in mapping.aval.shape)
    avals = [v.aval for v in mapping.index_map.invars]
    zeros = stage(lambda *_: [np.int32(0)] * len(extents), avals, "index_map")
    return replace(mapping, extents=extents, index_map=zeros, memory_space=ANY, whole=True)


@dataclass
class _Block:
    """The blocks of an operand that are copied.

    Attributes:
      number: the number of its reference.
      is_result: whether they are copied back.
    """

    kernel: Kernel
    mapping: BlockMapping
    number: int
    is_result: bool

    def __post_init__(self) -> None:
        rank = len(self.mapping.extents)
        for axis, (e, n) in enumerate(zip(self.mapping.extents, self.mapping.aval.shape)):
            moving = e.bounded or e.indirect
            problem = None
            if moving and axis == rank - 1:
                problem = "is along the last axis, whose elements are not copied one by one"
            elif not moving and (e.step != e.size or any(e.padding) or n % e.size):
                problem = (
                    f"has {e.size} of {n} elements along axis {axis}, which it does not divide"
                )
            if problem is not None:
                raise located(
                    f"{self.mapping.name}: a block with BoundedSlice or Indirect {problem}: pass "
                    "the array in ANY, and copy its parts by tpu.async_copy",
                    self.kernel,
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the reference that the kernel sees."""
        return self.mapping.block_shape

    def needs_contents(self) -> bool:
        """Return True if steps may read or keep what is in the array."""
        if not self.is_result:
            return True
        variable = self.kernel.jaxpr.invars[len(self.kernel.grid) + self.number]
        accesses = accesses_of(self.kernel.jaxpr, {variable: 0})
        return any(a.reads for a in accesses) or not any(a.whole and a.certain for a in accesses)


@dataclass
class _Copies:
    """The copies of a step.

    Attributes:
      there, buffer: the whole array, and the memory of the block.
      semaphore: counts the bytes copied.
      index: the index of the block, and the numbers of elements along bounded axes.
    """

    block: _Block
    there: Any
    buffer: Any
    semaphore: Any
    index: Sequence[Any]

    def read(self) -> None:
        """Copy the block; elements that a bounded slice lacks are unwritten."""
        if any(e.bounded for e in self.block.mapping.extents):
            dtype = self.buffer.dtype
            self.buffer[...] = lax.full(self.buffer.shape, unwritten_value(dtype), dtype)
        if self.block.needs_contents():
            self._each(lambda far, near: make_async_copy(far, near, self.semaphore))

    def write(self) -> None:
        """Copy the block back, if it is a result's."""
        if self.block.is_result:
            self._each(lambda far, near: make_async_copy(near, far, self.semaphore))

    def _each(self, copy: Callable[[Any, Any], Any]) -> None:
        """Start the copies of all rows, then wait for each."""
        self._rows(0, [], [], lambda far, near: copy(far, near).start())
        self._rows(0, [], [], lambda far, near: copy(far, near).wait())

    def _rows(
        self, axis: int, far: list[Any], near: list[Any], act: Callable[[Any, Any], None]
    ) -> None:
        """Act on each row of a block, from an axis on.

        Args:
          far, near: the index in the array and in the memory of the block, up to the axis.
        """
        mapping = self.block.mapping
        if axis == len(mapping.extents):
            act(self.there.at[tuple(far)], self.buffer.at[tuple(near)])
            return
        e, n, at = mapping.extents[axis], mapping.aval.shape[axis], self.index[axis]

        def row(position: Any, k: Any) -> None:
            self._rows(axis + 1, [*far, position], [*near, k], act)

        if e.bounded:
            bounded = [a for a, x in enumerate(mapping.extents) if x.bounded]
            size = self.index[len(mapping.extents) + bounded.index(axis)]
            start = lax.clamp(np.int32(0), at, np.int32(n))
            count = lax.min(lax.min(size, np.int32(e.size)), lax.sub(np.int32(n), start))
            lax.fori_loop(np.int32(0), count, lambda k, _: row(lax.add(start, k), k), None)
        elif e.indirect:
            inside = lax.clamp(np.int32(0), at, np.int32(n - 1))
            for k in range(e.size):
                row(lax.squeeze(lax.slice(inside, (k,), (k + 1,)), (0,)), k)
        elif e.squeezed:
            self._rows(axis + 1, [*far, at], near, act)
        else:
            part = slice(None) if e.size == n else _part(at, e.size)
            self._rows(axis + 1, [*far, part], [*near, slice(None)], act)


def _part(index: Any, size: int) -> Any:
    return ds(lax.mul(index, np.int32(size)), size)
