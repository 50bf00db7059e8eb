"""``Array``: the common base class of arrays and tracers.

The class has no behaviour. ``lax`` registers the operators, and the NumPy layer registers methods
and indexing, both with :func:`register_method`: they apply to arrays and tracers.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final, NoReturn

import numpy as np

from .._base.identity import how_to_get, layer


class Array:
    """An n-dimensional array, or a tracer of one.

    The class of concrete arrays and of tracers in ``isinstance`` tests and annotations; arrays
    are created by :func:`device_put`, operations and ``primax.numpy.array``. Arrays are
    immutable. Operators and further methods are those of the NumPy layer, if it is imported.

    Concrete arrays convert to NumPy arrays (``numpy.asarray``), to Python numbers and by DLPack;
    tracers do not, because they have no values.

    >>> from primax_core import Array, device_put, jit
    >>> x = device_put(1.5)
    >>> isinstance(x, Array), x.shape, x.dtype.name, x.weak_type
    (True, (), 'float32', True)
    >>> kinds = []
    >>> _ = jit(lambda x: kinds.append(isinstance(x, Array)) or x)(x)
    >>> kinds
    [True]
    """

    __slots__ = ()
    __array_priority__ = 100
    __hash__: Any = None  # type: ignore[assignment]

    aval: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.size * self.aval.dtype.itemsize

    @property
    def weak_type(self) -> bool:
        """True if the dtype is a weak type, which adapts to other operands in promotion."""
        return self.aval.weak_type

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __setitem__(self, index, value):
        raise TypeError(
            "Primax arrays are immutable and do not support in-place item assignment. Instead of "
            "x[idx] = y, use x = x.at[idx].set(y), which returns a changed copy (and compiles to "
            "an in-place update if no other operation needs the original)."
        )


def register_method(name: str, value: Any, *, override: bool = False) -> None:
    """Add a method, an operator or a property to arrays and tracers.

    The NumPy layer adds its methods by it.

    Args:
      name: the name of the attribute.
      value: a function whose first argument is the array, or a property.
      override: replace an existing attribute.

    Returns:
      ``None``.

    Raises:
      ValueError: if the name is in use and ``override`` is false.

    Type checkers see methods that are declared in ``primax_core/_trace/array.pyi``.

    >>> from primax_core import device_put
    >>> from primax_core.extend import register_method
    >>> register_method("acme_doubled", lambda self: self + self)
    >>> float(device_put(2.0).acme_doubled())
    4.0
    """
    if name in Array.__dict__ and not override and name not in _replaceable:
        raise ValueError(f"Array already has {name!r}; pass override=True to replace it")
    _replaceable.discard(name)
    setattr(Array, name, value)


_replaceable = {"__hash__"}

# Methods, properties and operators that the NumPy layer registers.
_OF_NUMPY_LAYER: Final = (
    "T mT all any argmax argmin argpartition argsort astype at byteswap choose clip compress conj "
    "conjugate copy cumprod cumsum diagonal dot flat flatten imag max mean min nonzero prod ptp "
    "ravel real repeat reshape round searchsorted sort squeeze std sum swapaxes take trace "
    "transpose var view"
).split()
_OPERATORS_OF_NUMPY_LAYER: Final = {
    "__getitem__": "indexing",
    "__matmul__": "`@`",
    "__rmatmul__": "`@`",
}


def _how_to_get_it() -> str:
    package = layer("numpy")
    if find_spec(package) is not None:
        return f"import {package}"
    return f"{how_to_get('numpy')}, and import {package}"


class _Absent:
    """Placeholder for a method of the NumPy layer, whose error says how to get it."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, obj: Any, owner: type | None = None) -> NoReturn:
        name = (owner or type(obj)).__name__
        # An AttributeError makes hasattr() return False.
        raise AttributeError(
            f"{name!r} object has no attribute {self.name!r}: the methods of arrays belong to the "
            f"NumPy layer; {_how_to_get_it()}",
            name=self.name,
            obj=obj,
        )


def _absent_operator(what: str) -> Callable[..., NoReturn]:
    def operator(self: Array, other: Any) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__!r} does not support {what} without the NumPy layer; "
            f"{_how_to_get_it()}"
        )

    return operator


for _name in _OF_NUMPY_LAYER:
    register_method(_name, _Absent(_name))
for _name, _what in _OPERATORS_OF_NUMPY_LAYER.items():
    register_method(_name, _absent_operator(_what))
_replaceable.update(_OF_NUMPY_LAYER, _OPERATORS_OF_NUMPY_LAYER)


def as_dtype_name(dtype: Any) -> str:
    """Name of a dtype for messages."""
    return np.dtype(dtype).name if not hasattr(dtype, "name") else dtype.name
