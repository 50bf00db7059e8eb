"""Specifications of blocks and grids, as users write them."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from primax_core.extend import Tracer, typeof
from primax_core.extend.dimensions import is_symbolic_dim, size_as

from ._memory_spaces import MemorySpace
from ._symbolic_export import REWRITE, symbolic_sizes_are_allowed


@dataclass(frozen=True)
class Blocked:
    """A block of ``block_size`` elements; the index map returns the number of the block."""

    block_size: int


@dataclass(frozen=True)
class Element:
    """A block of ``block_size`` elements; the index map returns the position of its first element.

    ``padding`` is the number of elements before and after the array that blocks may reach.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Squeezed:
    """One element; the axis is absent in the kernel's reference. ``None`` means the same."""


@dataclass(frozen=True)
class BoundedSlice:
    """A block of at most ``block_size`` elements; the index map returns ``ds(start, size)``.

    ``start`` is the position of the first element, and ``size`` a number of at most ``block_size``;
    both may be computed. The kernel's reference has ``block_size`` elements. Those after the slice
    are as those outside of an array: NaN, or the least integer, and not written.
    """

    block_size: int


@dataclass(frozen=True)
class Indirect:
    """A block of ``block_size`` elements at positions that the index map returns as an array.

    One axis of a block may be so. Operands are gathered; results are scattered, and their positions
    differ from each other.
    """

    block_size: int


squeezed: Final = Squeezed()

BlockDim = Blocked | Element | Squeezed | BoundedSlice | Indirect


class RevisitMode(enum.Enum):
    """When a backend that prefetches blocks writes a block that steps share."""

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclass(frozen=True)
class Buffered:
    """Number of buffers of a block, for backends that prefetch blocks; others ignore it.

    Args:
      buffer_count: 1 (a block is fetched when its step begins) or 2 in kernels for TPUs, any number
        in pipelines with allocations.
      use_lookahead: refused on TPUs, where blocks are fetched one step before.
      revisit: a `RevisitMode`, for blocks that steps share; ``ANY`` with one buffer only.
      prefetched_count: the number of blocks that are fetched before a pipeline.

    Raises:
      TypeError: if a count is no integer, or ``revisit`` is something else.
      ValueError: for ``buffer_count`` less than 1, or a negative ``prefetched_count``.
    """

    buffer_count: int
    use_lookahead: bool = False
    revisit: Any = None
    prefetched_count: int = 0

    def __post_init__(self) -> None:
        for name in ("buffer_count", "prefetched_count"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} is an integer, got {value!r}")
        if self.revisit is not None and not isinstance(self.revisit, RevisitMode):
            raise TypeError(f"revisit is a RevisitMode or None, got {self.revisit!r}")
        if self.prefetched_count < 0:
            raise ValueError(f"prefetched_count is not negative, got {self.prefetched_count}")
        if self.buffer_count < 1:
            raise ValueError(f"buffer_count is at least 1, got {self.buffer_count}")


class BlockSpec:
    """Block of an array that each step of the grid works on.

    Args:
      block_shape: an entry for each axis of the array: a size, ``None`` for one element whose axis
        the kernel does not see, or an object of `Blocked`, `Element`, `Squeezed`,
        `BoundedSlice`, `Indirect`. By default the whole array.
      index_map: function of the indices of the grid (and of prefetched scalars, if there are any)
        to the index of the block, an entry for each axis. By default the first block.
      memory_space: memory of the block. `ANY` passes the whole array.
      pipeline_mode: a `Buffered`, for backends that prefetch blocks.

    >>> BlockSpec((8, None), lambda i, j: (i, j))
    BlockSpec(block_shape=(8, None), index_map=<lambda>)
    """

    __slots__ = ("block_shape", "index_map", "memory_space", "pipeline_mode")

    def __init__(
        self,
        block_shape: Sequence[Any] | None = None,
        index_map: Callable[..., Any] | None = None,
        pipeline_mode: Buffered | None = None,
        *,
        memory_space: Any = None,
    ):
        if callable(block_shape):
            raise TypeError(
                "BlockSpec takes the block's shape first: BlockSpec(block_shape, index_map)"
            )
        if block_shape is not None and not isinstance(block_shape, Iterable):
            raise TypeError(
                "the block's shape has an entry for each axis, such as (8, 128), got "
                f"{block_shape!r}"
            )
        if index_map is not None and not callable(index_map):
            raise TypeError(f"index_map is a function of the grid's indices, got {index_map!r}")
        if memory_space is not None and not callable(memory_space):
            raise TypeError(
                f"memory_space is a memory, such as pl.ANY or tpu.VMEM, got {memory_space!r}"
            )
        self.block_shape: Any = None if block_shape is None else tuple(block_shape)
        self.index_map: Callable[..., Any] | None = index_map
        self.memory_space: Any = memory_space
        self.pipeline_mode: Buffered | None = pipeline_mode

    def replace(self, **changes: Any) -> BlockSpec:
        """A copy with other attributes."""
        attributes = {name: getattr(self, name) for name in self.__slots__}
        return BlockSpec(**{**attributes, **changes})

    def __repr__(self) -> str:
        said = [f"block_shape={self.block_shape}"]
        if self.index_map is not None:
            said.append(f"index_map={getattr(self.index_map, '__name__', self.index_map)}")
        for name in ("memory_space", "pipeline_mode"):
            if getattr(self, name) is not None:
                said.append(f"{name}={getattr(self, name)}")
        return f"BlockSpec({', '.join(said)})"


class NoBlockSpec:
    """Default of ``in_specs`` and ``out_specs``: whole arrays."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec: Final = NoBlockSpec()


class GridSpec:
    """Grid, blocks and scratch memory of a kernel.

    Args:
      grid: number of steps along each dimension, integers or traced integer scalars; a single
        number is a grid of one dimension.
      in_specs, out_specs: pytrees of `BlockSpec` like the arguments and like the results.
      scratch_shapes: types of scratch memory, such as ``VMEM((8, 128), float32)``.
    """

    num_scalar_prefetch: int = 0

    def __init__(
        self,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        self.grid: tuple[Any, ...] = grid_tuple(grid)
        self.in_specs: Any = in_specs
        self.out_specs: Any = out_specs
        self.scratch_shapes: Any = scratch_shapes

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(grid={self.grid}, in_specs={self.in_specs}, "
            f"out_specs={self.out_specs}, scratch_shapes={self.scratch_shapes})"
        )


class PrefetchScalarGridSpec(GridSpec):
    """Grid whose first ``num_scalar_prefetch`` arguments are passed to index maps too.

    Kernels and index maps receive them as references.
    """

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        if not hasattr(num_scalar_prefetch, "__index__"):
            raise TypeError(f"num_scalar_prefetch is an integer, got {num_scalar_prefetch!r}")
        if num_scalar_prefetch < 0:
            raise ValueError(f"num_scalar_prefetch is not negative, got {num_scalar_prefetch}")
        self.num_scalar_prefetch = num_scalar_prefetch


def grid_tuple(grid: Any) -> tuple[Any, ...]:
    """The sizes of a grid: integers, and traced integer scalars.

    Raises:
      TypeError: if a size is no integer.
      ValueError: for a negative size, or 2**31 steps or more.
    """
    entries = grid if isinstance(grid, (tuple, list)) else (grid,)
    sizes: list[Any] = []
    steps = 1
    for size in entries:
        if isinstance(size, Tracer) and _is_integer_scalar(size):
            sizes.append(size)
            continue
        if is_symbolic_dim(size):
            if not symbolic_sizes_are_allowed():
                raise TypeError(f"the grid {grid!r} has the symbolic size {size}: {REWRITE}")
            sizes.append(size_as(size, np.int32))
            continue
        try:
            if isinstance(size, (bool, np.bool_)):
                raise TypeError
            sizes.append(int(size.__index__()))
        except Exception:
            raise TypeError(f"sizes of a grid are integers, got {size!r} in {grid!r}") from None
        if sizes[-1] < 0:
            raise ValueError(f"the grid {grid} has a negative size")
        steps *= sizes[-1]
    if steps >= 2**31:
        raise ValueError(
            f"the grid {tuple(sizes)} has {steps} steps: at most {2**31 - 1} are supported"
        )
    return tuple(sizes)


def _is_integer_scalar(x: Tracer) -> bool:
    aval = typeof(x)
    return getattr(aval, "shape", None) == () and aval.dtype.kind in "iu"


def is_whole(spec: Any) -> bool:
    """True if a specification passes the whole array to each step."""
    if spec is None or isinstance(spec, NoBlockSpec):
        return True
    return spec.memory_space is MemorySpace.ANY and spec.block_shape is None


class CompilerParams:
    """Base class of parameters of compilers: `tpu.CompilerParams`, `triton.CompilerParams`."""


@dataclass(frozen=True)
class CostEstimate:
    """Cost of a kernel, for compilers that schedule programs around it; unused on a CPU.

    Attributes:
      flops: number of arithmetic operations.
      transcendentals: number of exponentials, logarithms and the like.
      bytes_accessed: bytes read and written.
      remote_bytes_transferred: bytes sent to other devices.
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def to_json(self) -> bytes:
        """The estimate as JSON text."""
        return json.dumps(asdict(self)).encode()
