"""Linear systems and their factorizations.

The last two axes are those of the matrices; leading axes broadcast. A right-hand side with one axis
less than the matrices is a batch of vectors. Integers become floats. Arguments about memory and
checks, ``overwrite_*`` and ``check_finite``, are ignored.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, FastPath, inexact, promoted
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, check_arrays, compiled, is_complex

from ._matrices import (
    adjoint,
    check_matrices,
    check_square,
    check_system,
    conjugate,
    holds_vectors,
    identity_like,
    matrix_function,
    rows_in_order,
    with_batch,
)


def _as_columns(a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Matrices promoted to one dtype and batch shape, and a flag for a vector ``b``."""
    a, b = promoted("solve", a, b, inexact)
    a, b = (lax.convert_element_type(x, typeof(x).dtype) for x in (a, b))
    vector = holds_vectors(a, b)
    if vector:
        b = lax.expand_dims(b, (typeof(b).ndim,))
    batch = lax.broadcast_shapes(typeof(a).shape[:-2], typeof(b).shape[:-2])
    return with_batch(a, batch, 2), with_batch(b, batch, 2), vector


def _without_column(x: Any, vector: bool) -> Any:
    return lax.squeeze(x, (typeof(x).ndim - 1,)) if vector else x


_TRANS = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


@compiled("trans", "lower", "unit_diagonal", name="solve_triangular")
def _solve_triangular(a, b, *, trans, lower, unit_diagonal):
    a, b, vector = _as_columns(a, b)
    x = lax.linalg.triangular_solve(
        a, b, left_side=True, lower=lower, unit_diagonal=unit_diagonal,
        transpose_a=trans > 0, conjugate_a=trans == 2 and is_complex(a),
    )  # fmt: skip
    return _without_column(x, vector)


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: bool | None = None,
    check_finite: bool = True,
) -> Array:
    """Solution ``x`` of ``a @ x = b`` for triangular ``a``.

    Args:
      a: ``number[..., n, n]``; only one triangle is read.
      b: ``number[..., n]`` or ``number[..., n, k]``.
      trans: 0 or ``"N"``; 1 or ``"T"`` for the transposed matrix; 2 or ``"C"`` for its conjugate.
      lower: read the lower triangle, otherwise the upper.
      unit_diagonal: assume a diagonal of ones; it is not read.
      overwrite_b, debug, check_finite: ignored.

    Raises:
      ValueError: if ``trans`` is unknown, or sizes do not match.

    >>> import numpy as np
    >>> solve_triangular(np.float32([[2, 0], [1, 1]]), np.float32([2, 3]), lower=True).tolist()
    [1.0, 2.0]
    """
    if trans not in _TRANS:
        raise ValueError(f"Invalid 'trans' value {trans}: use 0, 1, 2, 'N', 'T' or 'C'")
    lower, unit_diagonal = bool(lower), bool(unit_diagonal)
    key = (_TRANS[trans], lower, unit_diagonal)
    fast: Array | None = _triangular_solves.lookup(key, a, b)
    if fast is not None:
        return fast
    check_system("solve_triangular", a, b)
    return _triangular_solves.call(
        key, (a, b), trans=key[0], lower=lower, unit_diagonal=unit_diagonal
    )


_triangular_solves: Final = FastPath(_solve_triangular)


@compiled("lower", name="solve_positive")
def _solve_positive(a, b, *, lower):
    a, b, vector = _as_columns(a, b)
    factor = lax.linalg.cholesky(
        lax.stop_gradient(a if lower else adjoint(a)), symmetrize_input=False
    )

    def solved(y: Any) -> Any:
        return _with_factor(factor, y, True)

    x = lax.custom_linear_solve(
        lambda x: pnp.matmul(a, x), b, lambda _, y: solved(y),
        lambda _, y: conjugate(solved(conjugate(y))),
    )  # fmt: skip
    return _without_column(x, vector)


_KINDS = ("gen", "sym", "her", "pos")


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solution ``x`` of ``a @ x = b``.

    Args:
      a: ``number[..., n, n]``.
      b: ``number[..., n]`` or ``number[..., n, k]``.
      lower: with ``assume_a="pos"``, factor the lower triangle, otherwise the upper.
      overwrite_a, overwrite_b, debug, check_finite: ignored.
      assume_a: ``"pos"`` for positive definite matrices uses the Cholesky decomposition;
        ``"gen"``, ``"sym"`` and ``"her"`` use the LU decomposition of the whole matrix.

    Returns:
      ``x``, of the shape of ``b`` except for broadcast leading axes; not finite for singular ``a``.

    Raises:
      ValueError: if ``assume_a`` is unknown, or sizes do not match.

    >>> import numpy as np
    >>> [round(float(v), 4) for v in solve(np.float32([[2, 0], [1, 4]]), np.float32([2, 9]))]
    [1.0, 2.0]
    """
    if assume_a not in _KINDS:
        raise ValueError(f"Expected assume_a to be one of {list(_KINDS)}; got {assume_a!r}")
    lower = bool(lower)
    path, key = (_positive_solves, lower) if assume_a == "pos" else (_general_solves, None)
    fast: Array | None = path.lookup(key, a, b)
    if fast is not None:
        return fast
    check_system("solve", a, b)
    return path.call(key, (a, b)) if key is None else path.call(key, (a, b), lower=lower)


@compiled(name="solve")
def _solve_general(a, b):
    return pnp.linalg.solve(a, b)


_positive_solves: Final = FastPath(_solve_positive)
_general_solves: Final = FastPath(_solve_general)


# LU


@compiled(name="lu_factor")
def _lu_factor(a):
    factors, pivots, _ = lax.linalg.lu(as_inexact(a))
    return factors, pivots


def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """LU decomposition with partial pivoting, stored in one matrix, for :func:`lu_solve`.

    Args:
      a: ``number[..., m, n]``.
      overwrite_a, check_finite: ignored.

    Returns:
      ``lu[..., m, n]``: ``U`` on and above the diagonal, ``L`` without its unit diagonal below;
      ``pivots[..., min(m, n)]``, ``int32``: row ``i`` was swapped with row ``pivots[i]``.

    Raises:
      ValueError: if ``a`` has fewer than two axes.

    The factors are differentiable, the pivots are constant. Leading axes are a batch.

    >>> import numpy as np
    >>> lu, pivots = lu_factor(np.float32([[1, 3], [2, 2]]))
    >>> lu.tolist(), pivots.tolist()
    ([[2.0, 2.0], [0.5, 2.0]], [1, 1])
    """
    check_matrices("lu_factor", a)
    out: tuple[Array, Array] = _lu_factor(a)
    return out


@compiled("trans", name="lu_solve")
def _lu_solve(factors, pivots, b, *, trans):
    factors, b, vector = _as_columns(factors, b)
    n = typeof(factors).shape[-1]
    pivots = with_batch(pivots, typeof(b).shape[:-2], 1)
    order = lax.linalg.lu_pivots_to_permutation(pivots, n)
    conjugated = trans == 2 and is_complex(factors)
    triangular = partial(
        lax.linalg.triangular_solve, factors, left_side=True, transpose_a=trans > 0,
        conjugate_a=conjugated,
    )  # fmt: skip
    if not trans:
        x = triangular(rows_in_order(b, order), lower=True, unit_diagonal=True)
        return _without_column(triangular(x, lower=False), vector)
    x = triangular(triangular(b, lower=False), lower=True, unit_diagonal=True)
    return _without_column(rows_in_order(x, _inverse(order)), vector)


def _inverse(order: Any) -> Any:
    axis = typeof(order).ndim - 1
    places = lax.broadcasted_iota(typeof(order).dtype, typeof(order).shape, axis)
    return lax.sort_key_val(order, places, axis)[1]


def lu_solve(
    lu_and_piv: tuple[Any, Any], b: ArrayLike, trans: int = 0, overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:  # fmt: skip
    """Solution ``x`` of ``a @ x = b`` from the factors of :func:`lu_factor`.

    Args:
      lu_and_piv: the result of :func:`lu_factor` for square matrices.
      b: ``number[..., n]`` or ``number[..., n, k]``.
      trans: 0; 1 for the transposed matrix; 2 for its conjugate.
      overwrite_b, check_finite: ignored.

    Returns:
      The solution, of the shape of ``b``.

    Raises:
      ValueError: if ``trans`` is unknown, or sizes do not match.

    >>> import numpy as np
    >>> lu_solve(lu_factor(np.float32([[2, 0], [0, 4]])), np.float32([1, 1])).tolist()
    [0.5, 0.25]
    """
    factors, pivots = lu_and_piv
    check_system("lu_solve", factors, b)
    check_arrays("linalg.lu_solve", pivots)
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    out: Array = _lu_solve(factors, pivots, b, trans=int(trans))
    return out


@compiled("permute_l", name="lu")
def _lu(a, *, permute_l):
    factors, _, order = lax.linalg.lu(as_inexact(a))
    m, n = typeof(factors).shape[-2:]
    k = min(m, n)
    first, top = factors[..., :, :k], factors[..., :k, :]
    lower = pnp.tril(first, -1) + identity_like(first)
    upper = pnp.triu(top)
    if permute_l:
        return rows_in_order(lower, _inverse(order)), upper
    matrix = rows_in_order(identity_like(factors, m), _inverse(order))
    return lax.real(matrix) if is_complex(matrix) else matrix, lower, upper


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """LU decomposition with partial pivoting, ``a = P @ L @ U``.

    Args:
      a: ``number[..., m, n]``.
      permute_l: return ``P @ L`` and ``U``.
      overwrite_a, check_finite: ignored.

    Returns:
      ``P[..., m, m]``, ``L[..., m, k]`` with a unit diagonal, ``U[..., k, n]``, with
      ``k = min(m, n)``.

    Raises:
      ValueError: if ``a`` has fewer than two axes.

    ``L`` and ``U`` are differentiable, ``P`` is constant. Leading axes are a batch.

    >>> import numpy as np
    >>> p, l, u = lu(np.float32([[1, 3], [2, 2]]))
    >>> p.tolist(), l.tolist(), u.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.5, 1.0]], [[2.0, 2.0], [0.0, 2.0]])
    """
    check_matrices("lu", a)
    out: tuple[Array, ...] = _lu(a, permute_l=bool(permute_l))
    return out


# Cholesky


@compiled("lower", name="cholesky")
def _cholesky(a, *, lower):
    a = as_inexact(a)
    factor = lax.linalg.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Cholesky decomposition, ``a = U^H @ U`` or ``a = L @ L^H``.

    Args:
      a: ``number[..., n, n]``, Hermitian and positive definite; one triangle is read.
      lower: return ``L`` instead of ``U``.
      overwrite_a, check_finite: ignored.

    Returns:
      The triangular factors; NaN for a matrix that is not positive definite.

    Raises:
      ValueError: if the matrices are not square.

    It is differentiable. Leading axes are a batch.

    >>> import numpy as np
    >>> cholesky(np.float32([[4, 2], [2, 5]])).tolist()
    [[2.0, 1.0], [0.0, 2.0]]
    """
    check_square("cholesky", a)
    out: Array = _cholesky(a, lower=bool(lower))
    return out


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Cholesky decomposition for :func:`cho_solve`.

    Args:
      a: ``number[..., n, n]``, Hermitian and positive definite; one triangle is read.
      lower: return the lower factor instead of the upper one.
      overwrite_a, check_finite: ignored.

    Returns:
      The triangular factor of :func:`cholesky`, and ``lower``.

    Raises:
      ValueError: if the matrices are not square.

    A matrix that is not positive definite gives NaN.

    >>> import numpy as np
    >>> factor, lower = cho_factor(np.float32([[4, 2], [2, 5]]))
    >>> factor.tolist(), lower
    ([[2.0, 1.0], [0.0, 2.0]], False)
    """
    return cholesky(a, lower), lower


def _with_factor(factor: Any, b: Any, lower: bool) -> Any:
    solve_with = partial(lax.linalg.triangular_solve, factor, left_side=True, lower=lower)
    other = partial(solve_with, transpose_a=True, conjugate_a=is_complex(factor))
    return other(solve_with(b)) if lower else solve_with(other(b))


@compiled("lower", name="cho_solve")
def _cho_solve(factor, b, *, lower):
    factor, b, vector = _as_columns(factor, b)
    return _without_column(_with_factor(factor, b, lower), vector)


def cho_solve(
    c_and_lower: tuple[Any, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solution ``x`` of ``a @ x = b`` from the factor of :func:`cho_factor`.

    Args:
      c_and_lower: the result of :func:`cho_factor`.
      b: ``number[..., n]`` or ``number[..., n, k]``.
      overwrite_b, check_finite: ignored.

    Returns:
      The solution, of the shape of ``b``.

    Raises:
      ValueError: if the sizes do not match.

    It is differentiable with respect to the factor and ``b``.

    >>> import numpy as np
    >>> cho_solve(cho_factor(np.float32([[4, 0], [0, 5]])), np.float32([8, 5])).round(4).tolist()
    [2.0, 1.0]
    """
    factor, lower = c_and_lower
    lower = bool(lower)
    fast: Array | None = _factored_solves.lookup(lower, factor, b)
    if fast is not None:
        return fast
    check_system("cho_solve", factor, b)
    return _factored_solves.call(lower, (factor, b), lower=lower)


_factored_solves: Final = FastPath(_cho_solve)


# Inverses and determinants


@matrix_function(check_square)
def _inv(a):
    return pnp.linalg.inv(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Inverses of square matrices; not finite for singular ones.

    Args:
      a: ``number[..., n, n]``. Leading axes are a batch.
      overwrite_a, check_finite: ignored.

    Returns:
      The inverses ``number[..., n, n]``.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if ``a`` is not an array. Lists are not converted.

    It is differentiable: the derivative in the direction ``e`` is ``-inv(a) @ e @ inv(a)``. To
    solve a system, :func:`solve` is faster and more accurate.

    >>> import numpy as np
    >>> inv(np.float32([[2, 0], [0, 4]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    check_square("inv", a)
    out: Array = _inv(a)
    return out


@matrix_function(check_square)
def _det(a):
    return pnp.linalg.det(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Determinants of square matrices.

    Args:
      a: ``number[..., n, n]``. Leading axes are a batch.
      overwrite_a, check_finite: ignored.

    Returns:
      The determinants ``number[...]``.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if ``a`` is not an array. Lists are not converted.

    The gradient is ``det(a) * inv(a).T`` for regular matrices.

    >>> import numpy as np
    >>> float(det(np.float32([[2, 0], [0, 3]])))
    6.0
    """
    check_square("det", a)
    out: Array = _det(a)
    return out
