"""Generic ufunc methods, computed step by step, for arbitrary functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, Tracer, dtypes
from primax_core.extend.elementwise import argument_type as typeof

from ._functions import compiled
from ._promotion import repeated

Function = Callable[..., Any]


def _front(x: Any, axis: int) -> Any:
    rank = typeof(x).ndim
    return lax.transpose(x, (axis, *[i for i in range(rank) if i != axis]))


def _back(x: Any, axis: int) -> Any:
    rank = typeof(x).ndim
    return lax.transpose(x, (*range(1, axis + 1), 0, *range(axis + 1, rank)))


def _strong(x: Any, dtype: Any) -> Any:
    return lax.convert_element_type(x, dtype)


def _stepper(fun: Function, x: Any, dtype: Any) -> tuple[Any, Function]:
    """The result dtype of a binary function, and the function with results cast to it."""
    if dtype is None:
        one = lax.full((), 1, typeof(x).dtype)
        dtype = typeof(fun(one, one)).dtype
        dtype = typeof(fun(lax.full((), 1, dtype), one)).dtype
    return dtype, lambda a, b: _strong(fun(a, b), dtype)


@compiled("fun", "axis", "dtype", "keepdims")
def _reduced(x, initial=None, where=None, *, fun, axis, dtype, keepdims):
    rank = typeof(x).ndim
    if axis is None:
        shape, where = typeof(x).shape, where
        if where is not None:
            where = lax.reshape(repeated(where, shape), (typeof(x).size,))
        x = lax.reshape(x, (typeof(x).size,))
    elif where is not None:
        where = _front(repeated(where, typeof(x).shape), axis)
    rows = _front(x, 0 if axis is None else axis)
    if dtype is not None:
        rows = _strong(rows, dtype)
    dtype, step = _stepper(fun._call, rows, dtype)
    n, *shape = typeof(rows).shape
    start = fun.identity if initial is None and (where is not None or not n) else initial
    if start is None:
        if not n:
            raise ValueError(
                f"zero-size array to reduction operation {fun.__name__} which has no identity"
            )
        first, rows = lax.index_in_dim(rows, 0, 0, False), lax.slice_in_dim(rows, 1, n)
        carry = _strong(first, dtype)
    else:
        carry = repeated(_strong(start, dtype), tuple(shape))

    def body(carry: Any, row_and_mask: Any) -> Any:
        row, mask = row_and_mask
        new = step(carry, row)
        return (new if mask is None else lax.select(mask, new, carry)), None

    out = lax.scan(body, carry, (rows, where))[0]
    if not keepdims:
        return out
    return lax.reshape(out, (1,) * rank) if axis is None else lax.expand_dims(out, (axis,))


def reduced(
    fun: Any, x: Array, axis: int | None, dtype: Any, keepdims: bool, initial: Any, where: Any
) -> Array:
    """Sequential reduction of the elements along an axis, or of all."""
    options = () if initial is where is None else (initial, where)
    return _reduced(x, *options, fun=fun, axis=axis, dtype=dtype, keepdims=keepdims)


@compiled("fun", "axis", "dtype")
def _accumulated(x, *, fun, axis, dtype):
    rows = _front(x, axis)
    if dtype is not None:
        rows = _strong(rows, dtype)
    dtype, step = _stepper(fun._call, rows, dtype)
    n = typeof(rows).shape[0]
    if not n:
        return _strong(x, dtype)
    first = _strong(lax.slice_in_dim(rows, 0, 1), dtype)

    def body(carry: Any, row: Any) -> Any:
        new = step(carry, row)
        return new, new

    start = lax.index_in_dim(first, 0, 0, False)
    rest = lax.scan(body, start, lax.slice_in_dim(rows, 1, n))[1]
    return _back(lax.concatenate([first, rest], 0), axis)


def accumulated(fun: Any, x: Array, axis: int, dtype: Any) -> Array:
    """Reductions of the elements up to each position."""
    return _accumulated(x, fun=fun, axis=axis, dtype=dtype)


@compiled("fun")
def _updated(x, places, b, *, fun):
    """``b`` is ``None`` for unary functions."""
    flat = lax.reshape(x, (typeof(x).size,))
    places_1d = lax.reshape(places, (typeof(places).size,))
    if b is None:
        dtype = typeof(fun._call(lax.full((), 1, typeof(x).dtype))).dtype
        inputs = places_1d
    else:
        dtype, _ = _stepper(fun._call, x, None)
        dtype = typeof(fun._call(lax.full((), 1, dtype), lax.full_like(b, 1))).dtype
        values = repeated(b, typeof(places).shape)
        inputs = (places_1d, lax.reshape(values, (typeof(values).size,)))
    if not typeof(x).size:
        return _strong(x, dtype)

    def body(flat: Any, inputs: Any) -> Any:
        place, operands = (inputs, ()) if b is None else (inputs[0], inputs[1:])
        old = lax.dynamic_index_in_dim(flat, place, 0, False)
        new = _strong(fun._call(old, *operands), dtype)
        return flat.at[place].set(new, mode="drop"), None

    out = lax.scan(body, _strong(flat, dtype), inputs)[0]
    return lax.reshape(out, typeof(x).shape)


@compiled("fun")
def outer_of(x, y, *, fun):
    """A function applied to every pair of elements of two arrays."""
    rank, more = typeof(x).ndim, typeof(y).ndim
    x = lax.expand_dims(x, tuple(range(rank, rank + more)))
    return fun._call(x, lax.expand_dims(y, tuple(range(rank))))


def updated(fun: Any, x: Array, indices: Any, b: Any) -> Array:
    """A copy updated by a function at indices, sequentially."""
    numbers = lax.reshape(lax.iota(dtypes.i32, x.size), x.shape)
    places = numbers.at[indices].get(mode="fill", fill_value=x.size)
    return _updated(x, places, b, fun=fun)


def check_starts(name: str, starts: Any, size: int) -> None:
    """Check that segment starts are in bounds, if they are concrete."""
    if isinstance(starts, Tracer):
        return
    for i in np.asarray(starts).tolist():
        if not 0 <= i < size:
            raise IndexError(f"{name}: index {i} out of bounds for axis of size {size}")


@compiled("fun", "axis", "dtype")
def _reduced_at(x, starts, *, fun, axis, dtype):
    rows = _front(x, axis)
    if dtype is not None:
        rows = _strong(rows, dtype)
    dtype, step = _stepper(fun._call, rows, dtype)
    n, k = typeof(rows).shape[0], typeof(starts).shape[0]
    starts = lax.clamp(np.int32(0), _strong(starts, dtypes.i32), np.int32(max(n - 1, 0)))
    following = lax.concatenate(
        [lax.slice_in_dim(starts, min(k, 1), k), lax.full((min(k, 1),), n, dtypes.i32)], 0
    )
    ends: Any = lax.select(following > starts, following, starts + 1)
    states = _strong(rows.at[starts].get(mode="clip"), dtype)
    spread = (k, *[1] * (typeof(rows).ndim - 1))

    def body(states: Any, index_and_row: Any) -> Any:
        i, row = index_and_row
        active: Any = lax.bitwise_and(i > starts, i < ends)
        mask = repeated(lax.reshape(active, spread), typeof(states).shape)
        new = step(states, repeated(row, typeof(states).shape))
        return lax.select(mask, new, states), None

    out = lax.scan(body, states, (lax.iota(dtypes.i32, n), rows))[0]
    return _back(out, axis)


def reduced_at(fun: Any, x: Array, starts: Array, axis: int, dtype: Any) -> Array:
    """Reductions of the segments that begin at given indices."""
    return _reduced_at(x, starts, fun=fun, axis=axis, dtype=dtype)
