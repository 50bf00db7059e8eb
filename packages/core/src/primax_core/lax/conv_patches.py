"""Patches of a convolution, and convolutions with unshared kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike, DTypeLike, Shape
from .broadcasting import broadcast_in_dim, broadcasted_iota
from .comparison import eq
from .contracting import dot_general
from .conv_numbers import ConvGeneralDilatedDimensionNumbers, conv_dimension_numbers
from .conversion import convert_element_type
from .convolution import Padding, conv_general_dilated
from .permuting import transpose
from .precision import Precision, PrecisionLike, canonical_precision
from .reshaping import reshape


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Shape,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Patches of a convolution: the elements of each window, as features.

    Args:
      lhs: the input.
      filter_shape: size of the window along each spatial axis.
      window_strides: distance of windows, for each spatial axis.
      padding: a name, or pairs ``(low, high)`` for each spatial axis.
      lhs_dilation: distance of the input's elements; ``None`` is 1.
      rhs_dilation: distance of the window's elements; ``None`` is 1.
      dimension_numbers: three strings, see :func:`conv_dimension_numbers`.
      precision: a :class:`Precision` or a name such as ``"highest"``.
      preferred_element_type: dtype of the result.

    Returns:
      An array with the layout of a convolution's result. Its features are the features of the
      input and, within each, the elements of the window in row-major order.

    Raises:
      TypeError: if the number of sizes is not the number of spatial axes.

    The function is linear: the cotangents of overlapping windows are added.

    >>> x = np.array([[[1.0, 2.0, 3.0]]], np.float32)
    >>> conv_general_dilated_patches(x, (2,), (1,), "VALID").tolist()
    [[[1.0, 2.0], [2.0, 3.0]]]
    """
    window = tuple(filter_shape)
    aval = typeof(lhs)
    numbers = conv_dimension_numbers(aval.shape, (1, 1, *window), dimension_numbers)
    features, size = aval.shape[numbers.lhs_spec[1]], math.prod(window)
    # One kernel for each position in the window: 1 at the position, 0 elsewhere.
    places = [broadcasted_iota(np.int32, (size, size), axis) for axis in (0, 1)]
    kernel = convert_element_type(eq(*places), aval.dtype)
    kernel = broadcast_in_dim(kernel, (features, size, size), (1, 2))
    kernel = reshape(kernel, (features * size, 1, *window))
    kernel = transpose(kernel, np.argsort(numbers.rhs_spec).tolist())
    return conv_general_dilated(
        lhs, kernel, window_strides, padding, lhs_dilation, rhs_dilation, numbers,
        feature_group_count=features,
        precision=None if precision is None else _of_first(precision),
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _of_first(precision: PrecisionLike) -> Any:
    """The precision of the first operand; the lowest one for the kernel of zeros and ones."""
    canonical = canonical_precision(precision)
    return (canonical[0], Precision.DEFAULT) if type(canonical) is tuple else canonical


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Shape,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """Convolution with a separate kernel at each position of the result.

    Args:
      lhs: the input.
      rhs: the kernels, in the layout of ``dimension_numbers``. The spatial axes have the sizes of
        the result. The input features enumerate the input's features and the elements of the
        window, in the order of :func:`conv_general_dilated_patches`.
      filter_shape: size of the window along each spatial axis.
      window_strides: distance of windows, for each spatial axis.
      padding: a name, or pairs ``(low, high)`` for each spatial axis.
      lhs_dilation: distance of the input's elements; ``None`` is 1.
      rhs_dilation: distance of the window's elements; ``None`` is 1.
      dimension_numbers: three strings, see :func:`conv_dimension_numbers`.
      precision: a :class:`Precision` or a name such as ``"highest"``.

    Returns:
      An array with the layout of ``dimension_numbers``.

    The other arguments are those of :func:`conv_general_dilated`.

    Raises:
      TypeError: if the sizes are incompatible.

    >>> x = np.array([[[1.0, 2.0, 3.0]]], np.float32)
    >>> kernels = np.array([[[1.0, 0.0], [0.0, 10.0]]], np.float32)  # out, patch, place
    >>> conv_general_dilated_local(x, kernels, (1,), "VALID", (2,)).tolist()
    [[[1.0, 30.0]]]
    """
    numbers = conv_dimension_numbers(typeof(lhs).shape, typeof(rhs).shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, precision
    )
    batch, features, *places = numbers.out_spec
    _, into, *kernel_places = numbers.rhs_spec
    out = dot_general(
        patches, rhs, (((features,), (into,)), (tuple(places), tuple(kernel_places))), precision
    )
    # Spatial axes first, then the batch and the features of the result.
    return transpose(out, np.argsort((*places, batch, features)).tolist())
