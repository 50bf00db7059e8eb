"""Type and rank promotion of the operands of array operators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._base import caches
from .._base.config import state
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.element_types import DTypeLike
from .._ir.jaxpr import Literal, is_scalar_literal
from .._ir.symbolic_dims import Dimension
from .._runtime.dispatch import check_range
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.foreign import converts_itself
from .._trace.typing import ArrayLike
from .conversion import convert
from .elementwise import broadcast_in_dim

DTypeAndWeakType = tuple[Any, bool]
Adjust = Callable[[Any, bool], DTypeAndWeakType]


def any_number(dtype: DTypeLike, weak_type: bool) -> DTypeAndWeakType:
    """Adjustment of a promotion that leaves the promoted dtype unchanged.

    It is the default argument of :func:`promoted`.

    Args:
      dtype: the dtype of the promotion.
      weak_type: whether it is weak.

    Returns:
      The pair ``(dtype, weak_type)``.

    Functions that are defined for all numbers use it, such as sums.

    >>> from primax_core.extend.elementwise import any_number
    >>> any_number(np.dtype("int8"), False)
    (dtype('int8'), False)
    """
    return dtype, weak_type


def no_bool(dtype: DTypeLike, weak_type: bool) -> DTypeAndWeakType:
    """Adjustment from booleans to int32."""
    return (dtypes.i32, False) if dtype == np.bool_ else (dtype, weak_type)


def inexact(dtype: DTypeLike, weak_type: bool) -> DTypeAndWeakType:
    """Adjustment of a promotion from integers and booleans to floats.

    It is an argument of :func:`promoted`, for functions that are defined for inexact numbers.

    Args:
      dtype: the dtype of the promotion.
      weak_type: whether it is weak.

    Returns:
      A pair: ``float64`` for 64-bit integers, ``float32`` for other integers and booleans, or the
      dtype; and the weak type.

    >>> from primax_core.extend.elementwise import inexact
    >>> inexact(np.dtype("int8"), False)
    (dtype('float32'), False)
    >>> inexact(np.dtype("bfloat16"), False)
    (dtype(bfloat16), False)
    """
    if dtypes.issubdtype(dtype, np.inexact):
        return dtype, weak_type
    return (dtypes.f64 if dtypes.itemsize_bits(dtype) == 64 else dtypes.f32), weak_type


def promoted(name: str, x: ArrayLike, y: ArrayLike, adjust: Adjust = any_number) -> tuple[Any, Any]:
    """Convert two operands to the dtype to which they promote.

    Args:
      name: the name of the function, for errors.
      x: an operand: an array, a tracer or a number.
      y: an operand.
      adjust: function of the promoted dtype and its weak type that returns those of the
        operation, such as :func:`inexact`.

    Returns:
      The pair of operands.

    Raises:
      TypeError: if an operand is not an array or a number.
      TypePromotionError: if the dtypes have no common dtype under the option
        ``numpy_dtype_promotion``.

    Scalars are converted in Python and become literals of the jaxpr under construction.

    >>> from primax_core.extend import typeof
    >>> from primax_core.extend.elementwise import promoted
    >>> x, y = promoted("add", np.zeros(3, np.int8), 2.5)
    >>> typeof(x), typeof(y)
    (ShapedArray(float32[3], weak_type=True), ShapedArray(float32[], weak_type=True))
    """
    a, b = typeof(x), typeof(y)
    if a.dtype == b.dtype and a.weak_type == b.weak_type and isinstance(x, Array):
        if isinstance(y, Array) and adjust(a.dtype, a.weak_type) == (a.dtype, a.weak_type):
            return x, y
    if a.dtype != b.dtype and dtypes.ExtendedDType in map(_family, (a.dtype, b.dtype)):
        raise TypeError(f"{name} does not accept dtypes {a.dtype.name}, {b.dtype.name}.")
    joint = adjust(*dtypes.lattice_result(((a.dtype, a.weak_type), (b.dtype, b.weak_type))))
    return cast(x, a, *joint), cast(y, b, *joint)


def _family(dtype: Any) -> Any:
    return dtypes.ExtendedDType if isinstance(dtype, dtypes.ExtendedDType) else np.dtype


def cast(x: ArrayLike, aval: ShapedArray, dtype: DTypeLike, weak_type: bool) -> Any:
    """Convert an operand to a dtype and weak type.

    Args:
      x: an array, a tracer or a number.
      aval: its type.
      dtype: the dtype of the result.
      weak_type: whether the result is weakly typed.

    Returns:
      An operand; ``x`` itself if nothing changes. A scalar becomes a literal.

    Shape and sharding do not change.

    >>> from primax_core.extend import typeof
    >>> from primax_core.extend.elementwise import cast
    >>> x = np.zeros(3, np.int8)
    >>> typeof(cast(x, typeof(x), np.dtype("float32"), False))
    ShapedArray(float32[3])
    """
    if type(x) is Literal:
        x = x.scalar
    elif isinstance(x, Array):
        if aval.dtype == dtype and aval.weak_type == weak_type:
            return x
        return convert(x, dtype, weak_type)
    elif not is_scalar_literal(x):
        if aval.dtype == dtype and type(x) is np.ndarray and state.trace is not None:
            return x  # itself, so that a jaxpr has it as a constant once
        return convert(x, dtype, weak_type)
    kind = type(x)
    # The keys 0.0 and -0.0 are equal; their texts differ. Only Python ints and floats are cached.
    key = (kind, x if x else repr(x), aval, dtype, weak_type) if kind in (int, float) else None
    literal = _literals.get(key)
    if literal is None:
        check_range(x, aval)
        with np.errstate(over="ignore"):
            value = np.asarray(x).astype(aval.dtype).astype(dtype)[()]
        literal = Literal(value, ShapedArray((), dtype, weak_type))
        if key is not None:
            _literals[key] = literal
    return literal


_literals: dict[Any, Literal] = caches.bounded_cache(1024)


def same_rank(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Any, Any]:
    """Give two operands the same rank with leading axes of size 1; scalars are unchanged.

    Args:
      name: the name of the function, for errors.
      x: an array or a number.
      y: an array or a number.

    Returns:
      The pair of operands.

    Raises:
      ValueError: under ``numpy_rank_promotion="raise"``, if the ranks of two arrays differ.

    Elementwise primitives broadcast axes of size 1 and scalars, and nothing else.

    >>> from primax_core.extend.elementwise import same_rank
    >>> x, y = same_rank("add", np.zeros(3), np.zeros((2, 3)))
    >>> x.shape, y.shape
    ((1, 3), (2, 3))
    """
    a, b = typeof(x).shape, typeof(y).shape
    if len(a) == len(b) or not a or not b:
        return x, y
    for d, e in zip(reversed(a), reversed(b)):
        if d != e and d != 1 and e != 1:
            raise ValueError(f"Incompatible shapes for broadcasting: shapes={[a, b]}")
    if state.numpy_rank_promotion != "allow":
        _report(name, a, b)
    rank = max(len(a), len(b))
    return _raised(x, a, rank), _raised(y, b, rank)


def _raised(x: Any, shape: tuple[int, ...], rank: int) -> Any:
    missing = rank - len(shape)
    if not missing:
        return x
    return broadcast_in_dim(x, (1,) * missing + shape, tuple(range(missing, rank)))


def _report(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    if state.numpy_rank_promotion == "warn":
        warnings.warn(
            f"Following NumPy automatic rank promotion for {name} on shapes {a} {b}. Set the "
            "numpy_rank_promotion option to 'allow' to turn this warning off.",
            stacklevel=6,
        )
        return
    raise ValueError(
        f"Operands could not be broadcast together for {name} on shapes {a} {b} and with the "
        "config option numpy_rank_promotion='raise'. Give both the same rank, for example with "
        "x[None, :], or set the option to 'allow'."
    )


def is_operand(x: Any) -> bool:
    """Return True if a value can be an operand of primitives.

    Args:
      x: any value.

    Returns:
      A bool. It is True for arrays, tracers, NumPy arrays and scalars, and numbers; False for
      lists and strings.

    The dtype is not checked.

    >>> from primax_core.extend.elementwise import is_operand
    >>> is_operand(1.0), is_operand(np.zeros(3))
    (True, True)
    >>> is_operand([1, 2])
    False
    """
    return isinstance(x, _OPERANDS) or converts_itself(x)


_OPERANDS: Final = (
    Array, int, float, complex, np.ndarray, np.generic, Literal, Dimension,
)  # fmt: skip
