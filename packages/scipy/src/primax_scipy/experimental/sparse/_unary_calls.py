"""Calls of elementwise functions of one array that map zero to zero."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import ensure_compile_time_eval, lax
from primax_core.extend import (
    Eqn,
    Jaxpr,
    ShapedArray,
    custom_jvp_call_p,
    eval_jaxpr,
    interpret,
    jit_p,
    stage,
)

Shape = tuple[int, ...]

_ELEMENTWISE: Final = frozenset(
    "abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil "
    "clamp conj convert_element_type copy cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 "
    "floor ge gt imag integer_pow is_finite le lgamma log log1p log2 logistic lt max min mul name "
    "ne neg nextafter not one_minus_square or pow real reduce_precision rem round rsqrt select_n "
    "shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient "
    "sub tan tanh xor".split()
)
_CALLS: Final = {jit_p: "jaxpr", custom_jvp_call_p: "call_jaxpr"}


class _NotElementwise(Exception):
    """A jaxpr contains an operation that is not elementwise."""


def maps_zero_to_zero(jaxpr: Jaxpr) -> bool:
    """True for a jaxpr of one array that is elementwise, and zero at zero."""
    key = "sparse: zero at zero"
    known = jaxpr.cache.get(key)
    if known is None:
        known = jaxpr.cache[key] = _maps_zero_to_zero(jaxpr)
    return bool(known)


def _maps_zero_to_zero(jaxpr: Jaxpr) -> bool:
    if len(jaxpr.in_avals) != 1 or len(jaxpr.out_avals) != 1:
        return False
    (x,), (out,) = jaxpr.in_avals, jaxpr.out_avals
    if not x.shape or out.shape != x.shape:
        return False
    try:
        scalar = with_shape(jaxpr, ())
    except _NotElementwise:
        return False
    with ensure_compile_time_eval():
        (value,) = eval_jaxpr(scalar, [np.zeros((), x.dtype)])
        return bool(np.asarray(value) == 0)


def with_shape(jaxpr: Jaxpr, shape: Shape) -> Jaxpr:
    """An elementwise jaxpr of one array, for an array of another shape."""
    return _with_shape(jaxpr, jaxpr.in_avals[0].shape, shape)


def _with_shape(jaxpr: Jaxpr, old: Shape, new: Shape) -> Jaxpr:
    if any(np.ndim(c) for c in jaxpr.consts):
        raise _NotElementwise

    def step(eqn: Eqn, values: list[Any]) -> list[Any]:
        prim, params = eqn.primitive, eqn.params
        if prim is lax.broadcast_in_dim_p:
            if params["shape"] != old or np.ndim(values[0]):
                raise _NotElementwise
            return [lax.broadcast_in_dim(values[0], new, ())]
        if prim in _CALLS:
            held = _CALLS[prim]
            params = {**params, held: _with_shape(params[held], old, new)}
        elif prim.name not in _ELEMENTWISE:
            raise _NotElementwise
        out = prim.bind(*values, **params)
        return list(out) if prim.multiple_results else [out]

    avals = []
    for aval in jaxpr.in_avals:
        if aval.shape not in (old, ()):
            raise _NotElementwise
        avals.append(ShapedArray(new, aval.dtype, aval.weak_type) if aval.shape else aval)
    return stage(lambda *xs: interpret(jaxpr, xs, step), avals)
