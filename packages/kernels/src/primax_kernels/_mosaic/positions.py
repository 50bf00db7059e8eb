"""Accesses at arrays of positions, as loops over the positions that there are.

The hardware has no gathers of rows. A step of the loop reads or writes the elements at one
position, for all entries of the arrays that equal it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primax_core import dtypes, lax
from primax_core.extend import Jaxpr, stage
from primax_core.extend.references import (
    INTEGER,
    INTEGER_ARRAY,
    StaticSlice,
    addupdate_p,
    get_p,
    selected_shape,
    swap_p,
)

from .._access import former_get_p, masked_get_p, masked_swap_p
from .registry import Context

INT32 = np.dtype(np.int32)


def has_positions(index: Any, operands: Sequence[Any]) -> bool:
    """Return True if an index has an array of positions."""
    return index is not None and INTEGER_ARRAY in index and any(x.shape for x in operands)


def lowered(ctx: Context, values: Sequence[Any], index: Any) -> list[Any]:
    """The results of the access of the context's equation.

    Args:
      values: its operands: the reference, values and masks, and the operands of the index.
    """
    fun = _FORMS[ctx.eqn.primitive.name]
    jaxpr: Jaxpr = stage(lambda *args: fun(args, index), ctx.in_avals)
    return ctx.lower(jaxpr, values)


class _Access(NamedTuple):
    """The steps of an access.

    Attributes:
      ref: the reference.
      sizes: sizes of the axes with positions.
      arrays: the positions along each of them, of the shape of all index arrays.
      index: the index of one step, with scalars for the arrays.
      operands: its operands, ``None`` for these scalars.
      shape: shape of the selected part.
      base: its axes that are those of the index arrays.
    """

    ref: Any
    sizes: tuple[int, ...]
    arrays: list[Any]
    index: Any
    operands: list[Any]
    shape: tuple[int, ...]
    base: tuple[int, ...]

    @property
    def steps(self) -> int:
        """The number of steps."""
        return math.prod(self.sizes)

    def at(self, step: Any) -> tuple[list[Any], Any]:
        """The operands of the index of a step, and the mask of the selected elements."""
        numbers: list[Any] = []
        for n in reversed(self.sizes):
            numbers.insert(0, lax.rem(step, np.int32(n)) if len(self.sizes) > 1 else step)
            step = lax.div(step, np.int32(n)) if len(self.sizes) > 1 else step
        equal = None
        for positions, number in zip(self.arrays, numbers):
            here = lax.eq(positions, lax.full(positions.shape, 0, INT32) + number)
            equal = here if equal is None else lax.bitwise_and(equal, here)
        remaining = iter(numbers)
        operands = [next(remaining) if x is None else x for x in self.operands]
        return operands, lax.broadcast_in_dim(equal, self.shape, self.base)

    def spread(self, part: Any) -> Any:
        """A part of one step for all entries of the index arrays."""
        others = tuple(a for a in range(len(self.shape)) if a not in self.base)
        return lax.broadcast_in_dim(part, self.shape, others)


def _access(ref: Any, index: Any, operands: Sequence[Any], clamped: bool) -> _Access:
    shape = selected_shape(ref.shape, index, operands)
    base_shape = np.broadcast_shapes(*(x.shape for x in operands))
    strings = [i for i, e in enumerate(index) if isinstance(e, str)]
    neighbours = strings[-1] - strings[0] == len(strings) - 1
    first = strings[0] if neighbours else 0
    remaining, sizes, arrays, single = iter(operands), [], [], []
    for entry, n in zip(index, ref.shape):
        if entry == INTEGER_ARRAY:
            x = lax.convert_element_type(next(remaining), INT32)
            x = lax.select(lax.lt(x, lax.full(x.shape, 0, INT32)), x + np.int32(n), x)
            x = lax.clamp(np.int32(0), x, np.int32(n - 1)) if clamped else x
            lead = len(base_shape) - len(x.shape)
            arrays.append(lax.broadcast_in_dim(x, base_shape, tuple(range(lead, len(base_shape)))))
            sizes.append(n)
            single.append(None)
        elif not isinstance(entry, StaticSlice):
            single.append(next(remaining))
    return _Access(
        ref, tuple(sizes), arrays, tuple(INTEGER if e == INTEGER_ARRAY else e for e in index),
        single, shape, tuple(range(first, first + len(base_shape))),
    )  # fmt: skip


def _read(ref: Any, index: Any, operands: Sequence[Any]) -> Any:
    access = _access(ref, index, operands, clamped=True)

    def step(i: Any, out: Any) -> Any:
        at, here = access.at(i)
        part = get_p.bind(ref, *at, index=access.index)
        return lax.select(here, access.spread(part), out)

    return lax.fori_loop(0, access.steps, step, lax.full(access.shape, 0, ref.dtype))


def _write(ref: Any, value: Any, mask: Any, index: Any, operands: Sequence[Any]) -> None:
    """Write a value; the last of several values at one position is written."""
    access = _access(ref, index, operands, clamped=False)
    order = lax.full(access.shape, 0, INT32)
    for n, axis in zip((access.shape[a] for a in access.base), access.base):
        order = order * np.int32(n) + lax.broadcasted_iota(INT32, access.shape, axis)

    def step(i: Any, _: Any) -> Any:
        at, here = access.at(i)
        if mask is not None:
            here = lax.bitwise_and(here, mask)
        rank = lax.select(here, order, lax.full(order.shape, -1, INT32))
        last = lax.reduce_max(rank, access.base)
        written = lax.ge(last, lax.full(last.shape, 0, INT32))
        chosen = lax.bitwise_and(here, lax.eq(rank, access.spread(last)))
        new = _total(chosen, value, access.base)
        old = get_p.bind(ref, *at, index=access.index)
        swap_p.bind(ref, lax.select(written, new, old), *at, index=access.index)
        return ()

    lax.fori_loop(0, access.steps, step, ())


def _add(ref: Any, value: Any, index: Any, operands: Sequence[Any]) -> None:
    """Add a value; the values of repeated positions are all added."""
    access = _access(ref, index, operands, clamped=False)

    def step(i: Any, _: Any) -> Any:
        at, here = access.at(i)
        total = _total(here, value, access.base)
        addupdate_p.bind(ref, total, *at, index=access.index)
        return ()

    lax.fori_loop(0, access.steps, step, ())


def _total(here: Any, value: Any, axes: Sequence[int]) -> Any:
    """The sum of the chosen elements along axes; of Booleans, whether any is true."""
    if value.dtype == np.bool_:
        return lax.reduce_or(lax.bitwise_and(here, value), axes)
    chosen = lax.select(here, value, lax.full(value.shape, 0, value.dtype))
    if dtypes.issubdtype(value.dtype, np.floating):
        total = lax.reduce_sum(lax.convert_element_type(chosen, np.float32), axes)
    else:
        total = lax.reduce_sum(lax.convert_element_type(chosen, INT32), axes)
    return lax.convert_element_type(total, value.dtype)


# Primitives, by name: from the operands and the index to a list of results


def _get_form(args: Sequence[Any], index: Any) -> list[Any]:
    ref, *operands = args
    return [_read(ref, index, operands)]


def _swap_form(args: Sequence[Any], index: Any) -> list[Any]:
    ref, value, *operands = args
    old = _read(ref, index, operands)
    _write(ref, value, None, index, operands)
    return [old]


def _add_form(args: Sequence[Any], index: Any) -> list[Any]:
    ref, value, *operands = args
    _add(ref, value, index, operands)
    return []


def _masked_get_form(args: Sequence[Any], index: Any) -> list[Any]:
    ref, mask, other, *operands = args
    return [lax.select(mask, _read(ref, index, operands), other)]


def _masked_swap_form(args: Sequence[Any], index: Any) -> list[Any]:
    ref, value, mask, *operands = args
    old = _read(ref, index, operands)
    _write(ref, value, mask, index, operands)
    return [old]


_FORMS: dict[str, Callable[[Sequence[Any], Any], list[Any]]] = {
    get_p.name: _get_form, swap_p.name: _swap_form, addupdate_p.name: _add_form,
    former_get_p.name: _masked_get_form, masked_get_p.name: _masked_get_form,
    masked_swap_p.name: _masked_swap_form,
}  # fmt: skip
