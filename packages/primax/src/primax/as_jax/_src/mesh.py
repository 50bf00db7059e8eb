"""The reference's private module of meshes."""

from typing import Any as _Any

from primax import _several_devices
from primax._several_devices import of_wheel as _of_wheel
from primax._thread_resources import (
    ResourceEnv as ResourceEnv,
    thread_resources as thread_resources,
)

_NAMES = {
    "BaseMesh": "BaseMesh",
    "empty_abstract_mesh": "empty_abstract_mesh",
    "empty_concrete_mesh": "empty_mesh",
    "get_concrete_mesh": "concrete_mesh",
}


def __getattr__(name: str) -> _Any:
    if name in _NAMES:
        return _of_wheel(__name__, _NAMES[name])
    if name in _several_devices.OF_ROOT:
        return _of_wheel(__name__, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
