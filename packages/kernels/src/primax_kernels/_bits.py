"""Bit patterns and shapes of blocks, as kernels for TPUs rearrange them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import typeof

from ._typing import ArrayLike, DTypeLike


def bitcast(x: ArrayLike, ty: DTypeLike, dim: int = -2) -> Any:
    """The bits of an array as elements of another dtype, with the same number of axes.

    Neighbours along ``dim`` share an element of a wider dtype, the first in the lowest bits; an
    element of a wider dtype becomes neighbours.

    Args:
      x: an array with two axes or more.
      ty: the dtype.
      dim: the axis whose size changes: -2 or -1.

    Raises:
      ValueError: for another ``dim``, or if the size of the axis is not a multiple of the ratio.
    """
    dtype = np.dtype(ty)
    if x.ndim < 2:
        raise ValueError(f"bitcast takes an array with two axes or more, got the shape {x.shape}")
    axis = dim % x.ndim if -x.ndim <= dim < x.ndim else -1
    if axis not in (x.ndim - 1, x.ndim - 2):
        raise ValueError(f"bitcast changes the last axis or the one before, not axis {dim}")
    old, new = typeof(x).dtype.itemsize, dtype.itemsize
    if old == new:
        return lax.bitcast_convert_type(x, dtype)
    shape = x.shape
    if old > new:
        parts = lax.bitcast_convert_type(x, dtype)  # a new last axis
        order = [*range(axis + 1), x.ndim, *range(axis + 1, x.ndim)]
        size = shape[axis] * (old // new)
        return lax.reshape(lax.transpose(parts, order), (*shape[:axis], size, *shape[axis + 1 :]))
    ratio = new // old
    if shape[axis] % ratio:
        raise ValueError(
            f"bitcast from {typeof(x).dtype} to {dtype} joins {ratio} elements along axis {axis}, "
            f"whose size is {shape[axis]}"
        )
    split = (*shape[:axis], shape[axis] // ratio, ratio, *shape[axis + 1 :])
    order = [*range(axis + 1), *range(axis + 2, x.ndim + 1), axis + 1]
    return lax.bitcast_convert_type(lax.transpose(lax.reshape(x, split), order), dtype)


def pack_elementwise(xs: Sequence[Any], *, packed_dtype: DTypeLike) -> Any:
    """Several arrays, converted to a narrower dtype, in the bits of one of unsigned integers.

    Args:
      xs: as many arrays of one shape and dtype as narrow elements fit into an element; the first
        has the lowest bits.
      packed_dtype: the narrow dtype, of 8 bits or more.

    Raises:
      ValueError: for another number of arrays, or arrays that differ.
    """
    wide, narrow = typeof(xs[0]).dtype, np.dtype(packed_dtype)
    ratio = wide.itemsize // max(narrow.itemsize, 1)
    if len(xs) != ratio or any((x.shape, x.dtype) != (xs[0].shape, wide) for x in xs):
        raise ValueError(
            f"pack_elementwise packs {ratio} arrays of one shape and {wide} into {narrow}, got "
            f"{[f'{typeof(x)}' for x in xs]}"
        )
    unsigned, bits = np.dtype(f"u{narrow.itemsize}"), 8 * narrow.itemsize
    result = np.dtype(f"u{wide.itemsize}")
    packed = lax.full(xs[0].shape, 0, result)
    for i, x in enumerate(xs):
        part = lax.convert_element_type(x, narrow)
        part = lax.convert_element_type(lax.bitcast_convert_type(part, unsigned), result)
        shift = lax.full(part.shape, i * bits, result)
        packed = lax.bitwise_or(packed, lax.shift_left(part, shift))
    return packed


def unpack_elementwise(
    x: ArrayLike, *, index: int, packed_dtype: DTypeLike, unpacked_dtype: DTypeLike
) -> Any:
    """One of the arrays that `pack_elementwise` packed.

    Args:
      x: an array of integers.
      index: the number of the array, from the lowest bits.
      packed_dtype: its dtype.
      unpacked_dtype: dtype of the result.

    Raises:
      ValueError: if there is no array of that number.
    """
    wide, narrow = typeof(x).dtype, np.dtype(packed_dtype)
    ratio, bits = wide.itemsize // narrow.itemsize, 8 * narrow.itemsize
    if wide.kind not in "iu" or not 0 <= index < ratio:
        raise ValueError(f"{ratio} arrays of {narrow} are packed into {wide}, got index {index}")
    x = lax.bitcast_convert_type(x, np.dtype(f"u{wide.itemsize}"))
    part = lax.shift_right_logical(x, lax.full(x.shape, index * bits, x.dtype))
    part = lax.convert_element_type(part, np.dtype(f"u{narrow.itemsize}"))
    return lax.convert_element_type(lax.bitcast_convert_type(part, narrow), unpacked_dtype)


def einshape(
    equation: str, x: ArrayLike, assert_is_tile_preserving: bool = False, **sizes: int
) -> Any:
    """An array reshaped and transposed by an equation such as ``"a(bc)d->cabd"``.

    Letters stand for axes. On the left, letters in parentheses split an axis, in row-major order;
    on the right, they are joined to one.

    Args:
      equation: the equation.
      x: an array.
      assert_is_tile_preserving: a check for TPUs.
      sizes: sizes of letters; in each pair of parentheses one may be left out.

    Raises:
      ValueError: if the equation does not fit the array.

    >>> einshape("(ab)c->bac", np.zeros((6, 4), np.float32), a=2).shape
    (3, 2, 4)
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    groups, targets = _groups(left, equation), _groups(right, equation)
    letters, moved_letters = "".join(groups), "".join(targets)
    if not arrow or len(groups) != x.ndim or sorted(letters) != sorted(moved_letters):
        raise ValueError(f"{equation!r} does not fit an array with {x.ndim} axes")
    if len(set(letters)) != len(letters):
        raise ValueError(f"{equation!r} has a letter twice")
    known = dict(sizes)
    for group, n in zip(groups, x.shape):
        missing = [letter for letter in group if letter not in known]
        rest = math.prod(known[letter] for letter in group if letter in known)
        if len(missing) > 1:
            raise ValueError(f"{equation!r}: pass sizes of all but one of the letters {group!r}")
        if missing:
            known[missing[0]] = n // max(rest, 1)
        if math.prod(known[letter] for letter in group) != n:
            raise ValueError(f"{equation!r}: the axis {group!r} has {n} elements, not {known}")
    split = lax.reshape(x, tuple(known[letter] for letter in letters))
    moved = lax.transpose(split, [letters.index(letter) for letter in moved_letters])
    return lax.reshape(moved, tuple(math.prod(known[c] for c in group) for group in targets))


def _groups(side: str, equation: str) -> list[str]:
    """The letters of each axis."""
    groups: list[str] = []
    inside: str | None = None
    for c in side:
        if c == "(" and inside is None:
            inside = ""
        elif c == ")" and inside is not None:
            groups.append(inside)
            inside = None
        elif not c.isalpha():
            raise ValueError(f"{equation!r} has the character {c!r}")
        elif inside is None:
            groups.append(c)
        else:
            inside += c
    if inside is not None:
        raise ValueError(f"{equation!r} has an open parenthesis")
    return groups
