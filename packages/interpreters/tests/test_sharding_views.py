"""Shardings of intermediate values, and their drawings."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax, testing
from primax_interpreters import debugger
from primax_interpreters._debugger.inspecting import inspect_sharding_p

X = np.array([1.0, 2.0], np.float32)


@pytest.fixture
def said(capsys):
    def lines():
        px.effects_barrier()
        return capsys.readouterr().out.splitlines()

    return lines


def test_callbacks_receive_the_sharding():
    seen = []
    x = lax.sin(X)
    debugger.inspect_array_sharding(x, callback=seen.append)
    f = px.jit(lambda x: (debugger.inspect_array_sharding(x * 2, callback=seen.append), x)[1])
    f(X)
    f(X)
    px.vmap(lambda x: debugger.inspect_array_sharding(x, callback=seen.append))(x)
    assert seen == [x.sharding] * 3
    with pytest.raises(TypeError, match="callable"):
        debugger.inspect_array_sharding(x, callback=3)


class Grid:
    """A sharding over six devices, for the picture."""

    class Device:
        platform = "cpu"

        def __init__(self, id):
            self.id = id

    def devices_indices_map(self, shape):
        cut = lambda n, i, k: slice(n * i // k, n * (i + 1) // k)
        return {
            self.Device(3 * i + j): (cut(shape[0], i, 2), cut(shape[1], j, 3))
            for i in range(2) for j in range(3)
        }  # fmt: skip


def test_pictures(said):
    debugger.visualize_sharding((4, 6), Grid())
    assert said() == [
        "┌─────────┬─────────┬─────────┐",
        "│  CPU 0  │  CPU 1  │  CPU 2  │",
        "├─────────┼─────────┼─────────┤",
        "│  CPU 3  │  CPU 4  │  CPU 5  │",
        "└─────────┴─────────┴─────────┘",
    ]
    debugger.visualize_array_sharding(lax.sin(X))
    expected = ["┌─────────┐", "│  CPU 0  │", "└─────────┘"]
    assert said() == expected
    px.jit(lambda x: debugger.visualize_array_sharding(x))(X)
    assert said() == expected
    with pytest.raises(ValueError, match="rank 1 and 2"):
        debugger.visualize_sharding((), Grid())


def test_conformance():
    report = testing.check_primitive(inspect_sharding_p)
    assert report.ok, report


@pytest.mark.parametrize("how", ["jit", "vmap", "grad"])
def test_callbacks_of_shardings_keep_no_tracers(how):
    def f(x):
        debugger.inspect_array_sharding(x, callback=lambda s: None)
        return x

    with px.checking_leaks():
        x = np.ones(2, np.float32) if how == "vmap" else 1.0
        px.block_until_ready(getattr(px, how)(f)(x))
        px.effects_barrier()


def test_the_sharding_that_the_partitioner_chooses():
    from primax_core.extend.runtime import TiledSharding, Tiling

    devices = px.devices()[:4]
    rows = TiledSharding(devices, Tiling.along_mesh((2, 2), [(0,), ()]))
    x = px.device_put(np.ones((4, 8), np.float32), rows)
    seen = []

    @px.jit
    def inner(x):
        debugger.inspect_array_sharding(x, callback=seen.append)
        return lax.sin(x)

    @px.jit
    def f(x):
        debugger.inspect_array_sharding(x, callback=seen.append)
        debugger.inspect_array_sharding(lax.transpose(x, (1, 0)) * 2, callback=seen.append)
        debugger.inspect_array_sharding(lax.reduce_sum(x, (0,)), callback=seen.append)
        return inner(lax.dot(x, lax.transpose(x, (1, 0))))

    assert np.allclose(f(x), np.sin(8.0))
    assert [s.shard_shape(shape) for s, shape in zip(seen, [(4, 8), (8, 4), (8,), (4, 4)])] == [
        (2, 8), (8, 2), (8,), (2, 4)
    ]  # fmt: skip
