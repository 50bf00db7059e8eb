"""Orders of devices along topologies, tested with fake devices."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from fake_tpus import FakeDevice, factorizations, tpu

from primax_core import devices
from primax_distributed.mesh_utils import (
    create_device_mesh,
    create_hybrid_device_mesh,
    device_kind_handler_dict,
)


def ids(mesh: Any) -> list[Any]:
    return np.vectorize(lambda d: d.id)(mesh).tolist()


def are_neighbours(a: FakeDevice, b: FakeDevice) -> bool:
    return sum(abs(p - q) for p, q in zip(a.coords, b.coords)) <= 1


ORDERS = {
    "whole axes": ((4, 2, 4), "4x4x2", "TPU v4", 1, [0, 1, 2, 3]),
    "two axes": ((4,), "2x2x1", "TPU v4", 1, [0, 2, 1, 3]),
    "ring of 4": ((2, 2), "2x2x1", "TPU v5e", 1, [0, 1, 3, 2]),
    "ring of 8": ((8,), "4x2x1", "TPU v5 lite", 1, [0, 1, 2, 3, 7, 6, 5, 4]),
    "cube": ((8,), "2x2x2", "TPU v5p", 1, [0, 1, 3, 2, 6, 7, 5, 4]),
    "tray": ((8,), "2x2x1", "TPU v3", 2, [0, 1, 2, 3, 6, 7, 4, 5]),
    "two trays": ((2, 8), "4x2x1", "TPU v2", 2, [0, 1, 2, 3, 6, 7, 4, 5]),
    "layers": ((16,), "2x2x2", "TPU7x", 2, [0, 1, 2, 3, 6, 7, 4, 5]),
    "cores first": ((4, 2), "4x1x1", "TPU7x", 2, [0, 1, 2, 3]),
    "unknown kind": ((4, 4), "4x4x1", "TPU v99", 1, [0, 1, 2, 3]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders(name):
    shape, topology, kind, cores, first = ORDERS[name]
    mesh = create_device_mesh(shape, tpu(topology, kind, cores))
    assert mesh.shape == shape
    assert [d.id for d in mesh.reshape(-1)][: len(first)] == first


@pytest.mark.parametrize(
    "topology, kind",
    [("2x2x1", "TPU v5e"), ("4x2x1", "TPU v5e"), ("4x4x1", "TPU v6 lite"), ("2x4x1", "TPU v5e"),
     ("2x2x2", "TPU v5p"), ("2x2x1", "TPU v4 lite")],
)  # fmt: skip
def test_small_topologies_are_rings(topology, kind):
    available = tpu(topology, kind)
    ring = create_device_mesh((len(available),), available)
    assert len({*ring}) == len(available)
    assert all(are_neighbours(a, b) for a, b in zip(ring, [*ring[1:], ring[0]]))
    reverse = create_device_mesh((len(available),), available[::-1])
    assert ids(reverse) == ids(ring)


@pytest.mark.parametrize("topology", ["4x4x4", "4x2x2", "8x4x1", "3x2x1"])
@pytest.mark.parametrize("split", [False, True])
def test_every_shape_has_each_device_once(topology, split):
    available = tpu(topology)
    arranged = 0
    for shape in factorizations(len(available)):
        try:
            mesh = create_device_mesh(shape, available, allow_split_physical_axes=split)
        except ValueError as error:
            assert not split and "cannot be arranged as" in str(error)
            continue
        arranged += 1
        assert mesh.shape == shape and {*mesh.flat} == {*available}
        for axis in range(mesh.ndim):  # a device and the next one differ along few axes
            lines = np.moveaxis(mesh, axis, -1).reshape(-1, shape[axis])
            assert all(a is not b for line in lines for a, b in itertools.pairwise(line))
    assert arranged == len(factorizations(len(available))) if split else arranged


def test_contiguous_submeshes():
    available = tpu("4x4x1")
    mesh = create_device_mesh((4, 4), available, contiguous_submeshes=True)
    for process in range(4):
        places = np.argwhere(np.vectorize(lambda d: d.process_index)(mesh) == process)
        assert math.prod(np.ptp(places, axis=0) + 1) == 4
    with pytest.raises(ValueError, match="has a contiguous part for each process"):
        create_device_mesh((2, 8), available, contiguous_submeshes=True)


def test_a_part_of_a_slice_keeps_its_order():
    available = tpu("4x4x1")
    odd = [*available[:3], available[5]]
    assert ids(create_device_mesh((2, 2), odd)) == [[0, 1], [2, 5]]
    with pytest.raises(ValueError, match="are no box of the torus"):
        create_device_mesh((2, 2), odd, contiguous_submeshes=True)


def test_cpus_keep_their_order():
    assert ids(create_device_mesh((2, 4))) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert ids(create_device_mesh((2, 2), devices()[:4][::-1])) == [[3, 2], [1, 0]]
    assert create_device_mesh((), devices()[:1]).shape == ()


def test_errors():
    with pytest.raises(ValueError, match=r"of shape \(2, 2\) needs 4 devices, got 8"):
        create_device_mesh((2, 2))
    with pytest.raises(ValueError, match=r"4x4x4 cannot be arranged as \(8, 8\).*allow_split"):
        create_device_mesh((8, 8), tpu("4x4x4"))
    with pytest.raises(ValueError, match="needs 0 devices, got 0"):
        create_device_mesh((0,), [])


# Slices and processes


def test_slices():
    available = [*tpu("2x2x1", slice_=1), *tpu("2x2x1", slice_=0)]
    mesh = create_hybrid_device_mesh((2, 2), (2, 1), available)
    assert ids(mesh) == [[0, 1], [2, 3], [1000, 1001], [1002, 1003]]
    across = create_hybrid_device_mesh((2, 2), (1, 2), available)
    assert ids(across) == [[0, 1, 1000, 1001], [2, 3, 1002, 1003]]
    unsorted = create_hybrid_device_mesh((2, 2), (2,), available, should_sort_granules_by_key=False)
    assert ids(unsorted)[0] == [1000, 1001, 0, 1]
    third = create_hybrid_device_mesh((4,), (1, 2), available)
    assert third.shape == (1, 8) and ids(third)[0][:4] == [0, 2, 1, 3]


def test_processes():
    mesh = create_hybrid_device_mesh((2, 2), (4, 1), tpu("4x4x1"), process_is_granule=True)
    assert ids(mesh)[:4] == [[0, 1], [4, 5], [2, 3], [6, 7]]
    local = create_hybrid_device_mesh((2, 4), (1, 1), process_is_granule=True)
    assert ids(local) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_errors_of_hybrid_meshes():
    with pytest.raises(ValueError, match=r"has no slice_index: .* process_is_granule=True"):
        create_hybrid_device_mesh((2, 4), (1, 1))
    with pytest.raises(ValueError, match=r"over slices of shape \(2, 1\) needs 2 slices, .* to 1"):
        create_hybrid_device_mesh((2, 2), (2, 1), tpu("2x2x1"))


def test_kinds_of_devices():
    assert {"TPU v2", "TPU v5 lite", "TPU v5p", "TPU v6 lite", "TPU7x"} <= {
        *device_kind_handler_dict
    }
