"""A reference chosen among several by a computed number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Tracer, typeof

from ._typing import ArrayLike


class SelectedRef:
    """The reference that a computed number chooses, for reads, writes and copies.

    Attributes:
      index: the number, an integer scalar.
      refs: references or views of them.
    """

    def __init__(self, index: Any, refs: Sequence[Any]):
        self.index = index
        self.refs = tuple(refs)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(self.refs[0].shape)

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self.refs[0].dtype

    @property
    def at(self) -> _At:
        """Views: ``ref.at[index]``."""
        return _At(self)

    def branches(self, fun: Callable[[Any], Any]) -> Any:
        """Apply a function to the chosen reference."""
        return lax.switch(self.index, [lambda r=r: fun(r) for r in self.refs])

    def __getitem__(self, index: Any) -> Any:
        return self.branches(lambda ref: read(ref, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.branches(lambda ref: write(ref, index, value))

    def __repr__(self) -> str:
        return f"SelectedRef({self.index}, {list(self.refs)})"


class _At:
    """The attribute ``at`` of a `SelectedRef`."""

    def __init__(self, ref: SelectedRef):
        self.ref = ref

    def __getitem__(self, index: Any) -> SelectedRef:
        return SelectedRef(self.ref.index, [r.at[index] for r in self.ref.refs])


def read(ref: Any, index: Any) -> Any:
    """The elements of a reference, or of a view of one, at an index."""
    return ref.at[index].get() if hasattr(ref, "base") else ref[index]


def write(ref: Any, index: Any, value: Any) -> None:
    """Replace the elements of a reference, or of a view of one, at an index."""
    if hasattr(ref, "base"):
        ref.at[index].set(value)
    else:
        ref[index] = value


def select_ref(idx: ArrayLike, *refs: Any) -> Any:
    """The reference with a number, which may be computed.

    Args:
      idx: the number, an integer or an integer scalar. Computed numbers outside of the range are
        moved to its ends.
      refs: references of one shape and dtype, or views of them (``ref.at[...]``).

    Returns:
      The reference, if the number is known. Otherwise an object with ``[...]`` and ``at``, which
      is also a source or destination of copies.

    Raises:
      TypeError: if ``idx`` is no integer scalar.
      ValueError: without references, or if their shapes or dtypes differ.
      IndexError: for a known number outside of the range.
    """
    if not refs:
        raise ValueError("select_ref takes at least one reference")
    kinds = {f"{np.dtype(r.dtype)}{list(r.shape)}": None for r in refs}
    if len(kinds) > 1:
        raise ValueError(
            f"select_ref takes references of one shape and dtype, got {', '.join(kinds)}"
        )
    aval = typeof(idx)
    if aval.shape != () or aval.dtype.kind not in "iu":
        raise TypeError(f"select_ref takes an integer scalar, got {aval}")
    if isinstance(idx, Tracer):
        return SelectedRef(idx, refs)
    number = int(idx)
    if not 0 <= number < len(refs):
        raise IndexError(f"select_ref has {len(refs)} references, and chooses number {number}")
    return refs[number]
