"""Reductions by sum, extremum and logical operations.

Products are in :mod:`.reduce_any`, because their derivative uses general reductions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._base.config import state
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower
from .._ir.samples import Sample, b1, bf16, c64, f32, i32, samples
from .._lower.lazy import hlo, ir, mlir, shaped
from .._runtime.sharding import ShardingLike
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.structural import reduce_sum_p as reduce_sum_p
from .._trace.typing import ArrayLike, DTypeLike
from .._transform.zeros import Zero
from . import arithmetic as b
from .bitwise import bitwise_and, bitwise_or, bitwise_xor
from .broadcasting import broadcast_in_dim
from .comparison import compare, eq
from .conversion import convert
from .elementwise import accepts, linear, no_derivative
from .out_sharding import batched_sharding, out_sharding_of, sharded_result, with_sharding
from .shapes import int_tuple, past, without

reduce_max_p: Final = Primitive("reduce_max")
reduce_min_p: Final = Primitive("reduce_min")
reduce_and_p: Final = Primitive("reduce_and")
reduce_or_p: Final = Primitive("reduce_or")
reduce_xor_p: Final = Primitive("reduce_xor")
argmax_p: Final = Primitive("argmax")
argmin_p: Final = Primitive("argmin")


def reduce_sum(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike | None = None
) -> Array:
    """Sum of the elements along some axes.

    Floats narrower than 32 bits are summed in ``float32`` and rounded once. The sum over an empty
    axis is 0.

    Args:
      operand: an array of integer, floating or complex dtype.
      axes: nonnegative axes to reduce. With ``()`` the operand is returned.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``; ``None``
        leaves it to the operand.

    Returns:
      An array of the operand's dtype, without the reduced axes.

    Raises:
      ValueError: if an axis is negative, does not exist or appears twice.
      TypeError: if the operand is boolean or not an array.

    The function is linear: the cotangent is broadcast along the reduced axes. Under ``vmap`` the
    mapped axis is left out of the operation, which runs on the whole batch.

    >>> reduce_sum(np.array([[1, 2], [3, 4]]), (0,)).tolist()
    [4, 6]
    >>> int(reduce_sum(np.array([[1, 2], [3, 4]]), (0, 1)))
    10
    """
    axes = int_tuple("reduce_sum", "axes", axes)
    return reduce_sum_p.bind(
        operand, axes=axes, out_sharding=out_sharding_of("reduce_sum", out_sharding)
    )


def reduce_max(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike | None = None
) -> Array:
    """Maximum along some axes; NaN if an element is NaN.

    The maximum over an empty axis is the smallest value of the dtype: ``-inf`` for floats.
    Complex numbers are ordered by their real, then by their imaginary part.

    Args:
      operand: an array of numbers or booleans.
      axes: nonnegative axes to reduce. With ``()`` the operand is returned.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``; ``None``
        leaves it to the operand.

    Returns:
      An array of the operand's dtype, without the reduced axes.

    Raises:
      ValueError: if an axis is negative, does not exist or appears twice.
      TypeError: if the operand is not an array.

    The derivative is that of the maximum; equal maxima share it equally. Under ``vmap`` the
    mapped axis is left out of the operation, which runs on the whole batch.

    >>> reduce_max(np.array([[1, 5], [3, 4]]), (1,)).tolist()
    [5, 4]
    >>> float(reduce_max(np.array([], np.float32), (0,)))
    -inf
    """
    axes = int_tuple("reduce_max", "axes", axes)
    return reduce_max_p.bind(
        operand, axes=axes, out_sharding=out_sharding_of("reduce_max", out_sharding)
    )


def reduce_min(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike | None = None
) -> Array:
    """Minimum along some axes; NaN if an element is NaN.

    The minimum over an empty axis is the largest value of the dtype: ``inf`` for floats. Complex
    numbers are ordered by their real, then by their imaginary part.

    Args:
      operand: an array of numbers or booleans.
      axes: nonnegative axes to reduce. With ``()`` the operand is returned.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``; ``None``
        leaves it to the operand.

    Returns:
      An array of the operand's dtype, without the reduced axes.

    Raises:
      ValueError: if an axis is negative, does not exist or appears twice.
      TypeError: if the operand is not an array.

    The derivative is that of the minimum; equal minima share it equally. Under ``vmap`` the
    mapped axis is left out of the operation, which runs on the whole batch.

    >>> reduce_min(np.array([[1, 5], [3, 4]]), (1,)).tolist()
    [1, 3]
    >>> float(reduce_min(np.array([], np.float32), (0,)))
    inf
    """
    axes = int_tuple("reduce_min", "axes", axes)
    return reduce_min_p.bind(
        operand, axes=axes, out_sharding=out_sharding_of("reduce_min", out_sharding)
    )


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Logical AND along some axes; bitwise AND for integers.

    The result for an empty axis is True, or an integer with all bits set.

    Args:
      operand: an array of boolean or integer dtype.
      axes: nonnegative axes to reduce.

    Returns:
      An array of the operand's dtype, without the reduced axes.

    Raises:
      TypeError: if the operand is neither of boolean nor of integer dtype.
      ValueError: if an axis is negative, does not exist or appears twice.

    The result has no derivative. Under ``vmap`` the mapped axis is left out of the operation,
    which runs on the whole batch.

    >>> reduce_and(np.array([[True, False], [True, True]]), (1,)).tolist()
    [False, True]
    >>> int(reduce_and(np.array([12, 10]), (0,)))
    8
    """
    return reduce_and_p.bind(operand, axes=int_tuple("reduce_and", "axes", axes))


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Logical OR along some axes; bitwise OR for integers.

    The result for an empty axis is False, or 0.

    Args:
      operand: an array of boolean or integer dtype.
      axes: nonnegative axes to reduce.

    Returns:
      An array of the operand's dtype, without the reduced axes.

    Raises:
      TypeError: if the operand is neither of boolean nor of integer dtype.
      ValueError: if an axis is negative, does not exist or appears twice.

    The result has no derivative. Under ``vmap`` the mapped axis is left out of the operation,
    which runs on the whole batch.

    >>> reduce_or(np.array([[True, False], [False, False]]), (1,)).tolist()
    [True, False]
    >>> int(reduce_or(np.array([12, 10]), (0,)))
    14
    """
    return reduce_or_p.bind(operand, axes=int_tuple("reduce_or", "axes", axes))


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Exclusive OR along some axes, the parity of the true elements; bitwise for integers.

    The result for an empty axis is False, or 0.

    Args:
      operand: an array of boolean or integer dtype.
      axes: nonnegative axes to reduce.

    Returns:
      An array of the operand's dtype, without the reduced axes.

    Raises:
      TypeError: if the operand is neither of boolean nor of integer dtype.
      ValueError: if an axis is negative, does not exist or appears twice.

    The result has no derivative. Under ``vmap`` the mapped axis is left out of the operation,
    which runs on the whole batch.

    >>> reduce_xor(np.array([[True, False], [True, True]]), (1,)).tolist()
    [True, False]
    >>> int(reduce_xor(np.array([12, 10]), (0,)))
    6
    """
    return reduce_xor_p.bind(operand, axes=int_tuple("reduce_xor", "axes", axes))


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Index of the first maximum along an axis; of the first NaN if there is one.

    Args:
      operand: an array of real numbers or booleans.
      axis: nonnegative axis, not empty.
      index_dtype: integer dtype of the result.

    Returns:
      An array of dtype ``index_dtype``, without the axis.

    Raises:
      ValueError: if the axis is negative, does not exist or is empty.
      TypeError: if ``index_dtype`` is not an integer dtype, or the operand is complex.

    The result has no derivative. Under ``vmap`` the mapped axis is left out of the operation,
    which runs on the whole batch.

    >>> argmax(np.array([[1, 3, 3], [9, 0, 2]]), 1, np.int32).tolist()
    [1, 0]
    >>> int(argmax(np.array([1.0, np.nan, 2.0]), 0, np.int32))
    1
    """
    return _arg("argmax", argmax_p, operand, axis, index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Index of the first minimum along an axis; of the first NaN if there is one.

    Args:
      operand: an array of real numbers or booleans.
      axis: nonnegative axis, not empty.
      index_dtype: integer dtype of the result.

    Returns:
      An array of dtype ``index_dtype``, without the axis.

    Raises:
      ValueError: if the axis is negative, does not exist or is empty.
      TypeError: if ``index_dtype`` is not an integer dtype, or the operand is complex.

    The result has no derivative. Under ``vmap`` the mapped axis is left out of the operation,
    which runs on the whole batch.

    >>> argmin(np.array([[1, 1, 3], [9, 0, 2]]), 1, np.int32).tolist()
    [0, 1]
    >>> int(argmin(np.array([1.0, np.nan, 0.0]), 0, np.int32))
    1
    """
    return _arg("argmin", argmin_p, operand, axis, index_dtype)


# Shared rules of reductions


def reduced_shape(x: ShapedArray, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a reduction's result."""
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    if not all(0 <= a < x.ndim for a in axes):
        raise ValueError(f"reduction axes {axes} contains out-of-bounds indices for {x}.")
    return without(x.shape, axes)


def emit_reduce(
    values: Sequence[Any], inits: Sequence[Any], axes: Sequence[int], body: Callable[..., Any]
) -> list[Any]:
    """An MLIR ``reduce`` of several operands; ``body`` combines accumulators with elements."""
    scalars = [i.type for i in inits]
    types = [ir.RankedTensorType(v.type) for v in values]
    results = [ir.RankedTensorType.get(without(t.shape, axes), t.element_type) for t in types]
    op = hlo.ReduceOp(results, values, inits, mlir.i64s(axes))
    block = op.body.blocks.append(*scalars, *scalars)
    with ir.InsertionPoint(block):
        args = list(block.arguments)
        hlo.return_(body(args[: len(values)], args[len(values) :]))
    return list(op.results)


def axis_reducer(
    prim: Primitive,
    check: Callable[[str, Any], None],
    op: Callable[..., Any],
    identity: Callable[[Any], Any],
    widen: bool = False,
) -> None:
    """Define the type, lowering and batching of a reduction by an associative operation.

    Args:
      check: ``(name, dtype)``, raises for dtypes that are not accepted.
      op: the operation, a function of two arrays.
      identity: function of a dtype that returns the neutral element.
      widen: combine floats narrower than 32 bits in ``float32``.
    """

    @prim.rule(abstract)
    def _abstract(x, *, axes, out_sharding=None):
        check(prim.name, x.dtype)
        out = ShapedArray(reduced_shape(x, axes), x.dtype, x.weak_type)
        return out if out_sharding is None else with_sharding(prim, out, out_sharding)

    def _lower(ctx, x, *, axes, **_):
        aval, out = ctx.in_avals[0], ctx.out_avals[0]
        dtype = aval.dtype
        in_float32 = widen and accepts(dtype, ("float",)) and dtypes.itemsize_bits(dtype) < 32
        if in_float32:
            dtype = np.dtype(np.float32)
            x = hlo.convert(mlir.tensor_type(aval.shape, dtype), x)
        init = mlir.constant(np.asarray(identity(dtype)).astype(dtype))
        scalar = ShapedArray((), dtype)

        def body(acc, element):
            return [ctx.call(op, acc[0], element[0], in_avals=[scalar, scalar])]

        (y,) = emit_reduce([x], [init], axes, body)
        return hlo.convert(mlir.type_of(out), y) if in_float32 else y

    prim.rule(lower)(sharded_result(prim)(_lower))
    axis_batching(prim)


def axis_batching(prim: Primitive) -> None:
    """Define the batching of a reduction of one operand."""

    @prim.rule(batch)
    def _batch(axis, args, dims, *, axes, **params):
        (dim,) = dims
        out_dim = dim - sum(a < dim for a in axes)
        if params.get("out_sharding") is not None:
            params["out_sharding"] = batched_sharding(params["out_sharding"], out_dim, axis)
        return prim.bind(args[0], axes=past(dim, axes), **params), out_dim


def only(*kinds: str) -> Callable[[str, Any], None]:
    """A check that a dtype belongs to one of the given dtype classes."""

    def check(name, dtype):
        if not accepts(dtype, kinds):
            raise TypeError(
                f"{name} does not accept dtype {dtype.name}. Accepted dtypes are subtypes of "
                f"{', '.join(kinds)}."
            )

    return check


def repeat_along(x: ArrayLike, axes: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """The result of a reduction, broadcast along the reduced axes."""
    return broadcast_in_dim(x, shape, without(range(len(shape)), axes))


# Sums


def _summable(name: str, dtype: Any) -> None:
    only("number")(name, dtype)
    if not state.allow_f16_reductions and dtype in (dtypes.f16, dtypes.bf16):
        raise ValueError(
            f"{name} on an operand of dtype {dtype.name} is not allowed when "
            "allow_f16_reductions=False: convert it to float32 first."
        )


axis_reducer(reduce_sum_p, _summable, b.add, lambda dtype: 0, widen=True)
linear(reduce_sum_p, lambda ct, x, *, axes, out_sharding: repeat_along(ct, axes, x.shape))


# Extrema


def least(dtype: DTypeLike) -> Any:
    """The neutral element of the maximum: minus infinity, the smallest integer, False."""
    if dtype == np.bool_:
        return False
    if accepts(dtype, ("integer",)):
        return dtypes.iinfo(dtype).min
    if accepts(dtype, ("complex",)):
        return complex(-np.inf, 0)
    return _infinity(dtype, -1)


def greatest(dtype: DTypeLike) -> Any:
    """The neutral element of the minimum: infinity, the largest integer, True."""
    if dtype == np.bool_:
        return True
    if accepts(dtype, ("integer",)):
        return dtypes.iinfo(dtype).max
    if accepts(dtype, ("complex",)):
        return complex(np.inf, 0)
    return _infinity(dtype, 1)


def _infinity(dtype: Any, sign: int) -> Any:
    """An infinity, or the extreme finite number of a dtype without infinities."""
    value = np.asarray(sign * np.inf).astype(dtype)
    if np.isinf(value.astype(np.float64)):
        return value
    info = dtypes.finfo(dtype)
    return info.max if sign > 0 else info.min


def _any_dtype(name, dtype) -> None:
    only("number", "bool")(name, dtype)


axis_reducer(reduce_max_p, _any_dtype, b.max, least)
axis_reducer(reduce_min_p, _any_dtype, b.min, greatest)


def _shared_derivative(prim: Primitive) -> None:
    """Define the JVP of an extremum: elements equal to the result share the derivative."""

    @prim.rule(jvp)
    def _jvp(primals, tangents, *, axes, **params):
        (x,), (t,) = primals, tangents
        out = prim.bind(x, axes=axes, **params)
        if type(t) is Zero:
            return out, Zero.like(out)
        aval = typeof(x)
        chosen = convert(eq(x, repeat_along(out, axes, aval.shape)), aval.dtype)
        count = reduce_sum(chosen, axes)
        return out, b.div(reduce_sum(b.mul(t, chosen), axes), count)


_shared_derivative(reduce_max_p)
_shared_derivative(reduce_min_p)


# Logical operations


def _bits(name, dtype) -> None:
    if not accepts(dtype, ("bool", "integer")):
        raise TypeError(f"logical reduction requires operand dtype bool or int, got {dtype.name}.")


axis_reducer(reduce_and_p, _bits, bitwise_and, lambda dtype: dtype != np.bool_ and -1 or True)
axis_reducer(reduce_or_p, _bits, bitwise_or, lambda dtype: 0)
axis_reducer(reduce_xor_p, _bits, bitwise_xor, lambda dtype: 0)
for _p in (reduce_and_p, reduce_or_p, reduce_xor_p):
    no_derivative(_p)


# Indices of extrema


def _arg(name: str, prim: Primitive, operand: Any, axis: int, index_dtype: Any) -> Array:
    ndim = typeof(operand).ndim
    if not 0 <= axis < ndim:
        raise ValueError(f"Invalid axis {axis} for operand shape {typeof(operand).shape}")
    dtype = dtypes.canonicalize_user_dtype(index_dtype, name)
    return prim.bind(operand, axes=(int(axis),), index_dtype=dtype)


def _position(prim: Primitive, direction: str, identity: Callable) -> None:
    @prim.rule(abstract)
    def _abstract(x, *, axes, index_dtype):
        (axis,) = axes
        if not accepts(index_dtype, ("integer",)):
            raise TypeError(f"index_dtype must be an integer type, but got {index_dtype.name}")
        only("integer", "bool", "float")(prim.name, x.dtype)
        if x.shape[axis] == 0:
            raise ValueError(
                "argmin and argmax require non-empty reduced dimension. operand.shape="
                f"{x.shape} axis={axis}"
            )
        return ShapedArray(reduced_shape(x, axes), index_dtype)

    @prim.rule(lower)
    def _lower(ctx, x, *, axes, index_dtype):
        aval = ctx.in_avals[0]
        dtype = aval.dtype
        indices = shaped.iota(aval.shape, index_dtype, axes[0])
        inits = [
            mlir.constant(np.asarray(identity(dtype)).astype(dtype)),
            mlir.constant(np.zeros((), index_dtype)),
        ]

        def body(acc, element):
            (x, i), (y, j) = acc, element
            first = compare(direction, x, y, dtype)
            tied = compare("EQ", x, y, dtype)
            if accepts(dtype, ("float",)):  # NaN precedes all numbers and equals NaN
                x_nan, y_nan = compare("NE", x, x, dtype), compare("NE", y, y, dtype)
                first = hlo.or_(first, hlo.and_(x_nan, hlo.not_(y_nan)))
                tied = hlo.or_(tied, hlo.and_(x_nan, y_nan))
            earlier = hlo.and_(tied, compare("LT", i, j, index_dtype))
            take = hlo.or_(first, earlier)
            return [hlo.select(take, x, y), hlo.select(take, i, j)]

        return emit_reduce([x, indices], inits, axes, body)[1]

    axis_batching(prim)
    no_derivative(prim)


_position(argmax_p, "GT", least)
_position(argmin_p, "LT", greatest)


def _reduction_samples(prim: Primitive, kinds: str) -> None:
    extra = {"out_sharding": None} if prim in _SHARDED else {}

    @prim.rule(samples)
    def _samples():
        for kind in kinds:
            make: Any = {"f": f32, "c": c64, "i": i32, "b": b1, "h": bf16}[kind]
            yield Sample(make(4), axes=(0,), **extra)
            yield Sample(make(2, 3, 2), axes=(0, 2), **extra)
        yield Sample(make(2, 3), axes=(), **extra)
        yield Sample(make(3, 0), axes=(0,), **extra)


_SHARDED: Final = (reduce_sum_p, reduce_max_p, reduce_min_p, reduce_and_p, reduce_or_p,
                   reduce_xor_p)  # fmt: skip
_reduction_samples(reduce_sum_p, "fcih")
for _prim in (reduce_max_p, reduce_min_p):
    _reduction_samples(_prim, "fih")
for _prim in (reduce_and_p, reduce_or_p, reduce_xor_p):
    _reduction_samples(_prim, "ib")


def _place_samples(prim: Primitive) -> None:
    @prim.rule(samples)
    def _samples():
        index = np.dtype(np.int32)
        yield Sample(f32(4), axes=(0,), index_dtype=index)
        yield Sample(i32(2, 3), axes=(1,), index_dtype=np.dtype(np.uint8))
        yield Sample(bf16(0, 2), axes=(1,), index_dtype=index)


for _prim in (argmax_p, argmin_p):
    _place_samples(_prim)
