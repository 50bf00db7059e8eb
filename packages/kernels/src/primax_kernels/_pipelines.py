"""Grids inside of kernels, over references to whole arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primax_core import ds, free_ref, lax, new_ref
from primax_core.extend import AbstractRef, ShapedArray, Tracer

from . import _grid
from ._access import former, load, store
from ._block_mapping import INDEX, INDEX_DTYPE, BlockMapping, index_of, mapping_of
from ._block_specs import grid_tuple, is_whole
from ._control import when
from ._cores import core_of
from ._grid import UNKNOWN_SIZE
from ._memory_spaces import unwritten_value


class PipelineStep(NamedTuple):
    """The step of a pipeline, which a function may ask for.

    Attributes:
      index: the indices of the step in the grid, ``int32`` scalars.
      local_index: the number of the step, counted by the core that runs it.
    """

    index: tuple[Any, ...]
    local_index: Any


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: Any,
    in_specs: Sequence[Any] = (),
    out_specs: Sequence[Any] = (),
    tiling: Any = None,
    core_axis: Any = None,
    core_axis_name: Any = None,
    dimension_semantics: Sequence[Any] | None = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    output_wait_read_only: bool = False,
    _explicit_indices: bool = False,
) -> Callable[..., None]:
    """A function of references that runs ``body`` on blocks of them, for each step of a grid.

    Inside of ``body``, `program_id` is the index in this grid. TPUs copy the next blocks meanwhile.

    Args:
      body: function of references to the blocks, and to scratch memory.
      grid: number of steps along each dimension.
      in_specs, out_specs: a `BlockSpec` for each reference.
      tiling, dimension_semantics, trace_scopes, no_pipelining, output_wait_read_only: for TPUs.
      core_axis: a dimension of the grid around, whose steps divide the pipeline: each runs its part
        of a dimension that ``dimension_semantics`` declares parallel.
      core_axis_name: the same for the axis of cores of `kernel`.
      _explicit_indices: whether ``body`` has a `PipelineStep` as its first argument.

    Returns:
      A function of the references, inputs first; ``scratches=`` are passed on to ``body``.

    Raises:
      ValueError: if the number of references differs from that of the specifications; if cores
        divide a grid without a parallel dimension of known size.
      TypeError: for several dimensions of cores.
    """
    sizes = grid_tuple(grid)
    divided = None
    if core_axis is not None or core_axis_name is not None:
        divided = _divided_dimension(sizes, dimension_semantics)
    dynamic = [d for d, size in enumerate(sizes) if isinstance(size, Tracer)]
    bounds = tuple(UNKNOWN_SIZE if d in dynamic else size for d, size in enumerate(sizes))
    scalars = [AbstractRef(INDEX)] * len(dynamic)
    in_specs, out_specs = _sequence(in_specs), _sequence(out_specs)

    def pipeline(*refs: Any, scratches: Sequence[Any] = ()) -> None:
        if len(refs) != len(in_specs) + len(out_specs):
            raise ValueError(
                f"the pipeline has {len(in_specs)} in_specs and {len(out_specs)} out_specs, but "
                f"got {len(refs)} references"
            )
        mappings = [
            mapping_of(
                spec,
                ShapedArray(ref.shape, ref.dtype),
                bounds,
                scalars,
                f"specs[{i}]",
                dynamic,
                closed=True,
            )
            for i, (spec, ref) in enumerate(zip((*in_specs, *out_specs), refs))
        ]
        local, first = list(sizes), None
        if divided is not None:
            core, cores = _core(core_axis, core_axis_name)
            local[divided] = -(-sizes[divided] // cores)
            first = lax.mul(lax.convert_element_type(core, INDEX_DTYPE), np.int32(local[divided]))
        counts = [lax.convert_element_type(sizes[d], INDEX_DTYPE) for d in dynamic]
        total: Any = np.int32(math.prod(n for d, n in enumerate(local) if d not in dynamic))
        for size in counts:
            total = lax.mul(total, lax.max(size, np.int32(0)))
        maps = [
            None if is_whole(spec) else spec.index_map for spec in (*in_specs, *out_specs)
        ]  # fmt: skip

        def step(t: Any, carry: None) -> None:
            ids = _grid.indices_of(t, local)
            if first is None:
                run(t, ids)
                return
            ids[divided] = lax.add(ids[divided], first)
            if sizes[divided] % local[divided] == 0 and cores * local[divided] == sizes[divided]:
                run(t, ids)
            else:  # the last cores have fewer steps
                when(lax.lt(ids[divided], np.int32(sizes[divided])))(lambda: run(t, ids))

        def run(t: Any, ids: Sequence[Any]) -> None:
            blocks = []
            for ref, mapping, index_map in zip(refs, mappings, maps):
                index = index_of(index_map, mapping.extents, ids, [], sizes, mapping.name)
                blocks.append((ref, mapping, index))
            position = [PipelineStep(tuple(ids), t)] if _explicit_indices else []
            with _grid.at(ids, sizes):
                _on_copies(body, position, blocks, len(in_specs), scratches)

        lax.fori_loop(np.int32(0), total, step, None)

    return pipeline


def _on_copies(
    body: Callable[..., None], position: Sequence[PipelineStep], blocks: Sequence[Any], n: int,
    scratches: Sequence[Any],
) -> None:  # fmt: skip
    """Call a function with copies of blocks, and write the copies after the first ``n`` back."""
    copies = [new_ref(_read(*block)) for block in blocks[:n]]
    copies += [new_ref(_former(*block)) for block in blocks[n:]]
    body(*position, *copies, *scratches)
    for copy, block in list(zip(copies, blocks))[n:]:
        _write(*block, copy[...])
    for copy in copies:
        free_ref(copy)


def _divided_dimension(sizes: Sequence[Any], semantics: Sequence[Any] | None) -> int:
    """The dimension that cores divide: the largest of those that are declared parallel."""
    words = [str(getattr(s, "value", s)) for s in semantics or ()]
    parallel = [
        d for d, word in enumerate(words)
        if word != "arbitrary" and d < len(sizes) and not isinstance(sizes[d], Tracer)
    ]  # fmt: skip
    if not parallel:
        raise ValueError(
            f"cores divide a parallel dimension of known size, and the grid {tuple(sizes)} has "
            f"none with dimension_semantics={semantics!r}: declare one by tpu.PARALLEL"
        )
    return max(parallel, key=lambda d: sizes[d])


def _core(core_axis: Any, core_axis_name: Any) -> tuple[Any, int]:
    """The number of the core that runs the pipeline, and the number of cores."""
    if core_axis is not None and core_axis_name is not None:
        raise TypeError("emit_pipeline takes either core_axis or core_axis_name, not both")
    if core_axis_name is not None:
        if not isinstance(core_axis_name, str):
            raise TypeError(f"core_axis_name is the name of one axis, got {core_axis_name!r}")
        return core_of(core_axis_name)
    cores = _grid.num_programs(core_axis)
    if not isinstance(cores, int):
        raise TypeError(f"core_axis={core_axis} is a dimension of the grid of computed size")
    return _grid.program_id(core_axis), cores


def _sequence(specs: Any) -> tuple[Any, ...]:
    return tuple(specs) if isinstance(specs, (tuple, list)) else (specs,)


def _view(ref: Any, mapping: BlockMapping, index: Sequence[Any]) -> tuple[Any, Any]:
    """The view of a block, squeezed axes included, and the mask of the elements in the array."""
    slices, mask = [], None
    shape = tuple(e.size for e in mapping.extents)
    sizes = iter(index[len(shape) :])
    for axis, (i, e, n) in enumerate(zip(index, mapping.extents, mapping.aval.shape)):
        if any(e.padding):
            raise ValueError("a pipeline takes no blocks with padding")
        if e.indirect:
            slices.append(i)
            continue
        if e.bounded:
            size = lax.broadcast(next(sizes), shape)
            mask = _both(mask, lax.lt(lax.broadcasted_iota(np.int32, shape, axis), size))
        elif e.size == n:
            slices.append(slice(None))
            continue
        start = lax.mul(i, np.int32(e.step)) if e.step != 1 else i
        slices.append(ds(start, e.size))
        if n % e.size or e.step != e.size:
            position = lax.add(lax.broadcasted_iota(np.int32, shape, axis), start)
            mask = _both(mask, lax.lt(position, np.int32(n)))
    return ref.at[tuple(slices)], mask


def _both(mask: Any, other: Any) -> Any:
    return other if mask is None else lax.bitwise_and(mask, other)


def _read(ref: Any, mapping: BlockMapping, index: Sequence[Any]) -> Any:
    view, mask = _view(ref, mapping, index)
    fill = unwritten_value(mapping.aval.dtype)
    value = view.get() if mask is None else load(view, mask=mask, other=fill)
    return lax.reshape(value, mapping.block_shape)


def _former(ref: Any, mapping: BlockMapping, index: Sequence[Any]) -> Any:
    """The contents of a block of a result, before the step; they may be unwritten."""
    view, mask = _view(ref, mapping, index)
    return lax.reshape(former(view, mask=mask), mapping.block_shape)


def _write(ref: Any, mapping: BlockMapping, index: Sequence[Any], block: Any) -> None:
    view, mask = _view(ref, mapping, index)
    store(view, lax.reshape(block, view.shape), mask=mask)
