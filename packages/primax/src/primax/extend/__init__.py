"""The core's extension API (``primax_core.extend``) and the reference's ``jax.extend``.

The names of the extension API are available here unchanged. The submodules ``core``, ``backend``,
``ifrt_programs``, ``linear_util``, ``mlir``, ``random`` and ``source_info_util`` have the
reference's names and conventions, as adapters over the extension API.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

import primax_core.extend as _core_extend
from primax_core.extend import *  # noqa: F403

if TYPE_CHECKING:
    from . import backend as backend
    from . import core as core
    from . import ifrt_programs as ifrt_programs
    from . import linear_util as linear_util
    from . import mlir as mlir
    from . import random as random
    from . import source_info_util as source_info_util

_SUBMODULES = (
    "backend", "core", "ifrt_programs", "linear_util", "mlir", "random", "source_info_util",
)  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in _SUBMODULES:
        return _import_module(f".{name}", __name__)
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_core_extend, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *dir(_core_extend)} - {"TYPE_CHECKING"})
