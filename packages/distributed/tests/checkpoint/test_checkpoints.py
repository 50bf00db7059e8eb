"""Checkpoints of one process: saved and restored on meshes of 8 devices, and as NumPy arrays."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

import primax_core as pc
from primax_core import device_put, enable_x64, tree_util
from primax_distributed import (
    AxisType,
    Mesh,
    NamedSharding,
    P,
    SingleDeviceSharding,
    checkpoint,
    make_mesh,
    set_mesh,
)

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def mesh_2x4(**kwargs) -> Mesh:
    return make_mesh((2, 4), ("x", "y"), **kwargs)


def named(*spec, mesh=None):
    return NamedSharding(mesh or mesh_2x4(), P(*spec))


def equal(array, expected):
    assert array.dtype == expected.dtype and array.shape == expected.shape
    if isinstance(array, pc.Array):
        for s in array.addressable_shards:
            assert np.array_equal(np.asarray(s.data), expected[s.index])
    else:
        assert np.array_equal(array, expected)


@pytest.mark.parametrize("spec", [("x", "y"), ("y",), (("y", "x"), None), (None, "x"), ()])
def test_other_meshes(tmp_path, spec):
    checkpoint.save(tmp_path, [device_put(X, named(*spec))], step=3)
    four = Mesh(np.array(pc.devices()[4:8]), ("z",))
    for sharding in [
        named("x", "y"), named("y", "x"), named(), named("z", mesh=four),
        named(None, "a", mesh=make_mesh((8,), ("a",))), pc.devices()[3],
    ]:  # fmt: skip
        (x,) = checkpoint.restore(tmp_path, [pc.device_put(X, sharding)])
        equal(x, X)
        (y,) = checkpoint.restore(tmp_path, x.sharding)
        assert y.sharding == x.sharding == pc.device_put(X, sharding).sharding and y.committed
        equal(y, X)
    (host,) = checkpoint.restore(tmp_path)
    assert type(host) is np.ndarray
    equal(host, X)


def test_axis_types_and_names_of_meshes(tmp_path):
    explicit = mesh_2x4(axis_types=(AxisType.Explicit, AxisType.Explicit))
    auto = mesh_2x4(axis_types=(AxisType.Auto, AxisType.Auto))
    tree = {"a": device_put(X, named("x", "y", mesh=explicit)), "n": X, "k": 3}
    checkpoint.save(tmp_path, tree, step=0)
    for mesh in (explicit, auto, make_mesh((4,), ("y",), devices=pc.devices()[:4])):
        out = checkpoint.restore(tmp_path, mesh)
        spec = ("x", "y") if "x" in mesh.axis_names else (None, "y")
        assert out["a"].sharding == named(*spec, mesh=mesh) and out["a"].sharding.mesh is mesh
        equal(out["a"], X)
        assert type(out["n"]) is np.ndarray and out["k"] == 3
    with set_mesh(explicit):
        out = checkpoint.restore(tmp_path, {"a": P("y"), "n": np.ndarray, "k": 0})
    assert out["a"].aval.str_short() == "f32[8@y,8]"


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64", "int4"]
    + ["uint4", "int2", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"],
)  # fmt: skip
def test_dtypes(tmp_path, dtype):
    element = np.dtype(getattr(ml_dtypes, dtype, dtype))
    values = (np.arange(16) % 2).reshape(8, 2).astype(element)
    if dtype == "float8_e8m0fnu":  # has no zero
        values = (np.arange(16) % 2 + 1).reshape(8, 2).astype(element)
    checkpoint.save(tmp_path, {"d": device_put(values, named("y")), "n": values}, step=1)
    out = checkpoint.restore(tmp_path, {"d": named("x"), "n": np.ndarray})
    assert out["d"].dtype == element and out["d"].sharding == named("x")
    restored = checkpoint.restore(tmp_path)
    equal(restored["d"], values)
    equal(restored["n"], values)
    one = checkpoint.restore(tmp_path, SingleDeviceSharding(pc.devices()[2]))
    assert one["d"].devices() == {pc.devices()[2]}
    assert np.array_equal(np.asarray(one["d"]), values)
    assert np.array_equal(np.asarray(one["n"]), values)


def test_wide_dtypes(tmp_path):
    x = np.arange(8.0) + 2**-50
    with enable_x64(True):
        tree = {"f": device_put(x, named("x")), "i": np.int64(2**60), "c": x * 1j}
        checkpoint.save(tmp_path, tree, step=1)
        equal(checkpoint.restore(tmp_path, tree)["f"], x)
    equal(checkpoint.restore(tmp_path)["f"], x)
    assert checkpoint.describe(tmp_path)["f"].dtype == np.float64
    assert checkpoint.restore(tmp_path)["i"] == 2**60
    with pytest.raises(
        checkpoint.CheckpointMismatchError, match=r"\['f'\] .* float64, .* option enable_x64"
    ):
        checkpoint.restore(tmp_path, {"f": named("x")}, partial=True)


def test_other_leaves_and_empty_nodes(tmp_path):
    big = 10**40
    tree = {
        "numbers": [1, -big, 2.5, float("inf"), True, 1 - 2j, "text\n\u03b1"], "none": None,
        "empty": {"list": [], "tuple": (), "dict": {}},
        3: (np.float32(2), np.zeros((0, 4), np.int8)),
        "s": device_put(np.float32(7), named()), "e": device_put(X[:0], named("x")),
    }  # fmt: skip
    tree = {str(k): v for k, v in tree.items()}
    checkpoint.save(tmp_path, tree, step=0)
    for out in (checkpoint.restore(tmp_path), checkpoint.restore(tmp_path, tree)):
        assert tree_util.tree_structure(out) == tree_util.tree_structure(tree)
        for a, b in zip(tree_util.tree_leaves(out), tree_util.tree_leaves(tree), strict=True):
            assert np.array_equal(np.asarray(a), np.asarray(b))
    assert out["numbers"][:2] == [1, -big] and type(out["numbers"][4]) is bool
    assert out["s"].sharding == named() and out["e"].sharding == named("x")
    assert np.isnan(_saved(tmp_path / "n", [float("nan")])[0])
    assert _saved(tmp_path / "one", X[0]).shape == (8,)
    assert _saved(tmp_path / "nothing", None) is None


def _saved(path, tree):
    checkpoint.save(path, tree, step=0)
    return checkpoint.restore(path)


@tree_util.register_dataclass
@dataclass
class State:
    params: dict
    step: int


def test_classes_and_their_fields(tmp_path):
    state = State({"w": device_put(X, named("x"))}, 5)
    checkpoint.save(tmp_path, state, step=5)
    out = checkpoint.restore(tmp_path)
    assert type(out) is dict and out["step"] == 5
    for target in (
        State({"w": named("y")}, 0),
        State(pc.ShapeDtypeStruct((8, 8), np.float32, sharding=named("y")), 0),
    ):
        if not isinstance(target.params, dict):
            target.params = {"w": target.params}
        out = checkpoint.restore(tmp_path, target)
        assert type(out) is State and out.params["w"].sharding == named("y") and out.step == 5
    # A subtree by one sharding, and a dict in place of a class.
    out = checkpoint.restore(tmp_path, {"params": named("y"), "step": 0})
    assert out["params"]["w"].sharding == named("y")
    out = checkpoint.restore(tmp_path, {"params": np.ndarray}, partial=True)
    assert type(out["params"]["w"]) is np.ndarray and [*out] == ["params"]


def test_arrays_on_the_default_device(tmp_path):
    checkpoint.save(tmp_path, {"w": X, "n": 4, "a": device_put(np.int32(3))}, step=0)
    structs = {
        "w": pc.ShapeDtypeStruct((8, 8), np.float32),
        "n": pc.ShapeDtypeStruct((), np.int32),
        "a": 0,
    }
    out = checkpoint.restore(tmp_path, structs)
    assert isinstance(out["w"], pc.Array) and not out["w"].committed
    assert isinstance(out["n"], pc.Array) and out["n"] == 4
    assert type(out["a"]) is int and out["a"] == 3


def test_chunks_of_large_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("primax_distributed.checkpoint._stores.CHUNK_BYTES", 64)
    x = np.arange(24 * 10 * 7, dtype=np.int16).reshape(24, 10, 7)
    checkpoint.save(tmp_path, device_put(x, named("y", "x")), step=0, concurrent_bytes=100)
    out = checkpoint.restore(tmp_path, named("x"), concurrent_bytes=100)
    equal(out, x)
    equal(checkpoint.restore(tmp_path, named(None, "x", None)), x)


def test_steps(tmp_path):
    for step in (10, 2, 0):
        checkpoint.save(tmp_path, {"step": step}, step)
    assert checkpoint.steps(tmp_path) == [0, 2, 10]
    assert checkpoint.steps(tmp_path / "none") == []
    assert checkpoint.restore(tmp_path) == {"step": 10}
    assert checkpoint.restore(tmp_path, step=2) == {"step": 2}
    with pytest.raises(checkpoint.CheckpointExistsError, match="step 2 already: pass overwrite"):
        checkpoint.save(tmp_path, {"step": 3}, 2)
    for value in (7, 8):
        checkpoint.save(tmp_path, {"step": value}, 2, overwrite=True)
        assert checkpoint.restore(tmp_path, step=2) == {"step": value}
    assert sorted(f.name for f in tmp_path.iterdir()) == ["0", "10", "2.2"]
    (tmp_path / ".writing-11-abc").mkdir()
    (tmp_path / "notes").mkdir()
    assert checkpoint.prune(tmp_path, keep=2) == [0]
    assert checkpoint.prune(tmp_path, keep=2, remains_after_seconds=-1) == []
    assert sorted(f.name for f in tmp_path.iterdir()) == ["10", "2.2", "notes"]
    with pytest.raises(ValueError, match="at least one"):
        checkpoint.prune(tmp_path, keep=0)


def test_values_at_the_time_of_the_call(tmp_path):
    host = X.copy()
    x = device_put(X, named("x", "y"))
    double = pc.jit(lambda x: x * 2, donate_argnums=0)
    with checkpoint.AsyncCheckpointer(tmp_path) as checkpoints:
        for step in range(5):
            checkpoints.save({"x": x, "host": host}, step)
            x = double(x)
            host *= 2
        checkpoints.wait()
        assert checkpoint.steps(tmp_path) == [*range(5)]
    for step in range(5):
        out = checkpoint.restore(tmp_path, step=step)
        equal(out["x"], X * 2**step)
        equal(out["host"], X * 2**step)


def test_errors_of_the_writer(tmp_path):
    checkpoint.save(tmp_path, X, 1)
    checkpoints = checkpoint.AsyncCheckpointer(tmp_path)
    checkpoints.save(X, 1)
    with pytest.raises(checkpoint.CheckpointExistsError):
        checkpoints.save(X, 2)
    checkpoints.save(X, 2)
    checkpoints.wait()
    assert checkpoint.steps(tmp_path) == [1, 2]
    with pytest.raises(KeyError) as raised, checkpoints:
        checkpoints.save(X, 2)
        raise KeyError("body")
    assert "the last checkpoint could not be written" in raised.value.__notes__[0]
    with pytest.raises(checkpoint.CheckpointExistsError), checkpoints:
        checkpoints.save(X, 2)


def test_a_running_event_loop(tmp_path):
    async def use():
        checkpoint.save(tmp_path, X, 1)
        return checkpoint.restore(tmp_path, named("x"))

    equal(asyncio.run(use()), X)


def test_parts_are_read_once(tmp_path, monkeypatch):
    from primax_distributed.checkpoint import _database, _restore

    checkpoint.save(tmp_path, device_put(X, named("x")), 1)
    bounds_read = []
    original = _database.open_array

    async def counted(*args):
        read = await original(*args)

        async def part(bounds):
            bounds_read.append(bounds)
            return await read(bounds)

        return part

    monkeypatch.setattr(_restore, "open_array", counted)
    equal(checkpoint.restore(tmp_path, named("y")), X)
    assert sorted(bounds_read) == [((2 * i, 2 * i + 2), (0, 8)) for i in range(4)]
