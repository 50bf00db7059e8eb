"""Pictures of shardings, as SVG."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from html import escape
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core.extend.runtime import Sharding, api_boundary

_COLORS: Final = (
    "#8dd3c7", "#ffffb3", "#bebada", "#fb8072", "#80b1d3", "#fdb462", "#b3de69", "#fccde5",
    "#d9d9d9", "#bc80bd", "#ccebc5", "#ffed6f", "#a6cee3", "#b2df8a", "#fb9a99", "#cab2d6",
)  # fmt: skip
_LETTER, _LINE, _HEIGHT, _MOST = 7.3, 18, 34, 24

Span = tuple[int, int]


class ShardingPicture:
    """A picture of the parts of an array; a notebook shows it.

    Attributes:
      svg: the picture.
    """

    def __init__(self, svg: str):
        self.svg: str = svg

    def to_svg(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return "<ShardingPicture: show it in a notebook, or write it with to_svg>"


@api_boundary
def sharding_picture(
    array: Any, sharding: Sharding | None = None, *, max_width: int = 900
) -> ShardingPicture:  # fmt: skip
    """A picture of the parts of an array: their indices, devices and mesh axes.

    The columns are the parts along the last axis that is divided, the rows those along the others.
    Parts on the same devices have the same colour.

    Args:
      array: an array, or anything else with a ``shape``; a shape, if ``sharding`` is given.
      sharding: the sharding, by default that of the array.
      max_width: maximum width of the picture, in pixels.

    Raises:
      TypeError: without a sharding, or inside a function that is being transformed, where values
        have none: use ``inspect_array_sharding``.
      ValueError: for more than 4096 parts.

    >>> from primax_core import lax
    >>> picture = sharding_picture(lax.iota("int32", 4))
    >>> "axis 0 of size 4" in picture.svg, "cpu 0" in picture.svg
    (True, True)
    """
    shape = tuple(getattr(array, "shape", array))
    if sharding is None:
        sharding = getattr(array, "sharding", None)
        if not hasattr(sharding, "devices_indices_map") or getattr(sharding, "_is_abstract", False):
            raise TypeError(
                f"sharding_picture got {array!r}, which has no devices: pass an array outside of "
                "transformations, or a shape and a sharding. In a jitted function, draw in the "
                "callback of inspect_array_sharding."
            )
    return ShardingPicture(_drawn(_divided(shape, sharding), max_width))


class _Division(NamedTuple):
    """The devices of each part, by the spans of its axes, and the mesh axes of each array axis."""

    shape: tuple[int, ...]
    parts: dict[tuple[Span, ...], list[Any]]
    axes: list[list[str]]
    copies: list[str]


def _divided(shape: tuple[int, ...], sharding: Any) -> _Division:
    indices = {
        device: tuple([s.indices(n)[:2] for s, n in zip(index, shape)])
        for device, index in sharding.devices_indices_map(shape).items()
    }
    parts: dict[tuple[Span, ...], list[Any]] = {}
    for device, spans in indices.items():
        parts.setdefault(spans, []).append(device)
    if len(parts) > 4096:
        raise ValueError(f"sharding_picture draws up to 4096 parts, got {len(parts)}")
    axes: list[list[str]] = [[] for _ in shape]
    copies = []
    mesh = getattr(sharding, "_mesh_axes", lambda: None)()
    for name, first, second in () if mesh is None else _steps(*mesh):
        if first is second:
            continue
        differing = [i for i, (a, b) in enumerate(zip(indices[first], indices[second])) if a != b]
        text = f"{name} ({mesh[1].shape[mesh[0].index(name)]})"
        for axis in differing:
            axes[axis].append(text)
        if not differing:
            copies.append(text)
    return _Division(shape, parts, axes, copies)


def _steps(names: Sequence[Any], devices: np.ndarray) -> Iterator[tuple[Any, Any, Any]]:
    """For each mesh axis its name and two devices that differ in it alone."""
    for axis, name in enumerate(names):
        along = np.moveaxis(devices, axis, 0).reshape(devices.shape[axis], -1)[:, 0]
        yield name, along[0], along[-1]


def _title(division: _Division, axis: int) -> str:
    along = division.axes[axis]
    text = f"axis {axis} of size {division.shape[axis]}"
    return text + (f" along {', '.join(along)}" if along else "")


def _drawn(division: _Division, max_width: int) -> str:
    keys, ndim = sorted(division.parts), len(division.shape)
    divided = [i for i in range(ndim) if len({k[i] for k in keys}) > 1]
    last = divided[-1] if divided else ndim - 1
    if ndim == 2:  # a matrix is drawn as it is written
        last = 1
    rest = [i for i in range(ndim) if i != last and (i in divided or ndim == 2)]
    rows = sorted({tuple([k[i] for i in rest]) for k in keys})
    columns = sorted({k[last] for k in keys}) if ndim else [(0, 1)]
    at: dict[tuple[Any, Any], list[Any]] = {
        (tuple([k[i] for i in rest]), k[last] if ndim else (0, 1)): devices
        for k, devices in division.parts.items()
    }
    labels = [", ".join(f"{a}:{b}" for a, b in row) for row in rows]
    heads = [f"{a}:{b}" if ndim else "" for a, b in columns]
    texts = {cell: _devices_text(devices) for cell, devices in at.items()}
    left = max((len(label) for label in labels), default=0) * _LETTER + 12
    widest = max(map(len, [*heads, *texts.values()])) * _LETTER + 16
    width = max(12.0, min(max(widest, 64.0), (max_width - left) / len(columns)))
    titles = [f"rows: {_title(division, i)}" for i in rest]
    titles += [f"columns: {_title(division, last)}"] if ndim else ["a scalar"]
    whole = [i for i in range(ndim) if i != last and i not in rest]
    titles += [f"not divided: {_title(division, i)}" for i in whole]
    titles += [f"copies along {', '.join(division.copies)}"] if division.copies else []
    top = len(titles) * _LINE + 6
    body = [_text(4, (i + 1) * _LINE - 4, title, "start") for i, title in enumerate(titles)]
    body += [_text(left + (j + 0.5) * width, top + _LINE - 5, head) for j, head in enumerate(heads)]
    groups: dict[str, int] = {}
    for i, row in enumerate(rows):
        y = top + _LINE + i * _HEIGHT
        body.append(_text(left - 6, y + _HEIGHT / 2 + 4, labels[i], "end"))
        for j, column in enumerate(columns):
            text = texts.get((row, column))
            if text is not None:
                number = groups.setdefault(text, len(groups))
                body.append(_cell(left + j * width, y, width, text, number))
    full = max(left + width * len(columns) + 4, max(map(len, titles)) * _LETTER + 8)
    height = top + _LINE + len(rows) * _HEIGHT + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{full:.0f}" height="{height:.0f}" '
        'font-family="monospace" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{chr(10).join(body)}\n</svg>'
    )


def _devices_text(devices: Sequence[Any]) -> str:
    ids = ",".join(str(d.id) for d in devices)
    if len(ids) > _MOST:
        ids = f"{devices[0].id}..{devices[-1].id} ({len(devices)})"
    return f"{devices[0].platform} {ids}"


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _cell(x: float, y: float, width: float, text: str, number: int) -> str:
    color = _COLORS[number % len(_COLORS)]
    shown = text if len(text) * _LETTER <= width else text.partition(" ")[2]
    shown = shown if len(shown) * _LETTER <= width else ""
    return (
        f'<g><title>{escape(text)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{_HEIGHT}" fill="{color}" stroke="#555"/>'
        f"{_text(x + width / 2, y + _HEIGHT / 2 + 4, shown)}</g>"
    )


def displayed(shape: Sequence[int], sharding: Any) -> bool:
    """Display a picture if this code runs in a notebook; return False elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return False
    import_module("IPython.display").display(sharding_picture(tuple(shape), sharding))
    return True
