"""The primitive `custom_partitioning`, and the calls of its callbacks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import ShapeDtypeStruct, tree_util
from primax_core.extend import (
    Axis,
    Jaxpr,
    Primitive,
    abstract,
    batch,
    batch_jaxpr,
    effects,
    jvp,
    lower,
    lowering,
    move_axis,
    partition,
    place,
    run_jaxprs,
    transpose,
)
from primax_core.extend.runtime import Sharding, TiledSharding, Tiling
from primax_core.extend.traces import trace_function

from ._manual_region import Region
from ._mesh import Mesh
from ._named import NamedSharding
from ._sharding_rule import SdyShardingRule, axis_rule, parse_rule, with_leading
from ._shardy_text import sharding_text
from ._spec import PartitionSpec, entry_of

Names = tuple[Hashable, ...]
Entries = list[Names]

custom_partitioning_p: Final = Primitive(
    "custom_partitioning", multiple_results=True, cache_on=lambda params: params["call"].cache
)


class Division(NamedTuple):
    """The arguments of `def_partition`, and the structure of a call.

    Attributes:
      static: the static arguments.
      in_tree, out_tree: the structure of the other arguments and of the result.
      name: the name of the function.
    """

    partition: Callable[..., Any]
    infer: Callable[..., Any] | None
    propagate_user: Callable[..., Any] | None
    rule: SdyShardingRule | Callable[..., Any] | None
    decode: bool
    static: tuple[Any, ...]
    in_tree: Any
    out_tree: Any
    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Level(NamedTuple):
    """A mapped axis. Operands have their mapped axes in front, those of outer levels first.

    Attributes:
      operands: for each operand, whether it has the axis.
      spmd_names: the mesh axes that `vmap` requires for it.
    """

    axis: Axis
    operands: tuple[bool, ...]
    spmd_names: Names


@custom_partitioning_p.rule(abstract)
def _abstract(*avals, call, division, levels):  # type: ignore[no-untyped-def]
    return call.out_avals


@custom_partitioning_p.rule(place)
def _place(abstract, in_avals, params):  # type: ignore[no-untyped-def]
    return params["call"].out_avals, None


@custom_partitioning_p.rule(effects)
def _effects(*avals, call, division, levels):  # type: ignore[no-untyped-def]
    return call.effects


@custom_partitioning_p.rule(lower)
def _lower(ctx, *values, call, division, levels):  # type: ignore[no-untyped-def]
    return ctx.call_jaxpr(call, division.name, values)


@custom_partitioning_p.rule(run_jaxprs)
def _run_jaxprs(run, args, *, call, division, levels):  # type: ignore[no-untyped-def]
    return run(call, args)


for _kind in (jvp, transpose):
    custom_partitioning_p.unsupported(
        _kind,
        "a function with custom_partitioning has no derivative, because the computation on the "
        "parts has none: wrap it in custom_vjp (or custom_jvp) and define the derivative",
    )


@custom_partitioning_p.rule(batch)
def _batch(axis, args, dims, *, call, division, levels):  # type: ignore[no-untyped-def]
    mask = tuple([d is not None for d in dims])
    names = axis.spmd_name
    spmd = () if names is None else names if isinstance(names, tuple) else (names,)
    args = [x if d is None else move_axis(x, d, 0, axis.size) for x, d in zip(args, dims)]
    in_dims = tuple([0 if m else None for m in mask])
    batched, _ = batch_jaxpr(call, in_dims, axis, (0,) * len(call.outvars))
    results = custom_partitioning_p.bind(
        *args, call=batched, division=division, levels=(Level(axis, mask, spmd), *levels)
    )
    return results, [0] * len(results)


@custom_partitioning_p.rule(partition)
def _partition(eqn, everywhere):  # type: ignore[no-untyped-def]
    call = _Call(eqn, everywhere)
    return lowering.Partitioning(call.rule(), call.partition, call.infer)


class _Call:
    """One operation in a program on the devices of a mesh."""

    def __init__(self, eqn: Any, everywhere: Sharding) -> None:
        self.division: Division = eqn.params["division"]
        self.levels: tuple[Level, ...] = eqn.params["levels"]
        named = everywhere.mesh if isinstance(everywhere, NamedSharding) else None
        if not isinstance(named, Mesh):
            named = Mesh(np.array(everywhere._devices, object), ("devices",))
        self.mesh = named
        self.everywhere = NamedSharding(self.mesh, PartitionSpec())
        mapped = [
            [k for k, level in enumerate(self.levels) if level.operands[i]]
            for i in range(len(eqn.invars))
        ]
        everything = list(range(len(self.levels)))
        self.ins = [_Value(v.aval, ks, f"argument {i}") for i, (v, ks) in
                    enumerate(zip(eqn.invars, mapped))]  # fmt: skip
        self.outs = [_Value(v.aval, everything, f"result {i}") for i, v in enumerate(eqn.outvars)]
        for value in (*self.ins, *self.outs):
            if lowering.ir.RankedTensorType(lowering.type_of(value.aval)).rank != value.aval.ndim:
                raise TypeError(
                    f"{self._name} has {value.what} of dtype {value.aval.dtype}, which cannot be "
                    "divided: convert keys by random.key_data and random.wrap_key_data"
                )

    # Shardy's rule

    def rule(self) -> Any:
        """The correspondence of axes, or `None`."""
        division = self.division
        rule: Any = division.rule
        if callable(rule):
            types = [[lowering.tensor_type(v.shape, v.aval.dtype) for v in values]
                     for values in (self.ins, self.outs)]  # fmt: skip
            rule = rule(*division.static, self.mesh, *types)
            if rule is not None and not isinstance(rule, SdyShardingRule):
                rule = parse_rule(rule)
        if rule is None:
            return None
        try:
            own = axis_rule(rule, [v.shape for v in self.ins], [v.shape for v in self.outs])
        except ValueError as error:
            raise ValueError(f"custom_partitioning of {division.name}: {error}") from None
        sizes = [level.axis.size for level in self.levels]
        return with_leading(own, sizes, [v.levels for v in self.ins], len(self.outs))

    # Callbacks

    def infer(self, operands: Sequence[Sharding], results: Sequence[Sharding]) -> list[Sharding]:
        """The shardings of the results of an operation without a rule."""
        division = self.division
        leading = self._leading(operands, results)
        args, outs = self._structs(operands, results, leading)
        static = division.static
        if division.infer is not None:
            name = "infer_sharding_from_operands"
            shardings = division.infer(*static, self.mesh, args, outs)
        elif division.propagate_user is not None:
            name = "propagate_user_sharding"
            shardings = division.propagate_user(*static, self.mesh, outs)
        else:
            return list(results)
        entries = self._entries(shardings, self.outs, name, self.mesh)
        leading = _unused(leading, entries)
        return [
            NamedSharding(self.mesh, v.whole_spec(e, leading)) for v, e in zip(self.outs, entries)
        ]

    def partition(self, operands: Sequence[Sharding], results: Sequence[Sharding]) -> Any:
        """The part of one device."""
        division = self.division
        leading = self._leading(operands, results)
        args, outs = self._structs(operands, results, leading)
        returned = division.partition(*division.static, self.mesh, args, outs)
        if not isinstance(returned, (tuple, list)) or len(returned) != 4:
            raise TypeError(
                f"`partition` of {self._name} must return (mesh, lower_fn, result_shardings, "
                f"arg_shardings), got {returned!r}"
            )
        mesh, lower_fn, result_shardings, arg_shardings = returned
        self._check_mesh(mesh)
        if not callable(lower_fn):
            raise TypeError(
                f"`partition` of {self._name} must return a function of the parts as its second "
                f"value, got {lower_fn!r}"
            )
        in_entries = self._entries(arg_shardings, self.ins, "partition", mesh)
        out_entries = self._entries(result_shardings, self.outs, "partition", mesh)
        leading = _unused(leading, [*in_entries, *out_entries])
        if mesh is not self.mesh:
            leading = [tuple([n for n in names if n in mesh._sizes]) for names in leading]
        jaxpr = self._local(lower_fn, mesh, in_entries, out_entries, leading)

        def texts(values: Sequence[_Value], entries: Sequence[Entries]) -> list[str]:
            specs = [v.whole_spec(e, leading) for v, e in zip(values, entries)]
            return [sharding_text(mesh, s, v.aval.ndim) for v, s in zip(values, specs)]

        ins, outs = texts(self.ins, in_entries), texts(self.outs, out_entries)
        chosen = [
            sharding_text(
                self.mesh, PartitionSpec(*map(entry_of, self._entries_of(s, v))), v.aval.ndim
            )
            for v, s in zip(self.outs, results)
        ]
        behind = [None if c == o else c for c, o in zip(chosen, outs)]
        return lowering.PartitionedBody(jaxpr, dict(mesh._sizes), ins, outs, behind)

    def _local(
        self, lower_fn: Callable[..., Any], mesh: Mesh, in_entries: Sequence[Entries],
        out_entries: Sequence[Entries], leading: Sequence[Names],
    ) -> Jaxpr:  # fmt: skip
        """The computation on the parts of one device."""
        division, sizes = self.division, mesh._sizes
        region = Region(mesh.abstract_mesh, frozenset(mesh.axis_names), False)
        parts = [
            ShapeDtypeStruct(v.part_shape(e, sizes), v.aval.dtype)
            for v, e in zip(self.ins, in_entries)
        ]
        with region.entered():
            args = tree_util.tree_unflatten(division.in_tree, parts)
            traced = trace_function(lower_fn, args, {}, "custom_partitioning")
            if traced.consts:
                raise TypeError(
                    f"the function of the parts that `partition` of {self._name} returns closes "
                    "over a traced value: pass it as an argument of the function"
                )
            jaxpr = traced.jaxpr
            self._check_results(traced, out_entries, sizes)
            for k in reversed(range(len(self.levels))):
                level = self.levels[k]
                size = level.axis.size // _size(leading[k], sizes)
                in_dims = tuple([0 if m else None for m in level.operands])
                axis = Axis(size, level.axis.name, None)
                jaxpr, _ = batch_jaxpr(jaxpr, in_dims, axis, (0,) * len(jaxpr.outvars))
        return jaxpr

    def _check_results(self, traced: Any, entries: Sequence[Entries], sizes: Any) -> None:
        what = f"the function of the parts that `partition` of {self._name} returns"
        if traced.out_tree not in _accepted_trees(self.division.out_tree):
            raise TypeError(
                f"{what} has a result of structure {traced.out_tree}, but the function has one of "
                f"structure {self.division.out_tree}"
            )
        for v, e, aval in zip(self.outs, entries, traced.jaxpr.out_avals):
            shape = v.part_shape(e, sizes)
            if (aval.shape, aval.dtype) != (shape, v.aval.dtype):
                spec = PartitionSpec(*map(entry_of, e))
                raise TypeError(
                    f"{what} has {v.what} of type {aval.dtype.name}{list(aval.shape)}, but the "
                    f"part of an array of type {v.aval.dtype.name}{list(v.shape)} that is divided "
                    f"as {spec} has the type {v.aval.dtype.name}{list(shape)}"
                )

    # Shardings

    @property
    def _name(self) -> str:
        return f"custom_partitioning of {self.division.name}"

    def _structs(
        self, operands: Sequence[Sharding], results: Sequence[Sharding], leading: Sequence[Names]
    ) -> Any:
        """The trees of shapes that callbacks receive.

        Args:
          leading: the mesh axes of mapped axes, which callbacks do not see.
        """
        division = self.division
        hidden = {n for names in leading for n in names}

        def tree(structure: Any, values: Sequence[_Value], shardings: Sequence[Sharding]) -> Any:
            leaves = []
            for v, s in zip(values, shardings):
                entries = [
                    tuple([n for n in names if n not in hidden])
                    for names in self._entries_of(s, v)[len(v.levels) :]
                ]
                sharding: Sharding = NamedSharding(
                    self.mesh, PartitionSpec(*map(entry_of, entries))
                )
                if not division.decode:
                    n = self.mesh.size
                    tiling = Tiling.of_xla(sharding._hlo_sharding(v.ndim), v.ndim, n)
                    sharding = TiledSharding(self.mesh._flat_devices_tuple, tiling)
                leaves.append(ShapeDtypeStruct(v.shape, v.aval.dtype, sharding=sharding))
            return tree_util.tree_unflatten(structure, leaves)

        ins = tree(division.in_tree, self.ins, operands)
        return ins, tree(division.out_tree, self.outs, results)

    def _entries_of(self, sharding: Sharding, value: _Value) -> Entries:
        """The axes of the mesh along which an array is divided into equal parts.

        Left out are parts of axes of the mesh, because the callbacks only have names for whole
        ones, and axes that do not divide the size: XLA pads values inside of a program.
        """
        ndim = value.aval.ndim
        if not isinstance(sharding, NamedSharding) or sharding.mesh is not self.mesh:
            tiling = Tiling.of_xla(sharding._hlo_sharding(ndim), ndim, self.mesh.size)
            sharding = self.everywhere._from_xla(tiling)
        mesh = sharding.mesh
        if not isinstance(mesh, Mesh) or mesh._flat_devices_tuple != self.mesh._flat_devices_tuple:
            return [()] * ndim
        return [
            _dividing(names, size, self.mesh._sizes)
            for names, size in zip(sharding.spec.axes(ndim), value.aval.shape)
        ]

    def _leading(self, operands: Sequence[Sharding], results: Sequence[Sharding]) -> list[Names]:
        """The axes of the mesh that divide each mapped axis."""
        used: set[Hashable] = set()
        leading: list[Names] = []
        values = [*zip(self.outs, results), *zip(self.ins, operands)]
        for k, level in enumerate(self.levels):
            chosen = self._checked(level)
            for v, sharding in () if chosen else values:
                if k in v.levels:
                    chosen = chosen or self._entries_of(sharding, v)[v.levels.index(k)]
            leading.append(tuple([n for n in chosen if n not in used]))
            used |= {*chosen}
        return leading

    def _checked(self, level: Level) -> Names:
        """The mesh axes that `vmap` requires for a mapped axis."""
        names, size = level.spmd_names, level.axis.size
        for name in names:
            if name not in self.mesh._sizes:
                raise ValueError(
                    f"{self._name} is mapped by vmap with spmd_axis_name={name!r}, which "
                    f"{self.mesh} does not have: its axes are {self.mesh.axis_names}"
                )
        if _dividing(names, size, self.mesh._sizes) != names:
            raise ValueError(
                f"{self._name} is mapped by vmap over an axis of size {size} with spmd_axis_name="
                f"{names[0] if len(names) == 1 else names!r}, which does not divide it into equal "
                f"parts: the mesh is {self.mesh}"
            )
        return names

    def _check_mesh(self, mesh: Any) -> None:
        if not isinstance(mesh, Mesh):
            raise TypeError(
                f"`partition` of {self._name} must return a Mesh as its first value, got {mesh!r}"
            )
        if mesh._flat_devices_tuple != self.mesh._flat_devices_tuple:
            raise ValueError(
                f"`partition` of {self._name} returned {mesh}, which does not have the devices of "
                f"the program in their order: use the mesh that it receives, {self.mesh}"
            )

    def _entries(
        self, shardings: Any, values: Sequence[_Value], callback: str, mesh: Mesh
    ) -> list[Entries]:
        """The axes of the mesh in shardings that a callback returned."""
        leaves = tree_util.tree_leaves(shardings)
        kind = "argument" if values is self.ins else "result"
        where = f"`{callback}` of {self._name}"
        if len(leaves) != len(values):
            raise TypeError(
                f"{where} returned {len(leaves)} shardings of {kind}s, but the function has "
                f"{len(values)} {kind}s"
            )
        entries = []
        for v, sharding in zip(values, leaves):
            if isinstance(sharding, TiledSharding):
                tiling = Tiling.of_xla(sharding._hlo_sharding(v.ndim), v.ndim, mesh.size)
                sharding = NamedSharding(mesh, PartitionSpec())._from_xla(tiling)
            if not isinstance(sharding, NamedSharding):
                raise TypeError(f"{where} must return NamedSharding, got {sharding!r} for {v.what}")
            if {*sharding.mesh._sizes.items()} - {*mesh._sizes.items()}:
                raise ValueError(
                    f"{where} returned a sharding over {sharding.mesh} for {v.what}, but the mesh "
                    f"is {mesh}"
                )
            try:
                sharding.shard_shape(v.shape)
            except ValueError as error:
                raise ValueError(
                    f"{where} returned an invalid sharding for {v.what}: {error}"
                ) from None
            entries.append([tuple(names) for names in sharding.spec.axes(v.ndim)])
        return entries


class _Value:
    """An operand or result.

    Attributes:
      aval: its type, with mapped axes.
      levels: the mapped axes that it has.
      what: its name in messages.
    """

    def __init__(self, aval: Any, levels: Sequence[int], what: str) -> None:
        self.aval, self.levels, self.what = aval, list(levels), what

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape without mapped axes."""
        shape: tuple[int, ...] = tuple(self.aval.shape[len(self.levels) :])
        return shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def part_shape(self, entries: Entries, sizes: Any) -> tuple[int, ...]:
        """The shape of the part of one device, without mapped axes."""
        return tuple([d // _size(names, sizes) for d, names in zip(self.shape, entries)])

    def whole_spec(self, entries: Entries, leading: Sequence[Names]) -> PartitionSpec:
        """The spec with mapped axes."""
        return PartitionSpec(*map(entry_of, [*(leading[k] for k in self.levels), *entries]))


def _accepted_trees(tree: Any) -> tuple[Any, ...]:
    """The structures of the results of the parts: one result may be in a tuple."""
    single, in_tuple = tree_util.tree_structure(0), tree_util.tree_structure((0,))
    return (single, in_tuple) if tree == single else (tree,)


def _dividing(names: Names, size: int, sizes: Any) -> Names:
    """The first of these mesh axes that together divide an axis of a size into equal parts."""
    chosen: list[Hashable] = []
    parts = 1
    for name in names:
        parts *= sizes.get(name, 0)
        if not parts or size % parts:
            break
        chosen.append(name)
    return tuple(chosen)


def _unused(leading: Sequence[Names], entries: Sequence[Entries]) -> list[Names]:
    """The mesh axes of mapped axes, without those that the shardings of callbacks contain."""
    used = {n for groups in entries for names in groups for n in names}
    return [tuple([n for n in names if n not in used]) for names in leading]


def _size(names: Names, sizes: Any) -> int:
    n = 1
    for name in names:
        n *= sizes[name]
    return n
