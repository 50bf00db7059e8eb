"""Methods, indexing and matrix multiplication of arrays, registered with the core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Final

from primax_core.extend import Array, is_operand, register_method, typeof

from . import (
    _creation,
    _cumulative,
    _elementwise,
    _joining,
    _logic,
    _positions,
    _products,
    _reductions,
    _rounding,
    _searching,
    _shapes,
    _sorting,
    _splitting,
    _statistics,
    _taking,
    _triangles,
    _viewing,
)
from ._reading import getitem
from ._updating import at


def _astype(self: Array, dtype: Any, copy: bool = False, device: Any = None) -> Array:
    """The elements converted to another dtype; the array itself if it already has the dtype."""
    return _creation.astype(self, dtype, copy=copy, device=device)


def _reshape(
    self: Array, *args: Any, order: str = "C", copy: bool | None = None, out_sharding: Any = None
) -> Array:
    """The same elements in another shape, specified as a tuple or as separate sizes."""
    simple = len(args) == 1 and (
        type(args[0]) is tuple or not hasattr(args[0], "__index__") or getattr(args[0], "ndim", 0)
    )
    shape = args[0] if simple else args
    return _shapes.reshape(self, shape, order, copy=copy, out_sharding=out_sharding)


def _transpose(self: Array, *args: Any) -> Array:
    """The array with permuted axes, specified as a tuple or separately; reversed by default."""
    if not args or (len(args) == 1 and args[0] is None):
        return _shapes.transpose(self)
    several = len(args) == 1 and isinstance(args[0], Iterable) and getattr(args[0], "ndim", 1)
    return _shapes.transpose(self, args[0] if several else args)


def _flatten(self: Array, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements as a vector."""
    return _shapes.ravel(self, order, out_sharding=out_sharding)


def _compress(
    self: Array, condition: Any, axis: int | None = None, *, out: None = None,
    size: int | None = None, fill_value: Any = 0,
) -> Array:  # fmt: skip
    """The rows along an axis where the condition is true."""
    return _positions.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _copy(self: Array) -> Array:
    """A new array with the same values."""
    return _creation.copy(self)


def _matmul(self: Array, other: Any) -> Any:
    return _products.matmul(self, other) if is_operand(other) else NotImplemented


def _rmatmul(self: Array, other: Any) -> Any:
    return _products.matmul(other, self) if is_operand(other) else NotImplemented


def _contains(self: Array, item: Any) -> bool:
    if is_operand(item) and typeof(item).shape:
        raise ValueError(
            f"`value in array` requires a scalar value, got an array of shape {typeof(item).shape}:"
            " use isin(value, array)"
        )
    matches = self == item
    return matches if isinstance(matches, bool) else bool(_reductions.any(matches))


def _rows(self: Array) -> Iterator[Array]:
    if not typeof(self).ndim:
        raise TypeError("iteration over a 0-d array")
    return iter(_splitting.unstack(self))


def _flat(self: Array) -> Any:
    raise NotImplementedError("arrays have no .flat: use .flatten(), or .ravel()[i]")


def _namespace(self: Array, *, api_version: str | None = None) -> Any:
    """The array API namespace of the array."""
    if api_version not in (None, *_STANDARDS):
        raise ValueError(
            f"the array API standard of {api_version!r} is not supported: use one of {_STANDARDS}"
        )
    return import_module(__package__)


_STANDARDS: Final = ("2021.12", "2022.12", "2023.12", "2024.12")

_METHODS: Final[dict[str, Any]] = {
    "__getitem__": getitem,
    "__matmul__": _matmul,
    "__rmatmul__": _rmatmul,
    "__contains__": _contains,
    "__iter__": _rows,
    "__array_namespace__": _namespace,
    "at": at,
    "flat": property(_flat, doc="Unsupported; the error names the alternatives."),
    "T": property(_shapes.transpose, doc="The array with reversed axes."),
    "mT": property(_shapes.matrix_transpose, doc="The array with the last two axes swapped."),
    "real": property(_logic.real, doc="Real part."),
    "imag": property(_logic.imag, doc="Imaginary part."),
    "astype": _astype,
    "reshape": _reshape,
    "transpose": _transpose,
    "flatten": _flatten,
    "compress": _compress,
    "copy": _copy,
    "view": _viewing.view,
    "byteswap": _viewing.byteswap,
    "dot": _products.dot,
    "clip": _elementwise.clip,
    "conj": _logic.conj,
    "conjugate": _logic.conj,
    "nonzero": _positions.nonzero,
    "repeat": _joining.repeat,
    "round": _rounding.round,
    "searchsorted": _searching.searchsorted,
}
_FUNCTIONS: Final = {
    _shapes: "ravel squeeze swapaxes",
    _taking: "take choose",
    _triangles: "diagonal trace",
    _reductions: "sum prod max min all any argmax argmin ptp",
    _statistics: "mean var std",
    _cumulative: "cumsum cumprod",
    _sorting: "sort argsort argpartition",
}
_METHODS.update(
    {name: getattr(module, name) for module, names in _FUNCTIONS.items() for name in names.split()}
)

for _name, _value in _METHODS.items():
    register_method(_name, _value, override=True)
