"""The primitive `shard_map`: its type, its lowering, and dead code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from primax_core.extend import (
    Eqn,
    Jaxpr,
    JaxprCheckError,
    Primitive,
    abstract,
    check,
    check_jaxpr,
    dce,
    dce_jaxpr,
    devices,
    effects,
    lower,
    lowering,
    place,
)

from ._manual_region import Region
from ._named import NamedSharding
from ._shardy_text import sharding_text
from ._spec import PartitionSpec

Specs = Sequence[PartitionSpec]

shard_map_p: Final = Primitive(
    "shard_map", multiple_results=True, cache_on=lambda params: params["jaxpr"].cache
)


def region_of(params: dict[str, Any]) -> Region:
    """The region of an operation."""
    mesh = params["mesh"].abstract_mesh
    return Region(mesh, params["newly_manual_axes"], params["check_vma"])


def bind(
    args: Sequence[Any], jaxpr: Jaxpr, in_specs: Specs, out_specs: Specs, like: dict[str, Any]
) -> list[Any]:
    """Bind the primitive with the mesh and the axes of another operation."""
    results: list[Any] = shard_map_p.bind(
        *args,
        jaxpr=jaxpr,
        in_specs=tuple(in_specs),
        out_specs=tuple(out_specs),
        mesh=like["mesh"],
        newly_manual_axes=like["newly_manual_axes"],
        check_vma=like["check_vma"],
    )
    return results


# Types


def _results(params: dict[str, Any]) -> list[Any]:
    region = region_of(params)
    return [
        region.global_aval(v.aval, spec)
        for v, spec in zip(params["jaxpr"].outvars, params["out_specs"])
    ]


@shard_map_p.rule(abstract)
def _abstract(*avals, **params):  # type: ignore[no-untyped-def]
    return _results(params)


@shard_map_p.rule(place)
def _place(abstract, in_avals, params):  # type: ignore[no-untyped-def]
    return _results(params), None


@shard_map_p.rule(check)
def _check(*avals, **params):  # type: ignore[no-untyped-def]
    region, jaxpr = region_of(params), params["jaxpr"]
    specs = params["in_specs"]
    if not len(avals) == len(specs) == len(jaxpr.invars):
        raise JaxprCheckError(
            f"shard_map has {len(avals)} operands, {len(specs)} in_specs, and a jaxpr of "
            f"{len(jaxpr.invars)} arguments"
        )
    for i, (aval, spec, v) in enumerate(zip(avals, specs, jaxpr.invars)):
        local = region.local_aval(aval, spec)
        if (local.shape, local.dtype) != (v.aval.shape, v.aval.dtype):
            raise JaxprCheckError(
                f"argument {i} of shard_map has parts of type {local}, and its jaxpr takes {v.aval}"
            )
    with region.entered():
        check_jaxpr(jaxpr)


@shard_map_p.rule(effects)
def _effects(*avals, jaxpr, newly_manual_axes, **_):  # type: ignore[no-untyped-def]
    return frozenset(e for e in jaxpr.effects if getattr(e, "name", None) not in newly_manual_axes)


# Lowering


@shard_map_p.rule(devices)
def _devices(eqn):  # type: ignore[no-untyped-def]
    return NamedSharding(eqn.params["mesh"], PartitionSpec())


@shard_map_p.rule(lower)
def _lower(ctx, *values, jaxpr, mesh, in_specs, out_specs, newly_manual_axes, check_vma):  # type: ignore[no-untyped-def]
    if mesh.size != ctx.num_partitions:
        raise ValueError(
            f"shard_map over {mesh} in a computation on {ctx.num_partitions} "
            f"device{'s' * (ctx.num_partitions > 1)}: the mesh has {mesh.size}. Pass arrays with a "
            "NamedSharding over these, or use a Mesh in place of an AbstractMesh"
        )
    region = Region(mesh.abstract_mesh, newly_manual_axes, check_vma)
    outer = ctx.axes.manual if ctx.axes is not None else frozenset()
    free = not {*mesh.axis_names} <= newly_manual_axes | outer

    def texts(specs, avals):  # type: ignore[no-untyped-def]
        # Values of extended dtypes, such as keys, have further axes.
        return [
            sharding_text(
                mesh,
                PartitionSpec(*spec, unreduced=spec.unreduced),
                lowering.ir.RankedTensorType(lowering.type_of(aval)).rank,
                frozenset(range(aval.ndim) if free else ()),
            )
            for spec, aval in zip(specs, avals)
        ]

    ins, outs = texts(in_specs, ctx.in_avals), texts(out_specs, ctx.out_avals)
    return ctx.manual(jaxpr, values, dict(mesh._sizes), region.names, ins, outs)


# Dead code


@shard_map_p.rule(dce)
def _dce(used, eqn):  # type: ignore[no-untyped-def]
    params = eqn.params
    with region_of(params).entered():
        jaxpr, used_inputs = dce_jaxpr(params["jaxpr"], tuple(used))
    if not any(used) and not jaxpr.effects:
        return [False] * len(eqn.invars), None
    return list(used_inputs), reduced_eqn(eqn, jaxpr, used_inputs, used)


def reduced_eqn(eqn: Eqn, jaxpr: Jaxpr, used_inputs: Sequence[bool], used: Sequence[bool]) -> Eqn:
    """The equation with fewer operands and results."""
    params = eqn.params
    new_params = {
        **params,
        "jaxpr": jaxpr,
        "in_specs": tuple([s for s, u in zip(params["in_specs"], used_inputs) if u]),
        "out_specs": tuple([s for s, u in zip(params["out_specs"], used) if u]),
    }
    return eqn.replace(
        invars=[v for v, u in zip(eqn.invars, used_inputs) if u],
        outvars=[v for v, u in zip(eqn.outvars, used) if u],
        params=new_params,
        effects=frozenset(
            e for e in jaxpr.effects if getattr(e, "name", None) not in params["newly_manual_axes"]
        ),
    )
