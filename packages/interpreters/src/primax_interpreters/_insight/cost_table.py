"""Costs of the core's primitives.

The table is by name, so that modules of primitives that a program does not use are not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2, prod
from typing import Any, Final

import numpy as np

import primax_core as core
from primax_core.extend import Primitive, dtypes, expand, expanded, jaxprs_in, nbytes, total_bytes

from .cost_rules import Cost, Run, cost

Avals = Sequence[Any]
_CORE: Final = core.__name__


def _is_float(aval: Any) -> bool:
    return dtypes.issubdtype(aval.dtype, np.inexact)


def _is_complex(aval: Any) -> bool:
    return dtypes.issubdtype(aval.dtype, np.complexfloating)


def _count(aval: Any) -> int:
    """Elements that count as floats."""
    return prod(aval.shape) if _is_float(aval) else 0


# Elementwise


def _elementwise(real: int, complex: int = 2) -> Callable[..., Cost]:
    def rule(ins: Avals, outs: Avals, **_: Any) -> Cost:
        n = prod(outs[0].shape) if any(map(_is_float, ins)) else 0
        return Cost(n * (complex if any(map(_is_complex, ins)) else real))

    return rule


def _special(ins: Avals, outs: Avals, **_: Any) -> Cost:
    return Cost(0, special=_count(outs[0]))


def _integer_pow(ins: Avals, outs: Avals, *, y: int) -> Cost:
    n = abs(y)
    products = max(n.bit_length() + n.bit_count() - 2, 0) + (y < 0)
    return Cost(products * _count(outs[0]) * (6 if _is_complex(outs[0]) else 1))


def _polynomial(ins: Avals, outs: Avals, **_: Any) -> Cost:
    return Cost(2 * _count(outs[0]) * max(len(ins) - 1, 1), estimated=True)


def _free(ins: Avals, outs: Avals, **_: Any) -> Cost:
    return Cost(0, bytes=0)


def _moves(ins: Avals, outs: Avals, **_: Any) -> Cost:
    return Cost(0)


# Parts of arrays


def _part(ins: Avals, outs: Avals, **_: Any) -> Cost:
    return Cost(0, bytes=2 * total_bytes(outs) + total_bytes(ins[1:]))


def _update(ins: Avals, outs: Avals, **_: Any) -> Cost:
    return Cost(0, bytes=2 * nbytes(ins[1]) + total_bytes(ins[2:]))


def _write(flops: int) -> Callable[..., Cost]:
    def rule(ins: Avals, outs: Avals, **_: Any) -> Cost:
        touched = (3 if flops or outs else 2) * nbytes(ins[1]) + total_bytes(ins[2:])
        return Cost(flops * _count(ins[1]), bytes=touched)

    return rule


def _scatter(flops: int) -> Callable[..., Cost]:
    def rule(ins: Avals, outs: Avals, **_: Any) -> Cost:
        _, indices, updates = ins
        touched = (3 if flops else 2) * nbytes(updates) + nbytes(indices)
        return Cost(flops * _count(updates), bytes=touched)

    return rule


# Reductions


def _reduction(ins: Avals, outs: Avals, **_: Any) -> Cost:
    each = 2 if _is_complex(ins[0]) else 1
    return Cost(each * max(_count(ins[0]) - (prod(outs[0].shape) if _is_float(ins[0]) else 0), 0))


def _arg_reduction(ins: Avals, outs: Avals, **_: Any) -> Cost:
    return Cost(max(_count(ins[0]) - prod(outs[0].shape), 0) if _is_float(ins[0]) else 0)


def _cumulative(ins: Avals, outs: Avals, *, axis: int, **_: Any) -> Cost:
    n = ins[0].shape[axis]
    return Cost(_count(ins[0]) // n * (n - 1) if n else 0)


def _windows(ins: Avals, outs: Avals, *, window_dimensions: Any, **_: Any) -> Cost:
    return Cost(_count(outs[0]) * max(prod(window_dimensions) - 1, 0))


def _sorted(ins: Avals, outs: Avals, *, dimension: int = -1, **_: Any) -> Cost:
    n = ins[0].shape[dimension] if ins[0].shape else 1
    compared = _count(ins[0]) * log2(n) if n > 1 else 0
    return Cost(round(compared), estimated=True)


# Contractions


def _dot(ins: Avals, outs: Avals, *, dimension_numbers: Any, **_: Any) -> Cost:
    (contracted, _), _ = dimension_numbers
    k = prod(ins[0].shape[i] for i in contracted)
    return Cost((8 if _is_complex(outs[0]) else 2) * _count(outs[0]) * k)


def _ragged_dot(ins: Avals, outs: Avals, **params: Any) -> Cost:
    numbers = params["ragged_dot_dimension_numbers"].dot_dimension_numbers
    dense = _dot(ins, outs, dimension_numbers=numbers)
    return dense._replace(estimated=True)


def _convolution(
    ins: Avals, outs: Avals, *, dimension_numbers: Any, lhs_dilation: Any = None, **_: Any
) -> Cost:
    kernel = ins[1].shape
    spec = dimension_numbers.rhs_spec
    per_output = prod(kernel[i] for i in spec[2:]) * kernel[spec[1]]
    holes = prod(lhs_dilation or ())
    flops = (8 if _is_complex(outs[0]) else 2) * _count(outs[0]) * per_output
    return Cost(flops // holes, estimated=holes > 1)


def _fft(ins: Avals, outs: Avals, *, fft_lengths: Any = (), **_: Any) -> Cost:
    n = max(prod(fft_lengths), 1)
    size = max(prod(ins[0].shape), prod(outs[0].shape))
    each = 5 if _is_complex(ins[0]) and _is_complex(outs[0]) else 2.5
    return Cost(round(each * size * log2(n)) if n > 1 else 0, estimated=True)


def _scaled_dot(ins: Avals, outs: Avals, **params: Any) -> Cost:
    return _dot(ins, outs, **params)._replace(estimated=True)


def _symmetric_product(ins: Avals, outs: Avals, **_: Any) -> Cost:
    return Cost(2 * _count(outs[0]) * ins[0].shape[-1], estimated=True)


# Linear algebra: leading terms


def _matrix(formula: Callable[[int, int], float]) -> Callable[..., Cost]:
    def rule(ins: Avals, outs: Avals, **_: Any) -> Cost:
        *batch, m, n = ins[0].shape
        each = 4 if _is_complex(ins[0]) else 1
        return Cost(round(each * prod(batch) * formula(m, n)), estimated=True)

    return rule


def _triangular(ins: Avals, outs: Avals, *, left_side: bool = True, **_: Any) -> Cost:
    n = ins[0].shape[-1]
    return Cost((4 if _is_complex(outs[0]) else 1) * _count(outs[0]) * n)


def _tridiagonal_solve(ins: Avals, outs: Avals, **_: Any) -> Cost:
    return Cost(8 * _count(outs[0]), estimated=True)


# What runs programs


def _scan(ins: Avals, outs: Avals, *, jaxpr: Any, length: int, **_: Any) -> Cost:
    return Cost(0, bytes=0, runs=(Run(jaxpr, length),))


def _while(ins: Avals, outs: Avals, *, cond_jaxpr: Any, body_jaxpr: Any, **_: Any) -> Cost:
    return Cost(0, bytes=0, runs=(Run(cond_jaxpr, None), Run(body_jaxpr, None)))


def _cond(ins: Avals, outs: Avals, *, branches: Any, **_: Any) -> Cost:
    return Cost(0, bytes=0, one_of=tuple(branches), estimated=len(branches) > 1)


def _linear_solve(ins: Avals, outs: Avals, *, jaxprs: Any, **_: Any) -> Cost:
    return Cost(0, bytes=0, runs=(Run(jaxprs[1]),))


def _first_use(ins: Avals, outs: Avals, *, fwd_jaxpr: Any, **_: Any) -> Cost:
    return Cost(0, bytes=0, runs=(Run(fwd_jaxpr),))


def _linear_call(ins: Avals, outs: Avals, *, jaxprs: Any, **_: Any) -> Cost:
    return Cost(0, bytes=0, runs=(Run(jaxprs[0]),))


def _host(ins: Avals, outs: Avals, **_: Any) -> Cost:
    return Cost(None)


_GROUPS: Final[dict[Callable[..., Cost], str]] = {
    _elementwise(1): (
        "add sub add_any neg max min square abs sign floor ceil round eq ne lt le gt ge lt_to "
        "le_to eq_to"
    ),
    _elementwise(1, 6): "mul rem",
    _elementwise(1, 11): "div",
    _elementwise(2): "clamp",
    _elementwise(3, 10): "one_minus_square",
    _special: (
        "exp exp2 expm1 log log1p log2 logistic sqrt rsqrt cbrt pow sin cos tan asin acos atan "
        "atan2 sinh cosh tanh asinh acosh atanh erf erfc erf_inv lgamma digamma polygamma zeta "
        "bessel_i0e bessel_i1e igamma igammac igamma_grad_a random_gamma_grad "
        "regularized_incomplete_beta log_in_float64 betainc_grad_a betainc_grad_b beta_density "
        "gamma_density"
    ),
    _integer_pow: "integer_pow",
    _polynomial: "polynomial",
    _free: (
        "reshape squeeze stop_gradient bitcast_convert_type optimization_barrier name stage "
        "sharding_constraint random_wrap random_unwrap random_clone create_token after_all "
        "dce_sink axis_index platform_index real imag dim_as_value unstack split empty_ref freeze "
        "free_ref"
    ),
    _moves: (
        "broadcast_in_dim iota transpose rev concatenate pad select_n convert_element_type "
        "reduce_precision copy device_put tile stack complex conj is_finite nextafter and or xor "
        "not shift_left shift_right_logical shift_right_arithmetic population_count clz mulhi "
        "threefry2x32 rng_bit_generator rng_uniform all_gather all_to_all ppermute "
        "lu_pivots_to_permutation new_ref layout_constraint ragged_all_to_all"
    ),
    _part: "slice dynamic_slice gather get",
    _write(0): "swap",
    _write(1): "addupdate",
    _update: "dynamic_update_slice",
    _scatter(0): "scatter",
    _scatter(1): "scatter-add scatter-sub scatter-mul scatter-min scatter-max",
    _reduction: (
        "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor reduce"
    ),
    _arg_reduction: "argmax argmin",
    _cumulative: "cumsum cumprod cummax cummin",
    _windows: "reduce_window_sum reduce_window_max reduce_window_min reduce_window",
    _sorted: "sort top_k approx_top_k",
    _dot: "dot_general",
    _scaled_dot: "scaled_dot",
    _symmetric_product: "symmetric_product",
    _ragged_dot: "ragged_dot_general",
    _convolution: "conv_general_dilated",
    _fft: "fft",
    _matrix(lambda m, n: n**3 / 3): "cholesky",
    _matrix(lambda m, n: 6 * n**2): "cholesky_update",
    _matrix(lambda m, n: m * n * min(m, n) - min(m, n) ** 3 / 3): "lu",
    _matrix(lambda m, n: 2 * m * n * min(m, n) - 2 * min(m, n) ** 3 / 3): "geqrf geqp3 qr",
    _matrix(lambda m, n: 4 * m * n * min(m, n)): "householder_product ormqr",
    _matrix(lambda m, n: 9 * n**3): "eigh",
    _matrix(lambda m, n: 25 * n**3): "eig schur",
    _matrix(lambda m, n: 4 * n**3 / 3): "tridiagonal",
    _matrix(lambda m, n: 10 * n**3 / 3): "hessenberg",
    _matrix(lambda m, n: 4 * m * n * min(m, n) + 8 * min(m, n) ** 3): "svd",
    _triangular: "triangular_solve",
    _tridiagonal_solve: "tridiagonal_solve",
    _scan: "scan",
    _while: "while",
    _cond: "cond",
    _linear_solve: "custom_linear_solve",
    _linear_call: "linear_call",
    _first_use: "remat_opt",
    _host: "pure_callback io_callback debug_callback call_exported inspect_sharding",
}
_TABLE: Final = {name: rule for rule, names in _GROUPS.items() for name in names.split()}


@cost.falls_back
def _cost_fallback(prim: Primitive) -> Callable[..., Cost]:
    if f"{prim.home}.".startswith(f"{_CORE}.") and prim.name in _TABLE:
        return _TABLE[prim.name]
    if prim.find(expand) is not None:
        return lambda ins, outs, **params: _expansion(prim, ins, params)
    return _by_types


def _expansion(prim: Primitive, ins: Avals, params: dict[str, Any]) -> Cost:
    held = jaxprs_in(params)
    program = held[0] if len(held) == 1 else expanded(prim, ins, params)
    assert program is not None
    return Cost(0, bytes=0, runs=(Run(program),))


def _by_types(ins: Avals, outs: Avals, **_: Any) -> Cost:
    """One operation for each element of the results."""
    return Cost(sum(map(_count, outs)), estimated=True)
