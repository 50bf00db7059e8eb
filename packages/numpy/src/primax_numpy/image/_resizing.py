"""Image resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, dtypes, inexact
from primax_core.extend.dimensions import index, is_static, size_as
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, ShapeLike

from .._checks import axes_of, check_arrays
from .._functions import compiled
from ._resampling import ResizeMethod, Taps, method_of, taps_of, weights_of


def resize(
    image: ArrayLike, shape: ShapeLike, method: Any, antialias: bool = True,
    precision: lax.PrecisionLike = lax.Precision.HIGHEST,
) -> Array:  # fmt: skip
    """An image resized to a shape; axes of unchanged size are not resampled.

    Args:
      image: an array of any rank. Integers become floats, except for the method ``"nearest"``.
      shape: the shape of the result.
      method: a :class:`ResizeMethod` or its name: ``"nearest"``, ``"linear"``, ``"cubic"``,
        ``"cubic-pytorch"``, ``"lanczos3"``, ``"lanczos5"``, ``"area"``, or a synonym.
      antialias: widen the kernel for downsampling.
      precision: the precision of the products.

    Raises:
      ValueError: if the number of axes differs, or the method is unknown.

    >>> resize(np.float32([0, 1]), (4,), "linear").tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    check_arrays("image.resize", image)
    aval = typeof(image)
    target = tuple([index(d) for d in shape])
    if len(target) != aval.ndim:
        raise ValueError(
            "image.resize: shape must have length equal to the number of dimensions of x; "
            f"{target} vs {aval.shape}"
        )
    if any(d < 0 for d in target) or any(d == 0 and w != 0 for d, w in zip(aval.shape, target)):
        raise ValueError(f"image.resize: cannot resize an image of shape {aval.shape} to {target}")
    kernel = method_of(method)
    if kernel is ResizeMethod.NEAREST:
        return _nearest(image, shape=target)
    return _resize(
        image, shape=target, method=kernel, antialias=bool(antialias), precision=precision
    )


@compiled("shape", name="resize")
def _nearest(image, *, shape):
    for axis, (size, out_size) in enumerate(zip(typeof(image).shape, shape)):
        if size == out_size:
            continue
        if not is_static((size, out_size)):
            odd = 2 * pnp.arange(out_size, dtype=np.uint32) + 1
            places = odd * size_as(size, np.uint32) // (2 * size_as(out_size, np.uint32))
            image = _taken(image, lax.convert_element_type(places, np.int32), axis)
            continue
        if out_size and size % out_size == 0:
            # Every k-th element, starting with the middle of the first k.
            k = size // out_size
            image = lax.slice_in_dim(image, k // 2, size, k, axis=axis)
            continue
        places = np.floor((np.arange(out_size) + 0.5) * size / max(out_size, 1)).astype(np.int32)
        image = _taken(image, places, axis)
    return image


def _taken(x, places: np.ndarray, axis: int):
    shape = typeof(x).shape
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple([i for i in range(len(shape)) if i != axis]),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    sizes = (*shape[:axis], 1, *shape[axis + 1 :])
    return lax.gather(
        x, places[:, None], numbers, sizes, indices_are_sorted=True,
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )  # fmt: skip


@compiled("shape", "method", "antialias", "precision")
def _resize(image, *, shape, method, antialias, precision):
    image = _in_floats(image)
    real = dtypes.finfo(typeof(image).dtype).dtype
    real = real if real.itemsize >= 4 else dtypes.f32
    for axis, (size, out_size) in enumerate(zip(typeof(image).shape, shape)):
        if size == out_size:
            continue
        if not is_static((size, out_size)):
            scale = lax.div(size_as(out_size, real), size_as(size, real))
            weights = weights_of(pnp, size, out_size, scale, real.type(0), method, antialias)
            image = _weighted(image, weights, axis, precision)
            continue
        scale = np.float64(out_size / max(size, 1))
        weights = weights_of(np, size, out_size, scale, np.float64(0), method, antialias)
        taps = taps_of(weights)
        if taps is None:
            image = _weighted(image, weights.astype(real), axis, precision)
        else:
            image = _tapped(image, taps, axis)
    return image


def _tapped(image, taps: Taps, axis: int):
    """Weighted sum of few elements along an axis, one tap after the other."""
    dtype = typeof(image).dtype
    total = None
    for places, weights in zip(*taps):
        part = _taken(image, places, axis)
        shape = typeof(part).shape
        part = lax.mul(part, lax.broadcast_in_dim(weights.astype(dtype), shape, (axis,)))
        total = part if total is None else lax.add(total, part)
    return total


def _in_floats(image):
    dtype, _ = inexact(typeof(image).dtype, False)
    return lax.convert_element_type(image, dtype)


def _weighted(image, weights, axis: int, precision):
    """Weighted sums along an axis; the new axis has the position of the old one."""
    weights = lax.convert_element_type(weights, typeof(image).dtype)
    n = typeof(image).ndim
    out = lax.dot_general(image, weights, (((axis,), (0,)), ((), ())), precision)
    order = list(range(n - 1))
    order.insert(axis, n - 1)
    return lax.transpose(out, tuple(order))


def scale_and_translate(
    image: ArrayLike,
    shape: ShapeLike,
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: Any,
    antialias: bool = True,
    precision: lax.PrecisionLike = lax.Precision.HIGHEST,
) -> Array:
    """An image scaled, translated and cropped to a shape.

    Input position ``i`` maps to ``i * scale + translation``, in coordinates in which element
    borders are integers. Positions outside of the image are zero.

    Args:
      image: an array of any rank; integers become floats.
      shape: the shape of the result, equal to that of the image except along ``spatial_dims``.
      spatial_dims: the axes that are scaled.
      scale, translation: ``float[len(spatial_dims)]``; they may be traced and are differentiable.
      method, antialias, precision: as in :func:`resize`; not ``"nearest"``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the shapes do not match, or the method is unknown.

    >>> one = np.float32([1])
    >>> scale_and_translate(np.float32([1, 2, 3]), (3,), (0,), one, one, "linear").tolist()
    [0.0, 1.0, 2.0]
    """
    check_arrays("image.scale_and_translate", image, scale, translation)
    aval = typeof(image)
    target = tuple([index(d) for d in shape])
    axes = axes_of(tuple(spatial_dims), aval.ndim)
    if len(target) != aval.ndim or any(
        d != w for i, (d, w) in enumerate(zip(aval.shape, target)) if i not in axes
    ):
        raise ValueError(
            f"image.scale_and_translate: shape {target} may differ from {aval.shape} only on the "
            f"axes {axes}"
        )
    for name, parameter in (("scale", scale), ("translation", translation)):
        if typeof(parameter).shape != (len(axes),):
            raise ValueError(
                f"image.scale_and_translate: {name} needs one number for each of the axes {axes}, "
                f"got shape {typeof(parameter).shape}"
            )
    kernel = method_of(method)
    if kernel is ResizeMethod.NEAREST:
        raise ValueError(
            "Nearest neighbor resampling is not currently supported for scale_and_translate."
        )
    return _scaled(
        image, scale, translation, shape=target, axes=axes, method=kernel,
        antialias=bool(antialias), precision=precision,
    )  # fmt: skip


@compiled("shape", "axes", "method", "antialias", "precision", name="scale_and_translate")
def _scaled(image, scale, translation, *, shape, axes, method, antialias, precision):
    image = _in_floats(image)
    scale, translation = (_in_floats(v) for v in (scale, translation))
    for k, axis in enumerate(axes):
        factor, shift = (lax.index_in_dim(v, k, 0, keepdims=False) for v in (scale, translation))
        shift = lax.convert_element_type(shift, typeof(factor).dtype)
        size = typeof(image).shape[axis]
        weights = weights_of(pnp, size, shape[axis], factor, shift, method, antialias)
        image = _weighted(image, weights, axis, precision)
    return image
