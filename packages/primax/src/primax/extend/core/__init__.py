"""Jaxprs, primitives and traces: the reference's ``jax.extend.core``."""

from __future__ import annotations

from collections.abc import Set
from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any as _Any, Final, TypeAlias

import numpy as _np

from primax_core.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from primax_core.errors import JaxprTypeError as JaxprTypeError
from primax_core.extend import DropVar as DropVar
from primax_core.extend import Effect as Effect
from primax_core.extend import Literal as Literal
from primax_core.extend import Var as Var
from primax_core.extend import dtypes as _dtypes

from ..._adapters import binding as _binding  # noqa: F401 - it completes primitives
from ..._adapters.calls import create_call_primitive as create_call_primitive
from ..._adapters.calls import eval_jaxpr_transpose as eval_jaxpr_transpose
from ..._adapters.calls import register_call_primitive_rules as register_call_primitive_rules
from ..._adapters.primitives import Primitive as Primitive
from ..._adapters.jaxprs import AbstractToken as AbstractToken
from ..._adapters.jaxprs import ClosedJaxpr as ClosedJaxpr
from ..._adapters.jaxprs import DebugInfo as DebugInfo
from ..._adapters.jaxprs import Jaxpr as Jaxpr
from ..._adapters.jaxprs import JaxprEqn as JaxprEqn
from ..._adapters.jaxprs import Token as Token
from ..._adapters.jaxprs import check_jaxpr as check_jaxpr
from ..._adapters.jaxprs import concrete_or_error as concrete_or_error
from ..._adapters.jaxprs import gensym as gensym
from ..._adapters.jaxprs import jaxpr_as_fun as jaxpr_as_fun
from ..._adapters.jaxprs import jaxprs_in_params as jaxprs_in_params
from ..._adapters.jaxprs import mapped_aval as mapped_aval
from ..._adapters.jaxprs import new_jaxpr_eqn as new_jaxpr_eqn
from ..._adapters.jaxprs import no_effects as no_effects
from ..._adapters.jaxprs import primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype
from ..._adapters.jaxprs import subjaxprs as subjaxprs
from ..._adapters.jaxprs import unmapped_aval as unmapped_aval
from ..._adapters.jaxprs import valid_jaxtype as valid_jaxtype
from ..._adapters.running import TraceTag as TraceTag
from ..._adapters.running import find_top_trace as find_top_trace
from ..._adapters.running import get_opaque_trace_state as get_opaque_trace_state
from ..._adapters.running import nonempty_axis_env_DO_NOT_USE as nonempty_axis_env_DO_NOT_USE
from ..._adapters.running import set_current_trace as set_current_trace
from ..._adapters.running import take_current_trace as take_current_trace
from ..._adapters.running import (
    unsafe_am_i_under_a_jit_DO_NOT_USE as unsafe_am_i_under_a_jit_DO_NOT_USE,
)
from ..._adapters.running import (
    unsafe_am_i_under_a_vmap_DO_NOT_USE as unsafe_am_i_under_a_vmap_DO_NOT_USE,
)
from ..._adapters.running import (
    unsafe_get_axis_names_DO_NOT_USE as unsafe_get_axis_names_DO_NOT_USE,
)

if TYPE_CHECKING:
    from . import primitives as primitives

Effects: TypeAlias = Set[Effect]

array_types: Final[set[type]] = {_np.ndarray, *(d.type for d in _dtypes.all_dtypes)}
"""NumPy classes whose values can be operands."""


def __getattr__(name: str) -> _Any:
    if name == "primitives":
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
