"""References of a kernel: blocks in vector memory, scalars in scalar memory, semaphores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from primax_core.extend import ShapedArray
from primax_core.extend.references import INTEGER_ARRAY, StaticSlice, selected_shape

from . import types
from .copies import View, copy_at_once, is_constant_true, view_of
from .emitter import Emitter
from .partial_copies import copy_in, copy_out
from .registry import Context
from .shape_rules import as_index, dynamic_part, placed, strided
from .types import BOOL, INT32
from .values import Value

Index = tuple[Any, ...] | None


class Piece(NamedTuple):
    """The part of an axis that an access selects.

    Attributes:
      start: its first position, in bounds unless the access has a mask.
      size, stride: number of elements, and their distance.
      point: whether the axis is absent in the result.
    """

    start: Value
    size: int
    stride: int
    point: bool

    @property
    def span(self) -> int:
        """Number of elements from the first to the last."""
        return (self.size - 1) * self.stride + 1


class Reference:
    """Memory with a shape.

    Attributes:
      name: name of the memory in the text.
      dtype: type of the elements.
      shape: shape of the memory, squeezed axes included.
      space: ``vmem``, ``smem``, ``any``, ``hbm`` or ``semaphore_mem``.
      squeezed: for each axis, whether the kernel does not see it.
      semaphore: the type of elements in ``semaphore_mem``.
    """

    def __init__(
        self, name: str, dtype: Any, shape: Sequence[int], space: str = "vmem",
        squeezed: Sequence[bool] | None = None, semaphore: str = types.DMA_SEMAPHORE,
    ):  # fmt: skip
        self.name = name
        self.dtype = np.dtype(dtype)
        self.shape = tuple(shape)
        self.space = space
        self.squeezed = tuple(squeezed or (False,) * len(self.shape))
        self.semaphore = semaphore

    @property
    def element(self) -> str:
        """Type of an element in memory."""
        if self.space == "semaphore_mem":
            return self.semaphore
        return types.element(types.stored(self.dtype))

    @property
    def is_semaphore(self) -> bool:
        """Return True for semaphores that devices signal."""
        return self.space == "semaphore_mem" and self.semaphore == types.SEMAPHORE

    @property
    def type(self) -> str:
        """Type in the text."""
        return types.memory(self.element, self.shape, self.space)

    @property
    def block_shape(self) -> tuple[int, ...]:
        """Shape of the reference that the kernel sees."""
        return tuple(n for n, gone in zip(self.shape, self.squeezed) if not gone)

    def read(
        self, ctx: Context, index: Index, operands: Sequence[Value], mask: Value | None = None,
        other: Value | None = None,
    ) -> Value:  # fmt: skip
        """The elements at an index.

        Args:
          mask: elements to read; a slice may then reach beyond the block.
          other: the other elements.
        """
        if is_constant_true(mask):
            mask = None
        pieces, shape = self.pieces(ctx, index, operands, mask is not None)
        if self.is_semaphore and not shape:
            view = view_of(ctx, self, pieces)
            x = ctx.emitter.op(f"tpu.sem_read {view.name} : {view.type} -> i32", INT32, pure=False)
        elif self.space in ("any", "hbm", "semaphore_mem"):
            x = _copied(ctx, self, pieces, mask is not None)
        elif self.space == "smem":
            x = _read_scalars(ctx, self, pieces, shape)
        else:
            x = _read_vectors(ctx, self, pieces, shape)
        if mask is None:
            return x
        assert other is not None
        e = ctx.emitter
        return e.from_words(e.select(mask, e.words(x), e.words(other)), self.dtype)

    def write(
        self, ctx: Context, value: Value, index: Index, operands: Sequence[Value],
        mask: Value | None = None,
    ) -> None:  # fmt: skip
        """Replace the elements at an index.

        Args:
          mask: elements to write; a slice may then reach beyond the block.
        """
        if self.space == "semaphore_mem" and value.known == 0:
            return  # copies leave it as they found it
        if is_constant_true(mask):
            mask = None
        pieces, shape = self.pieces(ctx, index, operands, mask is not None)
        value = ctx.emitter.broadcast(value, shape)
        if self.space in ("any", "hbm", "semaphore_mem"):
            _copy_out(ctx, self, pieces, value, mask)
        elif self.space == "smem":
            _write_scalars(ctx, self, pieces, value, mask)
        else:
            _write_vectors(ctx, self, pieces, value, mask)

    def pieces(
        self, ctx: Context, index: Index, operands: Sequence[Value], masked: bool = False
    ) -> tuple[list[Piece], tuple[int, ...]]:
        """The part of each axis, squeezed ones included, and the shape of the result."""
        e = ctx.emitter
        block = self.block_shape
        if index is None:
            index = tuple(StaticSlice(0, n, 1) for n in block)
        if INTEGER_ARRAY in index and any(x.shape for x in operands):
            raise ctx.error(
                "an access at an array of positions; use a loop over scalar positions, or a "
                "product with a comparison of iota"
            )
        avals = [ShapedArray(x.shape, x.dtype) for x in operands]
        shape = selected_shape(block, index, avals)
        entries, remaining = iter(index), iter(operands)
        pieces = []
        for n, gone in zip(self.shape, self.squeezed):
            if gone:
                pieces.append(Piece(e.index(0), 1, 1, True))
                continue
            entry = next(entries)
            if isinstance(entry, str):
                pieces.append(Piece(_inside(e, next(remaining), n, 1), 1, 1, True))
            elif isinstance(entry, StaticSlice):
                pieces.append(Piece(e.index(entry.start), entry.size, entry.stride, False))
            else:
                start = as_index(e, next(remaining))
                span = (entry.size - 1) * entry.stride + 1
                start = start if masked else _inside(e, start, n, span)
                pieces.append(Piece(start, entry.size, entry.stride, False))
        return pieces, shape


def _inside(e: Emitter, position: Value, n: int, span: int) -> Value:
    """A position in bounds: constants count from the end if negative, others are clamped."""
    position = as_index(e, position)
    if position.known is not None and position.known < 0:
        position = e.index(position.known + n)
    return e.clamp(position, 0, max(n - span, 0))


# Vectors


def _addressable(ref: Reference, pieces: Sequence[Piece], writes: bool = False) -> list[bool]:
    """The axes whose parts can be loaded, or stored, by themselves."""
    direct = [
        not (writes and p.stride != 1) and _is_addressable(ref, a, p) for a, p in enumerate(pieces)
    ]
    if len(pieces) > 1 and all(direct[-2:]):
        row, columns = pieces[-2], pieces[-1]
        tile = types.tile(len(pieces), ref.dtype)[-2]
        whole = columns.start.known == 0 and columns.span == ref.shape[-1]
        if row.start.known is None and not row.start.divisible(tile) and not whole:
            direct[-1] = False  # a row at any position is loaded whole
    return direct


def _is_addressable(ref: Reference, axis: int, piece: Piece) -> bool:
    """Return True if a part of an axis can be loaded and stored by itself."""
    n, start = ref.shape[axis], piece.start
    if start.known is not None:
        return 0 <= start.known <= n - piece.span
    if start.bounds is None or start.bounds[0] < 0 or start.bounds[1] > n - piece.span:
        return False  # of a masked access
    if axis == len(ref.shape) - 2 and piece.span == 1 and types.stored(ref.dtype).itemsize == 4:
        return True
    return start.divisible(types.tile(len(ref.shape), ref.dtype)[axis])


def _address(e: Emitter, ref: Reference, axis: int, piece: Piece) -> str:
    """The position in an access, with a promise of the divisor that it has."""
    start = piece.start
    multiple = types.tile(len(ref.shape), ref.dtype)[axis]
    if start.known is None and multiple > 1 and start.divisible(multiple):
        text = f"tpu.assume_multiple {start.name}, {multiple} : {start.type}"
        start = e.op(text, start.dtype, (), start.bounds, multiple=multiple)
    return e.position(start)


def _read_vectors(
    ctx: Context, ref: Reference, pieces: Sequence[Piece], shape: tuple[int, ...]
) -> Value:
    e = ctx.emitter
    direct = _addressable(ref, pieces)
    x = _load(e, ref, pieces, direct)
    for axis, (piece, is_direct) in enumerate(zip(pieces, direct)):
        if not is_direct:
            x = _with_room(e, x, axis, piece.span)
            x = dynamic_part(e, x, piece.start, piece.span, axis)
        x = strided(ctx, x, axis, piece.stride, piece.size)
    if ref.dtype == BOOL:
        x = e.from_words(x, BOOL)
    return e.reshape(x, shape)


def _with_room(e: Emitter, x: Value, axis: int, n: int) -> Value:
    """A value with at least ``n`` elements along an axis."""
    if x.shape[axis] >= n:
        return x
    rest = (*x.shape[:axis], n - x.shape[axis], *x.shape[axis + 1 :])
    return e.concatenate([x, e.constant(0, x.dtype, rest)], axis)


def _load(e: Emitter, ref: Reference, pieces: Sequence[Piece], direct: Sequence[bool]) -> Value:
    """The parts of the axes that are addressable, and the whole of the others."""
    names = [_address(e, ref, a, p) if d else e.position(0)
             for a, (p, d) in enumerate(zip(pieces, direct))]  # fmt: skip
    sizes = tuple(p.span if d else n for p, d, n in zip(pieces, direct, ref.shape))
    dtype = types.stored(ref.dtype)
    to = types.vector(ref.element, sizes)
    text = f"vector.load {ref.name}[{', '.join(names)}] : {ref.type}, {to}"
    return e.op(text, dtype, sizes, pure=False)


def _store(
    e: Emitter, ref: Reference, names: Sequence[str], x: Value, mask: Value | None = None
) -> None:
    masked = "" if mask is None else f" masked {mask.name}"
    of_mask = "" if mask is None else f" {mask.type}"
    e.line(
        f"tpu.vector_store {ref.name}[{', '.join(names)}], {x.name}{masked} "
        f"{{strides = array<i32>}} : {ref.type}, {x.type},{of_mask}"
    )


def _write_vectors(
    ctx: Context, ref: Reference, pieces: Sequence[Piece], value: Value, mask: Value | None
) -> None:
    e = ctx.emitter
    if ref.dtype == BOOL:
        value = e.words(value)
    sizes = tuple(p.size for p in pieces)
    x = e.reshape(value, sizes)
    if mask is not None:
        mask = e.reshape(e.broadcast(mask, value.shape), sizes)
    direct = _addressable(ref, pieces, writes=True)
    if all(direct):
        names = [_address(e, ref, a, p) for a, p in enumerate(pieces)]
        if mask is not None:
            old = _load(e, ref, pieces, direct)
            x = _chosen(e, mask, x, old)
        _store(e, ref, names, x)
        return
    _write_by_rotation(ctx, ref, pieces, direct, x, mask)


def _chosen(e: Emitter, mask: Value, x: Value, old: Value) -> Value:
    return e.from_words(e.select(mask, e.words(x), e.words(old)), x.dtype)


def _write_by_rotation(
    ctx: Context, ref: Reference, pieces: Sequence[Piece], direct: Sequence[bool], x: Value,
    mask: Value | None,
) -> None:  # fmt: skip
    """Write parts that have no address: the block is read, changed and written."""
    e = ctx.emitter
    if any(p.stride != 1 for p in pieces):
        raise ctx.error(
            "a write with a stride; write the elements in a loop, or reshape the result outside of "
            "the kernel so that the stride is an axis"
        )
    old = _load(e, ref, pieces, direct)
    starts = [e.index(0) if d else p.start for p, d in zip(pieces, direct)]
    for axis, n in enumerate(old.shape):
        if x.shape[axis] > n:
            raise ctx.error(f"a masked write of {x.shape[axis]} elements to an axis of size {n}")
    new = placed(e, old, x, starts)
    if mask is not None:
        nothing = e.constant(False, BOOL, old.shape)
        new = _chosen(e, placed(e, nothing, mask, starts), new, old)
    names = [_address(e, ref, a, p) if d else e.position(0)
             for a, (p, d) in enumerate(zip(pieces, direct))]  # fmt: skip
    _store(e, ref, names, new)


# Whole arrays outside of the core's memory


def _copied(ctx: Context, ref: Reference, pieces: Sequence[Piece], masked: bool) -> Value:
    """The contents of a part, copied to vector memory first.

    Elements of a masked access that are outside of the array are arbitrary.
    """
    here = _buffer(ctx, ref, pieces)
    if masked:
        copy_in(ctx, ref, pieces, here)
    else:
        copy_at_once(ctx.emitter, view_of(ctx, ref, pieces), View(here.name, here.type))
    return here.read(ctx, None, ())


def _copy_out(
    ctx: Context, ref: Reference, pieces: Sequence[Piece], value: Value, mask: Value | None
) -> None:
    """Replace the elements of a part; if the access is masked they are read before."""
    here = _buffer(ctx, ref, pieces)
    if mask is None:
        here.write(ctx, value, None, ())
        copy_at_once(ctx.emitter, View(here.name, here.type), view_of(ctx, ref, pieces))
        return
    copy_in(ctx, ref, pieces, here)
    here.write(ctx, value, None, (), mask)
    copy_out(ctx, ref, pieces, here)


def _buffer(ctx: Context, ref: Reference, pieces: Sequence[Piece]) -> Reference:
    """Vector memory of the shape of a part."""
    shape = tuple(p.size for p in pieces if not p.point)
    if ref.is_semaphore:
        raise ctx.error(
            "semaphores that other devices signal are read one by one, and changed by "
            "semaphore_signal and semaphore_wait"
        )
    if ref.space == "semaphore_mem":
        raise ctx.error(
            "a semaphore of kind SemaphoreType.DMA is read, signalled or awaited by itself; "
            "copies do that, and SemaphoreType.REGULAR is for all else"
        )
    if not shape:
        raise ctx.error(
            f"an access to one element of a reference in the memory {ref.space}: copy it to SMEM "
            "or VMEM first"
        )
    name, _ = ctx.emitter.memory(ref.element, shape, "vmem")
    return Reference(name, ref.dtype, shape)


# Scalars

_MAX_SCALARS = 32
"""The most scalars that one access to scalar memory reads or writes."""


def _places(ctx: Context, ref: Reference, pieces: Sequence[Piece]) -> list[list[str]]:
    """The position of each element, in row-major order."""
    e = ctx.emitter
    if math.prod(p.size for p in pieces) > _MAX_SCALARS:
        shape = tuple(p.size for p in pieces if not p.point)
        raise ctx.error(
            f"an access to {shape} elements in SMEM, which has scalars: access one element at a "
            "time, or use VMEM"
        )
    axes = []
    for p in pieces:
        axes.append([e.position(e.add(p.start, e.index(i * p.stride))) for i in range(p.size)])
    return [list(place) for place in itertools.product(*axes)]


def _read_scalars(
    ctx: Context, ref: Reference, pieces: Sequence[Piece], shape: tuple[int, ...]
) -> Value:
    e = ctx.emitter
    dtype = types.stored(ref.dtype)
    scalars = [
        e.op(f"memref.load {ref.name}[{', '.join(place)}] : {ref.type}", dtype, pure=False)
        for place in _places(ctx, ref, pieces)
    ]
    if ref.dtype == BOOL:
        scalars = [e.from_words(x, BOOL) for x in scalars]
    if not shape:
        return scalars[0]
    row = e.concatenate([e.broadcast(x, (1, 1)) for x in scalars], 1)
    return e.reshape(row, shape)


def _write_scalars(
    ctx: Context, ref: Reference, pieces: Sequence[Piece], value: Value, mask: Value | None
) -> None:
    e = ctx.emitter
    if mask is not None:
        raise ctx.error("a masked write to SMEM; use `when`")
    if ref.dtype == BOOL:
        value = e.words(value)
    places = _places(ctx, ref, pieces)
    flat = e.reshape(value, (1, len(places))) if value.shape else None
    for i, place in enumerate(places):
        x = value if flat is None else e.reshape(e.part(flat, (0, i), (1, 1)), ())
        e.line(f"memref.store {x.name}, {ref.name}[{', '.join(place)}] : {ref.type}")
