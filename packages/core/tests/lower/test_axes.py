"""Collectives over the axes of a mesh: owners of axes, and the lowered module."""

from __future__ import annotations

import re

import numpy as np
import pytest
from mesh_regions import MESH, Owner, over_mesh

import primax_core as pc
from primax_core import lax
from primax_core._lower.axes import MeshAxes
from primax_core._lower.module import lower_module
from primax_core._trace.axes import axis_env
from primax_core.extend import Primitive, ShapedArray, abstract, jvp, lower, stage
from primax_core.extend.traces import named_axes, owner_of

V = ShapedArray((8,), np.float32)
M = ShapedArray((8, 4), np.float32)


def lowered(f, *avals):
    return str(
        lower_module(stage(lambda *xs: [f(*xs)], avals), "f", "cpu", num_partitions=4).module
    )


def collectives(f, *avals, **options):
    """The collectives in a lowered function: name and groups."""
    text = lowered(over_mesh(f, *avals, **options), *avals)
    matches = re.findall(
        r"stablehlo\.(all_\w+|reduce_scatter|collective_permute)\"?.*?dense<(.*?)>", text
    )
    return [(name, groups) for name, groups in matches]


# Axes and their owners


def test_owners_are_part_of_the_key():
    one, other = Owner(), Owner()
    keys = []
    for owner in (None, one, other, one):
        with named_axes({"x": 2}, owner):
            keys.append(axis_env.key)
            assert owner_of(("x",)) is owner
    assert keys[1] == keys[3] and len(set(keys)) == 3
    assert owner_of(("x",)) is None


def test_an_axis_of_vmap_hides_an_axis_of_an_owner():
    with named_axes({"x": 2, "y": 2}, Owner()):
        seen = []

        def f(x):
            seen.append((owner_of(("x",)), owner_of(("x", "y")) is None))
            return lax.psum(x, "x")

        assert pc.vmap(f, axis_name="x")(np.arange(3.0)).tolist() == [3.0] * 3
    assert seen == [(None, False)]


def test_the_innermost_owner_binds():
    outer, inner = Owner(), Owner()
    with named_axes({"x": 2}, outer), named_axes({"y": 2}, inner):
        assert owner_of(("x",)) is outer
        assert owner_of(("x", "y")) is inner is owner_of(("y", "x"))


def test_collectives_are_bound_by_the_owner():
    owner = Owner()

    def f(x):
        lax.psum(x, ("x", "y"))
        lax.pmax(x, "x")
        lax.ppermute(x, "x", [(0, 1)])
        lax.all_gather(x, ("x", "y"))
        lax.all_gather(x, "y", to="invarying")
        lax.psum_scatter(x, "x")
        lax.all_to_all(x, "x", 0, 0)
        lax.axis_index(("x", "y"))
        return lax.pcast(x, ("x", "y"), to="varying")

    with named_axes(MESH, owner):
        stage(lambda x: [f(x)], [ShapedArray((2,), np.float32)])
    assert owner.bound == [
        ("psum", ("x", "y"), "varying"),
        ("pmax", ("x",), "varying"),
        ("ppermute", ("x",), "varying"),
        ("all_gather", ("x", "y"), "varying"),
        ("all_gather", ("y",), "invarying"),
        ("reduce_scatter", ("x",), "varying"),
        ("all_to_all", ("x",), "varying"),
        ("axis_index", "x", "varying"),
        ("axis_index", "y", "varying"),
        ("pcast", ("x", "y"), "varying"),
    ]


def test_a_sum_over_axes_of_vmap_and_of_a_mesh():
    owner = Owner()

    def f(x):
        return pc.vmap(lambda v: lax.psum(v, ("i", "x")), axis_name="i")(x)

    with named_axes(MESH, owner):
        jaxpr = stage(lambda x: [f(x)], [V])
    assert owner.bound == [("psum", ("x",), "varying")]
    assert [e.primitive.name for e in jaxpr.eqns][:2] == ["reduce_sum", "psum"]


def test_functions_are_traced_anew_for_another_owner():
    owners = [Owner(), Owner()]

    @pc.jit
    def f(x):
        return lax.psum(x, "x")

    for owner in owners:
        with named_axes({"x": 2}, owner):
            stage(lambda x: [f(x)], [V])
            stage(lambda x: [f(x)], [V])
    assert [len(o.bound) for o in owners] == [1, 1]


def test_derivatives_are_derived_anew_for_other_axes():
    """The types of a collective may depend on the owner of its axes, and so may its derivative."""
    sin_of = Primitive("sin_over")
    sin_of.rule(abstract)(lambda x, *, axes: x)
    seen = []

    @sin_of.rule(jvp)
    def _jvp(primals, tangents, *, axes):
        seen.append(owner_of(axes))
        return sin_of.bind(*primals, axes=axes), lax.mul(tangents[0], primals[0])

    owners = [Owner(), Owner(), None]
    for owner in owners * 2:
        with named_axes({"x": 2}, owner):
            stage(lambda x: pc.jvp(lambda v: sin_of.bind(v, axes=("x",)), (x,), (x,)), [V])
    assert seen == owners


# Groups of indices


@pytest.mark.parametrize("groups", [[[0], [1, 2]], [[0, 1], [1, 2]], [[0, 1], [2, 7]], [[0, 1]]])
def test_groups_must_cover_all_indices_once(groups):
    with pytest.raises(ValueError, match=r"psum: axis_index_groups must cover all .* 0 to 3 "):
        over_mesh(lambda x: lax.psum(x, ("x", "y"), axis_index_groups=groups), V)


def test_groups_must_have_equal_sizes_where_shapes_depend_on_them():
    for f in (
        lambda x: lax.all_gather(x, ("x", "y"), axis_index_groups=[[0], [1, 2, 3]]),
        lambda x: lax.psum_scatter(x, ("x", "y"), axis_index_groups=[[0], [1, 2, 3]]),
        lambda x: lax.all_to_all(x, ("x", "y"), 0, 0, axis_index_groups=[[0], [1, 2, 3]]),
        lambda x: lax.pmean(x, ("x", "y"), axis_index_groups=[[0], [1, 2, 3]]),
    ):
        with pytest.raises(ValueError, match="must have equal sizes"):
            over_mesh(f, V)


def test_groups_are_refused_for_axes_of_vmap_only():
    with pytest.raises(NotImplementedError, match="not supported over axes of vmap"):
        pc.vmap(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1]]), axis_name="i")(np.ones(2))


def test_partitions_of_groups():
    axes = MeshAxes(("x", "y", "z"), (2, 3, 2), frozenset("xyz"))
    assert axes.groups(["z"]).tolist() == [[i, i + 1] for i in range(0, 12, 2)]
    assert axes.groups(["x"]).tolist() == [[i, i + 6] for i in range(6)]
    assert axes.groups(["z", "x"])[0].tolist() == [0, 6, 1, 7]
    assert axes.groups(["y"], ((0,), (2, 1)))[[0, 4]].tolist() == [[0, -1], [4, 2]]
    assert axes.pairs(["x"], [(0, 1)])[0].tolist() == [0, 6]
    assert axes.pairs(["x"], []).shape == (0, 2)
    assert axes.free == () and axes == MeshAxes(("x", "y", "z"), (2, 3, 2), frozenset("xyz"))


# Modules


def test_groups_in_modules():
    pairs = "[[0, 1], [2, 3]]"
    assert collectives(lambda x: lax.psum(x, "y"), V) == [("all_reduce", pairs)]
    assert collectives(lambda x: lax.psum(x, ("y", "x")), V) == [("all_reduce", "[[0, 2, 1, 3]]")]
    assert collectives(lambda x: lax.pmax(x, "x"), V) == [("all_reduce", "[[0, 2], [1, 3]]")]
    assert collectives(lambda x: lax.all_gather(x, "y"), V) == [("all_gather", pairs)]
    assert collectives(lambda x: lax.all_gather(x, ("x", "y"), tiled=True), V) == [
        ("all_gather", "[[0, 1, 2, 3]]")
    ]
    assert collectives(lambda x: lax.psum_scatter(x, "y"), M) == [("reduce_scatter", pairs)]
    assert collectives(lambda x: lax.all_to_all(x, "y", 0, 0), V) == [("all_to_all", pairs)]
    assert collectives(lambda x: lax.ppermute(x, "x", [(0, 1)]), V) == [
        ("collective_permute", "[[0, 2], [1, 3]]")
    ]
    groups = ((0, 3), (1, 2))
    assert collectives(lambda x: lax.psum(x, ("x", "y"), axis_index_groups=groups), V) == [
        ("all_reduce", "[[0, 3], [1, 2]]")
    ]
    assert collectives(
        lambda x: lax.psum(x, ("x", "y"), axis_index_groups=[[0], [1, 2, 3]]), V
    ) == [("all_reduce", "[[0, -1, -1], [1, 2, 3]]")]


def test_regions_in_modules():
    text = lowered(over_mesh(lambda x: lax.psum(x, "x"), V, names=("x",)), V)
    assert 'sdy.mesh @mesh = <["x"=2, "y"=2]>' in text
    assert 'sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x", ?}]>]' in text
    assert 'manual_axes={"x"}' in text


def test_functions_are_shared_in_a_region_only():
    f = pc.jit(lambda x: lax.mul(x, x))

    def both(x):
        return lax.add(over_mesh(lambda v: f(f(v)), V)(x), f(f(x)))

    text = lowered(both, V)
    assert text.count("func.func private") == 2
    owner = Owner()
    one, two = (over_mesh(lambda v, n=n: f(v), V, owner=owner) for n in range(2))
    again = lowered(lambda x: two(one(x)), V)
    assert again.count("func.func private") == 1


def test_other_primitives_are_lowered_as_those_of_the_core():
    sum_p = Primitive("sum_of_all")
    sum_p.rule(abstract)(lambda x: x)

    @sum_p.rule(lower)
    def _lower(ctx, x):
        return ctx.rule(lax.psum_p)(ctx, x, axes=("x", "y"), axis_index_groups=None)

    assert collectives(sum_p.bind, V) == [("all_reduce", "[[0, 1, 2, 3]]")]


def test_the_position_along_an_axis():
    whole = lowered(over_mesh(_position, V), V)
    assert whole.count("sdy.manual_computation") == 1 and "partition_id" in whole
    partial = lowered(over_mesh(_position, V, names=("y",)), V)
    assert partial.count("sdy.manual_computation") == 2
    assert 'manual_axes={"x"} ()' in partial


def _position(x):
    return lax.mul(x, lax.convert_element_type(lax.axis_index("y"), np.float32))


def test_large_constants_are_operands_of_regions():
    table = np.arange(32, dtype=np.float32)
    whole = pc.device_put(table)
    text = lowered(over_mesh(lambda x: lax.add(x, lax.slice(whole, (0,), (2,))), V), V)
    assert "sdy.manual_computation(%arg0, %arg1)" in text
    assert 'in_shardings=[<@mesh, [{}]>, <@mesh, [{"x", "y"}]>]' in text


def test_collectives_without_a_mesh():
    with named_axes({"x": 2}, Owner()):
        jaxpr = stage(lambda x: [lax.psum(x, "x")], [V])
    with pytest.raises(NameError, match="A collective was compiled outside of the vmap"):
        lower_module(jaxpr, "f", "cpu")
    with pytest.raises(NameError, match="Found an unbound axis name: x"):
        lax.psum(1.0, "x")


def test_nested_regions_have_one_mesh():
    inner = stage(lambda x: [lax.sin(x)], [ShapedArray((1,), np.float32)])
    other_p = Primitive("other", multiple_results=True)
    other_p.rule(abstract)(lambda x: [x])
    other_p.rule(lower)(
        lambda ctx, x: ctx.manual(inner, [x], {"z": 4}, ["z"], ["<mesh<[]>, []>"], [])
    )
    with pytest.raises(ValueError, match=r"over the mesh \{'z': 4\} is inside of one over"):
        lowered(over_mesh(lambda x: other_p.bind(x)[0], V), V)


def test_ragged_exchange_for_other_platforms():
    i = ShapedArray((16,), np.int32)

    def f(x, out, *indices):
        return lax.ragged_all_to_all(x, out, *indices, axis_name=("x", "y"))

    whole = over_mesh(f, V, V, i, i, i, i)
    jaxpr = stage(lambda *xs: [whole(*xs)], [V, V, i, i, i, i])
    text = str(lower_module(jaxpr, "f", "cuda", num_partitions=4).module)
    assert "@ragged_all_to_all(" in text
    assert "{channel_id = 1 : i64, replica_groups = dense<[[0, 1, 2, 3]]>" in text
