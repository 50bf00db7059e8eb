"""Structural primitives that transformations apply directly; ``lax`` registers their rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._base.identity import ROOT
from .._ir.avals import ShapedArray
from .._ir.dtypes import ExtendedDType
from .._ir.jaxpr import Literal
from .._ir.primitive import Primitive
from .core import typeof
from .typing import ArrayLike

_LAX: Final = f"{ROOT}.lax"

broadcast_in_dim_p: Final = Primitive("broadcast_in_dim", home=f"{_LAX}.broadcasting")
transpose_p: Final = Primitive("transpose", home=f"{_LAX}.permuting")
reduce_sum_p: Final = Primitive("reduce_sum", home=f"{_LAX}.reducing")
device_put_p: Final = Primitive("device_put", multiple_results=True, home=f"{_LAX}.placement")


def broadcast_in_dim(x: ArrayLike, shape: Sequence[Any], dims: Sequence[int]) -> Any:
    """Broadcast an array to a shape; axis ``i`` of the array becomes axis ``dims[i]``."""
    return broadcast_in_dim_p.bind(
        x, shape=tuple(shape), broadcast_dimensions=tuple(dims), sharding=None
    )


def sum_axes(x: ArrayLike, axes: Sequence[int]) -> Any:
    """Sum over some axes and remove them."""
    return reduce_sum_p.bind(x, axes=tuple(axes), out_sharding=None)


def insert_axis(x: Any, size: Any, axis: int) -> Any:
    """Repeat an array ``size`` times along a new axis."""
    shape = typeof(x).shape
    dims = tuple([i + (i >= axis) for i in range(len(shape))])
    return broadcast_in_dim(x, (*shape[:axis], size, *shape[axis:]), dims)


def move_axis(x: Any, source: int, target: int) -> Any:
    """Move one axis; the others keep their order."""
    order = [i for i in range(typeof(x).ndim) if i != source]
    order.insert(target, source)
    return transpose_p.bind(x, permutation=tuple(order))


def zeros(aval: ShapedArray) -> Any:
    """An array of zeros of a type."""
    if isinstance(aval.dtype, ExtendedDType):
        return aval.dtype.full(aval.shape, 0)
    scalar = ShapedArray((), aval.dtype, aval.weak_type)
    return broadcast_in_dim(literal(0, scalar), aval.shape, ())


def literal(value: Any, aval: ShapedArray) -> Any:
    """An operand of a scalar aval from a Python or NumPy scalar; integers wrap."""
    if typeof(value) is aval and type(value) is not int:
        return value
    with np.errstate(all="ignore"):
        if type(value) is int and aval.dtype.kind in "iu":
            bits = 8 * aval.dtype.itemsize
            value &= (1 << bits) - 1
            converted = np.array(value, f"u{aval.dtype.itemsize}").astype(aval.dtype)[()]
        else:
            converted = np.asarray(value).astype(aval.dtype)[()]
    return converted if typeof(converted) is aval else Literal(converted, aval)
