"""Symbolic dimensions in StableHLO: dimension variables computed from the shapes of arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from .._ir.dimensions.solving import ArgumentAxis, Check, Plan, Remainder, Solve, plan_of
from .._ir.symbolic_dims import Dimension
from . import shaped
from .context import constant, hlo, i64, tensor_type

_I64 = np.dtype(np.int64)
_MOST_SHOWN = 30  # jaxlib's limit for the operands of an assertion


@contextmanager
def variables_of(
    avals: Sequence[Any],
    values: Sequence[ir.Value],
    checks: bool = False,
    names: Sequence[str] | None = None,
) -> Iterator[None]:
    """Context manager: sizes are computed from the shapes of a function's arguments.

    With ``checks``, assertions about the sizes are emitted first.
    """
    plan = plan_of([getattr(a, "shape", ()) for a in avals], names)
    with shaped.dimension_variables(emit_plan(plan, values, checks)):
        yield


def emit_plan(plan: Plan, arguments: Sequence[ir.Value], checks: bool) -> dict[str, ir.Value]:
    """The values of the dimension variables; with ``checks``, also emit the assertions."""
    variables: dict[str, ir.Value] = {}

    @cache
    def value(x: Any) -> ir.Value:
        if type(x) is ArgumentAxis:
            size = hlo.get_dimension_size(arguments[x.argument], i64(x.axis))
            return hlo.convert(tensor_type((), _I64), size)
        if type(x) is Remainder:
            return hlo.remainder(_minus(value(x.source), x.rest, value), value(x.factor))
        return shaped.size_value(x) if isinstance(x, Dimension) else constant(np.int64(x))

    for step in plan.steps:
        with shaped.dimension_variables(variables):
            if isinstance(step, Solve):
                over = _minus(value(step.source), step.rest, value)
                whole = type(step.factor) is int and step.factor == 1
                variables[step.variable] = over if whole else hlo.divide(over, value(step.factor))
            elif checks:
                _emit_check(step, value)
    return variables


def _minus(x: ir.Value, y: Any, value: Any) -> ir.Value:
    return x if type(y) is int and y == 0 else hlo.subtract(x, value(y))


def _emit_check(step: Check, value: Any) -> None:
    direction = "GE" if step.symbol == ">=" else "EQ"
    holds = hlo.compare(
        value(step.left), value(step.right), hlo.ComparisonDirectionAttr.get(direction)
    )
    shown = [value(x) for x in step.shown]
    text = step.text
    if len(shown) > _MOST_SHOWN:
        shown, text = [], text.split(" Using the following")[0].format(*["?"] * len(shown))
    hlo.CustomCallOp(
        [],
        [holds, *shown],
        call_target_name="shape_assertion",
        has_side_effect=True,
        api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 2),
    ).operation.attributes["error_message"] = ir.StringAttr.get(text)
