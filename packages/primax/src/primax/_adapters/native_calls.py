"""Custom calls of native functions, for lowering rules in the reference's convention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from primax_core.extend import hlo, ir

_TYPED: Final = 4  # the version of XLA's interface that takes a dictionary of attributes


def custom_call(
    call_target_name: str,
    *,
    result_types: Sequence[Any],
    operands: Sequence[Any],
    backend_config: str | bytes | Mapping[str, Any] = "",
    has_side_effect: bool = False,
    result_shapes: Sequence[Any] | None = None,
    called_computations: Sequence[str] = (),
    api_version: int = 2,
    operand_output_aliases: Mapping[int, int] | None = None,
    operand_layouts: Sequence[Sequence[int]] | None = None,
    result_layouts: Sequence[Sequence[int]] | None = None,
    extra_attributes: Mapping[str, Any] | None = None,
) -> Any:
    """Emit a custom call of a native function.

    Args:
      call_target_name: the name under which the function is registered.
      result_types: the MLIR types of the results.
      operands: MLIR values.
      backend_config: a text for the function, or, for the version 4 of the interface, a dictionary
        of attributes.
      has_side_effect: True keeps a call whose results are unused.
      result_shapes: for results of dynamic shape, one vector of sizes for each result.
      called_computations: names of functions of the module that the function calls.
      api_version: the version of XLA's interface: 4 is the typed one, earlier ones are deprecated.
      operand_output_aliases: for operands that share a buffer with a result, its number.
      operand_layouts, result_layouts: for each value its axes from the minor to the major one.
      extra_attributes: more attributes of the operation.

    Returns:
      The operation ``stablehlo.custom_call``; its attribute ``results`` has the values.

    Raises:
      TypeError: if ``backend_config`` is a dictionary in another version, or a text in version 4.
      ValueError: if only one of ``operand_layouts`` and ``result_layouts`` is specified, or their
        numbers or that of ``result_shapes`` are not those of the values.

    ``ffi.ffi_call`` is the interface for calls outside of lowering rules.
    """
    values = list(operands)
    i32 = ir.IntegerType.get_signless(32)
    attributes: dict[str, Any] = {
        "call_target_name": ir.StringAttr.get(call_target_name),
        "has_side_effect": ir.BoolAttr.get(has_side_effect),
        "backend_config": _config(call_target_name, backend_config, api_version),
        "api_version": ir.IntegerAttr.get(i32, api_version),
        "called_computations": ir.ArrayAttr.get(
            [ir.FlatSymbolRefAttr.get(name) for name in called_computations]
        ),
    }
    if operand_output_aliases:
        attributes["output_operand_aliases"] = ir.ArrayAttr.get(
            [
                hlo.OutputOperandAlias.get([] if len(result_types) == 1 else [result], operand, [])
                for operand, result in operand_output_aliases.items()
            ]
        )
    if (operand_layouts is None) != (result_layouts is None):
        raise ValueError(
            f"the custom call of {call_target_name!r} has layouts of "
            f"{'operands' if result_layouts is None else 'results'} only: specify both"
        )
    if result_shapes is not None:
        _check_count(call_target_name, "result_shapes", result_shapes, result_types)
        positions = np.arange(len(values), len(values) + len(result_shapes), dtype=np.int64)
        values += result_shapes
        attributes["indices_of_shape_operands"] = ir.DenseElementsAttr.get(positions)
    if operand_layouts is not None and result_layouts is not None:
        layouts = [*operand_layouts, *[(0,)] * (len(values) - len(operands))]
        _check_count(call_target_name, "operand_layouts", layouts, values)
        _check_count(call_target_name, "result_layouts", result_layouts, result_types)
        attributes["operand_layouts"] = _layouts(layouts)
        attributes["result_layouts"] = _layouts(result_layouts)
    op = hlo.CustomCallOp(list(result_types), values, **attributes)
    for name, attribute in (extra_attributes or {}).items():
        op.operation.attributes[name] = attribute
    return op


def _config(target: str, config: Any, version: int) -> ir.Attribute:
    if isinstance(config, Mapping) is not (version == _TYPED) and config != "":
        takes = "a dictionary of attributes" if version == _TYPED else "a text"
        raise TypeError(
            f"the custom call of {target!r} with api_version={version} takes {takes} as "
            f"backend_config, got {type(config).__name__}: the version {_TYPED} takes a "
            "dictionary, earlier ones take a text"
        )
    if version == _TYPED:
        return ir.DictAttr.get(dict(config or {}))
    return ir.StringAttr.get(config)


def _check_count(target: str, name: str, entries: Sequence[Any], values: Sequence[Any]) -> None:
    if len(entries) != len(values):
        raise ValueError(
            f"the custom call of {target!r} got {len(entries)} {name} for {len(values)} values"
        )


def _layouts(layouts: Sequence[Sequence[int]]) -> ir.Attribute:
    index = ir.IndexType.get()
    return ir.ArrayAttr.get(
        [ir.DenseIntElementsAttr.get(np.asarray(axes, np.int64), type=index) for axes in layouts]
    )
