"""Sorts and top-k along an axis."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend.dimensions import is_static

from ._overrides import call, override
from ._thresholds import least_size

SORTED: Final = frozenset((
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
))  # fmt: skip
"""Dtypes of keys and payloads."""

_LONGEST: Final = 2**32 - 1
_POSITIONS: Final = ("int32", "uint32", "int64", "uint64")


def _defining(value: Any, name: str) -> Any:
    """The operation of this name that a value is the result of, or ``None``."""
    operation = getattr(value.owner, "operation", value.owner)
    return operation if getattr(operation, "name", None) == name else None


def _are_positions(value: Any, dtype: np.dtype, dimension: int) -> bool:
    """Return True if the elements of a value are their indices along an axis."""
    broadcast = _defining(value, "stablehlo.broadcast_in_dim")
    if broadcast is not None:
        axes = list(broadcast.attributes["broadcast_dimensions"])
        if dimension not in axes:
            return False
        value, dimension = broadcast.operands[0], axes.index(dimension)
    iota = _defining(value, "stablehlo.iota")
    if iota is None or dtype.name not in _POSITIONS:
        return False
    return int(iota.attributes["iota_dimension"]) == dimension


def _sort(ctx: Any, *xs: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    avals = ctx.in_avals
    shape = avals[0].shape
    if not all(is_static(a.shape) and a.dtype.name in SORTED for a in avals):
        return None
    if shape[dimension] > _LONGEST:
        return None
    operation = "sort" if len(xs) == 1 else "argsort"
    if math.prod(shape) < least_size(operation, avals[0].dtype.name):
        return None
    positions = [
        i for i in range(num_keys, len(xs)) if _are_positions(xs[i], avals[i].dtype, dimension)
    ]
    operands = [x for i, x in enumerate(xs) if i not in positions]
    return call(
        ctx, "sort", operands, axis=dimension, num_keys=num_keys, positions=positions,
        unused=ctx.unused_results,
    )  # fmt: skip


override(lax.sort_p, _sort)


def _top_k(ctx: Any, x: Any, *, k: int, axis: int, is_stable: bool) -> Any:
    (aval,) = ctx.in_avals
    if not is_static(aval.shape) or aval.dtype.name not in SORTED or aval.dtype.kind == "c":
        return None
    length = aval.shape[axis]
    if not k or length >= 2**31:
        return None
    if math.prod(aval.shape) < least_size("top_k", aval.dtype.name):
        return None
    return call(ctx, "top_k", [x], axis=axis)


override(lax.top_k_p, _top_k)
