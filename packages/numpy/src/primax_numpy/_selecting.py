"""Elements selected by a mask, with a static or a data-dependent size."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import device_put, lax
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, Tracer, dtypes
from primax_core.extend.elementwise import argument_type as typeof

from ._functions import compiled


def take_rows(x: Any, places: Any) -> Any:
    """Rows along the first axis, at indices in bounds."""
    shape = typeof(x).shape
    rank = typeof(places).ndim
    rest = tuple(range(rank, rank + len(shape) - 1))
    numbers = lax.GatherDimensionNumbers(rest, (0,), (0,))
    return lax.gather(
        x, lax.expand_dims(places, (rank,)), numbers, (min(1, shape[0]), *shape[1:]),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )  # fmt: skip


def put_at(length: int, places: Any, values: Any) -> Any:
    """A vector with values at unique positions, zero elsewhere; positions out of bounds are
    dropped.
    """
    dtype = typeof(values).dtype
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    start = lax.full((length,), np.zeros((), dtype)[()])
    return lax.scatter(
        start, lax.expand_dims(places, (1,)), values, numbers,
        unique_indices=True, mode=lax.GatherScatterMode.FILL_OR_DROP,
    )  # fmt: skip


def ranks_of(mask: Any) -> Any:
    """Zero-based rank of each true element: the inclusive count of true elements minus one."""
    ones = lax.convert_element_type(mask, np.int32)
    return lax.sub(lax.cumsum(ones, 0), lax.full_like(ones, 1))


def true_places(mask: Any, size: int) -> tuple[Any, Any]:
    """Indices of the first ``size`` true elements, padded with the length, and the mask of valid
    ones.
    """
    n = typeof(mask).shape[0]
    places = lax.iota(np.int32, n)
    ranks = lax.select(mask, ranks_of(mask), lax.full_like(places, size))
    positions = put_at(size, ranks, lax.add(places, lax.full_like(places, 1)))
    real = lax.gt(positions, lax.full_like(positions, 0))
    return lax.select(
        real, lax.sub(positions, lax.full_like(positions, 1)), lax.full_like(positions, n)
    ), real


def size_of(name: str, size: Any) -> int | None:
    """The validated ``size`` argument.

    Raises:
      ValueError: if the size is negative.
    """
    if size is None:
        return None
    length = operator.index(size)
    if length < 0:
        raise ValueError(f"{name}: size must be nonnegative; got size={length}")
    return length


def check_known(name: str, *arrays: Any) -> None:
    """Check that arrays are concrete.

    Raises:
      ConcretizationTypeError: if an array is traced; the message explains ``size=``.
    """
    for x in arrays:
        if isinstance(x, Tracer):
            raise ConcretizationTypeError(
                x,
                f"The length of the result of {name} depends on values. Under jit, vmap and other "
                f"transformations pass it as a number: {name}(..., size=n), which pads (see "
                "fill_value) or truncates the result.",
            )


def known_places(name: str, mask: Any) -> np.ndarray:
    """Indices of the true elements of a concrete mask."""
    check_known(name, mask)
    return np.flatnonzero(np.asarray(mask))


@compiled()
def _rows(x, places):
    return take_rows(x, places)


def chosen(x: Any, places: np.ndarray) -> Array:
    """Rows at concrete positions. Concrete rows are copied on the host, so that nothing is
    compiled for each length; traced rows are gathered."""
    aval = typeof(x)
    if isinstance(x, Tracer) or aval.weak_type or isinstance(aval.dtype, dtypes.ExtendedDType):
        gathered: Array = _rows(x, places.astype(np.int32))
        return gathered
    return placed(np.asarray(x)[places])


def placed(values: np.ndarray) -> Array:
    """A device array of NumPy values, in the canonical dtype."""
    return device_put(values)


def filled(x: Any, real: Any, fill_value: Any) -> Any:
    """Rows where ``real`` is true, otherwise a fill value that broadcasts to one row."""
    aval = typeof(x)
    fill = lax.convert_element_type(fill_value, aval.dtype)
    rank = aval.ndim - typeof(fill).ndim
    fill = lax.broadcast_in_dim(fill, aval.shape, tuple(range(rank, aval.ndim)))
    return lax.select(lax.broadcast_in_dim(real, aval.shape, (0,)), x, fill)


def first_of(xs: Sequence[Any]) -> Any:
    """A single result unpacked, several as a tuple."""
    return xs[0] if len(xs) == 1 else tuple(xs)
