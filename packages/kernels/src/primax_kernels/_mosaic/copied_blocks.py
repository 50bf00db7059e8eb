"""Blocks of bounded slices and at positions, as copies that the kernel makes itself.

Windows have one size and begin at tiles. An operand with other blocks stays where it is; each step
copies the rows of its block into vector memory, and those of a result back. Along the last axis
whole rows are copied, of which the block is a part: single elements of it have no address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from primax_core import ds, lax
from primax_core.extend import AbstractRef, ShapedArray, eval_jaxpr, stage

from .._access import load, store
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
    shapes = [shape for b in blocks for shape in (b.shape, *b.row_shape)]
    dtypes = [b.mapping.aval.dtype for b in blocks for _ in (b.shape, *b.row_shape)]
    buffers = [AbstractRef(ShapedArray(n, d), VMEM) for n, d in zip(shapes, dtypes)]
    semaphore = SemaphoreType.DMA.get_ref_aval()
    whole = [m if m.is_plain else _whole(m) for m in mappings]
    n = len(kernel.inputs)
    mapping = GridMapping(**{f.name: getattr(kernel, f.name) for f in fields(GridMapping)})
    mapping = replace(
        mapping, inputs=tuple(whole[:n]), outputs=tuple(whole[n:]),
        scratch=(*kernel.scratch, *buffers, semaphore),
    )  # fmt: skip
    if any(b.is_result and b.row_shape for b in blocks):
        # Steps write whole rows, of which others may write other parts.
        mapping = replace(mapping, semantics=("arbitrary",) * ids)

    def body(*args: Any) -> list[Any]:
        indices, refs = args[:ids], list(args[ids:])
        *own, sem = refs[len(refs) - len(buffers) - 1 :]
        refs = refs[: len(refs) - len(buffers) - 1]
        copies, memories = [], iter(own)
        for block in blocks:
            index = eval_jaxpr(block.mapping.index_map, [*indices, *refs[:first]])
            buffer = next(memories)
            rows = next(memories) if block.row_shape else buffer
            copies.append(_Copies(block, refs[block.number], buffer, rows, sem, index))
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
        for axis, (e, n) in enumerate(zip(self.mapping.extents, self.mapping.aval.shape)):
            moving = e.bounded or e.indirect
            if not moving and (e.step != e.size or any(e.padding) or n % e.size):
                raise located(
                    f"{self.mapping.name}: a block with BoundedSlice or Indirect has {e.size} of "
                    f"{n} elements along axis {axis}, which it does not divide: pass the array in "
                    "ANY, and copy its parts by tpu.async_copy",
                    self.kernel,
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the reference that the kernel sees."""
        return self.mapping.block_shape

    @property
    def row_shape(self) -> tuple[tuple[int, ...], ...]:
        """The shape of the memory of whole rows, if the block moves along the last axis."""
        last = self.mapping.extents[-1]
        if not (last.bounded or last.indirect):
            return ()
        return ((*self.shape[:-1], self.mapping.aval.shape[-1]),)

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
      rows: the memory that rows are copied to, of the block or of whole rows.
      semaphore: counts the bytes copied.
      index: the index of the block, and the numbers of elements along bounded axes.
    """

    block: _Block
    there: Any
    buffer: Any
    rows: Any
    semaphore: Any
    index: Sequence[Any]

    def read(self) -> None:
        """Copy the block; elements that a bounded slice lacks are unwritten."""
        if any(e.bounded for e in self.block.mapping.extents):
            dtype = self.buffer.dtype
            for memory in dict.fromkeys((self.buffer, self.rows)):
                memory[...] = lax.full(memory.shape, unwritten_value(dtype), dtype)
        if self.block.needs_contents() or (self.block.row_shape and self.block.is_result):
            self._each(lambda far, near: make_async_copy(far, near, self.semaphore))
        if self.block.row_shape and self.block.needs_contents():
            last, at = self.block.mapping.extents[-1], self._last
            if last.bounded:
                fill = lax.full((), unwritten_value(self.buffer.dtype), self.buffer.dtype)
                self.buffer[...] = load(self.rows.at[at], mask=self._inside(), other=fill)
            else:
                self.buffer[...] = self.rows[at]

    def write(self) -> None:
        """Copy the block back, if it is a result's."""
        if not self.block.is_result:
            return
        if self.block.row_shape:
            if self.block.mapping.extents[-1].bounded:
                store(self.rows.at[self._last], self.buffer[...], mask=self._inside())
            else:
                self.rows[self._last] = self.buffer[...]
        self._each(lambda far, near: make_async_copy(near, far, self.semaphore))

    @property
    def _last(self) -> tuple[Any, ...]:
        """The index in whole rows of the elements of the block."""
        last, axis = self.block.mapping.extents[-1], len(self.block.mapping.extents) - 1
        if last.bounded:
            return (..., ds(self._slice(axis)[0], last.size))
        n = self.block.mapping.aval.shape[-1]
        return (..., lax.clamp(np.int32(0), self.index[axis], np.int32(n - 1)))

    def _inside(self) -> Any:
        """The elements of a block that its slice along the last axis has."""
        _, count = self._slice(len(self.block.mapping.extents) - 1)
        shape = self.block.shape
        return lax.lt(lax.broadcasted_iota(np.int32, shape, len(shape) - 1), count)

    def _slice(self, axis: int) -> tuple[Any, Any]:
        """The first position along a bounded axis, and the number of elements."""
        extents, n = self.block.mapping.extents, self.block.mapping.aval.shape[axis]
        size = self.index[
            len(extents) + [a for a, e in enumerate(extents) if e.bounded].index(axis)
        ]
        start = lax.clamp(np.int32(0), self.index[axis], np.int32(n - 1))
        count = lax.min(lax.min(size, np.int32(extents[axis].size)), lax.sub(np.int32(n), start))
        return start, count

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
            act(self.there.at[tuple(far)], self.rows.at[tuple(near)])
            return
        if axis == len(mapping.extents) - 1 and self.block.row_shape:
            self._rows(axis + 1, [*far, slice(None)], [*near, slice(None)], act)
            return
        e, n, at = mapping.extents[axis], mapping.aval.shape[axis], self.index[axis]

        def row(position: Any, k: Any) -> None:
            self._rows(axis + 1, [*far, position], [*near, k], act)

        if e.bounded:
            start, count = self._slice(axis)
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
