"""Groups of devices in the text of collectives."""

from __future__ import annotations

import math
import re
from typing import Final

import numpy as np

Groups = list[list[int]]

_LISTED: Final = re.compile(r"replica_groups=\{((?:\{[\d, ]*\},? ?)*)\}")
_PAIRS: Final = re.compile(r"source_target_pairs=\{((?:\{[\d, ]*\},? ?)*)\}")
_IOTA: Final = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH: Final = re.compile(
    r"replica_groups=mesh\[([^\]]*)\](?:, ?device_ids=\(([^)]*(?:\([\d,]*\))?)\))? ?\{([^}]*)\}"
)
_ORDER: Final = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?$")
_AXIS: Final = re.compile(r"'([^']*)'(?:=(\d+)|:\((\d+)\)(\d+))?")


def groups_of(text: str, permutes: bool, n: int) -> Groups | None:
    """The partitions of each group of a collective; of a permutation, the pairs.

    Args:
      text: the text of the instruction.
      permutes: whether it is a permutation.
      n: number of partitions.

    Returns:
      The groups, or ``None`` if they are written in an unknown way.

    >>> groups_of("all-reduce(x), replica_groups=[2,2]<=[2,2]T(1,0)", False, 4)
    [[0, 2], [1, 3]]
    >>> groups_of("all-reduce(x), replica_groups=mesh['a'=2,'b'=2] {'a'}", False, 4)
    [[0, 2], [1, 3]]
    """
    m = (_PAIRS if permutes else _LISTED).search(text)
    if m:
        groups = [[int(i) for i in g.split(",")] for g in re.findall(r"\{([\d, ]+)\}", m.group(1))]
        return groups if groups or permutes else [list(range(n))]
    m = _IOTA.search(text)
    if m:
        return _of_iota(m.group(1), m.group(2), m.group(3))
    m = _MESH.search(text)
    return None if m is None else _along_mesh(m.group(1), m.group(2), m.group(3))


def _of_iota(shape: str, dims: str, permutation: str | None) -> Groups:
    groups: Groups = _iota(dims, permutation).reshape(_numbers(shape)[0], -1).tolist()
    return groups


def _iota(dims: str, permutation: str | None) -> np.ndarray:
    sizes = _numbers(dims)
    ids = np.arange(math.prod(sizes)).reshape(sizes)
    return ids.transpose(_numbers(permutation)) if permutation else ids


def _along_mesh(mesh: str, order: str | None, axes: str) -> Groups | None:
    """The groups along axes of a mesh; ``'x':(2)4`` is a part of an axis, of 4 steps after 2."""
    sizes = {name: int(size) for name, size, _, _ in _AXIS.findall(mesh)}
    parts: dict[str, list[int]] = {}
    for name, _, before, size in _AXIS.findall(axes):
        if name not in sizes or name in parts:
            return None
        first, steps = (int(before), int(size)) if size else (1, sizes[name])
        parts[name] = [first, steps, sizes[name] // (first * steps)]
    shape = [part for name, size in sizes.items() for part in parts.get(name, [size, 1, 1])]
    ids = np.arange(math.prod(shape))
    if order:
        m = _ORDER.match(order)
        ids = np.array(_numbers(order)) if m is None else _iota(m.group(1), m.group(2)).reshape(-1)
    ids = ids.reshape(shape)
    chosen = [3 * i + 1 for i, name in enumerate(sizes) if name in parts]
    rest = [i for i in range(ids.ndim) if i not in chosen]
    members = math.prod(shape[i] for i in chosen)
    groups: Groups = ids.transpose([*rest, *chosen]).reshape(-1, members).tolist()
    return groups


def _numbers(text: str) -> list[int]:
    return [int(i) for i in text.split(",")]
