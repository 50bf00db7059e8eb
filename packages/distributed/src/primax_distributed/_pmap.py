"""`pmap`: a function mapped over an array axis, one index on each device."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from primax_core import (
    devices as all_devices,
    jit,
    lax,
    process_count,
    process_index,
    tree_util,
)
from primax_core.extend import typeof
from primax_core.extend.runtime import api_boundary_of
from primax_core.extend.traces import current_trace
from primax_core.typing import PyTree

from ._mesh import Mesh
from ._shard_map import shard_map
from ._spec import PartitionSpec

_UNNAMED: Final = "_pmap_axis"
"""The axis of functions that do not name it."""


def pmap(
    fun: Callable[..., Any],
    axis_name: Hashable = None,
    *,
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Any:
    """Map a function over an array axis, with one index of the axis on each device.

    In several processes, each passes the part of the axis that its devices have, and gets such
    parts of the results; collectives span all devices. Under a transformation or `jit` the axis is
    mapped over the devices of one process if they suffice.

    The function sees the values of one index, as under `vmap`. It is jitted, and written with
    :func:`shard_map` over a mesh of one axis; new programs use that function, or `jit` with
    shardings.

    Args:
      fun: the function. Its positional arguments and their number are fixed; keyword arguments are
        mapped over their first axis.
      axis_name: the name of the axis for collectives, such as `lax.psum`.
      in_axes: the mapped axis of each positional argument: a number for all, or a tuple that is a
        prefix of the arguments; `None` for values that all devices get.
      out_axes: the position of the mapped axis in the results, a prefix of their tree; `None` for
        results that are equal on all devices.
      static_broadcasted_argnums: positions of hashable arguments that are compiled in.
      devices: the devices, of which the first are used; by default those of `backend`.
      backend: a platform, instead of `devices`.
      axis_size: the size of the mapped axis, which is checked.
      donate_argnums: positions of arguments whose buffers are donated.

    Returns:
      A function whose results are divided along the mapped axis.

    Raises:
      TypeError: if an axis is neither a number nor `None`.
      ValueError: if no argument has a mapped axis, mapped axes differ in size, there are fewer
        devices than indices, or inside of another `pmap` or `shard_map`.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(np.array([4.0])).tolist()
    [1.0]
    """
    if not callable(fun):
        raise TypeError(f"pmap requires a callable, got {fun!r} of type {type(fun).__name__}")
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        _check_axes(what, axes)
    static = _positions(static_broadcasted_argnums)
    mapped = _Mapped(
        fun, _UNNAMED if axis_name is None else axis_name, in_axes, out_axes, static, devices,
        backend, axis_size,
    )  # fmt: skip

    def whole(*args: Any, **kwargs: Any) -> Any:
        return mapped(args, kwargs)

    whole.__name__ = whole.__qualname__ = getattr(fun, "__name__", type(fun).__name__)
    whole.__doc__ = fun.__doc__
    compiled = jit(whole, static_argnums=static, donate_argnums=_positions(donate_argnums))
    return _over_processes(whole, mapped, compiled)


_INITIALIZE: Final = f"{__package__}.processes._initialize"


def _over_processes(whole: Callable[..., Any], mapped: _Mapped, compiled: Any) -> Any:
    """The function that takes the part of this process, if the devices are of several ones."""

    @api_boundary_of(mapped.fun, "{} mapped over the devices of all processes.")
    def with_others(*args: Any, **kwargs: Any) -> Any:
        devices = mapped.chosen_devices()
        if current_trace() is not None or len({d.process_index for d in devices}) == 1:
            return compiled(*args, **kwargs)
        from . import _pmap_processes

        return _pmap_processes.call(mapped, compiled, mapped.mesh_of(devices), args, kwargs)

    @functools.wraps(whole)
    def call(*args: Any, **kwargs: Any) -> Any:
        module = sys.modules.get(_INITIALIZE)  # not loaded without other processes
        if module is None or module.joined() is None:
            return compiled(*args, **kwargs)
        return with_others(*args, **kwargs)

    for name in ("clear_cache", "eval_shape", "lower", "trace"):
        setattr(call, name, getattr(compiled, name))
    return call


def _positions(argnums: int | Iterable[int]) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def _check_axes(what: str, axes: Any) -> None:
    for axis in tree_util.tree_leaves(axes, is_leaf=lambda x: x is None):
        if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
            raise TypeError(
                f"{what} of pmap is a number, None, or a tree of them, got {axis!r} of type "
                f"{type(axis).__name__}"
            )


class _Mapped:
    """The arguments of `pmap`."""

    def __init__(
        self, fun: Callable[..., Any], axis_name: Hashable, in_axes: Any, out_axes: Any,
        static: tuple[int, ...], devices: Sequence[Any] | None, backend: str | None,
        axis_size: int | None,
    ) -> None:  # fmt: skip
        self.fun = fun
        self.axis_name = axis_name
        self.in_axes, self.out_axes = in_axes, out_axes
        self.static = static
        self.devices = devices
        self.backend = backend
        self.axis_size = axis_size

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        static = self.static_of(args)
        open_args = tuple([a for i, a in enumerate(args) if i not in static])
        leaves, tree = tree_util.tree_flatten((open_args, kwargs))
        axes = self.axes_of(args, static, kwargs)
        ranks = [typeof(x).ndim for x in leaves]
        axes = [a if a is None else self.from_front(a, n) for a, n in zip(axes, ranks)]
        size = self.size([(typeof(x).shape, a) for x, a in zip(leaves, axes) if a is not None])
        results: dict[str, Any] = {}

        def local(*xs: Any) -> Any:
            parts = [x if a is None else lax.squeeze(x, (a,)) for x, a in zip(xs, axes)]
            rest, named = tree_util.tree_unflatten(tree, parts)
            values = iter(rest)
            out = self.fun(
                *[a if i in static else next(values) for i, a in enumerate(args)], **named
            )
            outs, results["tree"] = tree_util.tree_flatten(out)
            results["axes"] = self.axes_of_results(out)
            pairs = [*zip(outs, results["axes"])]
            divided = [lax.expand_dims(x, (0,)) for x, a in pairs if a is not None]
            return divided, [x for x, a in pairs if a is None]

        specs = tuple([
            PartitionSpec() if a is None else PartitionSpec(*[None] * a, self.axis_name)
            for a in axes
        ])  # fmt: skip
        divided, equal = shard_map(
            local, mesh=self.mesh(size), in_specs=specs,
            out_specs=(PartitionSpec(self.axis_name), PartitionSpec()), check_vma=False,
        )(*leaves)  # fmt: skip
        parts, wholes = iter(divided), iter(equal)
        outs = [next(wholes) if a is None else _at(next(parts), a) for a in results["axes"]]
        return tree_util.tree_unflatten(results["tree"], outs)

    @property
    def name(self) -> str:
        """The name of the function, for messages."""
        return _name(self.fun)

    def static_of(self, args: tuple[Any, ...]) -> set[int]:
        """The positions of static arguments, counted from the front."""
        return {i % len(args) for i in self.static if -len(args) <= i < len(args)}

    def chosen_devices(self) -> list[Any]:
        """All devices over which an axis may be mapped."""
        return all_devices(self.backend) if self.devices is None else [*self.devices]

    def axes_of(
        self, args: tuple[Any, ...], static: set[int], kwargs: dict[str, Any]
    ) -> list[int | None]:
        """The mapped axis of each leaf of the arguments."""
        axes = self.in_axes
        if isinstance(axes, (tuple, list)):
            if len(axes) != len(args):
                raise ValueError(
                    f"in_axes of pmap has {len(axes)} entries, but {_name(self.fun)} was called "
                    f"with {len(args)} positional arguments"
                )
            axes = tuple([a for i, a in enumerate(axes) if i not in static])
        rest = tuple([a for i, a in enumerate(args) if i not in static])
        listed = _broadcast("in_axes", axes, rest)
        return [*listed, *[0] * len(tree_util.tree_leaves(kwargs))]

    def axes_of_results(self, out: Any) -> list[int | None]:
        """The mapped axis of each leaf of the results."""
        return _broadcast("out_axes", self.out_axes, out)

    def from_front(self, axis: int, rank: int) -> int:
        """An axis of an argument, counted from the front."""
        if not -rank <= axis < rank:
            raise ValueError(
                f"in_axes of pmap contains the axis {axis}, but the argument of {_name(self.fun)} "
                f"has rank {rank}" + (": pass None for scalars" if rank == 0 else "")
            )
        return axis % rank

    def size(self, shapes: Sequence[tuple[tuple[int, ...], int]]) -> int:
        """The size of the mapped axis, from the shapes of the arguments and their mapped axes.

        Raises:
          ValueError: if there is none, sizes differ, or there are not enough devices.
        """
        if not shapes:
            raise ValueError(
                f"pmap of {_name(self.fun)} requires an argument with a mapped axis: pass an array "
                "whose entry of in_axes is a number"
            )
        examples = {shape[a]: (shape, a) for shape, a in reversed(shapes)}
        different = sorted(examples)
        if len(different) > 1:
            first, second = (examples[n] for n in different[:2])
            raise ValueError(
                f"pmap of {_name(self.fun)} got mapped axes of different sizes: {different}; among "
                f"them are axis {first[1]} of an argument of shape {first[0]}, and axis "
                f"{second[1]} of one of shape {second[0]}"
            )
        if self.axis_size is not None and self.axis_size != different[0]:
            raise ValueError(
                f"axis_size of pmap is {self.axis_size}, but the mapped axes of the arguments of "
                f"{_name(self.fun)} have the size {different[0]}"
            )
        return different[0]

    def mesh(self, size: int) -> Mesh:
        """The devices, one for each index."""
        present = self.chosen_devices()
        if self.devices is None and process_count() > 1:
            here = [d for d in present if d.process_index == process_index()]
            present = here if size <= len(here) else present
        if size > len(present):
            raise ValueError(
                f"pmap of {_name(self.fun)} maps an axis of size {size}, but there are "
                f"{len(present)} devices: use vmap, or a vmap inside of pmap for groups of indices"
            )
        return self.mesh_of(present[:size])

    def mesh_of(self, devices: Sequence[Any]) -> Mesh:
        """The mesh of some devices."""
        return Mesh(np.array(devices, object), (self.axis_name,))


def _broadcast(what: str, axes: Any, tree: Any) -> list[int | None]:
    if axes is None or isinstance(axes, int):
        return [axes] * len(tree_util.tree_leaves(tree))
    # None in the axes is a leaf, but None in the tree is a node without leaves.
    marked = tree_util.tree_map(_marked, axes, is_leaf=lambda x: x is None)
    try:
        listed = tree_util.tree_leaves(tree_util.tree_broadcast(marked, tree))
    except ValueError as error:
        of = "the arguments" if what == "in_axes" else "the results"
        raise ValueError(f"{what} of pmap is not a prefix of {of}: {error}") from None
    return [None if axis is _UNMAPPED else axis for axis in listed]


_UNMAPPED: Final = object()


def _marked(axis: Any) -> Any:
    return _UNMAPPED if axis is None else axis


def _at(x: Any, axis: int) -> Any:
    """The array with its first axis at another position."""
    rank = typeof(x).ndim
    if not -rank <= axis < rank:
        raise ValueError(f"out_axes of pmap contains {axis}, but a result has {rank} axes")
    order = [*range(1, rank)]
    order.insert(axis % rank, 0)
    return x if axis % rank == 0 else lax.transpose(x, order)


def _name(fun: Any) -> str:
    return getattr(fun, "__name__", None) or repr(fun)
