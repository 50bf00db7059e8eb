"""Weighted averages, covariance and correlation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, any_number, dtypes, is_operand, one_call, promoted
from primax_core.extend.dimensions import is_static
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, DTypeLike

from ._checks import axes_of, check_arrays, dtype_argument
from ._functions import compiled, trim_none
from ._promotion import repeated
from ._reduction_helpers import (
    count,
    float_of,
    is_complex_dtype,
    real_of,
    restore_axes,
    spread_back,
    wide_of,
)
from ._statistics import mean, scalar


@compiled("axes", "dims", "keepdims", "returned")
def _weighted(a, weights, *, axes, dims, keepdims, returned):
    """``dims`` are the axes of ``a`` that correspond to the axes of the weights."""
    a, weights = promoted("average", a, weights, any_number)
    shape = typeof(a).shape
    dtype = float_of(typeof(a).dtype)
    a, weights = (lax.convert_element_type(x, wide_of(dtype)) for x in (a, weights))
    order = sorted(range(len(dims)), key=lambda i: dims[i])
    weights = lax.transpose(weights, tuple(order))
    weights = lax.broadcast_in_dim(weights, shape, tuple(sorted(dims)))
    total = lax.reduce_sum(weights, axes)
    average = lax.div(lax.reduce_sum(lax.mul(a, weights), axes), total)
    out = restore_axes(lax.convert_element_type(average, dtype), axes, keepdims)
    return (
        (out, restore_axes(lax.convert_element_type(total, dtype), axes, keepdims))
        if returned
        else out
    )


@one_call("axis", "returned", "keepdims")
def average(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """Weighted mean over axes; NaN or infinite where the weights sum to zero.

    Args:
      a: an array; integers give floats.
      axis: an axis or several; all by default.
      weights: an array of the shape of ``a``, or of the sizes of ``axis`` in its order; equal
        weights by default.
      returned: also return the sum of the weights.
      keepdims: keep the reduced axes with size 1.

    Raises:
      ValueError: if the shape of the weights does not match.

    >>> float(average(np.array([1.0, 4.0]), weights=np.array([2.0, 1.0])))
    2.0
    """
    check_arrays("average", a)
    shape = typeof(a).shape
    axes = axes_of(axis, len(shape))
    if weights is None:
        out = mean(a, axis, keepdims=keepdims)
        n = count(shape, axes)
        return (out, lax.full(out.shape, scalar(n, out.dtype))) if returned else out
    check_arrays("average", a, weights)
    weights_shape = typeof(weights).shape
    dims = tuple(range(len(shape)))
    if weights_shape != shape:
        if axis is None:
            raise ValueError(
                "Axis must be specified when shapes of a and weights differ: a has shape "
                f"{shape}, weights {weights_shape}"
            )
        dims = axes
        if weights_shape != tuple([shape[i] for i in axes]):
            raise ValueError(
                "Shape of weights must be consistent with shape of a along specified axis: a has "
                f"shape {shape}, axes {axes}, weights have shape {weights_shape}"
            )
    return _weighted(
        a, weights, axes=axes, dims=dims, keepdims=bool(keepdims), returned=bool(returned)
    )


def _observations(x: Any, rowvar: bool, dtype: Any) -> Any:
    """The matrix ``[variables, observations]`` in a dtype."""
    x = lax.convert_element_type(x, dtype)
    if typeof(x).ndim < 2:
        return lax.reshape(x, (1, typeof(x).size))
    return x if rowvar or typeof(x).shape[0] == 1 else lax.transpose(x, (1, 0))


@compiled("rowvar", "dtype", "ddof")
def _cov(m, y=None, fweights=None, aweights=None, *, rowvar, dtype, ddof):
    return _covariance(m, y, fweights, aweights, rowvar, dtype, ddof)


def _covariance(m, y, fweights, aweights, rowvar, dtype, ddof):
    wide = wide_of(dtype)
    x = _observations(m, rowvar, wide)
    if not typeof(x).shape[0]:
        return lax.full((0, 0), scalar(0, dtype))
    if y is not None:
        x = lax.concatenate([x, _observations(y, rowvar, wide)], 0)
    shape, real = typeof(x).shape, real_of(wide)
    weights = _product_of_weights(fweights, aweights, real)
    if weights is None:
        total = scalar(shape[1], real)
        if is_static(shape[1:]):
            divisor = np.maximum(total - scalar(ddof, real), scalar(0, real))
        else:
            divisor = lax.max(lax.sub(total, scalar(ddof, real)), scalar(0, real))
        row = None
    else:
        total = lax.reduce_sum(weights, (0,))
        less = scalar(ddof, real)
        if aweights is not None and ddof:
            squares = lax.mul(weights, lax.abs(lax.convert_element_type(aweights, real)))
            less = lax.div(lax.mul(less, lax.reduce_sum(squares, (0,))), total)
        divisor = lax.sub(total, less)
        row = repeated(lax.convert_element_type(weights, wide), shape)
    weighted = x if row is None else lax.mul(x, row)
    centre = lax.div(
        lax.reduce_sum(weighted, (1,)),
        repeated(lax.convert_element_type(total, wide), shape[:1]),
    )
    d = lax.sub(x, spread_back(centre, (1,), shape))
    right = lax.conj(d) if is_complex_dtype(wide) else d
    products = lax.dot_general(
        d if row is None else lax.mul(d, row), right, (((1,), (1,)), ((), ()))
    )
    out = lax.div(
        products, repeated(lax.convert_element_type(divisor, wide), typeof(products).shape)
    )
    out = lax.convert_element_type(out, dtype)
    return lax.reshape(out, ()) if typeof(out).shape == (1, 1) else out


def _product_of_weights(fweights: Any, aweights: Any, dtype: Any) -> Any:
    weights = [
        lax.abs(lax.convert_element_type(w, dtype)) for w in (fweights, aweights) if w is not None
    ]
    if not weights:
        return None
    return weights[0] if len(weights) == 1 else lax.mul(*weights)


def _checked(name: str, m: Any, y: Any, rowvar: bool, dtype: Any, weights: Any = None) -> Any:
    """Check the arguments of a covariance, and return the dtype of the computation."""
    arrays = [m] if y is None else [m, y]
    check_arrays(name, *arrays)
    for argument, x in zip("my", arrays):
        if typeof(x).ndim > 2:
            raise ValueError(
                f"{argument} has more than 2 dimensions: {name} got shape {typeof(x).shape}"
            )
    if y is not None:
        sizes = [_samples(x, rowvar) for x in arrays]
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"{name}: the two arrays have different numbers of observations, {sizes[0]} and "
                f"{sizes[1]}: shapes {typeof(m).shape} and {typeof(y).shape}"
            )
    requested = dtype_argument(dtype, name)
    if requested is not None:
        return float_of(requested)
    pairs = tuple([(t.dtype, t.weak_type) for t in map(typeof, arrays)])
    promoted = float_of(dtypes.lattice_result(pairs)[0])
    if weights is None:
        return promoted
    aval = typeof(weights)
    return dtypes.lattice_result(((promoted, False), (aval.dtype, aval.weak_type)))[0]


def _samples(x: Any, rowvar: bool) -> int:
    shape = typeof(x).shape
    if len(shape) < 2:
        return typeof(x).size
    return shape[1] if rowvar or shape[0] == 1 else shape[0]


def _check_weights(argument: str, weights: Any, n: int) -> None:
    if weights is None:
        return
    check_arrays("cov", weights)
    aval = typeof(weights)
    if argument == "fweights" and not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"fweights must be integer: cov got dtype {aval.dtype.name}")
    if aval.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {argument}: cov got {aval.shape}")
    if aval.size != n or not aval.ndim:
        raise RuntimeError(
            f"incompatible numbers of samples and {argument}: cov got {n} observations, and "
            f"{argument} of shape {aval.shape}"
        )


@one_call("rowvar", "bias", "ddof")
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Covariance matrix of variables, each a row of observations.

    Args:
      m: ``[variables, observations]``, or the observations of one variable.
      y: additional variables with the same number of observations.
      rowvar: ``False`` if each column is a variable.
      bias: divide by the number of observations ``n``, not by ``n - 1``.
      ddof: delta degrees of freedom: divide by ``n - ddof``; overrides ``bias``.
      fweights: integer frequency of each observation.
      aweights: weights of the observations.
      dtype: the dtype of the result.

    Returns:
      ``[variables, variables]``; a scalar for one variable.

    >>> cov(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    n = _samples(m, rowvar) if is_operand(m) else 0
    _check_weights("fweights", fweights, n)
    _check_weights("aweights", aweights, n)
    computed = _checked("cov", m, y, rowvar, dtype, aweights)
    if ddof is None:
        ddof = 0 if bias else 1
    matrix: Array = _cov(
        *trim_none(m, y, fweights, aweights), rowvar=bool(rowvar), dtype=computed, ddof=float(ddof)
    )
    return matrix


@compiled("rowvar", "dtype")
def _corrcoef(x, y=None, *, rowvar, dtype):
    c = _covariance(x, y, None, None, rowvar, wide_of(dtype), 1.0)
    if not typeof(c).ndim:
        return lax.convert_element_type(lax.div(c, c), dtype)
    shape = n = typeof(c).shape
    places = lax.broadcasted_iota(np.int32, (n[0], 1), 0)
    numbers = lax.GatherDimensionNumbers((), (0, 1), (0, 1))
    pairs = lax.concatenate([places, places], 1)
    variances = lax.gather(c, pairs, numbers, (min(1, n[0]),) * 2)
    d = lax.convert_element_type(lax.sqrt(lax.real(variances)) if is_complex_dtype(dtype) else
                                 lax.sqrt(variances), typeof(c).dtype)  # fmt: skip
    c = lax.div(c, lax.broadcast_in_dim(d, shape, (0,)))
    c = lax.div(c, lax.broadcast_in_dim(d, shape, (1,)))
    if is_complex_dtype(dtype):
        return lax.complex(_to_unit(lax.real(c)), _to_unit(lax.imag(c)))
    return lax.convert_element_type(_to_unit(c), dtype)


def _to_unit(x: Any) -> Any:
    dtype = typeof(x).dtype
    return lax.clamp(scalar(-1, dtype), x, scalar(1, dtype))


@one_call("rowvar")
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Correlation coefficients of variables, in ``[-1, 1]``.

    Args:
      x: ``[variables, observations]``, or the observations of one variable.
      y: additional variables with the same number of observations.
      rowvar: ``False`` if each column is a variable.
      dtype: the dtype of the result.

    Returns:
      ``[variables, variables]``, with ones on the diagonal; a scalar for one variable.

    Constant variables give NaN.

    >>> corrcoef(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    computed = _checked("corrcoef", x, y, rowvar, dtype)
    coefficients: Array = _corrcoef(*trim_none(x, y), rowvar=bool(rowvar), dtype=computed)
    return coefficients
