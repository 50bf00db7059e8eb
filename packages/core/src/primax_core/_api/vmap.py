"""``vmap``: vectorization of a function of one example."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from typing import Any, Final, ParamSpec, Protocol, TypeVar

import numpy as np

from .._base import pytree
from .._base.operand_trees import axes_of_parts, flatten_operands, is_axis_spec, numbered
from .._base.pytree import PyTree
from .._base.source import api_boundary_of
from .._engine.results import as_result
from .._ir.dtypes import float0
from .._ir.placement import is_placed
from .._trace.core import typeof
from .._trace.reference_ops import references
from .._transform.batching import Axis, batch_with_aux, divided, move_axis, sum_axis
from ..lax.conversion import convert_element_type
from .arguments import check_callable, debug_info, leaf_names

tree_flatten, tree_unflatten = flatten_operands, pytree.tree_unflatten

_P = ParamSpec("_P")
_R = TypeVar("_R")


class MappedClasses(Protocol):
    """Classes whose values are batches that functions of their own split and join."""

    specs: Container[type]
    """Classes that stand in ``in_axes`` and ``out_axes`` for an axis."""

    def is_leaf(self, node: Any) -> bool:
        """True if ``node`` is a value of one of the classes."""

    def pack(self, value: Any, axis: Any) -> tuple[Any, int | None]:
        """An argument and its axis: a value of the classes waits, unmapped, for :meth:`split`."""

    def count(self, axis_size: Any) -> int | None:
        """The number of examples."""

    def split(self, values: Sequence[Any], axis_size: Any) -> list[Any]:
        """Replace the values that wait by one example; called while the function is traced."""

    def join(self, outs: Sequence[Any], out_axes: Sequence[Any], axis_size: Any) -> list[Any]:
        """Replace examples among results by batches, each packed for :meth:`unpack`."""

    def unpack(self, value: Any) -> tuple[bool, Any]:
        """A flag that is true for a packed batch, and the batch."""


class _Other:
    """The classes of values other than arrays that ``vmap`` maps; the facade sets them."""

    __slots__ = ("classes",)

    def __init__(self) -> None:
        self.classes: MappedClasses | None = None


other: Final = _Other()


def vmap(
    fun: Callable[_P, _R],
    in_axes: int | PyTree = 0,
    out_axes: int | PyTree = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | None = None,
    sum_match: bool = False,
) -> Callable[_P, _R]:
    """A function that applies ``fun`` to all slices of its arguments at once.

    Each operation of ``fun`` is replaced by its batched form, so ``vmap`` of a matrix-vector
    product is one matrix product, without a loop.

    Args:
      fun: a function of one example: arrays, numbers and pytrees of them.
      in_axes: the mapped axis of each argument: an integer, ``None`` for an unmapped argument, or
        a tuple of these or of trees of these that are prefixes of the arguments. Negative axes
        count from the end. Keyword arguments are always mapped over their first axis.
      out_axes: the position of the mapped axis in the results; ``None`` for results that do not
        depend on mapped arguments.
      axis_name: a name for collectives such as :func:`~primax_core.lax.psum` inside ``fun``.
      axis_size: number of slices, required if no argument is mapped.
      spmd_axis_name: mesh axes that shard the mapped axis.
      sum_match: sum mapped results for which ``out_axes`` is ``None``, instead of raising an
        error.

    Returns:
      A function with the signature of ``fun``, whose mapped arguments and results have one more
      axis.

    Raises:
      ValueError: if sizes differ, axes are out of range or no argument is mapped, or a result
        with ``out_axes=None`` is mapped.
      TypeError: if ``fun`` is not callable or ``in_axes`` is of another type.

    It can be nested, and composed with ``jit`` and ``grad`` in any order: ``vmap(grad(f))`` gives
    one gradient for each example.

    >>> import numpy as np
    >>> vmap(lambda x, y: x * y, in_axes=(0, None))(np.array([1.0, 2.0]), 3.0).tolist()
    [3.0, 6.0]
    >>> from primax_core import grad
    >>> vmap(grad(lambda x: x * x))(np.array([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if type(in_axes) not in (int, tuple, type(None)) and not _is_position(in_axes):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes}."
        )
    _check_axis_leaves(in_axes, "in_axes")
    _check_axis_leaves(out_axes, "out_axes")

    @api_boundary_of(fun, "{} mapped over axes of its arguments.")
    def vmapped(*args, **kwargs):
        if type(in_axes) is tuple and len(in_axes) != len(args):
            raise _wrong_length(in_axes, args, kwargs)
        own = other.classes
        leaves, in_tree = tree_flatten((args, kwargs), None if own is None else own.is_leaf)
        if not leaves and axis_size is None:
            raise ValueError(
                "vmap wrapped function must be passed at least one argument containing an array or "
                f"axis_size must be specified, got empty *args={args} and **kwargs={kwargs}"
            )
        dims = axes_of_parts(in_tree, flat_axes(in_axes, in_tree, args, kwargs))
        count = axis_size
        if own is not None:
            pairs = [own.pack(x, d) for x, d in zip(leaves, dims)]
            leaves, dims = [x for x, _ in pairs], [d for _, d in pairs]
            count = own.count(axis_size)
        dims = [
            _canonical_in(x, d, fun, args, kwargs, i) for i, (x, d) in enumerate(zip(leaves, dims))
        ]
        size = mapped_size(leaves, dims, count, fun, args, kwargs)
        if references.ops.loaded:
            references.ops.check_aliases(leaves, (), lambda: debug_info(fun, "vmap", args, kwargs))
        axis = Axis(size, axis_name, spmd_axis_name, _division(leaves, dims))
        if axis.division is not None:
            leaves = [x if d is None else divided(x, d, axis) for x, d in zip(leaves, dims)]

        def flat(*flat_args):
            if own is None:
                positional, keywords = tree_unflatten(in_tree, flat_args)
                return tree_flatten(fun(*positional, **keywords))
            total = size if axis_size is None else axis_size
            positional, keywords = tree_unflatten(in_tree, own.split(flat_args, total))
            outs, out_tree = tree_flatten(fun(*positional, **keywords), own.is_leaf)
            return own.join(outs, flat_out_axes(out_axes, out_tree), total), out_tree

        outs, out_dims, out_tree = batch_with_aux(flat, leaves, dims, axis, fun)
        requested = axes_of_parts(out_tree, flat_out_axes(out_axes, out_tree), True)
        return tree_unflatten(
            out_tree,
            [
                _move_result_axis(o, d, w, axis.size, i, out_tree, sum_match)
                for i, (o, d, w) in enumerate(zip(outs, out_dims, requested))
            ],
        )

    return vmapped


def _division(leaves: list[Any], dims: list[Any]) -> Any:
    """The placement of a vector that is divided as the mapped axes; ``None`` if none is divided.

    Raises:
      ValueError: if they are divided differently.
    """
    division = None
    for x, d in zip(leaves, dims):
        aval = None if d is None else typeof(x)
        if not is_placed(aval):
            continue
        own = aval.placement.only_axis(d)
        if own is not None and division not in (None, own):
            sizes = " and ".join(p.text((aval.shape[d],)) for p in (division, own))
            raise ValueError(
                f"the mapped axes of vmap's arguments are divided differently, as {sizes}: divide "
                "them equally with reshard(x, spec)"
            )
        division = division or own
    return division


def _wrong_length(in_axes: tuple, args: tuple, kwargs: dict) -> ValueError:
    note = (
        " Note that in_axes only names positional arguments: keyword arguments are always "
        "mapped over their leading axis."
        if kwargs
        else ""
    )
    return ValueError(
        "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
        "positional arguments passed to the function, but got "
        f"len(in_axes)={len(in_axes)}, len(args)={len(args)}.{note}"
    )


def _is_position(x: Any) -> bool:
    if other.classes is not None and type(x) in other.classes.specs:
        return True
    if isinstance(x, (int, np.integer)):
        return not isinstance(x, bool)
    return is_axis_spec(x)


def _check_axis_leaves(axes: Any, what: str) -> None:
    for leaf in tree_flatten(axes)[0]:
        if not _is_position(leaf):
            raise TypeError(
                f"vmap {what} must be an int, None, or (nested) container with those types as "
                f"leaves, but got {axes} with a leaf of type {type(leaf).__name__}."
            )


def flat_axes(in_axes: Any, in_tree, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> list[Any]:
    """One axis or ``None`` for every leaf of ``(args, kwargs)``."""
    args_tree, kwargs_tree = in_tree.children()
    if type(in_axes) is int:
        return [in_axes] * args_tree.num_leaves + [0] * kwargs_tree.num_leaves
    args_axes = pytree.flatten_axes("vmap in_axes", args_tree, in_axes)
    return args_axes + [0] * kwargs_tree.num_leaves


def flat_out_axes(out_axes: Any, out_tree) -> list[Any]:
    """One axis or ``None`` for every leaf of the result."""
    if type(out_axes) is int or out_axes is None:
        return [out_axes] * out_tree.num_leaves
    return pytree.flatten_axes("vmap out_axes", out_tree, out_axes)


def _canonical_in(x, dim, fun, args, kwargs, i: int):
    if dim is None:
        return None
    rank = typeof(x).ndim
    if not -rank <= dim < rank:
        name = _leaf_name(fun, args, kwargs, i)
        need = dim + 1 if dim >= 0 else -dim
        raise ValueError(
            f"vmap was requested to map its argument along axis {dim}, which implies that its rank "
            f"should be at least {need}, but is only {rank} (its shape is {typeof(x).shape}); it "
            f"is argument {name}"
        )
    return int(dim) % rank


def _leaf_name(fun, args, kwargs, i: int) -> str:
    names = leaf_names(fun, args, {})
    if i < len(names):
        return names[i]
    keys = leaf_names(fun, (), kwargs)
    j = i - len(names)
    return f"kwargs[{keys[j]!r}]" if j < len(keys) else f"number {i}"


def mapped_size(leaves, dims, axis_size, fun, args, kwargs) -> int:
    """The common size of all mapped axes."""
    sizes = [typeof(x).shape[d] for x, d in zip(leaves, dims) if d is not None]
    if axis_size is not None:
        sizes = [axis_size, *sizes]
    if not sizes:
        raise ValueError(
            "vmap must have at least one non-None value in in_axes or axis_size must be specified"
        )
    if len(set(sizes)) == 1:
        return sizes[0]
    lines = []
    if axis_size is not None:
        lines.append(f"  * the `axis_size` argument was {axis_size};")
    for i, (x, d) in enumerate(zip(leaves, dims)):
        if d is not None:
            aval = typeof(x)
            lines.append(
                f"  * one axis had size {aval.shape[d]}: axis {d} of argument "
                f"{_leaf_name(fun, args, kwargs, i)} of type {aval.strip_weak_type()};"
            )
    raise ValueError(
        "vmap got inconsistent sizes for array axes to be mapped:\n" + "\n".join(lines)
    )


def _move_result_axis(out, dim, target, size: int, i: int, tree, summed: bool):
    """A result with its mapped axis at the requested position."""
    if other.classes is not None:
        packed, batch = other.classes.unpack(out)
        if packed:
            return batch
    if target is None:
        if dim is not None and summed:
            if typeof(out).dtype == bool:
                out = convert_element_type(out, int)
            return as_result(sum_axis(out, dim))
        if dim is not None:
            paths = pytree.tree_leaves_with_path(numbered(tree))
            raise ValueError(
                f"at vmap out_axes{pytree.keystr(paths[i][0])}, got axis spec None but output was "
                f"batched on axis {dim}; out_axes=None is only for results that do not depend on "
                "mapped arguments"
            )
        return as_result(out)
    rank = typeof(out).ndim + (dim is None)
    if not -rank <= target < rank:
        raise ValueError(f"axis {target} is out of bounds for array of dimension {rank}")
    target = int(target) % rank
    if dim is None and isinstance(out, np.ndarray) and out.dtype == float0:
        return np.zeros((*out.shape[:target], size, *out.shape[target:]), float0)
    return as_result(move_axis(out, dim, target, size))
