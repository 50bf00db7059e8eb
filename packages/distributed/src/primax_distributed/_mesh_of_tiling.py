"""Names for XLA's tilings: the mesh axes along which an array is divided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from primax_core.extend.runtime import Tiling

from ._mesh import Mesh
from ._spec import PartitionSpec, entry_of, trimmed


@dataclass(frozen=True)
class Digit:
    """Steps along a part of the partitions: ``size`` of them, ``stride`` partitions apart."""

    size: int
    stride: int


def mesh_and_spec(mesh: Mesh, tiling: Tiling) -> tuple[Mesh, PartitionSpec]:
    """A mesh over the same devices, and the spec that divides an array as a tiling does.

    The mesh is the given one if the tiling follows its axes. If it divides along a part of an axis,
    the mesh has that axis split in two, ``a:(1)2`` and ``a:(2)4`` for an axis ``a`` of size 8. If
    it does not follow the axes at all, the mesh has new ones; its order of devices differs only if
    the tiling permutes them irregularly.
    """
    if tiling.partial == 1:  # the order of replicas has no meaning
        tiling = Tiling(tiling.tiles, np.sort(tiling.order, axis=-1))
    groups = _digits(tiling)
    if groups is None:
        return _permuted(mesh, tiling)
    cuts = {*_strides(mesh.axis_sizes), *(d.stride for group in groups for d in group)}
    ordered = sorted({1, mesh.size, *cuts})
    if any(b % a for a, b in pairwise(ordered)):
        return _along_digits(mesh, tiling, groups)
    names = _names_of_pieces(mesh, ordered)
    refined = _refined(mesh, names)
    entries = []
    for group in groups[: len(tiling.tiles)]:
        pieces = [stride for digit in group for stride in _pieces(digit, ordered)]
        entries.append(entry_of(tuple([names[stride][0] for stride in pieces])))
    return refined, _spec(entries, _partial_names(tiling, groups, ordered, names))


def _digits(tiling: Tiling) -> list[list[Digit]] | None:
    """For each axis of the array and for the rest of the partitions its digits, major first.

    ``None`` if the partitions are not in an order that axes of a mesh can describe.
    """
    order = tiling.order
    groups = [_digits_of_line(_line(order, axis)) for axis in range(order.ndim)]
    if any(group is None for group in groups):
        return None
    known = [group for group in groups if group is not None]
    ids = np.zeros((1,), np.int64)
    for group in known:
        for digit in group:
            ids = (ids[..., None] + np.arange(digit.size) * digit.stride).reshape(-1)
    return known if np.array_equal(ids, order.reshape(-1)) else None


def _line(order: np.ndarray[Any, Any], axis: int) -> list[int]:
    index: list[Any] = [0] * order.ndim
    index[axis] = slice(None)
    line: list[int] = order[tuple(index)].tolist()
    return line


def _digits_of_line(line: Sequence[int]) -> list[Digit] | None:
    """The digits of equidistant steps, each the multiple of one before: ``0 4 1 5`` has two."""
    digits: list[Digit] = []
    while len(line) > 1:
        stride = line[1] - line[0]
        size = 1
        while size < len(line) and line[size] == line[0] + size * stride:
            size += 1
        size = math.gcd(size, len(line)) if len(line) % size else size
        if size == 1 or stride <= 0:
            return None
        digits.insert(0, Digit(size, stride))
        line = line[::size]
    return digits


def _strides(sizes: Sequence[int]) -> list[int]:
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


def _pieces(digit: Digit, cuts: Sequence[int]) -> list[int]:
    """The strides of the parts between cuts that a digit consists of, major first."""
    return [c for c in reversed(cuts) if digit.stride <= c < digit.stride * digit.size]


def _names_of_pieces(mesh: Mesh, cuts: Sequence[int]) -> dict[int, tuple[Any, int]]:
    """For the stride of each part between cuts its name and size."""
    names: dict[int, tuple[Any, int]] = {}
    strides = _strides(mesh.axis_sizes)
    for name, size, stride in zip(mesh.axis_names, mesh.axis_sizes, strides):
        inner = [c for c in cuts if stride <= c < stride * size]
        if len(inner) == 1:
            names[stride] = (name, size)
            continue
        for c, after in zip(inner, [*inner[1:], stride * size]):
            part = after // c
            names[c] = (f"{name}:({stride * size // after}){part}", part)
    return names


def _refined(mesh: Mesh, names: dict[int, tuple[Any, int]]) -> Mesh:
    """The mesh with the parts as axes; the same mesh if no axis is split."""
    if {name for name, _ in names.values()} <= {*mesh.axis_names}:
        return mesh
    parts, types = [], []
    strides = _strides(mesh.axis_sizes)
    for kind, size, stride, name in zip(mesh.axis_types, mesh.axis_sizes, strides, mesh.axis_names):
        inner = sorted((c for c in names if stride <= c < stride * size), reverse=True)
        axis_parts = [names[c] for c in inner] or [(name, size)]
        parts += axis_parts
        types += [kind] * len(axis_parts)
    shape = [size for _, size in parts]
    return Mesh(mesh.devices.reshape(shape), [name for name, _ in parts], types)


def _partial_names(
    tiling: Tiling,
    groups: list[list[Digit]],
    cuts: Sequence[int],
    names: dict[int, tuple[Any, int]],
) -> list[Any]:
    """The axes along which the devices have partial values."""
    strides = [c for digit in groups[-1] for c in _pieces(digit, cuts)]
    unreduced, size = [], 1
    for stride in strides:
        if size >= tiling.partial:
            break
        unreduced.append(names[stride][0])
        size *= names[stride][1]
    return unreduced


def _spec(entries: list[Any], unreduced: list[Any]) -> PartitionSpec:
    return PartitionSpec(*trimmed(entries), unreduced=frozenset(unreduced))


def _along_digits(
    mesh: Mesh, tiling: Tiling, groups: list[list[Digit]]
) -> tuple[Mesh, PartitionSpec]:
    """A mesh in the same order of devices, with an axis for each digit."""
    _check_not_partial(tiling)
    digits = sorted((d for group in groups for d in group), key=lambda d: -d.stride)
    names = {d: f"_{i}" for i, d in enumerate(digits)}
    shape = [d.size for d in digits]
    kinds = _types_of_new_axes(mesh, len(shape))
    along = Mesh(mesh.devices.reshape(shape), [*names.values()], kinds)
    entries = [entry_of(tuple([names[d] for d in g])) for g in groups[: len(tiling.tiles)]]
    return along, PartitionSpec(*trimmed(entries))


def _permuted(mesh: Mesh, tiling: Tiling) -> tuple[Mesh, PartitionSpec]:
    """A mesh with an axis for each axis of the tiling, in the order of its partitions."""
    _check_not_partial(tiling)
    flat = mesh.devices.reshape(-1)
    divided = [i for i, n in enumerate(tiling.order.shape) if n > 1]
    names = {i: f"_{k}" for k, i in enumerate(divided)}
    shape = [tiling.order.shape[i] for i in divided]
    devices = flat[tiling.order.reshape(-1)].reshape(shape)
    permuted = Mesh(devices, [*names.values()], _types_of_new_axes(mesh, len(shape)))
    entries = [names.get(i) for i in range(len(tiling.tiles))]
    return permuted, PartitionSpec(*trimmed(entries))


def _check_not_partial(tiling: Tiling) -> None:
    if tiling.partial > 1:
        raise ValueError(
            f"{tiling} has partial values along partitions that are no axes of the mesh"
        )


def _types_of_new_axes(mesh: Mesh, count: int) -> list[Any]:
    kinds = {*mesh.axis_types}
    return [kinds.pop() if len(kinds) == 1 else type(mesh.axis_types[0]).Auto] * count
