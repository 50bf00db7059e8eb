"""What sparse arrays of all formats have in common."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any

from primax_core import Array


class SparseEfficiencyError(ValueError):
    """An operation would store more than the array it is asked of."""


class SparseEfficiencyWarning(UserWarning):
    """An operation stores more than the array it was asked of."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A product could not be left to the GPU's library for sparse arrays."""


class JAXSparse(abc.ABC):
    """Base class of sparse arrays: pytrees of the arrays that are stored.

    Sparse arrays are operands of ``@`` and ``*``, and of functions that are made for them with
    :func:`sparsify`; other functions refuse them.

    Args:
      args: the arrays that are stored.
      shape: the shape of the array that they stand for.
    """

    # NumPy arrays leave their operators to this class.
    __array_ufunc__: Any = None

    shape: tuple[int, ...]

    def __init__(self, args: tuple[Array, ...], *, shape: Sequence[int]):
        self.shape = tuple(shape)

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

    @abc.abstractmethod
    def todense(self) -> Array:
        """The array with all of its elements."""

    @abc.abstractmethod
    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its axes in another order, by default backwards."""

    @abc.abstractmethod
    def tree_flatten(self) -> tuple[Any, Any]:
        """The stored arrays, and what else the array consists of."""

    @classmethod
    @abc.abstractmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Any:
        """The array that :meth:`tree_flatten` took apart."""

    def block_until_ready(self) -> Any:
        """Wait until the stored arrays are computed; the array itself."""
        for stored in self.tree_flatten()[0]:
            stored.block_until_ready()
        return self

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"a sparse array is not made a NumPy array unasked: {self!r}; use todense() first"
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a sparse array without dimensions")
        return self.shape[0]
