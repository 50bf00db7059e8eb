"""Where arrays lie: the shardings of the core.

Meshes, and shardings over several devices, are not part of this version.
"""

from __future__ import annotations

from typing import Any as _Any

from primax_core.extend import Sharding as Sharding, SingleDeviceSharding as SingleDeviceSharding


def __getattr__(name: str) -> _Any:
    from ._several_devices import missing

    raise missing(__name__, name)
