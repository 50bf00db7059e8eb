"""Named shardings: indices, XLA's and Shardy's descriptions, names for XLA's tilings, errors."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from random_shardings import NAMES, SIZES, divisions, named

from primax_core import device_put, devices, jit, lax
from primax_core.extend.runtime import SingleDeviceSharding, Tiling
from primax_distributed import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    P,
    UnreducedKind,
    make_single_device_sharding,
    shard_map,
)

AUTO, EXPLICIT, MANUAL = AxisType.Auto, AxisType.Explicit, AxisType.Manual
DEVICES = np.array(devices())
MESH = Mesh(DEVICES.reshape(2, 4), ("x", "y"))
TYPED = MESH.update(axis_types=(EXPLICIT, EXPLICIT))
ABSTRACT = MESH.abstract_mesh


def mesh_of(sizes: Any) -> Mesh:
    n = math.prod(sizes)
    return Mesh(DEVICES[:n].reshape(sizes), NAMES[: len(sizes)])


# Indices


def position_indices(sizes: Any, entries: Any, shape: Any, position: Any) -> list[range]:
    """The indices of one device of a mesh, computed by hand."""
    ranges = []
    for axis, size in enumerate(shape):
        part, parts = 0, 1
        for i in (entries[axis] or ()) if axis < len(entries) else ():
            part, parts = part * sizes[i] + position[i], parts * sizes[i]
        step = size // parts
        ranges.append(range(part * step, (part + 1) * step))
    return ranges


@settings(max_examples=200)
@given(divisions())
def test_indices_of_random_shardings(case):
    sizes, entries, shape = case
    mesh = mesh_of(sizes)
    sharding = NamedSharding(mesh, P(*named(entries)))
    indices = sharding.devices_indices_map(shape)
    assert list(indices) == list(mesh.devices.flat)
    for position in np.ndindex(*sizes):
        expected = position_indices(sizes, entries, shape, position)
        index = indices[mesh.devices[position]]
        assert [range(*s.indices(d)) for s, d in zip(index, shape)] == expected
        assert sharding.shard_shape(shape) == tuple(map(len, expected))
    assert NamedSharding(mesh.abstract_mesh, sharding.spec).shard_shape(shape) == (
        sharding.shard_shape(shape)
    )
    whole = all(len(r) == d for r, d in zip(expected, shape))
    assert not sharding.is_fully_replicated or whole


def test_undivided_axes_have_whole_slices():
    indices = NamedSharding(MESH, P(None, "x")).devices_indices_map((3, 4))
    assert indices[DEVICES[0]] == (slice(None), slice(0, 2))
    one = NamedSharding(Mesh(DEVICES[:1], "x"), P("x"))
    assert one.devices_indices_map((3,)) == {DEVICES[0]: (slice(None),)}
    indices.clear()  # a copy
    assert len(NamedSharding(MESH, P(None, "x")).devices_indices_map((3, 4))) == 8


def test_partial_values_are_whole_parts():
    sharding = NamedSharding(TYPED, P("y", unreduced={"x"}))
    assert sharding.shard_shape((8,)) == (2,) and not sharding.is_fully_replicated
    assert sharding.devices_indices_map((8,))[DEVICES[5]] == (slice(2, 4),)


# Attributes, text, identity


def test_attributes():
    sharding = NamedSharding(MESH, P("x"))
    assert sharding.mesh is MESH and sharding.spec is P("x") and sharding.num_devices == 8
    assert sharding.device_set == set(DEVICES) and sharding.is_fully_addressable
    assert sharding.memory_kind == "device" and not sharding.is_fully_replicated
    assert sharding.replicated_axes == {"y"}
    assert NamedSharding(MESH, P()).is_fully_replicated
    assert NamedSharding(MESH, P(P.UNCONSTRAINED)).is_fully_replicated
    assert NamedSharding(TYPED, P(reduced={"x"})).is_fully_replicated
    assert NamedSharding(TYPED, P("y", reduced={"x"})).replicated_axes == frozenset()
    single = make_single_device_sharding(DEVICES[1])
    assert single is SingleDeviceSharding(DEVICES[1])


def test_text():
    mesh = "Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))"
    sharding = NamedSharding(MESH, P("x"))
    assert repr(sharding) == f"NamedSharding(mesh={mesh}, spec=P('x',), memory_kind=device)"
    abstract = NamedSharding(ABSTRACT, P("x"))
    assert repr(abstract) == f"NamedSharding(mesh={ABSTRACT}, spec=P('x',))"
    assert "memory_kind=pinned_host" in str(sharding.with_memory_kind("pinned_host"))


def test_equal_shardings_are_one_object():
    sharding = NamedSharding(MESH, P("x"))
    assert sharding is NamedSharding(MESH, P(("x",))) is NamedSharding(MESH, P("x"), "device")
    others = [
        NamedSharding(MESH, P("x", None)),
        NamedSharding(ABSTRACT, P("x")),
        NamedSharding(TYPED, P("x")),
        sharding.with_memory_kind("pinned_host"),
    ]
    assert all(sharding != other for other in others)
    for one in (sharding, *others):
        assert pickle.loads(pickle.dumps(one)) is one
        assert copy.copy(one) is one and copy.deepcopy(one) is one


def test_update():
    sharding = NamedSharding(MESH, P("x"))
    assert sharding.update(spec=P("y")) is NamedSharding(MESH, P("y"))
    assert sharding.update(mesh=TYPED) is NamedSharding(TYPED, P("x"))
    assert sharding.update(memory_kind="pinned_host").memory_kind == "pinned_host"
    with pytest.raises(TypeError, match=r"takes mesh, spec and memory_kind, not \['devices'\]"):
        sharding.update(devices=())


def test_equivalence():
    sharding = NamedSharding(MESH, P("x"))
    equivalent = [
        NamedSharding(MESH, P("x", None)),
        NamedSharding(TYPED, P("x")),
        NamedSharding(Mesh(DEVICES.reshape(2, 2, 2), ("a", "b", "c")), P("a")),
    ]
    for other in equivalent:
        assert sharding.is_equivalent_to(other, 2) and other.is_equivalent_to(sharding, 2)
    for other in (
        NamedSharding(MESH, P("y")),
        NamedSharding(MESH, P("x"), memory_kind="pinned_host"),
        NamedSharding(ABSTRACT, P("x")),
        NamedSharding(Mesh(DEVICES[::-1].reshape(2, 4), ("x", "y")), P("x")),
        NamedSharding(TYPED, P("x", unreduced={"y"})),
    ):
        assert not sharding.is_equivalent_to(other, 2) and not other.is_equivalent_to(sharding, 2)
    partial = NamedSharding(TYPED, P("x", unreduced={"y"}))
    largest = NamedSharding(TYPED, P("x", unreduced={"y"}, unreduced_kind=UnreducedKind.max))
    assert not partial.is_equivalent_to(largest, 1)
    reduced = NamedSharding(TYPED, P("x", reduced={"y"}))
    assert reduced.is_equivalent_to(NamedSharding(TYPED, P("x")), 1)
    one = NamedSharding(Mesh(DEVICES[:1], "x"), P("x"))
    assert one.is_equivalent_to(SingleDeviceSharding(DEVICES[0]), 1)
    abstract = NamedSharding(ABSTRACT, P("x"))
    assert abstract.is_equivalent_to(NamedSharding(ABSTRACT, P("x", None)), 2)


# Descriptions for the compiler

XLA_TEXTS = {
    "{replicated}": (MESH, P(), 2),
    "{devices=[2,1,4]<=[8] last_tile_dim_replicate}": (MESH, P("x"), 2),
    "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}": (MESH, P("y"), 2),
    "{devices=[4,2]<=[2,4]T(1,0)}": (MESH, P("y", "x"), 2),
    "{devices=[8]<=[8]}": (MESH, P(("x", "y")), 1),
    "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dims={unreduced}}": (
        TYPED,
        P("y", unreduced={"x"}),
        2,
    ),
    "{unreduced}": (TYPED, P(unreduced={"x", "y"}), 2),
    "{devices=[1,2,4]<=[8] last_tile_dims={unreduced, replicated}}": (
        TYPED,
        P(unreduced={"x"}, reduced={"y"}),
        1,
    ),
}


@pytest.mark.parametrize("text", XLA_TEXTS)
def test_xlas_description(text):
    mesh, spec, ndim = XLA_TEXTS[text]
    assert repr(NamedSharding(mesh, spec)._hlo_sharding(ndim)) == text
    assert repr(NamedSharding(mesh.abstract_mesh, spec)._hlo_sharding(ndim)) == text


SHARDY_TEXTS = {
    '[{"x"}, {}]>': (MESH, P("x"), 2),
    '[{"y", "x"}, {}]>': (MESH, P(("y", "x"), None), 2),
    '[{"x"}, {?}]>': (MESH, P("x", P.UNCONSTRAINED), 2),
    "[]>": (MESH, P(), 0),
    '[{"y"}], unreduced={"x"}>': (TYPED, P("y", unreduced={"x"}), 1),
    '[{}], unreduced=max{"x", "y"}>': (
        TYPED,
        P(unreduced={"y", "x"}, unreduced_kind=UnreducedKind.max),
        1,
    ),
}


@pytest.mark.parametrize("text", SHARDY_TEXTS)
def test_shardys_description(text):
    mesh, spec, ndim = SHARDY_TEXTS[text]
    start = '#sdy.sharding<mesh<["x"=2, "y"=4]>, '
    assert NamedSharding(mesh, spec)._sdy(ndim) == start + text


def test_open_axes_and_names():
    sharding = NamedSharding(MESH, P("x"))
    assert sharding._sdy(2, frozenset((0, 1))).endswith('[{"x", ?}, {?}]>')
    odd = NamedSharding(AbstractMesh((2,), ('a "b"\n\\é',)), P('a "b"\n\\é'))
    assert (
        odd._sdy(1)
        == r'#sdy.sharding<mesh<["a \22b\22\0A\5C\C3\A9"=2]>, [{"a \22b\22\0A\5C\C3\A9"}]>'
    )


# Names for XLA's tilings


@settings(max_examples=200)
@given(divisions())
def test_names_of_own_tilings(case):
    sizes, entries, shape = case
    sharding = NamedSharding(mesh_of(sizes), P(*named(entries)))
    chosen = sharding._from_xla(
        Tiling.of_xla(sharding._hlo_sharding(len(shape)), len(shape), sharding.num_devices)
    )
    assert chosen.mesh is sharding.mesh
    assert chosen.is_equivalent_to(sharding, len(shape))
    assert sharding.devices_indices_map(shape) == chosen.devices_indices_map(shape)


@settings(max_examples=200)
@given(st.sampled_from(SIZES), divisions(), st.randoms(use_true_random=False), st.booleans())
def test_names_of_any_tiling(sizes, case, random, shuffle):
    """Other meshes over the same devices, and irregular orders."""
    other, entries, shape = case
    if math.prod(sizes) != math.prod(other):
        return
    mesh = mesh_of(sizes)
    sharding = NamedSharding(mesh_of(other), P(*named(entries)))
    tiling = Tiling.of_xla(sharding._hlo_sharding(len(shape)), len(shape), mesh.size)
    if shuffle:
        order = tiling.order.reshape(-1).tolist()
        random.shuffle(order)
        tiling = Tiling(tiling.tiles, np.array(order).reshape(tiling.order.shape))
    chosen = NamedSharding(mesh, P())._from_xla(tiling)
    indices = chosen.devices_indices_map(shape)
    for part in np.ndindex(*tiling.tiles):
        for partition in tiling.order[part]:
            expected = [
                range(d // n * i, d // n * (i + 1)) for d, n, i in zip(shape, tiling.tiles, part)
            ]
            index = indices[DEVICES[partition]]
            assert [range(*s.indices(d)) for s, d in zip(index, shape)] == expected
    if not shuffle:
        assert list(chosen.mesh.devices.flat) == list(mesh.devices.flat)


def test_parts_of_axes():
    whole = NamedSharding(Mesh(DEVICES, "a"), P("a"))
    halves = whole._from_xla(Tiling.along_mesh((2, 4), [(0,), (1,)]))
    assert halves.mesh.shape == {"a:(1)2": 2, "a:(2)4": 4}
    assert halves.spec == P("a:(1)2", "a:(2)4")
    minor = NamedSharding(MESH, P())._from_xla(Tiling.along_mesh((2, 2, 2), [(2,), ()]))
    assert minor.mesh.shape == {"x": 2, "y:(1)2": 2, "y:(2)2": 2} and minor.spec == P("y:(2)2")
    sixths = NamedSharding(Mesh(DEVICES[:6].reshape(2, 3), ("x", "y")), P())
    thirds = sixths._from_xla(Tiling.along_mesh((3, 2), [(0,), ()]))
    assert thirds.mesh.shape == {"_0": 3, "_1": 2} and thirds.spec == P("_0")


def test_names_of_partial_values():
    sharding = NamedSharding(TYPED, P("y", unreduced={"x"}))
    assert sharding._from_xla(sharding._tiling(2)) is sharding
    with pytest.raises(ValueError, match="no axes of the mesh"):
        sharding._from_xla(Tiling((1,), np.array([[7, 1, 2, 3, 4, 5, 6, 0]]), 2))


def test_other_shardings_over_the_same_devices():
    sharding = NamedSharding(MESH, P("x", "y"), memory_kind="pinned_host")
    assert sharding._replicated() is NamedSharding(MESH, P(), memory_kind="pinned_host")
    assert NamedSharding(MESH, P("x"))._batched(0) is NamedSharding(MESH, P(None, "x"))
    assert NamedSharding(MESH, P("x"))._batched(0, "y") is NamedSharding(MESH, P("y", "x"))
    assert NamedSharding(MESH, P("x"))._batched(2, "y").spec == P("x", None, "y")


# Errors

ERRORS = {
    "tuple": (lambda: NamedSharding(MESH, ("x",)), TypeError, "needs a PartitionSpec, got .'x',."),
    "None": (lambda: NamedSharding(MESH, None), TypeError, "needs a PartitionSpec, got None"),
    "mesh": (lambda: NamedSharding("m", P()), TypeError, "needs a Mesh or AbstractMesh, got 'm'"),
    "unknown": (
        lambda: NamedSharding(MESH, P("z")),
        ValueError,
        r"P\('z',\) contains 'z', which Mesh.* does not have: its axes are \('x', 'y'\)",
    ),
    "doubled": (
        lambda: NamedSharding(MESH, P("x", ("y", "x"))),
        ValueError,
        "divides along the mesh axis 'x' twice",
    ),
    "doubled in an entry": (lambda: NamedSharding(MESH, P(("x", "x"))), ValueError, "'x' twice"),
    "unreduced": (
        lambda: NamedSharding(MESH, P(unreduced={"x"})),
        ValueError,
        "unreduced of P.* contains 'x', but only axes of the type Explicit can be unreduced",
    ),
    "unknown reduced": (
        lambda: NamedSharding(TYPED, P(reduced={"z"})),
        ValueError,
        "reduced of P.* contains 'z', which Mesh",
    ),
    "unconstrained": (
        lambda: NamedSharding(TYPED, P(P.UNCONSTRAINED)),
        ValueError,
        "has an unconstrained entry, but no axis of Mesh.* has the type Auto",
    ),
    "memory": (
        lambda: NamedSharding(MESH, P(), memory_kind="foo"),
        ValueError,
        "Could not find memory addressable by device cpu",
    ),
    "memory of an abstract mesh": (
        lambda: NamedSharding(ABSTRACT, P(), memory_kind="foo"),
        ValueError,
        "there is no memory kind 'foo'",
    ),
    "size": (
        lambda: NamedSharding(MESH, P(None, "x")).shard_shape((8, 7)),
        ValueError,
        r"axis 1 of an array of shape \(8, 7\) has the size 7, which is not divisible by 2: "
        r"P\(None, 'x'\) divides it along the mesh axis 'x' of size 2. Pad it to 8, or use",
    ),
    "size along two axes": (
        lambda: NamedSharding(MESH, P(("x", "y"))).devices_indices_map((12,)),
        ValueError,
        "divisible by 8: .* along the mesh axes 'x' of size 2 and 'y' of size 4. Pad it to 16",
    ),
    "rank": (
        lambda: NamedSharding(MESH, P(None, "x")).shard_shape((8,)),
        ValueError,
        r"P\(None, 'x'\) has 2 entries for an array of 1 axis",
    ),
    "devices": (
        lambda: NamedSharding(ABSTRACT, P("x")).device_set,
        ValueError,
        "has no devices: its mesh is abstract",
    ),
    "attribute": (lambda: setattr(NamedSharding(MESH, P()), "foo", 1), AttributeError, "foo"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("size", [1, 2])
def test_results_have_the_specs_of_the_user(size):
    mesh = Mesh(np.array(devices()[:size]), ("x",))
    x = np.ones((4, 4), np.float32)

    def on(*spec):
        return device_put(x, NamedSharding(mesh, P(*spec)))

    flipped_twice = jit(lambda x: lax.transpose(lax.transpose(x, (1, 0)), (1, 0)))
    for spec in (P(), P(None), P("x"), P("x", None), P(None, "x")):
        assert (on(*spec) * 2).sharding.spec == spec
        assert flipped_twice(on(*spec)).sharding.spec == spec
        same = shard_map(lambda x: x * 2, mesh=mesh, in_specs=spec, out_specs=spec)
        assert same(on(*spec)).sharding.spec == spec
        doubled = jit(lambda x: x * 2, out_shardings=NamedSharding(mesh, spec))
        assert doubled(on()).sharding.spec == spec
    # That of the first argument, if it has the result's rank
    later = jit(lambda x, y: y + 1)(on(None, "x"), on("x", None)) if size > 1 else None
    assert later is None or later.sharding.spec == P("x")
    row = device_put(np.ones(4, np.float32), NamedSharding(mesh, P("x")))
    assert jit(lambda x, y: y + 1)(row, on(None)).sharding.spec == P()
    both = jit(lambda x, y: (x + 1, y + 1, lax.reduce_sum(x, (1,))))(on("x", None), on("x"))
    assert [v.sharding.spec for v in both[:2]] == [P("x", None)] * 2
    assert jit(lambda x: lax.reshape(x, (16,)))(on(None)).sharding.spec == P()
    total = shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P(None))
    assert total(on("x")).sharding.spec == P(None)
