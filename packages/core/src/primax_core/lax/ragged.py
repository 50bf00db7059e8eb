"""Ragged products: one axis is divided into groups of different sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.samples import Sample, bf16, f32, samples
from .._runtime.sharding import ShardingLike
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike, DTypeLike
from .._transform.batching import move_axis
from .._transform.zeros import Zero, add_tangents, is_linear
from . import grouped
from .broadcasting import broadcast_in_dim
from .contracting import (
    check_numbers,
    check_preferred,
    common_dtype,
    dot_general,
    element_type,
)
from .conversion import convert, convert_element_type
from .elementwise import check_kind, weak
from .out_sharding import out_sharding_of
from .permuting import transpose as transpose_axes
from .precision import PrecisionLike, canonical_precision
from .shapes import int_tuple, past, without
from .slicing import slice_in_dim

ragged_dot_general_p: Final = Primitive("ragged_dot_general")

_FEW: Final = 256  # total rows of the masked copies up to which one product is as fast as a loop


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """Contracting, batch, ragged and group axes of a ragged product.

    Attributes:
      dot_dimension_numbers: as for :func:`dot_general`.
      lhs_ragged_dimensions: the ragged axis of ``lhs``, in a sequence.
      rhs_group_dimensions: the group axis of ``rhs``, in a sequence; empty if the ragged axis is a
        contracting or batch axis.
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        for name in ("lhs_ragged_dimensions", "rhs_group_dimensions"):
            axes = int_tuple("RaggedDotDimensionNumbers", name, getattr(self, name))
            object.__setattr__(self, name, axes)
        numbers = tuple(
            tuple(int_tuple("RaggedDotDimensionNumbers", "axes", axes) for axes in pair)
            for pair in self.dot_dimension_numbers
        )
        object.__setattr__(self, "dot_dimension_numbers", numbers)


_ROWS: Final = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Product of groups of consecutive rows, each with the matrix of its group.

    Args:
      lhs: ``[m, k]``.
      rhs: ``[g, k, n]``, a matrix for each group.
      group_sizes: ``integer[g]``: number of rows of each group. The result is 0 for rows after the
        last group.
      precision, preferred_element_type: as for :func:`dot_general`.
      group_offset: ``integer[1]``: the group of ``rhs[0]``. There may then be more groups than
        matrices; the result is 0 for rows of groups without a matrix.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``.

    Returns:
      ``[m, n]``. The cost is one vector-matrix product per row, for any number of groups. The
      function is differentiable in both operands.

    >>> x, w = np.ones((3, 2)), np.array([np.eye(2), 2 * np.eye(2)])
    >>> ragged_dot(x, w, np.array([2, 1])).tolist()
    [[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]]
    """
    return ragged_dot_general(
        lhs, rhs, group_sizes, _ROWS, precision, preferred_element_type, group_offset, out_sharding
    )


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """:func:`dot_general` with a ragged axis, in one of three modes.

    - The ragged axis of ``lhs`` is a free axis: each group is multiplied by its part of ``rhs``
      along the group axis, which the result lacks. The result is 0 after the last group.
    - It is a contracting axis: each group gives a sum, and the groups are the first axis of the
      result.
    - It is a batch axis: the product is that of :func:`dot_general`.

    Args:
      lhs: the left operand.
      rhs: the right operand, of the dtype of ``lhs``.
      group_sizes: ``integer[g]``, or with leading axes: the batch axes, and the axes with the role
        of the ragged axis that precede it.
      group_offset: as for :func:`ragged_dot`.
      ragged_dot_dimension_numbers: a :class:`RaggedDotDimensionNumbers`: contracting and batch
        axes, the ragged axis of ``lhs`` and the group axis of ``rhs``.
      precision: a :class:`Precision`, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: dtype in which products are accumulated, and dtype of the result.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``.

    Returns:
      An array: batch axes, then free axes of ``lhs``, then those of ``rhs``; a leading group axis
      if the ragged axis is a contracting axis.

    Raises:
      TypeError: if axes or sizes are incompatible, or ``group_sizes`` is not of integer dtype.

    >>> numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    >>> lhs, rhs = np.ones((4, 3)), np.ones((2, 3, 5))
    >>> ragged_dot_general(lhs, rhs, np.array([1, 3]), numbers).shape
    (4, 5)
    """
    if not isinstance(ragged_dot_dimension_numbers, RaggedDotDimensionNumbers):
        raise TypeError(
            "ragged_dot_general takes its axes as a RaggedDotDimensionNumbers, got "
            f"{ragged_dot_dimension_numbers!r}"
        )
    offsets = () if group_offset is None else (group_offset,)
    sharding = out_sharding_of("ragged_dot_general", out_sharding)
    apply = partial(
        ragged_dot_general_p.bind,
        ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
        precision=canonical_precision(precision),
        preferred_element_type=element_type(preferred_element_type),
    )
    if sharding is None:
        return apply(lhs, rhs, group_sizes, *offsets)
    return sharding._applied(apply, lhs, rhs, group_sizes, *offsets)


class _Axes:
    """The axes of a ragged product by their roles."""

    def __init__(self, x_ndim: int, y_ndim: int, numbers: RaggedDotDimensionNumbers):
        (self.xc, self.yc), (self.xb, self.yb) = numbers.dot_dimension_numbers
        self.ragged = numbers.lhs_ragged_dimensions[0]
        self.group = numbers.rhs_group_dimensions
        self.xf = without(range(x_ndim), (*self.xb, *self.xc))
        self.yf = without(range(y_ndim), (*self.yb, *self.yc, *self.group))
        self.mode = (
            "batch" if self.ragged in self.xb else "sum" if self.ragged in self.xc else "keep"
        )

    def prefix(self) -> tuple[int, ...]:
        """The axes of ``lhs`` along which group sizes may differ."""
        kind = {"batch": (), "sum": self.xc, "keep": self.xf}[self.mode]
        before = kind[: kind.index(self.ragged)] if kind else ()
        stack = self.xb[: self.xb.index(self.ragged)] if self.mode == "batch" else self.xb
        return (*stack, *before)


@ragged_dot_general_p.rule(abstract)
def _abstract(
    x, y, sizes, *offset, ragged_dot_dimension_numbers, precision, preferred_element_type
):
    name = "ragged_dot_general"
    for i, a in enumerate((x, y)):
        check_kind(name, a.dtype, ("number", "bool"), i)
    axes = _check_axes(x, y, ragged_dot_dimension_numbers)
    if not dtypes.issubdtype(sizes.dtype, np.integer):
        raise TypeError(f"{name} requires that group_sizes.dtype is subtype of np.integer.")
    groups = sizes.shape[-1] if sizes.ndim else 0
    prefix = tuple([x.shape[a] for a in axes.prefix()])
    if sizes.ndim != 1 and sizes.shape != (*prefix, groups) or not sizes.ndim:
        expected = (*prefix, groups) if len(prefix) + 1 == sizes.ndim else (groups,)
        raise TypeError(f"expected group_sizes to have shape {expected}, got {sizes.shape}.")
    if offset and (offset[0].shape != (1,) or not dtypes.issubdtype(offset[0].dtype, np.integer)):
        raise TypeError(f"{name} takes a group_offset of type int32[1], got {offset[0]}.")
    if axes.mode == "keep":
        size = y.shape[axes.group[0]]
        if size > groups if offset else size != groups:
            raise TypeError(f"expected rhs group dimension size to be {groups}, got {size}.")
    joint = common_dtype(x.dtype, y.dtype)
    if preferred_element_type is not None:
        check_preferred(joint, preferred_element_type, precision)
    shape = (
        *[x.shape[a] for a in axes.xb],
        *[x.shape[a] for a in axes.xf],
        *[y.shape[a] for a in axes.yf],
    )
    if axes.mode == "sum":
        shape = (groups, *shape)
    return ShapedArray(shape, preferred_element_type or joint, weak((x, y)))


def _check_axes(x: ShapedArray, y: ShapedArray, numbers: RaggedDotDimensionNumbers) -> _Axes:
    name = "ragged_dot_general"
    ragged, group = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
    check_numbers(x, y, xc, yc, xb, yb)
    if len(ragged) != 1:
        raise TypeError(f"{name} expects exactly one lhs ragged dimension.")
    for what, side, axes, aval in (("ragged", "lhs", ragged, x), ("group", "rhs", group, y)):
        if any(not 0 <= a < aval.ndim for a in axes):
            raise TypeError(
                f"{name} requires {side} {what} dimension numbers to be nonnegative and less than "
                f"the number of axes of the {side} value, got {axes[0]} for {side} of rank "
                f"{aval.ndim}."
            )
    if ragged[0] in (*xc, *xb):
        if group:
            raise TypeError(
                f"{name} requires zero group dimensions in the rhs when lhs ragged dimension is "
                "contracting or batch."
            )
    elif len(group) != 1:
        raise TypeError(
            f"{name} requires exactly one rhs group dimension when lhs ragged dimension is "
            "noncontracting."
        )
    elif group[0] in (*yc, *yb):
        raise TypeError(
            f"{name} requires rhs group dimension numbers to be distinct from contracting and "
            "batch dimensions."
        )
    return _Axes(x.ndim, y.ndim, numbers)


# Lowering


@ragged_dot_general_p.rule(lower)
def _lower(ctx, *values, ragged_dot_dimension_numbers, **params):
    # A loop over tiles saves work if operations run sequentially anyway.
    tiles = ctx.platform == "cpu"

    def product(x, y, sizes, *offset):
        return _computed(x, y, sizes, offset, ragged_dot_dimension_numbers, params, tiles)

    return ctx.call(product, *values)


def _computed(x, y, sizes, offset, numbers, params, tiles: bool):
    """The product as a composition of other operations."""
    axes = _Axes(typeof(x).ndim, typeof(y).ndim, numbers)
    if axes.mode == "batch":
        return dot_general(x, y, numbers.dot_dimension_numbers, **params)
    joint = common_dtype(typeof(x).dtype, typeof(y).dtype)
    if joint != np.bool_ and typeof(x).dtype != typeof(y).dtype:
        x, y = convert_element_type(x, joint), convert_element_type(y, joint)
    n_local = typeof(y).shape[axes.group[0]] if axes.mode == "keep" else typeof(sizes).shape[-1]
    bounds = grouped.bounds(sizes, offset, n_local)
    many = n_local > 1 and typeof(x).shape[axes.ragged] * n_local > _FEW
    if tiles and many and not axes.xb and typeof(sizes).ndim == 1:
        return grouped.by_tiles(x, y, bounds, axes, params)
    return grouped.by_masks(x, y, bounds, axes, axes.prefix(), params)


# Derivatives


@ragged_dot_general_p.rule(jvp)
def _jvp(primals, tangents, **params):
    x, y, *sizes = primals
    out = ragged_dot_general_p.bind(*primals, **params)
    total: Any = Zero.like(out)
    if total.aval.dtype == dtypes.float0:
        return out, total
    tx, ty = tangents[:2]
    if type(tx) is not Zero:
        total = ragged_dot_general_p.bind(tx, y, *sizes, **params)
    if type(ty) is not Zero:
        total = add_tangents(total, ragged_dot_general_p.bind(x, ty, *sizes, **params))
    return out, total


@ragged_dot_general_p.rule(transpose)
def _transpose(ct, x, y, *sizes, ragged_dot_dimension_numbers, **params):
    rest = [None] * len(sizes)
    if type(ct) is Zero:
        return [None, None, *rest]
    x_aval, y_aval = (v.aval if is_linear(v) else typeof(v) for v in (x, y))
    axes = _Axes(x_aval.ndim, y_aval.ndim, ragged_dot_dimension_numbers)
    rule = {"keep": _transposed_keep, "sum": _transposed_sum, "batch": _transposed_batch}[axes.mode]
    if is_linear(x):
        result, aval = rule(ct, axes, None, y, x_aval, sizes, params), x_aval
    else:
        result, aval = rule(ct, axes, x, None, y_aval, sizes, params), y_aval
    result = convert(result, aval.dtype, aval.weak_type)
    return [result, None, *rest] if is_linear(x) else [None, result, *rest]


def _bind(x, y, sizes, pairs, ragged: int, group: tuple[int, ...], params: dict):
    numbers = RaggedDotDimensionNumbers(pairs, (ragged,), group)
    return ragged_dot_general_p.bind(x, y, *sizes, ragged_dot_dimension_numbers=numbers, **params)


def _put(result, axes: Sequence[int]):
    """The result, transposed to the axis order of an operand."""
    return transpose_axes(result, np.argsort(axes).tolist())


def _paired(own: Sequence[int], others: Sequence[int]) -> list[int]:
    """Contracting axes of one operand, in the order of their partners as free axes."""
    return [own[i] for i in sorted(range(len(own)), key=lambda i: others[i])]


def _transposed_keep(ct, axes: _Axes, x, y, aval, sizes, params):
    n, nf = len(axes.xb), len(axes.xf)
    stack, free_dims = tuple(range(n)), tuple(range(n, n + nf))
    if x is None:
        last = tuple(range(n + nf, n + nf + len(axes.yf)))
        at = n + axes.xf.index(axes.ragged)
        pairs = ((last, axes.yf), (stack, axes.yb))
        result = _bind(ct, y, sizes, pairs, at, axes.group, params)
        return _put(result, (*axes.xb, *axes.xf, *_paired(axes.xc, axes.yc)))
    pairs = ((axes.xf, free_dims), (axes.xb, stack))
    result = _bind(x, ct, sizes, pairs, axes.ragged, (), params)
    n_local = aval.shape[axes.group[0]]
    if typeof(result).shape[0] != n_local:
        result = slice_in_dim(result, 0, n_local, axis=0)
    return _put(result, (*axes.group, *axes.yb, *_paired(axes.yc, axes.xc), *axes.yf))


def _transposed_sum(ct, axes: _Axes, x, y, aval, sizes, params):
    n, nf = len(axes.xb), len(axes.xf)
    stack, free_dims = tuple(range(1, n + 1)), tuple(range(n + 1, n + 1 + nf))
    last = tuple(range(n + 1 + nf, n + 1 + nf + len(axes.yf)))
    if x is None:
        position = axes.xc.index(axes.ragged)
        other, b, c, f, free = y, axes.yb, axes.yc, axes.yf, last
        back = (*axes.xb, *axes.xc, *axes.xf)
    else:
        position = axes.xc.index(axes.ragged)
        other, b, c, f, free = x, axes.xb, axes.xc, axes.xf, free_dims
        back = (*axes.yb, *axes.yc, *axes.yf)
    # Contracting axes in their listed order, which determines the axes that precede the ragged one.
    other = transpose_axes(other, (*b, *c, *f))
    nc = len(c)
    pairs = ((tuple(range(n + nc, n + nc + len(f))), free), (tuple(range(n)), stack))
    result = _bind(other, ct, sizes, pairs, n + position, (0,), params)
    return _put(result, back)


def _transposed_batch(ct, axes: _Axes, x, y, aval, sizes, params):
    n, nf = len(axes.xb), len(axes.xf)
    stack, free_dims = tuple(range(n)), tuple(range(n, n + nf))
    last = tuple(range(n + nf, n + nf + len(axes.yf)))
    at = axes.xb.index(axes.ragged)
    if x is None:
        result = _bind(ct, y, sizes, ((last, axes.yf), (stack, axes.yb)), at, (), params)
        return _put(result, (*axes.xb, *axes.xf, *_paired(axes.xc, axes.yc)))
    result = _bind(ct, x, sizes, ((free_dims, axes.xf), (stack, axes.xb)), at, (), params)
    return _put(result, (*axes.yb, *axes.yf, *_paired(axes.yc, axes.xc)))


# Batching


@ragged_dot_general_p.rule(batch)
def _batch(axis, args, dims, *, ragged_dot_dimension_numbers, **params):
    x, y, sizes, *offset = args
    dx, dy, ds, *do = dims
    numbers = ragged_dot_dimension_numbers
    (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
    (ragged,), group = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    if do and do[0] is not None:
        raise NotImplementedError(
            "ragged_dot_general with a mapped group_offset: map group_sizes instead, cut to the "
            "groups of each example"
        )
    axes = _Axes(typeof(x).ndim - (dx is not None), typeof(y).ndim - (dy is not None), numbers)
    if dx is None and ds is None:
        # The mapped axis is an additional free axis of rhs, the last one if it is last in rhs.
        last = typeof(y).ndim - 1
        y = move_axis(y, dy, last, axis.size)
        out = ragged_dot_general_p.bind(
            x, y, sizes, *offset, ragged_dot_dimension_numbers=numbers, **params
        )
        return out, typeof(out).ndim - 1
    if dy is None and ds is None:
        last = typeof(x).ndim - 1
        x = move_axis(x, dx, last, axis.size)
        out = ragged_dot_general_p.bind(
            x, y, sizes, *offset, ragged_dot_dimension_numbers=numbers, **params
        )
        return out, (axes.mode == "sum") + len(axes.xb) + len(axes.xf)
    x, y = (move_axis(v, d, 0, axis.size) for v, d in ((x, dx), (y, dy)))
    shape = typeof(x).shape
    n_sizes = typeof(sizes).ndim - (ds is not None)
    prefix = [shape[a + 1] for a in axes.prefix()]
    groups = typeof(sizes).shape[-1 if ds != n_sizes else 0]
    if ds is not None or n_sizes > 1:
        sizes = move_axis(sizes, ds, 0, axis.size)
        if n_sizes == 1 and prefix:
            full = (axis.size, *prefix, groups)
            sizes = broadcast_in_dim(sizes, full, (0, len(full) - 1))
    pairs = (
        (past(0, xc), past(0, yc)),
        ((0, *past(0, xb)), (0, *past(0, yb))),
    )
    out = _bind(x, y, (sizes, *offset), pairs, ragged + 1, past(0, group), params)
    return out, 1 if axes.mode == "sum" else 0


@ragged_dot_general_p.rule(samples)
def _samples():
    plain = {"precision": None, "preferred_element_type": None}
    sizes = np.array([2, 1], np.int32)

    def numbers(*pairs, ragged, group=()):
        return RaggedDotDimensionNumbers(pairs, (ragged,), group)

    rows = {"ragged_dot_dimension_numbers": _ROWS, **plain}
    yield Sample(f32(4, 3), f32(2, 3, 2), sizes, **rows)
    yield Sample(bf16(4, 3), bf16(2, 3, 2), sizes, **rows)
    yield Sample(f32(0, 3), f32(2, 3, 2), sizes, **rows)
    summed = numbers(((0,), (0,)), ((), ()), ragged=0)
    yield Sample(f32(4, 3), f32(4, 2), sizes, ragged_dot_dimension_numbers=summed, **plain)
    stack = numbers(((2,), (1,)), ((0,), (0,)), ragged=0)
    yield Sample(f32(3, 2, 3), f32(3, 3, 2), sizes, ragged_dot_dimension_numbers=stack, **plain)
