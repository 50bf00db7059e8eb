"""Meshes and shardings in notebooks: tables of their axes and devices.

The tables have no colours, so that they fit light and dark themes of notebooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

import numpy as np

from ._abstract_mesh import AbstractMesh

MOST_DEVICES: Final = 64
"""Number of devices up to which each of them is shown."""


def mesh_html(mesh: Any) -> str:
    """The axes of a mesh, and its devices."""
    rows = [[n, s, t.name] for n, s, t in _axes(mesh)]
    return f"<div><b>Mesh</b>\n{_table(['axis', 'size', 'type'], rows)}{_devices(mesh)}</div>"


def sharding_html(sharding: Any) -> str:
    """The axes of the mesh of a sharding with the axes of arrays that they divide."""
    mesh, spec = sharding.mesh, sharding.spec
    divided: dict[Any, Any] = {}
    for position, names in enumerate(spec):
        for name in names if isinstance(names, tuple) else (names,):
            divided[name] = f"axis {position}"
    rows = [[n, s, t.name, divided.get(n, "-")] for n, s, t in _axes(mesh)]
    kind = "" if sharding.memory_kind is None else f" in {escape(sharding.memory_kind)}"
    head = f"<b>NamedSharding</b> {escape(str(spec))}{kind}"
    table = _table(["mesh axis", "size", "type", "divides"], rows)
    return f"<div>{head}\n{table}{_devices(mesh)}</div>"


def _axes(mesh: Any) -> list[tuple[Any, int, Any]]:
    return [*zip(mesh.axis_names, mesh.axis_sizes, mesh.axis_types, strict=True)]


def _devices(mesh: Any) -> str:
    """A table of the devices of a mesh with one or two axes; otherwise their number."""
    if isinstance(mesh, AbstractMesh) or mesh.empty:
        return ""
    grid: np.ndarray[Any, Any] = mesh.devices
    if grid.ndim > 2 or grid.size > MOST_DEVICES:
        return f"<div>{grid.size} devices, {escape(str(grid.flat[0]))} first</div>"
    rows = grid[None] if grid.ndim < 2 else grid
    axes = " and ".join(map(str, mesh.axis_names))
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(d))}</td>' for d in row)}</tr>" for row in rows)
    return f"<div>Devices along {escape(axes)}</div>\n<table>{body}</table>"


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    cells = "".join(f"<th>{title}</th>" for title in head)
    lines = [f"<tr>{''.join(f'<td>{escape(str(c))}</td>' for c in row)}</tr>" for row in rows]
    return "\n".join(["<table>", f"<tr>{cells}</tr>", *lines, "</table>\n"])
