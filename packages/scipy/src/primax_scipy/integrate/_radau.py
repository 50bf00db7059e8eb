"""Radau IIA method of order 5, for stiff systems."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import jacfwd, lax
from primax_core.extend import typeof

from ._runge_kutta import Function, Method, Trial, root_mean_square

_ROOT = math.sqrt(6)
_C: Final = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1])
_A: Final = np.array(
    [
        [(88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225],
        [(296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225],
        [(16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9],
    ]
)
_ERROR: Final = np.array([-13 - 7 * _ROOT, -13 + 7 * _ROOT, -1]) / 3
_NEWTON_STEPS: Final = 7


def _transform() -> tuple[float, complex, np.ndarray, np.ndarray]:
    """The real eigenvalue of the inverse of the tableau, one complex eigenvalue, the eigenvectors
    and their inverse, with the real eigenvector first and then the complex one."""
    values, vectors = np.linalg.eig(np.linalg.inv(_A))
    real = int(np.argmin(np.abs(values.imag)))
    above = int(np.argmax(values.imag))
    chosen = [real, above, 3 - real - above]
    vectors = vectors[:, chosen]
    vectors[:, 0] = np.real(vectors[:, 0] / vectors[2, 0])
    vectors[:, 2] = np.conj(vectors[:, 1])
    return (
        float(values[real].real), complex(values[above]), vectors, np.linalg.inv(vectors),
    )  # fmt: skip


_REAL, _COMPLEX, _T, _TI = _transform()
# The interpolant through the three stages
_NODES: Final = np.linalg.inv(np.stack([np.ones(2), _C[:2]], 1))


def _solved(factors: Any, right: Any) -> Any:
    lu, _, order = factors
    right = right[order][:, None]
    right = lax.linalg.triangular_solve(lu, right, left_side=True, lower=True, unit_diagonal=True)
    return lax.linalg.triangular_solve(lu, right, left_side=True)[:, 0]


def _combined(matrix: Any, rows: Any) -> Any:
    """``matrix @ rows`` for a small constant matrix, in the dtype of the rows."""
    return pnp.matmul(
        pnp.asarray(matrix, dtype=typeof(rows).dtype), rows, precision=lax.Precision.HIGHEST
    )


def _newton(fun: Function, t: Any, y: Any, h: Any, scale: Any, factors: Any) -> Any:
    """The increments ``[3, n]`` of the stages by simplified Newton steps, convergence, and the
    number of steps.

    The system is split by the eigenvectors of the tableau (Hairer and Wanner, *Solving Ordinary
    Differential Equations II*, 1996, section IV.8).
    """
    real, dtype = typeof(y).dtype, np.result_type(typeof(y).dtype, np.complex64)
    nodes = pnp.asarray(_C, dtype=typeof(t).dtype)
    first, second = factors

    def going(state: Any) -> Any:
        _, _, _, k, converged, diverged = state
        return ~converged & ~diverged & (k < _NEWTON_STEPS)

    def step(state: Any) -> Any:
        z, w, before, k, _, _ = state
        f = lax.map(lambda row: fun(t + row[0] * h, y + row[1]), (nodes, z))
        f = lax.convert_element_type(f, dtype)
        g = _combined(_TI[:2], f)
        gap = [g[0].real - _REAL / h * w[0].real, g[1] - lax.convert_element_type(
            lax.complex(*[pnp.asarray(v, dtype=real) / h for v in (_COMPLEX.real, _COMPLEX.imag)]),
            dtype) * w[1]]  # fmt: skip
        change = [_solved(first, gap[0]), _solved(second, gap[1])]
        w = w + pnp.stack([lax.convert_element_type(change[0], dtype), change[1]])
        update = _combined(_T[:, 0].real[:, None], change[0][None])
        update = update + 2 * lax.real(_combined(_T[:, 1][:, None], change[1][None]))
        size = root_mean_square(update / scale[None])
        rate = pnp.where(k > 0, size / pnp.where(before > 0, before, 1), 0.5)
        done = (size == 0) | (size * rate / pnp.maximum(1 - rate, 1e-3) < 1e-3)
        return z + update, w, size, k + 1, done & (rate < 1), (rate >= 1) | ~pnp.isfinite(size)

    start = pnp.zeros((3, *typeof(y).shape), real)
    begin = (start, pnp.zeros((2, *typeof(y).shape), dtype), pnp.zeros((), real), 0, False, False)
    z, _, _, k, converged, _ = lax.while_loop(going, step, begin)
    return z, converged, k


def _step(fun: Function, t: Any, y: Any, f: Any, h: Any, scale: Any) -> Trial:
    """One step: a Jacobian, a real and a complex factorization, and Newton steps."""
    n, dtype = typeof(y).size, typeof(y).dtype
    # The Newton iteration is not differentiated: a correction below restores derivatives.
    jacobian = jacfwd(lambda x: fun(t, x))(y)
    fixed = lax.stop_gradient(jacobian)
    eye = pnp.eye(n, dtype=dtype)
    first = lax.linalg.lu(_REAL / h * eye - fixed)
    shift = lax.complex(*[pnp.asarray(v, dtype=dtype) / h for v in (_COMPLEX.real, _COMPLEX.imag)])
    wide = typeof(shift).dtype
    wide_eye, wide_jacobian = (lax.convert_element_type(v, wide) for v in (eye, fixed))
    second = lax.linalg.lu(shift * wide_eye - wide_jacobian)
    tolerance = scale(y, y)
    frozen = (lax.stop_gradient(v) for v in (t, y, h, tolerance))
    z, converged, k = _newton(_frozen(fun), *frozen, (first, second))
    z = lax.stop_gradient(z)
    z = _corrected(fun, t, y, h, z)
    new = y + z[2]
    last = fun(t + h, new)
    weighted = _combined(_ERROR[None], z)[0] / h
    estimate = _solved(first, f + weighted)
    error = root_mean_square(estimate / scale(y, new))
    # A second filtering damps the stiff parts of the estimate.
    again = _solved(first, fun(t, y + estimate) + weighted)
    error = pnp.where(error > 1, root_mean_square(again / scale(y, new)), error)
    error = pnp.where(converged, error, pnp.inf)
    slopes = pnp.stack([z[i] / _C[i] - z[2] for i in (0, 1)])
    slopes = pnp.stack([slopes[i] / (1 - _C[i]) for i in (0, 1)])
    inner = _combined(_NODES, slopes)
    return Trial(
        new, last, error, pnp.concatenate([z[2:], inner]), 3 * k + 2, 1, 2,
    )  # fmt: skip


def _frozen(fun: Function) -> Function:
    return lambda t, y: lax.stop_gradient(fun(t, y))


def _corrected(fun: Function, t: Any, y: Any, h: Any, z: Any) -> Any:
    """The stages with derivatives by the implicit function theorem."""

    def residual(z: Any) -> Any:
        nodes = pnp.asarray(_C, dtype=typeof(t).dtype)
        f = lax.map(lambda row: fun(t + row[0] * h, y + row[1]), (nodes, z))
        return z - h * _combined(_A, f)

    def solve(linear: Any, right: Any) -> Any:
        n = typeof(right).size
        matrix = jacfwd(lambda v: pnp.ravel(linear(v.reshape(typeof(right).shape))))(
            pnp.zeros(n, typeof(right).dtype)
        )
        return pnp.linalg.solve(matrix, pnp.ravel(right)).reshape(typeof(right).shape)

    return lax.custom_root(residual, z, lambda _, guess: guess, solve)


RADAU: Final = Method(4, 3, _step)
"""Radau IIA of three stages. The estimate has order 3."""
