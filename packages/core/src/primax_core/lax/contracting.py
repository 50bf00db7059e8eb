"""Contractions: ``dot_general`` and its special cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.placement import transposed
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.printer import hide_defaults
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._lower.lazy import hlo, mlir
from .._runtime.sharding import ShardingLike
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike, DTypeLike
from .._transform.zeros import Zero, add_tangents, is_linear
from .conversion import convert, converted
from .elementwise import check_kind, weak
from .out_sharding import (
    batched_sharding,
    out_sharding_of,
    sharded_result,
    sharding_like,
    with_sharding,
)
from .permuting import transpose as transpose_axes
from .precision import (
    DotAlgorithm,
    DotAlgorithmPreset,
    PrecisionLike,
    canonical_precision,
    lowered_algorithm,
    precision_attr,
)
from .shapes import int_tuple, past, without

DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]

dot_general_p: Final = Primitive("dot_general")
hide_defaults("dot_general", precision=None, preferred_element_type=None, out_sharding=None)


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Product of two arrays, summed over pairs of contracting axes, with paired batch axes.

    Args:
      lhs, rhs: numbers or booleans. Operands of different dtypes are converted to the wider dtype;
        floats are wider than integers, and complex numbers are wider than floats.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, each a
        sequence of nonnegative axes. Paired axes must have the same size.
      precision: a `Precision` for both operands or a pair of them, a `DotAlgorithm` or a
        `DotAlgorithmPreset`, or the name of one. The configured default if ``None``.
      preferred_element_type: dtype of the sums and of the result.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``.

    Returns:
      An array whose axes are the batch axes, the remaining axes of ``lhs``, and the remaining
      axes of ``rhs``.

    Raises:
      TypeError: if an axis does not exist or appears twice, if paired axes differ in size, or if
        ``preferred_element_type`` is narrower than the operands.

    >>> x = np.ones((2, 3, 4), np.float32)
    >>> dot_general(x, x, (((2,), (2,)), ((0,), (0,)))).shape
    (2, 3, 3)
    """
    return dot_general_p.bind(
        lhs,
        rhs,
        dimension_numbers=canonical_numbers(dimension_numbers),
        precision=canonical_precision(precision),
        preferred_element_type=element_type(preferred_element_type),
        out_sharding=out_sharding_of("dot_general", out_sharding),
    )


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Product of matrices and vectors; with ``dimension_numbers``, :func:`dot_general`.

    Args:
      lhs: a vector or a matrix.
      rhs: a vector or a matrix. Operands of different dtypes are converted to the wider dtype.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, for
        operands of any rank. By default the last axis of ``lhs`` and the first of ``rhs`` are
        contracted.
      precision: a :class:`Precision`, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: dtype in which products are accumulated, and dtype of the result.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``; ``None``
        leaves it to the operands.

    Returns:
      A scalar for two vectors, a vector for a vector and a matrix, a matrix for two matrices.

    Raises:
      TypeError: if the sizes of the contracting axes differ.
      ValueError: if an operand is neither a vector nor a matrix, and ``dimension_numbers`` is
        ``None``.

    The function is linear in each operand. Under ``vmap`` the mapped axis becomes a batch axis.

    >>> dot(np.ones((2, 3)), np.ones(3)).tolist()
    [3.0, 3.0]
    >>> x = np.array([100, 100], np.int8)
    >>> dot(x, x, preferred_element_type=np.int32).item()
    20000
    """
    if dimension_numbers is None:
        x, y = typeof(lhs).shape, typeof(rhs).shape
        if not (1 <= len(x) <= 2 and 1 <= len(y) <= 2):
            raise ValueError(
                "lax.dot: dimension_numbers must be specified when not performing simple "
                "un-batched matrix-matrix, matrix-vector, or vector-vector products; got "
                f"lhs_shape={x} rhs_shape={y}"
            )
        dimension_numbers = (((len(x) - 1,), (0,)), ((), ()))
    return dot_general(
        lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding
    )


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Batched matrix products: all axes except the last two are batch axes.

    Args:
      lhs: an array of shape ``(*batch, m, k)``.
      rhs: an array of shape ``(*batch, k, n)`` and of the dtype of ``lhs``.
      precision: a :class:`Precision`, a pair of them, or a name such as ``"highest"``.

    Returns:
      An array of shape ``(*batch, m, n)``.

    Raises:
      ValueError: if an operand has fewer than two axes, or the numbers of axes differ.
      TypeError: if the sizes are incompatible. Batch axes are not broadcast.

    The function is linear in each operand. Under ``vmap`` the mapped axis becomes a batch axis.

    >>> batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
    (5, 2, 4)
    >>> batch_matmul(np.ones((2, 3)), np.ones((3, 4))).shape
    (2, 4)
    """
    nx, ny = typeof(lhs).ndim, typeof(rhs).ndim
    if min(nx, ny) < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {nx}, {ny}")
    if nx != ny:
        raise ValueError(f"Arguments to batch_matmul must have same ndim, got {nx}, {ny}")
    stack = tuple(range(nx - 2))
    return dot_general(lhs, rhs, (((nx - 1,), (nx - 2,)), (stack, stack)), precision)


# Parameters


class DimensionNumbers(tuple):
    """Dimension numbers as a primitive's parameter; printed with the axes in square brackets."""

    __slots__ = ()

    def __str__(self) -> str:
        (lc, rc), (lb, rb) = ([list(axes) for axes in pair] for pair in self)
        return f"(({lc}, {rc}), ({lb}, {rb}))"


def canonical_numbers(numbers: Any) -> DimensionNumbers:
    try:
        (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = numbers
    except (TypeError, ValueError) as e:
        raise type(e)(
            "dot_general dimension_numbers must be ((lhs_contracting, rhs_contracting), "
            f"(lhs_batch, rhs_batch)), got {numbers}: {e}"
        ) from None
    return _numbers(lhs_contracting, rhs_contracting, lhs_batch, rhs_batch)


def _numbers(lhs_contracting, rhs_contracting, lhs_batch, rhs_batch) -> DimensionNumbers:
    name, what = "dot_general", "dimension_numbers"
    return DimensionNumbers((
        (int_tuple(name, what, lhs_contracting), int_tuple(name, what, rhs_contracting)),
        (int_tuple(name, what, lhs_batch), int_tuple(name, what, rhs_batch)),
    ))  # fmt: skip


def element_type(dtype: DTypeLike) -> Any:
    return None if dtype is None else dtypes.canonicalize_user_dtype(dtype, "dot_general")


# Types


@dot_general_p.rule(abstract)
def _abstract(x, y, *, dimension_numbers, precision, preferred_element_type, out_sharding):
    for i, a in enumerate((x, y)):
        check_kind("dot_general", a.dtype, ("number", "bool"), i)
    (xc, yc), (xb, yb) = dimension_numbers
    check_numbers(x, y, xc, yc, xb, yb)
    joint = common_dtype(x.dtype, y.dtype)
    if preferred_element_type is not None:
        check_preferred(joint, preferred_element_type, precision)
    shape = (
        *[x.shape[a] for a in xb],
        *without(x.shape, (*xb, *xc)),
        *without(y.shape, (*yb, *yc)),
    )
    dtype = joint if preferred_element_type is None else preferred_element_type
    return with_sharding(dot_general_p, ShapedArray(shape, dtype, weak((x, y))), out_sharding)


def check_numbers(
    x: ShapedArray,
    y: ShapedArray,
    xc: Sequence[int],
    yc: Sequence[int],
    xb: Sequence[int],
    yb: Sequence[int],
) -> None:
    """Raise TypeError if axes do not exist, appear twice, or differ in size from their partners."""
    if len(xb) != len(yb):
        raise TypeError(
            "dot_general requires equal numbers of lhs_batch and rhs_batch dimensions, got "
            f"lhs_batch {xb} and rhs_batch {yb}."
        )
    for side, aval, contracting, stack in (("lhs", x, xc, xb), ("rhs", y, yc, yb)):
        if any(not 0 <= a < aval.ndim for a in (*contracting, *stack)):
            raise TypeError(
                f"dot_general requires {side} dimension numbers to be nonnegative and less than "
                f"the number of axes of the {side} value, got {side}_batch of {stack} and "
                f"{side}_contracting of {contracting} for {side} of rank {aval.ndim}"
            )
        for what, axes in (("batch", stack), ("contracting", contracting)):
            if len(set(axes)) != len(axes):
                raise TypeError(
                    f"dot_general requires {side} {what} dimensions to be distinct, got "
                    f"{side}_{what} {axes}."
                )
        if set(contracting) & set(stack):
            raise TypeError(
                f"dot_general requires {side} batch dimensions to be disjoint from contracting "
                f"dimensions, got {side}_batch {stack} and {side}_contracting {contracting}."
            )
    pairs = (("lhs batch dimensions and rhs batch", xb, yb), ("contracting", xc, yc))
    for what, x_axes, y_axes in pairs:
        sizes = tuple([x.shape[a] for a in x_axes]), tuple([y.shape[a] for a in y_axes])
        if sizes[0] != sizes[1]:
            raise TypeError(
                f"dot_general requires {what} dimensions to have the same shape, got {sizes[0]} "
                f"and {sizes[1]}."
            )


def common_dtype(x: Any, y: Any) -> Any:
    """The wider of two dtypes: compared by class, then by size, then by range."""
    return x if x == y else max(x, y, key=_width)


def _width(dtype) -> tuple:
    kinds = (np.bool_, np.integer, np.floating, np.complexfloating)
    kind = next(i for i, k in enumerate(kinds) if dtypes.issubdtype(dtype, k))
    below = 0.0
    if kind == 1:
        below = -float(dtypes.iinfo(dtype).min)
    elif kind == 2:
        below = -float(dtypes.finfo(dtype).min)
    return kind, dtypes.itemsize_bits(dtype), below


def check_preferred(dtype: DTypeLike, preferred: DTypeLike | None, precision: Any) -> None:
    """Raise TypeError for a narrower accumulator dtype, except for floats and dot algorithms."""
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return
    bits = _bits(dtype)
    if dtypes.issubdtype(dtype, np.complexfloating):
        bits //= 2
    if not dtypes.issubdtype(dtype, np.floating) and _bits(preferred) < bits:
        raise TypeError(
            "`preferred_element_type` must not be narrower than the original type, got "
            f"preferred_element_type of {preferred.name} for result type of {dtype.name}."
        )


def _bits(dtype: Any) -> int:
    return 1 if dtype == np.bool_ else dtypes.itemsize_bits(dtype)


# Lowering


@dot_general_p.rule(lower)
@sharded_result(dot_general_p)
def _lower(ctx, x, y, *, dimension_numbers, precision, preferred_element_type, out_sharding):
    (xc, yc), (xb, yb) = dimension_numbers
    (xa, ya), (oa,) = ctx.in_avals, ctx.out_avals
    x_dtype, y_dtype = product_dtypes(xa.dtype, ya.dtype, oa.dtype)
    algorithm = lowered_algorithm(ctx.platform, precision, x_dtype, y_dtype, oa.dtype)
    out_dtype = oa.dtype
    if algorithm is not None:
        x_dtype, y_dtype, out_dtype = algorithm[:3]
    out = hlo.dot_general(
        mlir.tensor_type(oa.shape, out_dtype),
        converted(ctx, x, xa.dtype, x_dtype, xa.shape),
        converted(ctx, y, ya.dtype, y_dtype, ya.shape),
        hlo.DotDimensionNumbers.get(
            lhs_batching_dimensions=list(xb),
            rhs_batching_dimensions=list(yb),
            lhs_contracting_dimensions=list(xc),
            rhs_contracting_dimensions=list(yc),
        ),
        precision_config=precision_attr(precision),
        algorithm=None if algorithm is None else algorithm.attr,
    )
    return converted(ctx, out, out_dtype, oa.dtype, oa.shape)


def product_dtypes(x: Any, y: Any, out: Any) -> tuple[Any, Any]:
    """Dtypes to which the operands of a product are converted for XLA."""
    if x == y:
        # XLA's own upcast of packed integers leaves them packed and fails later.
        packed = x in dtypes.small_ints or x in dtypes.small_uints
        return (out, out) if packed else (x, y)
    both_narrow = x in dtypes.narrow_floats and y in dtypes.narrow_floats
    return (x, y) if both_narrow else (out, out)


# Derivatives


@dot_general_p.rule(jvp)
def _jvp(primals, tangents, **params):
    return bilinear_jvp(dot_general_p, primals, tangents, params)


def bilinear_jvp(
    prim: Primitive, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, Any]:
    """JVP of an operation that is linear in each of two operands."""
    (x, y), (tx, ty) = primals, tangents
    out = prim.bind(x, y, **params)
    total: Any = Zero.like(out)
    if total.aval.dtype == dtypes.float0:
        return out, total
    if type(tx) is not Zero:
        total = prim.bind(tx, y, **params)
    if type(ty) is not Zero:
        total = add_tangents(total, prim.bind(x, ty, **params))
    return out, total


@dot_general_p.rule(transpose)
def _transpose(ct, x, y, *, dimension_numbers, **params):
    (xc, yc), (xb, yb) = dimension_numbers
    if type(ct) is Zero:
        return [None, None]
    if is_linear(x):
        return [_cotangent(ct, x.aval, xc, xb, y, yc, yb, True, params), None]
    return [None, _cotangent(ct, y.aval, yc, yb, x, xc, xb, False, params)]


def _cotangent(ct, aval: ShapedArray, contracting, stack, other, other_c, other_b, first, params):
    """Cotangent of one operand: the product of ``ct`` and the other operand."""
    free = without(range(aval.ndim), (*contracting, *stack))
    other_free = without(range(typeof(other).ndim), (*other_c, *other_b))
    n = len(stack)
    start = n + len(free) if first else n
    summed = tuple(range(start, start + len(other_free)))
    numbers = _numbers(summed, other_free, range(n), other_b)
    # The trailing axes are the contracting axes of the other operand, in its axis order.
    by_axis = sorted(range(len(other_c)), key=lambda i: other_c[i])
    axes = (*stack, *free, *[contracting[i] for i in by_axis])
    sharding = sharding_like(transposed(aval), typeof(other), typeof(ct))
    if sharding is not None:
        sharding = sharding._permuted(axes)
    params = {**params, "out_sharding": sharding}
    product = dot_general_p.bind(ct, other, dimension_numbers=numbers, **params)
    product = transpose_axes(product, np.argsort(axes).tolist())
    return convert(product, aval.dtype, aval.weak_type)


# Batching


@dot_general_p.rule(batch)
def _batch(axis, args, dims, *, dimension_numbers, out_sharding, **params):
    (x, y), (dx, dy) = args, dims
    (xc, yc), (xb, yb) = dimension_numbers
    if dx is not None:
        xc, xb = past(dx, xc), past(dx, xb)
    if dy is not None:
        yc, yb = past(dy, yc), past(dy, yb)
    if dx is not None and dy is not None:
        xb, yb, out_dim = (dx, *xb), (dy, *yb), 0
    elif dx is not None:
        out_dim = len(xb) + _free_index(dx, xc, xb)
    else:
        out_dim = len(yb) + typeof(x).ndim - len(xc) - len(xb) + _free_index(dy, yc, yb)
    out = dot_general_p.bind(
        x, y, dimension_numbers=_numbers(xc, yc, xb, yb),
        out_sharding=batched_sharding(out_sharding, out_dim, axis), **params,
    )  # fmt: skip
    return out, out_dim


def _free_index(dim: int, contracting, stack) -> int:
    """Index of an axis among the free axes."""
    return dim - sum(a < dim for a in (*contracting, *stack))


@dot_general_p.rule(samples)
def _samples():
    options = {"precision": None, "out_sharding": None}
    f, c = np.dtype(np.float32), np.dtype(np.complex64)
    matrices = (((1,), (0,)), ((), ()))
    yield Sample(f32(2, 3), f32(3, 4), dimension_numbers=matrices, preferred_element_type=f,
                 **options)  # fmt: skip
    yield Sample(f32(2, 3, 4), f32(4, 2, 3), dimension_numbers=(((2, 1), (0, 2)), ((0,), (1,))),
                 preferred_element_type=f, **options)  # fmt: skip
    yield Sample(c64(3), c64(3), dimension_numbers=(((0,), (0,)), ((), ())),
                 preferred_element_type=c, **options)  # fmt: skip
    yield Sample(bf16(2, 0), bf16(0, 3), dimension_numbers=matrices, preferred_element_type=f,
                 **options)  # fmt: skip
    yield Sample(f32(2), f32(3), dimension_numbers=(((), ()), ((), ())),
                 preferred_element_type=None, **options)  # fmt: skip
    yield Sample(f32(2, 3), f32(4, 3), dimension_numbers=matrices, preferred_element_type=f,
                 **options).set(raises=TypeError)  # fmt: skip
