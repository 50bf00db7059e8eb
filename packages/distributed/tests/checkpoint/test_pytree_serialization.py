"""``pytree_serialization``: one tree in a folder, with the reference's interface."""

from __future__ import annotations

import os
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import primax_core as pc
from primax_core import device_put, tree_util
from primax_core.extend import NodeSerialization, register_node_serialization
from primax_core.layout import Format, Layout
from primax_distributed import AbstractMesh, NamedSharding, P, checkpoint, make_mesh
from primax_distributed.array_serialization import pytree_serialization as trees

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def named(*spec):
    return NamedSharding(make_mesh((2, 4), ("x", "y")), P(*spec))


def tree():
    return {
        "layers": [device_put(X, named("x", "y")), (device_put(np.int32(3)), None)],
        "ordered": OrderedDict(z=device_put(X[0], named("x")), a=device_put(X > 3, named())),
        "empty": [],
    }


def test_trees_are_read_with_any_shardings(tmp_path):
    data = tree()
    assert trees.save(data, tmp_path / "t") is None
    types = trees.load_pytreedef(tmp_path / "t")
    assert types["layers"][0].shape == (8, 8) and types["layers"][1][1] is None
    assert type(types["ordered"]) is OrderedDict and [*types["ordered"]] == ["z", "a"]
    one = pc.sharding.SingleDeviceSharding(pc.devices()[1]) if hasattr(pc, "sharding") else named()
    shardings = {"layers": [named("y"), named()], "ordered": one, "empty": one}
    out = trees.load(str(tmp_path / "t"), shardings)
    assert pc.tree_util.tree_structure(out) == pc.tree_util.tree_structure(data)
    for a, b in zip(pc.tree_util.tree_leaves(out), pc.tree_util.tree_leaves(data), strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)
    assert out["layers"][0].sharding == named("y") and out["ordered"]["z"].sharding == one


def test_parts_are_left_out_by_a_mask(tmp_path):
    trees.save(tree(), tmp_path)
    mask = {"layers": [True, False], "ordered": False, "empty": True}
    out = trees.load(tmp_path, named(), mask=mask)
    assert out["layers"][0].sharding == named() and out["layers"][1] == (None, None)
    assert out["ordered"] == OrderedDict(z=None, a=None)


def test_layouts(tmp_path):
    trees.save([device_put(X)], tmp_path)
    columns = Format(Layout(major_to_minor=(1, 0)), named())
    (out,) = trees.load(tmp_path, [columns])
    assert out.format.layout.major_to_minor == (1, 0) and np.array_equal(out, X)


def test_futures(tmp_path):
    x = device_put(X, named("x"))
    saved = trees.nonblocking_save({"w": x}, tmp_path)
    x.delete()
    assert saved.pytree["w"].shape == (8, 8) and saved.result(60) is None and saved.done()
    read = trees.nonblocking_load(tmp_path, named("y"))
    assert read.pytree["w"].dtype == np.float32
    assert np.array_equal(read.result(60)["w"], X)
    failing = trees.nonblocking_load(tmp_path, NamedSharding(make_mesh((8,), "x"), P(None, "x")))
    assert np.array_equal(failing.result(60)["w"], X)


def test_a_tree_is_replaced_at_once(tmp_path, monkeypatch):
    trees.save({"w": device_put(X)}, tmp_path)
    trees.save({"v": device_put(X[0])}, tmp_path)
    assert [*trees.load(tmp_path, named())] == ["v"]
    with pytest.raises(ValueError, match="has a tree already, and overwrite is false"):
        trees.save({"w": device_put(X)}, tmp_path, overwrite=False)
    monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(checkpoint.CheckpointWriteError):
        trees.save({"w": device_put(X)}, tmp_path)
    monkeypatch.undo()
    assert [*trees.load(tmp_path, named())] == ["v"]


POINT = namedtuple("POINT", "x y")


def test_errors(tmp_path):
    x = device_put(X)
    for data, kind, text in [
        ({"a": 3.0}, ValueError, "leaves must be arrays or None, got 3.0 of type float"),
        ([np.ones(2)], ValueError, "convert it with device_put"),
        (POINT(x, x), TypeError, "a node of class POINT cannot be saved"),
        ({1: x}, TypeError, "keys of saved dicts must be strings, got 1"),
    ]:
        with pytest.raises(kind, match=text):
            trees.save(data, tmp_path / "t")
    assert not (tmp_path / "t").exists()
    with pytest.raises(TypeError, match="ts_specs must be None"):
        trees.save([x], tmp_path, ts_specs=[{"driver": "zarr"}])
    with pytest.raises(FileNotFoundError, match="has no tree of pytree_serialization"):
        trees.load(tmp_path / "t", named())
    (tmp_path / "notes.txt").write_text("important")
    with pytest.raises(RuntimeError, match=r"contains something else .*: notes.txt"):
        trees.save([x], tmp_path)
    trees.save({"a": x, "b": [x]}, tmp_path / "t")
    abstract = NamedSharding(AbstractMesh((2,), ("x",)), P())
    for shardings in (None, abstract, P("x")):
        with pytest.raises(TypeError, match="must contain a sharding over devices"):
            trees.load(tmp_path / "t", shardings)
    with pytest.raises(ValueError):
        trees.load(tmp_path / "t", {"a": named()})
    with pytest.raises(ValueError, match="cannot have the requested sharding"):
        trees.load(
            tmp_path / "t", NamedSharding(make_mesh((3,), "x", devices=pc.devices()[:3]), P("x"))
        )


Pair = namedtuple("Pair", "x y")


class Box:
    """A node whose metadata is a text."""

    def __init__(self, x, label):
        self.x, self.label = x, label


tree_util.register_pytree_node(Box, lambda b: ((b.x,), b.label), lambda t, xs: Box(*xs, t))
register_node_serialization(
    NodeSerialization(Pair, "tests.Pair", lambda _: b"", lambda _: None, None)
)
register_node_serialization(NodeSerialization(Box, "tests.Box", str.encode, bytes.decode, None))


def test_registered_classes(tmp_path, monkeypatch):
    """Classes that are registered for serialization come back, with their metadata."""
    pair = Pair(device_put(X), [Box(device_put(X[0]), "weights")])
    data = {"pair": pair, "z": (Pair(device_put(1.0), None),)}
    trees.save(data, tmp_path)
    loaded = trees.load(tmp_path, named())
    assert tree_util.tree_structure(loaded) == tree_util.tree_structure(data)
    box = loaded["pair"].y[0]
    assert type(box) is Box and box.label == "weights"
    np.testing.assert_array_equal(box.x, X[0])
    described = trees.load_pytreedef(tmp_path)
    assert described["pair"].x == pc.ShapeDtypeStruct((8, 8), np.float32)
    only = trees.load(tmp_path, named(), mask={"pair": Pair(True, False), "z": False})
    assert only["pair"].y[0].x is None and only["z"][0].x is None
    assert type(checkpoint.restore(tmp_path)["pair"]) is Pair

    registry = "primax_core._base.node_serialization"
    monkeypatch.setattr(f"{registry}._by_name", {})
    with pytest.raises(ValueError, match=r"not registered here, saved as 'tests.Pair', 'test"):
        trees.load(tmp_path, named())
    assert type(checkpoint.restore(tmp_path)["pair"]) is dict
    broken = NodeSerialization(Box, "tests.Box", str.encode, lambda _: 1 / 0, None)
    monkeypatch.setattr(f"{registry}._by_name", {"tests.Box": broken})
    with pytest.raises(ValueError, match=r"saved as 'tests.Box' cannot be restored as Box: Zero"):
        checkpoint.restore(tmp_path)


def test_metadata_that_are_no_bytes(tmp_path, monkeypatch):
    registry = "primax_core._base.node_serialization"
    monkeypatch.setattr(
        f"{registry}._by_type", {Box: NodeSerialization(Box, "b", lambda t: t, bytes.decode, None)}
    )
    with pytest.raises(TypeError, match="serialize_auxdata of Box must return bytes, got str"):
        trees.save([Box(device_put(X), "t")], tmp_path)
