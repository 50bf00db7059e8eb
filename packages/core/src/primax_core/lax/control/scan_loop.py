"""Lowering of scans: a counted loop, or unrolled steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._ir.jaxpr import Jaxpr
from ..._ir.symbolic_dims import max_dim
from ..._lower.lazy import hlo, lowering, mlir, shaped
from .while_loop import emit_while, is_partial, parts

_I32 = np.dtype(np.int32)


def emit_loop(
    ctx: Any, jaxpr: Jaxpr, length: int, reverse: bool, unroll: int, consts: Sequence[Any],
    init: Sequence[Any], xs: Sequence[Any], ys: Sequence[Any],
) -> list[Any]:  # fmt: skip
    """Carries and stacked results of a counted loop with ``unroll`` steps per iteration.

    Args:
      ys: arrays to which the results of the steps are written.
    """
    for v in ctx.eqn.invars[len(ctx.eqn.invars) - len(xs) :]:
        if is_partial(v):
            raise NotImplementedError(
                f"scan slices an operand of type {v.aval}, which XLA cannot do in a loop: sum it "
                "before, or pass unroll=True"
            )
    steps = length // unroll
    ys = parts(ys, ctx.eqn.outvars[len(init) :])

    def body(i, carry, ys):
        first = _times(i, unroll)
        for k in range(unroll):
            at = _plus(first, k)
            if reverse:
                at = _minus(length - 1, at)
            carry, ys = _step(ctx, jaxpr, consts, carry, xs, ys, at)
        return carry, ys

    carry, ys = _while(ctx, jaxpr.effects, steps, list(init), ys, body)
    for k in range(length - steps * unroll):
        k += steps * unroll
        at = _i32(length - 1 - k if reverse else k)
        carry, ys = _step(ctx, jaxpr, consts, carry, xs, ys, at)
    return [*carry, *ys]


def emit_symbolic_loop(
    ctx: Any, jaxpr: Jaxpr, length: Any, reverse: bool, consts: Sequence[Any],
    init: Sequence[Any], xs: Sequence[Any], y_avals: Sequence[Any],
) -> list[Any]:  # fmt: skip
    """Carries and stacked results of a counted loop of symbolic length.

    If the length may be 0, the arrays are padded to at least one row: a slice of one row must be
    valid, even if it is never executed.
    """
    rows = max_dim(length, 1)
    ys = [shaped.zeros_of(a.update(shape=(rows, *a.shape[1:]))) for a in y_avals]
    if rows is not length:
        avals = [mlir.physical(v.aval) for v in jaxpr.invars[len(consts) + len(init) :]]
        xs = [_with_rows(x, a, rows, rows - length) for x, a in zip(xs, avals)]
    outs = emit_loop(ctx, jaxpr, length, reverse, 1, consts, init, xs, ys)
    if rows is length:
        return outs
    n = len(init)
    shapes = [mlir.physical(a).shape for a in y_avals]
    return [*outs[:n], *(shaped.slice(y, [0] * len(s), s) for y, s in zip(outs[n:], shapes))]


def _with_rows(x: Any, row: Any, rows: Any, more: Any) -> Any:
    """An array padded with rows of zeros."""
    none = [0] * len(row.shape)
    zero = mlir.constant(np.zeros((), row.dtype))
    return shaped.pad(x, zero, (rows, *row.shape), [0, *none], [more, *none], [0, *none])


def _i32(value: Any) -> Any:
    """A size or a number as an i32 value."""
    return shaped.size_value(value, _I32)


def _times(i, n: int):
    return i if n == 1 else hlo.multiply(i, _i32(n))


def _plus(i, n: int):
    return i if n == 0 else hlo.add(i, _i32(n))


def _minus(n: int, i):
    return hlo.subtract(_i32(n), i)


def _while(ctx, effects, steps: int, carry: list, ys: list, body: Callable):
    """A counted ``while`` loop."""
    n = len(carry)

    def test(values):
        return hlo.compare(values[0], _i32(steps), _direction("LT"))

    def step(values):
        i, *state_in = values
        carry_out, ys_out = body(i, state_in[:n], state_in[n:])
        return [hlo.add(i, _i32(1)), *carry_out, *ys_out]

    results = emit_while(ctx, [_i32(0), *carry, *ys], test, step, effects)[1:]
    results = parts(results, ctx.eqn.outvars)
    return results[:n], results[n:]


def _direction(name: str):
    return hlo.ComparisonDirectionAttr.get(name)


def _step(ctx, jaxpr: Jaxpr, consts, carry, xs, ys, at):
    n = len(carry)
    rows = _shapes(jaxpr.invars[len(consts) + n :])
    slices = [_slice(x, row, at) for x, row in zip(xs, rows)]
    consts = parts(consts, jaxpr.invars[: len(consts)])
    outs = lowering.lower_body(ctx, jaxpr, [*consts, *carry, *slices])
    rows = _shapes(jaxpr.outvars[n:])
    whole = ctx.eqn.outvars[n:]
    values = parts([_row(v, row) for v, row in zip(outs[n:], rows)], whole)
    ys = [_store(y, v, row, at) for y, v, row in zip(ys, values, rows)]
    return outs[:n], parts(ys, whole)


def _shapes(variables: Sequence[Any]) -> list[tuple[int, ...]]:
    """The physical shapes of values."""
    return [mlir.physical(v.aval).shape for v in variables]


def _slice(x, row: Sequence[int], at):
    part = shaped.dynamic_slice(x, [at, *[_i32(0)] * len(row)], (1, *row))
    return shaped.reshape(part, row)


def _row(value, row: Sequence[int]):
    return shaped.reshape(value, (1, *row))


def _store(y, value, row: Sequence[int], at):
    return hlo.dynamic_update_slice(y, value, [at, *[_i32(0)] * len(row)])


def emit_steps(
    ctx: Any, jaxpr: Jaxpr, length: int, reverse: bool, consts: Sequence[Any],
    carry: Sequence[Any], xs: Sequence[Any], n_ys: int,
) -> list[Any]:  # fmt: skip
    """Carries and results of unrolled steps."""
    rows: list[list] = [[] for _ in range(n_ys)]
    n = len(carry)
    first, whole = len(consts) + n, ctx.eqn.outvars[n:]
    x_shapes, y_shapes = _shapes(jaxpr.invars[first:]), _shapes(jaxpr.outvars[n:])
    for k in reversed(range(length)) if reverse else range(length):
        slices = []
        for x, shape in zip(xs, x_shapes):
            slices.append(shaped.slice(x, (k, *[0] * len(shape)), (k + 1, *shape)))
        slices = parts(slices, ctx.eqn.invars[len(ctx.eqn.invars) - len(xs) :])
        slices = parts(list(map(shaped.reshape, slices, x_shapes)), jaxpr.invars[first:])
        outs = lowering.lower_body(ctx, jaxpr, [*consts, *carry, *slices])
        carry = outs[:n]
        for row, v in zip(rows, parts(list(map(_row, outs[n:], y_shapes)), whole)):
            row.append(v)
    ys = []
    for row in rows:
        if reverse:
            row.reverse()
        ys.append(hlo.concatenate(row, mlir.i64(0)) if len(row) > 1 else row[0])
    return [*carry, *ys]
