"""Operations with sizes, which are numbers or symbolic dimensions.

With numbers these are StableHLO's static operations. With symbolic dimensions they are its dynamic
ones, with sizes computed in the module from the dimension variables (see
:mod:`primax_core._lower.dynamic`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from .._ir.avals import ShapedArray
from .._ir.element_types import DTypeLike
from .._ir.symbolic_dims import Dimension, UnknownDimensionError, is_static
from . import context as mlir
from .context import constant, hlo, i64, i64s
from .lazy import chlo

_I64 = np.dtype(np.int64)


class _Variables(threading.local):
    """The dimension variables of the lowering in this thread."""

    def __init__(self) -> None:
        self.values: Mapping[str, ir.Value] | None = None


_variables = _Variables()


@contextmanager
def dimension_variables(values: Mapping[str, ir.Value]):
    """Context manager: sizes are computed from these values of the variables (i64 scalars)."""
    saved, _variables.values = _variables.values, values
    try:
        yield
    finally:
        _variables.values = saved


def has_variables() -> bool:
    """Return True if the current lowering has dimension variables."""
    return _variables.values is not None


# Values of dimensions


def size_value(d: Any, dtype: DTypeLike = _I64) -> ir.Value[Any]:
    """The value of a dimension, a scalar.

    Args:
      d: a number or a symbolic dimension.
      dtype: the integer dtype of the scalar, by default ``int64``.

    Returns:
      An MLIR value: a constant, or the expression of dimension variables, computed when the
      function runs.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend.elementwise import unary
    >>> from primax_core.extend.lowering import hlo, size_value, type_of
    >>> def emit(ctx, x):
    ...     return hlo.convert(type_of(ctx.out_avals[0]), size_value(7))
    >>> float(unary("acme_seven", ["float"], emit).bind(1.0))
    7.0
    """
    if not isinstance(d, Dimension):
        return constant(np.asarray(d, dtype))
    value = _sum(d)
    return value if dtype == _I64 else hlo.convert(mlir.tensor_type((), dtype), value)


def _sum(d: Any) -> ir.Value[Any]:
    total = None
    for monomial, coefficient in d.terms:
        value = None
        for factor, exponent in monomial:
            base = _factor(d, factor)
            for _ in range(exponent):
                value = base if value is None else hlo.multiply(value, base)
        if value is None:
            value = constant(np.int64(coefficient))
        elif coefficient != 1:
            value = hlo.multiply(value, constant(np.int64(coefficient)))
        total = value if total is None else hlo.add(total, value)
    assert total is not None
    return total


def _factor(d: Any, factor: Any) -> ir.Value[Any]:
    if not factor.op:
        known = _variables.values or {}
        try:
            return known[factor.name]
        except KeyError:
            listed = ", ".join(sorted(known)) or "none"
            raise UnknownDimensionError(
                f"Encountered dimension variable '{factor.name}' that is not appearing in the "
                "shapes of the function arguments. The following dimension variables are: "
                f"{listed}. The value of a variable is computed from the shapes of the arguments "
                "of a call."
            ) from None
    x, y = (size_value(o) for o in factor.operands)
    if factor.op == "max":
        return hlo.maximum(x, y)
    if factor.op == "min":
        return hlo.minimum(x, y)
    plain = all(d.scope.bounds(o)[0] >= low for o, low in zip(factor.operands, (0, 1)))
    if plain:
        return hlo.divide(x, y) if factor.op == "floordiv" else hlo.remainder(x, y)
    return _rounded_down(factor.op, x, y)


def _rounded_down(op: str, x: ir.Value[Any], y: ir.Value) -> ir.Value[Any]:
    """``//`` and ``%`` of numbers of any sign."""
    zero = constant(np.int64(0))
    rest = hlo.remainder(x, y)
    differs = hlo.compare(hlo.multiply(rest, y), zero, hlo.ComparisonDirectionAttr.get("LT"))
    if op == "mod":
        return hlo.select(differs, hlo.add(rest, y), rest)
    whole = hlo.divide(x, y)
    return hlo.select(differs, hlo.subtract(whole, constant(np.int64(1))), whole)


def size_values(sizes: Sequence[Any]) -> ir.Value[Any]:
    """The values of some dimensions, as an array."""
    return stacked_scalars([size_value(d) for d in sizes])


def stacked_scalars(values: Sequence[ir.Value]) -> ir.Value[Any]:
    """i64 scalars as an array."""
    if not values:
        return constant(np.zeros(0, np.int64))
    one = mlir.tensor_type((1,), _I64)
    rows = [hlo.reshape(one, v) for v in values]
    return rows[0] if len(rows) == 1 else hlo.concatenate(rows, i64(0))


# Operations


def typed(x: ir.Value[Any], shape: Sequence[Any]) -> ir.Type:
    """The type of an array of a shape, with the elements of ``x``."""
    element = ir.RankedTensorType(x.type).element_type
    return ir.RankedTensorType.get(mlir.extents(shape), element)


def is_fixed(x: ir.Value[Any]) -> bool:
    """Return True if the shape of a value is static."""
    return bool(ir.RankedTensorType(x.type).has_static_shape)


def broadcast_in_dim(x: ir.Value[Any], shape: Sequence[Any], dims: Sequence[int]) -> ir.Value[Any]:
    """An MLIR value broadcast to a shape.

    Args:
      x: the value.
      shape: the shape of the result, numbers or symbolic dimensions.
      dims: for each axis of ``x``, the axis of the result.

    Returns:
      An MLIR value. With symbolic dimensions it is the dynamic operation of StableHLO.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend.elementwise import unary
    >>> from primax_core.extend.lowering import broadcast_in_dim, constant
    >>> def emit(ctx, x):
    ...     return broadcast_in_dim(constant(np.float32(2)), ctx.out_avals[0].shape, ())
    >>> unary("acme_two", ["float"], emit).bind(np.ones(3, np.float32)).tolist()
    [2.0, 2.0, 2.0]
    """
    if is_static(shape) and is_fixed(x):
        return hlo.broadcast_in_dim(typed(x, shape), x, i64s(dims))
    return hlo.dynamic_broadcast_in_dim(typed(x, shape), x, size_values(shape), i64s(dims))


def full(value: Any, shape: Sequence[Any]) -> ir.Value[Any]:
    """An MLIR value filled with one number.

    Args:
      value: a NumPy scalar, whose dtype is that of the result.
      shape: the shape of the result, numbers or symbolic dimensions.

    Returns:
      An MLIR value.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend.elementwise import unary
    >>> from primax_core.extend.lowering import full
    >>> def emit(ctx, x):
    ...     return full(np.float32(5), ctx.out_avals[0].shape)
    >>> unary("acme_five", ["float"], emit).bind(np.ones(3, np.float32)).tolist()
    [5.0, 5.0, 5.0]
    """
    if is_static(shape):
        return mlir.full(value, tuple(shape))
    return broadcast_in_dim(constant(np.asarray(value)), shape, ())


def zeros_of(aval: Any) -> ir.Value[Any]:
    """An array of zeros of an aval; for extended dtypes, of their buffers."""
    aval = mlir.physical(aval)
    return full(np.zeros((), aval.dtype)[()], aval.shape)


def reshape(x: ir.Value[Any], shape: Sequence[Any]) -> ir.Value[Any]:
    """An MLIR value in another shape, with the elements in row-major order.

    Args:
      x: the value.
      shape: the shape of the result, numbers or symbolic dimensions.

    Returns:
      An MLIR value. With symbolic dimensions it is the dynamic operation of StableHLO.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend.elementwise import unary
    >>> from primax_core.extend.lowering import reshape
    >>> def emit(ctx, x):
    ...     return reshape(reshape(x, (6,)), (2, 3))
    >>> unary("acme_same", ["float"], emit).bind(np.ones((2, 3), np.float32)).shape
    (2, 3)
    """
    if is_static(shape) and is_fixed(x):
        return hlo.reshape(typed(x, shape), x)
    return hlo.dynamic_reshape(typed(x, shape), x, size_values(shape))


def iota(shape: Sequence[Any], dtype: Any, axis: int) -> ir.Value[Any]:
    """Indices along an axis."""
    kind = mlir.tensor_type(tuple(shape), dtype)
    if is_static(shape):
        return hlo.iota(kind, i64(axis))
    return hlo.dynamic_iota(kind, size_values(shape), i64(axis))


def slice(
    x: ir.Value[Any],
    starts: Sequence[Any],
    limits: Sequence[Any],
    strides: Sequence[Any] | None = None,
) -> ir.Value[Any]:
    """Every ``stride``-th element from ``start`` to before ``limit``, along each axis."""
    strides = (1,) * len(starts) if strides is None else strides
    if is_static(starts) and is_static(limits) and is_static(strides) and is_fixed(x):
        return hlo.slice(x, i64s(starts), i64s(limits), i64s(strides))
    shape = [(n - s + k - 1) // k for s, n, k in zip(starts, limits, strides)]
    return hlo.real_dynamic_slice(
        typed(x, shape), x, size_values(starts), size_values(limits), size_values(strides)
    )


def dynamic_slice(
    x: ir.Value[Any], indices: Sequence[ir.Value], sizes: Sequence[Any]
) -> ir.Value[Any]:
    """The slice of given sizes at computed start indices, which are clamped."""
    if is_static(sizes):
        return hlo.dynamic_slice(x, list(indices), i64s(sizes))
    # The dynamic form of a slice with computed start and size is a gather of one slice.
    scalar = mlir.tensor_type((), _I64)
    axes = list(range(len(sizes)))
    numbers = hlo.GatherDimensionNumbers.get(
        offset_dims=axes, collapsed_slice_dims=[], operand_batching_dims=[],
        start_indices_batching_dims=[], start_index_map=axes, index_vector_dim=0,
    )  # fmt: skip
    starts = stacked_scalars([hlo.convert(scalar, i) for i in indices])
    return gather(x, starts, numbers, sizes, sizes, ir.BoolAttr.get(True))


def pad(
    x: ir.Value[Any], value: ir.Value, shape: Sequence[Any],
    low: Sequence[Any], high: Sequence[Any], between: Sequence[Any],
) -> ir.Value[Any]:  # fmt: skip
    """``x`` with a value added around and between its elements; ``shape`` is the result's."""
    if is_static(low) and is_static(high) and is_static(between) and is_fixed(x):
        return hlo.pad(x, value, i64s(low), i64s(high), i64s(between))
    return hlo.dynamic_pad(
        typed(x, shape), x, value, size_values(low), size_values(high), size_values(between)
    )


def gather(
    x: ir.Value[Any], indices: ir.Value, numbers: Any, sizes: Sequence[Any], shape: Sequence[Any],
    indices_are_sorted: ir.Attribute,
) -> ir.Value[Any]:  # fmt: skip
    """Slices of given sizes at computed indices; ``shape`` is the result's."""
    if is_static(sizes) and is_static(shape):
        return hlo.gather(x, indices, numbers, i64s(sizes), indices_are_sorted=indices_are_sorted)
    return hlo.dynamic_gather(
        x, indices, size_values(sizes), numbers, indices_are_sorted=indices_are_sorted,
        results=[typed(x, shape)],
    )  # fmt: skip


def convolution(
    kind: ir.Type,
    x: ir.Value[Any],
    kernel: ir.Value,
    padding: Sequence[tuple[Any, Any]],
    **attrs: Any,
) -> ir.Value[Any]:
    """A convolution with possibly symbolic padding."""
    flat = [p for pair in padding for p in pair]
    if is_static(flat):
        pads = np.array(flat, np.int64).reshape(-1, 2)
        return hlo.convolution(kind, x, kernel, padding=ir.DenseElementsAttr.get(pads), **attrs)
    rows = hlo.reshape(mlir.tensor_type((len(padding), 2), _I64), size_values(flat))
    return hlo.dynamic_conv(kind, x, kernel, rows, **attrs)


def rng_bit_generator(
    state_type: ir.Type, state: ir.Value, shape: Sequence[Any], dtype: Any, algorithm: str
) -> list[ir.Value]:
    """The next state, and random bits of a shape."""
    kind, name = mlir.tensor_type(tuple(shape), dtype), hlo.RngAlgorithmAttr.get(algorithm)
    if is_static(shape):
        return list(hlo.rng_bit_generator(state_type, kind, name, state))
    return _dynamic_call(
        "stablehlo.dynamic_rng_bit_generator", [state_type, kind], [state, size_values(shape)],
        rng_algorithm=name,
    )  # fmt: skip


def top_k(x: ir.Value[Any], k: Any, shape: Sequence[Any]) -> list[ir.Value]:
    """The ``k`` greatest elements along the last axis, and their indices, of a shape."""
    if not isinstance(k, Dimension):
        return list(chlo.top_k(x, i64(k)))
    indices_type = mlir.tensor_type(tuple(shape), np.dtype(np.int32))
    return _dynamic_call(
        "stablehlo.dynamic_top_k", [typed(x, shape), indices_type], [x, size_value(k)]
    )


def _dynamic_call(
    target: str, types: Sequence[ir.Type], operands: Sequence[ir.Value], **attributes: ir.Attribute
) -> list[ir.Value]:
    """An operation that refinement replaces by the corresponding static one."""
    name = ir.StringAttr.get(target)
    op = hlo.CustomCallOp(list(types), list(operands), call_target_name=name)
    for key, value in attributes.items():
        op.operation.attributes[key] = value
    return list(op.results)


def fitted(x: ir.Value[Any], aval: Any) -> ir.Value[Any]:
    """A value with the MLIR type of its aval."""
    if not isinstance(aval, ShapedArray):
        return x
    kind = mlir.type_of(aval)
    if x.type == kind:
        return x
    return hlo.dynamic_reshape(kind, x, size_values(mlir.physical(aval).shape))
