"""The reference's ``experimental``: modules and functions of the wheels."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from primax_core import io_callback as io_callback

from .. import _modules

if TYPE_CHECKING:
    from primax_core import layout as layout
    from primax_core import serialize_executable as serialize_executable

    from . import array_serialization as array_serialization
    from . import buffer_callback as buffer_callback
    from . import checkify as checkify
    from . import colocated_python as colocated_python
    from . import compilation_cache as compilation_cache
    from . import custom_partitioning as custom_partitioning
    from . import hijax as hijax
    from . import jet as jet
    from . import mesh_utils as mesh_utils
    from . import multihost_utils as multihost_utils
    from . import pallas as pallas
    from . import pjit as pjit
    from . import random as random
    from . import shard_map as shard_map
    from . import sparse as sparse
    from . import topologies as topologies
    from . import xla_metadata as xla_metadata

_OWN = (
    "array_serialization", "buffer_callback", "checkify", "colocated_python", "compilation_cache",
    "custom_partitioning", "hijax", "jet",
    "mesh_utils", "multihost_utils", "pallas", "pjit", "random", "shard_map", "sparse",
    "topologies", "xla_metadata",
)  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in _modules.EXPERIMENTAL or name in _OWN:
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_modules.EXPERIMENTAL, *_OWN} - {"TYPE_CHECKING"})
