"""Matrix functions: exponential, square root, polar decomposition.

Functions based on the Schur form run only on the CPU.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import custom_jvp, jvp, lax
from primax_core.extend import Array, dtypes, inexact, promoted
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, check_arrays, compiled, is_complex, strong

from ._matrices import (
    adjoint,
    check_matrices,
    check_one_matrix,
    check_square,
    identity_like,
    in_common_dtype,
)
from ._schur import as_complex

# Norm bounds up to which Padé approximants of the exponential are exact to rounding (Higham,
# 2005), # by the bytes of a real number and the degree
_NORMS: Final = {
    4: {3: 4.258730016922831e-01, 5: 1.880152677804762e00, 7: 3.925724783138660e00},
    8: {
        3: 1.495585217958292e-02, 5: 2.539398330063230e-01, 7: 9.504178996162932e-01,
        9: 2.097847961257068e00, 13: 5.371920351148152e00,
    },
}  # fmt: skip


def _pade_coefficients(m: int) -> list[float]:
    """The coefficients of the numerator of degree ``m``, up to a common factor."""
    whole = math.factorial
    return [float(whole(2 * m - k) // (whole(k) * whole(m - k))) for k in range(m + 1)]


_product = partial(pnp.matmul, precision=lax.Precision.HIGHEST)


def _pade(a: Any, fits: dict[int, Any], largest: int) -> tuple[Any, Any]:
    """Odd and even part of the numerator of a Padé approximant.

    Args:
      fits: conditions for each matrix that a degree is sufficient, in the order of degrees.
      largest: the degree if no other one is. All use the same powers, with other coefficients.
    """
    last = largest // 2
    coefficients = {m: np.zeros(2 * last + 2) for m in (*fits, largest)}
    for m, row in coefficients.items():
        row[: m + 1] = np.divide(_pade_coefficients(m), _pade_coefficients(m)[-1])

    def coefficient(k: int) -> Any:
        # Python numbers have a weak type, so the products have the dtype of the matrices.
        value: Any = float(coefficients[largest][k])
        for m in reversed(fits):
            value = pnp.where(fits[m], float(coefficients[m][k]), value)
        return value

    square = _product(a, a)
    powers = [identity_like(a), square]
    while len(powers) <= last:
        powers.append(_product(powers[-1], square))
    odd = sum(coefficient(2 * k + 1) * powers[k] for k in range(last + 1))
    even = sum(coefficient(2 * k) * powers[k] for k in range(last + 1))
    return _product(a, odd), even


@compiled("upper", "max_squarings", name="expm")
def _expm(a, *, upper, max_squarings):
    a = strong(a)
    real = dtypes.finfo(typeof(a).dtype).dtype
    width = np.dtype(real).itemsize
    norms = _NORMS[8 if width == 8 else 4]
    degrees = list(norms)
    if not typeof(a).shape[-1]:
        return a
    norm = pnp.max(pnp.sum(pnp.abs(lax.stop_gradient(a)), -2), -1)
    limit = norms[degrees[-1]]
    squarings = pnp.maximum(0, pnp.floor(pnp.log2(norm / limit)) + 1)
    squarings = pnp.where(norm > limit, squarings, 0)
    small = a * pnp.exp2(-squarings)[..., None, None].astype(typeof(a).dtype)
    scaled = norm * pnp.exp2(-squarings)
    fits = {m: (scaled < norms[m])[..., None, None] for m in degrees[:-1]}
    odd, even = _pade(small, fits, degrees[-1])
    if upper:
        out = lax.linalg.triangular_solve(even - odd, even + odd, left_side=True, lower=False)
    else:
        out = pnp.linalg.solve(even - odd, even + odd)

    most = pnp.max(squarings)

    def square(k: Any, x: Any) -> Any:
        more = (k < squarings)[..., None, None]
        return lax.cond(k < most, lambda x: pnp.where(more, _product(x, x), x), lambda x: x, x)

    out = lax.fori_loop(0, max_squarings, square, out)
    bad = (squarings > max_squarings)[..., None, None]
    return pnp.where(bad, pnp.full_like(out, np.nan), out)


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Exponentials of square matrices, by scaling and squaring of Padé approximants.

    Args:
      A: ``number[..., n, n]``.
      upper_triangular: the matrices are upper triangular, which permits a cheaper solve.
      max_squarings: the maximum number of squarings; NaN if that is insufficient.

    The algorithm is that of Higham, SIAM J. Matrix Anal. Appl. 26 (2005). It is differentiable in
    forward and reverse mode.

    >>> expm(np.zeros((2, 2), np.float32)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    check_square("expm", A)
    out: Array = _expm(A, upper=bool(upper_triangular), max_squarings=operator.index(max_squarings))
    return out


_FRECHET_METHODS = ("SPS", "blockEnlarge")


@compiled("both", name="expm_frechet")
def _expm_frechet(a, e, *, both):
    a, e = map(strong, promoted("expm_frechet", a, e, inexact))
    value, derivative = jvp(lambda x: _expm(x, upper=False, max_squarings=16), (a,), (e,))
    return (value, derivative) if both else derivative


def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Any:
    """The exponential of a matrix, and its Fréchet derivative in a direction.

    Args:
      A, E: the matrix and the direction, ``number[n, n]``.
      method: None, ``"SPS"`` or ``"blockEnlarge"``; all use forward-mode differentiation.
      compute_expm: also return the exponential, otherwise the derivative alone.

    Returns:
      The exponential and its derivative ``number[n, n]``, or the derivative alone.

    Raises:
      ValueError: if the method is unknown, or the shapes differ.

    >>> a, e = np.float32([[0, 1], [0, 0]]), np.float32([[1, 0], [0, 1]])
    >>> expm_frechet(a, e, compute_expm=False).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    check_square("expm_frechet", A, E)
    if method is not None and method not in _FRECHET_METHODS:
        raise ValueError(f"method must be None or one of {list(_FRECHET_METHODS)}, got {method!r}")
    if typeof(A).shape != typeof(E).shape:
        raise ValueError(
            f"expected A and E to be the same shape, got {typeof(A).shape} and {typeof(E).shape}"
        )
    return _expm_frechet(A, E, both=bool(compute_expm))


# Roots and other functions


@compiled(name="sqrtm")
def _sqrtm(a):
    return _differentiable_root(as_complex(as_inexact(a)))


@custom_jvp
def _differentiable_root(a: Any) -> Any:
    return _root_by_schur_form(a)


@_differentiable_root.defjvp
def _differentiable_root_jvp(primals: Any, tangents: Any) -> Any:
    root = _differentiable_root(*primals)
    return root, _solve_sylvester(root, root, tangents[0])


def _root_by_schur_form(a: Any) -> Any:
    t, z = lax.linalg.schur(a)
    return _product(_product(z, triangular_root(t)), adjoint(z))


def triangular_root(t: Any) -> Any:
    """The principal square root of a complex upper triangular matrix."""
    n = typeof(t).shape[-1]
    if not n:
        return t
    root = lax.sqrt(pnp.diagonal(t))
    places = pnp.arange(n)

    def column(j: Any, u: Any) -> Any:
        """The recurrence of Björck and Hammarling, from the diagonal upwards."""

        def element(k: Any, u: Any) -> Any:
            i = j - 1 - k
            known = (places > i) & (places < j)
            rest = t[i, j] - pnp.sum(pnp.where(known, u[i] * u[:, j], 0))
            bottom = root[i] + root[j]
            value = pnp.where(bottom == 0, 0, rest / pnp.where(bottom == 0, 1, bottom))
            value = pnp.where((bottom == 0) & (rest != 0), pnp.nan, value)
            return pnp.where(i >= 0, u.at[pnp.maximum(i, 0), j].set(value), u)

        return lax.fori_loop(0, n - 1, element, u) if n > 1 else u

    return lax.fori_loop(0, n, column, pnp.diag(root))


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The complex principal square root of a matrix; NaN if it does not exist.

    Args:
      A: ``number[n, n]``.
      blocksize: only 1.

    Returns:
      The complex root ``[n, n]``, whose eigenvalues have nonnegative real parts.

    Raises:
      NotImplementedError: if ``blocksize`` is not 1.

    Derivatives of any order solve Sylvester equations with the root; an eigenvalue 0 has none.

    >>> sqrtm(np.float32([[4, 0], [0, 9]])).real.round(4).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet: leave blocksize at 1")
    check_one_matrix("sqrtm", A)
    out: Array = _sqrtm(A)
    return out


def funm(A: ArrayLike, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of a matrix, by Parlett's recurrence on the Schur form.

    Args:
      A: ``number[n, n]``. Equal or close eigenvalues reduce the precision.
      func: an elementwise function, applied to the vector of eigenvalues.
      disp: return the result alone; otherwise also an estimate of the relative error.

    Returns:
      The complex matrix ``[n, n]``; without ``disp`` a tuple of it and the estimate.

    The derivative uses the eigenvectors, which must be independent.

    >>> funm(np.float32([[1, 0], [0, 2]]), lambda x: x * x).real.round(4).tolist()
    [[1.0, 0.0], [0.0, 4.0]]
    """
    check_one_matrix("funm", A)
    result, t, smallest = _function_of(func)(as_complex(as_inexact(pnp.asarray(A))))
    if disp:
        return result
    eps = dtypes.finfo(typeof(t).dtype).eps
    norm = pnp.linalg.norm(pnp.triu(t, 1), 1)
    guess = pnp.maximum(eps, eps / pnp.where(smallest == 0, eps, smallest) * norm)
    error = pnp.where(pnp.all(pnp.isfinite(result)), pnp.minimum(1.0, guess), pnp.inf)
    return result, lax.convert_element_type(error, dtypes.finfo(typeof(t).dtype).dtype)


def _function_of(func: Callable[[Any], Any]) -> Any:
    """A matrix function with its derivative; also the Schur form and the smallest gap."""

    @custom_jvp
    def function(a: Any) -> Any:
        t, z = lax.linalg.schur(a)
        out, smallest = _parlett(t, func(pnp.diagonal(t)))
        return _product(_product(z, out), adjoint(z)), t, smallest

    @function.defjvp
    def _function_jvp(primals: Any, tangents: Any) -> Any:
        (a,), (e,) = primals, tangents
        value, t, smallest = function(a)
        still = pnp.zeros_like(t), pnp.zeros_like(smallest)
        return (value, t, smallest), (change_of_function(func, a, e), *still)

    return function


def change_of_function(func: Callable[[Any], Any], a: Any, e: Any) -> Any:
    """Derivative of a function of a complex matrix in direction ``e``: the formula of Daleckii and
    Krein, with divided differences at the eigenvalues, whose eigenvectors must be independent."""
    values, vectors = lax.linalg.eig(a, compute_left_eigenvectors=False)
    f, slopes = jvp(func, (values,), (pnp.ones_like(values),))
    f, slopes = as_complex(f), as_complex(slopes)
    gaps = values[:, None] - values[None]
    scale = pnp.max(pnp.abs(values))
    eps = dtypes.finfo(typeof(a).dtype).eps
    close = pnp.abs(gaps) <= eps**0.5 * scale
    quotients = (f[:, None] - f[None]) / pnp.where(close, 1, gaps)
    quotients = pnp.where(close, 0.5 * (slopes[:, None] + slopes[None]), quotients)
    inner = quotients * _product(pnp.linalg.solve(vectors, e), vectors)
    return _product(_product(vectors, inner), pnp.linalg.inv(vectors))


@compiled(name="parlett")
def _parlett(t, values):
    n = typeof(t).shape[-1]
    f = pnp.diag(lax.convert_element_type(values, typeof(t).dtype))
    places = pnp.arange(n)
    one = pnp.ones((), dtypes.finfo(typeof(t).dtype).dtype)
    if n < 2:
        return f, one

    def diagonal(p: Any, state: Any) -> Any:
        def element(i: Any, state: Any) -> Any:
            f, smallest = state
            j = i + p
            inside = j < n
            j = pnp.minimum(j, n - 1)
            between = (places > i) & (places < j)
            rest = t[i, j] * (f[j, j] - f[i, i]) + pnp.sum(
                pnp.where(between, t[i] * f[:, j] - f[i] * t[:, j], 0)
            )
            gap = t[j, j] - t[i, i]
            value = pnp.where(gap == 0, rest, rest / pnp.where(gap == 0, 1, gap))
            f = pnp.where(inside, f.at[i, j].set(value), f)
            return f, pnp.where(inside, pnp.minimum(smallest, pnp.abs(gap)), smallest)

        return lax.fori_loop(0, n - 1, element, state)

    smallest = pnp.full((), pnp.inf, typeof(one).dtype)
    return lax.fori_loop(1, n, diagonal, (f, smallest))


@compiled("left", name="polar")
def _polar(a, *, left):
    u, s, vh = lax.linalg.svd(as_inexact(a), full_matrices=False)
    s = lax.convert_element_type(s, typeof(u).dtype)
    if left:
        return _product(u, vh), _product(u * s[..., None, :], adjoint(u))
    return _product(u, vh), _product(adjoint(vh) * s[..., None, :], vh)


def polar(
    a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Polar decomposition, ``a = U @ P`` with orthonormal ``U`` and positive semidefinite ``P``.

    Args:
      a: ``number[..., m, n]``.
      side: ``"right"``, or ``"left"`` for ``a = P @ U``.
      method: ``"qdwh"`` or ``"svd"``; both use the singular value decomposition.
      eps, max_iterations: ignored.

    Returns:
      ``U[..., m, n]`` and ``P``.

    Raises:
      ValueError: if the side or the method is unknown.

    >>> _, p = polar(np.float32([[0, -2], [3, 0]]))
    >>> [round(float(v), 4) for v in p.diagonal()]
    [3.0, 2.0]
    """
    check_matrices("polar", a)
    if side not in ("right", "left"):
        raise ValueError(f"The argument `side` must be either 'right' or 'left', got {side!r}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method}.")
    out: tuple[Array, Array] = _polar(a, left=side == "left")
    return out


# Matrix equations


@compiled(name="solve_sylvester")
def _solve_sylvester(a, b, c):
    """The solution by the Schur forms; derivatives solve further equations."""
    a, b, c = in_common_dtype(a, b, c)

    def left_side(x: Any) -> Any:
        return _product(a, x) + _product(x, b)

    fixed = [lax.stop_gradient(x) for x in (a, b)]
    real = not is_complex(c)
    return lax.custom_linear_solve(
        left_side, c, lambda _, y: _by_schur_forms(*fixed, y, real),
        lambda _, y: _by_schur_forms(fixed[0].T, fixed[1].T, y, real),
    )  # fmt: skip


def _by_schur_forms(a: Any, b: Any, c: Any, real: bool) -> Any:
    ta, za = lax.linalg.schur(as_complex(a))
    tb, zb = lax.linalg.schur(as_complex(b))
    f = _product(_product(adjoint(za), as_complex(c)), zb)
    m, n = typeof(f).shape
    eye = pnp.eye(m, dtype=typeof(f).dtype)

    def column(j: Any, y: Any) -> Any:
        right = f[:, j] - _product(y, pnp.where(pnp.arange(n) < j, tb[:, j], 0))
        left = ta + tb[j, j] * eye
        solved = lax.linalg.triangular_solve(left, right[:, None], left_side=True)
        return y.at[:, j].set(solved[:, 0])

    y = lax.fori_loop(0, n, column, pnp.zeros_like(f))
    x = _product(_product(za, y), adjoint(zb))
    return lax.real(x) if real else x


def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """Solution ``X`` of the Sylvester equation ``A @ X + X @ B = C``.

    Args:
      A, B, C: ``number[m, m]``, ``number[n, n]``, ``number[m, n]``.
      method: ``"schur"`` or ``"eigen"``; both use the algorithm of Bartels and Stewart
        (1972).
      tol: ignored.

    Returns:
      ``number[m, n]``; not finite if ``A`` and ``-B`` share an eigenvalue.

    Raises:
      ValueError: if the method is unknown, or sizes do not match.

    >>> solve_sylvester(np.float32([[1]]), np.float32([[3]]), np.float32([[8]])).tolist()
    [[2.0]]
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f"method must be 'schur' or 'eigen', got {method!r}")
    check_one_matrix("solve_sylvester", A, B)
    check_arrays("linalg.solve_sylvester", C)
    if typeof(C).shape != (typeof(A).shape[0], typeof(B).shape[0]):
        raise ValueError(
            f"linalg.solve_sylvester: C of shape {typeof(C).shape} does not match A of shape "
            f"{typeof(A).shape} and B of shape {typeof(B).shape}"
        )
    out: Array = _solve_sylvester(A, B, C)
    return out
