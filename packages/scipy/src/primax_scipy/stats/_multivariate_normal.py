"""Multivariate normal distribution with mean ``mean`` and covariance ``cov``."""

from __future__ import annotations

import math
from typing import Any

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled

from .._functions import floats


@compiled(name="logpdf")
def _logpdf(x, mean, cov):
    x, mean, cov = _in_one_dtype(x, mean, cov)
    if not typeof(mean).shape:
        d = x - mean
        return -0.5 * (lax.square(d) / cov + math.log(2 * math.pi) + lax.log(cov))
    n = typeof(mean).shape[-1]
    if not typeof(cov).shape:
        d = x - mean
        square = pnp.sum(lax.square(d), -1) / cov
        return -0.5 * (square + n * (math.log(2 * math.pi) + lax.log(cov)))
    factor = lax.linalg.cholesky(cov)
    d = x - mean
    batch = lax.broadcast_shapes(typeof(d).shape[:-1], typeof(cov).shape[:-2])
    d = pnp.broadcast_to(d, (*batch, n))[..., None]
    factor = pnp.broadcast_to(factor, (*batch, n, n))
    y = lax.linalg.triangular_solve(factor, d, left_side=True, lower=True)
    logs = pnp.sum(lax.log(pnp.diagonal(factor, axis1=-2, axis2=-1)), -1)
    return -0.5 * pnp.sum(lax.square(y), (-2, -1)) - 0.5 * n * math.log(2 * math.pi) - logs


def _in_one_dtype(*xs: Any) -> list[Any]:
    """Operands promoted to one floating-point dtype, with unchanged shapes."""
    dtype = typeof(floats("multivariate_normal.logpdf", *[pnp.ravel(x)[:0] for x in xs])[0]).dtype
    return [lax.convert_element_type(x, dtype) for x in xs]


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """Log-density.

    Args:
      x: ``float[..., n]``.
      mean: ``float[..., n]``, or a number.
      cov: ``float[..., n, n]``, positive definite; or a number, the variance of independent
        elements.
      allow_singular: must be ``None``.

    Returns:
      ``float[...]``, NaN if the covariance is not positive definite.

    Raises:
      NotImplementedError: if ``allow_singular`` is specified.
      ValueError: if shapes do not match.

    >>> import numpy as np
    >>> round(float(logpdf(np.zeros(2), np.zeros(2), np.eye(2))), 4)
    -1.8379
    """
    if allow_singular is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
    check_arrays("multivariate_normal.logpdf", x, mean, cov)
    vector, matrix = typeof(mean).shape, typeof(cov).shape
    if not vector and matrix:
        raise ValueError("multivariate_normal.logpdf: cov must be a number if mean is a number")
    if vector:
        n = vector[-1]
        if not typeof(x).shape or typeof(x).shape[-1] not in (1, n):
            raise ValueError(
                f"multivariate_normal.logpdf got incompatible shapes of x {typeof(x).shape} and "
                f"mean {vector}"
            )
        if matrix and (len(matrix) < 2 or matrix[-2:] != (n, n)):
            raise ValueError(
                f"multivariate_normal.logpdf got incompatible shapes of mean {vector} and cov "
                f"{matrix}"
            )
    out: Array = _logpdf(x, mean, cov)
    return out


@compiled(name="pdf")
def _pdf(x, mean, cov):
    return lax.exp(logpdf(x, mean, cov))


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Density; arguments are those of :func:`logpdf`."""
    check_arrays("multivariate_normal.pdf", x, mean, cov)
    out: Array = _pdf(x, mean, cov)
    return out
