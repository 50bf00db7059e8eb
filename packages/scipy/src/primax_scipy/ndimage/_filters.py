"""Linear filters: correlation, convolution, Gaussians, means, derivatives."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.typing import ArrayLike, DTypeLike
from primax_numpy.declaring import check_arrays, compiled, is_complex, one_axis

from .._layout import as_operand
from ..signal._convolution import choose_conv_method, convolve as _convolve_arrays
from ._arguments import (
    Integers,
    Modes,
    bounds,
    cast_back,
    check_modes,
    chosen_axes,
    extended,
    image,
    integers,
    per_axis,
    result_dtype,
    working,
)

_UNROLLED = 32


def correlated(x: Any, weights: Any, axis: int, before: int, mode: str, cval: Any) -> Any:
    """Weighted sums of neighbours along an axis; ``before`` elements are before the position."""
    size = typeof(weights).shape[0]
    n = typeof(x).shape[axis]
    widths = [(0, 0)] * typeof(x).ndim
    widths[axis] = (before, size - 1 - before)
    x = extended(x, widths, (mode,) * typeof(x).ndim, cval)
    if size > _UNROLLED:
        shape = [1] * typeof(x).ndim
        shape[axis] = size
        kernel = lax.rev(lax.reshape(weights, shape), (axis,))
        method = choose_conv_method(x, kernel, "valid")
        return _convolve_arrays(x, kernel, "valid", method)
    total: Any = None
    for k in range(size):
        factor = lax.index_in_dim(weights, k, 0, keepdims=False)
        part = lax.slice_in_dim(x, k, k + n, axis=axis) * factor
        total = part if total is None else total + part
    return total


def _vector(name: str, weights: Any) -> Any:
    weights = as_operand(name, weights)
    if typeof(weights).ndim != 1 or not typeof(weights).shape[0]:
        raise ValueError(f"{name}: weights must be a nonempty vector, got {typeof(weights).shape}")
    return weights


def _one(name, x, weights, axis, output, mode, cval, before) -> Array:
    image(name, x)
    check_arrays(name, cval)
    check_modes(name, (mode,))
    out: Array = _correlated(
        x, weights, cval, axis=one_axis(axis, typeof(x).ndim), mode=mode, before=before,
        dtype=_dtype(name, x, weights, output),
    )  # fmt: skip
    return out


def _dtype(name: str, x: Any, weights: Any, output: Any) -> Any:
    dtype = result_dtype(name, x, output)
    if output is None and is_complex(weights) and not is_complex(x):
        return np.result_type(working_dtype(x), np.complex64)
    return dtype


def working_dtype(x: Any) -> Any:
    """The dtype in which weighted sums are computed."""
    dtype = typeof(x).dtype
    if dtypes.issubdtype(dtype, np.inexact):
        return dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    return np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)


@compiled("axis", "mode", "before", "dtype", name="correlate1d")
def _correlated(x, weights, cval, *, axis, mode, before, dtype):
    x, weights = _same(x, weights)
    return cast_back(correlated(x, weights, axis, before, mode, cval), dtype)


def _same(x, weights):
    x = working(x)
    if is_complex(weights) and not is_complex(x):
        x = lax.convert_element_type(x, np.result_type(typeof(x).dtype, np.complex64))
    return x, lax.convert_element_type(weights, typeof(x).dtype)


def correlate1d(
    input: ArrayLike, weights: ArrayLike, axis: int = -1, output: DTypeLike | None = None,
    mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0,
) -> Array:  # fmt: skip
    """Correlation with weights along one axis: ``sum(weights[j] input[i + j - size // 2])``.

    Args:
      input: an array.
      weights: a vector or a sequence of numbers.
      axis: the axis.
      output: the dtype of the result, by default that of the input; integer results are truncated.
      mode: the extension beyond the edges: ``"reflect"`` repeats the edge, ``"mirror"`` does not,
        ``"nearest"``, ``"wrap"`` or ``"constant"``.
      cval: the value beyond the edges in mode ``"constant"``.
      origin: the shift of the filter: positive values move it to lower indices.

    Returns:
      An array of the shape of ``input``. It is differentiable in the input and the weights.

    Raises:
      ValueError: if a shape, the mode or the origin is invalid.

    >>> correlate1d(np.float32([1, 2, 4]), [1, 0, -1]).tolist()
    [-1.0, -3.0, -2.0]
    """
    weights = _vector("correlate1d", weights)
    before, _ = bounds("correlate1d", typeof(weights).shape[0], operator.index(origin))
    return _one("correlate1d", input, weights, axis, output, mode, cval, before)


def convolve1d(
    input: ArrayLike, weights: ArrayLike, axis: int = -1, output: DTypeLike | None = None,
    mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0,
) -> Array:  # fmt: skip
    """Convolution with weights along one axis, ``sum(weights[j] input[i - j + size // 2])``.

    Args:
      input, weights, axis, output, mode, cval, origin: as in `correlate1d`, whose errors apply.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    >>> convolve1d(np.float32([1, 2, 4]), [1, 0, -1]).tolist()
    [1.0, 3.0, 2.0]
    """
    weights = _vector("convolve1d", weights)
    size = typeof(weights).shape[0]
    _, before = bounds("convolve1d", size, operator.index(origin))
    weights = pnp.flip(weights)
    return _one("convolve1d", input, weights, axis, output, mode, cval, before)


def _many(name, x, weights, output, mode, cval, origin, axes, flip) -> Array:
    image(name, x)
    check_arrays(name, cval)
    weights = as_operand(name, weights)
    chosen = chosen_axes(axes, typeof(x).ndim)
    if typeof(weights).ndim != len(chosen) or 0 in typeof(weights).shape:
        raise ValueError(
            f"{name}: weights must have {len(chosen)} nonempty dimensions, got shape "
            f"{typeof(weights).shape}"
        )
    modes = per_axis(name, "mode", mode, len(chosen))
    check_modes(name, modes)
    origins = integers(name, "origin", origin, len(chosen))
    befores = tuple(
        bounds(name, n, o)[1 if flip else 0] for n, o in zip(typeof(weights).shape, origins)
    )
    out: Array = _correlated_all(
        x, weights, cval, axes=chosen, modes=modes, befores=befores, flip=flip,
        dtype=_dtype(name, x, weights, output),
    )  # fmt: skip
    return out


@compiled("axes", "modes", "befores", "flip", "dtype", name="correlate")
def _correlated_all(x, weights, cval, *, axes, modes, befores, flip, dtype):
    x, weights = _same(x, weights)
    ndim = typeof(x).ndim
    widths, all_modes, shape = [(0, 0)] * ndim, ["constant"] * ndim, [1] * ndim
    for axis, mode, before, n in zip(axes, modes, befores, typeof(weights).shape):
        widths[axis], all_modes[axis], shape[axis] = (before, n - 1 - before), mode, n
    order = [int(i) for i in np.argsort(axes)]
    kernel = lax.reshape(lax.transpose(weights, order), shape)
    if len(set(modes)) == 1:
        all_modes = [modes[0]] * ndim
    x = extended(x, widths, tuple(all_modes), cval)
    if not ndim:
        return cast_back(x * kernel, dtype)
    if not flip:
        kernel = lax.rev(kernel, tuple(range(ndim)))
    return cast_back(_convolve_arrays(x, kernel, "valid"), dtype)


def correlate(
    input: ArrayLike, weights: ArrayLike, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, origin: Integers = 0, *, axes: Integers | None = None,
) -> Array:  # fmt: skip
    """Correlation with an array of weights, by direct sums or the FFT, as `signal.correlate`.

    Args:
      weights: an array with one dimension for each axis.
      mode, origin: as in `correlate1d`, one for all axes or one for each.
      axes: the axes, by default all.
      input, output, cval: as in `correlate1d`, whose errors apply.

    Returns:
      An array of the shape of ``input``. It is differentiable in the input and the weights.

    >>> correlate(np.float32([[1, 2], [3, 4]]), np.ones((1, 3), np.float32)).tolist()
    [[4.0, 5.0], [10.0, 11.0]]
    """
    return _many("correlate", input, weights, output, mode, cval, origin, axes, False)


def convolve(
    input: ArrayLike, weights: ArrayLike, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, origin: Integers = 0, *, axes: Integers | None = None,
) -> Array:  # fmt: skip
    """Convolution with an array of weights, by direct sums or the FFT.

    Args:
      input, weights, output, mode, cval, origin, axes: as in `correlate`, whose errors apply.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    >>> convolve(np.float32([[1, 2], [3, 4]]), np.float32([[1, 0, -1]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _many("convolve", input, weights, output, mode, cval, origin, axes, True)


def _gaussian(sigma: float, order: int, radius: int) -> Any:
    """Weights of the derivative of a Gaussian of an order, for a correlation.

    The derivative of order ``n`` is the Gaussian times a polynomial: each derivative takes ``q`` to
    ``q' - q x / sigma²``.
    """
    x = np.arange(-radius, radius + 1)
    phi = np.exp(-0.5 / sigma**2 * x**2)
    phi = phi / phi.sum()
    q = np.polynomial.Polynomial([1.0])
    for _ in range(order):
        q = q.deriv() - q * np.polynomial.Polynomial([0.0, 1 / sigma**2])
    return (q(x) * phi)[::-1].copy()


def _gaussian_weights(
    name: str, sigma: Any, order: Any, truncate: float, radius: Any
) -> tuple[Any, int]:
    """Weights and radius; a sigma that is an array needs a radius and the order 0."""
    order = operator.index(order)
    if order < 0:
        raise ValueError(f"{name}: order must not be negative, got {order}")
    if order > 100:
        raise ValueError(f"{name}: order must be at most 100, got {order:,}")
    try:
        sigma = float(sigma)
    except TypeError as error:
        raise TypeError(
            f"{name}: a traced sigma does not determine the size of the filter: pass a "
            "Python number."
        ) from error
    if not sigma > 0:
        raise ValueError(f"{name}: sigma must be positive, got {sigma}")
    radius = int(truncate * sigma + 0.5) if radius is None else operator.index(radius)
    if radius < 0:
        raise ValueError(f"{name}: radius must not be negative, got {radius}")
    return _gaussian(sigma, order, radius), radius


def gaussian_filter1d(
    input: ArrayLike, sigma: float, axis: int = -1, order: int = 0, output: DTypeLike | None = None,
    mode: str = "reflect", cval: ArrayLike = 0.0, truncate: float = 4.0, *,
    radius: int | None = None,
) -> Array:  # fmt: skip
    """Gaussian filter along one axis; the result has the shape of the input.

    Args:
      sigma: the standard deviation in elements, a Python number.
      order: the order of the derivative, 0 for the Gaussian itself.
      truncate, radius: the radius in standard deviations; or in elements, if it is specified.
      input, axis, output, mode, cval: as in `correlate1d`.

    Raises:
      ValueError: if an argument is out of its range, or the mode is unknown.
      TypeError: if ``sigma`` is traced.

    >>> np.float64(gaussian_filter1d(np.float32([0, 1, 0]), 0.5)).round(2).tolist()
    [0.11, 0.79, 0.11]
    """
    weights, width = _gaussian_weights("gaussian_filter1d", sigma, order, truncate, radius)
    return _one("gaussian_filter1d", input, weights, axis, output, mode, cval, width)


def gaussian_filter(
    input: ArrayLike, sigma: ArrayLike, order: Integers = 0, output: DTypeLike | None = None,
    mode: Modes = "reflect", cval: ArrayLike = 0.0, truncate: float = 4.0, *,
    radius: Integers | None = None, axes: Integers | None = None,
) -> Array:  # fmt: skip
    """Gaussian filter along several axes; the result has the shape of the input.

    Args:
      sigma, order, mode, radius: one value, or one for each axis; a sigma of 0 skips the axis.
      axes: the axes, by default all.
      input, output, cval, truncate: as in `gaussian_filter1d`, whose errors apply.

    >>> np.float64(gaussian_filter(np.eye(3, dtype=np.float32), [0.5, 0])).round(2).tolist()
    [[0.89, 0.11, 0.0], [0.11, 0.79, 0.11], [0.0, 0.11, 0.89]]
    """
    name = "gaussian_filter"
    image(name, input)
    check_arrays(name, cval)
    chosen = chosen_axes(axes, typeof(input).ndim)
    count = len(chosen)
    modes = per_axis(name, "mode", mode, count)
    check_modes(name, modes)
    sigmas, orders = per_axis(name, "sigma", sigma, count), per_axis(name, "order", order, count)
    radii = per_axis(name, "radius", radius, count)
    steps, kernels = [], []
    for axis, s, o, r, m in zip(chosen, sigmas, orders, radii, modes):
        if not isinstance(s, (int, float)) or s > 1e-15:
            weights, width = _gaussian_weights(name, s, o, truncate, r)
            kernels.append(weights)
            steps.append((axis, m, width))
    return _separable(name, input, kernels, steps, output, cval)


def _separable(name: str, x: Any, kernels: Any, steps: Any, output: Any, cval: Any) -> Array:
    out: Array = _filtered(
        x, tuple(kernels), cval, steps=tuple(steps), dtype=result_dtype(name, x, output)
    )
    return out


@compiled("steps", "dtype", name="filter")
def _filtered(x, kernels, cval, *, steps, dtype):
    x = working(x)
    for weights, (axis, mode, before) in zip(kernels, steps):
        weights = lax.convert_element_type(weights, typeof(x).dtype)
        x = _stored(correlated(x, weights, axis, before, mode, cval), dtype)
    return cast_back(x, dtype)


def uniform_filter1d(
    input: ArrayLike, size: int, axis: int = -1, output: DTypeLike | None = None,
    mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0,
) -> Array:  # fmt: skip
    """Mean of ``size`` neighbours along one axis.

    Args:
      input, axis, output, mode, cval, origin: as in `correlate1d`; ``size`` is a positive integer.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    >>> uniform_filter1d(np.float32([1, 3, 5]), 2).tolist()
    [1.0, 2.0, 4.0]
    """
    return uniform_filter(input, size, output, mode, cval, origin, axes=(axis,))


def uniform_filter(
    input: ArrayLike, size: Integers = 3, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, origin: Integers = 0, *, axes: Integers | None = None,
) -> Array:  # fmt: skip
    """Mean of the neighbours in a box; the result has the shape of the input.

    Args:
      size, mode, origin: one value, or one for each axis; sizes are positive.
      input, output, cval, axes: as in `correlate`, whose errors apply.

    >>> uniform_filter(np.float32([1, 4, 7, 1]), 3).tolist()
    [2.0, 4.0, 4.0, 3.0]
    """
    name = "uniform_filter"
    image(name, input)
    check_arrays(name, cval)
    chosen = chosen_axes(axes, typeof(input).ndim)
    sizes = integers(name, "size", size, len(chosen))
    modes = per_axis(name, "mode", mode, len(chosen))
    check_modes(name, modes)
    origins = integers(name, "origin", origin, len(chosen))
    steps = tuple(
        (axis, n, bounds(name, _positive(name, n), o)[0], m)
        for axis, n, o, m in zip(chosen, sizes, origins, modes)
    )
    out: Array = _means(input, cval, steps=steps, dtype=result_dtype(name, input, output))
    return out


def _positive(name: str, n: int) -> int:
    if n < 1:
        raise ValueError(f"{name}: size must be positive, got {n}")
    return n


@compiled("steps", "dtype", name="uniform_filter")
def _means(x, cval, *, steps, dtype):
    x = working(x)
    for axis, size, before, mode in steps:
        n = typeof(x).shape[axis]
        widths = [(0, 0)] * typeof(x).ndim
        widths[axis] = (before, size - 1 - before)
        wide = extended(x, widths, (mode,) * typeof(x).ndim, cval)
        x = _stored(_running_sum(wide, axis, size, n) * (1.0 / size), dtype)
    return cast_back(x, dtype)


def _stored(x, dtype):
    """A result for one axis, truncated to integers as SciPy stores it between axes."""
    if dtypes.issubdtype(dtype, np.integer):
        return lax.convert_element_type(lax.convert_element_type(x, dtype), typeof(x).dtype)
    return x


def _running_sum(x: Any, axis: int, size: int, n: int) -> Any:
    """Sums of ``size`` consecutive elements, by sums of powers of two."""
    total: Any = None
    done, width = 0, 1
    while True:
        if size & width:
            part = lax.slice_in_dim(x, done, done + n, axis=axis)
            total = part if total is None else total + part
            done += width
        if done == size:
            return total
        length = typeof(x).shape[axis]
        x = lax.slice_in_dim(x, 0, length - width, axis=axis) + lax.slice_in_dim(
            x, width, length, axis=axis
        )
        width *= 2


def _differences(name: str, x: Any, axis: int, output: Any, mode: Any, cval: Any, side: Any):
    image(name, x)
    position = one_axis(axis, typeof(x).ndim)
    modes = per_axis(name, "mode", mode, typeof(x).ndim)
    check_modes(name, modes)
    kernels, steps = [np.array([-1.0, 0, 1])], [(position, modes[position], 1)]
    for i in range(typeof(x).ndim):
        if i != position:
            kernels.append(np.array(side))
            steps.append((i, modes[i], 1))
    return _separable(name, x, kernels, steps, output, cval)


def sobel(
    input: ArrayLike, axis: int = -1, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0,
) -> Array:  # fmt: skip
    """Sobel filter: differences along an axis, smoothed by ``[1, 2, 1]`` along the others.

    Args:
      input, axis, output, mode, cval: as in `correlate1d`; ``mode`` also one for each axis.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    >>> sobel(np.float32([[0, 1], [0, 1]])).tolist()
    [[4.0, 4.0], [4.0, 4.0]]
    """
    return _differences("sobel", input, axis, output, mode, cval, [1.0, 2, 1])


def prewitt(
    input: ArrayLike, axis: int = -1, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0,
) -> Array:  # fmt: skip
    """Prewitt filter: differences along an axis, summed by ``[1, 1, 1]`` along the others.

    Args:
      input, axis, output, mode, cval: as in `correlate1d`; ``mode`` also one for each axis.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    >>> prewitt(np.float32([[0, 1], [0, 1]])).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    return _differences("prewitt", input, axis, output, mode, cval, [1.0, 1, 1])


def laplace(
    input: ArrayLike, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, *, axes: Integers | None = None,
) -> Array:  # fmt: skip
    """Sum of the second differences ``[1, -2, 1]`` along the axes.

    Args:
      input, output, mode, cval, axes: as in `correlate`, whose errors apply.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    >>> laplace(np.float32([0, 1, 0])).tolist()
    [1.0, -2.0, 1.0]
    """
    name = "laplace"
    image(name, input)
    chosen = chosen_axes(axes, typeof(input).ndim)
    modes = per_axis(name, "mode", mode, len(chosen))
    check_modes(name, modes)
    kernels = (np.array([1.0, -2, 1]),) * len(chosen)
    steps = tuple((a, m, 1) for a, m in zip(chosen, modes))
    dtype = result_dtype(name, input, output)
    return _summed(input, (kernels,), cval, terms=_single(steps), root=False, dtype=dtype)


def _single(steps: Any) -> Any:
    return tuple((i, (s,)) for i, s in enumerate(steps))


@compiled("terms", "root", "dtype", name="laplace")
def _summed(x, kernels, cval, *, terms, root, dtype):
    """The sum (or the root of the sum of squares) of separable filters."""
    x = working(x)
    flat = [k for group in kernels for k in group]
    total: Any = None
    used = 0
    for _, steps in terms:
        y = x
        for axis, mode, before in steps:
            weights = lax.convert_element_type(flat[used], typeof(x).dtype)
            y = correlated(y, weights, axis, before, mode, cval)
            used += 1
        y = lax.square(y) if root else y
        total = y if total is None else total + y
    if total is None:
        total = pnp.zeros_like(x)
    return cast_back(lax.sqrt(total) if root else total, dtype)


def _gaussian_terms(name, x, sigma, mode, axes, truncate, orders):
    image(name, x)
    chosen = chosen_axes(axes, typeof(x).ndim)
    sigmas = per_axis(name, "sigma", sigma, len(chosen))
    modes = per_axis(name, "mode", mode, len(chosen))
    check_modes(name, modes)
    kernels, terms = [], []
    for i in range(len(chosen)):
        steps = []
        for j, (axis, s, m) in enumerate(zip(chosen, sigmas, modes)):
            weights, width = _gaussian_weights(name, s, orders if i == j else 0, truncate, None)
            kernels.append(weights)
            steps.append((axis, m, width))
        terms.append((i, tuple(steps)))
    return (tuple(kernels),), tuple(terms)


def gaussian_laplace(
    input: ArrayLike, sigma: ArrayLike, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, *, axes: Integers | None = None, truncate: float = 4.0,
) -> Array:  # fmt: skip
    """Laplacian by second derivatives of Gaussians.

    Args:
      input, sigma, output, mode, cval, axes, truncate: as in `gaussian_filter`; sigmas over 0.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    >>> np.float64(gaussian_laplace(np.float32([0, 0, 1, 0, 0]), 1.0)).round(2).tolist()
    [0.2, 0.0, -0.4, 0.0, 0.2]
    """
    name = "gaussian_laplace"
    kernels, terms = _gaussian_terms(name, input, sigma, mode, axes, truncate, 2)
    dtype = result_dtype(name, input, output)
    return _summed(input, kernels, cval, terms=terms, root=False, dtype=dtype)


def gaussian_gradient_magnitude(
    input: ArrayLike, sigma: ArrayLike, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, *, axes: Integers | None = None, truncate: float = 4.0,
) -> Array:  # fmt: skip
    """Length of the gradient by derivatives of Gaussians.

    Args:
      input, sigma, output, mode, cval, axes, truncate: as in `gaussian_filter`; sigmas over 0.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    >>> np.float64(gaussian_gradient_magnitude(np.float32([0, 0, 1]), 1.0)).round(2).tolist()
    [0.11, 0.35, 0.24]
    """
    name = "gaussian_gradient_magnitude"
    kernels, terms = _gaussian_terms(name, input, sigma, mode, axes, truncate, 1)
    dtype = result_dtype(name, input, output)
    return _summed(input, kernels, cval, terms=terms, root=True, dtype=dtype)
