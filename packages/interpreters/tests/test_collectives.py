"""Collectives of ``explain``: texts of modules, groups of devices, meshes."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.extend.runtime import PartitionMesh, TiledSharding, Tiling
from primax_interpreters._insight.collectives import Program, collectives_of, size_of, written
from primax_interpreters._insight.device_groups import groups_of
from primax_interpreters._insight.hlo_text import parsed
from primax_interpreters._insight.places import Line, Places
from primax_interpreters.insight import Traffic, explain

MESH = PartitionMesh(("x", "y"), np.arange(8).reshape(4, 2))
ALONG_X, ALONG_Y = [[0, 2, 4, 6], [1, 3, 5, 7]], [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,1},{2,3},{4,5},{6,7}}", ALONG_Y),
        ("{}", [[*range(8)]]),
        ("{{0, 1}, {2, 3}}", [[0, 1], [2, 3]]),
        ("[4,2]<=[8]", ALONG_Y),
        ("[2,4]<=[4,2]T(1,0)", ALONG_X),
        ("mesh['a'=1,'b'=4,'c'=2] {'b'}", ALONG_X),
        ("mesh['b'=4,'c'=2] {'b','c'}", [[*range(8)]]),
        ("mesh['a'=8] {'a':(1)4}", ALONG_X),
        ("mesh['a'=8] {'a':(4)2}", ALONG_Y),
        ("mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}", [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ("mesh['a'=2,'b'=2], device_ids=(3,1,2,0) {'a'}", [[3, 2], [1, 0]]),
        ("mesh['a'=8] {'a':(1)2,'a':(4)2}", None),
        ("a new syntax", None),
    ],
)
def test_groups_in_every_syntax(text, groups):
    assert (
        groups_of(f"all-reduce(%a), channel_id=1, replica_groups={text}, x=1", False, 8) == groups
    )


def test_sizes_of_types():
    assert size_of("f32[4,8]{1,0}") == 128 and size_of("pred[3]") == 3 and size_of("c64[]") == 8
    assert size_of("(bf16[2]{0}, /*index=1*/f8e4m3fn[5]{0}, s4[4]{0}, token[])") == 4 + 5 + 2


MODULE = """HloModule m

%body (p: f32[4,8]) -> f32[4,8] {
  %p = f32[4,8]{1,0} parameter(0)
  ROOT %rs = f32[1,8]{1,0} reduce-scatter(%p), replica_groups=[2,4]<=[4,2]T(1,0), to_apply=%add, metadata={op_name="while/psum#1"}
}

ENTRY %main (a: f32[4,8], b: f32[2]) -> f32[4,8] {
  %a = f32[4,8]{1,0} parameter(0)
  %b = f32[2]{0} parameter(1)
  %mul = f32[2]{0} multiply(%b, %b), metadata={op_name="mul#2"}
  %ag = (f32[4,8]{1,0}, f32[8,8]{1,0}) all-gather-start(%a), replica_groups={{0,1},{2,3},{4,5},{6,7}}, metadata={op_name="dot_general#0"}
  %agd = f32[8,8]{1,0} all-gather-done(%ag)
  %ar = (f32[4,8]{1,0}, f32[2]{0}) all-reduce(%a, %mul), replica_groups={}, to_apply=%add, metadata={op_name="shard_map"}
  %cp = f32[2]{0} collective-permute(f32[2]{0} %b), source_target_pairs={{0,2},{2,4},{1,3},{3,3}}
  %w = f32[4,8]{1,0} while(%a), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"3"}}
  %s = f32[2]{0} all-reduce(%b), replica_groups={{0,2},{4,6},{1,3},{5,7}}, to_apply=%add
}
"""  # noqa: E501


def collectives(*requested, meshes=(MESH,)):
    places = Places()
    for number in range(3):
        places.number(Line("f.py", number + 10, "f"))
    return collectives_of(Program(parsed(MODULE), places, 8, meshes, requested))


def test_collectives_of_a_module():
    gather, reduce, permute, scatter, part = collectives()
    assert (gather.kind, gather.axes, gather.group_size) == ("all-gather", ("y",), 2)
    assert (gather.bytes, gather.sent, gather.added) == (2 * 128, 128, True)
    assert [ln.number for ln in gather.lines] == [10] and gather.operations == ("dot_general",)
    assert (reduce.axes, reduce.bytes, reduce.sent) == (("x", "y"), 136, 2 * 136 * 7 / 8)
    assert reduce.operations == ("mul",)  # that of its operands
    assert (permute.axes, permute.group_size, permute.sent) == (("x",), 4, 8 * 3 / 8)
    assert permute.lines == () and permute.added is None
    assert (scatter.bytes, scatter.sent, scatter.times) == (128, 96, 3)
    assert scatter.added is False and [ln.number for ln in scatter.lines] == [11]
    assert (part.axes, part.whole, part.along) == (("x",), False, "part of x")


def test_joined_collectives_have_the_lines_of_the_requested_ones():
    class Equation:
        params = {"axes": ("y", "x"), "axis_index_groups": None}
        invars = ()
        primitive = lax.psum_p

    lines = [Line("f.py", n, "f") for n in (1, 2, 3)]
    (name, _, axes, _) = written(Equation, lines[0])
    assert name == "psum" and axes == {"x", "y"}
    requested = [
        written(Equation, lines[0])._replace(bytes=128),
        written(Equation, lines[1])._replace(bytes=8),
        written(Equation, lines[2])._replace(bytes=8, axes=frozenset("x")),
    ]
    joined = collectives(*requested)[1]
    assert joined.lines == (lines[0], lines[1]) and joined.operations == ("psum",)
    assert joined.added is False


def test_axes_of_the_mesh_that_the_groups_follow():
    devices = PartitionMesh(("d",), np.arange(8))
    swapped = PartitionMesh(("a", "b"), np.arange(8).reshape(2, 4).T)
    assert collectives(meshes=())[0].along == "groups of 2"
    assert collectives(meshes=(devices,))[0].along == "part of d"
    assert collectives(meshes=(devices, MESH))[0].along == "y"
    assert collectives(meshes=(swapped,))[3].along == "part of a, b"


def divided(x):
    order = np.arange(4).reshape(4, 1)
    return px.device_put(x, TiledSharding(px.devices()[:4], Tiling((4, 1), order)))


def test_a_sharding_without_names():
    report = explain(lambda x: lax.reduce_sum(x, (0,)), divided(np.ones((8, 2), np.float32)))
    (sum,) = report.collectives
    assert (sum.kind, sum.axes, sum.along) == ("all-reduce", None, "groups of 4")
    assert (sum.bytes, sum.sent, sum.added) == (8, 12, True)
    assert sum.operations == ("reduce_sum",) and sum.lines[0].function.endswith("<lambda>")
    assert report.communication == {("all-reduce", None): Traffic(1, 8, 12, False)}
    text = str(report)
    assert "1 collective on 4 devices, 8 B; each device sends at least 12 B" in text
    assert "reduce_sum (added by XLA)" in text
    assert "reduce_sum (added by XLA)" in report.to_html()


def test_no_communication():
    report = explain(lambda x: x * x, divided(np.ones((8, 2), np.float32)))
    assert report.collectives == () and report.num_devices == 4
    assert "Communication\n  nothing: the 4 devices exchange no values" in str(report)
    alone = explain(lambda x: x * x, np.ones(3))
    assert alone.num_devices == 1 and "Communication" not in str(alone)
    assert "<h2>Communication" not in alone.to_html()
