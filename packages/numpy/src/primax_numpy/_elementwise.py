"""Elementwise selection: by conditions, by bounds, minimum and maximum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from primax_core import lax
from primax_core.extend import Array, FastPath, any_number, library_function, promoted
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays, shape_argument
from ._creation import asarray
from ._functions import elementwise
from ._logic import truth
from ._numpy_ufuncs import maximum, minimum
from ._positions import nonzero
from ._promotion import broadcast_together, is_complex, pair

# Bounds


@library_function
def _clip(arr, low, high):
    if low is not None:
        arr = maximum(arr, low)
    return arr if high is None else minimum(arr, high)


def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """Elements clamped to ``[min, max]``; where ``min > max`` the result is ``max``.

    Args:
      arr: an array or a number.
      min, max: bounds, which broadcast with ``arr``; ``None`` for no bound.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      ValueError: for complex numbers, which have no order.

    The derivative is 0 for elements that are clamped.

    >>> import numpy as np
    >>> clip(np.array([-3, 0, 3]), -1, 1).tolist()
    [-1, 0, 1]
    >>> clip(np.array([-3, 0, 3]), min=0).tolist()
    [0, 0, 3]
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    operands = [v for v in (arr, min, max) if v is not None]
    check_arrays("clip", *operands)
    if any(is_complex(v) for v in operands):
        raise ValueError(
            "Clip received a complex value either through the input or the min/max keywords. "
            "Complex values have no ordering and cannot be clipped: take their real or imaginary "
            "parts."
        )
    if min is None and max is None:
        return asarray(arr)
    if min is None or max is None:
        return minimum(arr, max) if min is None else maximum(arr, min)
    return _clip(arr, min, max)


@elementwise
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Elementwise maximum that ignores NaN: NaN only if both elements are.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The derivative of the result is that of the larger element, half of each for equal ones.

    >>> import numpy as np
    >>> fmax(np.array([1.0, np.nan], np.float32), 0.5)
    Array([1. , 0.5], dtype=float32)
    """
    x, y = broadcast_together(*pair("fmax", x1, x2))
    second: Any = x <= y
    return lax.select(lax.bitwise_or(second, x != x), y, x)


@elementwise
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Elementwise minimum that ignores NaN: NaN only if both elements are.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The derivative of the result is that of the smaller element, half of each for equal ones.

    >>> import numpy as np
    >>> fmin(np.array([1.0, np.nan], np.float32), 0.5)
    Array([0.5, 0.5], dtype=float32)
    """
    x, y = broadcast_together(*pair("fmin", x1, x2))
    second: Any = x >= y
    return lax.select(lax.bitwise_or(second, x != x), y, x)


# Conditions


def chosen(condition: Any, x: Any, y: Any) -> Any:
    """Elements of ``x`` where the condition is true, else of ``y``, promoted and broadcast."""
    condition = truth(condition)
    x, y = promoted("where", x, y, any_number)
    if not typeof(condition).shape:
        x, y = broadcast_together(x, y)
    else:
        condition, x, y = broadcast_together(condition, x, y)
    return lax.select(condition, x, y)


@library_function
def _select(condition, x, y):
    check_arrays("where", condition, x, y)
    return chosen(condition, x, y)


_select.__name__ = "where"
_where: Final = FastPath(_select)


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """Elements of ``x`` where the condition is true, else of ``y``, broadcast together.

    With the condition alone, the indices of true elements, as for :func:`nonzero`.

    Args:
      condition: booleans; other elements are true if they are not zero.
      x, y: arrays or numbers, both or none.
      size: the number of indices to return, required under ``jit`` with the condition alone.
      fill_value: padding for missing indices, 0 by default.

    Returns:
      An array of the common shape, of the promoted dtype of ``x`` and ``y``.

    The derivative with respect to the operand that is not selected is zero. If the derivative of
    its own computation is infinite, the product is NaN: apply ``where`` to its argument, too.

    >>> import numpy as np
    >>> where(np.array([True, False]), 1, np.array([2, 3])).tolist()
    [1, 3]
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function."
        )
    out = _where.lookup(None, condition, x, y)
    return _where.call(None, (condition, x, y)) if out is None else out


@library_function
def _first_of(conditions, choices, default):
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        default = chosen(condition, choice, default)
    return default


_first_of.__name__ = "select"


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: ArrayLike = 0) -> Array:
    """Elements of the choice that corresponds to the first true condition.

    Args:
      condlist: conditions, arrays that broadcast with the choices.
      choicelist: an array or a number for each condition.
      default: the value where all conditions are false.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      ValueError: if there are no conditions, or another number of choices.

    >>> import numpy as np
    >>> x = np.arange(4)
    >>> select([x < 1, x > 2], [x - 10, x * 10], default=7).tolist()
    [-10, 7, 7, 30]
    """
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices):
        raise ValueError(
            f"condlist must have length equal to choicelist ({len(conditions)} vs {len(choices)})"
        )
    if not conditions:
        raise ValueError("condlist must be non-empty")
    check_arrays("select", *conditions, *choices, default)
    return _first_of(conditions, choices, default)


# Shapes


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The common shape that shapes broadcast to.

    Shapes are aligned at the last axes. Sizes must be equal or 1; missing axes count as 1.

    Args:
      shapes: tuples of sizes, or sizes of single axes.

    Returns:
      A tuple of sizes.

    Raises:
      ValueError: if the shapes are incompatible.

    >>> broadcast_shapes((2, 1), (3,), ())
    (2, 3)
    >>> broadcast_shapes((4, 1, 2), 2)
    (4, 1, 2)
    """
    return lax.broadcast_shapes(*map(shape_argument, shapes))
