"""Factorization of symmetric and Hermitian indefinite matrices."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import custom_jvp, lax, vmap
from primax_core.extend import Array
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, compiled, is_complex, strong

from ._equations import _product
from ._matrices import adjoint, check_square, conjugate, identity_like, transposed

_ALPHA: Final = (1 + math.sqrt(17)) / 8
"""The ratio that balances the growth of elements by pivots of one and of two rows."""


def _size(x: Any) -> Any:
    """Absolute values; of complex numbers the sum of those of the parts, as in LAPACK."""
    return pnp.abs(lax.real(x)) + pnp.abs(lax.imag(x)) if is_complex(x) else pnp.abs(x)


def _mirror(x: Any, hermitian: bool) -> Any:
    return adjoint(x) if hermitian else transposed(x)


def _largest(sizes: Any, last: bool) -> Any:
    """The position of the largest size, of equal ones the first or the last."""
    if not last:
        return pnp.argmax(sizes).astype(np.int32)
    return (typeof(sizes).shape[0] - 1 - pnp.argmax(sizes[::-1])).astype(np.int32)


def _pivot(sizes: Any, k: Any, last: bool) -> tuple[Any, Any]:
    """The row to exchange, and True for a pivot of two rows (Bunch and Kaufman, 1977)."""
    places = pnp.arange(typeof(sizes).shape[0], dtype=np.int32)
    here, zero = sizes[k, k], pnp.zeros((), typeof(sizes).dtype)
    column = pnp.where(places > k, sizes[:, k], zero)
    other = _largest(pnp.where(places > k, sizes[:, k], -1), last)
    column_size = pnp.max(column)
    row_size = pnp.max(pnp.where((places >= k) & (places != other), sizes[:, other], zero))
    stay = here >= _ALPHA * column_size
    stay = stay | (here * row_size >= _ALPHA * column_size * column_size)
    one = sizes[other, other] >= _ALPHA * row_size
    return pnp.where(stay, k, other), ~stay & ~one


def _inverse_block(block: Any, pair: Any, hermitian: bool) -> Any:
    """The inverse ``[2, 2]`` of the pivot, with one element unless it is a pair."""
    a, b, c = block[0, 0], block[1, 0], block[1, 1]
    single = pnp.where(a == 0, pnp.zeros_like(a), 1 / pnp.where(a == 0, pnp.ones_like(a), a))
    b = pnp.where(pair, b, pnp.ones_like(b))
    scale = pnp.abs(b).astype(typeof(b).dtype) if hermitian else b
    unit = b / scale
    a, c = a / scale, c / scale
    bottom = pnp.where(pair, scale * (a * c - 1), pnp.ones_like(scale))
    back = conjugate(unit) if hermitian else unit
    both = pnp.stack([pnp.stack([c, -back]), pnp.stack([-unit, a])]) / bottom
    first = pnp.zeros_like(block).at[0, 0].set(single)
    return pnp.where(pair, both, first)


def _factors(a: Any, hermitian: bool, last: bool) -> tuple[Any, Any, Any, Any]:
    """The unit lower triangle, the blocks, their mask and the order of rows of one matrix."""
    n = typeof(a).shape[-1]
    places = pnp.arange(n, dtype=np.int32)

    def step(k: Any, state: Any) -> Any:
        a, low, order, second, starts = state
        row, pair = _pivot(_size(a), k, last)
        row, pair = pnp.where(second, k, row), pair & ~second
        moved = pnp.minimum(k + pair.astype(np.int32), n - 1)
        exchange = pnp.where(places == moved, row, pnp.where(places == row, moved, places))
        exchange = pnp.where(second, places, exchange)
        a, low, order = a[exchange][:, exchange], low[exchange], order[exchange]
        both = pnp.stack([k, pnp.minimum(k + 1, n - 1)])
        inverse = _inverse_block(a[both][:, both], pair, hermitian)
        inverse = pnp.where(second, pnp.zeros_like(inverse), inverse)
        below = places > k + pair.astype(np.int32)
        columns = pnp.where(below[:, None], a[:, both], pnp.zeros_like(a[:, both]))
        weights = _product(columns, inverse)
        a = a - _product(weights, _mirror(columns, hermitian))
        low = low.at[:, both].add(weights)
        return a, low, order, pair, starts.at[k].set(pair)

    state = (a, pnp.zeros_like(a), places, pnp.full((), False), pnp.full((n,), False))
    a, low, order, _, starts = lax.fori_loop(0, n, step, state)
    upper = starts[:, None] & (places[None] == places[:, None] + 1)
    mask = (places[:, None] == places[None]) | upper | upper.T
    mask = mask.astype(typeof(a).dtype)
    return low + identity_like(low), pnp.where(mask != 0, a, pnp.zeros_like(a)), mask, order


def _with_derivatives(hermitian: bool) -> Any:
    @custom_jvp
    def factors(a: Any, low: Any, blocks: Any, mask: Any) -> tuple[Any, Any]:
        """The factors of ``a``, which are known, with derivatives that hold the pivots."""
        return low, blocks

    @factors.defjvp
    def _factors_jvp(primals: Any, tangents: Any) -> Any:
        low, blocks = factors(*primals)
        mask, change = primals[3], tangents[0]
        solve = partial(
            lax.linalg.triangular_solve, low, lower=True, unit_diagonal=True,
        )  # fmt: skip
        inner = solve(solve(change, left_side=True), left_side=False, transpose_a=True,
                      conjugate_a=hermitian and is_complex(low))  # fmt: skip
        below = pnp.tril(inner * (1 - mask))
        turned = transposed(pnp.linalg.solve(transposed(blocks), transposed(below)))
        return (low, blocks), (_product(low, turned), inner * mask)

    return factors


_FACTORS: Final = {hermitian: _with_derivatives(hermitian) for hermitian in (False, True)}


@compiled("lower", "hermitian", name="ldl")
def _ldl(a, *, lower, hermitian):
    a = strong(as_inexact(a))
    hermitian = hermitian and is_complex(a)
    strict = pnp.tril(a, -1) if lower else pnp.triu(a, 1)
    diagonal = a * identity_like(a)
    if hermitian:
        diagonal = 0.5 * (diagonal + conjugate(diagonal))
    a = strict + diagonal + _mirror(strict, hermitian)
    if not lower:
        a = a[..., ::-1, ::-1]
    n = typeof(a).shape[-1]

    def one(a: Any) -> Any:
        low, blocks, mask, order = _factors(lax.stop_gradient(a), hermitian, not lower)
        low, blocks = _FACTORS[hermitian](a[order][:, order], low, blocks, mask)
        return low[pnp.argsort(order)], blocks, order

    for _ in typeof(a).shape[:-2]:
        one = vmap(one)
    if not n:
        return a, a, pnp.zeros(typeof(a).shape[:-1], np.int32)
    outer, blocks, order = one(a)
    if not lower:
        outer, blocks = (v[..., ::-1, ::-1] for v in (outer, blocks))
        order = n - 1 - order[..., ::-1]
    return outer, blocks, order


def ldl(
    A: ArrayLike,
    lower: bool = True,
    hermitian: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array, Array]:
    """Factorization ``A = lu @ d @ lu^H`` of an indefinite Hermitian or symmetric matrix.

    Args:
      A: ``number[..., n, n]``, of which one triangle is read.
      lower: read the lower triangle, and factor into a lower one; otherwise the upper.
      hermitian: complex matrices are Hermitian; otherwise symmetric, with ``A = lu @ d @ lu^T``.
      overwrite_a, check_finite: ignored.

    Returns:
      ``lu[..., n, n]``, a unit triangle with permuted rows; ``d[..., n, n]``, diagonal blocks of
      one or two rows; and ``perm``, ``int32[..., n]``, for which ``lu[perm]`` is triangular.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if ``A`` is not an array. Lists are not converted.

    Diagonal pivoting of Bunch and Kaufman (Math. Comp. 31, 1977), with the pivots of LAPACK. The
    derivative, of any order, holds the permutation and the sizes of blocks, which are constant near
    almost all matrices; it is not finite for a singular matrix. A batch has independent pivots.

    >>> lu, d, perm = ldl(np.float32([[0, 2, 0], [2, 0, 0], [0, 0, 3]]))
    >>> d.tolist(), perm.tolist()
    ([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 3.0]], [0, 1, 2])
    """
    check_square("ldl", A)
    out: tuple[Array, Array, Array] = _ldl(A, lower=bool(lower), hermitian=bool(hermitian))
    return out
