"""Meshes, abstract meshes and their errors."""

from __future__ import annotations

import copy
import os
import pickle
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

from primax_core import devices
from primax_distributed import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    P,
    make_mesh,
)

AUTO, EXPLICIT, MANUAL = AxisType.Auto, AxisType.Explicit, AxisType.Manual
DEVICES = np.array(devices())


def mesh_2x4(*types: AxisType) -> Mesh:
    return Mesh(DEVICES.reshape(2, 4), ("x", "y"), types or None)


# Attributes and text


def test_attributes():
    mesh = mesh_2x4()
    assert mesh.shape == {"x": 2, "y": 4} and mesh.size == 8
    assert mesh.axis_names == ("x", "y") and mesh.axis_sizes == (2, 4)
    assert mesh.shape_tuple == (("x", 2), ("y", 4))
    assert mesh.axis_types == (AUTO, AUTO) and not mesh.empty
    assert mesh.device_ids.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert mesh.devices[1, 2] is DEVICES[6] and not mesh.devices.flags.writeable
    assert mesh.local_devices == list(DEVICES) and not mesh.is_multi_process
    assert mesh.local_mesh is mesh
    abstract = mesh.abstract_mesh
    assert (abstract.shape, abstract.axis_types, abstract.size) == (mesh.shape, (AUTO, AUTO), 8)
    assert abstract.abstract_device == AbstractDevice("cpu", None, "cpu")


def test_text():
    mesh = mesh_2x4(EXPLICIT, AUTO)
    assert repr(mesh) == (
        "Mesh(axis_sizes=(2, 4), axis_names=('x', 'y'), axis_types=(Explicit, Auto))"
    )
    assert str(mesh) == "Mesh('x': 2, 'y': 4, axis_types=(Explicit, Auto))"
    assert str(mesh.abstract_mesh) == (
        "AbstractMesh('x': 2, 'y': 4, axis_types=(Explicit, Auto), device_kind=cpu, "
        "num_cores=None, platform=cpu)"
    )
    assert repr(AbstractMesh((2,), ("x",))) == "AbstractMesh('x': 2, axis_types=(Explicit,))"
    assert repr(AbstractMesh((), ())) == "AbstractMesh((), axis_types=())"
    assert repr(AbstractDevice("TPU v5", 2, "tpu")) == (
        "AbstractDevice(device_kind=TPU v5, num_cores=2, platform=tpu)"
    )
    assert [repr(kind) for kind in AxisType] == ["Auto", "Explicit", "Manual"]


@pytest.mark.parametrize(
    "types, auto, explicit, manual",
    [
        ((AUTO, AUTO), ("x", "y"), (), ()),
        ((EXPLICIT, MANUAL), (), ("x",), ("y",)),
        ((MANUAL, MANUAL), (), (), ("x", "y")),
    ],
)
def test_axes_by_type(types, auto, explicit, manual):
    mesh = AbstractMesh((2, 4), ("x", "y"), types)
    assert (mesh.auto_axes, mesh.explicit_axes, mesh.manual_axes) == (auto, explicit, manual)
    assert mesh.are_all_axes_auto == (auto == ("x", "y"))
    assert mesh.are_all_axes_explicit == (explicit == ("x", "y"))
    assert mesh.are_all_axes_manual == (manual == ("x", "y"))
    assert mesh.are_all_axes_explicit_or_manual == (not auto)
    assert not AbstractMesh((), ()).are_all_axes_auto


def test_empty_and_scalar_meshes():
    empty = Mesh(np.empty((), dtype=object), ())
    assert empty.empty and empty.size == 0 and empty is Mesh(DEVICES[:0], ("x",))
    assert (repr(empty), str(empty)) == ("Mesh(axis_sizes=(), axis_names=())", "Mesh()")
    assert AbstractMesh((), ()).empty and AbstractMesh((), ()).size == 0
    scalar = Mesh(DEVICES[0], ())
    assert scalar.is_scalar and scalar.size == 1 and not scalar.empty
    assert scalar is not empty and scalar.abstract_mesh is empty.abstract_mesh
    assert pickle.loads(pickle.dumps(empty)) is empty


# Identity


def test_equal_meshes_are_one_object():
    mesh = mesh_2x4()
    assert mesh is mesh_2x4(AUTO, AUTO) and mesh is not mesh_2x4(EXPLICIT, AUTO)
    assert mesh != mesh.abstract_mesh and mesh != Mesh(DEVICES[::-1].reshape(2, 4), ("x", "y"))
    for one in (mesh, mesh.abstract_mesh):
        assert pickle.loads(pickle.dumps(one)) is one
        assert copy.deepcopy(one) is one and copy.copy(one) is one
        assert {one: 1}[one] == 1
    assert AbstractMesh([2, 4], ["x", "y"]) is AbstractMesh((2, 4), ("x", "y"))


def test_meshes_of_threads_are_one_object():
    created: list[AbstractMesh] = []
    start = threading.Barrier(8)

    def create() -> None:
        start.wait()
        created.extend(AbstractMesh((i + 1,), ("of_threads",)) for i in range(50))

    threads = [threading.Thread(target=create) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len({id(mesh) for mesh in created}) == 50


def test_meshes_are_immutable():
    mesh = mesh_2x4()
    for one in (mesh, mesh.abstract_mesh):
        with pytest.raises(AttributeError, match=r"cannot assign to 'axis_names': .* is immutable"):
            one.axis_names = ("a", "b")
        with pytest.raises(AttributeError, match="cannot delete 'axis_names'"):
            del one.axis_names


def test_a_mesh_of_another_process_needs_its_devices():
    code = (
        "import pickle, sys; data = bytes.fromhex(sys.argv[1])\n"
        "try: pickle.loads(data)\n"
        "except RuntimeError as e: print(e)"
    )
    data = pickle.dumps(mesh_2x4()).hex()
    env = {**os.environ, "PRIMAX_NUM_CPU_DEVICES": "1"}
    command = [sys.executable, "-c", code, data]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert "devices that this process does not have: cpu:1, cpu:2" in done.stdout, done.stderr


def test_update():
    mesh = mesh_2x4()
    assert mesh.update(axis_types=(EXPLICIT, AUTO)) is mesh_2x4(EXPLICIT, AUTO)
    assert mesh.update(axis_names=("a", "b")).axis_names == ("a", "b")
    assert mesh.update(devices=DEVICES[::-1].reshape(2, 4)).device_ids[0, 0] == 7
    abstract = mesh.abstract_mesh
    assert abstract.update(axis_sizes=(4, 2)).shape == {"x": 4, "y": 2}
    assert abstract.update(abstract_device=None) is AbstractMesh((2, 4), ("x", "y"), (AUTO, AUTO))
    assert abstract.update_axis_types({"x": MANUAL, "z": MANUAL}).manual_axes == ("x",)


# Errors

ABSTRACT_ERRORS = {
    "sizes and names": (
        ((2, 4), ("x",)),
        ValueError,
        r"one name for each axis.*\(2, 4\).*\('x',\)",
    ),
    "doubled name": (((2, 4), ("x", "x")), ValueError, "'x' occurs twice"),
    "None": (((2,), (None,)), ValueError, "names other than None"),
    "fraction": (((2.5,), ("x",)), TypeError, r"sequence of integers.*2\.5"),
    "no sequence": ((2, "x"), TypeError, "sequence of integers.*got 2"),
    "zero": (((0,), ("x",)), ValueError, r"positive sizes of axes, got \(0,\)"),
    "types": (((2,), ("x",), (AUTO, AUTO)), ValueError, "one axis type for each axis"),
    "type": (
        ((2,), ("x",), ("Auto",)),
        TypeError,
        "must be members of AxisType.*'Auto' of type str",
    ),
    "name": (((2,), ([1],)), TypeError, "names of axes must be hashable"),
}


@pytest.mark.parametrize("name", ABSTRACT_ERRORS)
def test_errors_of_abstract_meshes(name):
    args, error, text = ABSTRACT_ERRORS[name]
    with pytest.raises(error, match=text):
        AbstractMesh(*args)


MESH_ERRORS = {
    "axes": ((DEVICES, ("x", "y")), ValueError, r"one name for each axis of devices.*\(8,\)"),
    "doubled name": ((DEVICES.reshape(2, 4), ("x", "x")), ValueError, "'x' occurs twice"),
    "doubled device": ((DEVICES[[0, 0]], "x"), ValueError, r"CpuDevice\(id=0\) occurs twice"),
    "no device": (([1, 2], "x"), TypeError, "array of devices, got 1 of type int"),
    "types": ((DEVICES, "x", (AUTO, AUTO)), ValueError, "one axis type for each axis"),
    "dict": ((DEVICES, "x", {AUTO: "x"}), TypeError, "of type dict"),
}


@pytest.mark.parametrize("name", MESH_ERRORS)
def test_errors_of_meshes(name):
    args, error, text = MESH_ERRORS[name]
    with pytest.raises(error, match=text):
        Mesh(*args)


@pytest.mark.parametrize(
    "attribute", ["devices", "device_ids", "local_mesh", "local_devices", "is_multi_process"]
)
def test_abstract_meshes_have_no_devices(attribute):
    with pytest.raises(ValueError, match=r"has no devices.*Use a Mesh"):
        getattr(AbstractMesh((2,), ("x",)), attribute)


# make_mesh


def test_make_mesh():
    mesh = make_mesh((2, 4), ("x", "y"))
    assert mesh is mesh_2x4(EXPLICIT, EXPLICIT)
    assert make_mesh((2,), "x", AUTO).device_ids.tolist() == [0, 1]
    assert make_mesh((2, 2), ("x", "y"), devices=DEVICES[::-1]).device_ids.tolist() == [
        [7, 6],
        [5, 4],
    ]
    assert make_mesh((), ()).is_scalar


def test_errors_of_make_mesh():
    text = r"needs 16 devices for axes of sizes \(16,\), but there are 8.*num_cpu_devices"
    with pytest.raises(ValueError, match=text):
        make_mesh((16,), ("x",))
    with pytest.raises(ValueError, match="there are 0"):
        make_mesh((2,), ("x",), devices=[])
    with pytest.raises(ValueError, match="'x' occurs twice"):
        make_mesh((2, 4), ("x", "x"))
    with pytest.raises(ValueError, match="positive sizes"):
        make_mesh((-1, 4), ("x", "y"))


# Devices of several processes


class Client:
    def process_index(self) -> int:
        return 0


class RemoteDevice:
    platform, device_kind, client = "cpu", "cpu", Client()

    def __init__(self, number: int, process: int) -> None:
        self.id, self.process_index = number, process


def test_the_local_part_of_a_mesh():
    remote = [RemoteDevice(i, i // 4) for i in range(8)]
    mesh = Mesh(np.array(remote).reshape(2, 4), ("x", "y"))
    assert mesh.is_multi_process and mesh.local_devices == remote[:4]
    assert mesh.local_mesh.shape == {"x": 1, "y": 4}
    columns = Mesh(np.array(remote).reshape(2, 4).T, ("x", "y"))
    assert columns.local_mesh.device_ids.tolist() == [[0], [1], [2], [3]]
    mixed = Mesh(np.array([remote[i] for i in (0, 4, 5, 1)]).reshape(2, 2), ("x", "y"))
    with pytest.raises(ValueError, match="are no sub-array of Mesh"):
        mixed.local_mesh
    sharding = NamedSharding(mesh, P("x"))
    assert sharding.memory_kind is None and not sharding.is_fully_addressable
    assert sharding.addressable_devices == {*remote[:4]}


def test_messages_have_no_addresses():
    with pytest.raises(TypeError) as error:
        Mesh(np.array(["a"]), "x")
    assert not re.search("0x", str(error.value))
