"""Refinement of modules with dynamic shapes to modules with static ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from .._runtime.jaxlib_versions import JaxRuntimeError, refine_shapes
from .context import bytecode, constant, context, hlo, type_of, unknown_location


class RefinementError(ValueError):
    """A module with dynamic shapes cannot be specialized to argument types."""


def refine(module: bytes, in_avals: Sequence[Any], platform: int | None = None) -> bytes:
    """Specialize a module of ``lower_polymorphic`` to arguments of static shapes.

    Args:
      module: the module in MLIR's bytecode.
      in_avals: avals of the arguments.
      platform: index of the platform; ``main`` then no longer has an argument for it.

    Raises:
      RefinementError: if the module cannot be read, does not accept such arguments, or has no
        static form for them.
    """
    with context, unknown_location:
        try:
            parsed = ir.Module.parse(module)
        except Exception as e:
            raise RefinementError(f"the module cannot be read: {_first_line(e)}") from None
        make_static(parsed, in_avals, platform)
        static = bytecode(parsed)
    try:
        return refine_shapes(static)
    except (ValueError, JaxRuntimeError) as e:
        raise RefinementError(
            "the shapes in the module cannot be computed for arguments of types "
            f"{', '.join(a.str_short() for a in in_avals)}: {_first_line(e)}"
        ) from None


def make_static(module: ir.Module, in_avals: Sequence[Any], platform: int | None = None) -> None:
    """Set static shapes of ``main``'s arguments in a module, and the platform index.

    Raises:
      RefinementError: if it does not accept such arguments.
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
    arguments = list(block.arguments)
    if len(arguments) != len(in_avals):
        raise RefinementError(f"the module takes {len(arguments)} arguments, not {len(in_avals)}")
    types = [type_of(a) for a in in_avals]
    for i, (argument, kind) in enumerate(zip(arguments, types)):
        if not _fits(ir.RankedTensorType(argument.type), kind):
            raise RefinementError(
                f"argument {i} of the module has type {argument.type}, which does not accept {kind}"
            )
        if argument.type != kind:
            _set_type(block, argument, kind)
    results = ir.FunctionType(main.attributes["function_type"].value).results
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, results))


def _set_type(block: ir.Block, argument: Any, kind: ir.Type) -> None:
    """Set the static shape of an argument. Its users still see the dynamic type, which operations
    with equal operand and result types require until refinement reaches them."""
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
