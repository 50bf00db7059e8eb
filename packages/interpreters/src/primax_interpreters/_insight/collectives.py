"""Collectives of an executable: their bytes, the mesh axes that they go over, their lines."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core.extend import Eqn, total_bytes
from primax_core.extend.runtime import PartitionMesh

from .device_groups import Groups, groups_of
from .hlo_text import Instruction, Module
from .places import Line, Places

KINDS: Final = (
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all",
    "collective-permute", "collective-broadcast",
)  # fmt: skip

# Primitives that users call for a collective, or that derivatives of these are.
_WRITTEN: Final = {
    **dict.fromkeys(("psum", "psum_invariant", "pmax", "pmin", "unreduced_psum"), "all-reduce"),
    **dict.fromkeys(("all_gather", "all_gather_invariant", "all_gather_reduced"), "all-gather"),
    **dict.fromkeys(("reduce_scatter", "unreduced_reduce_scatter"), "reduce-scatter"),
    "all_to_all": "all-to-all",
    "ragged_all_to_all": "ragged-all-to-all",
    "ppermute": "collective-permute",
}
_TYPE = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")
_MARKED = re.compile(r"([^/#]+)#(\d+)$")
_MOVED: Final = ("get-tuple-element", "bitcast", "copy", "reshape", "transpose", "convert")


class Collective(NamedTuple):
    """One operation of an executable with which devices exchange values.

    Attributes:
      kind: ``all-reduce``, ``all-gather``, ``reduce-scatter``, ``all-to-all``,
        ``collective-permute`` ...
      axes: the mesh axes along which the devices of a group differ; ``None`` if the program has no
        mesh, or the groups do not follow its axes.
      whole: whether each group has all devices along these axes.
      group_size: number of devices of a group; of a permutation, number of pairs.
      bytes: size of the whole value of a group: of the operand on each device, or of an
        all-gather's result.
      sent: the least that each device has to send, in bytes, on average.
      lines: the source lines that it comes from; empty if XLA does not say.
      operations: the primitives that it comes from, such as ``psum`` or ``dot_general``.
      added: whether XLA's partitioner added it, for an operation that is no collective; ``None``
        if its operation is unknown.
      times: how often it runs; ``None`` if that is unknown.
      name: XLA's name for it.
    """

    kind: str
    axes: tuple[Any, ...] | None
    whole: bool
    group_size: int
    bytes: int
    sent: float
    lines: tuple[Line, ...]
    operations: tuple[str, ...]
    added: bool | None
    times: int | None
    name: str

    @property
    def along(self) -> str:
        """The axes as text: ``data, model``, ``part of data``, ``groups of 4``."""
        if self.axes is None:
            return f"groups of {self.group_size}" if self.group_size else "unknown"
        names = ", ".join(map(str, self.axes))
        return names if self.whole else f"part of {names}"


class Written(NamedTuple):
    """A collective that an equation requests.

    Attributes:
      operation: the primitive's name.
      bytes: size of the operand on each device.
      axes: the names of its mesh axes.
      line: its source line.
    """

    operation: str
    bytes: int
    axes: frozenset[Any]
    line: Line


def written(eqn: Eqn, line: Line) -> Written | None:
    """The collective that an equation requests, or ``None``."""
    name = eqn.primitive.name
    if name not in _WRITTEN:
        return None
    axes = eqn.params.get("axes", eqn.params.get("axis_name", ()))
    names = frozenset(axes) if isinstance(axes, tuple) else frozenset((axes,))
    return Written(name, total_bytes([v.aval for v in eqn.invars]), names, line)


@dataclass(frozen=True)
class Traffic:
    """A number of collectives, with their bytes; see :class:`Collective`.

    Attributes:
      count: how often they run.
      bytes, sent: their sums.
      repeated: whether some run an unknown number of times, and were counted once.
    """

    count: int
    bytes: int
    sent: float
    repeated: bool


def traffic_of(collectives: Sequence[Collective]) -> Traffic:
    """The sums for one call."""
    runs = [(1 if c.times is None else c.times, c) for c in collectives]
    return Traffic(
        sum(n for n, _ in runs), sum(n * c.bytes for n, c in runs),
        sum(n * c.sent for n, c in runs), any(c.times is None for c in collectives),
    )  # fmt: skip


class Program(NamedTuple):
    """A compiled program, for :func:`collectives_of`.

    Attributes:
      module: its module.
      places: the lines that its marks number.
      num_partitions: number of devices.
      meshes: the meshes of its arguments, results and operations.
      written: the collectives that its equations request.
    """

    module: Module
    places: Places
    num_partitions: int
    meshes: Sequence[PartitionMesh]
    written: Sequence[Written]


def collectives_of(program: Program) -> list[Collective]:
    """The collectives of a program, in the order in which they run."""
    return [
        _collective(program, one, kind, program.module.computations[inside], times)
        for inside, one, times in program.module.executed()
        if (kind := one.opcode.removesuffix("-start")) in KINDS
    ]


def _collective(
    program: Program, one: Instruction, kind: str, computation: list[Instruction], times: int | None
) -> Collective:
    by_name, n = {i.name: i for i in computation}, program.num_partitions
    permutes = kind == "collective-permute"
    groups = groups_of(one.rest, permutes, n)
    axes, whole = (None, True) if groups is None else _axes(groups, program.meshes, permutes)
    members = 0 if groups is None else max(map(len, groups), default=0)
    bytes = _bytes(one, kind, by_name, members)
    lines, operations = _origin(program, one, kind, by_name, frozenset(axes or ()))
    added = not any(o in _WRITTEN for o in operations) if operations else None
    return Collective(
        kind, axes, whole, 0 if groups is None else len(groups) if permutes else members, bytes,
        _sent(kind, bytes, groups, n), lines, operations, added, times, one.name,
    )  # fmt: skip


# Sizes


def _bytes(one: Instruction, kind: str, by_name: dict[str, Instruction], members: int) -> int:
    types = [by_name[name].type for name in one.operands if name in by_name]
    operand = sum(map(size_of, types)) if types else 0
    if not operand:
        return size_of(one.type)
    return operand * max(members, 1) if kind == "all-gather" else operand


def size_of(type: str) -> int:
    """Bytes of a type in the text of a module: ``f32[2,3]{1,0}`` or a tuple of such.

    >>> size_of("(f32[2,3]{1,0}, s4[8])")
    28
    """
    total = 0
    for name, dims in _TYPE.findall(type):
        digits = re.search(r"\d+", name)
        bits = 8 if name == "pred" else int(digits[0]) if digits else 0
        total += -(-math.prod(int(d) for d in dims.split(",") if d) * bits // 8)
    return total


def _sent(kind: str, bytes: int, groups: Groups | None, n: int) -> float:
    if groups is None:
        return float(bytes)
    if kind == "collective-permute":
        return bytes * sum(a != b for a, b in groups) / max(n, 1)
    members = max(map(len, groups), default=1)
    share = (members - 1) / max(members, 1)
    return bytes * share * (2 if kind == "all-reduce" else 1)


# Axes


def _axes(
    groups: Groups, meshes: Sequence[PartitionMesh], permutes: bool
) -> tuple[tuple[Any, ...] | None, bool]:
    """The axes of the first mesh that the groups follow, and whether they have all devices."""
    partial = None
    for mesh in meshes:
        position = dict(zip(mesh.partitions.flat, np.ndindex(mesh.partitions.shape)))
        if any(i not in position for group in groups for i in group):
            continue
        differing = [_differing([position[i] for i in group]) for group in groups]
        together = sorted({axis for axes in differing for axis in axes})
        names = tuple(mesh.names[axis] for axis in together)
        if not names:
            continue
        sizes = math.prod(mesh.partitions.shape[axis] for axis in together)
        if permutes or all(len(g) == sizes for g in groups):
            return names, True
        partial = partial or names
    return partial, partial is None


def _differing(positions: list[tuple[int, ...]]) -> list[int]:
    return [axis for axis, at in enumerate(zip(*positions)) if len({*at}) > 1]


# Lines


def _origin(
    program: Program, one: Instruction, kind: str, by_name: dict[str, Instruction],
    axes: frozenset[Any],
) -> tuple[tuple[Line, ...], tuple[str, ...]]:  # fmt: skip
    """The lines and primitives of a collective.

    XLA joins several collectives into one, whose name is what the names of the parts have in
    common. Its lines are then those of the collectives that the equations request for operands of
    these sizes and for these axes, or else of the computation of its operands.
    """
    own = _marks(one, program.places)
    joined = kind != "all-to-all" and len(one.operands) > 1
    if joined and not any(operation in _WRITTEN for _, operation in own):
        own = (
            _requested(program, one, kind, by_name, axes)
            or [m for name in one.operands for m in _producer(name, by_name, program.places)]
            or own
        )
    lines = dict.fromkeys(line for line, _ in own if line.number)
    return tuple(lines), tuple(dict.fromkeys(operation for _, operation in own))


def _requested(
    program: Program, one: Instruction, kind: str, by_name: dict[str, Instruction],
    axes: frozenset[Any],
) -> list[tuple[Line, str]]:  # fmt: skip
    origins: list[tuple[Line, str]] = []
    for name in one.operands:
        size = size_of(by_name[name].type) if name in by_name else -1
        alike = [
            (w.line, w.operation)
            for w in program.written
            if _WRITTEN[w.operation] == kind and w.bytes == size and w.axes == axes
        ]
        if not alike:
            return []
        origins += alike
    return origins


def _producer(
    name: str, by_name: dict[str, Instruction], places: Places
) -> list[tuple[Line, str]]:  # fmt: skip
    """The origin of the instruction that computes a value, beyond those that only move it."""
    for _ in range(8):
        one = by_name.get(name)
        if one is None:
            break
        marks = _marks(one, places)
        if marks or one.opcode not in _MOVED or not one.operands:
            return marks
        name = one.operands[0]
    return []


def _marks(one: Instruction, places: Places) -> list[tuple[Line, str]]:
    origins = []
    for name in one.op_names:
        m = _MARKED.search(name)
        line = places.numbered(int(m.group(2))) if m else None
        if m and line is not None:
            origins.append((line, m.group(1)))
    return origins
