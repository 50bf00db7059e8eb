"""Structured matrices: Toeplitz, Hankel, companion and others."""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import lax, vmap
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, DTypeLike
from primax_numpy.declaring import as_inexact, check_arrays, compiled

from .._functions import promoted_floats


def block_diag(*arrs: Any) -> Array:
    """A block diagonal matrix.

    Args:
      arrs: matrices; vectors are rows, numbers are matrices of one element.

    Returns:
      The matrix, of shape ``[1, 0]`` without blocks.

    Raises:
      ValueError: if an array has more than two axes.
      TypeError: if an argument is not an array.

    >>> block_diag(1.0, np.float32([[2, 3]])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 2.0, 3.0]]
    """
    check_arrays("linalg.block_diag", *arrs)
    for i, a in enumerate(arrs):
        if typeof(a).ndim > 2:
            raise ValueError(
                f"Arguments to block_diag must have at most 2 dimensions, got shape "
                f"{typeof(a).shape} at argument {i}."
            )
    out: Array = _block_diag(*arrs) if arrs else pnp.zeros((1, 0))
    return out


@compiled(name="block_diag")
def _block_diag(*arrs):
    dtype = pnp.result_type(*arrs)
    blocks = [lax.convert_element_type(pnp.atleast_2d(a), dtype) for a in arrs]
    width = sum(typeof(b).shape[1] for b in blocks)
    rows, done = [], 0
    zero = lax.full((), 0, dtype)
    for b in blocks:
        n = typeof(b).shape[1]
        rows.append(lax.pad(b, zero, [(0, 0, 0), (done, width - done - n, 0)]))
        done += n
    return lax.concatenate(rows, 0)


def _vectors(name: str, *xs: Any) -> None:
    check_arrays(f"linalg.{name}", *xs)


def _gathered(x: Any, places: Any) -> Any:
    """Elements of the last axis at indices ``[rows, columns]``."""
    return pnp.take(x, places, axis=-1)


@compiled("opposite", name="toeplitz")
def _diagonals(c, r, *, opposite):
    """Matrices with constant diagonals (or antidiagonals), gathered from the joined column and
    row."""
    c, r = pnp.atleast_1d(c), pnp.atleast_1d(r)
    m, n = typeof(c).shape[-1], typeof(r).shape[-1]
    batch = lax.broadcast_shapes(typeof(c).shape[:-1], typeof(r).shape[:-1])
    c, r = (lax.convert_element_type(v, pnp.result_type(c, r)) for v in (c, r))
    c, r = pnp.broadcast_to(c, (*batch, m)), pnp.broadcast_to(r, (*batch, n))
    i, j = np.arange(m)[:, None], np.arange(n)[None, :]
    if opposite:
        return _gathered(pnp.concatenate([c, r[..., 1:]], -1), i + j)
    return _gathered(pnp.concatenate([pnp.flip(r[..., 1:], -1), c], -1), i - j + n - 1)


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Toeplitz matrices: constant along diagonals.

    Args:
      c: the first columns ``[..., m]``.
      r: the first rows ``[..., n]``, whose first elements are ignored; by default the conjugate of
        ``c``.

    Returns:
      ``[..., m, n]``.

    >>> toeplitz(np.int32([1, 2, 3])).tolist()
    [[1, 2, 3], [2, 1, 2], [3, 2, 1]]
    """
    if r is None:
        _vectors("toeplitz", c)
        r = pnp.conj(c) if typeof(c).dtype.kind == "c" else c
    _vectors("toeplitz", c, r)
    out: Array = _diagonals(c, r, opposite=False)
    return out


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Hankel matrices: constant along antidiagonals.

    Args:
      c: the first columns ``[..., m]``.
      r: the last rows ``[..., n]``, whose first elements are ignored; by default zeros.

    Returns:
      ``[..., m, n]``.

    Raises:
      TypeError: if an argument is not an array. Lists are not converted.

    The derivatives with respect to both arguments are sums along antidiagonals.

    >>> hankel(np.int32([1, 2, 3])).tolist()
    [[1, 2, 3], [2, 3, 0], [3, 0, 0]]
    >>> hankel(np.int32([1, 2, 3]), np.int32([3, 4])).tolist()
    [[1, 2], [2, 3], [3, 4]]
    """
    _vectors("hankel", c)
    r = pnp.zeros_like(c) if r is None else r
    _vectors("hankel", c, r)
    out: Array = _diagonals(c, r, opposite=True)
    return out


@compiled(name="circulant")
def _circulant(c):
    c = pnp.atleast_1d(c)
    n = typeof(c).shape[-1]
    return _gathered(c, (np.arange(n)[:, None] - np.arange(n)[None, :]) % max(n, 1))


def circulant(c: ArrayLike) -> Array:
    """Circulant matrices: each column is the previous one rotated down by one.

    Args:
      c: the first columns ``[..., n]``.

    Returns:
      Matrices ``[..., n, n]`` of the dtype of ``c``.

    Raises:
      TypeError: if ``c`` is not an array. Lists are not converted.

    The product with a vector is the periodic convolution with ``c``.

    >>> circulant(np.int32([1, 2, 3])).tolist()
    [[1, 3, 2], [2, 1, 3], [3, 2, 1]]
    """
    _vectors("circulant", c)
    out: Array = _circulant(c)
    return out


@compiled(name="companion")
def _companion(a):
    a = as_inexact(a)
    head = -a[..., 1:] / a[..., :1]
    n = typeof(head).shape[-1]
    below = pnp.broadcast_to(
        pnp.eye(n - 1, n, dtype=typeof(a).dtype), (*typeof(a).shape[:-1], n - 1, n)
    )
    return pnp.concatenate([head[..., None, :], below], -2)


def companion(a: ArrayLike) -> Array:
    """Companion matrices ``[..., n - 1, n - 1]``, whose eigenvalues are the roots of polynomials.

    Args:
      a: coefficients ``[..., n]``, the highest power first.

    Returns:
      Matrices ``[..., n - 1, n - 1]``, with ones below the diagonal.

    Raises:
      ValueError: if there are fewer than two coefficients.

    The coefficients are divided by the first one.

    >>> companion(np.float32([2, -6, 4])).tolist()
    [[3.0, -2.0], [1.0, 0.0]]
    """
    _vectors("companion", a)
    if typeof(a).ndim < 1 or typeof(a).shape[-1] < 2:
        raise ValueError(f"companion needs at least two coefficients, got shape {typeof(a).shape}")
    out: Array = _companion(a)
    return out


_MODES = ("full", "valid", "same")


@compiled("n", "mode", name="convolution_matrix")
def _convolution_matrix(a, *, n, mode):
    m = typeof(a).shape[-1]
    places = np.arange(m + n - 1)[:, None] - np.arange(n)[None, :]
    if mode != "full":
        keep = max(m, n) if mode == "same" else max(m, n) - min(m, n) + 1
        first = (min(m, n) - 1) // 2 if mode == "same" else min(m, n) - 1
        places = places[first : first + keep]
    inside = (places >= 0) & (places < m)
    elements = _gathered(a, np.where(inside, places, 0))
    return pnp.where(inside, elements, pnp.zeros((), typeof(a).dtype))


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Matrices of the convolution of vectors of ``n`` elements with a vector.

    Args:
      a: the vectors ``[..., m]``.
      n: the number of columns.
      mode: ``"full"``, ``"valid"`` or ``"same"``, as for `convolve`.

    Returns:
      Matrices ``[..., size, n]``; the size is ``m + n - 1`` if the mode is ``"full"``.

    Raises:
      ValueError: if the mode is unknown, the vector is empty or ``n`` is not positive.

    >>> convolution_matrix(np.int32([1, 2]), 3).tolist()
    [[1, 0, 0], [2, 1, 0], [0, 2, 1], [0, 0, 2]]
    >>> convolution_matrix(np.int32([1, 2]), 3, mode="valid").tolist()
    [[2, 1, 0], [0, 2, 1]]
    """
    _vectors("convolution_matrix", a)
    n = operator.index(n)
    if n <= 0:
        raise ValueError(f"n must be a positive integer, got {n}")
    if not typeof(a).shape or not typeof(a).shape[-1]:
        raise ValueError("convolution_matrix needs a nonempty vector")
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {list(_MODES)}, got {mode!r}")
    out: Array = _convolution_matrix(a, n=n, mode=mode)
    return out


@compiled(name="fiedler")
def _fiedler(a):
    a = pnp.atleast_1d(a)
    return pnp.abs(a[..., :, None] - a[..., None, :])


def fiedler(a: ArrayLike) -> Array:
    """Fiedler matrices: the pairwise distances of numbers.

    Args:
      a: the numbers ``[..., n]``.

    Returns:
      Symmetric matrices ``[..., n, n]`` with zeros on the diagonal, of the dtype of ``a``.

    Raises:
      TypeError: if ``a`` is not an array. Lists are not converted.

    >>> fiedler(np.int32([1, 4, 6])).tolist()
    [[0, 3, 5], [3, 0, 2], [5, 2, 0]]
    """
    _vectors("fiedler", a)
    out: Array = _fiedler(a)
    return out


@compiled(name="fiedler_companion")
def _fiedler_companion(a):
    a = as_inexact(a)
    n = typeof(a).shape[-1] - 1
    a = a / a[0]
    c = pnp.zeros((n, n), typeof(a).dtype)
    if n == 1:
        return c.at[0, 0].set(-a[1])
    even = np.arange(0, n - 2, 2)
    c = c.at[even, even + 2].set(1)
    upper = np.arange(0, n - 1, 2)
    c = c.at[upper, upper + 1].set(-a[2::2][: len(upper)])
    c = c.at[0, 0].set(-a[1]).at[1, 0].set(1)
    lower = np.arange(2, n, 2)
    c = c.at[lower, lower - 1].set(-a[3::2][: len(lower)])
    down = np.arange(3, n, 2)
    return c.at[down, down - 2].set(1)


def fiedler_companion(a: ArrayLike) -> Array:
    """Fiedler companion matrix: a pentadiagonal matrix whose eigenvalues are the roots of a
    polynomial.

    Args:
      a: coefficients ``[..., n]``, the highest power first.

    Returns:
      ``[..., n - 1, n - 1]``, empty for fewer than two coefficients. Fiedler, Linear Algebra
      Appl. 372 (2003).

    Raises:
      ValueError: if ``a`` is a number.

    >>> fiedler_companion(np.float32([1, -6, 11, -6])).tolist()
    [[6.0, -11.0, 1.0], [1.0, 0.0, 0.0], [0.0, 6.0, 0.0]]
    """
    _vectors("fiedler_companion", a)
    a = pnp.asarray(a)
    shape = typeof(a).shape
    if not shape:
        raise ValueError("fiedler_companion takes vectors, got a number")
    if shape[-1] < 2:
        return pnp.zeros((*shape[:-1], 0, 0), typeof(as_inexact(a)).dtype)
    build = _fiedler_companion
    for _ in shape[:-1]:
        build = vmap(build)
    out: Array = build(a)
    return out


@compiled(name="leslie")
def _leslie(f, s):
    f, s = promoted_floats("leslie", f, s)
    n = typeof(f).shape[-1]
    batch = lax.broadcast_shapes(typeof(f).shape[:-1], typeof(s).shape[:-1])
    top = pnp.broadcast_to(f, (*batch, n))[..., None, :]
    s = pnp.broadcast_to(s, (*batch, n - 1))
    diagonal = pnp.broadcast_to(pnp.eye(n - 1, n, dtype=typeof(f).dtype), (*batch, n - 1, n))
    rows = s[..., :, None] * diagonal
    return pnp.concatenate([top, rows], -2)


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie matrices of population models: fecundities in the first row, survival rates below the
    diagonal.

    Args:
      f: fecundities ``[..., n]``.
      s: survival rates ``[..., n - 1]``.

    Returns:
      Matrices ``[..., n, n]``.

    Raises:
      ValueError: if the sizes do not match.

    >>> leslie(np.float32([0, 2, 1]), np.float32([0.5, 0.25])).tolist()
    [[0.0, 2.0, 1.0], [0.5, 0.0, 0.0], [0.0, 0.25, 0.0]]
    """
    _vectors("leslie", f, s)
    x, y = typeof(f).shape, typeof(s).shape
    if not x or not y or x[-1] != y[-1] + 1 or x[-1] < 2:
        raise ValueError(f"leslie: f must have one element more than s, got shapes {x} and {y}")
    out: Array = _leslie(f, s)
    return out


# Matrices determined by their size


def _constant(values: Any, dtype: Any = None) -> Array:
    return pnp.asarray(np.asarray(values), dtype=dtypes.default_float() if dtype is None else dtype)


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform.

    Args:
      n: the number of rows and columns.
      scale: ``"sqrtn"`` to divide by the root of ``n``, ``"n"`` to divide by ``n``.
      dtype: a complex dtype.

    Returns:
      A complex matrix ``[n, n]``, by default of the default complex dtype.

    Raises:
      ValueError: if the scale is unknown.

    Without a scale, the product with a vector is its FFT. With ``"sqrtn"`` the matrix is unitary.

    >>> dft(2).real.tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    >>> dft(2, "n").real.tolist()
    [[0.5, 0.5], [0.5, -0.5]]
    """
    n = operator.index(n)
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    exponents = np.outer(np.arange(n), np.arange(n)) % max(n, 1)
    matrix = np.exp(-2j * math.pi / max(n, 1) * exponents)
    factor = {None: 1.0, "sqrtn": math.sqrt(n), "n": float(n)}[scale]
    return _constant(
        matrix / factor if n else matrix, dtypes.default_complex() if dtype is None else dtype
    )


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Hadamard matrix of 1 and -1, by Sylvester's construction.

    Args:
      n: the number of rows and columns, a power of 2.
      dtype: the dtype of the matrix, by default the integer dtype.

    Returns:
      A symmetric matrix ``[n, n]``, whose rows are orthogonal.

    Raises:
      ValueError: if ``n`` is not a power of 2.

    >>> hadamard(2).tolist()
    [[1, 1], [1, -1]]
    >>> hadamard(4, np.float32)[3].tolist()
    [1.0, -1.0, -1.0, 1.0]
    """
    n = operator.index(n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    matrix = np.ones((1, 1), np.int8)
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return _constant(matrix, dtype)


def helmert(n: int, full: bool = False) -> Array:
    """Helmert matrix ``[n - 1, n]``: orthonormal rows, orthogonal to the vector of ones.

    Args:
      n: the number of columns.
      full: prepend a row of equal elements: ``[n, n]``.

    Returns:
      The matrix of the default float dtype.

    Raises:
      ValueError: if ``n`` is not positive.

    >>> [[round(float(v), 4) for v in row] for row in helmert(3)]
    [[0.7071, -0.7071, 0.0], [0.4082, 0.4082, -0.8165]]
    """
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"helmert: n must be positive, got {n}")
    k = np.arange(n)
    matrix = np.tril(np.ones((n, n)), -1) - np.diag(k)
    matrix[0] = 1
    size = k * (k + 1.0)
    size[0] = n
    matrix = matrix / np.sqrt(size)[:, None]
    return _constant(matrix if full else matrix[1:])


def hilbert(n: int) -> Array:
    """Hilbert matrix, with the elements ``1 / (i + j + 1)``.

    Args:
      n: the number of rows and columns, a Python integer; 0 or less gives an empty matrix.

    Returns:
      A symmetric matrix ``[n, n]`` of the default float dtype. Its condition number grows
      exponentially.

    Raises:
      TypeError: if ``n`` is not an integer.

    The inverse is :func:`invhilbert`.

    >>> [[round(float(v), 4) for v in row] for row in hilbert(2)]
    [[1.0, 0.5], [0.5, 0.3333]]
    """
    k = np.arange(operator.index(n))
    return _constant(1 / (k[:, None] + k[None, :] + 1.0))


def invhilbert(n: int) -> Array:
    """Inverse Hilbert matrix, computed in integers and rounded to floats.

    Args:
      n: the number of rows and columns, a Python integer.

    Returns:
      A symmetric matrix ``[n, n]`` of the default float dtype.

    Raises:
      TypeError: if ``n`` is not an integer.

    The elements of large matrices are not exact, because they are rounded to floats.

    >>> invhilbert(2).tolist()
    [[4.0, -6.0], [-6.0, 12.0]]
    >>> invhilbert(3)[2].tolist()
    [30.0, -180.0, 180.0]
    """
    n = operator.index(n)
    choose = math.comb

    def element(i: int, j: int) -> float:
        value = (i + j + 1) * choose(n + i, n - j - 1) * choose(n + j, n - i - 1)
        return float((-1) ** (i + j) * value * choose(i + j, i) ** 2)

    return _constant(np.array([[element(i, j) for j in range(n)] for i in range(n)]).reshape(n, n))


_KINDS = ("symmetric", "lower", "upper")


def _check_kind(kind: str | None) -> str:
    kind = "symmetric" if kind is None else kind
    if kind not in _KINDS:
        raise ValueError(f"Expected kind to be on of: {list(_KINDS)}; got {kind}")
    return kind


_MOST_ROWS: Final = {"symmetric": 515, "lower": 1030, "upper": 1030}
"""Pascal matrices of more rows have binomial coefficients beyond ``float64``."""


def _checked_rows(name: str, n: int, kind: str) -> int:
    rows = operator.index(n)
    if not 0 <= rows <= _MOST_ROWS[kind]:
        raise ValueError(
            f"{name}: the number of rows must be between 0 and {_MOST_ROWS[kind]} for "
            f"kind={kind!r}, got {rows}: larger matrices have numbers beyond float64"
        )
    return rows


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal matrix of binomial coefficients.

    Args:
      n: the number of rows and columns.
      kind: ``"symmetric"``, the default, ``"lower"`` or ``"upper"``.

    Returns:
      The matrix ``[n, n]`` of the default float dtype.

    Raises:
      ValueError: if the kind is unknown, or for more than 515 rows (``"lower"`` and ``"upper"``:
        1030), whose numbers are beyond ``float64``.

    The symmetric matrix is the product of the lower and the upper one.

    >>> pascal(3).tolist()
    [[1.0, 1.0, 1.0], [1.0, 2.0, 3.0], [1.0, 3.0, 6.0]]
    >>> pascal(3, "lower").tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 2.0, 1.0]]
    """
    kind = _check_kind(kind)
    n = _checked_rows("pascal", n, kind)
    if kind == "symmetric":
        values = [[math.comb(i + j, i) for j in range(n)] for i in range(n)]
    else:
        values = [[math.comb(i, j) for j in range(n)] for i in range(n)]
    matrix = np.array(values, float).reshape(n, n)
    return _constant(matrix.T if kind == "upper" else matrix)


def invpascal(n: int, kind: str | None = None) -> Array:
    """Inverse of :func:`pascal`, computed in integers and rounded to floats.

    Args:
      n: the number of rows and columns.
      kind: ``"symmetric"``, the default, ``"lower"`` or ``"upper"``.

    Returns:
      The matrix ``[n, n]`` of the default float dtype.

    Raises:
      ValueError: if the kind is unknown, or for more rows than :func:`pascal` has.

    >>> invpascal(3)[2].tolist()
    [1.0, -2.0, 1.0]
    """
    kind = _check_kind(kind)
    n = _checked_rows("invpascal", n, kind)
    lower = [[(-1) ** (i - j) * math.comb(i, j) for j in range(n)] for i in range(n)]
    if kind == "symmetric":  # the product of the inverse factors
        values = [
            [sum(lower[k][i] * lower[k][j] for k in range(n)) for j in range(n)] for i in range(n)
        ]
        return _constant(np.array(values, float).reshape(n, n))
    matrix = np.array(lower, float).reshape(n, n)
    return _constant(matrix.T if kind == "upper" else matrix)
