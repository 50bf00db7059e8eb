"""Elements where a mask holds: as many as there are, or as many as are asked for."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import device_put, lax
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, Tracer, dtypes, typeof

from ._functions import compiled


def take_rows(x: Any, places: Any) -> Any:
    """Rows along the first axis, at positions that exist."""
    shape = typeof(x).shape
    rank = typeof(places).ndim
    rest = tuple(range(rank, rank + len(shape) - 1))
    numbers = lax.GatherDimensionNumbers(rest, (0,), (0,))
    return lax.gather(
        x, lax.expand_dims(places, (rank,)), numbers, (min(1, shape[0]), *shape[1:]),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )  # fmt: skip


def put_at(length: int, places: Any, values: Any) -> Any:
    """A vector with values at different positions, zero elsewhere; others are dropped."""
    dtype = typeof(values).dtype
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    start = lax.full((length,), np.zeros((), dtype)[()])
    return lax.scatter(
        start, lax.expand_dims(places, (1,)), values, numbers,
        unique_indices=True, mode=lax.GatherScatterMode.FILL_OR_DROP,
    )  # fmt: skip


def ranks_of(mask: Any) -> Any:
    """For each element how many before and with it are true, less one."""
    ones = lax.convert_element_type(mask, np.int32)
    return lax.sub(lax.cumsum(ones, 0), lax.full_like(ones, 1))


def true_places(mask: Any, size: int) -> tuple[Any, Any]:
    """Positions of the first ``size`` true elements, then the mask's length; and which are real."""
    n = typeof(mask).shape[0]
    places = lax.iota(np.int32, n)
    ranks = lax.select(mask, ranks_of(mask), lax.full_like(places, size))
    found = put_at(size, ranks, lax.add(places, lax.full_like(places, 1)))
    real = lax.gt(found, lax.full_like(found, 0))
    return lax.select(real, lax.sub(found, lax.full_like(found, 1)), lax.full_like(found, n)), real


def size_of(name: str, size: Any) -> int | None:
    """The argument that says how long the result is.

    Raises:
      ValueError: if it is negative.
    """
    if size is None:
        return None
    found = operator.index(size)
    if found < 0:
        raise ValueError(f"{name}: size must be nonnegative; got size={found}")
    return found


def check_known(name: str, *arrays: Any) -> None:
    """Refuse to look at values that are not known yet.

    Raises:
      ConcretizationTypeError: saying how to give the size.
    """
    for x in arrays:
        if isinstance(x, Tracer):
            raise ConcretizationTypeError(
                x,
                f"How long the result of {name} is depends on values. Inside jit, vmap and other "
                f"transformations give it as a number: {name}(..., size=n), which pads (see "
                "fill_value) or cuts the result.",
            )


def known_places(name: str, mask: Any) -> np.ndarray:
    """Positions of the true elements of a mask whose values are known."""
    check_known(name, mask)
    return np.flatnonzero(np.asarray(mask))


@compiled()
def _rows(x, places):
    return take_rows(x, places)


def chosen(x: Any, places: np.ndarray) -> Array:
    """Rows at known positions. They are copied on the host, so that no program is compiled for
    each length; rows that are traced are gathered."""
    aval = typeof(x)
    if isinstance(x, Tracer) or aval.weak_type or isinstance(aval.dtype, dtypes.ExtendedDType):
        gathered: Array = _rows(x, places.astype(np.int32))
        return gathered
    return placed(np.asarray(x)[places])


def placed(values: np.ndarray) -> Array:
    """An array of NumPy's values, in the dtype that is allowed."""
    return device_put(values)


def filled(x: Any, real: Any, fill_value: Any) -> Any:
    """Rows where they are real, elsewhere a value that broadcasts to one row."""
    aval = typeof(x)
    fill = lax.convert_element_type(fill_value, aval.dtype)
    rank = aval.ndim - typeof(fill).ndim
    fill = lax.broadcast_in_dim(fill, aval.shape, tuple(range(rank, aval.ndim)))
    return lax.select(lax.broadcast_in_dim(real, aval.shape, (0,)), x, fill)


def first_of(xs: Sequence[Any]) -> Any:
    """A single result as it is, several as a tuple."""
    return xs[0] if len(xs) == 1 else tuple(xs)
