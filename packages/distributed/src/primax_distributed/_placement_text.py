"""Shapes with mesh axes, as types are printed: ``[8@x,16@(y,z)]{V:a, U:b}``."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any


def placement_text(
    shape: Sequence[Any],
    spec: Sequence[Sequence[Hashable]],
    order: Sequence[Hashable],
    marks: Mapping[str, Collection[Hashable]],
) -> str:
    """The text of a shape.

    Args:
      shape: sizes of the axes.
      spec: for each axis the mesh axes that divide it.
      order: all mesh axes, in the order of printing.
      marks: mesh axes by the mark in front of them.

    >>> placement_text((8, 16), [("x",), ("y", "z")], "wxyz", {"V": {"w"}, "U": ()})
    '[8@x,16@(y,z)]{V:w}'
    """
    sizes = [f"{size}@{_names(axes)}" if axes else f"{size}" for size, axes in zip(shape, spec)]
    notes = [
        f"{mark}:{_names([name for name in order if name in axes])}"
        for mark, axes in marks.items()
        if axes
    ]
    suffix = f"{{{', '.join(notes)}}}" if notes else ""
    return f"[{','.join(sizes)}]{suffix}"


def _names(names: Sequence[Hashable]) -> str:
    return f"{names[0]}" if len(names) == 1 else f"({','.join(map(str, names))})"
