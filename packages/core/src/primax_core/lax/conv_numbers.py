"""Layouts, paddings and shapes of convolutions and sliding windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._ir.symbolic_dims import as_size, max_dim
from .._trace.typing import Shape
from .shapes import int_tuple


class ConvDimensionNumbers(NamedTuple):
    """Layouts of a convolution: the axes of its operands and its result.

    Attributes:
      lhs_spec: batch axis, feature axis, spatial axes of the input.
      rhs_spec: output feature axis, input feature axis, spatial axes of the kernel.
      out_spec: batch axis, feature axis, spatial axes of the result.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = ConvDimensionNumbers | tuple[str, str, str] | None


def conv_dimension_numbers(
    lhs_shape: Shape,
    rhs_shape: Shape,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> ConvDimensionNumbers:
    """The axes that a ``dimension_numbers`` argument of a convolution specifies.

    Args:
      lhs_shape: shape of the input.
      rhs_shape: shape of the kernel.
      dimension_numbers: three strings with a letter for each axis: ``N`` and ``C`` for batch and
        features of the input and of the result, ``O`` and ``I`` for output and input features of
        the kernel, and any other letters, the same in all three, for spatial axes. ``None`` means
        batch and features first, followed by the spatial axes.

    Returns:
      A :class:`ConvDimensionNumbers` with three tuples of axes: batch (or output features),
      features, then spatial axes.

    Raises:
      TypeError: if the ranks differ, or a string lacks a required letter.

    >>> conv_dimension_numbers((2, 9, 3), (5, 3, 4), ("NWC", "WIO", "NWC")).rhs_spec
    (2, 1, 0)
    >>> conv_dimension_numbers((2, 3, 9), (4, 3, 5), None).lhs_spec
    (0, 1, 2)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return ConvDimensionNumbers(*[
            int_tuple("convolution", "dimension_numbers", spec) for spec in dimension_numbers
        ])  # fmt: skip
    ndim = len(lhs_shape)
    if ndim != len(rhs_shape):
        raise TypeError(
            f"convolution requires lhs and rhs ndim to be equal, got {ndim} and {len(rhs_shape)}."
        )
    if dimension_numbers is None:
        spec = tuple(range(ndim))
        return ConvDimensionNumbers(spec, spec, spec)
    if not isinstance(dimension_numbers, (list, tuple)):
        raise TypeError(
            "convolution dimension_numbers must be tuple/list or None, got "
            f"{type(dimension_numbers)}."
        )
    if len(dimension_numbers) != 3:
        raise TypeError(
            "convolution dimension_numbers list/tuple must be length 3, got "
            f"{len(dimension_numbers)}."
        )
    if not all(isinstance(s, str) for s in dimension_numbers):
        raise TypeError(
            "convolution dimension_numbers elements must be strings, got "
            f"{tuple(map(type, dimension_numbers))}."
        )
    for i, s in enumerate(dimension_numbers):
        if len(s) != ndim:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and "
                f"rhs, got {len(s)} for lhs and rhs shapes {tuple(lhs_shape)} and "
                f"{tuple(rhs_shape)}."
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The axes named by the three strings of a convolution's layout.

    Args:
      dimension_numbers: strings for the input, the kernel and the result, see
        :func:`conv_dimension_numbers`.

    Returns:
      Three tuples of axes: batch (or output features), features, then spatial axes in the order
      of the kernel's string.

    Raises:
      TypeError: if a string lacks a required letter or repeats one, or the spatial letters
        differ.

    A transposition with such a tuple gives the layout with batch and features first.

    >>> conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    >>> conv_general_permutations(("NCW", "OIW", "NCW"))
    ((0, 1, 2), (0, 1, 2), (0, 1, 2))
    """
    firsts = (("N", "C"), ("O", "I"), ("N", "C"))
    spatial = []
    for i, (s, pair) in enumerate(zip(dimension_numbers, firsts)):
        if any([*s].count(c) != 1 for c in pair):
            raise TypeError(
                f"convolution dimension_numbers[{i}] must contain the characters {pair[0]!r} and "
                f"{pair[1]!r} exactly once, got {s}."
            )
        if len(set(s)) != len(s):
            raise TypeError(
                f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {s}."
            )
        spatial.append([c for c in s if c not in pair])
    if not set(spatial[0]) == set(spatial[1]) == set(spatial[2]):
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of spatial "
            f"characters, got {tuple(dimension_numbers)}."
        )
    return tuple([
        tuple([s.index(c) for c in (*pair, *spatial[1])])
        for s, pair in zip(dimension_numbers, firsts)
    ])  # fmt: skip


# Sizes


def dilated(size: int, dilation: int) -> int:
    """Extent of ``size`` elements with a distance of ``dilation``."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def strided(size: int, window: int, stride: int) -> int:
    """Number of windows in ``size`` elements, with a distance of ``stride``."""
    return max_dim((size - window) // stride + 1, 0)


def padtype_to_pads(
    in_shape: Shape,
    window_shape: Shape,
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """Numbers of elements to add before and after each axis, for a named padding.

    Args:
      in_shape: sizes of the axes.
      window_shape: sizes of the window.
      window_strides: distances of windows.
      padding: ``"VALID"`` adds none. ``"SAME"`` adds enough for one window per stride, half of
        them on each side, with an odd one at the end; ``"SAME_LOWER"`` puts an odd one at the
        start.

    Returns:
      A list of pairs ``(low, high)``, one for each axis.

    Raises:
      RuntimeError: if the name of the padding is unknown.

    The pairs can be passed to :func:`reduce_window` and to convolutions.

    >>> padtype_to_pads((8,), (4,), (1,), "SAME")
    [(1, 2)]
    >>> padtype_to_pads((8,), (4,), (1,), "SAME_LOWER")
    [(2, 1)]
    """
    if not isinstance(padding, str):
        raise TypeError(f"Unknown padding type: {padding}.")
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(
            f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}."
        )
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        half = total // 2
        pads.append((half, total - half) if name == "SAME" else (total - half, half))
    return pads


def is_pairs(padding: Any) -> bool:
    """Return True if a padding is a sequence of pairs."""
    return isinstance(padding, Sequence) and all(
        isinstance(p, Sequence) and len(p) == 2 for p in padding
    )


def int_pairs(name: str, padding: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Pairs of Python ints, as a primitive's parameter."""
    return tuple([int_tuple(name, "padding", p) for p in padding])  # type: ignore[misc]


# Shapes of results, for the default layout and for any layout


def conv_shape_tuple(
    lhs_shape: Shape,
    rhs_shape: Shape,
    strides: Sequence[int],
    pads: str | Sequence[tuple[int, int]],
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """The shape of a convolution with batch and features first and without dilation.

    Args:
      lhs_shape: shape of the input, ``(batch, features, *spatial)``.
      rhs_shape: shape of the kernel, ``(output features, features, *spatial)``.
      strides: distance of windows, for each spatial axis.
      pads: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"`` or pairs ``(low, high)`` for each spatial
        axis.
      batch_group_count: number of groups into which the batch is divided.

    Returns:
      A tuple of sizes.

    Raises:
      TypeError: if the number of padding pairs is not the number of spatial axes.
      ValueError: if negative padding exceeds the size of an axis.

    >>> conv_shape_tuple((2, 3, 8), (5, 3, 4), (1,), "VALID")
    (2, 5, 5)
    >>> conv_shape_tuple((2, 3, 8), (5, 3, 4), (2,), [(1, 1)])
    (2, 5, 4)
    """
    lhs_shape, rhs_shape = tuple(lhs_shape), tuple(rhs_shape)
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected {len(lhs_shape) - 2}, got "
            f"{len(pads)}."
        )
    padded = [as_size(n + lo + hi) for n, (lo, hi) in zip(lhs_shape[2:], pads)]
    if any(n < 0 for n in padded):
        raise ValueError(
            "Negative padding is larger than the size of the corresponding dimension: got "
            f"padding={pads} for lhs_shape[2:]={lhs_shape[2:]}"
        )
    space = [
        strided(n, as_size(k), int(s))
        for n, k, s in zip(padded, rhs_shape[2:], strides, strict=True)
    ]
    return (as_size(lhs_shape[0]) // batch_group_count, as_size(rhs_shape[0]), *space)


def conv_general_shape_tuple(
    lhs_shape: Shape,
    rhs_shape: Shape,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """The shape of a convolution in any layout, without dilation.

    Args:
      lhs_shape: shape of the input.
      rhs_shape: shape of the kernel.
      window_strides: distance of windows, for each spatial axis.
      padding: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"`` or pairs ``(low, high)`` for each spatial
        axis.
      dimension_numbers: three strings, see :func:`conv_dimension_numbers`.

    Returns:
      A tuple of sizes, in the layout of the result.

    Raises:
      TypeError: if the number of padding pairs is not the number of spatial axes, or a string is
        not valid.
      ValueError: if negative padding exceeds the size of an axis.

    >>> conv_general_shape_tuple((2, 8, 3), (4, 3, 5), (1,), "SAME", ("NWC", "WIO", "NWC"))
    (2, 8, 5)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple(
        [lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs], window_strides, padding
    )
    return in_layout(shape, out)


def conv_transpose_shape_tuple(
    lhs_shape: Shape,
    rhs_shape: Shape,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """The shape of a transposed convolution in any layout, without dilation of the kernel.

    Args:
      lhs_shape: shape of the input.
      rhs_shape: shape of the kernel.
      window_strides: number of result elements for each input element, for each spatial axis.
      padding: ``"VALID"``, ``"SAME"`` or pairs ``(low, high)`` for each spatial axis.
      dimension_numbers: three strings, see :func:`conv_dimension_numbers`.

    Returns:
      A tuple of sizes, in the layout of the result.

    Raises:
      TypeError: if a string is not valid.

    :func:`conv_transpose` computes the convolution.

    >>> numbers = ("NCW", "IOW", "NCW")
    >>> conv_transpose_shape_tuple((1, 2, 4), (2, 5, 3), (2,), "SAME", numbers)
    (1, 5, 8)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    x, k = [lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs]
    if isinstance(padding, str):
        padding = [transposed_pads(n, s, padding) for n, s in zip(k[2:], window_strides)]
    space = [
        strided(dilated(as_size(n), s) + sum(pads), as_size(w), 1)
        for n, w, s, pads in zip(x[2:], k[2:], window_strides, padding)
    ]
    return in_layout((as_size(x[0]), as_size(k[0]), *space), out)


def in_layout(sizes: Sequence[int], spec: Sequence[int]) -> tuple[int, ...]:
    """Sizes in the order (batch, features, spatial axes), rearranged to a layout."""
    rearranged = [0] * len(spec)
    for axis, size in zip(spec, sizes):
        rearranged[axis] = size
    return tuple(rearranged)


def transposed_pads(window: int, stride: int, padding: str) -> tuple[int, int]:
    """Padding of the dilated input in the transpose of a convolution with a named padding."""
    name = padding.upper()
    total = window + stride - 2
    if name == "SAME":
        before = window - 1 if stride > window - 1 else -(-total // 2)
    elif name == "VALID":
        total += max(window - stride, 0)
        before = window - 1
    else:
        raise ValueError(f"Padding mode must be `SAME` or `VALID`, got {padding!r}.")
    return before, total - before
