"""Symbolic zeros and addition of tangents, under the reference's private name."""

from primax._adapters.derivatives import add_jaxvals as add_jaxvals, add_jaxvals_p as add_jaxvals_p
from primax._adapters.zeros import (
    Zero as Zero,
    add_tangents as add_tangents,
    zeros_like_aval as zeros_like_aval,
)
from primax_core.custom_derivatives import SymbolicZero as SymbolicZero
from primax_core.extend import add_any_p as add_any_p
from primax_core.lax import stop_gradient_p as stop_gradient_p

zero_from_primal = p2tz = Zero.like
