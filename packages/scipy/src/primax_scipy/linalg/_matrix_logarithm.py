"""Logarithm of a matrix."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import custom_jvp, lax, vmap
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, compiled

from ._equations import _product
from ._matrices import adjoint, check_square, identity_like
from ._matrix_functions import change_of_function, triangular_root
from ._schur import as_complex

_CLOSE: Final = 0.264
"""Distance from the identity up to which the approximant of degree 7 is exact to rounding in
double precision."""

_NODES: Final = tuple((0.5 * (x + 1), 0.5 * w) for x, w in zip(*np.polynomial.legendre.leggauss(7)))


@custom_jvp
def _logarithm(a: Any) -> Any:
    """Inverse scaling and squaring of the Schur form."""
    t, z = lax.linalg.schur(a)
    eye = identity_like(t)
    values = pnp.diagonal(t)

    def distance(t: Any) -> Any:
        return pnp.max(pnp.sum(pnp.abs(t - eye), 0), initial=0)

    def going(state: Any) -> Any:
        k, t = state
        return (k < 100) & (distance(t) > _CLOSE)

    def root(state: Any) -> Any:
        k, t = state
        return k + 1, triangular_root(t)

    count, near = lax.while_loop(going, root, (0, t))
    x = near - eye
    out = pnp.zeros_like(x)
    # The Padé approximant in partial fractions: the Gauss-Legendre rule for an integral
    for node, weight in _NODES:
        left = eye + node * x
        out = out + weight * lax.linalg.triangular_solve(left, x, left_side=True, lower=False)
    real = dtypes.finfo(typeof(t).dtype).dtype
    out = out * as_complex(pnp.exp2(lax.convert_element_type(count, real)))
    out = pnp.where(eye != 0, pnp.log(values)[:, None] * eye, out)
    return _product(_product(z, out), adjoint(z))


@_logarithm.defjvp
def _logarithm_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (e,) = primals, tangents
    return _logarithm(a), change_of_function(pnp.log, a, e)


@compiled(name="logm")
def _logm(a):
    logarithm = _logarithm
    for _ in typeof(a).shape[:-2]:
        logarithm = vmap(logarithm)
    return logarithm(as_complex(as_inexact(a)))


def logm(A: ArrayLike) -> Array:
    """The complex principal logarithms of matrices, the inverse of :func:`expm`.

    Args:
      A: ``number[..., n, n]`` without eigenvalue 0.

    Returns:
      The complex logarithms ``[..., n, n]``, whose eigenvalues have imaginary parts in [-π, π].

    Raises:
      ValueError: if the matrices are not square.

    Inverse scaling and squaring of the Schur form (Higham, *Functions of Matrices*, 2008, chapter
    11), on the CPU only. The derivative uses the eigenvectors, which must be independent.

    >>> import numpy as np
    >>> logm(np.float32([[1, 1], [0, 1]])).real.round(4).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    check_square("logm", A)
    out: Array = _logm(A)
    return out
