"""How functions are declared, and what they make of their operands."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from primax_core.extend import (
    any_number,
    cast,
    dtypes,
    inexact,
    is_operand,
    library_function,
    promoted,
    typeof,
)

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(*static: str, name: str | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Make a function of arrays one compiled call eagerly, and one spliced program in traces.

    The function takes arrays positionally and the static parameters, hashable values, as keywords.
    """

    def declare(fun: Callable[..., Any]) -> Any:
        fun.__name__ = name or fun.__name__.strip("_")
        return library_function(fun, static_argnames=static)

    return declare


def elementwise(fun: _F) -> _F:
    """Make a public function, whose arguments are all arrays or numbers, one compiled call.

    Other arguments are refused in its name.
    """
    front: Any = library_function(fun, check=partial(check_arrays, fun.__name__))
    return front


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


def one_axis(axis: Any, ndim: int) -> int:
    """An axis counted from the front.

    Raises:
      ValueError: if the array has no such axis.
    """
    found = operator.index(axis)
    if not -ndim <= found < ndim:
        raise ValueError(f"axis {found} is out of bounds for array of dimension {ndim}")
    return found % ndim


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front; all of them for ``None``.

    Raises:
      ValueError: if an axis does not exist or is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    named = axis if isinstance(axis, (tuple, list)) else (axis,)
    found = tuple([one_axis(a, ndim) for a in named])
    if len(set(found)) != len(found):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return found


# Inside compiled functions


def is_complex(x: Any) -> bool:
    """Whether the elements are complex."""
    return bool(dtypes.issubdtype(typeof(x).dtype, np.complexfloating))


def as_inexact(x: Any) -> Any:
    """The operand; integers and booleans as floats."""
    aval = typeof(x)
    dtype, weak = inexact(aval.dtype, aval.weak_type)
    return x if dtype == aval.dtype else cast(x, aval, dtype, weak)


def with_float(name: str, x: Any) -> Any:
    """The operand in the dtype that it has in sums with numbers of Python: integers and booleans
    become floats whose type is weak."""
    return promoted(name, x, 0.0, any_number)[0]


def strong(x: Any) -> Any:
    """The operand as floats whose type is not weak."""
    x = as_inexact(x)
    aval = typeof(x)
    return cast(x, aval, aval.dtype, False) if aval.weak_type else x


def refuse_bool(name: str, x: Any) -> None:
    """Raise TypeError for booleans."""
    if typeof(x).dtype == np.bool_:
        raise TypeError(f"{name} does not accept dtype bool: convert with x.astype(float).")


def refuse_integers(name: str, x: Any) -> None:
    """Raise TypeError for integers and booleans."""
    dtype = typeof(x).dtype
    if not dtypes.issubdtype(dtype, np.inexact):
        raise TypeError(
            f"{name} does not accept dtype {dtype.name}: its operand must be of floats; convert "
            "with x.astype(float)."
        )
