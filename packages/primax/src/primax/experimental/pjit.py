"""``pjit``, the former name of ``jit``."""

from __future__ import annotations

from typing import Any as _Any


def __getattr__(name: str) -> _Any:
    if name == "pjit":
        from primax_core import jit

        from .._deprecations import deprecated

        return deprecated(__name__, name, jit, "primax.jit")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
