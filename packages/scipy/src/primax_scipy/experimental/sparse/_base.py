"""Base class, errors and warnings of sparse arrays."""

from __future__ import annotations

import abc
import math
import operator
from collections.abc import Sequence
from typing import Any

from primax_core import Array
from primax_core.extend.runtime import ErrorWithPage


class SparseEfficiencyError(ErrorWithPage, ValueError, page=True):
    """Raised if an operation would store more than its operand."""


class SparseEfficiencyWarning(UserWarning):
    """Issued if an operation stores more than its operand."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """Issued if a product cannot use the sparse GPU library."""


class JAXSparse(abc.ABC):
    """Base class of sparse arrays: pytrees of the stored arrays.

    Sparse arrays are operands of ``@`` and ``*``, and arguments of functions transformed by
    :func:`sparsify`; other functions raise an error.

    Args:
      args: the stored arrays.
      shape: the shape of the represented array.
    """

    # NumPy arrays defer to the operators of this class.
    __array_ufunc__: Any = None

    shape: tuple[int, ...]

    def __init__(self, args: tuple[Array, ...], *, shape: Sequence[int]):
        self.shape = tuple(
            [operator.index(n) if isinstance(n, Array) else n for n in shape]  # also a maximum + 1
        )

    @property
    @abc.abstractmethod
    def nse(self) -> int:
        """The number of stored elements (in each batch)."""

    @property
    @abc.abstractmethod
    def dtype(self) -> Any:
        """The dtype of the elements."""

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return math.prod(self.shape)

    @property
    def T(self) -> Any:
        """The transposed array."""
        return self.transpose()

    def to_bcoo(self) -> Any:
        """The array as a :class:`BCOO`: operations on sparse arrays use this format.

        Raises:
          NotImplementedError: if the class does not define the conversion.
        """
        raise NotImplementedError(
            f"operations on a {type(self).__name__} need its methods to_bcoo and with_data"
        )

    def with_data(self, data: Any) -> Any:
        """An array with other data at the same indices.

        Raises:
          NotImplementedError: if the class does not define it.
        """
        raise NotImplementedError(f"a {type(self).__name__} has no method with_data")

    def stored_like(self, out: Any) -> Any:
        """A :class:`BCOO` in the format of this array, or unchanged if the format cannot store
        it."""
        return out

    @abc.abstractmethod
    def todense(self) -> Array:
        """The dense array."""

    @abc.abstractmethod
    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with permuted axes, reversed by default."""

    @abc.abstractmethod
    def tree_flatten(self) -> tuple[Any, Any]:
        """The stored arrays, and the static data."""

    @classmethod
    @abc.abstractmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Any:
        """The inverse of :meth:`tree_flatten`."""

    def block_until_ready(self) -> Any:
        """Wait until the stored arrays are computed, and return the array."""
        for stored in self.tree_flatten()[0]:
            stored.block_until_ready()
        return self

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"a sparse array is not converted to NumPy implicitly: {self!r}; use todense() first"
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a sparse array without dimensions")
        return self.shape[0]
