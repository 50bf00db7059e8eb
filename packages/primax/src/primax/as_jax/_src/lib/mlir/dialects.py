"""MLIR's dialects: jaxlib's, and ``hlo``, the name of the reference for ``stablehlo``."""

from importlib import import_module as _import_module
from typing import Any as _Any

from primax_core.extend import hlo as hlo


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return _import_module(f"primax.extend.mlir.dialects.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
