"""Morphology of binary and grey images: Serra, Image Analysis and Mathematical
Morphology (1982)."""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.typing import ArrayLike, DTypeLike
from primax_numpy.declaring import check_arrays, compiled

from .._layout import as_operand
from ._arguments import (
    Integers,
    Modes,
    Neighbours,
    bounds,
    cast_back,
    check_modes,
    image,
    integers,
    per_axis,
    result_dtype,
)
from ._ranks import (
    Footprint,
    footprint_of,
    maximum_filter,
    minimum_filter,
    neighbours,
    running,
    widened,
)


def generate_binary_structure(rank: int, connectivity: int) -> Array:
    """Structure ``[3, ...]`` of the neighbours that differ in at most ``connectivity`` axes.

    Args:
      rank: the number of axes; up to 0, the result is a single true element.
      connectivity: the number of axes, at least 1. Both are Python integers.

    Returns:
      Booleans with ``rank`` axes of size 3.

    >>> generate_binary_structure(2, 1).astype(int).tolist()
    [[0, 1, 0], [1, 1, 1], [0, 1, 0]]
    """
    return pnp.asarray(_structure(operator.index(rank), operator.index(connectivity)))


def _structure(rank: int, connectivity: int) -> Any:
    if rank < 1:
        return np.array(True)
    return np.abs(np.indices((3,) * rank) - 1).sum(0) <= max(connectivity, 1)


_MOST_WORK: Final = 10**9


def iterate_structure(structure: Neighbours, iterations: int) -> Array:
    """A structure dilated by itself ``iterations - 1`` times.

    Args:
      structure: a constant array of booleans.
      iterations: a Python integer; up to 1, the structure is returned unchanged.

    Returns:
      Booleans of sizes ``(size - 1) * iterations + 1``.

    Raises:
      ValueError: if ``iterations`` times the number of these booleans exceeds a thousand million.

    >>> iterate_structure(np.array([True, True]), 3).tolist()
    [True, True, True, True]
    """
    mask = np.asarray(structure).astype(bool)
    out, times = mask, max(operator.index(iterations), 1)
    if all(n <= 1 for n in mask.shape):
        return pnp.asarray(mask)
    work = times * math.prod((n - 1) * times + 1 for n in mask.shape)
    if work > _MOST_WORK:
        raise ValueError(
            f"iterate_structure: {times} iterations of a structure of shape {mask.shape} take "
            f"{work:,} steps, and at most {_MOST_WORK:,} are computed"
        )
    for _ in range(times - 1):
        wide = np.zeros([n + m - 1 for n, m in zip(out.shape, mask.shape)], bool)
        for offset in np.argwhere(mask):
            wide[tuple(slice(o, o + n) for o, n in zip(offset, out.shape))] |= out
        out = wide
    return pnp.asarray(out)


def _arguments(name, x, structure, origin, flip):
    """The footprint and the number of elements before each position."""
    image(name, x)
    d = typeof(x).ndim
    mask = _structure(d, 1) if structure is None else footprint_of(name, None, structure, d)
    origins = integers(name, "origin", origin, d)
    if flip:
        mask = np.flip(mask)
    befores = tuple(bounds(name, n, o)[1 if flip else 0] for n, o in zip(mask.shape, origins))
    return Footprint(mask), befores


def _boolean(x: Any) -> Any:
    return x if typeof(x).dtype == np.bool_ else pnp.not_equal(x, lax.full_like(x, 0))


def _step(x, footprint, befores, grow, border):
    """One dilation or erosion of booleans."""
    mask = footprint.mask
    shape, ndim = typeof(x).shape, typeof(x).ndim
    axes, combine = tuple(range(ndim)), lax.bitwise_or if grow else lax.bitwise_and
    wide = widened(x, mask, axes, ("constant",) * ndim, befores, bool(border))
    if mask.all():
        for axis in axes:
            n = mask.shape[axis]
            wide = running(wide, axis, n, shape[axis], combine)
        return wide
    total: Any = None
    for part in neighbours(wide, mask, axes, shape):
        total = part if total is None else combine(total, part)
    return total


@compiled("footprint", "befores", "grow", "border", "iterations", "dtype", name="binary_morphology")
def _iterated(x, mask, *, footprint, befores, grow, border, iterations, dtype):
    x = _boolean(x)
    fixed = None if mask is None else ~_boolean(mask)

    def step(y):
        z = _step(y, footprint, befores, grow, border)
        return z if fixed is None else pnp.where(fixed, x, z)

    if iterations == 1:
        out = step(x)
    elif iterations > 1:
        out = lax.fori_loop(0, iterations, lambda _, y: step(y), x)
    else:

        def changed(state):
            return state[1]

        def again(state):
            y = step(state[0])
            return y, pnp.any(y != state[0])

        out, _ = lax.while_loop(changed, again, (x, np.bool_(True)))
    return cast_back(out, dtype)


def _binary(name, x, structure, iterations, mask, output, border, origin, grow) -> Array:
    footprint, befores = _arguments(name, x, structure, origin, grow)
    if mask is not None:
        mask = as_operand(name, mask)
        if typeof(mask).shape != typeof(x).shape:
            raise ValueError(
                f"{name}: mask must have the input's shape {typeof(x).shape}, got "
                f"{typeof(mask).shape}"
            )
    if border not in (0, 1):
        raise ValueError(f"{name}: border_value must be 0 or 1, got {border!r}")
    dtype = np.dtype(bool) if output is None else result_dtype(name, x, output)
    out: Array = _iterated(
        x, mask, footprint=footprint, befores=befores, grow=grow, border=int(border),
        iterations=operator.index(iterations), dtype=dtype,
    )  # fmt: skip
    return out


def binary_erosion(
    input: ArrayLike, structure: Neighbours | None = None, iterations: int = 1,
    mask: ArrayLike | None = None, output: DTypeLike | None = None, border_value: int = 0,
    origin: Integers = 0, brute_force: bool = False,
) -> Array:  # fmt: skip
    """Erosion: positions at which the whole structure is in the image.

    Args:
      input: an image; elements other than 0 are true.
      structure: a constant array of booleans, by default the neighbours along each axis.
      iterations: the number of erosions; below 1, until nothing changes.
      mask: positions that may change.
      output: the dtype of the result, by default bool.
      border_value: the value beyond the edges, 0 or 1.
      origin: the shift of the structure, one value or one for each axis.
      brute_force: accepted for compatibility; ignored, because it does not change the result.

    Returns:
      Booleans of the shape of ``input``, or numbers of the dtype ``output``.

    Raises:
      ValueError: if a shape, the border value or the origin is invalid.

    >>> binary_erosion(np.bool_([1, 1, 1, 0])).astype(int).tolist()
    [0, 1, 0, 0]
    """
    return _binary(
        "binary_erosion", input, structure, iterations, mask, output, border_value, origin, False
    )


def binary_dilation(
    input: ArrayLike, structure: Neighbours | None = None, iterations: int = 1,
    mask: ArrayLike | None = None, output: DTypeLike | None = None, border_value: int = 0,
    origin: Integers = 0, brute_force: bool = False,
) -> Array:  # fmt: skip
    """Dilation: positions that the structure reaches from the image.

    Args:
      input, structure, mask, output, border_value, origin, brute_force: as in `binary_erosion`.
      iterations: the number of dilations; below 1, until nothing changes.

    Returns:
      Booleans of the shape of ``input``, or numbers of the dtype ``output``.

    Raises:
      ValueError: if a shape, the border value or the origin is invalid.

    >>> binary_dilation(np.bool_([0, 1, 0, 0])).astype(int).tolist()
    [1, 1, 1, 0]
    """
    return _binary(
        "binary_dilation", input, structure, iterations, mask, output, border_value, origin, True
    )


def binary_opening(
    input: ArrayLike, structure: Neighbours | None = None, iterations: int = 1,
    output: DTypeLike | None = None, origin: Integers = 0, mask: ArrayLike | None = None,
    border_value: int = 0, brute_force: bool = False,
) -> Array:  # fmt: skip
    """Erosions followed by as many dilations, which removes small objects.

    Args:
      input, structure, mask, output, border_value, origin, brute_force: as in `binary_erosion`.
      iterations: the number of erosions, and of dilations.

    Returns:
      Booleans of the shape of ``input``, or numbers of the dtype ``output``.

    Raises:
      ValueError: if a shape, the border value or the origin is invalid.

    >>> binary_opening(np.bool_([0, 1, 0, 1, 1, 1])).astype(int).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    x = binary_erosion(input, structure, iterations, mask, None, border_value, origin)
    return binary_dilation(x, structure, iterations, mask, output, border_value, origin)


def binary_closing(
    input: ArrayLike, structure: Neighbours | None = None, iterations: int = 1,
    output: DTypeLike | None = None, origin: Integers = 0, mask: ArrayLike | None = None,
    border_value: int = 0, brute_force: bool = False,
) -> Array:  # fmt: skip
    """Dilations followed by as many erosions, which fills small gaps.

    Args:
      input, structure, mask, output, border_value, origin, brute_force: as in `binary_erosion`.
      iterations: the number of dilations, and of erosions.

    Returns:
      Booleans of the shape of ``input``, or numbers of the dtype ``output``.

    Raises:
      ValueError: if a shape, the border value or the origin is invalid.

    >>> binary_closing(np.bool_([0, 1, 0, 1, 0])).astype(int).tolist()
    [0, 1, 1, 1, 0]
    """
    x = binary_dilation(input, structure, iterations, mask, None, border_value, origin)
    return binary_erosion(x, structure, iterations, mask, output, border_value, origin)


def binary_propagation(
    input: ArrayLike, structure: Neighbours | None = None, mask: ArrayLike | None = None,
    output: DTypeLike | None = None, border_value: int = 0, origin: Integers = 0,
) -> Array:  # fmt: skip
    """Dilations within a mask until nothing changes.

    Args:
      input, structure, mask, output, border_value, origin: as in `binary_erosion`.

    Returns:
      Booleans of the shape of ``input``, or numbers of the dtype ``output``.

    Raises:
      ValueError: if a shape, the border value or the origin is invalid.

    >>> mask = np.bool_([1, 1, 1, 0, 1])
    >>> binary_propagation(np.bool_([0, 1, 0, 0, 0]), mask=mask).astype(int).tolist()
    [1, 1, 1, 0, 0]
    """
    return binary_dilation(input, structure, -1, mask, output, border_value, origin)


def binary_fill_holes(
    input: ArrayLike,
    structure: Neighbours | None = None,
    output: DTypeLike | None = None,
    origin: Integers = 0,
) -> Array:
    """The image with its holes, the background that dilations from the edges do not reach.

    Args:
      input, structure, output, origin: as in `binary_erosion`, whose errors apply.

    Returns:
      Booleans of the shape of ``input``, or numbers of the dtype ``output``.

    >>> binary_fill_holes(np.bool_([0, 1, 0, 1, 0])).astype(int).tolist()
    [0, 1, 1, 1, 0]
    """
    image("binary_fill_holes", input)
    background = pnp.logical_not(input)
    outside = pnp.zeros(typeof(input).shape, np.bool_)
    reached = binary_dilation(outside, structure, -1, background, None, 1, origin)
    out = pnp.logical_not(reached)
    return out if output is None else out.astype(result_dtype("binary_fill_holes", input, output))


def binary_hit_or_miss(
    input: ArrayLike, structure1: Neighbours | None = None, structure2: Neighbours | None = None,
    output: DTypeLike | None = None, origin1: Integers = 0, origin2: Integers | None = None,
) -> Array:  # fmt: skip
    """Positions at which one structure is in the image and another one in the background.

    Args:
      structure1: by default the neighbours along each axis.
      structure2: by default the complement of ``structure1``.
      input, output, origin1, origin2: as in `binary_erosion`.

    Returns:
      Booleans of the shape of ``input``, or numbers of the dtype ``output``.

    >>> x = np.bool_([0, 1, 0, 1, 1])
    >>> binary_hit_or_miss(x, [0, 1, 0], [1, 0, 1]).astype(int).tolist()
    [0, 1, 0, 0, 0]
    """
    name = "binary_hit_or_miss"
    image(name, input)
    first = _structure(typeof(input).ndim, 1) if structure1 is None else np.asarray(structure1)
    second = ~first.astype(bool) if structure2 is None else structure2
    hit = binary_erosion(input, first, origin=origin1)
    origin = _flipped(second, origin1 if origin2 is None else origin2)
    out = hit
    if np.any(second):
        out = hit & ~binary_dilation(input, np.flip(np.asarray(second)), origin=origin)
    return out if output is None else out.astype(result_dtype(name, input, output))


def _flipped(structure: Any, origin: Any) -> Any:
    """The origin of a dilation that reaches the same neighbours as an erosion."""
    shape = np.shape(structure)
    origins = integers("binary_hit_or_miss", "origin", origin, len(shape))
    return tuple(-o - (1 if n % 2 == 0 else 0) for o, n in zip(origins, shape))


@compiled("footprint", "befores", "modes", "grow", "dtype", name="grey_morphology")
def _grey(x, heights, cval, *, footprint, befores, modes, grow, dtype):
    mask, ndim = footprint.mask, typeof(x).ndim
    axes = tuple(range(ndim))
    wide = widened(x, mask, axes, modes, befores, cval)
    heights = lax.convert_element_type(heights, typeof(x).dtype)
    total: Any = None
    for offset, part in zip(np.argwhere(mask), neighbours(wide, mask, axes, typeof(x).shape)):
        height = heights[tuple(int(o) for o in offset)]
        part = part + height if grow else part - height
        total = part if total is None else (lax.max if grow else lax.min)(total, part)
    return cast_back(total, dtype)


def _grey_filter(
    name, x, size, footprint, structure, output, mode, cval, origin, grow
) -> Array:  # fmt: skip
    image(name, x)
    check_arrays(name, cval)
    d = typeof(x).ndim
    if footprint is None and structure is not None and size is None:
        footprint = np.ones(typeof(as_operand(name, structure)).shape, bool)
    mask = footprint_of(name, size, footprint, d)
    origins = integers(name, "origin", origin, d)
    if grow:
        mask = np.flip(mask)
        origins = tuple(-o - (1 if n % 2 == 0 else 0) for o, n in zip(origins, mask.shape))
    if structure is None:
        extremum = maximum_filter if grow else minimum_filter
        return extremum(x, None, mask, output, mode, cval, origins)
    heights = as_operand(name, structure)
    if typeof(heights).shape != mask.shape:
        raise ValueError(
            f"{name}: structure must have the footprint's shape {mask.shape}, got "
            f"{typeof(heights).shape}"
        )
    modes = per_axis(name, "mode", mode, d)
    check_modes(name, modes)
    befores = tuple(bounds(name, n, o)[0] for n, o in zip(mask.shape, origins))
    out: Array = _grey(
        x, pnp.flip(heights) if grow else heights, cval, footprint=Footprint(mask),
        befores=befores, modes=modes, grow=grow, dtype=result_dtype(name, x, output),
    )  # fmt: skip
    return out


def grey_erosion(
    input: ArrayLike, size: Integers | None = None, footprint: Neighbours | None = None,
    structure: Neighbours | None = None, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, origin: Integers = 0,
) -> Array:  # fmt: skip
    """Minimum of the neighbours minus the heights of a structure.

    Args:
      size, footprint: the neighbourhood, as in `maximum_filter`.
      structure: heights, an array of the neighbourhood's shape; by default zeros.
      input, output, mode, cval, origin: as in `correlate`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if a shape, a mode or an origin is invalid.

    The derivative is that of the smallest difference; equal ones share it.

    >>> grey_erosion(np.int32([5, 1, 4, 6]), size=3).tolist()
    [1, 1, 1, 4]
    """
    return _grey_filter(
        "grey_erosion", input, size, footprint, structure, output, mode, cval, origin, False
    )


def grey_dilation(
    input: ArrayLike, size: Integers | None = None, footprint: Neighbours | None = None,
    structure: Neighbours | None = None, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, origin: Integers = 0,
) -> Array:  # fmt: skip
    """Maximum of the neighbours plus the heights of a flipped structure.

    Args:
      input, size, footprint, structure, output, mode, cval, origin: as in `grey_erosion`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if a shape, a mode or an origin is invalid.

    The derivative is that of the largest sum; equal ones share it.

    >>> grey_dilation(np.int32([5, 1, 4, 6]), size=3).tolist()
    [5, 5, 6, 6]
    """
    return _grey_filter(
        "grey_dilation", input, size, footprint, structure, output, mode, cval, origin, True
    )


def grey_opening(
    input: ArrayLike, size: Integers | None = None, footprint: Neighbours | None = None,
    structure: Neighbours | None = None, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, origin: Integers = 0,
) -> Array:  # fmt: skip
    """`grey_erosion` followed by `grey_dilation`, which removes narrow peaks.

    Args:
      input, size, footprint, structure, output, mode, cval, origin: as in `grey_erosion`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if a shape, a mode or an origin is invalid.

    >>> grey_opening(np.int32([1, 5, 1, 1]), size=3).tolist()
    [1, 1, 1, 1]
    >>> grey_opening(np.int32([1, 5, 5, 1]), footprint=[True, True]).tolist()
    [1, 5, 5, 1]
    """
    x = grey_erosion(input, size, footprint, structure, None, mode, cval, origin)
    return grey_dilation(x, size, footprint, structure, output, mode, cval, origin)


def grey_closing(
    input: ArrayLike, size: Integers | None = None, footprint: Neighbours | None = None,
    structure: Neighbours | None = None, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, origin: Integers = 0,
) -> Array:  # fmt: skip
    """`grey_dilation` followed by `grey_erosion`, which fills narrow valleys.

    Args:
      input, size, footprint, structure, output, mode, cval, origin: as in `grey_erosion`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if a shape, a mode or an origin is invalid.

    >>> grey_closing(np.int32([5, 1, 5, 5]), size=3).tolist()
    [5, 5, 5, 5]
    >>> grey_closing(np.int32([5, 1, 1, 5]), footprint=[True, True]).tolist()
    [5, 1, 1, 5]
    """
    x = grey_dilation(input, size, footprint, structure, None, mode, cval, origin)
    return grey_erosion(x, size, footprint, structure, output, mode, cval, origin)


def morphological_gradient(
    input: ArrayLike, size: Integers | None = None, footprint: Neighbours | None = None,
    structure: Neighbours | None = None, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, origin: Integers = 0,
) -> Array:  # fmt: skip
    """`grey_dilation` minus `grey_erosion`, of numbers.

    Args:
      input, size, footprint, structure, output, mode, cval, origin: as in `grey_erosion`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if a shape, a mode or an origin is invalid.

    >>> morphological_gradient(np.int32([5, 1, 4, 6]), size=3).tolist()
    [4, 4, 5, 2]
    >>> morphological_gradient(np.int32([5, 1, 4, 6]), structure=np.int32([0, 1, 0])).tolist()
    [5, 5, 5, 3]
    """
    args = (input, size, footprint, structure, output, mode, cval, origin)
    return grey_dilation(*args) - grey_erosion(*args)


def morphological_laplace(
    input: ArrayLike, size: Integers | None = None, footprint: Neighbours | None = None,
    structure: Neighbours | None = None, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, origin: Integers = 0,
) -> Array:  # fmt: skip
    """`grey_dilation` plus `grey_erosion` minus twice the image.

    Args:
      input, size, footprint, structure, output, mode, cval, origin: as in `grey_erosion`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if a shape, a mode or an origin is invalid.

    >>> morphological_laplace(np.int32([5, 1, 4, 6]), size=3).tolist()
    [-4, 4, -1, -2]
    """
    args = (input, size, footprint, structure, output, mode, cval, origin)
    out = grey_dilation(*args) + grey_erosion(*args)
    return out - 2 * lax.convert_element_type(input, typeof(out).dtype)


def _difference(x: Any, y: Any) -> Array:
    if dtypes.issubdtype(typeof(x).dtype, np.bool_):
        return pnp.logical_xor(x, y)
    return x - y


def white_tophat(
    input: ArrayLike, size: Integers | None = None, footprint: Neighbours | None = None,
    structure: Neighbours | None = None, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, origin: Integers = 0,
) -> Array:  # fmt: skip
    """The image minus its `grey_opening`: narrow peaks. For booleans, where they differ.

    Args:
      input, size, footprint, structure, output, mode, cval, origin: as in `grey_erosion`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if a shape, a mode or an origin is invalid.

    >>> white_tophat(np.int32([1, 5, 1, 1]), size=3).tolist()
    [0, 4, 0, 0]
    """
    opened = grey_opening(input, size, footprint, structure, output, mode, cval, origin)
    same = lax.convert_element_type(input, typeof(opened).dtype)
    return _difference(same, opened)


def black_tophat(
    input: ArrayLike, size: Integers | None = None, footprint: Neighbours | None = None,
    structure: Neighbours | None = None, output: DTypeLike | None = None, mode: Modes = "reflect",
    cval: ArrayLike = 0.0, origin: Integers = 0,
) -> Array:  # fmt: skip
    """The `grey_closing` minus the image: narrow valleys. For booleans, where they differ.

    Args:
      input, size, footprint, structure, output, mode, cval, origin: as in `grey_erosion`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if a shape, a mode or an origin is invalid.

    >>> black_tophat(np.int32([5, 1, 5, 5]), size=3).tolist()
    [0, 4, 0, 0]
    """
    closed = grey_closing(input, size, footprint, structure, output, mode, cval, origin)
    same = lax.convert_element_type(input, typeof(closed).dtype)
    return _difference(closed, same)
