"""Tilings of arrays over partitions, and XLA's description of them."""

import itertools

import numpy as np
import pytest

from primax_core._runtime.jaxlib_versions import HloSharding
from primax_core._runtime.tilings import Tiling

CASES = [
    ((2, 4), axes)
    for axes in ([(0,), (1,)], [(1,), ()], [(), (0, 1)], [(1, 0), ()], [(1,), (0,)], [(), ()])
] + [((2, 2, 2), [(2,), (0,), ()]), ((8,), [(0,)]), ((2, 4), [])]


@pytest.mark.parametrize("mesh_shape, axes", CASES)
def test_partitions_of_the_parts(mesh_shape, axes):
    tiling = Tiling.along_mesh(mesh_shape, axes)
    assert tiling.tiles == tuple(int(np.prod([mesh_shape[i] for i in g])) for g in axes)
    for n, position in enumerate(itertools.product(*map(range, mesh_shape))):
        part = []
        for group in axes:
            index = 0
            for i in group:
                index = index * mesh_shape[i] + position[i]
            part.append(index)
        assert n in tiling.order[tuple(part)]


@pytest.mark.parametrize("mesh_shape, axes", CASES)
def test_xlas_description_and_back(mesh_shape, axes):
    tiling = Tiling.along_mesh(mesh_shape, axes)
    xla = tiling.to_xla()
    n = int(np.prod(mesh_shape))
    assert Tiling.of_xla(xla, len(axes), n).key == tiling.key
    assert Tiling(tiling.tiles, tiling.order).to_xla() == xla
    assert Tiling.of_xla(HloSharding.from_proto(xla.to_proto()), len(axes), n).key == tiling.key


UNREDUCED = [
    ((2, 4), [()], (0,), "{devices=[1,2,4]<=[8] last_tile_dims={unreduced, replicated}}"),
    ((2, 4), [(1,), ()], (0,), "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dims={unreduced}}"),
    ((2, 4), [], (0,), "{devices=[2,4]<=[8] last_tile_dims={unreduced, replicated}}"),
    ((2, 4), [()], (0, 1), "{unreduced}"),
    ((2, 2, 2), [(2,)], (1,), None),
    ((1, 8), [(1,)], (0,), "{devices=[8]<=[8]}"),
]


@pytest.mark.parametrize("mesh_shape, axes, unreduced, text", UNREDUCED)
def test_unreduced_axes(mesh_shape, axes, unreduced, text):
    tiling = Tiling.along_mesh(mesh_shape, axes, unreduced)
    xla = tiling.to_xla()
    assert text is None or repr(xla) == text
    assert tiling.partial == np.prod([mesh_shape[i] for i in unreduced])
    assert Tiling.of_xla(xla, len(axes), 8).key == tiling.key
    assert Tiling(tiling.tiles, tiling.order, tiling.partial).to_xla() == xla


def test_axes_used_twice_are_refused():
    with pytest.raises(ValueError, match="divides two axes"):
        Tiling.along_mesh((2, 4), [(0,), (0,)])
