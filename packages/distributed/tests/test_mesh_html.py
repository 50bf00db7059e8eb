"""Meshes and shardings in notebooks."""

import re

import primax_core as px
from primax_distributed import AbstractMesh, NamedSharding, P, get_mesh, make_mesh


def tables(text):
    rows = re.findall(r"<tr>(.*?)</tr>", text)
    assert text.count("<table>") == text.count("</table>") and text.count("<div>") == text.count(
        "</div>"
    )
    return [re.findall(r"<t[dh]>(.*?)</t[dh]>", row) for row in rows]


def test_mesh_shows_axes_and_devices():
    mesh = make_mesh((2, 2), ("x", "y"), devices=px.devices()[:4])
    kind = mesh.axis_types[0].name
    assert tables(mesh._repr_html_()) == [
        ["axis", "size", "type"], ["x", "2", kind], ["y", "2", kind],
        ["cpu:0", "cpu:1"], ["cpu:2", "cpu:3"],
    ]  # fmt: skip


def test_sharding_shows_what_each_mesh_axis_divides():
    mesh = make_mesh((2, 2), ("x", "y"), devices=px.devices()[:4])
    text = NamedSharding(mesh, P(None, ("y", "x")))._repr_html_()
    assert [row[-1] for row in tables(text)[1:3]] == ["axis 1", "axis 1"]
    assert "<b>NamedSharding</b> P(None, (&#x27;y&#x27;, &#x27;x&#x27;))" in text
    (head, *rows) = tables(NamedSharding(mesh, P("y"))._repr_html_())
    assert head == ["mesh axis", "size", "type", "divides"]
    assert [row[-1] for row in rows[:2]] == ["-", "axis 0"]


def test_meshes_without_a_table_of_devices():
    cube = make_mesh((2, 1, 2), ("x", "y", "z"), devices=px.devices()[:4])
    assert "4 devices, cpu:0 first" in cube._repr_html_()
    abstract = AbstractMesh((2, 4), ("x", "y"))
    text = NamedSharding(abstract, P("x"))._repr_html_()
    assert len(tables(text)) == 3 and "evices" not in text
    assert tables(get_mesh()._repr_html_()) == [["axis", "size", "type"]]
