"""Shardings of intermediate values, and their drawings."""

from __future__ import annotations

import re
import sys
import types
from xml.etree import ElementTree

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


# Pictures


def cells(picture):
    """The titles of the parts of a picture, and its other texts."""
    root = ElementTree.fromstring(picture.svg)
    name = "{http://www.w3.org/2000/svg}"
    titles = [t.text for t in root.iter(f"{name}title")]
    return titles, [t.text for t in root.findall(f"{name}text")]


def tiled(shape, *args):
    from primax_core.extend.runtime import TiledSharding, Tiling

    return TiledSharding(px.devices()[:4], Tiling.along_mesh(shape, *args))


def test_pictures_of_parts(tmp_path):
    picture = debugger.sharding_picture((4, 6), Grid())
    titles, texts = cells(picture)
    assert titles == [f"cpu {i}" for i in range(6)]
    assert texts == [
        "rows: axis 0 of size 4", "columns: axis 1 of size 6", "0:2", "2:4", "4:6", "0:2", "2:4"
    ]  # fmt: skip
    picture.to_svg(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text("utf-8") == picture.svg == picture._repr_html_()
    assert "to_svg" in repr(picture)


def test_pictures_of_every_rank():
    assert cells(debugger.sharding_picture(lax.sin(X)))[0] == ["cpu 0"]
    titles, texts = cells(debugger.sharding_picture((), tiled((2, 2), [])))
    assert titles == ["cpu 0,1,2,3"] and texts[0] == "a scalar"
    cube = tiled((2, 2), [(0,), (), (1,)])
    titles, texts = cells(debugger.sharding_picture((4, 8, 2), cube))
    assert titles == ["cpu 0", "cpu 1", "cpu 2", "cpu 3"]
    assert texts[:3] == [
        "rows: axis 0 of size 4", "columns: axis 2 of size 2", "not divided: axis 1 of size 8"
    ]  # fmt: skip
    rows = tiled((2, 2), [(0,), ()])
    assert cells(debugger.sharding_picture((4, 8), rows))[0] == ["cpu 0,1", "cpu 2,3"]


class Named(Grid):
    """The sharding of ``Grid`` on a mesh with names."""

    def __init__(self):
        self.devices = np.array([self.Device(i) for i in range(12)]).reshape(2, 2, 3)

    def devices_indices_map(self, shape):
        parts = list(super().devices_indices_map(shape).values())
        return {self.devices[i, j, k]: parts[3 * i + k] for i, j, k in np.ndindex(2, 2, 3)}

    def _mesh_axes(self):
        return ("data", "seq", "<model>"), self.devices


def test_pictures_name_the_axes_of_the_mesh():
    titles, texts = cells(debugger.sharding_picture((4, 6), Named()))
    assert texts[:3] == [
        "rows: axis 0 of size 4 along data (2)", "columns: axis 1 of size 6 along <model> (3)",
        "copies along seq (2)",
    ]  # fmt: skip
    assert titles[0] == "cpu 0,3"


def test_pictures_have_a_maximum_width():
    def width(most):
        svg = debugger.sharding_picture((4, 6), Grid(), max_width=most).svg
        return int(re.search(r'width="(\d+)" height', svg)[1])

    assert width(150) < width(900) == width(2000)


def test_pictures_need_devices():
    with pytest.raises(TypeError, match="pass an array outside of transformations, or a shape"):
        px.jit(debugger.sharding_picture)(X)
    with pytest.raises(TypeError, match="which has no devices"):
        debugger.sharding_picture(np.ones(3))


def test_notebooks_display_pictures(monkeypatch, said):
    shown = []
    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=1)
    display.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    debugger.visualize_sharding((4, 6), Grid())
    assert said() == [] and cells(shown[0])[0][0] == "cpu 0"
    debugger.visualize_sharding((4, 6), Grid(), use_color=False)
    assert len(said()) == 5 and len(shown) == 1
    ipython.get_ipython = lambda: types.SimpleNamespace()  # a terminal
    debugger.visualize_sharding((4, 6), Grid())
    assert len(said()) == 5 and len(shown) == 1
