"""Promotion and dtype checks of operands."""

from __future__ import annotations

from typing import Any

from primax_core import lax
from primax_core.extend import Literal, cast, dtypes, inexact, same_rank, typeof
from primax_numpy.declaring import is_complex


def promoted_floats(name: str, *xs: Any) -> list[Any]:
    """Operands promoted to a common inexact dtype, and to one rank except for scalars."""
    avals = [typeof(x) for x in xs]
    promoted = inexact(*dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in avals])))
    out = [_as_array(cast(x, a, *promoted)) for x, a in zip(xs, avals)]
    widest = max(range(len(out)), key=lambda i: typeof(out[i]).ndim)
    for i, x in enumerate(out):
        if i != widest:
            out[i], out[widest] = same_rank(name, x, out[widest])
    return out


def _as_array(x: Any) -> Any:
    """An array for a Python number, which has no array operators."""
    if type(x) is not Literal:
        return x
    array = lax.full((), x.scalar, x.aval.dtype)
    return cast(array, typeof(array), x.aval.dtype, x.aval.weak_type)


def floats(name: str, *xs: Any) -> list[Any]:
    """As `promoted_floats`, for real operands.

    Raises:
      ValueError: if an operand is complex.
    """
    out = promoted_floats(name, *xs)
    if is_complex(out[0]):
        raise ValueError(
            f"{name} does not support complex-valued inputs: take the real part, imaginary part or "
            "absolute value first."
        )
    return out


def at_least_single(x: Any) -> Any:
    """Floats of less than 32 bits converted to ``float32``, in which series are computed."""
    dtype = typeof(x).dtype
    return cast(x, typeof(x), dtypes.f32, False) if dtype.itemsize < 4 else x


def like(x: Any, other: Any) -> Any:
    """The operand converted to the dtype of another one."""
    aval = typeof(x)
    dtype = typeof(other).dtype
    return x if aval.dtype == dtype and not aval.weak_type else cast(x, aval, dtype, False)


def single_or_double(name: str, x: Any) -> None:
    """Raise TypeError unless the elements are floats of 32 or 64 bits."""
    if typeof(x).dtype not in (dtypes.f32, dtypes.f64):
        raise TypeError(
            f"{name}: x.dtype={typeof(x).dtype} is not supported, only float32 and float64 are: "
            "convert with x.astype(float)."
        )
