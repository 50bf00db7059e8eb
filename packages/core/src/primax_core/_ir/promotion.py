"""Promotion of several dtypes to one.

The dtypes form a lattice. Its edges lead from a dtype to the dtypes that it may be converted to
implicitly. The result of a promotion is the least dtype that all operands can reach. Three nodes
are
not dtypes: they represent the weak types int, float and complex, of Python numbers and weakly typed
arrays. A result at one of these nodes has a weak type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from .._base import caches
from .._base.config import state
from .._base.errors import ErrorWithPage
from . import element_types as dtypes
from .element_types import (
    bf16,
    bool_,
    c64,
    c128,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    narrow_floats,
    small_ints,
    small_uints,
    u8,
    u16,
    u32,
    u64,
)


class TypePromotionError(ErrorWithPage, ValueError, page=True):
    """Dtypes have no common dtype for implicit promotion."""


# The nodes of the weak types, named by their Python type.
_WEAK_OF_KIND: Final = {"i": int, "u": int, "f": float, "c": complex}
_WIDE: Final[dict[Any, np.dtype]] = {int: i64, float: f64, complex: c128}

_STANDARD: Final[dict[Any, tuple[Any, ...]]] = {
    bool_: (int,),
    int: (u8, i8, *small_ints, *small_uints),
    u8: (i16, u16), u16: (i32, u32), u32: (i64, u64), u64: (float,),
    i8: (i16,), i16: (i32,), i32: (i64,), i64: (float,),
    float: (bf16, f16, *narrow_floats, complex),
    bf16: (f32,), f16: (f32,), f32: (f64, c64), f64: (c128,),
    complex: (c64,), c64: (c128,),
}  # fmt: skip
_STRICT: Final[dict[Any, tuple[Any, ...]]] = {
    int: (u8, u16, u32, u64, i8, i16, i32, i64, *small_ints, *small_uints, float),
    float: (bf16, f16, f32, f64, *narrow_floats, complex),
    complex: (c64, c128),
}
_EDGES: Final = {"standard": _STANDARD, "strict": _STRICT}

_reachable: Final[dict[tuple[str, Any], frozenset[Any]]] = caches.bounded_cache()


def _upper_bounds(mode: str, node: Any) -> frozenset[Any]:
    """All nodes that a node can be promoted to, including itself."""
    bounds = _reachable.get((mode, node))
    if bounds is None:
        above = (_upper_bounds(mode, up) for up in _EDGES[mode].get(node, ()))
        bounds = _reachable[mode, node] = frozenset({node}).union(*above)
    return bounds


def _join(mode: str, nodes: Iterable[Any]) -> Any:
    """The least node that all nodes can be promoted to."""
    nodes = sorted(set(nodes), key=_described)
    common = frozenset.intersection(*(_upper_bounds(mode, node) for node in nodes))
    least = [node for node in common if _upper_bounds(mode, node) == common]
    if len(least) != 1:
        raise TypePromotionError(_no_path(mode, nodes))
    return least[0]


def _described(node: Any) -> str:
    return str(node) if isinstance(node, type) else node.name


def _no_path(mode: str, nodes: Sequence[Any]) -> str:
    listed = ", ".join(repr(_described(node)) for node in nodes)
    text = f"Input dtypes ({listed}) have no available implicit dtype promotion path"
    if mode == "strict":
        return (
            f"{text} when numpy_dtype_promotion=strict. Cast the inputs to the dtype that the "
            "result should have, for example with x.astype('float32'), or set "
            "numpy_dtype_promotion=standard."
        )
    if any(node in narrow_floats for node in nodes):
        reason, example = (
            "Floats of 8 bits and fewer are never promoted to another float",
            "float32",
        )
    elif any(node in small_ints or node in small_uints for node in nodes):
        reason, example = "1-bit, 2-bit and 4-bit integers are never promoted", "int32"
    else:
        reason, example = "No dtype can represent the values of all", "float32"
    return f"{text}. {reason}; cast the inputs yourself, for example with x.astype('{example}')."


_results: Final[dict[Any, tuple[Any, bool]]] = caches.bounded_cache()


def lattice_result(
    operands: Sequence[tuple[Any, bool]], x64: bool | None = None, mode: str | None = None
) -> tuple[Any, bool]:
    """Dtype and weak type of the promotion of operands ``(canonical dtype, weak type)``.

    Raises `TypePromotionError` if there is none.

    >>> from primax_core._ir.promotion import lattice_result
    >>> from primax_core._ir.dtypes import f32, i8
    >>> lattice_result(((i8, False), (f32, True)))
    (dtype('float32'), True)
    """
    if x64 is None:
        x64 = state.enable_x64
    if mode is None:
        mode = state.numpy_dtype_promotion
    key: Any = (*operands, x64, mode)
    result = _results.get(key)
    if result is None:
        result = _results[key] = _lattice_result(tuple(operands), bool(x64), str(mode))
    return result


def _lattice_result(
    operands: tuple[tuple[Any, bool], ...], x64: bool, mode: str
) -> tuple[Any, bool]:
    if not operands:
        raise ValueError("at least one array or dtype is required")
    operand_dtypes = {dtype for dtype, _ in operands}
    all_weak = all(weak for _, weak in operands)
    if len(operand_dtypes) == 1:
        (dtype,) = operand_dtypes
        return dtype, all_weak and dtype != bool_
    for dtype in operand_dtypes:
        if isinstance(dtype, dtypes.ExtendedDType) or dtype == dtypes.float0:
            raise ValueError(
                f"dtype={dtypes.short_name(dtype)} is not a valid dtype for type promotion."
            )
    if all_weak and mode == "standard":
        node, weak = _join(mode, operand_dtypes), True
    else:
        node = _join(mode, (_node(dtype, weak) for dtype, weak in operands))
        weak = isinstance(node, type)
    dtype = _WIDE.get(node, node)
    if not x64 and operand_dtypes.isdisjoint(dtypes.wide_dtypes):
        dtype = dtypes.narrowed(dtype)
    return dtype, weak and dtype != bool_


def _node(dtype: Any, weak: bool) -> Any:
    return _WEAK_OF_KIND.get(dtypes.kind_of(dtype), dtype) if weak else dtype


def _operand(x: Any) -> tuple[Any, bool]:
    """Canonical dtype and weak type of a value or dtype-like object."""
    if x is None:
        return dtypes.default_float(), False
    if isinstance(x, type) and x in dtypes.python_scalars:
        return dtypes.canonicalize_dtype(x), x is not bool
    if isinstance(x, (str, np.dtype, type)):
        dtypes.check_valid_dtype(dtypes.as_dtype(x), x)
        return dtypes.canonicalize_user_dtype(x, "dtype"), False
    dtype = dtypes.dtype_of(x)
    dtypes.check_valid_dtype(dtype, x)
    if isinstance(x, (np.generic, np.ndarray)) or not hasattr(x, "dtype"):
        dtype = dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True)
    return dtype, dtypes.is_weakly_typed(x)


def promote_types(a: Any, b: Any) -> Any:
    """The promotion of two dtypes; 64-bit dtypes are kept even if they are disabled.

    >>> from primax_core._ir.promotion import promote_types
    >>> promote_types("int8", "uint8")
    dtype('int16')
    """
    pairs = []
    for x in (a, b):
        python_type = x if isinstance(x, type) and x in dtypes.python_scalars else None
        pairs.append((dtypes.dtype_of(x), python_type is not None and python_type is not bool))
    return lattice_result(pairs)[0]


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype of an operation on values and dtypes.

    The dtypes are promoted along a lattice. Python scalars and weakly typed arrays adapt to the
    others: they change the class of the dtype (an integer becomes a float), not its width.

    Args:
      args: arrays, numbers, dtypes, names of dtypes or scalar classes.
      return_weak_type_flag: return a pair: the dtype and its weak type.

    Returns:
      A canonical dtype, or a pair of a dtype and a bool.

    Raises:
      ValueError: without arguments.
      TypePromotionError: if dtypes have no common dtype under the option
        ``numpy_dtype_promotion``, or for extended dtypes.

    >>> from primax_core import dtypes
    >>> dtypes.result_type("int8", "uint8")
    dtype('int16')
    >>> dtypes.result_type("int8", 1)
    dtype('int8')
    >>> dtypes.result_type("int8", 1.0, return_weak_type_flag=True)
    (dtype('float32'), True)
    """
    dtype, weak = lattice_result([_operand(x) for x in args])
    return (dtype, weak) if return_weak_type_flag else dtype
