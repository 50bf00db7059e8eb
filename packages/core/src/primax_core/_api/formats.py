"""Formats requested by the arguments ``in_shardings`` and ``out_shardings`` of ``jit``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._base import pytree
from .._base.operand_trees import numbered
from .._base.tree_prefix import flatten_axes
from .._ir.avals import ShapedArray
from .._runtime.array import ArrayImpl, Spec
from .._runtime.layouts import Format, Layout, canonical, row_major
from .._runtime.sharding import Sharding, SingleDeviceSharding, as_sharding
from .shape_struct import ShapeDtypeStruct


class ArgumentSpec(NamedTuple):
    """The aval and the placement of an argument that need not exist."""

    aval: ShapedArray
    sharding: Sharding
    committed: bool


class RequestedFormats:
    """Requested layouts and memory kinds of a function's arguments and results.

    Attributes:
      in_layouts, out_layouts: canonical layouts; ``specified`` marks the arguments with a layout.
      out_kinds: memory kinds; ``None`` is the default memory kind.
      in_shardings: shardings over several devices; ``None`` leaves one open.
      out_shardings: shardings over several devices or a mesh; ``None`` leaves one open.
    """

    __slots__ = (
        "specified", "in_layouts", "out_layouts", "out_kinds", "in_shardings", "out_shardings",
    )  # fmt: skip

    def __init__(
        self, in_shardings: Any, out_shardings: Any, in_tree: Any, out_tree: Any,
        in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
    ):  # fmt: skip
        ins: list[Any] = [None] * len(in_avals)
        if in_shardings is not None:
            args = in_tree.children()[0]
            ins[: args.num_leaves] = flatten_axes("jit in_shardings", args, in_shardings)
        self.in_shardings = [over_devices(f) for f in ins]
        self.specified: list[bool] = [isinstance(f, Format) and f.layout is not None for f in ins]
        self.in_layouts = [_layout(f, a) for f, a in zip(ins, in_avals)]
        outs: list[Any] = [None] * len(out_avals)
        if out_shardings is not None:
            outs = flatten_axes("jit out_shardings", out_tree, out_shardings)
        self.out_layouts = [_layout(f, a) for f, a in zip(outs, out_avals)]
        self.out_shardings = [over_mesh(f) for f in outs]
        if any(self.out_shardings):
            self._check_results(out_tree, out_avals)
        self.out_kinds = [_kind(f) for f in outs]

    @property
    def has_layouts(self) -> bool:
        """True if a layout or a memory kind is requested."""
        return any(self.specified) or any(self.out_layouts) or any(self.out_kinds)

    def _check_results(self, out_tree: Any, out_avals: Sequence[ShapedArray]) -> None:
        from .._lower.shardings import check_divides  # loaded on first use

        for path, i in pytree.tree_leaves_with_path(numbered(out_tree)):
            sharding = self.out_shardings[i]
            if sharding is not None:
                name = f"result{pytree.keystr(path)}"
                check_divides(sharding, out_avals[i].shape, name)
                if sharding._summed and not getattr(out_avals[i].placement, "is_partial", False):
                    raise ValueError(
                        f"out_shardings of jit has {sharding} for {name}, which is whole: return "
                        "reshard(x, spec) from the function"
                    )

    def check_shardings(self, specs: Sequence[Spec | ArgumentSpec], names: Sequence[str]) -> None:
        """Raise ``ValueError`` for a committed argument with another sharding than requested."""
        for i, (spec, requested) in enumerate(zip(specs, self.in_shardings)):
            if requested is not None and (spec.committed or requested._summed):
                if not spec.sharding.is_equivalent_to(requested, spec.aval.ndim):
                    name = names[i] if i < len(names) else f"number {i}"
                    raise ValueError(
                        "Sharding passed to jit does not match the sharding on the respective "
                        f"arg. Got jit sharding: {requested},\narg sharding: {spec.sharding} for "
                        f"argument {name} of type {spec.aval.strip_weak_type()}. Move the array "
                        "with device_put, or leave its sharding out of in_shardings."
                    )

    def for_arguments(self, specs: Sequence[Spec]) -> list[Any]:
        """The layouts in which the executable reads arguments with these specs.

        Raises:
          ValueError: if a committed array has another layout.
        """
        layouts = []
        for spec, specified, layout in zip(specs, self.specified, self.in_layouts):
            differs = specified and layout is not Layout.AUTO and spec.layout != layout
            if differs and spec.committed:
                ndim = spec.aval.ndim
                raise ValueError(
                    "Layout passed to jit does not match the layout on the respective arg. Got "
                    f"jit layout: {layout or row_major(ndim)},\narg layout: "
                    f"{spec.layout or row_major(ndim)} for arg type: "
                    f"{spec.aval.strip_weak_type()}. Move the array with device_put, or leave the "
                    "layout to the argument."
                )
            layouts.append(layout if specified else spec.layout)
        return layouts


def requested_formats(
    in_shardings: Any, out_shardings: Any, in_tree: Any, out_tree: Any,
    in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
) -> RequestedFormats | None:  # fmt: skip
    """The requested formats; ``None`` for one device without layouts and memory kinds."""
    if in_shardings is None and out_shardings is None:
        return None
    requested = RequestedFormats(
        in_shardings, out_shardings, in_tree, out_tree, in_avals, out_avals
    )
    shardings = any(requested.in_shardings) or any(requested.out_shardings)
    return requested if shardings or requested.has_layouts else None


def shardings_in(tree: Any) -> list[Sharding]:
    """The shardings in a tree of shardings, formats and others."""
    leaves = pytree.tree_leaves(tree, is_leaf=lambda x: x is None)
    leaf_shardings = [x.sharding if isinstance(x, Format) else x for x in leaves]
    return [x for x in map(as_sharding, leaf_shardings) if isinstance(x, Sharding)]


def layout_of(x: Any) -> Any:
    """The canonical layout of an argument: an array, its type, or another value."""
    if isinstance(x, ArrayImpl):
        return x._spec.layout
    if type(x) is ShapeDtypeStruct and x._layout is not None:
        return canonical(x._layout, x.shape)
    return None


def _layout(requested: Any, aval: ShapedArray) -> Any:
    return canonical(requested.layout, aval.shape) if isinstance(requested, Format) else None


def sharding_of(x: Any) -> Sharding | None:
    """The sharding to which an argument is committed: an array, or its type."""
    if isinstance(x, ArrayImpl):
        return x._spec.sharding if x._spec.committed else None
    return x.sharding if type(x) is ShapeDtypeStruct else None


def on_devices(tree: Any, specs: Sequence[Spec | ArgumentSpec]) -> Any:
    """A tree of shardings and formats, in which abstract shardings have devices.

    These are the devices of the first committed argument over a mesh of the same axes, or of the
    mesh in effect. Without any, for a lowering that needs no devices, a sharding remains abstract.
    """

    def resolve(requested: Any) -> Any:
        of_format = isinstance(requested, Format)
        sharding = requested.sharding if of_format else requested
        if not isinstance(sharding, Sharding) or not sharding._is_abstract:
            return requested
        concrete = sharding._over_devices_of([s.sharding for s in specs if s.committed])
        return Format(requested.layout, concrete) if of_format else concrete

    return pytree.tree_map(resolve, tree, is_leaf=lambda x: x is None)


def over_devices(requested: Any) -> Sharding | None:
    """The requested sharding if it is one over several devices."""
    sharding = as_sharding(requested.sharding if isinstance(requested, Format) else requested)
    return sharding if isinstance(sharding, Sharding) and sharding.num_devices > 1 else None


def over_mesh(requested: Any) -> Sharding | None:
    """The requested sharding if it is one over several devices, or over a mesh of one."""
    sharding = as_sharding(requested.sharding if isinstance(requested, Format) else requested)
    if not isinstance(sharding, Sharding) or isinstance(sharding, SingleDeviceSharding):
        return None
    return sharding


def _kind(requested: Any) -> str | None:
    sharding = as_sharding(requested.sharding if isinstance(requested, Format) else requested)
    if isinstance(sharding, Sharding) and not sharding._on_default_memory():
        return sharding.memory_kind
    return None
