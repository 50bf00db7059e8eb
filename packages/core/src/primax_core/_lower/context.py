"""MLIR: the context, types and constants."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _stablehlo
from jaxlib.mlir.dialects import func, stablehlo

from .._base import caches
from .._ir import dtypes
from .._ir.element_types import DTypeLike
from .._ir.symbolic_dims import Dimension, is_static
from .._runtime.array import physical

__all__ = ["func", "hlo", "ir"]

hlo = stablehlo


def make_context() -> ir.Context:
    """A context with the registered dialects of lowered modules."""
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.enable_multithreading(False)
    context.load_all_available_dialects()
    # The Python classes of CHLO's operations are loaded by the modules that use them.
    for dialect in (_stablehlo, _chlo):
        dialect.register_dialect(context)
    return context


context: ir.Context = make_context()


@cache
def sdy() -> Any:
    """jaxlib's module of the sharding dialect, which is registered on first use."""
    # Not by its extension, as CHLO: importing the extension before the module leaves the module
    # without half of its names, for the whole process.
    from jaxlib.mlir.dialects import sdy

    sdy.register_dialect(context)
    return sdy


def parse_sharding(text: str) -> ir.Attribute:
    """Shardy's attribute with a text, in which meshes may be written in place."""
    sdy()
    return ir.Attribute.parse(text, context)


def name_meshes(module: ir.Module) -> None:
    """Give each mesh that is written in place of its name in a module a name."""
    from jaxlib.mlir.passmanager import PassManager

    sdy()
    PassManager.parse("builtin.module(sdy-lift-inlined-meshes)", context).run(module.operation)


unknown_location: ir.Location = ir.Location.unknown(context)

_element_types: dict[Any, Any] = {}
_tensor_types: dict[tuple, Any] = caches.bounded_cache()


def _make_element_types() -> None:
    with context:
        signless, unsigned = ir.IntegerType.get_signless, ir.IntegerType.get_unsigned
        table: dict[Any, Any] = {
            np.bool_: signless(1),
            np.float16: ir.F16Type.get(),
            ml_dtypes.bfloat16: ir.BF16Type.get(),
            np.float32: ir.F32Type.get(),
            np.float64: ir.F64Type.get(),
            np.complex64: ir.ComplexType.get(ir.F32Type.get()),
            np.complex128: ir.ComplexType.get(ir.F64Type.get()),
        }
        for bits in (8, 16, 32, 64):
            table[getattr(np, f"int{bits}")] = signless(bits)
            table[getattr(np, f"uint{bits}")] = unsigned(bits)
        for bits in (1, 2, 4):
            for name, make in ((f"int{bits}", signless), (f"uint{bits}", unsigned)):
                if hasattr(ml_dtypes, name):
                    table[getattr(ml_dtypes, name)] = make(bits)
        for name, mlir_name in (
            ("float8_e3m4", "Float8E3M4Type"),
            ("float8_e4m3", "Float8E4M3Type"),
            ("float8_e4m3fn", "Float8E4M3FNType"),
            ("float8_e4m3b11fnuz", "Float8E4M3B11FNUZType"),
            ("float8_e4m3fnuz", "Float8E4M3FNUZType"),
            ("float8_e5m2", "Float8E5M2Type"),
            ("float8_e5m2fnuz", "Float8E5M2FNUZType"),
            ("float8_e8m0fnu", "Float8E8M0FNUType"),
            ("float6_e2m3fn", "Float6E2M3FNType"),
            ("float6_e3m2fn", "Float6E3M2FNType"),
            ("float4_e2m1fn", "Float4E2M1FNType"),
        ):
            if hasattr(ml_dtypes, name) and hasattr(ir, mlir_name):
                table[getattr(ml_dtypes, name)] = getattr(ir, mlir_name).get()
        for scalar, element in table.items():
            _element_types[np.dtype(scalar)] = element
        _element_types[dtypes.float0] = signless(1)


_make_element_types()


def element_type(dtype: DTypeLike) -> ir.Type:
    """The MLIR type of one element of a dtype.

    Args:
      dtype: a dtype that arrays can have.

    Returns:
      An MLIR type, such as ``f32`` or ``ui8``.

    Raises:
      TypeError: if the dtype has no lowering.

    It is called in lowering rules, where MLIR's context and location are set. Booleans are
    ``i1``; the types of ``ml_dtypes`` have MLIR types of their own.

    >>> from primax_core.extend.lowering import element_type
    >>> print(element_type(np.dtype("float32")), element_type(np.dtype("bool")))
    f32 i1
    """
    element = _element_types.get(dtype)
    if element is None:
        raise TypeError(f"dtype {dtype} has no lowering")
    return element


def tensor_type(shape: tuple[int, ...], dtype: DTypeLike) -> ir.Type:
    """The MLIR type of an array.

    Args:
      shape: a tuple of sizes, numbers or symbolic dimensions.
      dtype: a dtype that arrays can have.

    Returns:
      An MLIR tensor type. Symbolic dimensions are dynamic, ``?``.

    Raises:
      TypeError: if the dtype has no lowering.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend.lowering import tensor_type
    >>> print(tensor_type((2, 3), np.dtype("float32")))
    tensor<2x3xf32>
    """
    key = (shape, dtype)
    tensor = _tensor_types.get(key)
    if tensor is None:
        if not is_static(shape):  # not cached: the expressions belong to a scope
            return ir.RankedTensorType.get(
                extents(shape), element_type(dtype), loc=unknown_location
            )
        _check_size(shape, dtype)
        tensor = ir.RankedTensorType.get(shape, element_type(dtype), loc=unknown_location)
        _tensor_types[key] = tensor
    return tensor


def extents(shape: Sequence[Any]) -> list[int]:
    """The sizes in an MLIR type: symbolic dimensions are dynamic."""
    return [_DYNAMIC if isinstance(d, Dimension) else d for d in shape]


_DYNAMIC: int = ir.ShapedType.get_dynamic_size()


def _check_size(shape: tuple[int, ...], dtype) -> None:
    # jaxlib 0.10 ends the process for such a shape.
    if math.prod(max(d, 1) for d in shape) * dtype.itemsize >= 2**63:
        raise ValueError(
            f"an array of shape {shape} and dtype {dtype.name} has more bytes than can be addressed"
        )


def type_of(aval: Any) -> ir.Type:
    """The MLIR type of values of an aval.

    Args:
      aval: a type, such as ``ctx.out_avals[0]`` in a lowering rule.

    Returns:
      An MLIR type; for extended dtypes, such as random keys, that of their buffers.

    Raises:
      TypeError: if the dtype has no lowering.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend import typeof
    >>> from primax_core.extend.lowering import type_of
    >>> print(type_of(typeof(np.zeros((2, 3), np.float32))))
    tensor<2x3xf32>
    """
    aval = physical(aval)
    return tensor_type(aval.shape, aval.dtype)


def bytecode(module: ir.Module) -> bytes:
    """A module in MLIR's bytecode, for this version of jaxlib."""
    out = io.BytesIO()
    module.operation.write_bytecode(file=out)
    return out.getvalue()


# Attributes


def i64s(values: Sequence[int]) -> ir.Attribute:
    """An MLIR attribute with several 64-bit integers, ``array<i64: ...>``.

    StableHLO has axes, sizes and strides in this form.

    Args:
      values: Python integers.

    Returns:
      An attribute.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend.lowering import i64s, ir
    >>> with ir.Context():
    ...     print(i64s([1, 2]))
    array<i64: 1, 2>
    """
    return ir.DenseI64ArrayAttr.get(list(values), context)


def bools(values: Sequence[bool]) -> ir.Attribute:
    """An MLIR attribute with several booleans, ``array<i1: ...>``.

    StableHLO has flags of axes in this form, such as those of a flipped kernel.

    Args:
      values: Python booleans.

    Returns:
      An attribute.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend.lowering import bools, ir
    >>> with ir.Context():
    ...     print(bools([True, False]))
    array<i1: true, false>
    """
    return ir.DenseBoolArrayAttr.get([bool(v) for v in values], context)


def i64(value: int) -> ir.Attribute:
    """An MLIR attribute with a 64-bit integer.

    Args:
      value: a Python integer.

    Returns:
      An attribute of the signless type ``i64``.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend.lowering import i64, ir
    >>> with ir.Context():
    ...     print(i64(3))
    3 : i64
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), value)


def u64(value: int) -> ir.Attribute:
    """An MLIR attribute with an unsigned 64-bit integer.

    Args:
      value: a nonnegative Python integer.

    Returns:
      An attribute of the type ``ui64``.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend.lowering import ir, u64
    >>> with ir.Context():
    ...     print(u64(3))
    3 : ui64
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_unsigned(64, context), value)


def i32(value: int) -> ir.Attribute:
    """An MLIR attribute with a 32-bit integer.

    Args:
      value: a Python integer.

    Returns:
      An attribute of the signless type ``i32``.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend.lowering import i32, ir
    >>> with ir.Context():
    ...     print(i32(3))
    3 : i32
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32, context), value)


def i64_elements(values: Sequence[int]) -> ir.Attribute:
    """An MLIR attribute with a vector of 64-bit integers, ``dense<...> : tensor<...xi64>``.

    Custom calls and older operations have sizes in this form; see :func:`i64s` for the other one.

    Args:
      values: Python integers.

    Returns:
      An attribute.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend.lowering import i64_elements, ir
    >>> with ir.Context():
    ...     print(i64_elements([1, 2]))
    dense<[1, 2]> : tensor<2xi64>
    """
    return ir.DenseElementsAttr.get(np.asarray(values, np.int64), context=context)


def dense(value: np.ndarray) -> ir.Attribute:
    """An MLIR attribute with the values of an array.

    Args:
      value: a NumPy array of a dtype that arrays can have.

    Returns:
      A dense attribute of the array's shape and dtype.

    It is called in lowering rules, where MLIR's context and location are set. The values are
    copied into the module, so large arrays should be operands.

    >>> from primax_core.extend.lowering import dense, ir
    >>> with ir.Context(), ir.Location.unknown():
    ...     print(dense(np.arange(3, dtype=np.int32)))
    dense<[0, 1, 2]> : tensor<3xi32>
    """
    value = np.asarray(value)
    dtype = value.dtype
    element = element_type(dtype)
    shape = value.shape
    if dtype.itemsize == 1 and dtype.kind == "V" or dtype in _PACKED:
        value = value.astype(np.int8) if dtype.name.startswith("int") else value
        value = value.astype(np.uint8) if dtype.name.startswith("uint") else value
        if value.dtype.kind == "V":
            value = value.view(np.uint8)
    elif dtype.kind == "V":
        value = value.view({2: np.uint16, 4: np.uint32}[dtype.itemsize])
    value = np.ascontiguousarray(value)
    return ir.DenseElementsAttr.get(value, type=element, shape=list(shape), context=context)


_PACKED = {
    np.dtype(getattr(ml_dtypes, n))
    for n in ("int1", "int2", "int4", "uint1", "uint2", "uint4")
    if hasattr(ml_dtypes, n)
}


def constant(value: Any) -> ir.Value[Any]:
    """A constant operation with the values of a NumPy array.

    An array of equal elements is stored as a scalar and broadcast.

    Args:
      value: a NumPy array or scalar of a dtype that arrays can have.

    Returns:
      An MLIR value of the array's shape and dtype.

    It is called in lowering rules, where MLIR's context and location are set.

    >>> from primax_core.extend.elementwise import unary
    >>> from primax_core.extend.lowering import constant
    >>> def emit(ctx, x):
    ...     return constant(np.array([0, 7], np.float32))
    >>> unary("acme_table", ["float"], emit).bind(np.ones(2, np.float32)).tolist()
    [0.0, 7.0]
    """
    value = np.asarray(value)
    if value.dtype == dtypes.float0:
        value = np.zeros(value.shape, np.bool_)
    if value.size > 1 and all(s == 0 for s in value.strides):
        return full(value.reshape(-1)[0], value.shape)
    return hlo.constant(dense(value))


def full(value, shape: tuple[int, ...]) -> ir.Value[Any]:
    """An array of a static shape filled with one value; see also ``shaped.full``."""
    scalar = hlo.constant(dense(np.asarray(value)))
    if not shape:
        return scalar
    dtype = np.asarray(value).dtype
    return hlo.broadcast_in_dim(tensor_type(tuple(shape), dtype), scalar, i64s([]))
