"""Methods, indexing and the matrix product of arrays, registered with the core."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, is_operand, register_method, typeof

from . import _elementwise, _products, _reductions, _shapes
from ._checks import wanted_dtype
from ._reading import getitem
from ._updating import at


def astype(self: Array, dtype: Any, copy: bool = False, device: Any = None) -> Array:
    """The elements converted to another dtype; the array itself if it has it already."""
    wanted = wanted_dtype(float if dtype is None else dtype, "astype")
    if self.dtype == wanted and not self.weak_type:
        return self
    return lax.convert_element_type(self, wanted)


def _reshape(self: Array, *args: Any, order: str = "C", out_sharding: Any = None) -> Array:
    """The same elements in another shape, given as a tuple or as separate sizes."""
    shape = args[0] if len(args) == 1 and not hasattr(args[0], "__index__") else args
    return _shapes.reshape(self, shape, order)


def _transpose(self: Array, *args: Any) -> Array:
    """Axes in another order, given as a tuple or separately; reversed by default."""
    if not args or args == (None,):
        return _shapes.transpose(self)
    axes = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    return _shapes.transpose(self, axes)


def _matmul(self: Array, other: Any) -> Any:
    return _products.matmul(self, other) if is_operand(other) else NotImplemented


def _rmatmul(self: Array, other: Any) -> Any:
    return _products.matmul(other, self) if is_operand(other) else NotImplemented


def _matrix_transposed(self: Array) -> Array:
    if self.ndim < 2:
        raise ValueError(f"matrix transpose needs at least 2 axes, got shape {self.shape}")
    return _shapes.swapaxes(self, -1, -2)


def _imag(self: Array) -> Array:
    aval = typeof(self)
    if np.issubdtype(aval.dtype, np.complexfloating):
        return lax.imag(self)
    return lax.full_like(self, 0)


def _real(self: Array) -> Array:
    return lax.real(self) if np.issubdtype(self.dtype, np.complexfloating) else self


_METHODS: dict[str, Any] = {
    "__getitem__": getitem,
    "__matmul__": _matmul,
    "__rmatmul__": _rmatmul,
    "at": at,
    "astype": astype,
    "reshape": _reshape,
    "transpose": _transpose,
    "T": property(_shapes.transpose, doc="The axes reversed."),
    "mT": property(_matrix_transposed, doc="The last two axes exchanged."),
    "real": property(_real, doc="Real part."),
    "imag": property(_imag, doc="Imaginary part."),
    "ravel": _shapes.ravel,
    "flatten": _shapes.ravel,
    "squeeze": _shapes.squeeze,
    "swapaxes": _shapes.swapaxes,
    "dot": _products.dot,
    "clip": _elementwise.clip,
    **{
        name: getattr(_reductions, name)
        for name in "sum prod max min mean var std all any argmax argmin".split()
    },
}

for _name, _value in _METHODS.items():
    register_method(_name, _value, override=True)
