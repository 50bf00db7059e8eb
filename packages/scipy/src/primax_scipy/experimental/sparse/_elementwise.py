"""Sparse rules of elementwise primitives: those that map zero to zero act on stored data."""

from __future__ import annotations

from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.ad_checkpoint import name_p
from primax_core.extend import (
    Jaxpr,
    Primitive,
    add_any_p,
    custom_jvp_call_p,
    dtypes,
    eval_jaxpr,
    known_primitives,
    typeof,
)

from . import _coordinates as kernels
from ._bcoo import BCOO
from ._interpreter import DENSE, evaluate, evaluates_whole_jaxprs, sparse_rule, type_of
from ._products import at_places, bcoo_multiply_dense, bcoo_multiply_sparse
from ._structure import bcoo_broadcast_in_dim, in_one_layout, without_duplicates
from ._unary_calls import maps_zero_to_zero, with_shape


def _linear(prim: Primitive) -> None:
    """Register a linear primitive: it acts on the data, also with duplicate indices."""

    @prim.rule(sparse_rule)
    def sparse(x: BCOO, **params: Any) -> BCOO:
        return x.like(prim.bind(x.data, **params))


def _zero_at_zero(prim: Primitive) -> None:
    """Register a primitive that maps zero to zero; duplicate indices are summed first."""

    @prim.rule(sparse_rule)
    def sparse(x: BCOO, **params: Any) -> BCOO:
        x = without_duplicates(x)
        return x.like(prim.bind(x.data, **params))


for _prim in (
    lax.neg_p,
    lax.real_p,
    lax.imag_p,
    lax.conj_p,
    lax.copy_p,
    lax.stop_gradient_p,
    name_p,
):
    _linear(_prim)

for _prim in (
    lax.abs_p, lax.asin_p, lax.asinh_p, lax.atan_p, lax.atanh_p, lax.cbrt_p, lax.ceil_p, lax.erf_p,
    lax.erf_inv_p, lax.expm1_p, lax.floor_p, lax.log1p_p, lax.round_p, lax.sign_p, lax.sin_p,
    lax.sinh_p, lax.sqrt_p, lax.square_p, lax.tan_p, lax.tanh_p, lax.reduce_precision_p,
    lax.bessel_i1e_p,
):  # fmt: skip
    _zero_at_zero(_prim)


@custom_jvp_call_p.rule(sparse_rule)
def _sparse_custom_jvp_call(*values: Any, call_jaxpr: Any, **params: Any) -> list[Any]:
    if len(values) > 1 or not maps_zero_to_zero(call_jaxpr):
        return evaluate(call_jaxpr, values)
    x = without_duplicates(values[0])
    jaxpr = with_shape(call_jaxpr, typeof(x.data).shape)
    (data,) = custom_jvp_call_p.bind(x.data, call_jaxpr=jaxpr, **params)
    return [x.like(data)]


@evaluates_whole_jaxprs
def _elementwise_jaxpr(jaxpr: Jaxpr, x: Any) -> Any:
    """The result of a composition of elementwise operations, such as ``sign``, that maps zero to
    zero."""
    if not maps_zero_to_zero(jaxpr):
        return None
    plain = x.to_bcoo()
    mat = without_duplicates(plain)
    (data,) = eval_jaxpr(with_shape(jaxpr, typeof(mat.data).shape), [mat.data])
    return x.with_data(data) if mat is plain else x.stored_like(mat.like(data))


@lax.convert_element_type_p.rule(sparse_rule)
def _sparse_convert_element_type(x: BCOO, *, new_dtype: Any, **params: Any) -> BCOO:
    kinds = [
        next(k for k in (np.bool_, np.integer, np.inexact) if dtypes.issubdtype(dtype, k))
        for dtype in (x.dtype, new_dtype)
    ]
    rounds = kinds == [np.inexact, np.integer] or np.bool_ in kinds
    x = without_duplicates(x) if rounds else x
    return x.like(lax.convert_element_type_p.bind(x.data, new_dtype=new_dtype, **params))


_OTHER_AT_ZERO = {
    "acos", "acosh", "bessel_i0e", "clamp", "complex", "cos", "cosh", "digamma", "eq", "eq_to",
    "erfc", "exp", "exp2", "ge", "gt", "is_finite", "le", "le_to", "lgamma", "log", "log2",
    "logistic", "lt", "lt_to", "ne", "not", "one_minus_square", "pow", "rsqrt",
}  # fmt: skip

for _prim in known_primitives():
    if _prim.name in _OTHER_AT_ZERO:
        _prim.unsupported(sparse_rule, DENSE)


@lax.integer_pow_p.rule(sparse_rule)
def _sparse_integer_pow(x: BCOO, *, y: int) -> BCOO:
    if y <= 0:
        raise NotImplementedError(f"sparse arrays: a sparse array to the power of {y}: {DENSE}")
    x = without_duplicates(x)
    return x.like(lax.integer_pow(x.data, y))


# Binary primitives


def grown(x: BCOO, shape: tuple[int, ...]) -> BCOO:
    """The array broadcast to a shape of the same or a higher rank."""
    to = range(len(shape) - x.ndim, len(shape))
    return bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=to)


@lax.mul_p.rule(sparse_rule)
def _sparse_mul(x: Any, y: Any, **_: Any) -> BCOO:
    shape = pnp.broadcast_shapes(type_of(x).shape, type_of(y).shape)
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        x, y = (a if a.ndim == len(shape) else grown(a, shape) for a in (x, y))
        return bcoo_multiply_sparse(x, y)
    mat, v = (x, y) if isinstance(x, BCOO) else (y, x)
    mat = grown(mat, shape)
    return mat.like(bcoo_multiply_dense(mat, v))


def _add(x: Any, y: Any, **_: Any) -> Any:
    shape = pnp.broadcast_shapes(type_of(x).shape, type_of(y).shape)
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        return _appended(*in_one_layout([grown(x, shape), grown(y, shape)]))
    mat, v = (x, y) if isinstance(x, BCOO) else (y, x)
    if typeof(v).shape != shape:
        raise NotImplementedError(
            f"sparse arrays: the sum of a sparse array of shape {mat.shape} and an array of shape "
            f"{typeof(v).shape}: {DENSE}"
        )
    mat = grown(mat, shape)
    return kernels.added(mat.data, mat.indices, v, n_batch=mat.n_batch)


def _appended(x: BCOO, y: BCOO) -> BCOO:
    """The stored elements of both arrays, concatenated."""
    return x.like(
        pnp.concatenate([x.data, y.data], axis=x.n_batch),
        pnp.concatenate([x.indices, y.indices], axis=x.n_batch),
    )


lax.add_p.rule(sparse_rule)(_add)
add_any_p.rule(sparse_rule)(_add)


@lax.sub_p.rule(sparse_rule)
def _sparse_sub(x: Any, y: Any, **_: Any) -> Any:
    return _add(x, -y)


@lax.div_p.rule(sparse_rule)
def _sparse_div(x: Any, y: Any, **_: Any) -> BCOO:
    if isinstance(y, BCOO):
        raise NotImplementedError(
            f"sparse arrays: division by a sparse array, whose elements are mostly zero: {DENSE}"
        )
    mat = grown(x, pnp.broadcast_shapes(x.shape, typeof(y).shape))
    return mat.like(at_places(mat, y, lax.div, 1))
