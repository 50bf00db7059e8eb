"""Conversion of Python values to operands, in the reference's convention.

The reference has two tables by class: :data:`aval_mappings` with functions from values to types,
and :data:`canonicalize_handlers` with functions from values to arrays. A class becomes a class of
operands by an entry in either table.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, NoReturn, Self

import numpy as np

from primax_core.extend import (
    Array,
    ShapedArray,
    Tracer,
    as_operand,
    dtypes,
    register_value_type,
    set_trace,
    typeof,
)

from .jaxprs import AbstractValue

Handler = Callable[[Any], Any]

_NUMBERS: Final = (bool, int, float, complex)


def _array_of(x: Any) -> Any:
    """The array of an operand, or of a value that NumPy converts."""
    if issubclass(type(x), Array):
        return x
    return as_operand(x if issubclass(type(x), _NUMBERS) else np.asarray(x))


def _type_of_numpy(x: Any) -> ShapedArray:
    return ShapedArray(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype))


class _Handlers(dict[type, Handler]):
    """Functions by class of operands; a new entry registers its class."""

    def __setitem__(self, cls: type, handler: Handler) -> None:
        if not isinstance(cls, type) or not callable(handler):
            raise TypeError(
                "a table of value classes maps classes to functions of a value, got "
                f"{handler!r} for {cls!r}"
            )
        super().__setitem__(cls, handler)
        _register(cls)

    def update(self, *others: Any) -> None:
        for cls, handler in dict(*others).items():
            self[cls] = handler

    def __ior__(self, other: Any) -> Self:  # type: ignore[override, misc]
        self.update(other)
        return self

    def setdefault(self, cls: type, handler: Any = None) -> Any:
        if cls not in self:
            self[cls] = handler
        return self[cls]

    def _refused(self, *_: Any) -> NoReturn:
        raise TypeError(
            "an entry of a table of value classes cannot be removed: values of the class remain "
            "operands. Set another function, which may raise an error"
        )

    __delitem__ = pop = popitem = clear = _refused


class CanonicalizeHandlers(_Handlers):
    """Mapping from classes of operands to functions from a value to its array.

    Reading a class without an entry returns the function for NumPy arrays, as the reference does.
    """

    def __missing__(self, cls: type) -> Handler:
        return _array_of


canonicalize_handlers: Final[dict[type, Handler]] = CanonicalizeHandlers(
    dict.fromkeys((*_NUMBERS, np.ndarray, np.generic, Array), _array_of)
)
aval_mappings: Final[dict[type, Handler]] = _Handlers(
    {
        **dict.fromkeys(_NUMBERS, typeof),
        np.ndarray: _type_of_numpy,
        np.generic: _type_of_numpy,
        Array: attrgetter("aval"),
        Tracer: attrgetter("aval"),
    }
)


def _register(cls: type) -> None:
    """Register a class with its entries in both tables; one of them is enough."""
    handler = canonicalize_handlers[cls]
    own_type = aval_mappings.get(cls)

    def converted(x: Any) -> Any:
        with set_trace(None):  # the values are constants of a function that is being traced
            out = handler(x)
        return out if issubclass(type(out), Array) else np.asarray(out)

    def type_of_value(x: Any) -> Any:
        if own_type is None:
            return typeof(converted(x))
        aval = own_type(x)
        if not isinstance(aval, AbstractValue):
            raise ValueError(
                f"the function of pytype_aval_mappings for {cls} must return a type, such as "
                f"ShapedArray(shape, dtype), got {aval!r}"
            )
        return aval

    def convert(x: Any) -> Any:
        out = converted(x)
        actual, declared = typeof(out), type_of_value(x)
        dtypes_of_result = actual.dtype, getattr(out, "dtype", None)
        if actual.shape != declared.shape or declared.dtype not in dtypes_of_result:
            raise ValueError(
                f"the function of canonicalize_dtype_handlers for {cls} returned values of type "
                f"{actual.str_short()}, but the type of the operand is {declared.str_short()}"
            )
        return out

    def aval_of(x: Any) -> Any:
        if type(x) is not cls and type(x) not in canonicalize_handlers:  # a new subclass
            register_value_type(type(x), type_of_value, convert)
        return type_of_value(x)

    register_value_type(cls, aval_of, convert)
