"""Determinants, with derivatives that are exact also at singular matrices."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import Array, one_call
from primax_core.extend.dimensions import decided
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from .._functions import checked, compiled
from .._promotion import is_complex
from .._triangles import diagonal_of
from ._matrices import (
    adjoint,
    as_inexact,
    check_square,
    product,
    trace_of,
)
from ._solving import solve_factored


class SlogdetResult(NamedTuple):
    """The sign of determinants (of absolute value 1 or 0), and the logarithm of their absolute
    value.
    """

    sign: Array
    logabsdet: Array


@checked(partial(check_square, "det"))
def det(a: ArrayLike) -> Array:
    """Determinants of square matrices.

    Args:
      a: ``number[..., n, n]``; integers become floats.

    Returns:
      Numbers ``[...]``; 1 for ``n = 0``.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if the dtype is a 16-bit float and ``n`` is greater than 3.

    First derivatives are exact also at singular matrices, second derivatives there only for ``n``
    up to 3.

    >>> det(np.float32([[1, 2], [3, 5]]))
    Array(-1., dtype=float32)
    """
    a = as_inexact(a)
    n = typeof(a).shape[-1]
    return _expanded(a) if decided(lambda: n <= 3, False) else _by_factors(a)


def _expanded(a):
    """The determinant polynomial, for at most three rows."""
    n = typeof(a).shape[-1]
    last = typeof(a).ndim - 1

    def at(i: int, j: int) -> Any:
        row = lax.index_in_dim(a, i, last - 1, keepdims=False)
        return lax.index_in_dim(row, j, last - 1, keepdims=False)

    if n == 0:
        return lax.full(typeof(a).shape[:-2], 1, typeof(a).dtype)
    if n == 1:
        return at(0, 0)

    def minor(j: int, k: int, i: int = n - 2) -> Any:
        return lax.sub(lax.mul(at(i, j), at(i + 1, k)), lax.mul(at(i, k), at(i + 1, j)))

    if n == 2:
        return minor(0, 1)
    parts = [lax.mul(at(0, i), minor(j, k)) for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1))]
    return lax.add(lax.add(parts[0], parts[1]), parts[2])


@custom_jvp
def _by_factors(a):
    factors, pivots, _ = lax.linalg.lu(a)
    return lax.mul(_parity(pivots, typeof(a).dtype), _product_of(diagonal_of(factors, 0, (-2, -1))))


def _product_of(x):
    return lax.reduce_prod(x, (typeof(x).ndim - 1,))


def _parity(pivots, dtype):
    """The sign of the row permutation: -1 for an odd number of exchanges, otherwise 1."""
    places = lax.broadcasted_iota(np.int32, typeof(pivots).shape, typeof(pivots).ndim - 1)
    moved = lax.convert_element_type(lax.ne(pivots, places), np.int32)
    odd = lax.rem(lax.reduce_sum(moved, (typeof(pivots).ndim - 1,)), np.int32(2))
    return lax.convert_element_type(lax.sub(np.int32(1), lax.mul(np.int32(2), odd)), dtype)


@_by_factors.defjvp
def _by_factors_jvp(primals, tangents):
    (a,), (t,) = primals, tangents
    value = _by_factors(a)
    singular = lax.reduce_or(lax.eq(value, lax.full_like(value, 0)), _all_axes(value))

    def regular(a, t):
        factors, _, order = lax.linalg.lu(a)
        return lax.mul(_by_factors(a), trace_of(solve_factored(factors, order, t)))

    def general(a, t):
        return trace_of(product(_adjugate(a), t))

    return value, lax.cond(singular, general, regular, a, t)


def _all_axes(x):
    return tuple(range(typeof(x).ndim))


def _adjugate(a):
    """Adjugate (transposed cofactor matrix) ``adj(a)``, with ``a @ adj(a) = det(a) * eye``.

    From ``a = U @ diag(s) @ V^H``: ``adj(a) = det(U) * conj(det(V)) * V @ adj(diag(s)) @ U^H``, and
    an element of ``adj(diag(s))`` is the product of all other singular values.
    """
    u, s, vh = lax.linalg.svd(a, full_matrices=False)
    n = typeof(s).shape[-1]
    k = typeof(s).ndim
    shape = (*typeof(s).shape[:-1], n, n)
    others = lax.select(
        lax.eq(
            lax.broadcasted_iota(np.int32, shape, k - 1), lax.broadcasted_iota(np.int32, shape, k)
        ),
        lax.full(shape, 1, typeof(s).dtype),
        lax.broadcast_in_dim(s, shape, (*range(k - 1), k)),
    )
    cofactors = lax.convert_element_type(_product_of(others), typeof(a).dtype)
    phase = lax.mul(_by_factors(u), _by_factors(vh))
    columns = lax.broadcast_in_dim(lax.mul(cofactors, _spread(phase, cofactors)), typeof(vh).shape,
                                   tuple(range(k)))  # fmt: skip
    return product(adjoint(vh), lax.mul(columns, adjoint(u)))


def _spread(x, like):
    return lax.broadcast_in_dim(x, typeof(like).shape, tuple(range(typeof(x).ndim)))


@one_call("method")
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Sign and logarithm of the absolute value of determinants.

    The absolute values themselves may overflow or underflow in :func:`det`.

    Args:
      a: ``number[..., n, n]``; integers become floats.
      method: the decomposition, ``"lu"`` (the default) or ``"qr"``.

    Returns:
      The named tuple ``(sign, logabsdet)`` of arrays ``[...]``; the sign is a complex number of
      absolute value 1 for complex matrices.

    Raises:
      ValueError: if the matrices are not square, or the method is unknown.
      TypeError: if the dtype is a 16-bit float.

    Singular matrices give the sign 0 and the logarithm -inf. The result is not differentiable
    there.

    >>> sign, logabsdet = slogdet(np.float32([[1, 2], [3, 4]]))
    >>> float(sign), round(float(logabsdet), 3)
    (-1.0, 0.693)
    """
    check_square("slogdet", a)
    if method not in (None, "lu", "qr"):
        raise ValueError(
            f"Unknown slogdet method {method!r}. Supported methods are 'lu' (`None`), and 'qr'."
        )
    return SlogdetResult(*_slogdet(a, by_qr=method == "qr"))


@compiled("by_qr")
def _slogdet(a, *, by_qr):
    return (_log_by_qr if by_qr else _log_by_lu)(as_inexact(a))


@custom_jvp
def _log_by_lu(a):
    factors, pivots, _ = lax.linalg.lu(a)
    return _sign_and_log(diagonal_of(factors, 0, (-2, -1)), _parity(pivots, typeof(a).dtype))


@custom_jvp
def _log_by_qr(a):
    factors, taus = lax.linalg.geqrf(a)
    # A reflection I - tau v v^H has the determinant -tau / conj(tau), and 1 if tau is 0.
    one = lax.full_like(taus, 1)
    none = lax.eq(taus, lax.full_like(taus, 0))
    safe = lax.select(none, one, taus)
    phases = lax.neg(lax.div(safe, lax.conj(safe) if is_complex(safe) else safe))
    signs = _product_of(lax.select(none, one, phases))
    return _sign_and_log(diagonal_of(factors, 0, (-2, -1)), signs)


def _sign_and_log(diagonal, sign):
    size = lax.abs(diagonal)
    sign = lax.mul(sign, _product_of(lax.sign(diagonal)))
    return sign, lax.reduce_sum(lax.log(size), (typeof(size).ndim - 1,))


def _log_tangents(fun, primals, tangents):
    (a,), (t,) = primals, tangents
    sign, log = fun(a)
    factors, _, order = lax.linalg.lu(a)
    change = trace_of(solve_factored(factors, order, t))
    if not is_complex(a):
        return (sign, log), (lax.full_like(sign, 0), change)
    rotation = lax.complex(lax.full_like(lax.imag(change), 0), lax.imag(change))
    return (sign, log), (lax.mul(sign, rotation), lax.real(change))


_log_by_lu.defjvp(lambda primals, tangents: _log_tangents(_log_by_lu, primals, tangents))
_log_by_qr.defjvp(lambda primals, tangents: _log_tangents(_log_by_qr, primals, tangents))
