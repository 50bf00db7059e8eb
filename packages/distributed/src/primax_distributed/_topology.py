"""The torus of a TPU slice, and the assignment of the axes of a mesh to its axes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Assignment: TypeAlias = tuple[tuple[int, ...], ...]
"""For each axis of a mesh, the factor that it takes of each axis of the torus."""


@dataclass(frozen=True)
class Topology:
    """Devices by their coordinates.

    Attributes:
      array: Device[x, y, z] or Device[x, y, z, core].
    """

    array: np.ndarray[Any, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes of the torus."""
        return tuple(self.array.shape)

    @classmethod
    def of(cls, devices: Sequence[Any]) -> Topology | None:
        """The topology of devices, or ``None`` if they do not fill a box."""
        if any(getattr(d, "coords", None) is None for d in devices):
            return None
        places = np.array([(*d.coords, getattr(d, "core_on_chip", 0)) for d in devices])
        places -= places.min(axis=0)
        shape = places.max(axis=0) + 1
        array = np.empty(shape, dtype=object)
        for place, device in zip(places, devices):
            array[tuple(place)] = device
        if array.size != len(devices) or any(d is None for d in array.flat):
            return None
        return cls(array[..., 0] if array.shape[-1] == 1 else array)

    def arranged(self, assignment: Assignment) -> np.ndarray[Any, Any]:
        """Device[*sizes], the devices along the axes of a mesh.

        The last axis of the mesh takes the minor part of an axis of the torus.
        """
        mesh_rank = len(assignment)
        torus_rank = len(self.shape)
        factors = [taken[t] for t in range(torus_rank) for taken in assignment]
        parts = self.array.reshape(factors)
        order = [t * mesh_rank + m for m in range(mesh_rank) for t in range(torus_rank)]
        sizes = [math.prod(taken) for taken in assignment]
        return parts.transpose(order).reshape(sizes)


def assignments(
    mesh_shape: Sequence[int], torus: Sequence[int], split: bool
) -> Iterator[Assignment]:
    """All assignments, the preferred one first.

    The last axis of the mesh chooses first. It prefers the cores of a chip, then whole axes of the
    torus, whose ends are connected.

    Args:
      mesh_shape: sizes of the axes of the mesh.
      torus: sizes of the axes of the torus; a fourth axis has the cores of a chip.
      split: allow that axes of the mesh share an axis of the torus.

    >>> next(assignments((8, 4), (4, 4, 2), False))
    ((1, 4, 2), (4, 1, 1))
    """
    return _assignments(tuple(mesh_shape), tuple(torus), tuple(torus), split)


def _assignments(
    mesh_shape: tuple[int, ...], torus: tuple[int, ...], free: tuple[int, ...], split: bool
) -> Iterator[Assignment]:
    if not mesh_shape:
        if all(size == 1 for size in free):
            yield ()
        return
    for factors in _choices(mesh_shape[-1], torus, free, split):
        left = tuple([size // factor for size, factor in zip(free, factors)])
        for others in _assignments(mesh_shape[:-1], torus, left, split):
            yield (*others, factors)


def _choices(
    size: int, torus: tuple[int, ...], free: tuple[int, ...], split: bool
) -> list[tuple[int, ...]]:
    """Factors of the free parts of the axes with the product ``size``, the preferred ones first."""
    divisors = [
        [d for d in range(axis, 0, -1) if axis % d == 0] if split else sorted({axis, 1})[::-1]
        for axis in free
    ]
    fitting = [f for f in itertools.product(*divisors) if math.prod(f) == size]

    def preference(factors: tuple[int, ...]) -> tuple[int, int, int]:
        cores = math.prod(factors[3:])
        whole = sum(f == axis > 1 for f, axis in zip(factors, torus))
        return -cores, -whole, sum(f > 1 for f in factors)

    return sorted(fitting, key=preference)


def ring(plane: np.ndarray[Any, Any]) -> list[Any] | None:
    """The devices of a plane of chips in a closed path of neighbours.

    The path follows the first row, returns through the others, and ends along the first column.

    Args:
      plane: Device[x, y, 1].

    Returns:
      The devices in order, or ``None`` if the topology is no plane with an even number of rows.

    >>> ring(np.array([["a", "c"], ["b", "d"]], object).reshape(2, 2, 1))
    ['a', 'b', 'd', 'c']
    """
    if plane.ndim != 3 or plane.shape[2] != 1 or plane.shape[1] % 2 or plane.shape[0] < 2:
        return None
    rows = [list(row) for row in plane[:, :, 0].T]
    path = list(rows[0])
    for y, row in enumerate(rows[1:], start=1):
        path += row[1:][::-1] if y % 2 else row[1:]
    return path + [row[0] for row in rows[:0:-1]]


def blocks_of_processes(mesh: np.ndarray[Any, Any]) -> bool:
    """Return True if the devices of each process are a contiguous part of a mesh."""
    process = np.vectorize(lambda d: d.process_index, otypes=[int])(mesh)
    for index in np.unique(process):
        places = np.argwhere(process == index)
        box = places.max(axis=0) - places.min(axis=0) + 1
        if math.prod(box.tolist()) != len(places):
            return False
    return True
