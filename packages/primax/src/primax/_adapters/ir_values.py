"""MLIR types, constants and attributes, under the reference's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from primax_core import tree_util
from primax_core.extend import ShapedArray, dtypes, facade, lowering as mlir, typeof
from primax_core.extend.lowering import hlo, ir
from primax_core.extend.runtime import as_operand
from primax_core.typing import DTypeLike

# Attributes


def i32_attr(i: int) -> Any:
    """Return a 32-bit integer attribute."""
    return mlir.i32(i)


def i64_attr(i: int) -> Any:
    """Return a 64-bit integer attribute."""
    return mlir.i64(i)


def dense_int_elements(xs: Sequence[int]) -> Any:
    """``dense<...> : tensor<nxi64>``."""
    return mlir.i64_elements(xs)


def dense_int_array(xs: Sequence[int]) -> Any:
    """``array<i64: ...>``."""
    return mlir.i64s(xs)


def ir_attribute(val: Any) -> Any:
    """Convert a Python value to an MLIR attribute.

    Accepts numbers (64-bit), strings, NumPy arrays and scalars, sequences, mappings with string
    keys, and attributes.

    Raises:
      TypeError: for other values.
    """
    with facade.context, facade.unknown_location:
        return _attribute(val)


def _attribute(val: Any) -> Any:
    if isinstance(val, ir.Attribute):
        return val
    if isinstance(val, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(val))
    if isinstance(val, int):
        return mlir.i64(val)
    if isinstance(val, float) and not isinstance(val, np.generic):
        return ir.FloatAttr.get_f64(val)
    if isinstance(val, str):
        return ir.StringAttr.get(val)
    if isinstance(val, bytes):
        return ir.StringAttr.get(val)
    if isinstance(val, np.generic):
        element = mlir.element_type(val.dtype)
        if dtypes.issubdtype(val.dtype, np.floating):
            return ir.FloatAttr.get(element, float(val))
        if dtypes.issubdtype(val.dtype, np.integer):
            return ir.IntegerAttr.get(element, int(val))
    if isinstance(val, np.ndarray):
        return mlir.dense(val)
    if isinstance(val, np.dtype):
        return ir.TypeAttr.get(mlir.element_type(val))
    if isinstance(val, ir.Type):
        return ir.TypeAttr.get(val)
    if isinstance(val, Mapping):
        return ir.DictAttr.get({k: _attribute(v) for k, v in val.items()})
    if isinstance(val, Sequence):
        return ir.ArrayAttr.get([_attribute(v) for v in val])
    raise TypeError(f"cannot convert {val!r} of type {type(val).__name__} to an MLIR attribute")


# Types

ir_type_handlers: dict[type, Callable[[Any, Any], Sequence[Any]]] = {
    ShapedArray: lambda ctx, aval: (mlir.type_of(aval),)
}
"""Functions ``(module context, aval) -> MLIR types`` by aval class."""


def aval_to_ir_types(ctx: Any, aval: ShapedArray) -> tuple[Any, ...]:
    """Return the MLIR types that represent an aval.

    Raises:
      TypeError: if ``ir_type_handlers`` has no entry for the aval's class.
    """
    handler = ir_type_handlers.get(type(aval))
    if handler is None:
        raise TypeError(f"no MLIR type for values of {aval}; see ir_type_handlers")
    return tuple(handler(ctx, aval))


def aval_to_ir_type(ctx: Any, aval: ShapedArray) -> Any:
    """Return the single MLIR type that represents an aval.

    Raises:
      TypeError: if ``ir_type_handlers`` has no entry for the aval's class.
      ValueError: if several MLIR values represent it.
    """
    ir_types = aval_to_ir_types(ctx, aval)
    if len(ir_types) != 1:
        raise ValueError(f"values of {aval} are represented by {len(ir_types)} MLIR values")
    return ir_types[0]


def dtype_to_ir_type(dtype: DTypeLike) -> Any:
    """Return the MLIR element type of a dtype.

    Raises:
      TypeError: if arrays cannot have this dtype.
    """
    return mlir.element_type(np.dtype(dtype))


def token_type() -> Any:
    """Return the MLIR type of tokens, which order effects."""
    return hlo.TokenType.get(facade.context)


# Constants


class ConstantHandler(Protocol):
    """Protocol of constant handlers: ``handler(value, aval)`` returns MLIR values."""

    def __call__(self, val: Any, aval: Any) -> Any:
        """Return the MLIR value, or a sequence of values."""
        ...


_constant_handlers: dict[type, ConstantHandler] = {}


def register_constant_handler(type_: type, handler_fun: ConstantHandler) -> None:
    """Register the handler that emits constants of a Python class."""
    _constant_handlers[type_] = handler_fun


def ir_constants(
    val: Any, *, const_lowering: Mapping[Any, Any] | None = None, aval: ShapedArray | None = None
) -> tuple[Any, ...]:
    """Emit a constant; return its MLIR values.

    Args:
      val: an array, a number, or a value whose class has a handler.
      const_lowering: values emitted earlier, by ``(id of the constant, aval)``.
      aval: its type, if known.
    """
    if const_lowering and (emitted := const_lowering.get((id(val), aval))) is not None:
        return tuple(flatten_ir_values([emitted]))
    for cls in type(val).__mro__:
        handler = _constant_handlers.get(cls)
        if handler is not None:
            return tuple(flatten_ir_values([handler(val, aval)]))
    dtype = typeof(val).dtype
    if isinstance(dtype, np.dtype):
        return (mlir.constant(np.asarray(val, dtype)),)
    return (mlir.constant(as_operand(val)._stored),)


def ir_constant(
    val: Any, *, const_lowering: Mapping[Any, Any] | None = None, aval: ShapedArray | None = None
) -> Any:
    """Emit a constant that a single MLIR value represents.

    Raises:
      ValueError: if several values represent it.
    """
    ir_values = ir_constants(val, const_lowering=const_lowering, aval=aval)
    if len(ir_values) != 1:
        raise ValueError(f"the constant {val!r} is represented by {len(ir_values)} MLIR values")
    return ir_values[0]


def shape_tensor(ctx: Any, sizes: Sequence[Any]) -> Any:
    """Emit a vector of 32-bit integers from sizes, each a number or an MLIR scalar."""
    one = mlir.tensor_type((1,), np.dtype(np.int32))
    if all(isinstance(s, (int, np.integer)) for s in sizes):
        return mlir.constant(np.array(sizes, np.int32))
    scalar = mlir.tensor_type((), np.dtype(np.int32))
    parts = []
    for s in sizes:
        value = mlir.constant(np.int32(s)) if isinstance(s, (int, np.integer)) else s
        if value.type != scalar:
            value = hlo.convert(scalar, value)
        parts.append(hlo.reshape(one, value))
    return hlo.concatenate(parts, mlir.i64(0))


# Groups of values


class IrTreeRegistry:
    """Flattening of nested tuples, lists and mappings of MLIR values or types."""

    @staticmethod
    def flatten(
        x: Any, is_leaf: Callable[[Any], bool] | None = None
    ) -> tuple[list[Any], tree_util.PyTreeDef]:
        """Return the leaves, and the structure, whose method ``unflatten`` restores the nesting."""
        return tree_util.tree_flatten(x, is_leaf)


ir_tree_registry: Final = IrTreeRegistry()


def flatten_ir_values(xs: Sequence[Any]) -> list[Any]:
    """Flatten a sequence of values and groups of values."""
    return ir_tree_registry.flatten(xs)[0]


def flatten_ir_types(xs: Sequence[Any]) -> list[Any]:
    """Flatten a sequence of types and groups of types."""
    return ir_tree_registry.flatten(xs)[0]


def unflatten_ir_values_like_types(xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
    """Group the values ``xs`` like the types ``ys``."""
    return ir_tree_registry.flatten(list(ys))[1].unflatten(xs)
