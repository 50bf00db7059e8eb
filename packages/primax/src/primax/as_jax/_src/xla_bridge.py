"""Clients and devices."""

from collections.abc import Iterator as _Iterator, Mapping as _Mapping
from typing import Any as _Any

from primax.extend.backend import backends as backends, get_backend as get_backend
from primax_core import (
    default_backend as default_backend,
    device_count as device_count,
    devices as devices,
    local_device_count as local_device_count,
    local_devices as local_devices,
    process_count as process_count,
    process_index as process_index,
)
from primax_core.extend import started_clients as _started_clients


class _Started(_Mapping[str, _Any]):
    """The clients that are started already, by platform; access starts none."""

    def __getitem__(self, platform: str) -> _Any:
        return _started_clients()[platform]

    def __iter__(self) -> _Iterator[str]:
        return iter(_started_clients())

    def __len__(self) -> int:
        return len(_started_clients())


_backends = _Started()


def backends_are_initialized() -> bool:
    """Return True if a client is started."""
    return bool(_backends)
