"""Cumulative operations."""

from __future__ import annotations

from typing import Any, Final

from primax_core import lax
from primax_core.extend import Primitive

from ._overrides import call, is_static, override

_REAL: Final = frozenset(
    [f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)]
    + ["float16", "bfloat16", "float32", "float64"]
)
_DTYPES: Final = {
    lax.cumsum_p: _REAL | {"complex64", "complex128"},
    lax.cumprod_p: _REAL | {"complex64", "complex128"},
    lax.cummax_p: _REAL,
    lax.cummin_p: _REAL,
}


def _use_handler(primitive: Primitive) -> None:
    def rule(ctx: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        (aval,) = ctx.in_avals
        if aval.dtype.name not in _DTYPES[primitive] or not is_static(aval):
            return None
        return call(ctx, primitive.name, [x], axis=axis, reverse=reverse)[0]

    override(primitive, rule)


for _primitive in _DTYPES:
    _use_handler(_primitive)
