"""Functions with custom derivative rules."""

from ._api.closures import closure_convert as closure_convert
from ._api.custom_derivatives import (
    custom_jvp as custom_jvp,
    custom_vjp as custom_vjp,
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
    zero_from_primal as zero_from_primal,
)
from ._api.custom_gradient import custom_gradient as custom_gradient
from ._engine.custom_jvp import (
    SymbolicZero as SymbolicZero,
    custom_jvp_call_p as custom_jvp_call_p,
)
from ._engine.custom_vjp import PerturbedValue, custom_vjp_call_p as custom_vjp_call_p
from ._engine.remat_opt import remat_opt_p as remat_opt_p
from .lax.control.linear_call import linear_call as linear_call

CustomVJPPrimal = PerturbedValue
