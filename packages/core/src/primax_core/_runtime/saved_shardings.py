"""Shardings over several devices in files of serialized executables.

Each is described by its tiling, which is enough to place arrays, and pickled, which restores names
of axes if the executable runs on the same devices. Loaded on first use.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from .devices import Device
from .saved_executables import damaged
from .sharding import Sharding
from .tiled_sharding import TiledSharding
from .tilings import Tiling


def described(shardings: Sequence[Sharding], ndims: Sequence[int]) -> dict[str, Any]:
    """Shardings as JSON; ``ndims`` are the numbers of axes of the arrays."""
    rows: list[Any] = []
    numbers: dict[Any, int] = {}
    unique: list[Sharding] = []
    of = []
    for sharding, ndim in zip(shardings, ndims, strict=True):
        number = numbers.setdefault((sharding, ndim), len(rows))
        if number == len(rows):
            n = sharding.num_devices
            tiling = Tiling.of_xla(sharding._hlo_sharding(ndim), ndim, n)
            rows.append([list(tiling.tiles), tiling.order.reshape(-1).tolist(), tiling.partial])
            unique.append(sharding)
        of.append(number)
    return {"tilings": rows, "of": of, "pickled": base64.b64encode(pickle.dumps(unique)).decode()}


def restored(about: Any, devs: tuple[Device, ...], count: int) -> list[Sharding]:
    """The shardings on devices, with the names of axes if these are the original devices.

    Raises:
      InvalidArtifactError: if they cannot be read.
    """
    try:
        tilings = [_tiling(row, len(devs)) for row in about["tilings"]]
        of = [int(i) for i in about["of"]]
        shardings: list[Sharding] = [TiledSharding(devs, t) for t in tilings]
        if len(of) != count or any(not 0 <= i < len(tilings) for i in of):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        damaged("a sharding cannot be read")
    for i, original in enumerate(_originals(about.get("pickled"), len(tilings))):
        if original is not None and original._devices == devs:
            shardings[i] = original
    return [shardings[i] for i in of]


def _tiling(row: Any, n: int) -> Tiling:
    tiles, order, partial = row
    if sorted(order) != list(range(n)) or type(partial) is not int or partial < 1:
        raise ValueError
    return Tiling(tiles, np.array(order).reshape([*tiles, -1]), partial)


def _originals(pickled: Any, n: int) -> list[Any]:
    """The pickled shardings; ``None`` in place of those that this process cannot restore."""
    try:
        originals = pickle.loads(base64.b64decode(pickled))
    except Exception:  # the package that defines them is missing, or devices are
        return [None] * n
    return originals if type(originals) is list and len(originals) == n else [None] * n
