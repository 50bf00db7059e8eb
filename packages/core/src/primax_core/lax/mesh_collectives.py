"""Lowering of collectives over the axes of a mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive
from .._lower.axes import channel, matrix
from .._lower.context import context, hlo, i32, ir, tensor_type, type_of
from .._trace.core import typeof
from .arithmetic import add, max, min, mul
from .collective_exchanges import all_to_all_p, ppermute_p
from .collective_gathers import all_gather_p, reduce_scatter_p
from .collective_reductions import pmax_p, pmin_p, psum_p
from .conversion import convert_element_type
from .dynamic_slicing import dynamic_index_in_dim
from .named_axes import axis_index_p
from .ragged_exchange import ragged_all_to_all_p, received
from .reshaping import expand_dims, reshape, squeeze


def emit_all_reduce(
    ctx: Any, x: Any, names: Sequence[Any], op: Callable[[Any, Any], Any], index_groups: Any = None
) -> Any:
    """The values at all positions along some axes of the mesh, combined.

    Args:
      op: the combination of two values, in operations of ``lax``.
      index_groups: positions that are combined with each other; ``None`` for all.
    """
    dtype = ctx.in_avals[0].dtype
    op_with_body = hlo.AllReduceOp(
        [x.type], [x], matrix(ctx.axes.groups(names, index_groups)), channel_handle=channel(),
        use_global_device_ids=True,
    )  # fmt: skip
    _combine(ctx, op_with_body, op, dtype)
    return op_with_body.results[0]


def _combine(ctx: Any, op_with_body: Any, op: Callable[[Any, Any], Any], dtype: Any) -> None:
    """The body of a collective that reduces."""
    scalar = ShapedArray((), dtype)
    block = op_with_body.computation.blocks.append(type_of(scalar), type_of(scalar))
    with ir.InsertionPoint(block):
        hlo.return_([ctx.call(op, *block.arguments, in_avals=[scalar, scalar])])


def _reduction(op: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def emit(ctx, x, *, axes, axis_index_groups):
        return emit_all_reduce(ctx, x, axes, op, axis_index_groups)

    return emit


def _ppermute(ctx, x, *, axis_name, perm):
    pairs = matrix(ctx.axes.pairs(axis_name, perm))
    return hlo.CollectivePermuteOp(x, pairs, channel_handle=channel()).result


def _reshaped(x: Any, shape: Sequence[int], dtype: Any) -> Any:
    return hlo.reshape(tensor_type(tuple(shape), dtype), x)


def _all_gather(
    ctx, x, *, axis_name, all_gather_dimension, axis_index_groups, axis_size, tiled, **_
):
    (aval,), (out,) = ctx.in_avals, ctx.out_avals
    if not tiled:
        d = all_gather_dimension
        x = _reshaped(x, (*aval.shape[:d], 1, *aval.shape[d:]), out.dtype)
    return hlo.AllGatherOp(
        [type_of(out)], [x], all_gather_dimension,
        matrix(ctx.axes.groups(axis_name, axis_index_groups)), channel_handle=channel(),
        use_global_device_ids=True,
    ).results[0]  # fmt: skip


def _reduce_scatter(
    ctx, x, *, axis_name, scatter_dimension, axis_index_groups, axis_size, tiled, **_
):
    (aval,), (out,) = ctx.in_avals, ctx.out_avals
    shape = list(aval.shape)
    shape[scatter_dimension] //= axis_size
    op_with_body = hlo.ReduceScatterOp(
        tensor_type(tuple(shape), out.dtype), x, scatter_dimension,
        matrix(ctx.axes.groups(axis_name, axis_index_groups)), channel_handle=channel(),
        use_global_device_ids=True,
    )  # fmt: skip
    _combine(ctx, op_with_body, add, out.dtype)
    return op_with_body.result if tiled else _reshaped(op_with_body.result, out.shape, out.dtype)


def _all_to_all(
    ctx, x, *, axis_name, split_axis, concat_axis, axis_index_groups, axis_size, tiled, **_
):
    (aval,), (out,) = ctx.in_avals, ctx.out_avals
    split, concat = split_axis, concat_axis
    if not tiled:
        # The parts are joined along a new axis of size 1. The split axis has size 1 afterwards.
        concat += concat > split
        split += concat <= split
        x = _reshaped(x, (*aval.shape[:concat], 1, *aval.shape[concat:]), out.dtype)
    y = hlo.AllToAllOp(
        [x], split, concat, axis_size, matrix(ctx.axes.groups(axis_name, axis_index_groups)),
        channel_handle=channel(),
    ).results[0]  # fmt: skip
    return y if tiled else _reshaped(y, out.shape, out.dtype)


def _axis_index(ctx, *, axis_name):
    return ctx.axes.index(axis_name)


def _ragged_all_to_all(ctx, *values, axis_name, axis_index_groups):
    groups = ctx.axes.groups(axis_name, axis_index_groups)
    if ctx.platform == "cpu":
        return _exchanged_by_gather(ctx, values, axis_name, axis_index_groups, groups.shape[1])
    config = {
        "channel_id": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1),
        "replica_groups": matrix(groups),
    }
    op = hlo.CustomCallOp(
        [type_of(ctx.out_avals[0])], list(values),
        call_target_name=ir.StringAttr.get("ragged_all_to_all"), api_version=i32(4),
        backend_config=ir.DictAttr.get(config, context=context),
    )  # fmt: skip
    return op.result


def _exchanged_by_gather(ctx, values, axis_name, axis_index_groups, n):
    """The exchange on CPU, where XLA has no such operation: each position gathers all operands."""

    def exchange(operand, output, input_offsets, send_sizes, output_offsets, _):
        def of_all(x):
            return all_gather_p.bind(
                x, all_gather_dimension=0, axis_name=axis_name, axis_size=n, tiled=False,
                axis_index_groups=axis_index_groups,
            )  # fmt: skip

        here = _position(ctx.axes, axis_name, axis_index_groups)

        def to_here(x):
            x = convert_element_type(of_all(x), np.int32)
            x = reshape(x, (n, n, typeof(x).shape[1] // n))
            return dynamic_index_in_dim(x, here, 1)

        indices = (to_here(x) for x in (input_offsets, send_sizes, output_offsets))
        return squeeze(received(of_all(operand), expand_dims(output, (0,)), *indices), (0,))

    return ctx.call(exchange, *values)


def _position(axes: Any, axis_name: tuple[Any, ...], index_groups: Any) -> Any:
    """The position along some axes, or in the own group of positions."""
    index: Any = np.int32(0)
    for name in axis_name:
        here = axis_index_p.bind(axis_name=name)
        index = add(mul(index, np.int32(axes.size((name,)))), here)
    if index_groups is None:
        return index
    table = np.zeros(axes.size(axis_name), np.int32)
    for group in index_groups:
        table[list(group)] = range(len(group))
    return dynamic_index_in_dim(table, index, 0, keepdims=False)


EMITTED: Final[dict[Primitive, Callable[..., Any]]] = {
    psum_p: _reduction(add),
    pmax_p: _reduction(max),
    pmin_p: _reduction(min),
    ppermute_p: _ppermute,
    all_gather_p: _all_gather,
    reduce_scatter_p: _reduce_scatter,
    all_to_all_p: _all_to_all,
    axis_index_p: _axis_index,
    ragged_all_to_all_p: _ragged_all_to_all,
}
"""The lowering of each collective, ``(ctx, *values, **params) -> value``."""
