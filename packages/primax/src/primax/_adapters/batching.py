"""Batching rules in the reference's three conventions.

They differ in the information about the mapped axis: none (``primitive_batchers``), its size and
name (``axis_primitive_batchers``), or all of it (``fancy_primitive_batchers``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import primax_core.extend as core
from primax_core import lax
from primax_core.extend import Axis, Primitive, move_axis, typeof
from primax_core.typing import ArrayLike

from .tables import Rule, RuleTable

not_mapped: Final = None
"""The mapped axis of an unbatched value."""


class AxisData(NamedTuple):
    """Description of a mapped axis.

    Attributes:
      name: the axis name, or ``None``.
      size: the number of examples.
      spmd_name: the mesh axes that the axis is sharded over, or ``None``.
      explicit_mesh_axis: those mesh axes that appear in types; ``None`` without meshes.
    """

    name: Any
    size: Any
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


def axis_of(data: Any) -> Axis:
    """Convert to the core's description of a mapped axis."""
    return data if isinstance(data, Axis) else Axis(data.size, data.name, data.spmd_name)


def _size(args: Sequence[Any], dims: Sequence[int | None]) -> int:
    for x, d in zip(args, dims):
        if d is not None:
            return typeof(x).shape[d]
    raise ValueError("a batching rule was called without mapped operands")


def _of_plain(rule: Rule) -> Rule:
    return lambda axis, args, dims, **params: rule(args, dims, **params)


def _as_plain(rule: Rule) -> Rule:
    def batcher(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return rule(Axis(_size(args, dims)), list(args), list(dims), **params)

    return batcher


def _of_axis(rule: Rule) -> Rule:
    return lambda axis, args, dims, **params: rule(axis.size, axis.name, None, args, dims, **params)


def _as_axis(rule: Rule) -> Rule:
    def batcher(
        axis_size: int, axis_name: Any, trace_type: Any, args: Sequence[Any],
        dims: Sequence[int | None], **params: Any,
    ) -> Any:  # fmt: skip
        return rule(Axis(axis_size, axis_name), list(args), list(dims), **params)

    return batcher


def _of_fancy(rule: Rule) -> Rule:
    return lambda axis, args, dims, **params: rule(
        AxisData(axis.name, axis.size, axis.spmd_name), args, dims, **params
    )


def _as_fancy(rule: Rule) -> Rule:
    def batcher(
        axis_data: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> Any:
        return rule(axis_of(axis_data), list(args), list(dims), **params)

    return batcher


primitive_batchers: Final = RuleTable(core.batch, _of_plain, _as_plain)
"""``rule(args, dims, **params) -> (out, out_dim)``; the dim of an unbatched value is ``None``."""

axis_primitive_batchers: Final = RuleTable(core.batch, _of_axis, _as_axis)
"""``rule(axis_size, axis_name, trace_type, args, dims, **params) -> (out, out_dim)``."""

fancy_primitive_batchers: Final = RuleTable(core.batch, _of_fancy, _as_fancy)
"""``rule(axis_data, args, dims, **params) -> (out, out_dim)``, see :class:`AxisData`."""


# Rules for groups of primitives


def broadcast(x: ArrayLike, sz: int, axis: int, mesh_axis: Hashable = None) -> Any:
    """Repeat ``x`` ``sz`` times along a new axis."""
    return move_axis(x, None, axis, sz)


def bdim_at_front(x: ArrayLike, bdim: int | None, size: int, mesh_axis: Hashable = None) -> Any:
    """Move the mapped axis to the front; broadcast an unbatched value."""
    return move_axis(x, bdim, 0, size)


def moveaxis(x: ArrayLike, src: int | None, dst: int) -> Any:
    """Move an axis; return an unbatched value unchanged."""
    return x if src is None else move_axis(x, src, dst % typeof(x).ndim, 0)


def defvectorized(prim: Primitive) -> None:
    """Batch an elementwise primitive whose operands have equal shapes."""
    primitive_batchers[prim] = partial(_elementwise, prim)


def defbroadcasting(prim: Primitive) -> None:
    """Batch an elementwise primitive whose operands have equal shapes or are scalars."""
    primitive_batchers[prim] = partial(_elementwise, prim)


def _elementwise(
    prim: Primitive, args: Sequence[Any], dims: Sequence[int | None], **params: Any
) -> tuple[Any, Any]:
    mapped = [(typeof(x).shape, d) for x, d in zip(args, dims) if d is not None]
    shape, dim = mapped[0]
    if len(mapped) == len(args) and all(m == (shape, dim) for m in mapped):
        out = prim.bind(*args, **params)
    else:
        size, dim = shape[dim], 0
        rank = max(len(typeof(x).shape) - (d is not None) for x, d in zip(args, dims))
        full = [
            x if d is None and not typeof(x).shape else _ranked(move_axis(x, d, 0, size), rank)
            for x, d in zip(args, dims)
        ]
        example = max((typeof(x).shape for x in full), key=lambda s: (len(s), max(s, default=0)))
        out = prim.bind(*(_repeated(x, example) for x in full), **params)
    return (out, [dim] * len(out)) if prim.multiple_results else (out, dim)


def _ranked(x: Any, rank: int) -> Any:
    """Append axes of size one to a batch of scalars, to match the rank of the other operands."""
    shape = typeof(x).shape
    return lax.reshape(x, (shape[0], *(1,) * (rank + 1 - len(shape)), *shape[1:]))


def _repeated(x: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast axes of size one, and scalars, to the whole shape."""
    own = typeof(x).shape
    if own == shape:
        return x
    return lax.broadcast_in_dim(x, shape, range(len(own)))


def defreducer(prim: Primitive, ident: Any = None) -> None:
    """Batch a reduction over the axes in the parameter ``axes``."""
    primitive_batchers[prim] = partial(_reducer, prim)


def _reducer(
    prim: Primitive, args: Sequence[Any], dims: Sequence[int | None], axes: Any, **params: Any
) -> tuple[Any, Any]:
    (dim,) = set(dims)
    if dim is None:
        raise ValueError("a batching rule was called without mapped operands")
    moved = tuple(a + (a >= dim) for a in axes)
    out_dim = dim - sum(a < dim for a in moved)
    out = prim.bind(*args, axes=moved, **params)
    return (out, [out_dim] * len(out)) if prim.multiple_results else (out, out_dim)


# Batched jaxprs


class ZeroIfMapped:
    """Marker for an output axis: 0 if the result is mapped, otherwise unmapped."""

    def __repr__(self) -> str:
        return "zero_if_mapped"


zero_if_mapped: Final = ZeroIfMapped()


def batch_jaxpr_axes(
    closed_jaxpr: core.Jaxpr,
    axis_data: AxisData,
    in_axes: Sequence[int | None],
    out_axes_dest: Sequence[Any],
) -> tuple[core.Jaxpr, list[bool]]:
    """Batch a jaxpr; also return which of its results are mapped.

    Args:
      axis_data: the mapped axis.
      in_axes: the mapped axis of each argument, ``None`` for unmapped arguments.
      out_axes_dest: the required axis of each result: an axis, ``zero_if_mapped``, or ``None`` for
        a result that must not be mapped.

    Raises:
      ValueError: if a result that must not be mapped is mapped.
    """
    axis, dims = axis_of(axis_data), tuple(in_axes)
    _, out_dims = core.batch_jaxpr(closed_jaxpr, dims, axis)
    out_axes: list[int | None] = []
    for d, w in zip(out_dims, out_axes_dest, strict=True):
        if w is None and d is not None:
            raise ValueError("vmap has mapped output but out_axes is None")
        out_axes.append((None if d is None else 0) if isinstance(w, ZeroIfMapped) else w)
    batched, dims_out = core.batch_jaxpr(closed_jaxpr, dims, axis, out_axes)
    return batched, [d is not None for d in dims_out]


def batch_of(
    fun: Callable[..., Sequence[Any]],
    axis_data: Any,
    in_dims: Sequence[int | None],
    args: Sequence[Any],
) -> tuple[list[Any], list[int | None]]:
    """Run a function of flat values on batches; return the results and their mapped axes."""
    outs, dims = core.batch_of(fun, args, in_dims, axis_of(axis_data))
    return list(outs), list(dims)


def batch_subtrace(
    fun: Any, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False
) -> tuple[Any, Callable[[], list[int | None]]]:
    """Batch a wrapped function of flat values.

    Args:
      fun: a ``WrappedFun``.
      gen_static_args: leading arguments that are not batched.
      use_eq_store, unk_names: accepted for compatibility.

    Returns:
      A ``WrappedFun`` whose arguments are a tag (ignored), the mapped axis, the mapped axes of the
      values, and the values; and a function that returns, after the call, the mapped axes of the
      results.
    """
    from .wrapped import wrap_init

    out_dims: list[int | None] = []
    called = partial(fun.call_wrapped, *gen_static_args)

    def batched(tag: Any, axis_data: Any, in_dims: Sequence[int | None], *values: Any) -> list[Any]:
        dims = in_dims() if callable(in_dims) else in_dims
        outs, out_dims[:] = batch_of(called, axis_data, dims, values)
        return outs

    return wrap_init(batched), lambda: list(out_dims)
