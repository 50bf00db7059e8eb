"""``array_serialization``: arrays at addresses of tensorstore."""

from __future__ import annotations

import asyncio
import os

import ml_dtypes
import numpy as np
import pytest
import tensorstore as ts

import primax_core as pc
from primax_core import device_put
from primax_core.layout import Format
from primax_distributed import NamedSharding, P, make_mesh
from primax_distributed.array_serialization import _manager, serialization

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def named(*spec):
    return NamedSharding(make_mesh((2, 4), ("x", "y")), P(*spec))


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
@pytest.mark.parametrize("ocdbt", [False, True])
def test_formats(tmp_path, driver, ocdbt):
    spec = serialization.get_tensorstore_spec(tmp_path / "a" / "w", driver=driver, ocdbt=ocdbt)
    x = device_put(X, named("x", "y"))
    calls = []
    manager = serialization.GlobalAsyncCheckpointManager()
    manager.serialize([x], [spec], on_commit_callback=lambda: calls.append(1))
    (out,) = manager.deserialize([named("y")], [spec])
    assert out.sharding == named("y") and np.array_equal(out, X) and calls == [1]
    serialization.run_serialization([x], [ts.Spec(spec)])
    (out,) = serialization.run_deserialization([named()], [ts.Spec(spec)])
    assert np.array_equal(out, X)


def test_specs():
    get = serialization.get_tensorstore_spec
    x = device_put(X, named("x", "y"))
    assert get("/a/b/", ocdbt=True, process_idx=3) == {
        "driver": "zarr",
        "kvstore": {
            "driver": "ocdbt", "base": {"driver": "file", "path": "/a/process_3"}, "path": "b"
        },
    }  # fmt: skip
    assert get("gs://b/x/y")["kvstore"] == {"driver": "gcs", "bucket": "b", "path": "x/y"}
    assert get("s3://b/x/y", ocdbt=True)["kvstore"]["base"] == {
        "driver": "s3", "bucket": "b", "path": "x"
    }  # fmt: skip
    assert get("/a", arr=x)["metadata"] == {
        "compressor": {"id": "zstd"}, "shape": (8, 8), "chunks": [4, 2]
    }  # fmt: skip
    grid = get("/a", arr=x, driver="zarr3")["metadata"]["chunk_grid"]
    assert grid["configuration"] == {"chunk_shape": [4, 2]}
    with pytest.raises(ValueError, match="the path must be absolute, got a"):
        get("a", ocdbt=True)
    with pytest.raises(ValueError, match="gs://b must have a bucket and a path"):
        get("gs://b")


def test_other_shapes_and_dtypes(tmp_path):
    spec = serialization.get_tensorstore_spec(tmp_path / "x")
    serialization.run_serialization([device_put(X, named("x"))], [spec])
    padded = np.pad(X, [(0, 8), (0, 0)])
    for shape in [(16, 8), (4, 8), (16, 4)]:
        (out,) = serialization.run_deserialization([named("y", "x")], [spec], [shape])
        assert np.array_equal(out, padded[: shape[0], : shape[1]])
    (out,) = serialization.run_deserialization([named("y")], [spec], dtypes=[np.int32])
    assert out.dtype == np.int32 and np.array_equal(out, X)
    with pytest.raises(ValueError, match="another number of axes"):
        serialization.run_deserialization([named("y")], [spec], [(64,)])

    def read(in_type):
        return asyncio.run(serialization.async_deserialize(in_type, spec))

    out = read(pc.ShapeDtypeStruct((8, 8), ml_dtypes.bfloat16, sharding=named("y")))
    assert out.dtype == ml_dtypes.bfloat16 and out.sharding == named("y")
    assert np.array_equal(read(Format(None, named())), X)
    for wrong in (None, 3, pc.ShapeDtypeStruct((8, 8), np.float32), Format()):
        with pytest.raises(TypeError, match="an array is read with a sharding"):
            read(wrong)


@pytest.mark.parametrize("dtype", ["bfloat16", "int4", "float8_e4m3fn", "bool", "int8"])
def test_dtypes_of_the_store(tmp_path, dtype):
    values = np.ones((4,), getattr(ml_dtypes, dtype, dtype))
    manager = serialization.GlobalAsyncCheckpointManager()
    manager.serialize_with_paths([device_put(values)], [tmp_path / "x"])
    one = pc.extend.runtime.SingleDeviceSharding(pc.devices()[1])
    (out,) = manager.deserialize_with_paths([one], [tmp_path / "x"])
    assert out.dtype == values.dtype and np.array_equal(np.asarray(out), values)


def test_scalars_and_empty_arrays(tmp_path):
    values = [device_put(np.float32(3), named()), device_put(X[:0], named("x"))]
    paths = [tmp_path / "s", tmp_path / "e"]
    manager = serialization.GlobalAsyncCheckpointManager()
    manager.serialize_with_paths(values, paths)
    out = manager.deserialize_with_paths([named(), named("y")], paths)
    assert out[0] == 3 and out[1].shape == (0, 8)


def test_single_arrays(tmp_path):
    x = device_put(X, named("x"))

    def write(name, **options):
        spec = serialization.get_tensorstore_spec(tmp_path / name)
        asyncio.run(serialization.async_serialize(x, spec, **options))
        return sorted(os.listdir(tmp_path / name))

    assert write("all") == [".zarray", "0.0", "1.0"]
    assert write("replica", replica_id=9) == [".zarray"]
    assert write("other", primary_host=1) == ["0.0", "1.0"]
    futures = []
    write("futures", commit_future=futures)
    assert [f.result() for f in futures] == [None, None]
    transaction = ts.Transaction()
    spec = serialization.get_tensorstore_spec(tmp_path / "t")
    manager = serialization.GlobalAsyncCheckpointManager()
    manager.serialize([x], [spec], transaction=transaction)
    asyncio.run(serialization.async_serialize(x, spec, transaction=transaction))
    transaction.commit_async().result()
    assert np.array_equal(serialization.run_deserialization([named()], [spec])[0], X)


def test_transaction_contains_values_when_serialize_returns(tmp_path, monkeypatch):
    order = []
    write = _manager.write

    async def slow_write(*args, **options):
        await asyncio.sleep(0.2)
        await write(*args, **options)
        order.append("written")

    monkeypatch.setattr(_manager, "write", slow_write)
    transaction = ts.Transaction()
    spec = serialization.get_tensorstore_spec(tmp_path / "t")
    manager = serialization.GlobalAsyncCheckpointManager()
    manager.serialize([device_put(X)], [spec], transaction=transaction)
    order.append("returned")
    transaction.commit_async().result()
    assert order == ["written", "returned"]
    assert np.array_equal(manager.deserialize([named()], [spec])[0], X)
    bad = {"driver": "nosuch", "kvstore": {"driver": "memory"}}
    manager.serialize([device_put(X)], [bad], transaction=ts.Transaction())
    with pytest.raises(ValueError, match="nosuch"):
        manager.wait_until_finished()


def test_chunk_layout_of_a_stored_array(tmp_path):
    spec = serialization.get_tensorstore_spec(tmp_path / "x")
    serialization.run_serialization([device_put(X, named("x"))], [spec])

    def read(*shape):
        layout = ts.ChunkLayout({"chunk": {"shape": shape}})
        return asyncio.run(serialization.async_deserialize(named(), spec, chunk_layout=layout))

    assert np.array_equal(read(4, 8), X)
    with pytest.raises(ValueError, match="write_chunk shape"):
        read(2, 2)


def test_errors(tmp_path):
    manager = serialization.GlobalAsyncCheckpointManager()
    x, spec = device_put(X), serialization.get_tensorstore_spec(tmp_path / "x")
    with pytest.raises(TypeError, match="serialize writes arrays, got ndarray"):
        manager.serialize([X], [spec])
    with pytest.raises(ValueError, match="same length, got 2 arrays, 1 tensorstore_specs"):
        manager.serialize([x, x], [spec])
    with pytest.raises(ValueError, match="NOT_FOUND"):
        manager.deserialize([named()], [spec])
    bad = {"driver": "zarr", "kvstore": {"driver": "file", "path": "/proc/none"}}
    manager.serialize([x], [bad])
    with pytest.raises(ValueError, match="/proc/none"):
        manager.wait_until_finished()
    manager.check_for_errors()
    manager.serialize([x], [spec], on_commit_callback=lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        manager.serialize([x], [spec])
    with pytest.raises(TypeError, match="abstract"):
        serialization.GlobalAsyncCheckpointManagerBase()


def test_memory_limit(tmp_path):
    from primax_distributed.checkpoint._stores import ByteLimiter

    async def use():
        limiter, used, most = ByteLimiter(10), 0, 0

        async def one(n):
            nonlocal used, most
            await limiter.wait_for_bytes(n)
            used += min(n, 10)
            most = max(most, used)
            await asyncio.sleep(0)
            used -= min(n, 10)
            await limiter.release_bytes(n)

        await asyncio.gather(*[one(n) for n in (3, 4, 5, 100, 6, 10, 1)])
        with pytest.raises(ValueError, match="only 0 are in use"):
            await limiter.release_bytes(1)
        return most

    assert asyncio.run(use()) == 10
    with pytest.raises(ValueError, match="positive"):
        ByteLimiter(0)
