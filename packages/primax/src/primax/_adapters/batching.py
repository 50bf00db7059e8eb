"""Batching rules in the reference's conventions, of which there are three.

They differ in what they are told of the mapped axis: nothing (``primitive_batchers``), its size and
name (``axis_primitive_batchers``), or all of it (``fancy_primitive_batchers``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn

import primax_core.extend as core
from primax_core import lax
from primax_core.extend import Axis, Primitive, move_axis, typeof

from .tables import Rule, RuleTable

not_mapped: Final = None
"""The mapped axis of what is the same in all examples."""


class AxisData(NamedTuple):
    """What there is to know of a mapped axis.

    Attributes:
      name: its name, or ``None``.
      size: how many examples there are.
      spmd_name: the mesh axes that it is spread over, or ``None``.
      explicit_mesh_axis: those of them that types show; ``None`` without meshes.
    """

    name: Any
    size: Any
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


def axis_of(data: Any) -> Axis:
    """The core's description of a mapped axis."""
    return data if isinstance(data, Axis) else Axis(data.size, data.name, data.spmd_name)


def _size(args: Sequence[Any], dims: Sequence[int | None]) -> int:
    for x, d in zip(args, dims):
        if d is not None:
            return typeof(x).shape[d]
    raise ValueError("a batching rule was called with nothing that is mapped")


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
"""``rule(args, dims, **params) -> (out, out_dim)``; the dim of what is not mapped is ``None``."""

axis_primitive_batchers: Final = RuleTable(core.batch, _of_axis, _as_axis)
"""``rule(axis_size, axis_name, trace_type, args, dims, **params) -> (out, out_dim)``."""

fancy_primitive_batchers: Final = RuleTable(core.batch, _of_fancy, _as_fancy)
"""``rule(axis_data, args, dims, **params) -> (out, out_dim)``, see :class:`AxisData`."""


# Rules of families


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """``x`` repeated ``sz`` times along a new axis."""
    return move_axis(x, None, axis, sz)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """The batch with its mapped axis first; what is not mapped is repeated."""
    return move_axis(x, bdim, 0, size)


def moveaxis(x: Any, src: int | None, dst: int) -> Any:
    """The array with an axis moved elsewhere; what is not mapped stays as it is."""
    return x if src is None else move_axis(x, src, dst % typeof(x).ndim, 0)


def defvectorized(prim: Primitive) -> None:
    """Let a primitive that computes each element by itself, of operands of one shape, be mapped."""
    primitive_batchers[prim] = partial(_elementwise, prim)


def defbroadcasting(prim: Primitive) -> None:
    """The same, for operands of one shape or of none."""
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
    """A batch of scalars with axes of size one, to meet batches of arrays."""
    shape = typeof(x).shape
    return lax.reshape(x, (shape[0], *(1,) * (rank + 1 - len(shape)), *shape[1:]))


def _repeated(x: Any, shape: tuple[int, ...]) -> Any:
    """The array with its axes of size one repeated, and a scalar repeated to the whole shape."""
    own = typeof(x).shape
    if own == shape:
        return x
    return lax.broadcast_in_dim(x, shape, range(len(own)))


def defreducer(prim: Primitive, ident: Any = None) -> None:
    """Let a primitive that reduces the axes in its parameter ``axes`` be mapped."""
    primitive_batchers[prim] = partial(_reducer, prim)


def _reducer(
    prim: Primitive, args: Sequence[Any], dims: Sequence[int | None], axes: Any, **params: Any
) -> tuple[Any, Any]:
    (dim,) = set(dims)
    if dim is None:
        raise ValueError("a batching rule was called with nothing that is mapped")
    moved = tuple(a + (a >= dim) for a in axes)
    out_dim = dim - sum(a < dim for a in moved)
    out = prim.bind(*args, axes=moved, **params)
    return (out, [out_dim] * len(out)) if prim.multiple_results else (out, out_dim)


# Programs on batches


class ZeroIfMapped:
    """Asks for a result's mapped axis to be the first, if the result is mapped."""

    def __repr__(self) -> str:
        return "zero_if_mapped"


zero_if_mapped: Final = ZeroIfMapped()


def batch_jaxpr_axes(
    closed_jaxpr: core.Jaxpr,
    axis_data: Any,
    in_axes: Sequence[int | None],
    out_axes_dest: Sequence[Any],
) -> tuple[core.Jaxpr, list[bool]]:
    """A program on batches, and which of its results are mapped.

    Args:
      axis_data: the mapped axis.
      in_axes: the mapped axis of each argument, ``None`` for those that are not mapped.
      out_axes_dest: where each result's is wanted: an axis, ``zero_if_mapped``, or ``None`` for a
        result that must not be mapped.

    Raises:
      ValueError: if a result is mapped that must not be.
    """
    axis, dims = axis_of(axis_data), tuple(in_axes)
    _, found = core.batch_jaxpr(closed_jaxpr, dims, axis)
    wanted: list[int | None] = []
    for d, w in zip(found, out_axes_dest, strict=True):
        if w is None and d is not None:
            raise ValueError("vmap has mapped output but out_axes is None")
        wanted.append((None if d is None else 0) if isinstance(w, ZeroIfMapped) else w)
    program, dims_out = core.batch_jaxpr(closed_jaxpr, dims, axis, wanted)
    return program, [d is not None for d in dims_out]


def batch_of(
    fun: Callable[..., Sequence[Any]],
    axis_data: Any,
    in_dims: Sequence[int | None],
    args: Sequence[Any],
) -> tuple[list[Any], list[int | None]]:
    """Run a function of flat values on batches: results and their mapped axes."""
    outs, dims = core.batch_of(fun, args, in_dims, axis_of(axis_data))
    return list(outs), list(dims)


def batch_subtrace(
    fun: Any, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False
) -> tuple[Any, Callable[[], list[int | None]]]:
    """A wrapped function of flat values as one on batches.

    Args:
      fun: a ``WrappedFun``.
      gen_static_args: values that it is called with before the examples.
      use_eq_store, unk_names: taken for compatibility.

    Returns:
      A ``WrappedFun`` that is called with a tag (which is not looked at), the mapped axis, the
      mapped axes of the values and the values; and a function that tells, afterwards, the mapped
      axes of the results.
    """
    from .wrapped import wrap_init

    found: list[int | None] = []
    called = partial(fun.call_wrapped, *gen_static_args)

    def batched(tag: Any, axis_data: Any, in_dims: Sequence[int | None], *values: Any) -> list[Any]:
        dims = in_dims() if callable(in_dims) else in_dims
        outs, found[:] = batch_of(called, axis_data, dims, values)
        return outs

    return wrap_init(batched), lambda: list(found)


# Batches that are no arrays


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None,
) -> NoReturn:
    """Let ``vmap`` split values of a class that is no pytree of arrays; not supported.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(
        f"vmap maps pytrees of arrays, and cannot be told how to split a {data_type.__name__}: "
        "register the class as a pytree (primax.tree_util.register_pytree_node) whose leaves have "
        "the mapped axis"
    )


def unregister_vmappable(data_type: type) -> NoReturn:
    """Take back what ``register_vmappable`` did, of which there is nothing.

    Raises:
      KeyError: always.
    """
    raise KeyError(data_type)
