"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.samples import Sample, c64, f32, samples
from .._ir.symbolic_dims import is_static
from .._lower.lazy import hlo, mlir, shaped
from .._runtime.sharding import ShardingLike
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike, DTypeLike
from .._transform.batching import move_axis
from .._transform.zeros import Zero, is_linear, zeros
from .contracting import bilinear_jvp
from .conv_groups import form_on_cpu, merged_axis, split_axis
from .conv_numbers import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    conv_shape_tuple,
    dilated,
    in_layout,
    int_pairs,
    is_pairs,
    padtype_to_pads,
    transposed_pads,
)
from .conversion import convert
from .elementwise import check_kind, weak
from .out_sharding import (
    batched_sharding,
    out_sharding_of,
    sharded_result,
    sharding_like,
    with_sharding,
)
from .permuting import rev, transpose as transpose_axes
from .precision import PrecisionLike, canonical_precision, precision_attr
from .reshaping import reshape
from .shapes import int_tuple

Padding = str | Sequence[tuple[int, int]]

conv_general_dilated_p: Final = Primitive("conv_general_dilated")


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Cross-correlation in any number of dimensions: convolution without flipping the kernel.

    Args:
      lhs: the input, of ``n + 2`` axes.
      rhs: the kernel, of the same rank and dtype.
      window_strides: distance between windows, for each of the ``n`` spatial axes.
      padding: ``"SAME"``, ``"SAME_LOWER"`` or ``"VALID"`` (see :func:`padtype_to_pads`), or a pair
        for each spatial axis: numbers of zeros to add before and after it. Negative numbers remove
        elements.
      lhs_dilation: distance between elements of the input, with zeros in between.
      rhs_dilation: distance between elements of the kernel.
      dimension_numbers: the layouts, see :func:`conv_dimension_numbers`.
      feature_group_count: number of groups of features that are convolved separately.
      batch_group_count: number of groups of the batch that are convolved separately, each with its
        own group of output features.
      precision: as for :func:`dot_general`.
      preferred_element_type: dtype of the sums and of the result, not narrower than the operands'.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``.

    Returns:
      An array with the layout of ``dimension_numbers``.

    Raises:
      TypeError: if the dtypes differ or are not numeric, or the ranks are incompatible.
      ValueError: if the sizes are incompatible with each other or with the groups.

    The function is linear in each operand. Under ``vmap`` the mapped axis becomes part of the
    batch or of the features, or a group.

    >>> x, k = np.ones((1, 1, 5), np.float32), np.ones((1, 1, 3), np.float32)
    >>> conv_general_dilated(x, k, (1,), "SAME").tolist()
    [[[2.0, 3.0, 3.0, 3.0, 2.0]]]
    """
    name = "conv_general_dilated"
    x, k = typeof(lhs).shape, typeof(rhs).shape
    numbers = conv_dimension_numbers(x, k, dimension_numbers)
    n = len(x) - 2
    strides = int_tuple(name, "window_strides", window_strides)
    before = (1,) * n if lhs_dilation is None else int_tuple(name, "lhs_dilation", lhs_dilation)
    within = (1,) * n if rhs_dilation is None else int_tuple(name, "rhs_dilation", rhs_dilation)
    if isinstance(padding, str):
        pads = _named_pads(x, k, numbers, strides, before, within, padding)
    elif is_pairs(padding):
        pads = padding
    else:
        raise ValueError(
            f"padding argument to {name} should be a string or a sequence of (low, high) pairs, "
            f"got {padding}"
        )
    return conv_general_dilated_p.bind(
        lhs,
        rhs,
        window_strides=strides,
        padding=int_pairs(name, pads),
        lhs_dilation=before,
        rhs_dilation=within,
        dimension_numbers=numbers,
        feature_group_count=int(feature_group_count),
        batch_group_count=int(batch_group_count),
        precision=canonical_precision(precision),
        preferred_element_type=None
        if preferred_element_type is None
        else dtypes.canonicalize_user_dtype(preferred_element_type, name),
        out_sharding=out_sharding_of(name, out_sharding),
    )


def _named_pads(x, k, numbers: ConvDimensionNumbers, strides, before, within, padding: str):
    if any(d != 1 for d in before):
        raise ValueError(
            "String padding is not implemented for transposed convolution using this op. Please "
            "either exactly specify the required padding or use conv_transpose."
        )
    windows = [k[a] for a in numbers.rhs_spec[2:]]
    _check_counts(len(windows), strides, within)
    return padtype_to_pads(
        [x[a] for a in numbers.lhs_spec[2:]],
        [dilated(w, d) for w, d in zip(windows, within)],
        strides,
        padding,
    )


def _check_counts(n: int, strides, within) -> None:
    for what, values in (("window_strides", strides), ("rhs_dilation", within)):
        if len(values) != n:
            raise ValueError(
                f"conv_general_dilated window and {what} must have the same number of "
                f"dimensions, but got {n} and {len(values)}"
            )
    if any(s <= 0 for s in strides):
        raise TypeError(
            "conv_general_dilated window_strides must have every element be strictly positive, "
            f"got {strides}."
        )


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Cross-correlation with batch and features first, without dilation.

    Args:
      lhs: the input, an array of shape ``(batch, features, *spatial)``.
      rhs: the kernel, an array of shape ``(output features, features, *spatial)`` and of the
        dtype of ``lhs``.
      window_strides: distance of windows, for each spatial axis.
      padding: ``"VALID"``, ``"SAME"`` or ``"SAME_LOWER"``.
      precision: a :class:`Precision`, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: dtype in which products are accumulated, and dtype of the result.

    Returns:
      An array of shape ``(batch, output features, *spatial)``.

    Raises:
      TypeError: if the dtypes or the numbers of axes differ.
      ValueError: if the numbers of features are incompatible, or an argument does not have one
        element for each spatial axis.

    The function is linear in each operand. See :func:`conv_general_dilated` for all options.

    >>> conv(np.ones((1, 2, 5)), np.ones((3, 2, 2)), (1,), "VALID").shape
    (1, 3, 4)
    >>> conv(np.ones((1, 2, 5)), np.ones((3, 2, 2)), (2,), "SAME").shape
    (1, 3, 3)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Cross-correlation with batch and features first, with padding and dilation.

    Args:
      lhs: the input, an array of shape ``(batch, features, *spatial)``.
      rhs: the kernel, an array of shape ``(output features, features, *spatial)`` and of the
        dtype of ``lhs``.
      window_strides: distance of windows, for each spatial axis.
      padding: a name, or pairs ``(low, high)`` for each spatial axis.
      lhs_dilation: distance of the input's elements, between which zeros are inserted; ``None``
        is 1.
      rhs_dilation: distance of the kernel's elements; ``None`` is 1.
      precision: a :class:`Precision`, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: dtype in which products are accumulated, and dtype of the result.

    Returns:
      An array of shape ``(batch, output features, *spatial)``.

    Raises:
      TypeError: if the dtypes or the numbers of axes differ.
      ValueError: if the numbers of features are incompatible, or an argument does not have one
        element for each spatial axis.

    The function is linear in each operand. See :func:`conv_general_dilated` for all options.

    >>> x, kernel = np.ones((1, 2, 5)), np.ones((3, 2, 2))
    >>> conv_with_general_padding(x, kernel, (1,), [(1, 0)], None, (2,)).shape
    (1, 3, 4)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


_TRANSPOSE_LAYOUTS: Final = (
    ("NC", "IO", "NC"),
    ("NHC", "HIO", "NHC"),
    ("NHWC", "HWIO", "NHWC"),
    ("NHWDC", "HWDIO", "NHWDC"),
)


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Transposed convolution (fractional stride): upsamples by ``strides``.

    Args:
      lhs: the input.
      rhs: the kernel, of the dtype of ``lhs``.
      strides: number of result elements for each input element, for each spatial axis.
      padding: with ``"SAME"`` the result is ``strides`` times as large as the input. With
        ``"VALID"`` it has the size from which a convolution without padding computes the size of
        ``lhs``. Or pairs: the padding of the dilated input.
      rhs_dilation: distance of the kernel's elements; ``None`` is 1.
      dimension_numbers: by default features last, and a kernel ``(..., in, out)``.
      transpose_kernel: flip the kernel and swap its feature axes. The result is then the gradient
        of a convolution with that kernel.
      precision: a :class:`Precision`, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: dtype in which products are accumulated, and dtype of the result.
      use_consistent_padding: explicit pairs are the padding of the convolution that is
        transposed.

    Returns:
      An array with the layout of ``dimension_numbers``.

    Raises:
      TypeError: if the dtypes or the numbers of axes differ.
      ValueError: if the numbers of features are incompatible, or an argument does not have one
        element for each spatial axis.

    The function is linear in each operand. Under ``vmap`` the mapped axis becomes part of the
    batch or of the features.

    >>> conv_transpose(np.ones((1, 4, 2)), np.ones((3, 2, 5)), (2,), "SAME").shape
    (1, 8, 5)
    >>> conv_transpose(np.ones((1, 4, 2)), np.ones((3, 2, 5)), (2,), "VALID").shape
    (1, 9, 5)
    """
    x, k = typeof(lhs).shape, typeof(rhs).shape
    n = len(x) - 2
    if dimension_numbers is None:
        if not 0 <= n < len(_TRANSPOSE_LAYOUTS):
            raise ValueError(f"No 4+ dimensional dimension_number defaults: got {n} spatial axes.")
        dimension_numbers = _TRANSPOSE_LAYOUTS[n]
    numbers = conv_dimension_numbers(x, k, dimension_numbers)
    within = (1,) * n if rhs_dilation is None else tuple(rhs_dilation)
    windows = [dilated(k[a], d) for a, d in zip(numbers.rhs_spec[2:], within)]
    pads: Any = padding
    if isinstance(padding, str):
        if padding.upper() in ("SAME", "VALID"):
            pads = [transposed_pads(w, s, padding) for w, s in zip(windows, strides)]
    elif use_consistent_padding:
        pads = [(w - 1 - lo, w - 1 - hi) for w, (lo, hi) in zip(windows, padding)]
    if transpose_kernel:
        rhs = rev(rhs, numbers.rhs_spec[2:])
        order = list(range(len(k)))
        out, into = numbers.rhs_spec[:2]
        order[out], order[into] = into, out
        rhs = transpose_axes(rhs, order)
    return conv_general_dilated(
        lhs, rhs, (1,) * n, pads, strides, within, numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


# Types


@conv_general_dilated_p.rule(abstract)
def _abstract(x, k, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
      feature_group_count, batch_group_count, preferred_element_type, out_sharding,
      **_):  # fmt: skip
    name = "conv_general_dilated"
    for i, a in enumerate((x, k)):
        check_kind(name, a.dtype, ("number", "bool"), i)
    if x.dtype != k.dtype:
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got {x.dtype.name}, "
            f"{k.dtype.name}. Convert one of them."
        )
    n = x.ndim - 2
    if n < 0 or x.ndim != k.ndim:
        raise TypeError(
            f"convolution requires lhs and rhs ndim to be equal, got {x.ndim} and {k.ndim}, and "
            "at least 2: one axis for the batch and one for features."
        )
    _check_counts(n, window_strides, rhs_dilation)
    if len(lhs_dilation) != n:
        raise ValueError(
            f"{name} lhs_dilation must have one element for each of the {n} spatial axes, got "
            f"{lhs_dilation}."
        )
    for dilation in (lhs_dilation, rhs_dilation):
        if any(d <= 0 for d in dilation):
            raise TypeError(f"All dilations must be positive, got {dilation}.")
    lhs = [x.shape[a] for a in dimension_numbers.lhs_spec]
    rhs = [k.shape[a] for a in dimension_numbers.rhs_spec]
    _check_groups(lhs, rhs, feature_group_count, batch_group_count)
    if any(w == 0 for w in rhs[2:]):
        raise ValueError(f"{name} needs a kernel with spatial sizes above 0, got shape {k.shape}.")
    dtype = x.dtype
    if preferred_element_type is not None:
        _check_preferred(x.dtype, preferred_element_type)
        dtype = preferred_element_type
    shape = conv_shape_tuple(
        [*lhs[:2], *map(dilated, lhs[2:], lhs_dilation)],
        [*rhs[:2], *map(dilated, rhs[2:], rhs_dilation)],
        window_strides,
        padding,
        batch_group_count,
    )
    out = ShapedArray(in_layout(shape, dimension_numbers.out_spec), dtype, weak((x, k)))
    return with_sharding(conv_general_dilated_p, out, out_sharding)


def _check_groups(lhs, rhs, feature_groups: int, batch_groups: int) -> None:
    """Raise ValueError if a group count does not divide the size of its axis."""
    name = "conv_general_dilated"
    for what, count in (("feature", feature_groups), ("batch", batch_groups)):
        if count <= 0:
            raise ValueError(f"{name} {what}_group_count must be a positive integer, got {count}.")
    if feature_groups > 1 and batch_groups > 1:
        raise ValueError(
            "At most one of batch_group_count and feature_group_count may be > 1, got "
            f"batch_group_count={batch_groups} and feature_group_count={feature_groups}"
        )
    if lhs[1] % feature_groups:
        raise ValueError(
            f"{name} feature_group_count must divide lhs feature dimension size, but "
            f"{feature_groups} does not divide {lhs[1]}."
        )
    if lhs[1] // feature_groups != rhs[1]:
        raise ValueError(
            f"{name} lhs feature dimension size divided by feature_group_count must equal the rhs "
            f"input feature dimension size, but {lhs[1]} // {feature_groups} != {rhs[1]}."
        )
    if lhs[0] % batch_groups:
        raise ValueError(
            f"{name} batch_group_count must divide lhs batch dimension size, but {batch_groups} "
            f"does not divide {lhs[0]}."
        )
    for what, count in (("feature", feature_groups), ("batch", batch_groups)):
        if rhs[0] % count:
            raise ValueError(
                f"{name} rhs output feature dimension size must be a multiple of "
                f"{what}_group_count, but {rhs[0]} is not a multiple of {count}."
            )


def _check_preferred(dtype: Any, preferred: Any) -> None:
    pairs = (
        (np.integer, np.integer),
        (np.integer, np.floating),
        (np.floating, np.floating),
        (np.complexfloating, np.complexfloating),
    )
    if dtype == np.bool_:
        return
    if not any(dtypes.issubdtype(dtype, a) and dtypes.issubdtype(preferred, b) for a, b in pairs):
        raise TypeError(
            "Input type is incompatible with `preferred_element_type`. The compatible "
            "combinations of (input_type, preferred_element_type) are (integral, integral), "
            "(integral, floating), (floating, floating), (complex, complex); got "
            f"({dtype.name}, {preferred.name})."
        )
    if dtypes.issubdtype(dtype, np.signedinteger) and dtypes.issubdtype(
        preferred, np.unsignedinteger
    ):
        raise TypeError(
            "`preferred_element_type` must have the same signedness as the original type, got "
            f"{preferred.name} for {dtype.name}."
        )
    if dtypes.itemsize_bits(preferred) < dtypes.itemsize_bits(dtype):
        raise TypeError(
            "`preferred_element_type` must not be narrower than the original type, got "
            f"{preferred.name} for {dtype.name}."
        )


# Lowering


@conv_general_dilated_p.rule(lower)
@sharded_result(conv_general_dilated_p)
def _convolution(ctx, x, k, *, precision, preferred_element_type, out_sharding, **layout):
    xa, oa = ctx.in_avals[0], ctx.out_avals[0]
    attrs = _attributes(layout, precision)

    def emit(x, k, dtype):
        kind = mlir.tensor_type(oa.shape, dtype)
        return shaped.convolution(kind, x, k, layout["padding"], **attrs)

    if not dtypes.issubdtype(xa.dtype, np.complexfloating):
        return emit(x, k, oa.dtype)
    # Not every platform of XLA has complex convolutions: use three real ones (Gauss).
    part = dtypes.f64 if oa.dtype == dtypes.c128 else dtypes.f32
    (a, b), (c, d) = (hlo.real(x), hlo.imag(x)), (hlo.real(k), hlo.imag(k))
    first = emit(hlo.add(a, b), c, part)
    second = emit(a, hlo.subtract(d, c), part)
    third = emit(b, hlo.add(c, d), part)
    return hlo.complex(hlo.subtract(first, third), hlo.add(first, second))


@conv_general_dilated_p.rule(lower.on("cpu"))
@sharded_result(conv_general_dilated_p)
def _lower_cpu(ctx, x, k, *, precision, preferred_element_type, out_sharding, **layout):
    params = {
        "precision": precision,
        "preferred_element_type": preferred_element_type,
        "out_sharding": None,
    }
    convolve = partial(conv_general_dilated_p.bind, **params)
    symbolic = ctx.symbolic and not all(is_static(a.shape) for a in ctx.in_avals)
    form = None if symbolic else form_on_cpu(convolve, *ctx.in_avals, ctx.out_avals[0], layout)
    if form is None:
        return _convolution(ctx, x, k, **params, **layout)
    return ctx.call(form, x, k)


def _attributes(layout: dict[str, Any], precision) -> dict[str, Any]:
    lhs, rhs, out = layout["dimension_numbers"]
    return {
        "dimension_numbers": hlo.ConvDimensionNumbers.get(
            input_batch_dimension=lhs[0],
            input_feature_dimension=lhs[1],
            input_spatial_dimensions=list(lhs[2:]),
            kernel_output_feature_dimension=rhs[0],
            kernel_input_feature_dimension=rhs[1],
            kernel_spatial_dimensions=list(rhs[2:]),
            output_batch_dimension=out[0],
            output_feature_dimension=out[1],
            output_spatial_dimensions=list(out[2:]),
        ),
        "feature_group_count": mlir.i64(layout["feature_group_count"]),
        "batch_group_count": mlir.i64(layout["batch_group_count"]),
        "window_strides": mlir.i64s(layout["window_strides"]),
        "lhs_dilation": mlir.i64s(layout["lhs_dilation"]),
        "rhs_dilation": mlir.i64s(layout["rhs_dilation"]),
        "window_reversal": mlir.bools([False] * len(layout["window_strides"])),
        "precision_config": precision_attr(precision),
    }


# Derivatives


@conv_general_dilated_p.rule(jvp)
def _jvp(primals, tangents, **params):
    return bilinear_jvp(conv_general_dilated_p, primals, tangents, params)


@conv_general_dilated_p.rule(transpose)
def _transpose(ct, x, k, **params):
    if type(ct) is Zero:
        return [None, None]
    params["out_sharding"] = None
    if is_linear(x):
        aval, other, cotangent_of = x.aval, k, partial(_input_cotangent, aval=x.aval, **params)
    else:
        aval, other, cotangent_of = k.aval, x, partial(_kernel_cotangent, aval=k.aval, **params)
    sharding = sharding_like(aval, typeof(other), typeof(ct))
    if sharding is None:
        cotangent = cotangent_of(ct, other)
    else:
        cotangent = sharding._applied(cotangent_of, ct, other)
    cotangent = convert(cotangent, aval.dtype, aval.weak_type)
    return [cotangent, None] if is_linear(x) else [None, cotangent]


def _swapped(spec: Sequence[int]) -> tuple[int, ...]:
    """A layout with its first two axes swapped."""
    return (spec[1], spec[0], *spec[2:])


def _spatial(aval: ShapedArray, spec: Sequence[int]) -> list[int]:
    return [aval.shape[a] for a in spec[2:]]


def _input_cotangent(ct, k, *, aval: ShapedArray, window_strides, padding, lhs_dilation,
                     rhs_dilation, dimension_numbers, feature_group_count, batch_group_count,
                     **params):  # fmt: skip
    """Cotangent of the input: ``ct``, dilated by the strides, convolved with the flipped kernel."""
    lhs, rhs, out = dimension_numbers
    pads = []
    for n, w, g, stride, (low, _), before, within in zip(
        _spatial(aval, lhs), _spatial(typeof(k), rhs), _spatial(typeof(ct), out),
        window_strides, padding, lhs_dilation, rhs_dilation,
    ):  # fmt: skip
        first = dilated(w, within) - 1 - low
        pads.append((first, dilated(n, before) + low - dilated(g, stride)))
    groups = max(feature_group_count, batch_group_count)
    if groups > 1:
        # The group moves from the kernel's output features to its input features.
        k = merged_axis(split_axis(k, rhs[0], groups), rhs[0], rhs[1])
    cotangent = conv_general_dilated_p.bind(
        convert(ct, _wider(ct, k)),
        rev(convert(k, _wider(ct, k)), rhs[2:]),
        window_strides=lhs_dilation,
        padding=tuple(pads),
        lhs_dilation=window_strides,
        rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(out, _swapped(rhs), lhs),
        feature_group_count=groups,
        batch_group_count=1,
        **params,
    )
    if batch_group_count > 1:
        cotangent = merged_axis(split_axis(cotangent, lhs[1], batch_group_count), lhs[1], lhs[0])
    return cotangent


def _kernel_cotangent(ct, x, *, aval: ShapedArray, window_strides, padding, lhs_dilation,
                      rhs_dilation, dimension_numbers, feature_group_count, batch_group_count,
                      **params):  # fmt: skip
    """Cotangent of the kernel: the input convolved with ``ct``, with batch and features swapped."""
    lhs, rhs, out = dimension_numbers
    if any(g == 0 for g in _spatial(typeof(ct), out)):
        return zeros(aval)
    pads = []
    for n, w, g, stride, (low, _), before, within in zip(
        _spatial(typeof(x), lhs), _spatial(aval, rhs), _spatial(typeof(ct), out),
        window_strides, padding, lhs_dilation, rhs_dilation,
    ):  # fmt: skip
        last = dilated(w, within) - 1 + dilated(g, stride) - dilated(n, before) - low
        pads.append((low, last))
    return conv_general_dilated_p.bind(
        convert(x, _wider(ct, x)),
        convert(ct, _wider(ct, x)),
        window_strides=rhs_dilation,
        padding=tuple(pads),
        lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides,
        dimension_numbers=ConvDimensionNumbers(_swapped(lhs), _swapped(out), _swapped(rhs)),
        feature_group_count=batch_group_count,
        batch_group_count=feature_group_count,
        **params,
    )


def _wider(ct, other) -> Any:
    """The wider of the dtypes of a cotangent and an operand."""
    a, b = typeof(ct).dtype, typeof(other).dtype
    return a if dtypes.itemsize_bits(a) >= dtypes.itemsize_bits(b) else b


# Batching


@conv_general_dilated_p.rule(batch)
def _batch(axis, args, dims, *, out_sharding, **params):
    dim = params["dimension_numbers"].out_spec[dims[1] is not None]
    run = partial(_batched, axis, dims=dims, out_sharding=None, **params)
    if out_sharding is None:
        return run(*args), dim
    return batched_sharding(out_sharding, dim, axis)._applied(run, *args), dim


def _batched(
    axis, x, k, *, dims, dimension_numbers, feature_group_count, batch_group_count, **params
):
    """The convolution of a batch, whose mapped axis is the batch axis or the feature axis."""
    dx, dk = dims
    lhs, rhs, out = dimension_numbers

    def apply(x, k, feature_groups=feature_group_count, batch_groups=batch_group_count):
        return conv_general_dilated_p.bind(
            x, k, dimension_numbers=dimension_numbers, feature_group_count=feature_groups,
            batch_group_count=batch_groups, **params,
        )  # fmt: skip

    if dk is None:
        # The mapped axis becomes part of the batch, within each batch group.
        y = apply(_merged_in_groups(x, dx, lhs[0], batch_group_count), k)
        return split_axis(y, out[0], axis.size)
    if dx is None:
        # The mapped axis becomes part of the output features, within each group.
        groups = max(feature_group_count, batch_group_count)
        y = apply(x, _merged_in_groups(k, dk, rhs[0], groups))
        y = split_axis(split_axis(y, out[1], groups), out[1] + 1, axis.size)
        return merged_axis(y, out[1], out[1] + 1)
    # Each example becomes a group.
    k = merged_axis(k, dk, rhs[0])
    if batch_group_count > 1:
        y = apply(merged_axis(x, dx, lhs[0]), k, batch_groups=batch_group_count * axis.size)
    else:
        y = apply(merged_axis(x, dx, lhs[1]), k, feature_groups=feature_group_count * axis.size)
    return split_axis(y, out[1], axis.size)


def _merged_in_groups(x: Any, dim: int, target: int, groups: int) -> Array:
    """Merge a mapped axis into another axis, within its groups."""
    if groups == 1:
        return merged_axis(x, dim, target)
    x = split_axis(move_axis(x, dim, target, 0), target + 1, groups)
    x = move_axis(x, target, target + 1, 0)
    shape = typeof(x).shape
    together = shape[target] * shape[target + 1] * shape[target + 2]
    return reshape(x, (*shape[:target], together, *shape[target + 3 :]))


@conv_general_dilated_p.rule(samples)
def _samples():
    def sample(*operands, lhs_dilation=(1, 1), strides=(1, 1), pads=((0, 0), (0, 0)), groups=1,
               batches=1, rhs_dilation=(1, 1)):  # fmt: skip
        return Sample(*operands).set(call=lambda x, k: conv_general_dilated(
            x, k, strides, pads, lhs_dilation, rhs_dilation, feature_group_count=groups,
            batch_group_count=batches))  # fmt: skip

    yield sample(f32(2, 2, 5, 4), f32(3, 2, 2, 2), strides=(2, 1), pads=((1, 0), (0, 1)))
    yield sample(f32(1, 4, 5, 5), f32(4, 2, 3, 2), groups=2, rhs_dilation=(1, 2))
    yield sample(f32(1, 1, 3, 3), f32(1, 1, 2, 2), lhs_dilation=(2, 1), pads=((1, 1), (0, 0)))
    yield sample(f32(2, 1, 4, 4), f32(2, 1, 2, 2), batches=2)
    yield sample(c64(1, 1, 3, 3), c64(1, 1, 2, 2))
