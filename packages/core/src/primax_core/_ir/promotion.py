"""Promotion: the one dtype that values of several dtypes are brought to.

The dtypes form a graph whose edges lead from a dtype to those that it may become without being
asked. The result of a promotion is the least dtype that all of the operands can reach. Three nodes
of the graph are no dtypes but stand for what gives way to any dtype of its kind: Python's int,
float and complex, and weakly typed arrays. A result at one of those nodes is weak itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from .._base import caches
from .._base.config import state
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


class TypePromotionError(ValueError):
    """Dtypes have no common dtype that they may be promoted to without being asked."""


# The nodes that stand for weakly typed values of a kind: named by their Python type.
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
    """Everything that a node may become, itself included."""
    found = _reachable.get((mode, node))
    if found is None:
        above = (_upper_bounds(mode, up) for up in _EDGES[mode].get(node, ()))
        found = _reachable[mode, node] = frozenset({node}).union(*above)
    return found


def _join(mode: str, nodes: Iterable[Any]) -> Any:
    """The least node that all can become."""
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
        reason, example = "No dtype can hold the values of all", "float32"
    return f"{text}. {reason}; cast the inputs yourself, for example with x.astype('{example}')."


_results: Final[dict[Any, tuple[Any, bool]]] = caches.bounded_cache()


def lattice_result(
    operands: Sequence[tuple[Any, bool]], x64: bool | None = None, mode: str | None = None
) -> tuple[Any, bool]:
    """Dtype and weakness of the promotion of operands given as (canonical dtype, weakness).

    Raises `TypePromotionError` where there is none.

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
    found = _results.get(key)
    if found is None:
        found = _results[key] = _lattice_result(tuple(operands), bool(x64), str(mode))
    return found


def _lattice_result(
    operands: tuple[tuple[Any, bool], ...], x64: bool, mode: str
) -> tuple[Any, bool]:
    if not operands:
        raise ValueError("at least one array or dtype is required")
    given = {dtype for dtype, _ in operands}
    all_weak = all(weak for _, weak in operands)
    if len(given) == 1:
        (dtype,) = given
        return dtype, all_weak and dtype != bool_
    for dtype in given:
        if isinstance(dtype, dtypes.ExtendedDType) or dtype == dtypes.float0:
            raise ValueError(
                f"dtype={dtypes.short_name(dtype)} is not a valid dtype for type promotion."
            )
    if all_weak and mode == "standard":
        node, weak = _join(mode, given), True
    else:
        node = _join(mode, (_node(dtype, weak) for dtype, weak in operands))
        weak = isinstance(node, type)
    dtype = _WIDE.get(node, node)
    if not x64 and given.isdisjoint(dtypes.wide_dtypes):
        dtype = dtypes.narrowed(dtype)
    return dtype, weak and dtype != bool_


def _node(dtype: Any, weak: bool) -> Any:
    return _WEAK_OF_KIND.get(dtypes.kind_of(dtype), dtype) if weak else dtype


def _operand(x: Any) -> tuple[Any, bool]:
    """Canonical dtype and weakness of a value or dtype-like object."""
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
    """The dtype that two dtypes promote to; 64-bit ones count even where they are not enabled.

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
    """The dtype that an operation on the given values and dtypes has.

    Python scalars and weakly typed arrays give way to the others. With ``return_weak_type_flag``
    the result is a pair of the dtype and whether it is weak.

    >>> from primax_core import dtypes
    >>> dtypes.result_type("int8", 1), dtypes.result_type("int8", 1.0, return_weak_type_flag=True)
    (dtype('int8'), (dtype('float32'), True))
    """
    dtype, weak = lattice_result([_operand(x) for x in args])
    return (dtype, weak) if return_weak_type_flag else dtype
