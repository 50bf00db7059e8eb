"""Programs with symbolic dimensions as StableHLO with dynamic shapes, and back to static ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from .._ir.dimensions.solving import Check, Place, Plan, Remainder, Solve, plan_of
from .._ir.jaxpr import Jaxpr
from .._ir.symbolic_dims import Dimension
from .._runtime.jaxlib_versions import JaxRuntimeError, refine_shapes
from . import shaped
from .compile import _bytecode as bytecode_of
from .context import constant, context, hlo, i64, tensor_type, type_of, unknown_location

_I64 = np.dtype(np.int64)
_MOST_SHOWN = 30  # more operands of an assertion jaxlib does not take


class RefinementError(ValueError):
    """A module with dynamic shapes has no static form for some argument types."""


def lower_polymorphic(
    jaxpr: Jaxpr, name: str, platforms: Sequence[str], *, arg_names: Sequence[str] | None = None
) -> tuple[bytes, Plan]:
    """A module (in MLIR's bytecode) for arguments of all shapes that the program's symbolic shapes
    stand for, and how its dimension variables follow from them.

    ``main`` takes the arguments of the program, after the index of the platform (an i32) where
    there are several, and asserts what must hold of their shapes.

    Args:
      arg_names: what messages call the arguments.

    Raises:
      UnsolvableError: if a dimension variable does not follow from the arguments' shapes.
      UnknownDimensionError: if the program uses a variable that no argument's shape has.
    """
    from .platforms import lower_for

    portable = lower_for(jaxpr, name, platforms, keep_unused=True, arg_names=arg_names)
    return bytecode_of(portable.module), plan_of([a.shape for a in jaxpr.in_avals], arg_names)


# Dimension variables


@contextmanager
def variables_of(
    avals: Sequence[Any],
    values: Sequence[ir.Value],
    checks: bool = False,
    names: Sequence[str] | None = None,
) -> Iterator[None]:
    """Within this context sizes are computed from the shapes of arguments of the function; with
    ``checks``, what must hold of them is asserted first."""
    plan = plan_of([getattr(a, "shape", ()) for a in avals], names)
    with shaped.dimension_variables(emit_plan(plan, values, checks)):
        yield


def emit_plan(plan: Plan, arguments: Sequence[ir.Value], checks: bool) -> dict[str, ir.Value]:
    """The values of the dimension variables; with ``checks``, assertions of what must hold."""
    found: dict[str, ir.Value] = {}

    @cache
    def value(x: Any) -> ir.Value:
        if type(x) is Place:
            size = hlo.get_dimension_size(arguments[x.argument], i64(x.axis))
            return hlo.convert(tensor_type((), _I64), size)
        if type(x) is Remainder:
            return hlo.remainder(_minus(value(x.place), x.rest, value), value(x.factor))
        return shaped.size_value(x) if isinstance(x, Dimension) else constant(np.int64(x))

    for step in plan.steps:
        with shaped.dimension_variables(found):
            if isinstance(step, Solve):
                over = _minus(value(step.place), step.rest, value)
                whole = type(step.factor) is int and step.factor == 1
                found[step.variable] = over if whole else hlo.divide(over, value(step.factor))
            elif checks:
                _emit_check(step, value)
    return found


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


# Static shapes


def refine(module: bytes, in_avals: Sequence[Any], platform: int | None = None) -> bytes:
    """A module of :func:`lower_polymorphic` for arguments of static shapes.

    Args:
      module: the module in MLIR's bytecode.
      in_avals: types of the arguments.
      platform: which of several platforms; ``main`` then has no argument for it any more.

    Raises:
      RefinementError: if the module cannot be read, does not take such arguments, or has no static
        form for them.
    """
    with context, unknown_location:
        try:
            parsed = ir.Module.parse(module)
        except Exception as e:
            raise RefinementError(f"the module cannot be read: {_first_line(e)}") from None
        make_static(parsed, in_avals, platform)
        static = bytecode_of(parsed)
    try:
        return refine_shapes(static)
    except (ValueError, JaxRuntimeError) as e:
        raise RefinementError(
            "the shapes of the program cannot be worked out for arguments of types "
            f"{', '.join(a.str_short() for a in in_avals)}: {_first_line(e)}"
        ) from None


def make_static(module: ir.Module, in_avals: Sequence[Any], platform: int | None = None) -> None:
    """Give ``main`` of a module arguments of static shapes, and the index of its platform.

    Raises:
      RefinementError: if it does not take such arguments.
    """
    functions: list[Any] = list(module.body)
    names = ((op.attributes["sym_name"].value, op) for op in functions)
    main: Any = next((op for name, op in names if name == "main"), None)
    if main is None:
        raise RefinementError("the module has no function main")
    block = main.regions[0].blocks[0]
    if platform is not None:
        with ir.InsertionPoint.at_block_begin(block):
            index = constant(np.int32(platform))
        block.arguments[0].replace_all_uses_with(index)
        block.erase_argument(0)
        attributes = list(main.attributes["arg_attrs"]) if "arg_attrs" in main.attributes else []
        if attributes:
            main.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes[1:])
    found = list(block.arguments)
    if len(found) != len(in_avals):
        raise RefinementError(f"the module takes {len(found)} arguments, not {len(in_avals)}")
    types = [type_of(a) for a in in_avals]
    for i, (argument, kind) in enumerate(zip(found, types)):
        if not _fits(ir.RankedTensorType(argument.type), kind):
            raise RefinementError(
                f"argument {i} of the module has type {argument.type}, which {kind} does not fit"
            )
        if argument.type != kind:
            _set_type(block, argument, kind)
    results = ir.FunctionType(main.attributes["function_type"].value).results
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, results))


def _set_type(block: ir.Block, argument: Any, kind: ir.Type) -> None:
    """Give an argument a static shape; what reads it still sees the dynamic type, which operations
    with operands and results of one type ask for until refinement goes through them."""
    dynamic = argument.type
    argument.set_type(kind)
    with ir.InsertionPoint.at_block_begin(block):
        converted = hlo.convert(dynamic, argument)
    argument.replace_all_uses_with(converted)
    converted.owner.operation.operands[0] = argument


def _first_line(e: BaseException) -> str:
    return (str(e).strip() or type(e).__name__).splitlines()[0]


def _fits(symbolic: Any, static: Any) -> bool:
    return (
        symbolic.element_type == static.element_type
        and symbolic.rank == static.rank
        and static.has_static_shape
        and all(
            symbolic.is_dynamic_dim(i) or symbolic.get_dim_size(i) == static.get_dim_size(i)
            for i in range(symbolic.rank)
        )
    )
