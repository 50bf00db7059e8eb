"""The reference's interpreters: rule tables and helpers for rules.

``ad`` is for derivatives, ``batching`` for ``vmap``, ``mlir`` for lowering, ``partial_eval`` for
jaxprs. They are adapters over ``primax.extend``, whose rules use the library's own convention.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from . import ad as ad
    from . import batching as batching
    from . import mlir as mlir
    from . import partial_eval as partial_eval
    from . import pxla as pxla
    from . import xla as xla

_SUBMODULES = ("ad", "batching", "mlir", "partial_eval", "pxla", "xla")


def __getattr__(name: str) -> _Any:
    if name in _SUBMODULES:
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES} - {"TYPE_CHECKING"})
