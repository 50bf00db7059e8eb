"""Cumulative operations."""

from __future__ import annotations

import math
from typing import Any, Final

from primax_core import lax
from primax_core.extend import Primitive
from primax_core.extend.dimensions import is_static

from ._overrides import call, override

_FLOATS: Final = frozenset(["float16", "bfloat16", "float32", "float64"])
_REAL: Final = _FLOATS | {f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)}
_DTYPES: Final = {
    lax.cumsum_p: _REAL | {"complex64", "complex128"},
    lax.cumprod_p: _REAL | {"complex64", "complex128"},
    lax.cummax_p: _REAL,
    lax.cummin_p: _REAL,
    lax.cumlogsumexp_p: _FLOATS,
}

_LEAST_SIZE: Final = 128
"""Number of elements below which XLA's form is as fast."""

_ONE_WINDOW: Final = 16
"""Size of an axis up to which XLA's form is one window at each element."""

_SIDE_BY_SIDE: Final = 8
"""Number of adjacent lines from which vectors go across them."""


def _is_faster(primitive: Primitive, aval: Any, axis: int) -> bool:
    length, inner = aval.shape[axis], math.prod(aval.shape[axis + 1 :])
    if math.prod(aval.shape) < _LEAST_SIZE or length < 2:
        return False
    if inner < _SIDE_BY_SIDE:
        return length > _ONE_WINDOW
    # XLA converts with instructions that other code may not rely on.
    converted = primitive in (lax.cumsum_p, lax.cumprod_p) and aval.dtype.name == "float16"
    return not converted


def _use_handler(primitive: Primitive) -> None:
    def rule(ctx: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        (aval,) = ctx.in_avals
        if aval.dtype.name not in _DTYPES[primitive] or not is_static(aval.shape):
            return None
        if not _is_faster(primitive, aval, axis):
            return None
        return call(ctx, primitive.name, [x], axis=axis, reverse=reverse)[0]

    override(primitive, rule)


for _primitive in _DTYPES:
    _use_handler(_primitive)
