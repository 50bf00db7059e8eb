"""The specs of `shard_map`: prefixes of trees, checks with the paths of arguments and results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Final

from primax_core import tree_util
from primax_core.extend import Jaxpr, summarize
from primax_core.extend.placements import is_placed

from ._axis_casts import ordered
from ._manual_inference import reduced_of, unreduced_of, varying_of
from ._manual_region import Region
from ._mesh_axes import AxisType
from ._spec import UNCONSTRAINED, PartitionSpec, entry_of, trimmed


class InferFromArgs:
    """The type of `Infer`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "primax.sharding.Infer"

    def __reduce__(self) -> str:
        return "Infer"


Infer: Final = InferFromArgs()
"""The specs in the types of the arguments, in place of `in_specs`."""


def check_axis_names(names: Any) -> frozenset[Hashable]:
    """The axis names of `shard_map` as a frozenset."""
    if isinstance(names, str) or not isinstance(names, Collection):
        raise TypeError(
            f"axis_names of shard_map is a set of names, got {names!r} of type "
            f"{type(names).__name__}: write {{'x'}}"
        )
    return frozenset(names)


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def flat_specs(what: str, specs: Any, tree: Any, region: Region) -> tuple[PartitionSpec, ...]:
    """The spec of each leaf of a tree, from a prefix of the tree.

    Args:
      what: `"in_specs"` or `"out_specs"`.

    Raises:
      TypeError: if a leaf of the prefix is no partition spec.
      ValueError: if it is not a prefix, or names an axis that is not manual.
    """
    for spec in tree_util.tree_leaves(specs, is_leaf=_is_spec):
        if not _is_spec(spec):
            raise TypeError(
                f"{what} of shard_map must be a tree of PartitionSpec, got {spec!r} of type "
                f"{type(spec).__name__}: write P('x'), or P() for values that are not divided"
            )
        if spec is not None:
            _check_names(what, spec, region)
    try:
        flat = tree_util.tree_leaves(
            tree_util.tree_broadcast(specs, tree, is_leaf=_is_spec), is_leaf=_is_spec
        )
    except ValueError as error:
        of = "the tuple of arguments" if what == "in_specs" else "the results"
        raise ValueError(f"{what} of shard_map is not a prefix of {of}: {error}") from None
    values = tree_util.tree_leaves(tree, is_leaf=lambda x: x is None)
    if len(values) == len(flat):  # `None` in the tree has a spec, but is no leaf
        flat = [s for s, x in zip(flat, values) if x is not None]
    return tuple([PartitionSpec() if s is None else s for s in flat])


def _check_names(what: str, spec: PartitionSpec, region: Region) -> None:
    mesh = region.mesh
    if UNCONSTRAINED in tuple(spec):
        raise ValueError(
            f"{what} of shard_map contains {spec}: an axis is divided along named mesh axes or "
            "not at all. Use None"
        )
    seen = set()
    for name in (*spec.names, *spec.unreduced, *spec.reduced):
        if name not in region.manual:
            axes = ", ".join(map(repr, region.names))
            hint = (
                f"{name!r} is an axis of the mesh, but not in axis_names"
                if name in mesh._sizes
                else f"the mesh has the axes {mesh.axis_names}"
            )
            raise ValueError(
                f"{what} of shard_map must refer to manual axes ({axes}), but {spec} contains "
                f"{name!r}: {hint}"
            )
        if name in seen:
            raise ValueError(
                f"{what} of shard_map contains {spec}, which divides along the mesh axis {name!r} "
                "twice: each mesh axis can divide one axis of an array"
            )
        seen.add(name)


# Arguments


def check_inputs(
    fun: Callable[..., Any], args: Any, avals: Sequence[Any], specs: Sequence[PartitionSpec],
    region: Region,
) -> None:  # fmt: skip
    """Check that arguments can be divided.

    Raises:
      ValueError: with the path of the argument, its type, its spec, and a solution.
    """
    explicit = region.manual & {*region.mesh.explicit_axes}
    for i, (aval, spec) in enumerate(zip(avals, specs)):
        if len(spec) > aval.ndim:
            advice = " For a scalar use P()." if aval.ndim == 0 else ""
            raise ValueError(
                f"shard_map of {_name(fun)}: {spec} of in_specs has {len(spec)} entries, but "
                f"{_path(fun, args, i)} has type {aval} of rank {aval.ndim}: a spec has at most as "
                f"many entries as the array has axes.{advice}"
            )
        for axis, names in enumerate(spec.axes(aval.ndim)):
            size, n = aval.shape[axis], region.size(names)
            if size % n:
                raise ValueError(
                    f"shard_map of {_name(fun)}: axis {axis} of {_path(fun, args, i)}, which has "
                    f"type {aval}, has the size {size}, which is not divisible by {n}: {spec} of "
                    f"in_specs divides it along {_sizes(names, region)}. Pad it to "
                    f"{-(-size // n) * n}, or use a spec that does not divide it"
                )
        if explicit and is_placed(aval) and any(aval.placement.spec):
            _check_explicit(fun, args, i, aval, spec, explicit)


def _sizes(names: Sequence[Hashable], region: Region) -> str:
    along = " and ".join(f"{n!r} of size {region.mesh._sizes[n]}" for n in names)
    return f"the mesh {'axis' if len(names) == 1 else 'axes'} {along}"


def _check_explicit(
    fun: Any, args: Any, i: int, aval: Any, spec: PartitionSpec, explicit: frozenset[Hashable]
) -> None:
    said = inferred_spec(aval, explicit)
    if said.axes(aval.ndim) != tuple(
        [tuple([n for n in names if n in explicit]) for names in spec.axes(aval.ndim)]
    ):
        raise ValueError(
            f"shard_map of {_name(fun)}: {spec} of in_specs differs from the type of "
            f"{_path(fun, args, i)}, {aval}, whose spec is {said}. Leave in_specs out to use that "
            "of the type, or apply reshard to the argument first"
        )


def inferred_spec(aval: Any, names: frozenset[Hashable]) -> PartitionSpec:
    """The spec in a type, along some axes."""
    if not is_placed(aval):
        return PartitionSpec()
    placement = aval.placement
    entries = [entry_of(tuple([n for n in axes if n in names])) for axes in placement.spec]
    return PartitionSpec(
        *trimmed(entries),
        unreduced=placement.explicit(placement.unreduced) & names,
        reduced=placement.explicit(placement.reduced) & names,
    )


def inferred_specs(avals: Sequence[Any], region: Region) -> tuple[PartitionSpec, ...]:
    """The specs of arguments, from their types.

    Raises:
      TypeError: if an axis that becomes manual is not explicit.
    """
    kinds = region.mesh._name_to_type
    if others := [n for n in region.names if kinds[n] is not AxisType.Explicit]:
        raise TypeError(
            f"in_specs of shard_map can only be left out for mesh axes of the type Explicit, but "
            f"{', '.join(map(repr, others))} of {region.mesh} are of another type: pass in_specs, "
            "a tree of PartitionSpec"
        )
    return tuple([inferred_spec(a, region.manual) for a in avals])


# Results


def check_results(
    fun: Callable[..., Any], avals: Sequence[Any], tree: Any, specs: Sequence[PartitionSpec],
    region: Region, line: Callable[[int], str],
) -> None:  # fmt: skip
    """Check that the parts of results can be joined.

    Args:
      avals: the types of the parts.
      line: text with the operation and the line that computes a result, by its number.

    Raises:
      ValueError: with the path of the result, its type, the line that computes it if it is known,
        and a solution.
    """
    for i, (aval, spec) in enumerate(zip(avals, specs)):
        if len(spec) > aval.ndim:
            advice = (
                " Give a scalar an axis with x[None], or reduce it to one value."
                if aval.ndim == 0
                else ""
            )
            raise ValueError(
                f"shard_map of {_name(fun)}: {spec} of out_specs has {len(spec)} entries, but "
                f"{_result(tree, i)} has type {aval} of rank {aval.ndim}: a spec has at most as "
                f"many entries as the array has axes.{advice}"
            )
        if region.checked:
            _check_equal(fun, aval, line(i), _result(tree, i), spec, region)


def _check_equal(
    fun: Any, aval: Any, at: str, result: str, spec: PartitionSpec, region: Region
) -> None:
    for what, names, said in (
        ("unreduced", unreduced_of(aval), spec.unreduced),
        ("reduced", reduced_of(aval), spec.reduced),
    ):
        if wrong := (names & region.manual) ^ said:
            axes = ", ".join(map(repr, ordered(wrong, region.mesh)))
            raise ValueError(
                f"shard_map of {_name(fun)}: {result} has type {aval}{at}, but {spec} of "
                f"out_specs differs in the {what} mesh axes: {axes}"
            )
    extra = (varying_of(aval) & region.manual) - {*spec.names}
    if extra:
        names = ordered(extra, region.mesh)
        axes = ", ".join(map(repr, names))
        axis = names[0] if len(names) == 1 else names
        raise ValueError(
            f"shard_map of {_name(fun)}: {spec} of out_specs says that {result} is equal along the "
            f"mesh axis {axes}, but its type {aval} says that it may vary along {axes}{at}. "
            f"If it should be equal, reduce it: lax.psum(x, {axis!r}), or lax.all_gather(x, "
            f"{axis!r}, to='invarying'). Otherwise name the axis in out_specs. If it is equal for "
            "another reason, pass check_vma=False"
        )


def line_of_result(jaxpr: Jaxpr, i: int) -> str:
    """The operation that computes a result of a jaxpr, and its line; empty if it is not known."""
    v = jaxpr.outvars[i]
    for eqn in reversed(jaxpr.eqns):
        if any(o is v for o in eqn.outvars):
            return f" ({eqn.primitive.name}, {summarize(eqn.source)})" if eqn.source else ""
    return ""


# Texts


def _name(fun: Any) -> str:
    return getattr(fun, "__name__", None) or repr(fun)


def _path(fun: Any, args: Any, i: int) -> str:
    """The path of an argument, and the parameter that receives it."""
    (index, *rest), _ = tree_util.tree_leaves_with_path(args)[i]
    path = f"args[{index.idx}]{tree_util.keystr(tuple(rest))}"
    try:
        names = [*inspect.signature(fun).bind_partial(*args).arguments]
    except (TypeError, ValueError):
        return path
    parameters = [*inspect.signature(fun).parameters.values()]
    if (
        index.idx < len(names)
        and parameters[index.idx].kind is not inspect.Parameter.VAR_POSITIONAL
    ):
        return f"{path} (parameter {names[index.idx]!r})"
    return path


def _result(tree: Any, i: int) -> str:
    """The path of a result."""
    whole = tree_util.tree_unflatten(tree, list(range(tree.num_leaves)))
    path, _ = tree_util.tree_leaves_with_path(whole)[i]
    return f"its result{tree_util.keystr(path)}"
