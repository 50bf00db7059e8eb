"""Kernels as Python functions on concrete references, step by step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primax_core import device_put, dtypes, freeze, new_ref
from primax_core.extend import AbstractRef, Tracer, current_trace, typeof

from . import _grid
from ._block_mapping import BlockMapping, Extent
from ._kernel import GridMapping, check_result
from ._memory_spaces import unwritten_value
from ._on_demand import memory_from
from ._random_bits import STATE, state_in
from ._semaphores import first_value
from ._tpu_memory import ACC, accumulators


def can_step(args: Sequence[Any]) -> bool:
    """True if no transformation is under way and all operands have NumPy values."""
    return current_trace() is None and not any(
        isinstance(x, Tracer) or dtypes.issubdtype(typeof(x).dtype, dtypes.extended) for x in args
    )


def check_concrete(kernel: GridMapping, args: Sequence[Any]) -> None:
    """Check that all operands have NumPy values.

    Raises:
      TypeError: if an operand is a tracer, or random keys.
    """
    if kernel.dynamic or any(isinstance(x, Tracer) for x in args):
        raise TypeError(
            f"the kernel {kernel.source} runs step by step on concrete arrays, and not inside of "
            "jit, grad or vmap; call it outside of them, or leave `interpret` away"
        )
    for i, x in enumerate(args):
        if dtypes.issubdtype(typeof(x).dtype, dtypes.extended):
            raise TypeError(
                f"operand {i} of the kernel {kernel.source} has the dtype {typeof(x).dtype}, which "
                "has no NumPy values: pass random.key_data(keys) to run it step by step, or leave "
                "`interpret` away"
            )


def step_through(kernel: GridMapping, fun: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """Run a kernel step by step on concrete arrays."""
    n = len(kernel.prefetched)
    arrays = [_Padded(m, np.array(x)) for m, x in zip(kernel.inputs, args[n:])]
    outs = [_Padded(m, _unwritten(m.aval.shape, m.aval.dtype)) for m in kernel.outputs]
    for i, o in kernel.aliases:
        outs[o] = _Padded(kernel.outputs[o], np.array(args[i]))
    scratch = [new_ref(np.full(a.shape, first_value(a), a.dtype)) for a in kernel.scratch]
    for ref, aval in zip(scratch, kernel.scratch):
        if isinstance(aval.memory_space, ACC):
            accumulators[ref] = aval.memory_space
    random_state = new_ref(_unwritten(STATE.shape, STATE.dtype))
    shared: list[Any] = []
    for step in itertools.product(*map(range, kernel.grid)):
        ids = [np.int32(i) for i in step]
        places = [x.place(ids, args[:n]) for x in (*arrays, *outs)]
        blocks = [new_ref(x.read(p)) for x, p in zip((*arrays, *outs), places)]
        position = _grid.at(ids, kernel.grid)
        with position, state_in(random_state), memory_from(_memory_in(shared)):
            check_result(kernel, fun(*map(new_ref, args[:n]), *blocks, *scratch))
        for x, place, block in list(zip((*arrays, *outs), places, blocks))[len(arrays) :]:
            x.write(place, np.asarray(freeze(block)))
    return [x.result() for x in outs]


def _memory_in(refs: list[Any]) -> Callable[[int, AbstractRef], Any]:
    """Requests for memory answered by references in order; new ones are added at the end."""

    def take(number: int, aval: AbstractRef) -> Any:
        if number == len(refs):
            refs.append(new_ref(np.full(aval.shape, first_value(aval), aval.dtype)))
        ref = refs[number]
        if (ref.shape, ref.dtype) != (aval.shape, aval.dtype):
            raise ValueError(
                f"memory {number} that the kernel asks for is {ref.dtype}{list(ref.shape)} in one "
                f"step and {aval.dtype}{list(aval.shape)} in another: ask for it in the same order "
                "in all steps"
            )
        return ref

    return take


def _unwritten(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.full(shape, unwritten_value(dtype), dtype)


def leading(shape: Sequence[int]) -> tuple[slice, ...]:
    """The first elements along each axis."""
    return tuple(slice(n) for n in shape)


def _inside(positions: np.ndarray, extent: Extent, n: int) -> np.ndarray:
    """The positions of a block, moved to the edge of the array as compiled kernels move them."""
    if extent.indirect or positions.size == 0:
        return np.clip(positions, 0, n - 1)
    first = int(positions[0])
    start = min(max(first + n if first < 0 else first, 0), n - extent.size)
    return positions + (start - first)


class _Padded:
    """An array with the elements outside of it that blocks may reach."""

    def __init__(self, mapping: BlockMapping, x: np.ndarray):
        self.mapping = mapping
        shape = tuple(lo + n + hi for n, (lo, hi) in zip(x.shape, mapping.margins))
        self.inside = tuple(slice(lo, lo + n) for n, (lo, _) in zip(x.shape, mapping.margins))
        self.x = _unwritten(shape, x.dtype)
        self.x[self.inside] = x

    def place(self, ids: Sequence[Any], scalars: Sequence[Any]) -> tuple[Any, ...]:
        """The part of the array that is the block of a step."""
        extents = self.mapping.extents
        if not self.mapping.is_plain:
            positions = self.mapping.positions(ids, scalars)
            return np.ix_(*map(_inside, positions, extents, self.x.shape))
        rows = zip(self.mapping.starts(ids, scalars), extents, self.x.shape)
        # As compiled: negative starts count from the end, then all are clamped.
        starts = [
            min(max(start + n if start < 0 else start, 0), n - e.size) for start, e, n in rows
        ]
        return tuple(slice(start, start + e.size) for start, e in zip(starts, extents))

    def read(self, place: tuple[Any, ...]) -> np.ndarray:
        """A copy of a block."""
        if not self.mapping.is_plain:
            part = self.x[place]
            block = _unwritten(tuple(e.size for e in self.mapping.extents), part.dtype)
            block[leading(part.shape)] = part
            return block.reshape(self.mapping.block_shape)
        return self.x[place].reshape(self.mapping.block_shape).copy()

    def write(self, place: tuple[Any, ...], block: np.ndarray) -> None:
        """Replace a block."""
        if not self.mapping.is_plain:
            block = block.reshape(tuple(e.size for e in self.mapping.extents))
            block = block[leading(self.x[place].shape)]
        self.x[place] = block.reshape(self.x[place].shape)

    def result(self) -> Any:
        """The array."""
        return device_put(self.x[self.inside])
