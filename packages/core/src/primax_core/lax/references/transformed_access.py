"""Reads and writes of references under ``jvp`` and ``vmap`` that keep their index.

A reference and the reference to its tangent are read and written at the same index. A batch of
references is read and written at an index with one more entry, for the mapped axis. Other accesses
are applied to whole contents by ``process_discharged``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..._engine.ref_transforms import RefPair, access, belongs
from ..._ir import dtypes
from ..._ir.primitive import Primitive
from ..._ir.symbolic_dims import is_static
from ..._trace.core import bind_on, set_trace, typeof
from ..._trace.refs import RefCell, get_p, swap_p
from ..._transform import batching, jvp
from ..._transform.zeros import Zero, instantiate
from ..arithmetic import add, mul
from ..broadcasting import broadcast_in_dim, iota
from ..permuting import transpose
from ..reshaping import reshape
from .composition import within
from .indexing import INTEGER, INTEGER_ARRAY, DynamicSlice, Index, StaticSlice
from .parts import span_of

BATCH: Final = "batch"


def access_part(trace: Any, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Read or write a part of a reference under a transformation.

    Args:
      prim: ``get``, ``swap`` or ``addupdate``.
    """
    ref, index = args[0], params["index"]
    if type(ref) is RefPair and belongs(trace, ref):
        if dtypes.issubdtype(ref.dtype, np.inexact):
            return _access_pair(trace, prim, ref, args[1:], index)
    elif isinstance(trace, batching.BatchTrace) and any(belongs(trace, a) for a in args):
        if not (type(ref) is RefCell and belongs(trace, ref)):
            result = _access_batch(trace, prim, args, index)
            if result is not None:
                return result
    return access(trace, prim, args, params)


# Tangents


def _access_pair(trace: Any, prim: Primitive, ref: RefPair, rest: Sequence[Any], index: Index):
    value, tangent = (None, None) if prim is get_p else trace.split(rest[0])
    operands = [trace.split(x)[0] for x in (rest if prim is get_p else rest[1:])]
    params = {"index": index}
    if prim is get_p:
        pair = [
            bind_on(trace.parent, prim, (r, *operands), params)[0] for r in (ref.primal, ref.extra)
        ]
        return jvp.JVPTracer(trace, *pair)
    old = bind_on(trace.parent, prim, (ref.primal, value, *operands), params)
    if tangent is None and prim is not swap_p:
        return old
    if tangent is None:
        with set_trace(trace.parent):
            tangent = instantiate(Zero(typeof(value).strip_weak_type().tangent_aval()))
    old_tangent = bind_on(trace.parent, prim, (ref.extra, tangent, *operands), params)
    return jvp.JVPTracer(trace, old[0], old_tangent[0]) if prim is swap_p else old


# Batches


def _access_batch(
    trace: batching.BatchTrace, prim: Primitive, args: Sequence[Any], index: Index
) -> Any:
    """The results, or ``None`` if no index selects the same elements for all examples."""
    ref, *rest = args
    pairs = [trace.split(x) for x in rest]
    value = None if prim is get_p else pairs.pop(0)
    whole, dim = (ref.value, ref.dim) if belongs(trace, ref) else (ref, None)
    shape, size = typeof(whole).shape, trace.axis.size
    if dim is None and prim is not get_p or not is_static((*shape, size)) or 0 in (*shape, size):
        return None
    if dim is not None:
        shape = (*shape[:dim], *shape[dim + 1 :])
    if index is None:
        index = tuple(StaticSlice(0, n, 1) for n in shape)
    if any(not isinstance(e, str) and e.size == 0 for e in index):
        return None
    with set_trace(trace.parent):
        batched = _BatchedIndex(shape, index, pairs, dim, size, clamped=prim is not get_p)
        values = [] if value is None else [batched.to_part(*value)]
    outs = bind_on(
        trace.parent, prim, (whole, *values, *batched.operands), {"index": batched.index}
    )
    if not outs:
        return []
    with set_trace(trace.parent):
        return batching.VmapTracer(trace, *batched.from_part(outs[0]))


class _BatchedIndex:
    """The index that selects the elements of all examples from a batch, or from one array.

    Args:
      shape: the shape of one example.
      index: the index of one example.
      pairs: its operands, each with its mapped axis or ``None``.
      dim: the mapped axis of the array, or ``None``.
      clamped: clamp single positions, which a scatter would drop.

    Attributes:
      order: the axes of the selected part. An axis of the part of one example is denoted by the
        axis of the array, or by its place among the axes of the index arrays; the mapped axis by
        ``BATCH``.
      of_example: the axes of the part of one example.
    """

    def __init__(
        self, shape: Sequence[int], index: Sequence[Any], pairs: Sequence[Any], dim: int | None,
        size: int, clamped: bool,
    ):  # fmt: skip
        self.size = size
        self.shape = shape
        remaining = iter(pairs)
        axes = [
            (e, (None, None) if type(e) is StaticSlice else next(remaining), k)
            for k, e in enumerate(index)
        ]
        arrays = [typeof(x).ndim - (d is not None) for e, (x, d), _ in axes if isinstance(e, str)]
        self.rank: int = max(arrays, default=0)
        shared: list[Any] = [("array", k) for k in range(self.rank)]
        self.of_example = _order([(e, k) for e, _, k in axes], shared)
        if any(d is not None for _, d in pairs):
            simple = INTEGER_ARRAY not in index and all(
                e == INTEGER or e.stride == 1 for e in index
            )
            self.moved = [k for e, (_, d), k in axes if type(e) is DynamicSlice and d is not None]
            shared = [BATCH, *shared, *self.moved]
            gathered = [
                (*self._gathered(e, x, d, k, clamped and simple), k) for e, (x, d), k in axes
            ]
            if dim is not None:
                positions = reshape(iota(np.int32, size), (size, *[1] * (len(shared) - 1)))
                gathered.insert(dim, (INTEGER_ARRAY, positions, BATCH))
        else:
            gathered = [(e, x, k) for e, (x, _), k in axes]
            if dim is not None:
                gathered.insert(dim, (StaticSlice(0, size, 1), None, BATCH))
        self.index: Index = tuple(e for e, _, _ in gathered)
        self.operands: list[Any] = [x for e, x, _ in gathered if type(e) is not StaticSlice]
        self.order = _order([(e, k) for e, _, k in gathered], shared)

    def _gathered(self, entry: Any, x: Any, d: int | None, k: int, clamped: bool) -> Any:
        """An entry and its operand, which broadcasts to the shape of the index arrays."""
        n, after = self.shape[k], len(self.moved)
        if type(entry) is StaticSlice or type(entry) is DynamicSlice and d is None:
            return entry, x
        if type(entry) is DynamicSlice:
            starts = within(batching.at_front(x, d, self.size), n, span_of(entry))
            shape = [self.size, *[1] * (self.rank + after)]
            at = 1 + self.rank + self.moved.index(k)
            shape[at] = entry.size
            dtype = typeof(starts).dtype
            steps = mul(iota(dtype, entry.size), dtype.type(entry.stride))
            return INTEGER_ARRAY, add(
                broadcast_in_dim(starts, shape, (0,)), broadcast_in_dim(steps, shape, (at,))
            )
        if clamped:
            x = within(x, n)
            x = np.int32(x) if isinstance(x, int) else x
        if d is not None:
            x = batching.at_front(x, d, self.size)
        sizes = typeof(x).shape
        if d is None:
            return entry, reshape(x, (*sizes, *[1] * after)) if sizes and after else x
        lead = [1] * (self.rank - len(sizes) + 1)
        return INTEGER_ARRAY, reshape(x, (self.size, *lead, *sizes[1:], *[1] * after))

    def from_part(self, part: Any) -> tuple[Any, int]:
        """The selected elements as a batch, and its mapped axis."""
        if [k for k in self.order if k != BATCH] == self.of_example:
            return part, self.order.index(BATCH)
        return transpose(part, [self.order.index(k) for k in (BATCH, *self.of_example)]), 0

    def to_part(self, value: Any, dim: int | None) -> Any:
        """A batch of values in the order of the selected elements."""
        if [k for k in self.order if k != BATCH] == self.of_example:
            return batching.move_axis(value, dim, self.order.index(BATCH), self.size)
        axes = [BATCH, *self.of_example]
        value = batching.at_front(value, dim, self.size)
        return transpose(value, [axes.index(k) for k in self.order])


def _order(entries: Sequence[tuple[Any, Any]], shared: Sequence[Any]) -> list[Any]:
    """The axes of a selected part.

    Args:
      entries: those of the index, each with the name of its axis.
      shared: names of the axes of the index arrays.
    """
    slices = [k for e, k in entries if not isinstance(e, str)]
    arrays = [i for i, (e, _) in enumerate(entries) if isinstance(e, str)]
    if not any(e == INTEGER_ARRAY for e, _ in entries):
        return slices
    at = arrays[0] if arrays[-1] - arrays[0] == len(arrays) - 1 else 0
    return [*slices[:at], *shared, *slices[at:]]
