"""Grids inside of kernels, over references to whole arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primax_core import ds, free_ref, freeze, lax, new_ref, tree_util
from primax_core.extend import AbstractRef, ShapedArray, Tracer

from . import _grid
from ._access import described, former, load, store
from ._block_mapping import INDEX, INDEX_DTYPE, BlockMapping, index_of, mapping_of
from ._block_specs import grid_tuple, is_whole
from ._buffered_pipelines import PipelineStep, Steps, run_buffered
from ._buffered_refs import BufferedRef
from ._control import run_scoped, when
from ._cores import TensorCoreMesh, core_of
from ._grid import UNKNOWN_SIZE
from ._memory_spaces import unwritten_value
from ._on_demand import get_global
from ._semaphore_operations import is_reference
from ._typing import Grid


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: Grid,
    in_specs: Sequence[Any] = (),
    out_specs: Sequence[Any] = (),
    tiling: Any = None,
    core_axis: int | None = None,
    core_axis_name: str | None = None,
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
      ``allocations=`` are buffers, see `emit_pipeline_with_allocations`.

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

    def pipeline(
        *refs: Any, scratches: Sequence[Any] = (), allocations: Sequence[Any] | None = None
    ) -> None:
        if len(refs) != len(in_specs) + len(out_specs):
            raise ValueError(
                f"the pipeline has {len(in_specs)} in_specs and {len(out_specs)} out_specs, but "
                f"got {len(refs)} references"
            )
        for i, ref in enumerate(refs):
            if not is_reference(ref):
                raise TypeError(
                    f"a pipeline takes references of the kernel, and argument {i} is "
                    f"{described(ref)}: call it inside of a kernel"
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

        if allocations is not None:
            if first is not None and sizes[divided] != cores * local[divided]:
                raise ValueError(
                    f"cores divide a pipeline with allocations evenly: {sizes[divided]} steps and "
                    f"{cores} cores; use emit_pipeline without allocations"
                )
            steps = Steps(sizes, local, divided, first, total)
            run_buffered(body, steps, refs, allocations, scratches, _explicit_indices)
            return

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


def emit_pipeline_with_allocations(
    body: Callable[..., None], *, grid: Grid, in_specs: Sequence[Any] = (),
    out_specs: Sequence[Any] = (), **options: Any,
) -> tuple[Callable[..., None], Callable[..., tuple[BufferedRef, ...]]]:  # fmt: skip
    """A pipeline whose buffers are reserved by its caller, once for several runs.

    Args:
      body, grid, in_specs, out_specs: see `emit_pipeline`. Blocks have sizes or ``None``.
      options: further ones of `emit_pipeline`.

    Returns:
      The pipeline, a function of references with ``allocations=``, and the function of the same
      references that returns these: a tuple of `BufferedRef`, types for `run_scoped`. The contents
      of a result's block before its first step are arbitrary. A partial block of an operand keeps
      what its buffer had outside of the array.

    Raises the errors of `emit_pipeline` and `BufferedRef.create`.

    >>> import numpy as np
    >>> from primax_core import ShapeDtypeStruct
    >>> from primax_kernels import ANY, BlockSpec, pallas_call, run_scoped
    >>> def double(x, out):
    ...     out[...] = 2 * x[...]
    >>> part = BlockSpec((2,), lambda i: (i,))
    >>> pipeline, buffers = emit_pipeline_with_allocations(
    ...     double, grid=3, in_specs=[part], out_specs=[part]
    ... )
    >>> def kernel(x, out):
    ...     run_scoped(lambda own: pipeline(x, out, allocations=own), buffers(x, out))
    >>> there = BlockSpec(memory_space=ANY)
    >>> call = pallas_call(
    ...     kernel, ShapeDtypeStruct((6,), np.float32), in_specs=[there], out_specs=there
    ... )
    >>> call(np.arange(6, dtype=np.float32))
    Array([ 0.,  2.,  4.,  6.,  8., 10.], dtype=float32)
    """
    in_specs, out_specs = _sequence(in_specs), _sequence(out_specs)
    pipeline = emit_pipeline(body, grid=grid, in_specs=in_specs, out_specs=out_specs, **options)

    def make_allocations(*refs: Any) -> tuple[BufferedRef, ...]:
        if len(refs) != len(in_specs) + len(out_specs):
            raise ValueError(
                f"the pipeline has {len(in_specs)} in_specs and {len(out_specs)} out_specs, but "
                f"got {len(refs)} references"
            )
        inputs = [BufferedRef.input(s, r.dtype) for s, r in zip(in_specs, refs)]
        outputs = [BufferedRef.output(s, r.dtype) for s, r in zip(out_specs, refs[len(inputs) :])]
        return (*inputs, *outputs)

    return pipeline, make_allocations


def emit_pipeline_with_async_prefetch(
    body: Callable[..., None], *, grid: Grid, in_specs: Sequence[Any] = (),
    out_specs: Sequence[Any] = (), mesh: TensorCoreMesh | None = None, **options: Any,
) -> tuple[Callable[..., None], Callable[..., tuple[BufferedRef, ...]]]:  # fmt: skip
    """A pipeline whose first copies may be started before it runs.

    Args:
      body, grid, in_specs, out_specs: see `emit_pipeline`. Blocks have sizes or ``None``.
      mesh: the cores of the kernel; their memory is that of the kernel here.
      options: further ones of `emit_pipeline`.

    Returns:
      The pipeline, and a function of the references to its operands. It reserves buffers, starts
      the copies of the first blocks and returns the buffers: pass them to the pipeline by
      ``allocations=``. What the kernel does in between overlaps with the copies on a TPU.

    Raises the errors of `emit_pipeline` and `BufferedRef.create`.
    """
    in_specs, out_specs = _sequence(in_specs), _sequence(out_specs)
    whole = emit_pipeline(body, grid=grid, in_specs=in_specs, out_specs=out_specs, **options)
    if options.get("core_axis") is not None or options.get("core_axis_name") is not None:
        raise NotImplementedError(
            "emit_pipeline_with_async_prefetch starts with the first step of the grid, which cores "
            "that divide it do not share: use emit_pipeline"
        )
    rank = len(grid_tuple(grid))

    def async_prefetch(*inputs: Any) -> tuple[BufferedRef, ...]:
        if len(inputs) != len(in_specs):
            raise ValueError(
                f"the pipeline has {len(in_specs)} in_specs, but got {len(inputs)} references"
            )
        buffers = []
        for spec, ref in zip(in_specs, inputs):
            types = BufferedRef.input(spec, ref.dtype, prefetched_count=1)
            own = tree_util.tree_map(get_global, types, is_leaf=_is_type).initialize_slots()
            own.copy_in(ref, [np.int32(0)] * rank)
            buffers.append(own.advance_copy_in_slot())
        return tuple(buffers)

    def pipeline(*refs: Any, allocations: Any = None, **kwargs: Any) -> None:
        if allocations is None or len(allocations) == len(refs):
            whole(*refs, allocations=allocations, **kwargs)
            return
        outs = [BufferedRef.output(s, r.dtype) for s, r in zip(out_specs, refs[len(in_specs) :])]
        run_scoped(lambda *own: whole(*refs, allocations=(*allocations, *own), **kwargs), *outs)

    return pipeline, async_prefetch


def _is_type(x: Any) -> bool:
    return hasattr(x, "get_ref_aval")


def _on_copies(
    body: Callable[..., None], position: Sequence[PipelineStep], blocks: Sequence[Any], n: int,
    scratches: Sequence[Any],
) -> None:  # fmt: skip
    """Call a function with copies of blocks, and write the copies after the first ``n`` back."""
    copies = [new_ref(_read(*block)) for block in blocks[:n]]
    copies += [new_ref(_former(*block)) for block in blocks[n:]]
    body(*position, *copies, *scratches)
    for copy in copies[:n]:
        free_ref(copy)
    for copy, block in list(zip(copies, blocks))[n:]:
        _write(*block, freeze(copy))


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
