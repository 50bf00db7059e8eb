"""Lowering to StableHLO, in the reference's convention.

``ir``, ``hlo`` and the classes ``Value`` and ``Token`` are jaxlib's, imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from primax_core.extend import ir as _ir

from .._adapters.effect_sets import lowerable_effects as lowerable_effects
from .._adapters.ir_values import (
    ConstantHandler as ConstantHandler,
    aval_to_ir_type as aval_to_ir_type,
    aval_to_ir_types as aval_to_ir_types,
    dense_int_array as dense_int_array,
    dense_int_elements as dense_int_elements,
    dtype_to_ir_type as dtype_to_ir_type,
    flatten_ir_types as flatten_ir_types,
    flatten_ir_values as flatten_ir_values,
    i32_attr as i32_attr,
    i64_attr as i64_attr,
    ir_attribute as ir_attribute,
    ir_constant as ir_constant,
    ir_constants as ir_constants,
    ir_tree_registry as ir_tree_registry,
    ir_type_handlers as ir_type_handlers,
    register_constant_handler as register_constant_handler,
    shape_tensor as shape_tensor,
    token_type as token_type,
    unflatten_ir_values_like_types as unflatten_ir_values_like_types,
)
from .._adapters.lowering import (
    LoweringParameters as LoweringParameters,
    LoweringRuleContext as LoweringRuleContext,
    ModuleContext as ModuleContext,
    ShapePolyLoweringState as ShapePolyLoweringState,
    ShardingContext as ShardingContext,
    TokenSet as TokenSet,
    core_call_lowering as core_call_lowering,
    emit_python_callback as emit_python_callback,
    lower_fun as lower_fun,
    register_lowering as register_lowering,
)
from .._adapters.modules import (
    LoweringResult as LoweringResult,
    jaxpr_subcomp as jaxpr_subcomp,
    lower_jaxpr_to_fun as lower_jaxpr_to_fun,
    lower_jaxpr_to_module as lower_jaxpr_to_module,
    make_ir_context as make_ir_context,
    merge_mlir_modules as merge_mlir_modules,
    module_to_bytecode as module_to_bytecode,
    module_to_string as module_to_string,
)
from .._adapters.native_calls import custom_call as custom_call

if TYPE_CHECKING:
    from primax_core.extend import hlo as hlo, ir as ir

    Value = Any
    Token = Any

DEVICE_TO_DEVICE_TYPE: Final = 1
SEND_TO_HOST_TYPE: Final = 2
RECV_FROM_HOST_TYPE: Final = 3
"""XLA's numbers of channel kinds."""

LoweringRule: TypeAlias = Callable[..., Sequence[Any]]
AxisContext: TypeAlias = ShardingContext
MeshAxisName: TypeAlias = Any

_OF_JAXLIB: Final = {"Value": "Value", "Token": "Value"}


def __getattr__(name: str) -> Any:
    if name in _OF_JAXLIB:
        return getattr(_ir, _OF_JAXLIB[name])
    if name == "ir":
        from importlib import import_module

        return import_module("primax.extend.mlir.ir")
    if name == "hlo":
        from primax_core.extend import hlo

        return hlo
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_OF_JAXLIB, "hlo", "ir"} - {"TYPE_CHECKING"})
