"""Checks of arguments that many functions share."""

from __future__ import annotations

import operator
from typing import Any

from primax_core.extend import dtypes, is_operand


def check_arrays(name: str, *args: Any) -> None:
    """Refuse what is not an array or a number.

    Raises:
      TypeError: naming the function, the type and the position.
    """
    for i, x in enumerate(args):
        if not is_operand(x):
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(x)} at position {i}."
            )


def check_out(name: str, out: Any) -> None:
    """Refuse an ``out`` argument: arrays are not written to."""
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")


def one_axis(axis: Any, ndim: int) -> int:
    """An axis counted from the front.

    Raises:
      ValueError: if the array has no such axis.
    """
    found = operator.index(axis)
    if not -ndim <= found < ndim:
        raise ValueError(f"axis {found} is out of bounds for array of dimension {ndim}")
    return found % ndim if ndim else 0


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front; all of them for ``None``.

    Raises:
      ValueError: if an axis does not exist or is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    found = tuple([one_axis(a, ndim) for a in given])
    if len(set(found)) != len(found):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return found


def wanted_dtype(dtype: Any, name: str) -> Any:
    """A dtype argument in canonical form, ``None`` if it was not given."""
    return None if dtype is None else dtypes.canonicalize_user_dtype(dtype, name)
