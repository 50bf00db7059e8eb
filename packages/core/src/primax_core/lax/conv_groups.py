"""Faster forms of grouped and small convolutions on the CPU.

XLA's CPU backend calls native code for a convolution without groups. It computes a grouped
convolution element by element, and the gradient with respect to the kernel hundreds of times more
slowly. Two forms replace them: a sum over the kernel's elements of the shifted and scaled input;
and a loop over the groups with one convolution each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.batching import move_axis
from .arithmetic import add, mul
from .broadcasting import broadcast_in_dim
from .control.scan import scan
from .conv_numbers import ConvDimensionNumbers
from .conversion import convert
from .elementwise import accepts
from .permuting import transpose
from .reshaping import reshape, squeeze
from .shapes import without
from .slicing import pad, slice as slice_of

# Number of multiplications below which a form does not repay its longer compilation.
_LITTLE: Final = 2**12
_LITTLE_IN_BATCH_GROUPS: Final = 2**14
_LITTLE_IN_LOOP: Final = 2**20
_NATIVE: Final = (np.dtype(np.float32), np.dtype(np.float16), dtypes.bf16)


def split_axis(x: ArrayLike, axis: int, parts: int) -> Array:
    """Split an axis into two: one of size ``parts``, and the rest."""
    shape = typeof(x).shape
    return reshape(x, (*shape[:axis], parts, shape[axis] // parts, *shape[axis + 1 :]))


def merged_axis(x: ArrayLike, source: int, target: int) -> Array:
    """Merge an axis into another as its outer part; ``target`` counts axes without ``source``."""
    x = move_axis(x, source, target, 0)
    shape = typeof(x).shape
    return reshape(x, (*shape[:target], shape[target] * shape[target + 1], *shape[target + 2 :]))


def form_on_cpu(
    convolve: Callable, x: ShapedArray, k: ShapedArray, out: ShapedArray, layout: dict[str, Any]
) -> Callable | None:
    """A function of input and kernel that is faster than one convolution, or ``None``.

    Args:
      convolve: a convolution ``(x, k, **layout)``.
      x, k, out: types of the input, the kernel and the result.
      layout: the parameters of ``conv_general_dilated_p`` except precision and dtype.
    """
    lhs, rhs, _ = layout["dimension_numbers"]
    groups = layout["feature_group_count"] * layout["batch_group_count"]
    inputs, outputs = k.shape[rhs[1]], k.shape[rhs[0]] // groups
    terms = inputs * math.prod(k.shape[a] for a in rhs[2:])
    work = out.size * terms
    if work < _LITTLE or not accepts(out.dtype, ("integer", "float")) or x.dtype == np.bool_:
        return None
    # Reads of shifted arrays are fast if the features of a group are not the innermost axis.
    if inputs == outputs == 1:
        most = 128
    elif lhs[1] < x.ndim - 1:
        most = 64
    else:
        most = 40 if groups > 1 else 20
    if terms <= most and (groups > 1 or inputs * outputs <= 16):
        return lambda x, k: _by_taps(x, k, out, layout)
    if groups == 1 or x.dtype not in _NATIVE:
        return None
    in_batch = layout["batch_group_count"] > 1
    # XLA optimizes this case: the gradient of a convolution with one feature in each group.
    single = in_batch and outputs == 1 and x.shape[lhs[0]] == groups
    if work < (_LITTLE_IN_BATCH_GROUPS if in_batch and not single else _LITTLE_IN_LOOP):
        return None
    if in_batch or inputs >= 4:
        features_last = not (in_batch and outputs * x.shape[lhs[0]] // groups <= 4)
        return lambda x, k: _by_groups(convolve, x, k, layout, features_last)
    return None


def _by_taps(x: Any, k: Any, out: ShapedArray, layout: dict[str, Any]) -> Array:
    """Sum over the kernel's elements of the input, shifted and multiplied by the element."""
    lhs, rhs, result = layout["dimension_numbers"]
    groups = layout["feature_group_count"] * layout["batch_group_count"]
    narrow = accepts(out.dtype, ("float",)) and dtypes.itemsize_bits(out.dtype) < 32
    dtype = np.dtype(np.float32) if narrow else out.dtype
    x, k = convert(x, dtype), split_axis(transpose(convert(k, dtype), rhs), 0, groups)
    if layout["batch_group_count"] > 1:
        x = merged_axis(split_axis(x, lhs[0], groups), lhs[0], lhs[1])
    config = [(0, 0, 0)] * len(lhs)
    for a, (low, high), dilation in zip(lhs[2:], layout["padding"], layout["lhs_dilation"]):
        config[a] = (low, high, dilation - 1)
    # The feature axis is split into the group and the feature within it.
    features = lhs[1]
    x = split_axis(pad(x, np.zeros((), dtype)[()], config), features, groups)
    spatial = [a + (a > features) for a in lhs[2:]]
    sizes = [out.shape[a] for a in result[2:]]
    total: Any = None
    for i, *tap in itertools.product(*map(range, typeof(k).shape[2:])):
        start, limit, step = [0] * (len(lhs) + 1), [*typeof(x).shape], [1] * (len(lhs) + 1)
        start[features + 1], limit[features + 1] = i, i + 1
        for a, at, within, stride, size in zip(
            spatial, tap, layout["rhs_dilation"], layout["window_strides"], sizes
        ):
            start[a], step[a] = at * within, stride
            limit[a] = at * within + (size - 1) * stride + 1
        shifted = squeeze(slice_of(x, start, limit, step), (features + 1,))
        term = _scaled(shifted, _element(k, (i, *tap)), features)
        total = term if total is None else add(total, term)
    shape = typeof(total).shape
    merged = shape[features] * shape[features + 1]
    total = reshape(total, (*shape[:features], merged, *shape[features + 2 :]))
    return convert(_relaid(total, lhs, result), out.dtype)


def _element(k: Any, at: Sequence[int]) -> Array:
    """The kernel elements at one spatial index, with axes (group, output feature of the group)."""
    shape = typeof(k).shape
    return reshape(slice_of(k, (0, 0, *at), (*shape[:2], *(i + 1 for i in at))), shape[:2])


def _scaled(x: Any, factors: Any, axis: int) -> Array:
    """Each group along an axis multiplied by all its factors, along a new next axis."""
    shape = typeof(x).shape
    full = (*shape[: axis + 1], typeof(factors).shape[1], *shape[axis + 1 :])
    return mul(
        broadcast_in_dim(x, full, without(range(len(full)), (axis + 1,))),
        broadcast_in_dim(factors, full, (axis, axis + 1)),
    )


def _relaid(x: Any, source: Sequence[int], target: Sequence[int]) -> Array:
    """Transpose an array from one layout to another."""
    order = [0] * len(source)
    for a, b in zip(source, target):
        order[b] = a
    return transpose(x, order)


def _by_groups(
    convolve: Callable, x: Any, k: Any, layout: dict[str, Any], features_last: bool
) -> Array:
    """Loop over the groups.

    Features are the last axis, as native code requires, or the first, which is faster for few
    results.
    """
    lhs, rhs, result = layout["dimension_numbers"]
    in_batch = layout["batch_group_count"] > 1
    groups = layout["feature_group_count"] * layout["batch_group_count"]
    n = len(lhs)
    first = tuple(range(n))
    data = (0, n - 1, *range(1, n - 1)) if features_last else first
    kernel = (n - 1, n - 2, *range(n - 2)) if features_last else first

    def grouped(x, source, target, axis):
        return move_axis(split_axis(_relaid(x, source, target), axis, groups), axis, 0, 0)

    xs = grouped(x, lhs, data, data[0] if in_batch else data[1])
    ks = grouped(k, rhs, kernel, kernel[0])
    numbers = ConvDimensionNumbers(data, kernel, data)
    alone = {
        **layout,
        "dimension_numbers": numbers,
        "feature_group_count": 1,
        "batch_group_count": 1,
    }
    _, ys = scan(lambda _, pair: (None, convolve(*pair, **alone)), None, (xs, ks))
    return _relaid(merged_axis(ys, 0, data[1]), data, result)
