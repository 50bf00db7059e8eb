"""Views of shardings: for a callback, and as a drawing in text."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from primax_core import Array, tree_util
from primax_core.extend.runtime import Sharding, api_boundary
from primax_core.extend.traces import Tracer, check_callable
from primax_core.typing import PyTree

from .inspecting import inspect_sharding_p
from .sharding_pictures import displayed


@api_boundary
def inspect_array_sharding(value: PyTree, *, callback: Callable[[Any], Any]) -> None:
    """Call a function with the sharding of an array, also inside a compiled function.

    Args:
      value: an array, or a pytree of arrays: the function is called for each.
      callback: takes a ``Sharding``. Inside a compiled function it is called once, when the
        function is compiled.

    >>> from primax_core import jit
    >>> jit(lambda x: inspect_array_sharding(x, callback=lambda s: print(s.num_devices)))(1.0)
    1
    """
    check_callable(callback)
    for x in tree_util.tree_leaves(value):
        inspect_sharding_p.bind(x, callback=callback)


@api_boundary
def visualize_array_sharding(arr: Array, **kwargs: Any) -> None:
    """Print or display the sharding of an array of rank 1 or 2; see :func:`visualize_sharding`."""
    shape = arr.shape
    if isinstance(arr, Array) and not isinstance(arr, Tracer):
        visualize_sharding(shape, arr.sharding, **kwargs)
    else:
        inspect_array_sharding(
            arr, callback=lambda sharding: visualize_sharding(shape, sharding, **kwargs)
        )


_COLORS: Final = (41, 42, 43, 44, 45, 46, 100, 101, 102, 103, 104, 105, 106)


@api_boundary
def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Callable[..., Any] | None = None,
) -> None:
    """Print the devices of each shard of an array of rank 1 or 2.

    A notebook displays a picture instead, unless ``use_color`` is false or there is a
    ``color_map``; :func:`sharding_picture` makes it for any rank.

    Args:
      shape: the array's shape.
      sharding: the array's sharding.
      use_color: colour the shards, if standard output is a terminal.
      scale: scale of the drawing.
      min_width: minimum width of a shard, in characters.
      max_width: maximum width of the drawing.
      color_map: from the ids of the devices of a shard to the number of an ANSI background
        colour.

    Raises:
      ValueError: for other ranks.

    >>> from primax_core import lax
    >>> visualize_sharding((4,), lax.iota("int32", 4).sharding)
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    if len(shape) not in (1, 2):
        raise ValueError(f"visualize_sharding shows arrays of rank 1 and 2, got the shape {shape}")
    if use_color and color_map is None and displayed(shape, sharding):
        return
    devices_of = _devices_of_shards(shape, sharding)
    rows = sorted({spans[0] for spans in devices_of})
    columns = sorted({spans[1] for spans in devices_of})
    texts = {
        at: f"{devs[0].platform.upper()} {','.join(str(d.id) for d in devs)}"
        for at, devs in devices_of.items()
    }
    wide = max(min_width, *(len(t) + 2 for t in texts.values()))
    width = max(wide, math.floor(min(max_width, scale * wide * len(columns)) / len(columns)) - 1)
    colored = use_color and sys.stdout.isatty()
    edge = "─" * width
    lines = [f"┌{'┬'.join([edge] * len(columns))}┐"]
    for i, row in enumerate(rows):
        cells = []
        for column in columns:
            text = texts.get((row, column), "").center(width)
            if colored:
                devs = devices_of.get((row, column), [])
                color = _color(devs, color_map)
                text = f"\033[{color}m{text}\033[0m"
            cells.append(text)
        lines.append(f"│{'│'.join(cells)}│")
        last = i == len(rows) - 1
        left, middle, right = "└┴┘" if last else "├┼┤"
        lines.append(f"{left}{middle.join([edge] * len(columns))}{right}")
    sys.stdout.write("\n".join(lines) + "\n")


def _devices_of_shards(
    shape: Sequence[int], sharding: Any
) -> dict[tuple[tuple[int, int], ...], list[Any]]:
    """The devices of each shard, by its rows (a vector is one row) and columns."""
    by_span: dict[tuple[tuple[int, int], ...], list[Any]] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        spans = tuple(s.indices(n)[:2] for s, n in zip(index, shape))
        by_span.setdefault(spans if len(shape) == 2 else ((0, 1), *spans), []).append(device)
    return by_span


def _color(devs: Sequence[Any], color_map: Callable[..., Any] | None) -> Any:
    if color_map is not None:
        return color_map(*(d.id for d in devs))
    return _COLORS[(devs[0].id if devs else 0) % len(_COLORS)]
