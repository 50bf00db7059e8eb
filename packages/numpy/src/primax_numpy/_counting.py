"""Occurrence counts of integers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, Tracer, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, ShardingLike

from ._checks import check_arrays
from ._functions import compiled, trim_none


def counts_at(places: Any, weights: Any, length: int, dtype: Any) -> Any:
    """Sums of weights (or element counts) at each index; indices out of range are dropped."""
    if weights is None:
        weights = lax.full(typeof(places).shape, np.ones((), dtype)[()])
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    start = lax.full((length,), np.zeros((), dtype)[()])
    return lax.scatter_add(
        start,
        lax.expand_dims(places, (1,)),
        weights,
        numbers,
        mode=lax.GatherScatterMode.FILL_OR_DROP,
    )


@compiled("length", "dtype")
def _bincount(x, weights=None, *, length, dtype):
    kind = typeof(x).dtype
    if kind == np.bool_ or dtypes.itemsize_bits(kind) < 32:
        x = lax.convert_element_type(x, np.int32)
    if dtypes.issubdtype(typeof(x).dtype, np.signedinteger):
        x = lax.max(x, lax.full_like(x, 0))
    return counts_at(x, weights, length, dtype)


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Number of occurrences of each integer ``0, 1, 2, ...`` in a vector.

    Args:
      x: a vector of integers; negative ones are counted as 0.
      weights: the weight of each element, 1 by default; of the shape of ``x``.
      minlength: the minimum length of the result.
      length: the length of the result, required inside ``jit``; larger integers are dropped. By
        default one more than the maximum.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Raises:
      TypeError: if ``x`` is not of integer dtype.
      ValueError: if ``x`` is not a vector, or ``weights`` has another shape.
      ConcretizationTypeError: inside ``jit``, without ``length``.

    >>> bincount(np.array([1, 3, 1])).tolist()
    [0, 2, 0, 1]
    """
    if out_sharding is not None:
        return with_out_sharding(bincount, out_sharding, x, weights, minlength, length=length)
    check_arrays("bincount", x)
    aval = typeof(x)
    if aval.dtype != np.bool_ and not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"x argument to bincount must have an integer type; got {aval.dtype.name}")
    if aval.ndim != 1:
        raise ValueError(f"bincount: only 1-dimensional input supported, got shape {aval.shape}")
    dtype = dtypes.default_int()
    if weights is not None:
        check_arrays("bincount", x, weights)
        weighted = typeof(weights)
        if weighted.shape != aval.shape:
            raise ValueError(
                f"bincount: weights must have the shape of x: got {weighted.shape} and {aval.shape}"
            )
        dtype = weighted.dtype
        if dtype == np.bool_:
            raise TypeError("bincount does not accept boolean weights: convert them to integers")
    n = _known_length(x, operator.index(minlength)) if length is None else operator.index(length)
    if n < 0:
        raise ValueError(f"bincount: length must be nonnegative, got {n}")
    counts: Array = _bincount(*trim_none(x, weights), length=n, dtype=dtype)
    return counts


def _known_length(x: Any, least: int) -> int:
    if not typeof(x).size:
        return max(least, 0)
    if isinstance(x, Tracer):
        raise ConcretizationTypeError(
            x,
            "The length of the result of bincount depends on values. Under jit, vmap and other "
            "transformations pass it as a number: bincount(x, length=n).",
        )
    return max(int(np.asarray(x).max()) + 1, least, 1)
