"""Meshes, partition specs, named shardings and orders of devices against the reference."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from fake_tpus import factorizations, tpu
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from jax.experimental import mesh_utils as jax_mesh_utils
from random_shardings import NAMES, SIZES, divisions, named

import primax as px
from primax.experimental import mesh_utils

MOST = min(len(jax.devices()), len(px.devices()))
pytestmark = pytest.mark.skipif(MOST < 8, reason="needs 8 devices on both sides")

TYPES = ("Auto", "Explicit", "Manual")
KINDS = ("sum", "max", "min")
OURS, THEIRS = (
    SimpleNamespace(lib=lib, s=lib.sharding, devices=lib.devices()) for lib in (px, jax)
)
SIDES = (OURS, THEIRS)


def types_of(side: Any, types: Any) -> tuple[Any, ...]:
    return tuple(getattr(side.s.AxisType, name) for name in types)


def mesh_of(side: Any, sizes: Any, types: Any = None, names: Any = NAMES) -> Any:
    devices = np.array(side.devices[: math.prod(sizes)]).reshape(sizes)
    return side.s.Mesh(devices, names[: len(sizes)], types and types_of(side, types))


def spec_of(side: Any, entries: Any, **axes: Any) -> Any:
    unconstrained = side.s.PartitionSpec.UNCONSTRAINED
    parts = [unconstrained if e == "?" else e for e in entries]
    if kind := axes.pop("unreduced_kind", None):
        axes["unreduced_kind"] = getattr(side.s.UnreducedKind, kind)
    return side.s.PartitionSpec(*parts, **axes)


def xla(sharding: Any, ndim: int) -> str:
    own = getattr(sharding, "_to_xla_hlo_sharding", None) or sharding._hlo_sharding
    return repr(own(ndim))


def numbered(indices: Any) -> dict[int, Any]:
    return {device.id: index for device, index in indices.items()}


def both(f: Callable[[Any], Any]) -> Any:
    """The common result of both sides, or ``None`` if both raise an error."""
    results = []
    for side in SIDES:
        try:
            results.append(f(side))
        except Exception as error:
            if side is OURS and not isinstance(error, (TypeError, ValueError)):
                raise
            results.append(None)
    assert results[0] == results[1]
    return results[0]


# Shardings


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(divisions())
def test_random_shardings(case):
    sizes, entries, shape = case

    def facts(side: Any) -> Any:
        sharding = side.s.NamedSharding(mesh_of(side, sizes), spec_of(side, named(entries)))
        return (
            numbered(sharding.devices_indices_map(shape)),
            sharding.shard_shape(shape),
            sharding.is_fully_replicated,
            sharding.replicated_axes,
            sharding.num_devices,
            xla(sharding, len(shape)),
            str(sharding),
        )

    assert both(facts) is not None


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(SIZES),
    st.data(),
    st.lists(st.sampled_from([None, "x", "y", "z", "w", ("x", "y"), ("y", "x"), "?"]), max_size=3),
    st.sets(st.sampled_from("xyzw"), max_size=2),
    st.sets(st.sampled_from("xyzw"), max_size=1),
    st.sampled_from([None, *KINDS]),
    st.lists(st.integers(0, 8), max_size=3),
)
def test_random_types_of_axes(sizes, data, entries, unreduced, reduced, kind, shape):
    """Valid and invalid specs: both sides raise, or agree on attributes and texts."""
    types = data.draw(st.tuples(*[st.sampled_from(TYPES[:2])] * len(sizes)))
    assume(len(entries) <= len(shape))  # a longer spec is an error here, also with None
    axes = {"unreduced": unreduced, "reduced": reduced, "unreduced_kind": kind}
    # The reference calls no array with unreduced axes replicated, not even along axes of size 1.
    alone = any(n in unreduced for n, size in zip(NAMES, sizes) if size == 1)

    def facts(side: Any) -> Any:
        mesh = mesh_of(side, sizes, types)
        spec = spec_of(side, entries, **axes)
        sharding = side.s.NamedSharding(mesh, spec)
        placed = side.s.NamedSharding(mesh.abstract_mesh, spec)
        return (
            (str(mesh), repr(mesh), str(mesh.abstract_mesh)),
            (mesh.auto_axes, mesh.explicit_axes, mesh.manual_axes),
            (mesh.are_all_axes_auto, mesh.are_all_axes_explicit, mesh.are_all_axes_manual),
            alone or sharding.is_fully_replicated,
            sharding.shard_shape(tuple(shape)),
            placed.shard_shape(tuple(shape)),
            xla(sharding, len(shape)),
            # The reference's types raise KeyError for dimensions without a constraint.
            "?" in entries or type_text(side, placed, shape),
            len(unreduced) > 1 or len(reduced) > 1 or str(sharding),
        )

    both(facts)


def type_text(side: Any, sharding: Any, shape: Any) -> str:
    if side is THEIRS:
        aval = jax.core.ShapedArray(tuple(shape), np.float32, sharding=sharding)
        return aval.str_short(short_dtypes=True)
    placement = sharding._placement(len(shape))
    text = getattr(placement, "text", None)
    return "f32" + (text(shape) if text else f"[{','.join(map(str, shape))}]")


@settings(max_examples=100)
@given(divisions(ndim=2), divisions(ndim=2))
def test_equality_and_equivalence(one, other):
    def facts(side: Any) -> Any:
        shardings = [
            side.s.NamedSharding(mesh_of(side, sizes), spec_of(side, named(entries)))
            for sizes, entries, _ in (one, other)
        ]
        a, b = shardings
        return a == b, a.is_equivalent_to(b, 2), b.is_equivalent_to(a, 2)

    assert both(facts) is not None


# Specs

ENTRIES = [(), ("x",), (None,), (("x",),), (["x", "y"], None), ((),), ("x", "?"), ("x", "x"), (1,)]
AXES: list[dict[str, Any]] = [
    {},
    {"unreduced": {"y"}},
    {"reduced": {"y"}},
    {"unreduced": {"z"}, "reduced": {"y"}},
    {"unreduced": {"z"}, "unreduced_kind": "max"},
    {"unreduced": {"x"}},
    {"unreduced": "x"},
    {"unreduced_kind": "min"},
    {"reduced": {None}},
]


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_specs(axes):
    for entries in ENTRIES:
        both(lambda side, entries=entries: str(spec_of(side, entries, **axes)))
        both(lambda side, entries=entries: len(spec_of(side, entries, **axes)))
    for a, b in itertools.product(ENTRIES, repeat=2):
        both(lambda side, a=a, b=b: spec_of(side, a, **axes) == spec_of(side, b))
        both(lambda side, a=a, b=b: str(spec_of(side, a, **axes) + spec_of(side, b)))
        both(lambda side, a=a, b=b: str(spec_of(side, a, **axes).update(partitions=b)))


# Meshes


@pytest.mark.parametrize("sizes", [(8,), (2, 4), (2, 2, 2), (1, 8), (3,), (), (16,), (2,)], ids=str)
@pytest.mark.parametrize("types", [None, TYPES], ids=str)
def test_make_mesh(sizes, types):
    def facts(side: Any) -> Any:
        chosen = types and types_of(side, types[: len(sizes)])
        mesh = side.lib.make_mesh(sizes, NAMES[: len(sizes)], chosen)
        return str(mesh), mesh.device_ids.tolist(), dict(mesh.shape), mesh.size, mesh.empty

    both(facts)


MESHES: list[Callable[[Any], Any]] = [
    lambda side: side.s.AbstractMesh((2, 4), ("x", "y")),
    lambda side: side.s.AbstractMesh((2,), "x", side.s.AxisType.Auto),
    lambda side: side.s.AbstractMesh((), ()),
    lambda side: side.s.AbstractMesh((2, 4), ("x",)),
    lambda side: side.s.AbstractMesh((2,), ("x",), ("Auto",)),
    lambda side: side.s.AbstractMesh(2, "x"),
    lambda side: side.s.AbstractDevice("TPU v5", 2, "tpu"),
    lambda side: side.s.Mesh(np.empty((), dtype=object), ()),
    lambda side: side.s.Mesh(side.devices[:1], ("x", "y")),
    lambda side: side.s.Mesh(side.devices[:2], ("x", None)),
    lambda side: side.s.Mesh(np.array(side.devices[0]), ()),
    lambda side: mesh_of(side, (2, 4)).update(axis_names=("a", "b")),
    lambda side: mesh_of(side, (2, 4)).abstract_mesh.update_axis_types(
        {"x": side.s.AxisType.Manual}
    ),
    lambda side: mesh_of(side, (2, 4)).abstract_mesh.devices,
    lambda side: side.s.ManualAxisType(varying={"x"}),
    lambda side: side.s.ManualAxisType(varying={"x"}, unreduced={"x"}),
    lambda side: side.lib.NamedSharding(mesh_of(side, (8,)), None),
    lambda side: side.lib.NamedSharding(mesh_of(side, (8,)), ("x",)),
]


@pytest.mark.parametrize("number", range(len(MESHES)))
def test_meshes(number):
    both(lambda side: repr(MESHES[number](side)))
    both(lambda side: str(MESHES[number](side)))


def test_the_current_mesh():
    def facts(side: Any) -> Any:
        seen = [str(side.lib.get_mesh()), str(side.s.get_abstract_mesh())]
        with side.lib.set_mesh(mesh_of(side, (2, 4))):
            seen += [str(side.lib.get_mesh()), str(side.s.get_abstract_mesh())]
            with side.s.use_abstract_mesh(side.s.AbstractMesh((8,), ("i",))):
                seen += [str(side.lib.get_mesh()), str(side.s.get_abstract_mesh())]
            side.lib.jit(lambda x: seen.append(str(side.s.get_abstract_mesh())) or x)(1.0)
        before = side.lib.set_mesh(mesh_of(side, (8,)))
        seen.append(str(side.lib.get_mesh()))
        before.__exit__(None, None, None)
        return [*seen, str(side.lib.get_mesh())]

    assert both(facts) is not None
    for wrong in (None, "x", 1):
        both(lambda side, wrong=wrong: str(type(side.s.use_abstract_mesh(wrong))))


# Orders of devices

TOPOLOGIES = {
    "TPU v2": (2, "2x2x1 4x2x1 4x4x1"),
    "TPU v4": (1, "2x2x1 4x2x1 2x2x2 4x2x2 4x4x2 4x4x4"),
    "TPU v5 lite": (1, "2x2x1 4x2x1 4x4x1 8x4x1"),
    "TPU v5p": (1, "2x2x1 2x2x2 2x2x4 4x4x4"),
    "TPU7x": (2, "2x2x1 2x2x2 2x2x4"),
    "another": (1, "4x4x1 2x2x2"),
}


@pytest.mark.parametrize("kind", TOPOLOGIES)
def test_orders_of_devices(kind):
    """Wherever the reference finds an order without a split axis, it is ours."""
    cores, topologies = TOPOLOGIES[kind]
    for topology in topologies.split():
        devices = tpu(topology, kind, cores)
        for shape in factorizations(len(devices)):
            try:
                theirs = jax_mesh_utils.create_device_mesh(shape, devices)
            except NotImplementedError:
                continue
            ours = mesh_utils.create_device_mesh(shape, devices)
            assert [d.id for d in ours.flat] == [d.id for d in theirs.flat], (topology, shape)


@pytest.mark.parametrize(
    "inner, outer, options",
    [
        ((2, 2), (2, 1), {}),
        ((2, 2), (1, 2), {}),
        ((4,), (2,), {}),
        ((2, 2), (2,), {}),
        ((2, 2), (2, 2), {}),
        ((2, 2), (2, 1), {"process_is_granule": True}),
        ((2, 2), (2, 1), {"should_sort_granules_by_key": False}),
    ],
)
def test_hybrid_meshes(inner, outer, options):
    devices = [*tpu("2x2x1", slice_=1), *tpu("2x2x1", slice_=0)]

    def facts(side: Any) -> Any:
        module = mesh_utils if side is OURS else jax_mesh_utils
        mesh = module.create_hybrid_device_mesh(inner, outer, devices, **options)
        return mesh.shape, [d.id for d in mesh.flat]

    both(facts)
