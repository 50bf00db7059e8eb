"""Cumulative operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax

from ._overrides import call, is_static, override


def _cumsum(ctx: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    (aval,) = ctx.in_avals
    if aval.dtype != np.float32 or not is_static(aval):
        return None
    return call(ctx, "cumsum", [x], axis=axis, reverse=reverse)[0]


override(lax.cumsum_p, _cumsum)
