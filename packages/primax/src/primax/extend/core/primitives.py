"""All primitives by the reference's names: ``jax.extend.core.primitives``.

A primitive is looked up on first use of its name, because some belong to lazily loaded modules of
the core or to the NumPy wheel.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Final

from ..._adapters.calls import (
    create_call_primitive as create_call_primitive,
    eval_jaxpr_transpose as eval_jaxpr_transpose,
    register_call_primitive_rules as register_call_primitive_rules,
)
from ..._wheels import wheel as _wheel

if TYPE_CHECKING:
    from primax_core.extend import Primitive

_OF_LAX: Final = """
    abs acos acosh add after_all all_gather all_to_all and approx_top_k argmax argmin asin
    asinh atan2 atan atanh axis_index bessel_i0e bessel_i1e bitcast_convert_type
    broadcast_in_dim cbrt ceil clamp clz complex concatenate cond conj conv_general_dilated
    convert_element_type copy cos cosh create_token cumlogsumexp cummax cummin cumprod
    cumsum device_put digamma div dot_general dynamic_slice dynamic_update_slice eq eq_to
    erf_inv erf erfc exp2 exp expm1 fft floor gather ge gt igamma_grad_a igamma igammac imag
    integer_pow iota is_finite le le_to lgamma linear_solve log1p log2 log logistic lt lt_to
    max min mul ne neg nextafter not one_minus_square or pad pmax pmin polygamma polynomial
    population_count pow ppermute psum ragged_all_to_all real reduce_and reduce_max
    reduce_min reduce_or reduce reduce_precision reduce_prod reduce_sum reduce_window_max
    reduce_window_min reduce_window reduce_window_sum reduce_xor regularized_incomplete_beta
    rem reshape rev rng_bit_generator rng_uniform round rsqrt scan scatter_add scatter_max
    scatter_min scatter_mul scatter select_and_gather_add select_and_scatter_add
    select_and_scatter select_n sharding_constraint shift_left shift_right_arithmetic
    shift_right_logical sign sin sinh slice sort sqrt square squeeze stop_gradient sub tan
    tanh threefry2x32 top_k transpose while xor zeta
""".split()

_OF_LINALG: Final = """
    cholesky eig eigh hessenberg householder_product lu qr schur svd triangular_solve
    tridiagonal tridiagonal_solve
""".split()

_OF_MODULES: Final = {
    "custom_jvp_call_p": "primax_core.custom_derivatives",
    "custom_vjp_call_p": "primax_core.custom_derivatives",
    "name_p": "primax_core.ad_checkpoint",
}

# Primitives without a public name: the modules that create them.
_BY_NAME: Final = {
    "add_jaxvals_p": ("add_any", "primax_core.ad"),
    "custom_lin_p": ("custom_lin", "primax_core.custom_derivatives"),
    "get_p": ("get", "primax_core.ref"),
    "jit_p": ("jit", "primax_core"),
    "remat_p": ("remat2", "primax_core.ad_checkpoint"),
    "swap_p": ("swap", "primax_core.ref"),
    "random_bits_p": ("random_bits", "primax_numpy.random"),
    "random_fold_in_p": ("random_fold_in", "primax_numpy.random"),
    "random_gamma_p": ("random_gamma", "primax_numpy.random"),
    "random_seed_p": ("random_seed", "primax_numpy.random"),
    "random_split_p": ("random_split", "primax_numpy.random"),
}

_OF_ADAPTERS: Final = {"call_p": "call_p", "closed_call_p": "call_p", "empty2_p": "empty2_p"}

_PACKAGE: Final = __name__.partition(".")[0]

_OWN: Final = ("create_call_primitive", "eval_jaxpr_transpose", "register_call_primitive_rules")


def _known(name: str, module: str) -> Primitive:
    """Return the primitive ``name`` of the wheel that contains ``module``."""
    from primax_core.extend import known_primitives

    _wheel(module, "numpy" if module.startswith("primax_numpy") else None)
    package = module.partition(".")[0]
    for prim in known_primitives():
        if prim.name == name and prim.home.partition(".")[0] == package:
            return prim
    raise AssertionError(f"{package} has no primitive {name!r}")


def _find(name: str) -> Primitive:
    if name in _BY_NAME:
        return _known(*_BY_NAME[name])
    bare = name.removesuffix("_p")
    if name in _OF_ADAPTERS:
        home, name = f"{_PACKAGE}._adapters.more_primitives", _OF_ADAPTERS[name]
    elif name in _OF_MODULES:
        home = _OF_MODULES[name]
    elif bare != name and bare in _OF_LINALG:
        home = "primax_core.lax.linalg"
    elif bare != name and bare in _OF_LAX:
        home = "primax_core.lax"
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    prim: Primitive = getattr(_import_module(home), name)
    return prim


def __getattr__(name: str) -> Primitive:
    prim = globals()[name] = _find(name)
    return prim


def __dir__() -> list[str]:
    listed = [f"{n}_p" for n in (*_OF_LAX, *_OF_LINALG)]
    return sorted([*listed, *_OF_MODULES, *_BY_NAME, *_OF_ADAPTERS, *_OWN])
