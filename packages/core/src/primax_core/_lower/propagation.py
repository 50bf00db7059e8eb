"""Shardings that the partitioner chooses for values inside a module, before it is compiled.

Shardy's propagation runs on a copy of the module. Loaded on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from .._runtime.sharding import Sharding
from .._runtime.tilings import Tiling
from .context import context, hlo, i32, sdy

_MARK: Final = "inspect_sharding"
_INDEX: Final = "inspection"


def mark(value: ir.Value[Any], index: int) -> None:
    """Mark a value, at the current insertion point."""
    op = hlo.CustomCallOp(
        [],
        [value],
        call_target_name=ir.StringAttr.get(_MARK),
        has_side_effect=ir.BoolAttr.get(True),
    )
    op.operation.attributes[_INDEX] = i32(index)


def inspect(module: ir.Module, everywhere: Sharding, callbacks: list[Callable[..., Any]]) -> None:
    """Call the function of each marked value with its sharding, and remove the marks.

    Args:
      everywhere: the replicated sharding over the devices of the module.
      callbacks: one for each index.
    """
    copy, meshes = propagated(module)
    for marked in list(marks(copy, _INDEX)):
        index = ir.IntegerAttr(marked.attributes[_INDEX]).value
        value = marked.operands[0]
        callbacks[index](sharding_of(value, meshes, everywhere))
    for marked in list(marks(module.operation, _INDEX)):
        marked.erase()


def propagated(module: ir.Module) -> tuple[Any, dict[str, Any]]:
    """A copy of a module with the shardings that the partitioner chooses, and its meshes."""
    copy = module.operation.clone()
    pipeline = "builtin.module(inline,symbol-dce,sdy-lift-inlined-meshes,sdy-propagation-pipeline)"
    PassManager.parse(pipeline, context).run(copy)
    meshes = {
        op.attributes["sym_name"].value: op.attributes["mesh"]
        for op in copy.regions[0].blocks[0].operations
        if op.operation.name == "sdy.mesh"
    }
    return copy, meshes


def marks(op: Any, name: str) -> Iterator[Any]:
    """The custom calls in an operation that have an attribute."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                operation = inner.operation
                if name in operation.attributes and operation.name == "stablehlo.custom_call":
                    yield operation
                yield from marks(operation, name)


def sharding_of(value: ir.Value[Any], meshes: dict[str, Any], everywhere: Sharding) -> Sharding:
    """The sharding of a value of a module after propagation.

    Args:
      everywhere: the replicated sharding over the devices of the module.
    """
    ndim = len(ir.RankedTensorType(value.type).shape)
    attribute = _attribute_of(value)
    if attribute is None:
        return everywhere
    dialect = sdy()
    sharding = dialect.TensorShardingAttr(attribute)
    name = ir.FlatSymbolRefAttr(sharding.mesh_or_ref).value
    axes = dialect.MeshAttr(meshes[name]).axes
    named = [(dialect.MeshAxisAttr(a).name, dialect.MeshAxisAttr(a).size) for a in axes]
    sizes, groups = _with_parts(named, sharding, ndim)
    return everywhere._from_xla(Tiling.along_mesh(sizes, groups))


def _with_parts(
    axes: list[tuple[str, int]], sharding: Any, ndim: int
) -> tuple[list[int], list[list[int]]]:
    """Sizes of a mesh in which every axis divides an array as a whole, and these axes.

    Shardy divides axes of a mesh: ``"x":(2)4`` is the part of size 4 after one of size 2.
    """
    dialect = sdy()
    dims = [dialect.DimensionShardingAttr(d) for d in sharding.dimension_shardings]
    references = [[_reference(dialect.AxisRefAttr(a)) for a in d.axes] for d in dims]
    cuts: dict[str, set[int]] = {name: {1, size} for name, size in axes}
    for name, part in (r for group in references for r in group):
        if part is not None:
            cuts[name] |= {part[0], part[0] * part[1]}
    sizes: list[int] = []
    position: dict[tuple[str, int], int] = {}
    for name, _ in axes:
        edges = sorted(cuts[name])
        for low, high in pairwise(edges):
            position[name, low] = len(sizes)
            sizes.append(high // low)
    groups: list[list[int]] = []
    whole = dict(axes)
    for group in references:
        chosen = []
        for name, part in group:
            low, high = (1, whole[name]) if part is None else (part[0], part[0] * part[1])
            chosen += [i for (n, start), i in position.items() if n == name and low <= start < high]
        groups.append(chosen)
    return sizes, groups or [[] for _ in range(ndim)]


def _reference(axis: Any) -> tuple[str, tuple[int, int] | None]:
    part = axis.sub_axis_info
    if part is None:
        return axis.name, None
    info = sdy().SubAxisInfoAttr(part)
    return axis.name, (info.pre_size, info.size)


def _attribute_of(value: ir.Value[Any]) -> Any:
    """Shardy's attribute of a value, or ``None``."""
    if isinstance(value.owner, ir.Block):
        argument = ir.BlockArgument(value)
        owner = value.owner.owner
        if owner.operation.name == "stablehlo.while":  # its results are those of the iterations
            return _attribute_of(owner.operation.results[argument.arg_number])
        if owner.operation.name != "func.func" or "arg_attrs" not in owner.operation.attributes:
            return None
        entry = ir.ArrayAttr(owner.operation.attributes["arg_attrs"])[argument.arg_number]
        entry = ir.DictAttr(entry)
        return entry["sdy.sharding"] if "sdy.sharding" in entry else None
    owner = value.owner
    if owner.name in ("sdy.reshard", "sdy.sharding_constraint"):
        return owner.attributes["sharding"]
    if "sdy.sharding" not in owner.attributes:
        return None
    attribute = owner.attributes["sdy.sharding"]
    number = ir.OpResult(value).result_number
    return sdy().TensorShardingPerValueAttr(attribute).shardings[number]
