"""Polynomial fits by least squares."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays
from ._functions import compiled
from ._promotion import repeated
from ._reduction_helpers import float_of, is_complex_dtype, real_of, squares
from ._statistics import scalar


def _powers(x: Any, order: int) -> Any:
    """Vandermonde matrix ``[points, order]``, from the highest power down."""
    n = typeof(x).shape[0]
    column = lax.full((n,), scalar(1, typeof(x).dtype))
    columns = [column]
    for _ in range(order - 1):
        column = lax.mul(column, x)
        columns.append(column)
    return lax.concatenate([lax.expand_dims(c, (1,)) for c in reversed(columns)], 1)


def _dot(a: Any, b: Any) -> Any:
    return lax.dot_general(a, b, (((1,), (0,)), ((), ())), precision=lax.Precision.HIGHEST)


def _adjoint(x: Any) -> Any:
    x = lax.transpose(x, (1, 0))
    return lax.conj(x) if is_complex_dtype(typeof(x).dtype) else x


@compiled("order", "scaled", "dtype")
def _polyfit(x, y, w, rcond, *, order, scaled, dtype):
    """Coefficients, sums of squared residuals, rank, singular values and covariance."""
    real = real_of(dtype)
    x, y = (lax.convert_element_type(v, dtype) for v in (x, y))
    left = _powers(x, order)
    single = typeof(y).ndim == 1
    right = lax.expand_dims(y, (1,)) if single else y
    if w is not None:
        w = lax.convert_element_type(w, dtype)
        left = lax.mul(left, lax.broadcast_in_dim(w, typeof(left).shape, (0,)))
        right = lax.mul(right, lax.broadcast_in_dim(w, typeof(right).shape, (0,)))
    scale = lax.sqrt(lax.reduce_sum(squares(left), (0,)))
    wide = lax.convert_element_type(scale, dtype)
    left = lax.div(left, lax.broadcast_in_dim(wide, typeof(left).shape, (1,)))
    u, s, vh = lax.linalg.svd(left, full_matrices=False)
    largest = lax.slice_in_dim(s, 0, 1)
    used = lax.gt(s, lax.mul(repeated(largest, typeof(s).shape), _whole(rcond, s, real)))
    safe = lax.select(used, s, lax.full_like(s, 1))
    inverse = lax.select(used, lax.div(lax.full_like(s, 1), safe), lax.full_like(s, 0))
    inverse = lax.convert_element_type(inverse, dtype)
    inside = _dot(_adjoint(u), right)
    inside = lax.mul(inside, lax.broadcast_in_dim(inverse, typeof(inside).shape, (0,)))
    c = _dot(_adjoint(vh), inside)
    rest = lax.sub(right, _dot(left, c))
    residuals = lax.reduce_sum(squares(rest), (0,))
    c = lax.div(c, lax.broadcast_in_dim(wide, typeof(c).shape, (0,)))
    rank = lax.reduce_sum(lax.convert_element_type(used, np.int32), (0,))
    spread = lax.mul(_adjoint(vh), lax.broadcast_in_dim(inverse, (order, typeof(s).size), (1,)))
    spread = lax.div(spread, lax.broadcast_in_dim(wide, typeof(spread).shape, (0,)))
    covariance = _dot(spread, _adjoint(spread))
    n = typeof(x).shape[0]
    if scaled:
        factor = lax.div(residuals, scalar(n - order, typeof(residuals).dtype))
        factor = lax.convert_element_type(factor, dtype)
        shape = (order, order) if single else (order, order, typeof(factor).size)
        factor = lax.squeeze(factor, (0,)) if single else factor
        covariance = lax.mul(
            covariance if single else lax.broadcast_in_dim(covariance, shape, (0, 1)),
            lax.broadcast_in_dim(factor, shape, () if single else (2,)),
        )
    c = lax.squeeze(c, (1,)) if single else c
    return c, residuals, rank, s, covariance


def _whole(rcond: Any, s: Any, dtype: Any) -> Any:
    return repeated(lax.convert_element_type(rcond, dtype), typeof(s).shape)


def _check(x: Any, y: Any, w: Any, order: int) -> None:
    check_arrays("polyfit", x, y, *([] if w is None else [w]))
    points, values = typeof(x).shape, typeof(y).shape
    if order < 1:
        raise ValueError(f"polyfit: expected deg >= 0, got {order - 1}")
    if len(points) != 1:
        raise TypeError(f"polyfit: expected 1D vector for x, got shape {points}")
    if not points[0]:
        raise TypeError("polyfit: expected non-empty vector for x")
    if len(values) not in (1, 2):
        raise TypeError(f"polyfit: expected 1D or 2D array for y, got shape {values}")
    if values[0] != points[0]:
        raise TypeError(f"polyfit: expected x and y to have same length, got {points} and {values}")
    if w is None:
        return
    if typeof(w).ndim != 1:
        raise TypeError(f"polyfit: expected a 1-d array for weights, got shape {typeof(w).shape}")
    if typeof(w).shape[0] != values[0]:
        raise TypeError(
            f"polyfit: expected w and y to have the same length, got {typeof(w).shape} and {values}"
        )


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: ArrayLike | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """Coefficients of the least-squares polynomial of a given degree, from the highest power.

    Args:
      x: ``[n]`` points.
      y: ``[n]`` values, or ``[n, k]`` for ``k`` polynomials.
      deg: the degree of the polynomial.
      rcond: relative cutoff for small singular values of the scaled Vandermonde matrix; by default
        ``n`` times the machine epsilon.
      full: also return sums of squared residuals, the rank, singular values and ``rcond``.
      w: ``[n]`` weights, applied to the residuals before squaring.
      cov: also return the covariance of the coefficients, scaled by the residuals; with
        ``"unscaled"``, that for residuals of variance 1.

    Returns:
      ``[deg + 1]`` or ``[deg + 1, k]`` coefficients; a tuple if ``full`` or ``cov`` is set.

    Raises:
      TypeError: if a shape is invalid.
      ValueError: if the degree is negative, or there are too few points for ``cov``.

    >>> polyfit(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]), 1).round(3).tolist()
    [2.0, 1.0]
    """
    order = operator.index(deg) + 1
    if order > 1_001:
        raise ValueError(f"polyfit: the degree must be at most 1,000, got {order - 1:,}")
    _check(x, y, w, order)
    avals = [typeof(v) for v in (x, y)]
    dtype = float_of(dtypes.lattice_result(tuple([(t.dtype, t.weak_type) for t in avals]))[0])
    n = avals[0].shape[0]
    scaled = bool(cov) and cov != "unscaled" and not full
    if scaled and n <= order:
        raise ValueError(
            "the number of data points must exceed order to scale the covariance matrix: polyfit "
            f"got {n} points for {order} coefficients"
        )
    if rcond is None:
        rcond = n * float(np.finfo(real_of(dtype)).eps)
    c, residuals, rank, s, covariance = _polyfit(
        x, y, w, rcond, order=order, scaled=scaled, dtype=dtype
    )
    if full:
        limit: Array = lax.convert_element_type(rcond, real_of(dtype))
        return c, residuals, rank, s, limit
    return (c, covariance) if cov else c
