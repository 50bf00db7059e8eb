"""How functions are declared, and what they make of their operands."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Literal,
    cast,
    dtypes,
    inexact,
    is_operand,
    library_function,
    same_rank,
    typeof,
)

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(*static: str, name: str | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Make a function of arrays one compiled call eagerly, and one spliced program in traces.

    The function takes arrays (pytrees of them) positionally and the static parameters, hashable
    values, as keywords.
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


def promoted_floats(name: str, *xs: Any) -> list[Any]:
    """Operands in the inexact dtype that they promote to, of one rank but for scalars."""
    avals = [typeof(x) for x in xs]
    found = inexact(*dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in avals])))
    out = [_as_array(cast(x, a, *found)) for x, a in zip(xs, avals)]
    widest = max(range(len(out)), key=lambda i: typeof(out[i]).ndim)
    for i, x in enumerate(out):
        if i != widest:
            out[i], out[widest] = same_rank(name, x, out[widest])
    return out


def _as_array(x: Any) -> Any:
    """Something with operators for a number of Python's, the default of an argument."""
    if type(x) is not Literal:
        return x
    made = lax.full((), x.val, x.aval.dtype)
    return cast(made, typeof(made), x.aval.dtype, x.aval.weak_type)


def floats(name: str, *xs: Any) -> list[Any]:
    """As `promoted_floats`, of real numbers.

    Raises:
      ValueError: for complex numbers.
    """
    out = promoted_floats(name, *xs)
    if is_complex(out[0]):
        raise ValueError(
            f"{name} does not support complex-valued inputs: take the real part, imaginary part or "
            "absolute value first."
        )
    return out


def as_inexact(x: Any) -> Any:
    """The operand; integers and booleans as floats."""
    aval = typeof(x)
    dtype, weak = inexact(aval.dtype, aval.weak_type)
    return x if dtype == aval.dtype else cast(x, aval, dtype, weak)


def strong(x: Any) -> Any:
    """The operand as floats whose type is not weak."""
    x = as_inexact(x)
    aval = typeof(x)
    return cast(x, aval, aval.dtype, False) if aval.weak_type else x


def at_least_single(x: Any) -> Any:
    """Floats of less than 32 bits as ``float32``, in which the series are computed."""
    dtype = typeof(x).dtype
    return cast(x, typeof(x), dtypes.f32, False) if dtype.itemsize < 4 else x


def like(x: Any, other: Any) -> Any:
    """The operand in the dtype of another one."""
    aval = typeof(x)
    dtype = typeof(other).dtype
    return x if aval.dtype == dtype and not aval.weak_type else cast(x, aval, dtype, False)


def refuse_bool(name: str, x: Any) -> None:
    """Raise TypeError for booleans."""
    if typeof(x).dtype == np.bool_:
        raise TypeError(f"{name} does not accept dtype bool: convert with x.astype(float).")


def single_or_double(name: str, x: Any) -> None:
    """Raise TypeError unless the elements are floats of 32 or 64 bits."""
    if typeof(x).dtype not in (dtypes.f32, dtypes.f64):
        raise TypeError(
            f"{name}: x.dtype={typeof(x).dtype} is not supported, only float32 and float64 are: "
            "convert with x.astype(float)."
        )
