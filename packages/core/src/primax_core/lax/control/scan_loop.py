"""The StableHLO of scans: a counted loop, or all steps written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._ir.jaxpr import Jaxpr
from ..._lower.lazy import hlo, ir, lowering, mlir
from .while_loop import emit_while


def emit_loop(
    ctx: Any, jaxpr: Jaxpr, length: int, reverse: bool, unroll: int, consts: Sequence[Any],
    init: Sequence[Any], xs: Sequence[Any], ys: Sequence[Any],
) -> list[Any]:  # fmt: skip
    """Carries and stacked results of a counted loop, ``unroll`` steps in each turn.

    Args:
      ys: arrays that the results of the steps are written into.
    """
    steps = length // unroll

    def body(i, carry, ys):
        first = _times(i, unroll)
        for k in range(unroll):
            at = _plus(first, k)
            if reverse:
                at = _minus(length - 1, at)
            carry, ys = _step(ctx, jaxpr, consts, carry, xs, ys, at)
        return carry, ys

    carry, ys = _while(ctx, jaxpr.effects, steps, list(init), ys, body)
    for k in range(steps * unroll, length):
        at = _i32(length - 1 - k if reverse else k)
        carry, ys = _step(ctx, jaxpr, consts, carry, xs, ys, at)
    return [*carry, *ys]


def _i32(value: int) -> Any:
    """An i32 constant."""
    return mlir.constant(np.int32(value))


def _times(i, n: int):
    return i if n == 1 else hlo.multiply(i, _i32(n))


def _plus(i, n: int):
    return i if n == 0 else hlo.add(i, _i32(n))


def _minus(n: int, i):
    return hlo.subtract(_i32(n), i)


def _while(ctx, effects, steps: int, carry: list, ys: list, body: Callable):
    """A counted loop."""
    n = len(carry)

    def test(values):
        return hlo.compare(values[0], _i32(steps), _direction("LT"))

    def step(values):
        i, *state_in = values
        carry_out, ys_out = body(i, state_in[:n], state_in[n:])
        return [hlo.add(i, _i32(1)), *carry_out, *ys_out]

    results = emit_while(ctx, [_i32(0), *carry, *ys], test, step, effects)[1:]
    return results[:n], results[n:]


def _direction(name: str):
    return hlo.ComparisonDirectionAttr.get(name)


def _step(ctx, jaxpr: Jaxpr, consts, carry, xs, ys, at):
    n = len(carry)
    slices = [_slice(x, at) for x in xs]
    outs = lowering.lower_body(ctx, jaxpr, [*consts, *carry, *slices])
    return outs[:n], [_store(y, v, at) for y, v in zip(ys, outs[n:])]


def _slice(x, at):
    shape = x.type.shape
    zero = _i32(0)
    part = hlo.dynamic_slice(x, [at, *[zero] * (len(shape) - 1)], mlir.i64s([1, *shape[1:]]))
    return hlo.reshape(ir.RankedTensorType.get(shape[1:], x.type.element_type), part)


def _store(y, value, at):
    shape = y.type.shape
    zero = _i32(0)
    row = hlo.reshape(ir.RankedTensorType.get([1, *shape[1:]], y.type.element_type), value)
    return hlo.dynamic_update_slice(y, row, [at, *[zero] * (len(shape) - 1)])


def emit_steps(
    ctx: Any, jaxpr: Jaxpr, length: int, reverse: bool, consts: Sequence[Any],
    carry: Sequence[Any], xs: Sequence[Any], n_ys: int,
) -> list[Any]:  # fmt: skip
    """All steps written out."""
    rows: list[list] = [[] for _ in range(n_ys)]
    n = len(carry)
    for k in reversed(range(length)) if reverse else range(length):
        slices = []
        for x in xs:
            shape = x.type.shape
            part = hlo.slice(
                x, mlir.i64s([k, *[0] * (len(shape) - 1)]),
                mlir.i64s([k + 1, *shape[1:]]), mlir.i64s([1] * len(shape)),
            )  # fmt: skip
            slices.append(
                hlo.reshape(ir.RankedTensorType.get(shape[1:], x.type.element_type), part)
            )
        outs = lowering.lower_body(ctx, jaxpr, [*consts, *carry, *slices])
        carry = outs[:n]
        for row, v in zip(rows, outs[n:]):
            shape = [1, *v.type.shape]
            row.append(hlo.reshape(ir.RankedTensorType.get(shape, v.type.element_type), v))
    ys = []
    for row in rows:
        if reverse:
            row.reverse()
        ys.append(hlo.concatenate(row, mlir.i64(0)) if len(row) > 1 else row[0])
    return [*carry, *ys]
