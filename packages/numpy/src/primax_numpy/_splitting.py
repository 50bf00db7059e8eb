"""Splitting of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, Tracer
from primax_core.extend.dimensions import Dimension, as_size, is_static, slice_bounds
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays, one_axis
from ._functions import compiled

MOST_PARTS: Final = 100_000
"""Parts of an array, which are results of one compiled function."""


def split(
    ary: ArrayLike, indices_or_sections: int | Dimension | ArrayLike | Sequence[Any], axis: int = 0
) -> list[Array]:
    """An array split along an axis into parts of equal sizes, or at positions.

    Args:
      ary: an array with at least one axis.
      indices_or_sections: a number of equal parts, or the positions to split at, which must be
        concrete.
      axis: the axis to split, the first by default.

    Returns:
      A list of arrays, which have the rank and dtype of ``ary``.

    Raises:
      ValueError: if the size is not a multiple of the number of parts, or the axis does not exist.
      ConcretizationTypeError: if the positions are traced.

    >>> split(np.arange(4, dtype=np.int32), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    >>> [part.tolist() for part in split(np.arange(5), [1, 3])]
    [[0], [1, 2], [3, 4]]
    """
    return _parts("split", ary, indices_or_sections, axis, even=True)


def array_split(
    ary: ArrayLike, indices_or_sections: int | Dimension | ArrayLike | Sequence[Any], axis: int = 0
) -> list[Array]:
    """An array split along an axis into parts whose sizes differ by at most 1.

    The first ``size % n`` of ``n`` parts have one element more than the others.

    Args:
      ary: an array with at least one axis.
      indices_or_sections: a number of parts, or the positions to split at, which must be concrete.
      axis: the axis to split, the first by default.

    Returns:
      A list of arrays, which have the rank and dtype of ``ary``.

    Raises:
      ValueError: if the number of parts is not positive, or the axis does not exist.
      ConcretizationTypeError: if the positions are traced.

    >>> [part.tolist() for part in array_split(np.arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    """
    return _parts("array_split", ary, indices_or_sections, axis, even=False)


def vsplit(
    ary: ArrayLike, indices_or_sections: int | Dimension | ArrayLike | Sequence[Any]
) -> list[Array]:
    """An array split along the first axis (vertically, for a matrix).

    Args:
      ary: an array with at least one axis.
      indices_or_sections: a number of equal parts, or the positions to split at, which must be
        concrete.

    Returns:
      A list of arrays, as for :func:`split` with ``axis=0``.

    Raises:
      ValueError: if the size is not a multiple of the number of parts, or the axis does not exist.
      ConcretizationTypeError: if the positions are traced.

    >>> [part.tolist() for part in vsplit(np.arange(4).reshape(2, 2), 2)]
    [[[0, 1]], [[2, 3]]]
    """
    return _parts("vsplit", ary, indices_or_sections, 0, even=True)


def hsplit(
    ary: ArrayLike, indices_or_sections: int | Dimension | ArrayLike | Sequence[Any]
) -> list[Array]:
    """An array split along the second axis (horizontally, for a matrix), a vector along the first.

    Args:
      ary: an array with at least one axis.
      indices_or_sections: a number of equal parts, or the positions to split at, which must be
        concrete.

    Returns:
      A list of arrays, as for :func:`split`.

    Raises:
      ValueError: if the size is not a multiple of the number of parts, or the axis does not exist.
      ConcretizationTypeError: if the positions are traced.

    >>> [part.tolist() for part in hsplit(np.arange(4).reshape(2, 2), 2)]
    [[[0], [2]], [[1], [3]]]
    """
    check_arrays("hsplit", ary)
    axis = 0 if typeof(ary).ndim == 1 else 1
    return _parts("hsplit", ary, indices_or_sections, axis, even=True)


def dsplit(
    ary: ArrayLike, indices_or_sections: int | Dimension | ArrayLike | Sequence[Any]
) -> list[Array]:
    """An array split along the third axis.

    Args:
      ary: an array with at least three axes.
      indices_or_sections: a number of equal parts, or the positions to split at, which must be
        concrete.

    Returns:
      A list of arrays, as for :func:`split` with ``axis=2``.

    Raises:
      ValueError: if the size is not a multiple of the number of parts, or the axis does not exist.
      ConcretizationTypeError: if the positions are traced.

    >>> [part.shape for part in dsplit(np.zeros((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return _parts("dsplit", ary, indices_or_sections, 2, even=True)


def _parts(name: str, ary: Any, sections: Any, axis: Any, even: bool) -> list[Array]:
    check_arrays(name, ary)
    at = one_axis(axis, typeof(ary).ndim)
    n = typeof(ary).shape[at]
    bounds = _bounds(name, sections, n, even)
    # Adjacent parts need only one primitive.
    ends = [stop for _, stop in bounds]
    side_by_side = [0, *ends[:-1]] == [start for start, _ in bounds] and (not ends or ends[-1] == n)
    if side_by_side:
        return list(_split(ary, sizes=tuple([b - a for a, b in bounds]), axis=at))
    return list(_slices(ary, bounds=tuple(bounds), axis=at))


def _bounds(name: str, sections: Any, n: int, even: bool) -> list[tuple[int, int]]:
    if isinstance(sections, Tracer) or any(
        isinstance(s, Tracer) for s in (sections if isinstance(sections, (list, tuple)) else ())
    ):
        raise ConcretizationTypeError(
            sections if isinstance(sections, Tracer) else next(
                s for s in sections if isinstance(s, Tracer)
            ),
            f"{name}: split positions must be concrete, because they determine the shapes.",
        )  # fmt: skip
    positions = np.asarray(sections)
    if positions.ndim:
        cuts = [as_size(c) for c in positions]
        return [slice_bounds(slice(a, b), n)[:2] for a, b in zip([0, *cuts], [*cuts, None])]
    count = int(positions)
    if count <= 0:
        raise ValueError(f"{name}: the number of parts must be larger than 0, got {sections!r}")
    if count > MOST_PARTS:
        raise ValueError(
            f"{name}: {count} parts are too many; each is an array of its own. The largest number "
            f"is {MOST_PARTS:,}: use reshape to divide an axis into equal parts"
        )
    if even and n % count != 0:
        raise ValueError(
            f"{name}: array split does not result in an equal division: an axis of size {n} into "
            f"{count} parts; use array_split for parts of different sizes"
        )
    if not is_static((n,)) and n % count == 0:
        return [(i * (n // count), (i + 1) * (n // count)) for i in range(count)]
    sizes = [n // count + (i < n % count) for i in range(count)]
    ends = np.cumsum(sizes).tolist()
    return list(zip([0, *ends[:-1]], ends))


@compiled("sizes", "axis")
def _split(x, *, sizes, axis):
    return tuple(lax.split(x, sizes, axis))


@compiled("bounds", "axis", name="split")
def _slices(x, *, bounds, axis):
    return tuple([lax.slice_in_dim(x, a, b, axis=axis) for a, b in bounds])


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis, without the axis.

    The inverse is :func:`stack`.

    Args:
      x: an array with at least one axis.
      axis: the axis that is removed, the first by default.

    Returns:
      A tuple of as many arrays as the axis has elements.

    Raises:
      ValueError: if the array has no such axis.

    >>> [row.tolist() for row in unstack(np.array([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    >>> [column.tolist() for column in unstack(np.array([[1, 2], [3, 4]]), axis=1)]
    [[1, 3], [2, 4]]
    """
    check_arrays("unstack", x)
    at = one_axis(axis, typeof(x).ndim)
    if not typeof(x).ndim:
        raise ValueError("unstack: the array must have an axis, got shape ()")
    return tuple(_unstack(x, axis=at))


@compiled("axis")
def _unstack(x, *, axis):
    return tuple([lax.index_in_dim(x, i, axis, keepdims=False) for i in range(x.shape[axis])])
