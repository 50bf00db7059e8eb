"""Operators and array methods that all sparse formats share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import primax_numpy as pnp
from primax_core.extend import Tracer, is_operand

from ._base import JAXSparse
from ._sparsify import sparsify

_add = sparsify(pnp.add)
_subtract = sparsify(pnp.subtract)
_multiply = sparsify(pnp.multiply)
_divide = sparsify(pnp.true_divide)
_power = sparsify(operator.pow)
_matmul = sparsify(pnp.matmul)
_equal = sparsify(pnp.equal)
_not_equal = sparsify(pnp.not_equal)
_less = sparsify(pnp.less)
_less_equal = sparsify(pnp.less_equal)
_greater = sparsify(pnp.greater)
_greater_equal = sparsify(pnp.greater_equal)


def _computed(fun: Callable[..., Any], x: Any, y: Any) -> Any:
    """The result of an operator; ``NotImplemented`` if an operand is not an array."""
    if all(isinstance(v, JAXSparse) or is_operand(v) for v in (x, y)):
        return fun(x, y)
    return NotImplemented


class SparseArray(JAXSparse):
    """Base class of the formats of this module: operators and methods of arrays.

    They are supported if their results are sparse; others raise an error.
    """

    data: Any

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.data.dtype

    def _layout(self) -> dict[str, int]:
        """The numbers that ``repr`` shows."""
        return {"nse": self.nse}

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            layout = self._layout()
            shown = ", ".join(f"{k}={v}" for k, v in layout.items() if v or k == "nse")
            text = f"{name}({self.dtype.name}{list(self.shape)}, {shown})"
        except (AttributeError, IndexError, ValueError):  # a pytree with leaves that are not arrays
            parts = ", ".join(
                f"{k}={v!r}" for k, v in vars(self).items() if k in self.stored_names()
            )
            return f"{name}({parts}, shape={self.shape})"
        return f"{type(self.data).__name__}[{text}]" if isinstance(self.data, Tracer) else text

    def without_flags(self) -> Any:
        """The array without its declarations about indices."""
        return self

    @classmethod
    def stored_names(cls) -> tuple[str, ...]:
        """The names of the stored arrays, in the order of the leaves."""
        return ("data", "indices")

    def dot_dense(
        self, other: Any, dims: Any, precision: Any = None, preferred_element_type: Any = None
    ) -> Any:
        """General dot product with a dense array by a primitive of the format, or
        ``NotImplemented`` to use that of :class:`BCOO`."""
        return NotImplemented

    def astype(self, *args: Any, **kwargs: Any) -> Any:
        """The array with its elements converted, as by :func:`primax.numpy.astype`."""
        return sparsify(lambda x: x.astype(*args, **kwargs))(self)

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with permuted axes, reversed by default.

        Axes are permuted only among axes of the same kind: batch, sparse or dense.
        """
        return sparsify(lambda x: pnp.transpose(x, axes))(self)

    def reshape(self, *args: Any, **kwargs: Any) -> Any:
        """The array in another shape, as by ``Array.reshape``."""
        return sparsify(lambda x: x.reshape(*args, **kwargs))(self)

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """The sum over axes, a sparse array; over all axes, a dense array."""
        return sparsify(lambda x: pnp.sum(x, *args, **kwargs))(self)

    def __getitem__(self, item: Any) -> Any:
        return sparsify(lambda x: x[item])(self)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __neg__(self) -> Any:
        return self.with_data(-self.data)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return sparsify(pnp.abs)(self)

    def __add__(self, other: Any) -> Any:
        return _computed(_add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _computed(_add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _computed(_subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _computed(_subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        return _computed(_multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _computed(_multiply, other, self)

    def __truediv__(self, other: Any) -> Any:
        return _computed(_divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _computed(_divide, other, self)

    def __matmul__(self, other: Any) -> Any:
        return _computed(_matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _computed(_matmul, other, self)

    def __pow__(self, other: Any) -> Any:
        try:
            exponent = operator.index(other)
        except TypeError:
            return _computed(_power, self, other)
        return sparsify(lambda x: x**exponent)(self)

    def __rpow__(self, other: Any) -> Any:
        return _computed(_power, other, self)

    def __eq__(self, other: Any) -> Any:
        return _computed(_equal, self, other)

    def __ne__(self, other: Any) -> Any:
        return _computed(_not_equal, self, other)

    def __lt__(self, other: Any) -> Any:
        return _computed(_less, self, other)

    def __le__(self, other: Any) -> Any:
        return _computed(_less_equal, self, other)

    def __gt__(self, other: Any) -> Any:
        return _computed(_greater, self, other)

    def __ge__(self, other: Any) -> Any:
        return _computed(_greater_equal, self, other)
