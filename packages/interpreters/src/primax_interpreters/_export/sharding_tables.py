"""Shardings of arguments and results in artifacts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from primax_core.extend.dimensions import is_symbolic_dim
from primax_core.extend.portable_modules import PortableSharding

from .tables import Table, damaged, write_numbers, write_refs, write_strings, write_table

_NAMES, _SIZES, _DIMS, _MEMORY = range(4)
_AXES, _OPEN = range(2)
_MEMORY_KINDS: Final = ("device", "pinned_host", "unpinned_host")


def write_shardings(b: Any, shardings: Sequence[PortableSharding | None]) -> int | None:
    """Write the shardings; return their reference, ``None`` if there are none."""
    if not any(shardings):
        return None
    return write_refs(b, [_write(b, s) for s in shardings])


def _write(b: Any, sharding: PortableSharding | None) -> int:
    if sharding is None:
        return write_table(b, [(_MEMORY, "ref", None)])
    numbers = {name: i for i, (name, _) in enumerate(sharding.axes)}
    dims = []
    for entry in sharding.entries:
        axes = write_numbers(b, [numbers[name] for name in entry or ()])
        dims.append(write_table(b, [(_AXES, "ref", axes), (_OPEN, "u8", int(entry is None))]))
    kind = None if sharding.memory_kind is None else b.CreateString(sharding.memory_kind)
    return write_table(b, [
        (_NAMES, "ref", write_strings(b, [name for name, _ in sharding.axes])),
        (_SIZES, "ref", write_numbers(b, [size for _, size in sharding.axes])),
        (_DIMS, "ref", write_refs(b, dims)),
        (_MEMORY, "ref", kind),
    ])  # fmt: skip


def read_shardings(
    tables: Sequence[Table], avals: Sequence[Any], nr_devices: int
) -> tuple[PortableSharding | None, ...]:
    """The shardings of arrays of some types.

    Raises:
      InvalidArtifactError: if they do not belong to these arrays and this number of devices.
    """
    if not tables:
        return (None,) * len(avals)
    if len(tables) != len(avals):
        damaged("it does not have one sharding for each array")
    return tuple([_read(t, a, nr_devices) for t, a in zip(tables, avals)])


def _read(table: Table, aval: Any, nr_devices: int) -> PortableSharding | None:
    names, sizes = table.strings(_NAMES), table.numbers(_SIZES)
    kind = table.string(_MEMORY) or None
    if kind not in (None, *_MEMORY_KINDS):
        damaged(f"unknown memory kind {kind[:40]!r}")
    if not names:
        entry = () if nr_devices == 1 else None
        return None if kind is None else PortableSharding((), (entry,) * len(aval.shape), kind)
    if len(names) != len(sizes) or len({*names}) != len(names) or math.prod(sizes) != nr_devices:
        damaged(f"the mesh of a sharding does not have {nr_devices} devices along its axes")
    dims = table.tables(_DIMS)
    if len(dims) != len(aval.shape):
        damaged("a sharding does not have one entry for each axis of its array")
    entries: list[tuple[str, ...] | None] = []
    used: set[int] = set()
    for dim, size in zip(dims, aval.shape):
        axes = dim.numbers(_AXES)
        if any(i >= len(names) for i in axes) or len({*axes} | used) != len(axes) + len(used):
            damaged("a sharding divides an array along unknown or doubled axes")
        used |= {*axes}
        if not is_symbolic_dim(size) and size % math.prod([sizes[i] for i in axes]):
            damaged("a sharding does not divide its array into equal parts")
        entries.append(None if dim.number(_OPEN, "u8", 0) else tuple([names[i] for i in axes]))
    return PortableSharding(tuple(zip(names, sizes)), tuple(entries), kind)
