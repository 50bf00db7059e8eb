"""Values of other libraries, and of other copies of this one, as operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.identity import PUBLIC_NAME
from .._ir import dtypes
from .._ir.avals import ShapedArray


class InvalidOperand(TypeError):
    """A value cannot be an operand; the message says how to convert it."""


def converts_itself(x: Any) -> bool:
    """Return True if a value has a method ``__jax_array__``; other libraries' tracers have
    ``None``.
    """
    return callable(getattr(x, "__jax_array__", None))


def invalid(x: Any) -> TypeError:
    """The error for a value that cannot be an operand."""
    cls = type(x)
    if converts_itself(x):
        return InvalidOperand(
            f"a value of type {_name(cls)} is not an array. It has a method __jax_array__, which "
            "operations and transformations do not call: pass primax.numpy.asarray(x) or "
            "x.__jax_array__(), or register its class as a pytree."
        )
    if is_tracer(x):
        library = _library(cls)
        return InvalidOperand(
            f"a tracer of {library} was passed to {PUBLIC_NAME} (its class is {_name(cls)}). A "
            f"function that {library} transforms cannot use operations of {PUBLIC_NAME}: use the "
            "transformations and the operations of one library."
        )
    try:
        text = repr(x)
    except Exception as e:
        text = f"<its repr raises {type(e).__name__}>"
    return TypeError(
        f"Value {text} with type {cls} is not a valid Primax type: expected an array, a NumPy "
        "array, a number or a tracer."
    )


def is_tracer(x: Any) -> bool:
    """Return True if a value, which is not an operand, is a tracer of another library or copy."""
    return any(base.__name__ == "Tracer" for base in type(x).__mro__)


def aval_of_array(x: Any) -> ShapedArray | None:
    """The aval of an array of another library or copy; ``None`` if the value is none."""
    dtype, shape = getattr(x, "dtype", None), getattr(x, "shape", None)
    if not hasattr(x, "__array__") or not isinstance(dtype, np.dtype) or type(shape) is not tuple:
        return None
    weak_type = getattr(x, "weak_type", False) is True
    return ShapedArray(shape, dtypes.canonicalize_dtype(dtype), weak_type)


def refuse(x: Any, symbol: str) -> None:
    """Raise an error if an operand of an operator is an array or tracer of another library."""
    if is_tracer(x):
        raise invalid(x)
    cls = type(x)
    if cls.__name__ == "ArrayImpl":
        raise InvalidOperand(
            f"unsupported operand type(s) for {symbol}: an array of {PUBLIC_NAME} and an array of "
            f"{_library(cls)} (its class is {_name(cls)}). Convert one of them, for example with "
            "dlpack.from_dlpack(x)."
        )


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _library(cls: type) -> str:
    """Import name of the library, or of the copy, that defines a class."""
    return cls.__module__.partition("._")[0]
