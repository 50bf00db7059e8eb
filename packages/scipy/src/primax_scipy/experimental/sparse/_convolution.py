"""Convolutions of sparse arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import ShapeDtypeStruct, eval_shape, lax
from primax_core.extend import typeof
from primax_core.typing import ArrayLike, DTypeLike
from primax_numpy.declaring import compiled

from ._bcoo import BCOO
from ._coordinates import fitted, inside, masked, normal
from ._interpreter import sparse_rule
from ._structure import require_bcoo


class _Window(NamedTuple):
    """Static parameters of a convolution: for each spatial axis, and numbers of groups."""

    strides: tuple[int, ...]
    starts: tuple[int, ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    feature_groups: int
    batch_groups: int


def bcoo_conv_general_dilated(
    lhs: ArrayLike | BCOO,
    rhs: ArrayLike | BCOO,
    *,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: lax.ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: None = None,
) -> BCOO:
    """Convolution of two arrays, at least one of which is sparse.

    Args:
      lhs, rhs: the input and the kernels. A dense array is converted, with all of its elements.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count,
        batch_group_count: as for :func:`primax.lax.conv_general_dilated`.
      precision: must be ``None``: products are computed elementwise, in the dtype of the result.
      preferred_element_type: the dtype of the products and of the result.
      out_sharding: must be ``None``, because the result is sparse.

    Returns:
      A sparse array with an element for each pair of elements of the operands, or at most one for
      each position. It has two batch dimensions if they have size 1, and none otherwise.

    Raises:
      TypeError: if neither operand is sparse, or an operand has another format.
      ValueError: if shapes do not match, or an unsupported option is passed.

    >>> import primax_numpy as pnp
    >>> x = BCOO.fromdense(pnp.array([[[1.0, 0.0, 0.0, 2.0]]]))
    >>> kernel = BCOO.fromdense(pnp.array([[[1.0, -1.0]]]))
    >>> bcoo_conv_general_dilated(x, kernel, window_strides=(1,), padding="VALID").todense()
    Array([[[ 1.,  0., -2.]]], dtype=float32)
    """
    for name, option in (("precision", precision), ("out_sharding", out_sharding)):
        if option is not None:
            raise ValueError(f"bcoo_conv_general_dilated does not support {name}={option!r}")
    if not isinstance(lhs, BCOO) and not isinstance(rhs, BCOO):
        raise TypeError(
            "bcoo_conv_general_dilated expects at least one BCOO array, got "
            f"{type(lhs)} and {type(rhs)}; use lax.conv_general_dilated for dense arrays"
        )
    lhs, rhs = (_with_all_elements(x) for x in (lhs, rhs))
    options = {
        "lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation,
        "dimension_numbers": dimension_numbers, "feature_group_count": feature_group_count,
        "batch_group_count": batch_group_count, "preferred_element_type": preferred_element_type,
    }  # fmt: skip
    dense = _dense_type(lhs, rhs, window_strides, padding, options)
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    spatial = lhs.ndim - 2
    ones = (1,) * spatial
    dilations = tuple(lhs_dilation or ones), tuple(rhs_dilation or ones)
    strides = tuple(window_strides)
    left, right = (
        [x.shape[d] for d in spec] for x, spec in ((lhs, numbers.lhs_spec), (rhs, numbers.rhs_spec))
    )
    if isinstance(padding, str):
        sizes = [
            [(n - 1) * d + 1 if n else 0 for n, d in zip(shape[2:], dilation)]
            for shape, dilation in zip((left, right), dilations)
        ]
        padding = lax.padtype_to_pads(*sizes, strides, padding)
    starts = tuple(int(low) for low, _ in padding)
    window = _Window(strides, starts, *dilations, int(feature_group_count), int(batch_group_count))
    out_shape = tuple(dense.shape[d] for d in numbers.out_spec)
    data, indices = _convolve(
        lhs.data.astype(dense.dtype), lhs.indices, rhs.data.astype(dense.dtype), rhs.indices,
        window=window, left=tuple(left), right=tuple(right), out=out_shape,
        specs=(tuple(numbers.lhs_spec), tuple(numbers.rhs_spec), tuple(numbers.out_spec)),
    )  # fmt: skip
    out = BCOO((data, indices), shape=dense.shape)
    return out.update_layout(n_batch=2) if dense.shape[:2] == (1, 1) else out


def _with_all_elements(x: Any) -> BCOO:
    if not isinstance(x, BCOO):
        x = pnp.asarray(x)
        return BCOO.fromdense(x, nse=x.size)
    require_bcoo("bcoo_conv_general_dilated", x)
    return x.update_layout(n_batch=0, n_dense=0)


def _dense_type(lhs: BCOO, rhs: BCOO, strides: Any, padding: Any, options: Any) -> Any:
    """The type of the result of the dense convolution, after its checks."""
    structs = [ShapeDtypeStruct(x.shape, x.dtype) for x in (lhs, rhs)]
    return eval_shape(
        lambda a, b: lax.conv_general_dilated(a, b, strides, padding, **options), *structs
    )


@compiled("window", "left", "right", "out", "specs")
def _convolve(
    data: Any,
    indices: Any,
    data2: Any,
    indices2: Any,
    *,
    window: _Window,
    left: tuple[int, ...],
    right: tuple[int, ...],
    out: tuple[int, ...],
    specs: tuple[tuple[int, ...], ...],
) -> Any:
    """Products of all pairs of elements. Sizes are in the order of the specifications: batch and
    feature axes, then spatial axes."""
    take = lambda i, spec: [lax.convert_element_type(i[:, d], np.int32) for d in spec]
    shapes = [
        [n for _, n in sorted(zip(spec, sizes))] for spec, sizes in zip(specs[:2], (left, right))
    ]
    places, places2 = normal(indices, shapes[0]), normal(indices2, shapes[1])
    valid = inside(places, shapes[0])[:, None] & inside(places2, shapes[1])[None]
    n, c, *x = [v[:, None] for v in take(places, specs[0])]
    o, i, *k = [v[None] for v in take(places2, specs[1])]
    features = right[1]
    meet = valid & (c % max(features, 1) == i)
    if window.feature_groups > 1:
        meet = meet & (c // features == o // (right[0] // window.feature_groups))
    if window.batch_groups > 1:
        size = left[0] // window.batch_groups
        meet = meet & (n // size == o // (right[0] // window.batch_groups))
        n = n % size
    spatial = []
    for axis, (a, b) in enumerate(zip(x, k)):
        start = a * window.lhs_dilation[axis] + window.starts[axis] - b * window.rhs_dilation[axis]
        stride = window.strides[axis]
        meet = meet & (start >= 0) & (start % stride == 0)
        position = start // stride
        meet = meet & (position < out[2 + axis])
        spatial.append(position)
    pairs = typeof(meet).shape
    columns: list[Any] = [None] * len(out)
    for d, column in zip(specs[2], (n, o, *spatial)):
        columns[d] = column
    shape = [0] * len(out)
    for d, size in zip(specs[2], out):
        shape[d] = size
    result = [
        pnp.where(meet, pnp.broadcast_to(v, pairs), np.int32(size)).reshape(-1)
        for v, size in zip(columns, shape)
    ]
    products = masked((data[:, None] * data2[None]).reshape(-1), meet.reshape(-1))
    return fitted(products, pnp.stack(result, 1), tuple(shape))


@lax.conv_general_dilated_p.rule(sparse_rule)
def _sparse_conv_general_dilated(lhs: Any, rhs: Any, **params: Any) -> BCOO:
    names = (
        "window_strides", "padding", "lhs_dilation", "rhs_dilation", "dimension_numbers",
        "feature_group_count", "batch_group_count", "preferred_element_type",
    )  # fmt: skip
    return bcoo_conv_general_dilated(lhs, rhs, **{name: params[name] for name in names})
