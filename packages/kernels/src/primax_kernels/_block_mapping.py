"""Blocks of the operands of a kernel, checked and in one form."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import (
    AbstractRef,
    Jaxpr,
    Literal,
    ReadEffect,
    RefEffect,
    ShapedArray,
    discharge_jaxpr,
    eval_jaxpr,
    evaluate_scalars,
    stage,
    summarize_function,
    typeof,
)
from primax_core.extend.dimensions import is_static

from . import _grid
from ._affine import AffineForm, affine_forms, as_text
from ._block_specs import (
    Blocked,
    BlockSpec,
    BoundedSlice,
    Buffered,
    Element,
    Indirect,
    NoBlockSpec,
    Squeezed,
    is_whole,
)
from ._content import jaxpr_key
from ._helpers import Slice

INDEX_DTYPE = np.dtype(np.int32)
INDEX = ShapedArray((), INDEX_DTYPE)


class Extent(NamedTuple):
    """Block along one axis of an array.

    Attributes:
      size: number of elements.
      step: distance between the starts of neighbouring blocks: ``size``, or 1 for `Element`.
      padding: elements before and after the array that blocks may reach.
      squeezed: whether the kernel does not see the axis.
      bounded: whether the index map has a number of elements too, at most ``size``.
      indirect: whether the index map has a position for each element.
    """

    size: int
    step: int
    padding: tuple[int, int] = (0, 0)
    squeezed: bool = False
    bounded: bool = False
    indirect: bool = False

    @property
    def is_plain(self) -> bool:
        """True if blocks are ``size`` neighbours."""
        return not (self.bounded or self.indirect)


def _margin(n: int, extent: Extent) -> tuple[int, int]:
    if extent.indirect:
        return 0, 0
    lo, hi = extent.padding
    if extent.step == extent.size:
        return lo, -n % max(extent.size, 1)
    reach = extent.size - 1 if n else extent.size
    return lo, max(hi, reach)


@dataclass(frozen=True, eq=False)
class BlockMapping:
    """Blocks of an array: one for each step of the grid. Mappings with equal contents are equal.

    Attributes:
      aval: type of the array.
      extents: the block, axis by axis.
      index_map: jaxpr from the grid's indices and the prefetched scalars (references) to the index
        of the block, and after it the numbers of elements along bounded axes.
      name: the operand in errors, such as ``in_specs[0]``.
      memory_space: memory of the block.
      whole: True if each step has the whole array.
      rank: the number of dimensions of the grid.
      buffers: the number of buffers of a block, or ``None``.
    """

    aval: ShapedArray
    extents: tuple[Extent, ...]
    index_map: Jaxpr
    name: str
    memory_space: Any
    whole: bool
    rank: int
    buffers: Buffered | None = None

    @cached_property
    def _key(self) -> Hashable:
        parts = self.aval, self.extents, self.name, self.memory_space, self.whole, self.rank
        parts = (*parts, self.buffers)
        return (*parts, jaxpr_key(self.index_map))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockMapping) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def block_shape(self) -> tuple[int, ...]:
        """Shape of the reference that the kernel receives."""
        return tuple(e.size for e in self.extents if not e.squeezed)

    @property
    def ref_aval(self) -> AbstractRef:
        """Type of the reference that the kernel receives."""
        return AbstractRef(ShapedArray(self.block_shape, self.aval.dtype), self.memory_space)

    @cached_property
    def discharged_map(self) -> Jaxpr:
        """The index map, whose prefetched scalars are arrays."""
        return discharge_jaxpr(self.index_map)

    @property
    def margins(self) -> tuple[tuple[int, int], ...]:
        """Elements before and after each axis that blocks may reach.

        Windows at any positions begin at the last element at most.
        """
        return tuple(_margin(n, e) for n, e in zip(self.aval.shape, self.extents))

    @cached_property
    def is_plain(self) -> bool:
        """True if blocks are windows of one size."""
        return all(e.is_plain for e in self.extents)

    def starts(self, ids: Sequence[Any], scalars: Sequence[Any]) -> list[int]:
        """The first position of the block of a step along each axis, margins included.

        Args:
          ids: indices of the grid, numbers.
          scalars: the prefetched scalars, concrete arrays.
        """
        return [int(i) * e.step for i, e in zip(self._index(ids, scalars), self.extents)]

    def positions(self, ids: Sequence[Any], scalars: Sequence[Any]) -> list[np.ndarray]:
        """The positions of the elements of a block along each axis, margins included.

        Arguments are those of `starts`. There are fewer than the block has along a bounded axis.
        """
        index = list(self._index(ids, scalars))
        sizes = iter(index[len(self.extents) :])
        positions = []
        for i, e in zip(index, self.extents):
            if e.indirect:
                positions.append(np.asarray(i))
            else:
                n = min(max(int(next(sizes)), 0), e.size) if e.bounded else e.size
                positions.append(int(i) * e.step + np.arange(n))
        return positions

    def _index(self, ids: Sequence[Any], scalars: Sequence[Any]) -> Sequence[Any]:
        args = [*map(np.int32, ids), *scalars]
        if any(map(np.ndim, args)) or any(e.indirect for e in self.extents):
            return [
                x.scalar if isinstance(x, Literal) else np.asarray(x)
                for x in eval_jaxpr(self.discharged_map, args)
            ]
        return evaluate_scalars(self.discharged_map, args)

    @property
    def index_texts(self) -> tuple[str, ...]:
        """The index of the block, an entry for each axis, such as ``2*i + j``; ``"?"``: unknown."""
        return tuple(as_text(f) for f in self.forms[: len(self.extents)])

    @cached_property
    def forms(self) -> tuple[AffineForm | None, ...]:
        """The index of the block as affine functions of the grid's indices; ``None``: unknown."""
        return affine_forms(self.index_map, self.rank)


def mapping_of(
    spec: BlockSpec | None, aval: ShapedArray, grid: tuple[int, ...], prefetched: Sequence[Any],
    name: str, dynamic: Sequence[int] = (), closed: bool = False,
) -> BlockMapping:  # fmt: skip
    """The mapping that a specification describes.

    Args:
      prefetched: types of the references to prefetched scalars.
      dynamic: the dimensions whose sizes are the first prefetched scalars.
      name: the operand in errors.
      closed: whether the index map may use arrays and references from outside.

    Raises:
      TypeError, ValueError: if the specification does not fit the array or the grid.
    """
    memory_space = getattr(spec, "memory_space", None)
    if not (spec is None or isinstance(spec, (BlockSpec, NoBlockSpec))):
        raise TypeError(f"{name} is a BlockSpec or None, got {spec!r}")
    if is_whole(spec) or spec.block_shape is None:  # type: ignore[union-attr]
        extents = tuple(Extent(n, n) for n in aval.shape)
    else:
        extents = _extents(spec.block_shape, aval, name)  # type: ignore[union-attr]
    for axis, e in enumerate(extents):
        if not is_static((e.size,)):
            raise ValueError(
                f"{name}: the block has all {e.size} elements along axis {axis}, a symbolic size: "
                "give the block a known size"
            )
    if math.prod(grid):
        _check_blocks_exist(extents, aval, name)
    user_map = None if is_whole(spec) else spec.index_map  # type: ignore[union-attr]
    if user_map is None and not all(e.is_plain for e in extents):
        raise ValueError(
            f"{name}: blocks of BoundedSlice and Indirect have an index map, which returns the "
            "slice or the positions"
        )
    index_map = _staged_map(user_map, extents, grid, prefetched, name, dynamic, closed)
    whole = user_map is None and all(e.size == n for e, n in zip(extents, aval.shape))
    buffers = getattr(spec, "pipeline_mode", None)
    if not isinstance(buffers, (Buffered, NoneType)):
        raise TypeError(f"{name}: pipeline_mode is a Buffered or None, got {buffers!r}")
    return BlockMapping(aval, extents, index_map, name, memory_space, whole, len(grid), buffers)


def _check_blocks_exist(extents: tuple[Extent, ...], aval: ShapedArray, name: str) -> None:
    for axis, (e, n) in enumerate(zip(extents, aval.shape)):
        if is_static((n,)) and n == 0 and e.size and not any(e.padding):
            raise ValueError(
                f"{name}: the array of shape {aval.shape} has no block of {e.size} elements along "
                f"axis {axis}, but the grid has steps"
            )


def _extents(block_shape: tuple[Any, ...], aval: ShapedArray, name: str) -> tuple[Extent, ...]:
    if len(block_shape) != len(aval.shape):
        raise ValueError(
            f"{name}: the block shape {block_shape} has {len(block_shape)} entries, the array of "
            f"shape {aval.shape} has {len(aval.shape)} axes; a BlockSpec has an entry for each axis"
        )
    extents = tuple(
        _extent(entry, axis, n, name)
        for axis, (entry, n) in enumerate(zip(block_shape, aval.shape))
    )
    if sum(e.indirect for e in extents) > 1:
        raise ValueError(
            f"{name}: the block shape {block_shape} has several axes of Indirect; a block has one"
        )
    return extents


def _extent(entry: Any, axis: int, n: int, name: str) -> Extent:
    if entry is None or isinstance(entry, Squeezed):
        return Extent(1, 1, squeezed=True)
    if isinstance(entry, Element):
        try:
            lo, hi = (int(n.__index__()) for n in entry.padding)
        except (AttributeError, TypeError, ValueError):
            raise TypeError(
                f"{name}: the padding of axis {axis} is a pair of integers (before, after), got "
                f"{entry.padding!r}"
            ) from None
        if lo < 0 or hi < 0:
            raise ValueError(f"{name}: the padding {entry.padding} of axis {axis} is negative")
        return Extent(_size(entry.block_size, axis, 1, name), 1, (lo, hi))
    if isinstance(entry, BoundedSlice):
        return Extent(_size(entry.block_size, axis, 1, name), 1, bounded=True)
    if isinstance(entry, Indirect):
        return Extent(_size(entry.block_size, axis, 1, name), 1, indirect=True)
    if isinstance(entry, Blocked):
        entry = entry.block_size
    elif not hasattr(entry, "__index__"):
        raise TypeError(
            f"{name}: the block of axis {axis} is {entry!r}; supported are an integer, None, "
            "Blocked, Element, Squeezed, BoundedSlice and Indirect"
        )
    size = _size(entry, axis, min(n, 1) if is_static((n,)) else 1, name)
    return Extent(size, size)


def _size(size: Any, axis: int, least: int, name: str) -> int:
    if not hasattr(size, "__index__") or not is_static((size,)):
        raise TypeError(f"{name}: the size of the block of axis {axis} is an integer, got {size!r}")
    n = int(size.__index__())
    if n < least:
        raise ValueError(
            f"{name}: the block of axis {axis} has {n} elements, at least {least} is needed"
        )
    return n


def _staged_map(
    user_map: Callable[..., Any] | None, extents: Sequence[Extent], grid: tuple[int, ...],
    prefetched: Sequence[Any], name: str, dynamic: Sequence[int], closed: bool,
) -> Jaxpr:  # fmt: skip
    """The jaxpr of an index map."""

    def index(*args: Any) -> list[Any]:
        ids = args[: len(grid)]
        sizes, scalars = _grid.sizes_of(grid, dynamic, args[len(grid) :])
        return index_of(user_map, extents, ids, scalars, sizes, name)

    jaxpr = stage(index, [INDEX] * len(grid) + list(prefetched), "index_map")
    if any(isinstance(effect, RefEffect) and not isinstance(effect, ReadEffect)
           for effect in jaxpr.effects):  # fmt: skip
        raise ValueError(
            f"{name}: the index map {summarize_function(user_map)} writes a prefetched scalar; "
            "index maps only read them"
        )
    if user_map is not None and not closed and any(np.ndim(c) for c in jaxpr.consts):
        raise ValueError(
            f"{name}: the index map {summarize_function(user_map)} uses an array from outside; "
            "pass it as a prefetched scalar (PrefetchScalarGridSpec)"
        )
    return jaxpr


def index_of(
    user_map: Callable[..., Any] | None, extents: Sequence[Extent], ids: Sequence[Any],
    scalars: Sequence[Any], sizes: tuple[Any, ...], name: str,
) -> list[Any]:  # fmt: skip
    """The index of a block by an index map, and the numbers of elements along bounded axes.

    Args:
      ids, sizes: indices and sizes of the grid.
      scalars: the prefetched scalars, references.
      name: the operand in errors.

    Raises:
      TypeError, ValueError: if the index map returns something else.
    """
    if user_map is None:
        return [np.int32(0)] * len(extents)
    with _grid.at(ids, sizes):
        result = _call(user_map, [*ids, *scalars], sizes, scalars, name)
    entries = result if isinstance(result, (tuple, list)) else (result,)
    if len(entries) != len(extents):
        raise ValueError(
            f"{name}: the index map {summarize_function(user_map)} returns {len(entries)} "
            f"indices for an array with {len(extents)} axes"
        )
    index, counts = [], []
    for axis, (entry, extent) in enumerate(zip(entries, extents)):
        if extent.bounded:
            entry, count = _bounded(entry, extent, axis, user_map, name)
            counts.append(count)
        take = _as_positions if extent.indirect else _as_index
        index.append(take(entry, user_map, name, extent))
    return [*index, *counts]


def _call(
    user_map: Callable[..., Any], args: Sequence[Any], grid: tuple[int, ...],
    prefetched: Sequence[Any], name: str,
) -> Any:  # fmt: skip
    try:
        return user_map(*args)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise  # from inside of the index map
        also = f" and {len(prefetched)} prefetched scalars" if prefetched else ""
        raise TypeError(
            f"{name}: the index map {summarize_function(user_map)} is called with {len(grid)} "
            f"indices of the grid{also}: {error}"
        ) from None


def _bounded(
    entry: Any, extent: Extent, axis: int, user_map: Any, name: str
) -> tuple[Any, Any]:  # fmt: skip
    """The start and the number of elements of a slice."""
    if not isinstance(entry, Slice) or entry.stride != 1:
        raise TypeError(
            f"{name}: the block of axis {axis} is a BoundedSlice, but the index map "
            f"{summarize_function(user_map)} returns {entry!r} for it; return ds(start, size)"
        )
    if isinstance(entry.size, (int, np.integer)) and not 0 <= entry.size <= extent.size:
        raise ValueError(
            f"{name}: the index map {summarize_function(user_map)} returns a slice of "
            f"{entry.size} elements for axis {axis}, whose block has at most {extent.size}"
        )
    return entry.start, _as_index(entry.size, user_map, name, extent)


def _as_positions(entry: Any, user_map: Any, name: str, extent: Extent) -> Any:
    aval = typeof(entry) if hasattr(entry, "shape") and hasattr(entry, "dtype") else None
    if aval is None or aval.shape != (extent.size,) or aval.dtype.kind not in "iu":
        got = repr(entry) if aval is None else str(aval)
        raise TypeError(
            f"{name}: the index map {summarize_function(user_map)} returns {got} for an axis of "
            f"Indirect({extent.size}); return an array of {extent.size} integers"
        )
    return lax.convert_element_type(entry, INDEX_DTYPE)


def _as_index(entry: Any, user_map: Any, name: str, extent: Extent) -> Any:
    if hasattr(entry, "aval") or isinstance(entry, (int, np.integer)):
        aval = typeof(entry)
        if aval.shape == () and aval.dtype.kind in "iu":
            return lax.convert_element_type(entry, INDEX_DTYPE)
    raise TypeError(
        f"{name}: the index map {summarize_function(user_map)} returns {entry!r}, which is no "
        "integer scalar"
    )
