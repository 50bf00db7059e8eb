"""Attributes of native functions as parameters of equations.

Numbers that compare equal (``1``, ``True``, ``np.int32(1)``) arrive differently at a native
function. A :class:`Frozen` attribute equals only those that arrive alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from primax_core.extend import typeof
from primax_core.extend.traces import Tracer

_SCALARS: Final = frozenset(
    f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)
) | {"float32", "float64"}
"""Dtypes of the numbers and arrays that native functions read."""

Attributes = tuple[tuple[str, "Frozen"], ...]


class Frozen:
    """An attribute with a hash.

    Attributes:
      value: the attribute as ``native.call`` takes it.
    """

    __slots__ = ("value", "_key")

    def __init__(self, value: Any, key: Any) -> None:
        self.value, self._key = value, key

    def __eq__(self, other: object) -> bool:
        return type(other) is Frozen and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(self.value)

    def _key_on_disk(self) -> Any:
        return self._key


def frozen_attributes(target: str, attributes: Mapping[str, Any]) -> Attributes:
    """The attributes of a call, sorted by name.

    Raises:
      TypeError, OverflowError: if native functions cannot read one of them.
    """
    return tuple(
        [(name, frozen(value, f"attribute {name!r} of {target!r}"))
         for name, value in sorted(attributes.items())]
    )  # fmt: skip


def frozen(value: Any, what: str) -> Frozen:
    """An attribute with a hash.

    Args:
      what: its name in messages.
    """
    if isinstance(value, (bool, np.bool_)):
        return Frozen(bool(value), ("bool", bool(value)))
    if isinstance(value, str):
        return Frozen(str(value), ("str", str(value)))
    if isinstance(value, bytes):
        return Frozen(bytes(value), ("bytes", bytes(value)))
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise OverflowError(f"{what} is {value}, which has more than 64 bits: use np.uint64")
        return Frozen(value, ("int", value))
    if isinstance(value, np.generic):
        number = np.asarray(value)
        _check_dtype(number.dtype, what, "a number")
        return Frozen(value, (number.dtype.name, number.tobytes()))
    if isinstance(value, float):
        return Frozen(value, ("float", value.hex()))
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        dtype = np.dtype(value)
        return Frozen(dtype, ("dtype", dtype.name))
    if isinstance(value, Mapping):
        return _dictionary(value, what)
    check_not_traced(value, what)
    if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
        return _array(value, what)
    raise TypeError(
        f"{what} has the type {type(value).__name__}, which native functions cannot read: use a "
        "boolean, an integer, a float, a string, an array of numbers with one axis, a dtype, or a "
        "dictionary of these"
    )


def _dictionary(value: Mapping[Any, Any], what: str) -> Frozen:
    for name in value:
        if not isinstance(name, str) or not name:
            raise TypeError(f"{what}: the name {name!r} of an attribute is not a text")
    items = {k: frozen(v, f"{k!r} of {what}") for k, v in sorted(value.items())}
    key = tuple([(k, v._key) for k, v in items.items()])
    return Frozen({k: v.value for k, v in items.items()}, ("dict", key))


def _array(value: Any, what: str) -> Frozen:
    if isinstance(value, (list, tuple)):
        check_numbers(value, what)
    array = np.array(value, int if isinstance(value, (list, tuple)) and not value else None)
    if array.ndim == 0:
        return frozen(array[()], what)
    if array.ndim != 1:
        raise TypeError(
            f"{what} is an array with {array.ndim} axes, but native functions read arrays with "
            "one: pass array.ravel(), and the shape as another attribute"
        )
    if array.dtype != np.bool_:
        _check_dtype(array.dtype, what, "an array")
    array.flags.writeable = False
    return Frozen(array, ("array", array.dtype.name, array.tobytes()))


def check_not_traced(value: Any, what: str) -> None:
    """Raise an error for a value that a program computes."""
    if isinstance(value, Tracer):
        raise TypeError(
            f"{what} is a traced value ({typeof(value)}), but attributes are part of the program: "
            "pass it as an operand, or as a number (an argument of jit with static_argnames)"
        )


def check_numbers(values: Sequence[Any], what: str) -> None:
    """Raise an error for a sequence that does not contain numbers alone."""
    for i, x in enumerate(values):
        check_not_traced(x, f"element {i} of {what}")
        if not isinstance(x, (bool, int, float, np.bool_, np.number)):
            raise TypeError(
                f"{what} is a sequence of values that are not numbers: element {i} is a "
                f"{type(x).__name__}"
            )


def _check_dtype(dtype: np.dtype, what: str, kind: str) -> None:
    if dtype.name not in _SCALARS:
        raise TypeError(
            f"{what} is {kind} of dtype {dtype.name}, which native functions cannot read as an "
            "attribute: use integers, np.float32 or np.float64 (two for a complex number)"
        )
