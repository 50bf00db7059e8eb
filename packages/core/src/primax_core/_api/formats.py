"""Formats that ``jit`` is told for arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base import pytree
from .._base.tree_prefix import flatten_axes
from .._ir.avals import ShapedArray
from .._runtime.array import ArrayImpl, Spec
from .._runtime.layouts import Format, Layout, canonical, row_major
from .._runtime.sharding import Sharding
from .shape_struct import ShapeDtypeStruct


class Wanted:
    """What the user said of a program's arguments and results.

    Attributes:
      in_layouts, out_layouts: canonical layouts; ``given`` says which arguments have one.
      out_kinds: kinds of memory, ``None`` for the usual one.
    """

    __slots__ = ("given", "in_layouts", "out_layouts", "out_kinds")

    def __init__(
        self, in_shardings: Any, out_shardings: Any, in_tree: Any, out_tree: Any,
        in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
    ):  # fmt: skip
        ins: list[Any] = [None] * len(in_avals)
        if in_shardings is not None:
            args = in_tree.children()[0]
            ins[: args.num_leaves] = flatten_axes("jit in_shardings", args, in_shardings)
        self.given: list[bool] = [isinstance(f, Format) and f.layout is not None for f in ins]
        self.in_layouts = [_layout(f, a) for f, a in zip(ins, in_avals)]
        outs: list[Any] = [None] * len(out_avals)
        if out_shardings is not None:
            outs = flatten_axes("jit out_shardings", out_tree, out_shardings)
        self.out_layouts = [_layout(f, a) for f, a in zip(outs, out_avals)]
        self.out_kinds = [_kind(f) for f in outs]

    def for_arguments(self, specs: Sequence[Spec]) -> list[Any]:
        """The layouts in which the program reads arguments of these types.

        Raises:
          ValueError: if an array that is bound to its place lies differently.
        """
        found = []
        for spec, given, layout in zip(specs, self.given, self.in_layouts):
            differs = given and layout is not Layout.AUTO and spec.layout != layout
            if differs and spec.committed:
                ndim = spec.aval.ndim
                raise ValueError(
                    "Layout passed to jit does not match the layout on the respective arg. Got "
                    f"jit layout: {layout or row_major(ndim)},\narg layout: "
                    f"{spec.layout or row_major(ndim)} for arg type: "
                    f"{spec.aval.strip_weak_type()}. Move the array with device_put, or leave the "
                    "layout to the argument."
                )
            found.append(layout if given else spec.layout)
        return found


def wanted_formats(
    in_shardings: Any, out_shardings: Any, in_tree: Any, out_tree: Any,
    in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
) -> Wanted | None:  # fmt: skip
    """What the user said, ``None`` if that is nothing about layouts and memory."""
    if in_shardings is None and out_shardings is None:
        return None
    wanted = Wanted(in_shardings, out_shardings, in_tree, out_tree, in_avals, out_avals)
    if any(wanted.given) or any(wanted.out_layouts) or any(wanted.out_kinds):
        return wanted
    return None


def shardings_in(tree: Any) -> list[Sharding]:
    """The shardings in a tree of shardings, formats and others."""
    leaves = pytree.tree_leaves(tree, is_leaf=lambda x: x is None)
    found = [x.sharding if isinstance(x, Format) else x for x in leaves]
    return [x for x in found if isinstance(x, Sharding)]


def layout_of(x: Any) -> Any:
    """The canonical layout of an argument: an array, its type, or something else."""
    if type(x) is ArrayImpl:
        return x._spec.layout
    if type(x) is ShapeDtypeStruct and x._layout is not None:
        return canonical(x._layout, x.shape)
    return None


def _layout(given: Any, aval: ShapedArray) -> Any:
    return canonical(given.layout, aval.shape) if isinstance(given, Format) else None


def _kind(given: Any) -> str | None:
    sharding = given.sharding if isinstance(given, Format) else given
    if isinstance(sharding, Sharding) and not sharding._on_default_memory():
        return sharding.memory_kind
    return None
