"""Calls of native functions in StableHLO, with XLA's typed interface
(``stablehlo.custom_call``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from .._ir.symbolic_dims import is_static
from .context import hlo, i32, i64, physical, tensor_type, type_of
from .shaped import size_values

Aliases = Mapping[int, int]


def attribute(value: Any) -> ir.Attribute:
    """The attribute that a handler reads as this value.

    Booleans, strings and MLIR attributes are used unchanged; NumPy integers and floats keep their
    dtype, and Python numbers have 64 bits.
    """
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(value))
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, int):
        return i64(value)
    if isinstance(value, (float, np.floating, np.integer)):
        element = tensor_type((), np.asarray(value).dtype).element_type
        if isinstance(value, np.integer):
            return ir.IntegerAttr.get(element, int(value))
        return ir.FloatAttr.get(element, float(value))
    raise TypeError(f"a native function cannot have attributes of type {type(value).__name__}")


def row_major(rank: int) -> tuple[int, ...]:
    """The layout with the last axis varying fastest."""
    return tuple(range(rank - 1, -1, -1))


def column_major(rank: int) -> tuple[int, ...]:
    """The layout of stacked matrices with the row axis varying fastest."""
    return (rank - 2, rank - 1, *range(rank - 3, -1, -1))


def custom_call(
    target: str,
    operands: Sequence[ir.Value],
    out_avals: Sequence[Any],
    *,
    attributes: Mapping[str, Any] | None = None,
    operand_layouts: Sequence[Sequence[int]] | None = None,
    result_layouts: Sequence[Sequence[int]] | None = None,
    aliases: Aliases | None = None,
    has_side_effect: bool = False,
    tokens: int = 0,
) -> list[ir.Value]:
    """Call a registered native function.

    Args:
      target: the name of its registration.
      out_avals: avals of the results.
      attributes: the named attributes of the handler, see :func:`attribute`.
      operand_layouts, result_layouts: the axes of each, fastest first; row-major by default.
      aliases: results that use the memory of operands: ``{result: operand}``.
      tokens: the number of leading operands that are tokens; equally many leading results are.
    """
    types = [type_of(a) for a in out_avals]
    if operand_layouts is None:
        operand_layouts = [row_major(v.type.rank) for v in operands[tokens:]]
    if result_layouts is None:
        result_layouts = [row_major(t.rank) for t in types]
    if tokens:
        operand_layouts = [*[()] * tokens, *operand_layouts]
        result_layouts = [*[()] * tokens, *result_layouts]
        types = [*[hlo.TokenType.get()] * tokens, *types]
    shape_operands: list[int] = []
    if not all(is_static(a.shape) for a in out_avals):
        # Additional operands specify the shapes of the results; refinement removes them. It does
        # not support aliases, whose types would change one after the other.
        shape_operands = list(range(len(operands), len(operands) + len(out_avals)))
        shapes = [size_values(physical(a).shape) for a in out_avals]
        operands, aliases = [*operands, *shapes], None
        operand_layouts = [*operand_layouts, *[row_major(1)] * len(out_avals)]
    several = len(types) > 1
    # The op has several results, not a tuple; the aliases call its results a tuple.
    pairs = [
        hlo.OutputOperandAlias.get(
            output_tuple_indices=[out] if several else [],
            operand_index=operand,
            operand_tuple_indices=[],
        )
        for out, operand in (aliases or {}).items()
    ]
    op = hlo.CustomCallOp(
        types,
        list(operands),
        call_target_name=ir.StringAttr.get(target),
        has_side_effect=ir.BoolAttr.get(has_side_effect),
        backend_config=ir.DictAttr.get({k: attribute(v) for k, v in (attributes or {}).items()}),
        api_version=i32(4),
        called_computations=ir.ArrayAttr.get([]),
        operand_layouts=_layouts(operand_layouts),
        result_layouts=_layouts(result_layouts),
        output_operand_aliases=ir.ArrayAttr.get(pairs),
    )
    if shape_operands:
        indices = ir.DenseElementsAttr.get(np.array(shape_operands, np.int64))
        op.operation.attributes["indices_of_shape_operands"] = indices
    return list(op.results)


def _layouts(orders: Sequence[Sequence[int]]) -> ir.Attribute:
    index = ir.IndexType.get()
    return ir.ArrayAttr.get(
        [ir.DenseIntElementsAttr.get(np.asarray(o, np.int64), type=index) for o in orders]
    )
