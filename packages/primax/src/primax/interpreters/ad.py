"""Derivatives and transposes of primitives, in the reference's convention."""

from .._adapters.derivatives import (
    add_jaxvals as add_jaxvals,
    add_jaxvals_p as add_jaxvals_p,
    backward_pass as backward_pass,
    defbilinear as defbilinear,
    defjvp as defjvp,
    defjvp2 as defjvp2,
    deflinear as deflinear,
    deflinear2 as deflinear2,
    get_primitive_transpose as get_primitive_transpose,
    jvp as jvp,
    jvp_jaxpr as jvp_jaxpr,
    linearize as linearize,
)
from .._adapters.tables import (
    primitive_jvps as primitive_jvps,
    primitive_transposes as primitive_transposes,
)
from .._adapters.tracers import JVPTrace as JVPTrace, JVPTracer as JVPTracer
from .._adapters.zeros import (
    UndefinedPrimal as UndefinedPrimal,
    Zero as Zero,
    add_tangents as add_tangents,
    instantiate_zeros as instantiate_zeros,
    is_undefined_primal as is_undefined_primal,
    zeros_like_aval as zeros_like_aval,
)
