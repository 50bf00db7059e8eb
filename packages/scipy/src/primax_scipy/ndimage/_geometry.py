"""Geometric transformations of images by spline interpolation."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.typing import ArrayLike, DTypeLike
from primax_numpy.declaring import check_arrays, compiled, is_complex, one_axis

from .._layout import as_operand, check_mode
from ._arguments import Integers, image, per_axis, result_dtype, working
from ._sampling import COEFFICIENTS, MODES, at_points, canonical, coordinate_dtype, on_grid
from ._splines import spline_coefficients


def _checked(name: str, x: Any, order: Any, mode: str, cval: Any) -> int:
    image(name, x)
    check_arrays(f"ndimage.{name}", cval)
    check_mode(name, mode, MODES)
    order = operator.index(order)
    if not 0 <= order <= 5:
        raise ValueError(f"{name}: order must be between 0 and 5, got {order}")
    if 0 in typeof(x).shape:
        raise ValueError(f"{name}: the input must not be empty, got shape {typeof(x).shape}")
    return order


def _cast(values: Any, dtype: Any) -> Any:
    """Values in the dtype of the result, rounded to integers."""
    if dtypes.issubdtype(dtype, np.integer) and not dtypes.issubdtype(
        typeof(values).dtype, np.integer
    ):
        values = pnp.round(values)
    return lax.convert_element_type(values, dtype)


def map_coordinates(
    input: ArrayLike, coordinates: ArrayLike | Sequence[ArrayLike], order: int = 3,
    mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True, *,
    output: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Values of an image at coordinates, by spline interpolation.

    Args:
      input: an array ``[n...]`` of rank ``d``.
      coordinates: an array ``[d, points...]``, or a sequence of ``d`` arrays ``[points...]``.
        Element ``i`` of an axis is at coordinate ``i``.
      order: the degree of the spline, 0 to 5: 0 takes the nearest element, 1 is linear.
      mode: the extension beyond the elements. ``"reflect"`` (or ``"grid-mirror"``) repeats the
        edge, ``"mirror"`` does not; ``"nearest"`` continues the edge; ``"grid-wrap"`` is periodic;
        ``"wrap"`` is periodic with the last element at the position of the first one of the next
        period; ``"constant"`` is ``cval`` beyond the first and last elements; ``"grid-constant"``
        interpolates between them and ``cval``.
        With orders 0 and 1, ``"constant"`` is ``"grid-constant"`` and ``"wrap"`` is
        ``"grid-wrap"``, as in the reference implementation, which has these orders only.
      cval: the value for constant modes.
      prefilter: compute the coefficients of the spline, for orders from 2 on. Use False for a
        result of `spline_filter`.
      output: the dtype of the result, by default that of the input.

    Returns:
      an array ``[points...]``. Results of integer images are rounded. It is differentiable in the
      coordinates as well, from order 1 on.

    Raises:
      ValueError: if the coordinates do not match the rank, or the order or mode is unknown.

    >>> map_coordinates(np.float32([[0, 1], [2, 3]]), np.float32([[0.5], [0.5]]), 1).tolist()
    [1.5]
    """
    order = _checked("map_coordinates", input, order, mode, cval)
    if isinstance(coordinates, (list, tuple)):
        parts = [as_operand("map_coordinates", c) for c in coordinates]
    else:
        image("map_coordinates", coordinates)
        if not typeof(coordinates).ndim:
            raise ValueError("map_coordinates: coordinates need a first axis of the dimensions")
        parts = [
            lax.index_in_dim(pnp.asarray(coordinates), i, 0, keepdims=False)
            for i in range(typeof(coordinates).shape[0])
        ]
    if len(parts) != typeof(input).ndim:
        raise ValueError(
            f"map_coordinates: {len(parts)} coordinates for an input of {typeof(input).ndim} "
            "dimensions: the first axis of coordinates must be that of the dimensions."
        )
    if any(is_complex(c) for c in parts):
        raise ValueError("map_coordinates: coordinates must be real")
    if not parts:
        raise ValueError("map_coordinates: the input must have at least one dimension")
    if order < 2:
        mode = {"constant": "grid-constant", "wrap": "grid-wrap"}.get(mode, mode)
    out: Array = _mapped(
        input, parts, cval, order=order, mode=canonical(mode), prefilter=bool(prefilter),
        dtype=result_dtype("map_coordinates", input, output),
    )  # fmt: skip
    return out


@compiled("order", "mode", "prefilter", "dtype", name="map_coordinates")
def _mapped(x, coordinates, cval, *, order, mode, prefilter, dtype):
    shape = lax.broadcast_shapes(*[typeof(c).shape for c in coordinates])
    wide = coordinate_dtype(x, *coordinates)
    coordinates = [pnp.broadcast_to(lax.convert_element_type(c, wide), shape) for c in coordinates]
    return _cast(at_points(working(x), coordinates, order, mode, cval, prefilter), dtype)


def spline_filter1d(
    input: ArrayLike, order: int = 3, axis: int = -1, mode: str = "mirror"
) -> Array:
    """Coefficients of the interpolating spline along one axis.

    Args:
      input: an array; integers become floats.
      order: the degree, 0 to 5; there is nothing to do up to 1.
      axis: the axis.
      mode: the extension, ``"mirror"``, ``"reflect"`` or ``"grid-wrap"``. ``"nearest"`` is
        ``"reflect"``, and the others are ``"mirror"``.

    Returns:
      An array of the shape of ``input``: floats of at least 32 bits, or complex numbers.

    Raises:
      ValueError: if the order or mode is unknown.

    >>> np.float64(spline_filter1d(np.float32([0, 1, 0]))).round(4).tolist()
    [-1.0, 2.0, -1.0]
    """
    order = _checked("spline_filter1d", input, order, mode, 0)
    axes = (one_axis(axis, typeof(input).ndim),)
    out: Array = _coefficients(input, order=order, axes=axes, mode=canonical(mode))
    return out


def spline_filter(input: ArrayLike, order: int = 3, mode: str = "mirror") -> Array:
    """Coefficients of the interpolating spline along all axes.

    Args:
      input: an array; integers become floats.
      order: the degree, 0 to 5; there is nothing to do up to 1.
      mode: the extension, as in `spline_filter1d`.

    Returns:
      An array of the shape of ``input``: floats of at least 32 bits, or complex numbers.

    Raises:
      ValueError: if the order or mode is unknown, or the input is empty.

    The result can be passed to `map_coordinates` with ``prefilter=False``.

    >>> np.float64(spline_filter(np.float32([0, 1, 0]), 2)).round(4).tolist()
    [-0.5, 1.5, -0.5]
    """
    order = _checked("spline_filter", input, order, mode, 0)
    axes = tuple(range(typeof(input).ndim))
    out: Array = _coefficients(input, order=order, axes=axes, mode=canonical(mode))
    return out


@compiled("order", "axes", "mode", name="spline_filter")
def _coefficients(x, *, order, axes, mode):
    x = working(x)
    for axis in axes:
        x = spline_coefficients(x, axis, order, COEFFICIENTS.get(mode, "mirror"))
    return x


def affine_transform(
    input: ArrayLike, matrix: ArrayLike, offset: ArrayLike | Sequence[ArrayLike] = 0.0,
    output_shape: Sequence[int] | None = None, output: DTypeLike | None = None, order: int = 3,
    mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    """Image whose element at ``o`` is that of the input at ``matrix @ o + offset``.

    Args:
      input: an array of rank ``d``.
      matrix: ``[d, d]``; ``[d]`` for a diagonal matrix; or ``[d, d + 1]`` or ``[d + 1, d + 1]`` for
        homogeneous coordinates, in which case the last column replaces the offset.
      offset: a number, or one for each axis.
      output_shape: the shape of the result, by default that of the input.
      output: the dtype of the result, by default that of the input.
      order, mode, cval, prefilter: as in `map_coordinates`.

    Returns:
      An array of ``output_shape``. It is differentiable in the input, and from order 1 on in the
      matrix and the offset. Results for integer images are rounded.

    Raises:
      ValueError: if a shape does not match, or an option is unknown.

    >>> affine_transform(np.float32([1, 2, 3]), np.float32([0.5]), order=1).tolist()
    [1.0, 1.5, 2.0]
    """
    order = _checked("affine_transform", input, order, mode, cval)
    matrix, offset = as_operand("affine_transform", matrix), as_operand("affine_transform", offset)
    d = typeof(input).ndim
    allowed = ((d,), (d, d), (d, d + 1), (d + 1, d + 1))
    if typeof(matrix).shape not in allowed:
        raise ValueError(
            f"affine_transform: matrix must have one of the shapes {list(allowed)} for an input of "
            f"{d} dimensions, got {typeof(matrix).shape}"
        )
    if typeof(offset).shape not in ((), (d,)):
        raise ValueError(f"affine_transform: offset must have shape ({d},) or be a number")
    shape = typeof(input).shape if output_shape is None else _shape(output_shape, d)
    out: Array = _affine(
        input, matrix, offset, cval, shape=shape, order=order, mode=canonical(mode),
        prefilter=bool(prefilter), dtype=result_dtype("affine_transform", input, output),
    )  # fmt: skip
    return out


def _shape(shape: Any, d: int) -> tuple[int, ...]:
    sizes = tuple(operator.index(n) for n in shape)
    if len(sizes) != d:
        raise ValueError(f"affine_transform: output_shape must have {d} sizes, got {sizes}")
    return sizes


@compiled("shape", "order", "mode", "prefilter", "dtype", name="affine_transform")
def _affine(x, matrix, offset, cval, *, shape, order, mode, prefilter, dtype):
    d = typeof(x).ndim
    wide = coordinate_dtype(x, matrix)
    matrix, offset = (lax.convert_element_type(v, wide) for v in (matrix, offset))
    offset = pnp.broadcast_to(offset, (d,))
    if typeof(matrix).ndim == 1:
        axes = []
        for i in range(d):
            grid = np.stack([np.arange(shape[i]), np.ones(shape[i])])
            row = pnp.stack([matrix[i], offset[i]])[None]
            axes.append(_product(row, lax.convert_element_type(grid, wide))[0])
        return _cast(on_grid(working(x), axes, order, mode, cval, prefilter), dtype)
    if typeof(matrix).shape[1] == d + 1:
        matrix, offset = matrix[:d, :d], matrix[:d, d]
    return _cast(_turned(working(x), matrix, offset, shape, order, mode, cval, prefilter), dtype)


def _product(matrix: Any, grid: Any) -> Any:
    """Coordinates as a product of matrices.

    XLA might compute sums of products once for the nodes and once, with other roundings, for the
    weights. Next to an integer, these would then belong to different nodes.
    """
    return lax.dot_general(matrix, grid, (((1,), (0,)), ((), ())), precision="highest")


def _turned(x, matrix, offset, shape, order, mode, cval, prefilter):
    d = typeof(x).ndim
    wide = typeof(matrix).dtype
    grid = np.indices((*shape, 1)).reshape(d + 1, -1)
    grid[d] = 1
    joined = pnp.concatenate([matrix, offset[:, None]], 1)
    coordinates = [
        lax.reshape(lax.index_in_dim(c, 0, 0, keepdims=False), shape)
        for c in pnp.split(_product(joined, lax.convert_element_type(grid, wide)), d)
    ]
    return at_points(x, coordinates, order, mode, cval, prefilter)


def shift(
    input: ArrayLike, shift: ArrayLike, output: DTypeLike | None = None, order: int = 3,
    mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    """Image shifted by a number of elements along each axis, positive to higher indices.

    Args:
      input: an array of rank ``d``.
      shift: a number, or one for each axis; fractions interpolate.
      output: the dtype of the result, by default that of the input.
      order, mode, cval, prefilter: as in `map_coordinates`.

    Returns:
      An array of the shape of ``input``. It is differentiable in the shift from order 1 on.

    Raises:
      ValueError: if the number of shifts differs from that of the axes, or an option is unknown.

    >>> shift(np.float32([1, 2, 3]), 1.0, order=1).tolist()
    [0.0, 1.0, 2.0]
    >>> shift(np.float32([1, 2, 3]), -0.5, order=1).tolist()
    [1.5, 2.5, 0.0]
    """
    order = _checked("shift", input, order, mode, cval)
    shift = as_operand("shift", shift)
    d = typeof(input).ndim
    if typeof(shift).shape not in ((), (d,)):
        raise ValueError(f"shift: shift must be a number or have shape ({d},)")
    out: Array = _shifted(
        input, shift, cval, order=order, mode=canonical(mode), prefilter=bool(prefilter),
        dtype=result_dtype("shift", input, output),
    )  # fmt: skip
    return out


@compiled("order", "mode", "prefilter", "dtype", name="shift")
def _shifted(x, shift, cval, *, order, mode, prefilter, dtype):
    d = typeof(x).ndim
    wide = coordinate_dtype(x, shift)
    shift = pnp.broadcast_to(lax.convert_element_type(shift, wide), (d,))
    axes = [
        lax.convert_element_type(np.arange(typeof(x).shape[i]), wide) - shift[i] for i in range(d)
    ]
    return _cast(on_grid(working(x), axes, order, mode, cval, prefilter), dtype)


def zoom(
    input: ArrayLike, zoom: float | Sequence[float], output: DTypeLike | None = None,
    order: int = 3, mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True, *,
    grid_mode: bool = False,
) -> Array:  # fmt: skip
    """Image with sizes multiplied by factors and rounded.

    Args:
      zoom: a factor, or one for each axis: Python numbers, because they determine the shape.
      grid_mode: the elements are pixels of a size, and the image ends with the edges of the first
        and last pixels; otherwise, they are points, and it ends with their centers.
      input, output, order, mode, cval, prefilter: as in `affine_transform`.

    Returns:
      An array of the sizes multiplied by the factors. It is differentiable in the input.

    Raises:
      ValueError: if the number of factors differs from that of the axes, or an option is unknown.

    >>> np.float64(zoom(np.float32([0, 2]), 2.5, order=1)).round(4).tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """
    order = _checked("zoom", input, order, mode, cval)
    factors = [float(z) for z in per_axis("zoom", "zoom", zoom, typeof(input).ndim)]
    shape = tuple(round(n * z) for n, z in zip(typeof(input).shape, factors))
    if any(n < 1 for n in shape):
        raise ValueError(f"zoom: the factors {factors} give the shape {shape}, which is empty")
    out: Array = _zoomed(
        input, cval, shape=shape, grid=bool(grid_mode), order=order, mode=canonical(mode),
        prefilter=bool(prefilter), dtype=result_dtype("zoom", input, output),
    )  # fmt: skip
    return out


@compiled("shape", "grid", "order", "mode", "prefilter", "dtype", name="zoom")
def _zoomed(x, cval, *, shape, grid, order, mode, prefilter, dtype):
    wide = coordinate_dtype(x)
    axes = []
    for n, m in zip(typeof(x).shape, shape):
        if grid:
            c = (np.arange(m) + 0.5) * (n / m) - 0.5
        else:
            c = np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 1.0)
            c = np.where(c > n - 1, n - 1, c)
        axes.append(pnp.asarray(c.astype(wide)))
    return _cast(on_grid(working(x), axes, order, mode, cval, prefilter), dtype)


def rotate(
    input: ArrayLike,
    angle: ArrayLike,
    axes: Integers | None = (1, 0),
    reshape: bool = True,
    output: DTypeLike | None = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> Array:
    """Image rotated in the plane of two axes about its center.

    Args:
      angle: degrees. With ``reshape`` it must be a Python number, because it determines the shape.
      axes: the two axes of the plane.
      reshape: enlarge the result to contain the whole image.
      input, output, order, mode, cval, prefilter: as in `affine_transform`.

    Returns:
      The rotated image. It is differentiable in the input, and without ``reshape`` in the angle.

    Raises:
      ValueError: if the axes are not two different ones, or an option is unknown.
      TypeError: if the angle is traced and ``reshape`` is true.

    >>> rotate(np.float32([[1, 2], [3, 4]]), 90, order=1).tolist()
    [[2.0, 4.0], [1.0, 3.0]]
    """
    order = _checked("rotate", input, order, mode, cval)
    d = typeof(input).ndim
    plane = sorted(one_axis(a, d) for a in axes)
    if len(plane) != 2 or plane[0] == plane[1]:
        raise ValueError(f"rotate: axes must be two different axes, got {tuple(axes)}")
    shape = list(typeof(input).shape)
    if reshape:
        try:
            radians = math.radians(float(angle))
        except TypeError as error:
            raise TypeError(
                "rotate: a traced angle does not determine the shape of the result: use "
                "reshape=False or a Python number."
            ) from error
        c, s = abs(math.cos(radians)), abs(math.sin(radians))
        m, n = shape[plane[0]], shape[plane[1]]
        # A quarter turn has a cosine of about 1e-17.
        shape[plane[0]] = int(c * m + s * n + 0.5)
        shape[plane[1]] = int(s * m + c * n + 0.5)
    out: Array = _rotated(
        input, as_operand("rotate", angle), cval, plane=tuple(plane), shape=tuple(shape),
        order=order, mode=canonical(mode), prefilter=bool(prefilter),
        dtype=result_dtype("rotate", input, output),
    )  # fmt: skip
    return out


@compiled("plane", "shape", "order", "mode", "prefilter", "dtype", name="rotate")
def _rotated(x, angle, cval, *, plane, shape, order, mode, prefilter, dtype):
    x = working(x)
    wide = coordinate_dtype(x)
    angle = lax.convert_element_type(angle, wide) * (math.pi / 180)
    # Sines and cosines of multiples of 90 degrees are exact by a reduction to half turns.
    c, s = _rounded(lax.cos(angle)), _rounded(lax.sin(angle))
    matrix = pnp.stack([pnp.stack([c, s]), pnp.stack([-s, c])])
    old = np.array([(typeof(x).shape[a] - 1) / 2 for a in plane]).astype(wide)
    new = np.array([(shape[a] - 1) / 2 for a in plane]).astype(wide)
    offset = old - pnp.matmul(matrix, new)
    moved = pnp.moveaxis(x, plane, (0, 1))
    target = (shape[plane[0]], shape[plane[1]])
    rest = typeof(moved).shape[2:]
    flat = lax.reshape(moved, (*typeof(moved).shape[:2], int(np.prod(rest))))

    def one(slice_):
        return _turned(slice_, matrix, offset, target, order, mode, cval, prefilter)

    out = pnp.stack([one(flat[..., i]) for i in range(typeof(flat).shape[2])], -1)
    out = lax.reshape(out, (*target, *rest))
    return _cast(pnp.moveaxis(out, (0, 1), plane), dtype)


def _rounded(x):
    """Values below a few rounding errors become zero."""
    small = lax.abs(x) < 8 * float(dtypes.finfo(typeof(x).dtype).eps)
    return lax.select(small, lax.full_like(x, 0), x)
