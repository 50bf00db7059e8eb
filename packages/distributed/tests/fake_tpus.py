"""Devices of TPU slices that do not exist, and shapes of meshes for them."""

from __future__ import annotations

import itertools
from typing import Any


class FakeDevice:
    platform = "tpu"

    def __init__(self, number: int, kind: str, coords: Any, core: int, process: int, slice_: int):
        self.id, self.device_kind, self.coords = number, kind, coords
        self.core_on_chip, self.process_index, self.slice_index = core, process, slice_

    def __repr__(self) -> str:
        return f"fake {self.id}"


def tpu(topology: str, kind: str = "TPU v4", cores: int = 1, slice_: int = 0) -> list[FakeDevice]:
    """Devices of a slice ``4x4x1``; each process has 2x2 chips."""
    width, height, depth = map(int, topology.split("x"))
    out = []
    for z, y, x, core in itertools.product(*map(range, (depth, height, width, cores))):
        process = (z * -(-height // 2) + y // 2) * -(-width // 2) + x // 2
        number = len(out) + 1000 * slice_
        out.append(FakeDevice(number, kind, (x, y, z), core, process + 100 * slice_, slice_))
    return out


def factorizations(n: int) -> list[tuple[int, ...]]:
    return [
        (n,),
        *((d, *rest) for d in range(2, n) if n % d == 0 for rest in factorizations(n // d)),
    ]
