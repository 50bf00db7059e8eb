"""Matrix equations, Hermitian inverses, angles between subspaces."""

from __future__ import annotations

from typing import Any

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, check_arrays, compiled

from ._matrices import (
    adjoint,
    check_matrices,
    check_one_matrix,
    check_square,
    conjugate,
    in_common_dtype,
)
from ._matrix_functions import solve_sylvester


def _product(x: Any, y: Any) -> Any:
    return pnp.matmul(x, y, precision=lax.Precision.HIGHEST)


def _same_sizes(name: str, a: Any, q: Any) -> None:
    check_one_matrix(name, a, q)
    if typeof(a).shape != typeof(q).shape:
        raise ValueError(
            f"linalg.{name}: a of shape {typeof(a).shape} and q of shape {typeof(q).shape} differ"
        )


def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike) -> Array:
    """Solution ``x`` of ``a @ x + x @ a^H = q``.

    Args:
      a, q: ``number[n, n]``.

    Returns:
      The solution ``number[n, n]``.

    Raises:
      ValueError: if the sizes differ.

    Derivatives of any order solve further equations. The algorithm is that of Bartels and Stewart
    (1972), on the CPU only.

    >>> import numpy as np
    >>> solve_continuous_lyapunov(np.float32([[1]]), np.float32([[4]])).tolist()
    [[2.0]]
    """
    _same_sizes("solve_continuous_lyapunov", a, q)
    a = pnp.asarray(a)
    return solve_sylvester(a, adjoint(a), q)


@compiled(name="solve_discrete_lyapunov")
def _discrete(a, q):
    a, q = in_common_dtype(a, q)
    eye = pnp.eye(len(a), dtype=typeof(a).dtype)
    right = adjoint(a)
    # The bilinear transformation to a continuous equation (Popov, 1964)
    inverse = pnp.linalg.inv(right + eye)
    b = _product(right - eye, inverse)
    c = 2 * _product(_product(pnp.linalg.inv(a + eye), q), inverse)
    return solve_sylvester(adjoint(b), b, -c)


def solve_discrete_lyapunov(a: ArrayLike, q: ArrayLike, method: str | None = None) -> Array:
    """Solution ``x`` of ``a @ x @ a^H - x + q = 0``.

    Args:
      a, q: ``number[n, n]``; -1 is not an eigenvalue of ``a`` unless the method is ``"direct"``.
      method: ``"bilinear"`` transforms the equation to a continuous one; ``"direct"`` solves a
        system of ``n * n`` unknowns, the default below ``n = 10``.

    Returns:
      The solution ``number[n, n]``.

    Raises:
      ValueError: if the sizes differ or the method is unknown.

    It is differentiable with respect to both matrices.

    >>> import numpy as np
    >>> a, q = np.float32([[0.5]]), np.float32([[3.0]])
    >>> solve_discrete_lyapunov(a, q).tolist()
    [[4.0]]
    """
    _same_sizes("solve_discrete_lyapunov", a, q)
    if method not in (None, "direct", "bilinear"):
        raise ValueError(
            f"solve_discrete_lyapunov: method must be None, 'direct' or 'bilinear', got {method!r}"
        )
    a, q = pnp.asarray(a), pnp.asarray(q)
    n = typeof(a).shape[0]
    out: Array
    if method == "bilinear" or (method is None and n >= 10):
        out = _discrete(a, q)
        return out
    x, y = in_common_dtype(a, q)
    system = pnp.eye(n * n, dtype=typeof(x).dtype) - pnp.kron(x, conjugate(x))
    out = pnp.linalg.solve(system, y.reshape(n * n)).reshape(n, n)
    return out


@compiled("n", name="pinvh")
def _pinvh(a, atol, rtol, *, n):
    a = as_inexact(a)
    vectors, values = lax.linalg.eigh(a, symmetrize_input=False)
    size = pnp.max(pnp.abs(values), -1, keepdims=True, initial=0)
    used = pnp.abs(values) > atol + rtol * size
    inverse = pnp.where(used, 1 / pnp.where(used, values, 1), 0)
    scaled = vectors * inverse[..., None, :].astype(typeof(vectors).dtype)
    return _product(scaled, adjoint(vectors))


def pinvh(
    a: ArrayLike, atol: ArrayLike | None = None, rtol: ArrayLike | None = None, lower: bool = True,
    return_rank: bool = False, check_finite: bool = True,
) -> Any:  # fmt: skip
    """Pseudo-inverse of Hermitian matrices, by their eigenvalues.

    Args:
      a: Hermitian matrices ``number[..., n, n]``.
      atol, rtol: eigenvalues of a magnitude up to ``atol + rtol * largest`` count as zero; by
        default 0 and ``n`` times the machine epsilon.
      lower: read the lower triangle, otherwise the upper.
      return_rank: also return the numbers of the other eigenvalues.
      check_finite: ignored.

    Returns:
      The pseudoinverses, of the shape of ``a``; with ``return_rank`` a tuple of them and the ranks.

    >>> import numpy as np
    >>> pinvh(np.float32([[2, 0], [0, 0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    check_square("pinvh", a)
    a = as_inexact(pnp.asarray(a))
    a = pnp.tril(a) + adjoint(pnp.tril(a, -1)) if lower else pnp.triu(a) + adjoint(pnp.triu(a, 1))
    n = typeof(a).shape[-1]
    real = dtypes.finfo(typeof(a).dtype).dtype
    atol = lax.convert_element_type(0.0 if atol is None else atol, real)
    rtol = n * float(dtypes.finfo(real).eps) if rtol is None else rtol
    rtol = lax.convert_element_type(rtol, real)
    out = _pinvh(a, atol, rtol, n=n)
    if not return_rank:
        return out
    values = pnp.abs(pnp.linalg.eigvalsh(a))
    largest = pnp.max(values, -1, keepdims=True, initial=0)
    return out, pnp.sum(values > atol + rtol * largest, -1)


@compiled(name="subspace_angles")
def _angles(a, b):
    a, b = in_common_dtype(a, b)
    qa, qb = (pnp.linalg.qr(x)[0] for x in (a, b))
    inner = _product(adjoint(qa), qb)
    cosines = pnp.linalg.svd(inner, compute_uv=False)
    # Small angles from their sines (Knyazev and Argentati, SIAM J. Sci. Comput. 23, 2002)
    wide = typeof(a).shape[-1] >= typeof(b).shape[-1]
    rest = qb - _product(qa, inner) if wide else qa - _product(qb, adjoint(inner))
    sines = pnp.linalg.svd(rest, compute_uv=False)
    small = cosines[::-1] ** 2 >= 0.5
    clipped = pnp.where(small, sines, 0)
    other = pnp.where(small, 0, pnp.clip(cosines[::-1], -1, 1))
    return pnp.where(small, pnp.arcsin(pnp.clip(clipped, -1, 1)), pnp.arccos(other))


def subspace_angles(A: ArrayLike, B: ArrayLike) -> Array:
    """The principal angles between the ranges of two matrices, largest first.

    Args:
      A, B: ``number[m, p]`` and ``number[m, q]`` of full rank, with ``p, q <= m``.

    Returns:
      ``float[min(p, q)]``.

    Raises:
      ValueError: if the numbers of rows differ.

    >>> import numpy as np
    >>> angles = subspace_angles(np.float32([[1], [0]]), np.float32([[1], [1]]))
    >>> round(float(angles[0]), 4)
    0.7854
    """
    check_matrices("subspace_angles", A, B)
    x, y = typeof(A).shape, typeof(B).shape
    if len(x) != 2 or len(y) != 2 or x[0] != y[0]:
        raise ValueError(f"linalg.subspace_angles: matrices of equal rows, got shapes {x} and {y}")
    out: Array = _angles(A, B)
    return out


@compiled(name="solve_toeplitz")
def _toeplitz_solve(c, r, b):
    """Levinson's recursion, with forward and backward vectors."""
    c, r, b = in_common_dtype(c, r, b)
    n, dtype = len(c), typeof(c).dtype
    index = pnp.arange(n)
    # Row k of the matrix is in the reversed diagonal entries
    diagonals = pnp.concatenate([c[::-1], r[1:]])

    def step(k: Any, state: Any) -> Any:
        f, g, x = state
        row = lax.dynamic_slice(diagonals, (n - 1 - k,), (n,))
        row = pnp.where(index <= k, row, 0)
        top = pnp.where(index <= k, r, 0)
        shifted = pnp.roll(g, 1)
        ef, eg = _product(row, f), _product(top, shifted)
        bottom = 1 - ef * eg
        f, g = (f - ef * shifted) / bottom, (shifted - eg * f) / bottom
        missing = b[k] - _product(row, x)
        return f, g, x + g[:, None] * missing[None]

    first = pnp.zeros(n, dtype).at[0].set(1 / c[0])
    x = pnp.zeros_like(b).at[0].set(b[0] / c[0])
    return lax.fori_loop(1, n, step, (first, first, x))[2]


def solve_toeplitz(
    c_or_cr: ArrayLike | tuple[ArrayLike, ArrayLike], b: ArrayLike, check_finite: bool = True
) -> Array:
    """Solution of a system with a Toeplitz matrix, by Levinson's recursion in ``n * n`` steps.

    Args:
      c_or_cr: the first column ``[n]`` of a Hermitian matrix, or a tuple of the first column and
        the first row, whose first element is not read.
      b: ``number[n]`` or ``number[n, k]``.
      check_finite: ignored.

    Not finite if a leading submatrix is singular. Without pivoting, the recursion loses digits for
    matrices that are not diagonally dominant or positive definite (Golub and Van Loan, *Matrix
    Computations*, section 4.7).

    Raises:
      ValueError: if the sizes do not match.

    >>> import numpy as np
    >>> solve_toeplitz(np.float32([2, 1]), np.float32([3, 3])).tolist()
    [1.0, 1.0]
    """
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    check_arrays("linalg.solve_toeplitz", c, b)
    r = conjugate(as_inexact(pnp.asarray(c))) if r is None else r
    sizes = [typeof(v).shape for v in (c, r, b)]
    if len(sizes[0]) != 1 or sizes[1] != sizes[0] or sizes[2][:1] != sizes[0] or len(sizes[2]) > 2:
        raise ValueError(
            f"linalg.solve_toeplitz: column, row and b of shapes {sizes} do not match: [n], [n] "
            "and [n] or [n, k]"
        )
    b = pnp.asarray(b)
    out: Array = _toeplitz_solve(c, r, b if b.ndim == 2 else b[:, None])
    return out if b.ndim == 2 else out[:, 0]
