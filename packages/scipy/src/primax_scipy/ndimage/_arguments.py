"""Arguments shared by the functions of images."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import dtypes, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import axes_of, check_arrays

from .._layout import check_mode

Integers: TypeAlias = int | Sequence[int]
"""An integer, or a sequence of integers, such as one for each axis."""

Modes: TypeAlias = str | Sequence[str]
"""The extension beyond the edges, or one for each axis."""

Neighbours: TypeAlias = ArrayLike | Sequence[Any]
"""A constant array: a structure or footprint."""

PADS = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge",
    "wrap": "wrap", "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip
"""Modes of filters, and those of `numpy.pad` for the same extension."""


def image(name: str, x: Any) -> Any:
    """Check an image."""
    check_arrays(f"ndimage.{name}", x)
    return x


def result_dtype(name: str, x: Any, output: Any) -> Any:
    """The dtype of a result: that of the input, unless ``output`` is another one.

    Raises:
      TypeError: if ``output`` is an array, because arrays are immutable.
    """
    if output is None:
        return typeof(x).dtype
    if hasattr(output, "shape") and not isinstance(output, (np.dtype, type)):
        raise TypeError(f"{name}: output must be a dtype or None: arrays are immutable")
    return dtypes.canonicalize_dtype(output)


def per_axis(name: str, parameter: str, value: Any, count: int) -> tuple[Any, ...]:
    """One value for each axis; a single value is repeated.

    Raises:
      ValueError: if the number of values differs from that of the axes.
    """
    if isinstance(value, str) or not (hasattr(value, "__len__") and np.ndim(value) > 0):
        return (value,) * count
    values = tuple(value)
    if len(values) != count:
        raise ValueError(f"{name}: {parameter} has {len(values)} values for {count} axes")
    return values


def integers(name: str, parameter: str, value: Any, count: int) -> tuple[int, ...]:
    """`per_axis` for integers."""
    return tuple(operator.index(v) for v in per_axis(name, parameter, value, count))


def chosen_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Nonnegative axes, by default all."""
    return axes_of(None if axes is None else axes, ndim)


def check_modes(name: str, modes: tuple[str, ...]) -> None:
    """Check the modes of filters."""
    for mode in modes:
        check_mode(name, mode, tuple(PADS))


def bounds(name: str, size: int, origin: int) -> tuple[int, int]:
    """Elements that a filter needs before and after each position.

    Raises:
      ValueError: if the origin is outside of the filter.
    """
    before = size // 2 + origin
    if not 0 <= before < size:
        raise ValueError(f"{name}: origin={origin} is outside of a filter of {size} elements")
    return before, size - 1 - before


def working(x: Any) -> Any:
    """Values for weighted sums: floats of at least 32 bits, or complex numbers."""
    dtype = typeof(x).dtype
    if dtypes.issubdtype(dtype, np.inexact):
        return lax.convert_element_type(x, np.float32) if dtype.itemsize < 4 else x
    return lax.convert_element_type(x, np.float64 if dtype.itemsize == 8 else np.float32)


def cast_back(x: Any, dtype: Any) -> Any:
    """Values in the dtype of a result; floats are truncated to integers."""
    return lax.convert_element_type(x, dtype)


def extended(x: Any, widths: Any, modes: tuple[str, ...], cval: Any) -> Any:
    """An array extended along each axis in the mode of that axis."""
    ndim = typeof(x).ndim
    if not any(w != (0, 0) for w in widths):
        return x
    fill = lax.convert_element_type(cval, typeof(x).dtype)
    if len(set(modes)) == 1:
        groups = [(modes[0], list(widths))]
    else:
        groups = []
        for i in range(ndim):
            only = [(0, 0)] * ndim
            only[i] = widths[i]
            groups.append((modes[i], only))
    for mode, pads in groups:
        kind = PADS[mode]
        if kind == "constant":
            x = lax.pad(x, fill, [(*w, 0) for w in pads])
        else:
            x = pnp.pad(x, pads, mode=kind)
    return x
