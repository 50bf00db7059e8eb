"""Coordinate grids, and the objects that build arrays from index expressions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, Tracer, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import DTypeLike

from ._checks import check_arrays, dtype_argument
from ._creation import asarray
from ._functions import compiled
from ._joining import concatenate
from ._positions import nonzero
from ._ranges import arange, linspace


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Coordinates of all points of a grid: a list of one array for each axis.

    Args:
      xi: the coordinates along each axis: one-dimensional, or numbers.
      copy: must be ``True``: arrays have no views.
      sparse: return arrays of size 1 along the other axes.
      indexing: ``"ij"`` maps the first argument to the first axis, ``"xy"`` to the second.

    Returns:
      A list of arrays of the shape of the grid.

    Raises:
      ValueError: if an array has more than one axis, or ``indexing`` is invalid.

    >>> x, y = meshgrid(np.array([1, 2, 3]), np.array([10, 20]))
    >>> x.tolist(), y.tolist()
    ([[1, 2, 3], [1, 2, 3]], [[10, 10, 10], [20, 20, 20]])
    """
    check_arrays("meshgrid", *xi)
    if not copy:
        raise ValueError("meshgrid: arrays have no views: use copy=True, the default")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: Valid values for indexing are 'xy' and 'ij', got {indexing!r}")
    shapes = [typeof(x).shape for x in xi]
    if any(len(s) != 1 for s in shapes):
        raise ValueError(f"Arguments to meshgrid must be 1D, got shapes {shapes}")
    return list(_meshgrid(*xi, sparse=bool(sparse), swapped=indexing == "xy")) if xi else []


@compiled("sparse", "swapped")
def _meshgrid(*xi, sparse, swapped):
    axes = list(range(len(xi)))
    if swapped and len(xi) > 1:
        axes[:2] = [1, 0]
    return _open_or_full(list(xi), axes, sparse)


def _open_or_full(xs: list[Any], axes: list[int], sparse: bool) -> list[Any]:
    sizes = [0] * len(xs)
    for x, axis in zip(xs, axes):
        sizes[axis] = typeof(x).shape[0]
    shapes = []
    for axis in axes:
        shapes.append(tuple([d if i == axis or not sparse else 1 for i, d in enumerate(sizes)]))
    return [lax.broadcast_in_dim(x, s, (axis,)) for x, s, axis in zip(xs, shapes, axes)]


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """The coordinates of every element of an array of a given shape.

    Args:
      dimensions: the shape, a sequence of concrete integers.
      dtype: the default integer by default.
      sparse: return a tuple of arrays of size 1 along the other axes, instead of one array with a
        leading axis for the coordinates.

    Returns:
      An array of shape ``(len(dimensions), *dimensions)``, or a tuple.

    >>> rows, columns = indices((2, 3))
    >>> rows.tolist(), columns.tolist()
    ([[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]])
    """
    dtype_ = dtype_argument(dtype, "indices") or dtypes.default_int()
    shape = tuple([operator.index(d) for d in dimensions])
    return _indices(shape=shape, dtype=dtype_, sparse=bool(sparse))


@compiled("shape", "dtype", "sparse")
def _indices(*, shape, dtype, sparse):
    lines = [lax.iota(dtype, d) for d in shape]
    coordinates = _open_or_full(lines, list(range(len(shape))), sparse)
    if sparse:
        return tuple(coordinates)
    if not coordinates:
        return lax.full((0,), 0, dtype)
    return lax.concatenate([lax.expand_dims(x, (0,)) for x in coordinates], 0)


def ix_(*args: Any) -> tuple[Array, ...]:
    """Index arrays that select all combinations: the k-th varies along axis ``k``.

    Args:
      args: vectors; booleans denote the indices of true elements, and must be concrete.

    Returns:
      A tuple of an array for each argument, of size 1 along the other axes.

    Raises:
      ValueError: if an argument is not a vector.

    >>> x = np.arange(6).reshape(2, 3)
    >>> x[ix_(np.array([0, 1]), np.array([0, 2]))].tolist()
    [[0, 2], [3, 5]]
    """
    check_arrays("ix_", *args)
    n = len(args)
    out = []
    for k, a in enumerate(args):
        aval = typeof(a)
        if aval.ndim != 1:
            raise ValueError(f"Arguments to ix_ must be 1-dimensional, got shape {aval.shape}")
        x = nonzero(a)[0] if aval.dtype == np.bool_ else asarray(a)
        if not x.size:
            x = lax.convert_element_type(x, dtypes.default_int())
        out.append(lax.expand_dims(x, tuple([i for i in range(n) if i != k])))
    return tuple(out)


# Objects that are indexed


class _Expression:
    """Return the index expression itself; ``index_exp`` always as a tuple."""

    def __init__(self, as_tuple: bool):
        self._as_tuple = as_tuple

    def __getitem__(self, item: Any) -> Any:
        return item if isinstance(item, tuple) or not self._as_tuple else (item,)


index_exp: Final[_Expression] = _Expression(True)
s_: Final[_Expression] = _Expression(False)


def _spaced(s: slice) -> Array:
    """The range of a slice: an imaginary step ``nj`` means ``n`` points including the end."""
    for bound in (s.start, s.stop, s.step):
        if isinstance(bound, Tracer):
            raise TypeError(f"the bounds of a range must be concrete, got {s}: use linspace")
    start = 0 if s.start is None else s.start
    if s.stop is None:  # as in NumPy, the range from 0 to the start
        s, start = slice(0, start, s.step), 0
    if isinstance(s.step, (complex, np.complexfloating)):
        return linspace(start, s.stop, int(abs(s.step)))
    return arange(start, s.stop, s.step)


class _MeshGrid:
    """``mgrid[0:2, 0:3]``: the coordinates of a grid, stacked into one array."""

    def __getitem__(self, key: Any) -> Array:
        if isinstance(key, slice):
            return _spaced(key)
        lines = _same_type(key)
        return _stacked_grid(*lines) if lines else arange(0)


class _OpenGrid:
    """``ogrid[0:2, 0:3]``: the coordinates of a grid, each along its own axis."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _spaced(key)
        lines = _same_type(key)
        return list(_meshgrid(*lines, sparse=True, swapped=False)) if lines else []


def _same_type(key: Any) -> tuple[Array, ...]:
    if not isinstance(key, tuple) or not all(isinstance(k, slice) for k in key):
        raise TypeError(f"a grid needs slices, such as mgrid[0:2, 0:3], got {key!r}")
    lines = [_spaced(k) for k in key]
    if not lines:
        return ()
    dtype, _ = dtypes.lattice_result(tuple([(x.dtype, False) for x in lines]))
    return [lax.convert_element_type(x, dtype) for x in lines]


@compiled(name="mgrid")
def _stacked_grid(*lines):
    coordinates = _open_or_full(list(lines), list(range(len(lines))), False)
    return lax.concatenate([lax.expand_dims(x, (0,)) for x in coordinates], 0)


mgrid: Final[_MeshGrid] = _MeshGrid()
ogrid: Final[_OpenGrid] = _OpenGrid()


class _Joining:
    """Join the parts of an index: numbers, arrays, and slices as ranges.

    A leading string ``"axis,ndim,start"`` is a directive: the axis to join along, the minimum rank
    of the parts, and the position of the original axes in a part of raised rank. ``"r"`` turns a
    vector into a row of a matrix, ``"c"`` into a column.
    """

    def __init__(self, axis: int, ndim: int, place: int):
        self._defaults = (axis, ndim, place)

    def __getitem__(self, key: Any) -> Array:
        parts = list(key) if isinstance(key, tuple) else [key]
        axis, ndim, place = self._defaults
        column = matrix = False
        if parts and isinstance(parts[0], str):
            word = parts.pop(0)
            matrix = word in ("r", "c")
            if matrix:
                column = word == "c"
            else:
                axis, ndim, place = _directive(word, self._defaults)
        if any(isinstance(p, str) for p in parts):
            raise ValueError("string directive must be placed at the beginning")
        out = concatenate([_raised(p, ndim, place) for p in parts], axis)
        if matrix and out.ndim < 2:
            return lax.expand_dims(out, (1 if column else 0,))
        return out


def _directive(word: str, default: tuple[int, int, int]) -> tuple[int, int, int]:
    try:
        numbers = [int(n) for n in word.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise ValueError(
            f"could not understand directive {word!r}: use 'r', 'c' or up to three integers, "
            "such as '0,2,1'"
        )
    axis, ndim, place = (*numbers, *default[len(numbers) :])
    return axis, ndim, place


def _raised(part: Any, ndim: int, place: int) -> Array:
    """A part with new axes of size 1 around its own, which start at ``place``."""
    x = _spaced(part) if isinstance(part, slice) else asarray(part)
    if not x.ndim:
        x = lax.expand_dims(x, (0,))
    missing = ndim - x.ndim
    if missing <= 0:
        return x
    before = place if place >= 0 else missing + place + 1
    before = min(max(before, 0), missing)
    axes = [*range(before), *range(before + x.ndim, ndim)]
    return lax.expand_dims(x, tuple(axes))


r_: Final[_Joining] = _Joining(0, 1, -1)
c_: Final[_Joining] = _Joining(-1, 2, 0)
