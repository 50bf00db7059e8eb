"""Operations and types defined as classes: the reference's ``jax.experimental.hijax``.

An operation is a subclass of :class:`HiPrim`. A type is a subclass of :class:`HiType`; its values
consist of arrays, of which jaxprs are made.
"""

from __future__ import annotations

from primax_core.extend import AbstractRef as AbstractRef, ShapedArray as ShapedArray, Zero as Zero

from .._adapters.accumulators import (
    GradAccum as GradAccum,
    NullAccum as NullAccum,
    RefAccum as RefAccum,
    ValAccum as ValAccum,
)
from .._adapters.high import (
    HiPrim as HiPrim,
    TransformedRef as TransformedRef,
    bdims_at_front as bdims_at_front,
    control_flow_allowed_effects as control_flow_allowed_effects,
    instantiate_zeros as instantiate_zeros,
    jvp_from_lin as jvp_from_lin,
    linearize_from_jvp as linearize_from_jvp,
    unmap_avals as unmap_avals,
    vjp_from_jvp as vjp_from_jvp,
    vjp_from_lin as vjp_from_lin,
    vmap_rule as vmap_rule,
)
from .._adapters.hitypes import (
    HiPspec as HiPspec,
    HiType as HiType,
    MappingSpec as MappingSpec,
    aval_method as aval_method,
    aval_property as aval_property,
    register_hitype as register_hitype,
)
from .._adapters.jaxprs import AbstractValue as AbstractValue
from .._adapters.zeros import is_undefined_primal as is_undefined_primal
