"""Block-scaled products of narrow floats (microscaling formats, Rouhani et al., 2023)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import custom_vjp, lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.typing import ArrayLike, DTypeLike
from primax_numpy.declaring import check_arrays, compiled

_NARROW: Final = (
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
)  # fmt: skip


_ROWS: Final = (((2,), (2,)), ((0,), (0,)))


@compiled("dtype", name="scaled_matmul")
def _scaled_matmul(x, y, x_scales, y_scales, *, dtype):
    return _product(x, y, x_scales, y_scales, dtype)


def _product(x: Any, y: Any, x_scales: Any, y_scales: Any, dtype: Any) -> Any:
    narrow = all(typeof(v).dtype.name in _NARROW for v in (x, y))
    known = (*_NARROW, "float8_e8m0fnu")
    blocks = all(
        typeof(v).shape[2] >= 2 * typeof(s).shape[2] for v, s in ((x, x_scales), (y, y_scales))
    )
    if narrow and blocks and all(typeof(s).dtype.name in known for s in (x_scales, y_scales)):
        # The platform's kernel; elsewhere products in bfloat16, which represents the operands
        # exactly.
        return lax.scaled_dot(
            x, y, lhs_scale=x_scales, rhs_scale=y_scales, dimension_numbers=_ROWS,
            preferred_element_type=dtype,
        )  # fmt: skip
    wide = [_spread(v, s) for v, s in ((x, x_scales), (y, y_scales))]
    out = lax.dot_general(*wide, _ROWS, preferred_element_type=dtypes.f32)
    return lax.convert_element_type(out, dtype)


def _spread(x: Any, scales: Any) -> Any:
    """The dequantized values of blocks and scales."""
    *rows, n = typeof(x).shape
    m = typeof(scales).shape[-1]
    blocks = (*rows, m, n // m if m else 1)
    x = lax.reshape(lax.convert_element_type(x, np.float32), blocks)
    scales = lax.expand_dims(lax.convert_element_type(scales, np.float32), (len(rows) + 1,))
    return lax.reshape(x * scales, (*rows, n))


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Batched products ``lhs @ rhs^T`` of matrices whose rows have a scale for each block.

    Args:
      lhs: ``[b, m, k]``, usually floats of 8 bits or fewer.
      rhs: ``[b, n, k]``.
      lhs_scales: ``[b, m, k / block]``: each scale multiplies a block of adjacent elements.
      rhs_scales: ``[b, n, k / block]``.
      preferred_element_type: the dtype of the result.

    Returns:
      ``[b, m, n]``, accumulated in ``float32``.

    Raises:
      ValueError: if the shapes do not match.

    >>> x = np.ones((1, 2, 4), np.float32)
    >>> scaled_matmul(x, x, np.full((1, 2, 2), 3.0), np.ones((1, 2, 2))).tolist()
    [[[12.0, 12.0], [12.0, 12.0]]]
    """
    operands = (lhs, rhs, lhs_scales, rhs_scales)
    check_arrays("scaled_matmul", *operands)
    shapes = [typeof(x).shape for x in operands]
    if any(len(s) != 3 for s in shapes):
        raise ValueError(
            "scaled_matmul: all operands must have three axes, [batch, row, summed]; got shapes "
            f"{', '.join(map(str, shapes))}"
        )
    (b, m, k), (b2, n, k2), left, right = shapes
    if (b, k) != (b2, k2):
        raise ValueError(
            "scaled_matmul: lhs and rhs must have the same batch and summed axes, got shapes "
            f"{shapes[0]} and {shapes[1]}"
        )
    if left[2] != right[2] or (left[2] == 0) != (k == 0) or (left[2] and k % left[2]):
        raise ValueError(
            "scaled_matmul: both scales must have one element for each block of the summed axis, "
            f"whose size {k} they divide; got shapes {left} and {right}"
        )
    if left[:2] != (b, m) or right[:2] != (b, n):
        raise ValueError(
            "scaled_matmul: scales must have the batch and the rows of their operands, which have "
            f"shapes {shapes[0]} and {shapes[1]}; got {left} and {right}"
        )
    dtype = dtypes.canonicalize_dtype(preferred_element_type)
    out: Array = _scaled_matmul(*operands, dtype=dtype)
    return out


# Quantization


@dataclass(frozen=True, eq=False)
class BlockScaleConfig:
    """Quantization format of an operand; see :func:`get_scaled_dot_general_config`.

    Attributes:
      mode: ``"mxfp8"``, ``"mxfp4"`` or ``"nvfp4"``.
      block_size: the number of adjacent elements that share a scale.
      data_type: the dtype of the elements.
      scale_type: the dtype of the scales.
      global_scale: a common factor of all scales, or ``None``.
      infer_only: derivatives are not needed.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Array | None
    infer_only: bool


_MODES: Final = {
    "mxfp8": (32, pnp.float8_e4m3fn, pnp.float8_e8m0fnu),
    "mxfp4": (32, pnp.float4_e2m1fn, pnp.float8_e8m0fnu),
    "nvfp4": (16, pnp.float4_e2m1fn, pnp.float8_e4m3fn),
}


def get_scaled_dot_general_config(
    mode: str, global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """The formats of a named quantization mode, for :func:`scaled_dot_general`.

    Args:
      mode: ``"mxfp8"``: blocks of 32 ``float8_e4m3fn`` with scales that are powers of two;
        ``"mxfp4"``: the same with ``float4_e2m1fn``; ``"nvfp4"``: blocks of 16 ``float4_e2m1fn``
        with scales of ``float8_e4m3fn``.
      global_scale: for ``"nvfp4"``, a common factor of all scales, 1 by default; ignored for
        ``"mxfp8"``.

    Returns:
      A :class:`BlockScaleConfig` for one operand.

    Raises:
      ValueError: if the mode is unknown, a global scale is specified for ``"mxfp4"``, or it is not
        a single number.

    >>> get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode not in _MODES:
        raise ValueError(
            f"get_scaled_dot_general_config: mode must be one of {', '.join(_MODES)}, got {mode!r}"
        )
    block, data, scale = _MODES[mode]
    if mode == "mxfp8":
        global_scale = None
    elif mode != "nvfp4" and global_scale is not None:
        raise ValueError(
            f"{mode} does not use a global_scale: its scales are powers of two of any size"
        )
    if mode == "nvfp4":
        whole = np.ones(1, np.float32) if global_scale is None else global_scale
        global_scale = pnp.asarray(whole, dtype=np.float32)
        if typeof(global_scale).size != 1:
            raise ValueError(
                "get_scaled_dot_general_config: global_scale must be one number, got shape "
                f"{typeof(global_scale).shape}"
            )
    return BlockScaleConfig(mode, block, data, scale, global_scale, infer_only=False)


def _quantized(x: Any, mode: str, whole: Any) -> tuple[Any, Any]:
    """Quantized elements of ``[..., k]``, and the scales of their blocks."""
    block, data, scale = _MODES[mode]
    *rows, k = typeof(x).shape
    blocks = (*rows, k // block, block)
    x = lax.reshape(lax.convert_element_type(x, np.float32), blocks)
    most = float(dtypes.finfo(np.dtype(data)).max)
    sizes = lax.reduce_max(lax.abs(x), (len(blocks) - 1,)) / most
    if mode == "nvfp4":
        relative = lax.min(sizes / whole, lax.full_like(sizes, float(dtypes.finfo(scale).max)))
        scales = lax.convert_element_type(relative, scale)
        units = lax.convert_element_type(scales, np.float32) * whole
    else:
        units = _next_power(sizes)
        scales = lax.convert_element_type(units, scale)
    units = lax.expand_dims(units, (len(blocks) - 1,))
    ratio = x / lax.select(units == 0, lax.full_like(units, 1), units)
    ratio = lax.clamp(np.float32(-most), ratio, np.float32(most))
    ratio = pnp.where(units == 0, 0 * x, ratio)
    return lax.reshape(lax.convert_element_type(ratio, data), (*rows, k)), scales


def _next_power(x: Any) -> Any:
    """The smallest power of two that is not smaller, within the range of scales; NaN for NaN."""
    bits = lax.bitcast_convert_type(x, np.int32)
    mantissa = lax.bitwise_and(bits, np.int32(0x7FFFFF))
    exponent = lax.shift_right_logical(bits, lax.full_like(bits, 23))
    exponent = exponent + lax.convert_element_type(mantissa != 0, np.int32)
    exponent = lax.clamp(np.int32(1), exponent, np.int32(254))
    power = lax.bitcast_convert_type(
        lax.shift_left(exponent, lax.full_like(exponent, 23)), np.float32
    )
    return lax.select(lax.is_finite(x), power, lax.full_like(x, np.nan))


# Products of quantized operands


@partial(custom_vjp, nondiff_argnums=(3, 4))
def _narrow_product(x: Any, y: Any, wholes: Any, modes: Any, dtype: Any) -> Any:
    return _quantized_product(x, y, wholes, modes, dtype)


def _forward(x: Any, y: Any, wholes: Any, modes: Any, dtype: Any) -> Any:
    return _quantized_product(x, y, wholes, modes, dtype), (x, y, wholes)


def _backward(modes: Any, dtype: Any, residuals: Any, g: Any) -> Any:
    x, y, wholes = residuals
    x_mode, y_mode, g_mode = modes
    x_whole, y_whole, g_whole = wholes
    y_columns, x_columns, g_columns = (lax.transpose(v, (0, 2, 1)) for v in (y, x, g))
    by_x = _cotangent(g, y_columns, (g_whole, y_whole), (g_mode, y_mode), typeof(x).dtype)
    by_y = _cotangent(g_columns, x_columns, (g_whole, x_whole), (g_mode, x_mode), typeof(y).dtype)
    return by_x, by_y, tuple(lax.full_like(w, 0) for w in wholes)


_narrow_product.defvjp(_forward, _backward)


def _cotangent(x: Any, y: Any, wholes: Any, modes: Any, dtype: Any) -> Any:
    if "nvfp4" not in modes:
        return _quantized_product(x, y, wholes, modes, dtype)
    # The format has too few values for cotangents.
    x, y = (lax.convert_element_type(v, np.float32) for v in (x, y))
    return lax.convert_element_type(lax.dot_general(x, y, _ROWS), dtype)


def _quantized_product(x: Any, y: Any, wholes: Any, modes: Any, dtype: Any) -> Any:
    block = max(_MODES[m][0] for m in modes[:2])
    narrow = [_quantized(_padded(v, block), m, w) for v, m, w in zip((x, y), modes, wholes)]
    (a, a_scales), (b, b_scales) = narrow
    if "nvfp4" not in modes[:2]:
        return _product(a, b, a_scales, b_scales, dtype)
    out = _product(a, b, a_scales, b_scales, dtypes.f32) * (wholes[0] * wholes[1])
    return lax.convert_element_type(out, dtype)


def _padded(x: Any, block: int) -> Any:
    """``[b, m, k]`` padded with zeros to a multiple of the block."""
    missing = -typeof(x).shape[2] % block
    zero = lax.full_like(x, 0, shape=())
    return lax.pad(x, zero, ((0, 0, 0), (0, 0, 0), (0, missing, 0))) if missing else x


@compiled("numbers", "modes", "dtype", name="scaled_dot_general")
def _scaled_dot_general(x, y, wholes, *, numbers, modes, dtype):
    (xc, yc), (xb, yb) = numbers
    wholes = tuple(lax.reshape(w, ()) for w in wholes)
    a, rows_a = _as_stack(x, xb, xc)
    b, rows_b = _as_stack(y, yb, yc)
    out = _narrow_product(a, b, wholes, modes, dtype)
    batch = [typeof(x).shape[i] for i in xb]
    return lax.reshape(out, (*batch, *rows_a, *rows_b))


def _as_stack(x: Any, batch: Sequence[int], summed: Sequence[int]) -> tuple[Any, list[int]]:
    """An operand as ``[batch, row, summed]``, and the sizes of its rows."""
    shape = typeof(x).shape
    rows = [i for i in range(len(shape)) if i not in (*batch, *summed)]
    x = lax.transpose(x, (*batch, *rows, *summed))
    sizes = [math.prod([shape[i] for i in part]) for part in (batch, rows, summed)]
    return lax.reshape(x, sizes), [shape[i] for i in rows]


def _checked_numbers(numbers: Any, x: Any, y: Any) -> Any:
    """Dimension numbers as tuples of nonnegative axes."""
    (xc, yc), (xb, yb) = numbers
    parts = [tuple(i % s.ndim for i in p) for p, s in ((xc, x), (yc, y), (xb, x), (yb, y))]
    xc, yc, xb, yb = parts
    for what, a, b in (("summed", xc, yc), ("batch", xb, yb)):
        sizes = [x.shape[i] for i in a], [y.shape[i] for i in b]
        if sizes[0] != sizes[1]:
            raise TypeError(
                f"scaled_dot_general: the {what} axes of lhs and rhs must have equal sizes, got "
                f"{sizes[0]} and {sizes[1]} in shapes {x.shape} and {y.shape}"
            )
    return (xc, yc), (xb, yb)


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: lax.DotDimensionNumbers,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """A general dot product whose operands are first quantized in blocks with scales.

    The backward pass also multiplies quantized operands, with cotangents in the format of the
    third configuration, or unquantized operands if a format is ``"nvfp4"``. Rounding has
    derivative 1 (straight-through). Forward mode is not supported.

    Args:
      lhs, rhs: real numbers.
      dimension_numbers: ``((lhs_summed, rhs_summed), (lhs_batch, rhs_batch))``, as for
        `primax.lax.dot_general`. Blocks are formed along the contracted axes.
      preferred_element_type: the dtype of the result.
      configs: the formats of ``lhs``, ``rhs`` and of cotangents, from
        :func:`get_scaled_dot_general_config`; ``None`` multiplies the operands unquantized.
      implementation: accepted for compatibility; the platform selects the kernel.

    Returns:
      An array of the batch axes, then the other axes of ``lhs`` and of ``rhs``.

    Raises:
      TypeError: if the sizes of contracted or batch axes differ, or a configuration has the wrong
        type.
      ValueError: if there are fewer than two configurations.

    >>> x = np.ones((2, 32), np.float32)
    >>> formats = [get_scaled_dot_general_config("mxfp8")] * 3
    >>> scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=formats).tolist()
    [[32.0, 32.0], [32.0, 32.0]]
    """
    check_arrays("scaled_dot_general", lhs, rhs)
    if implementation is not None:
        warnings.warn(
            "scaled_dot_general: implementation is ignored; the platform selects the kernel",
            DeprecationWarning,
            stacklevel=2,
        )
    dtype = dtypes.canonicalize_dtype(preferred_element_type)
    numbers = _checked_numbers(dimension_numbers, typeof(lhs), typeof(rhs))
    if configs is None:
        return lax.dot_general(lhs, rhs, numbers, preferred_element_type=dtype)
    configs = list(configs)
    if not all(isinstance(c, BlockScaleConfig) for c in configs):
        raise TypeError(
            "scaled_dot_general: configs must come from get_scaled_dot_general_config, got "
            f"{configs}"
        )
    if len(configs) < 2:
        raise ValueError(
            "scaled_dot_general: configs must contain the formats of lhs, rhs and cotangents, got "
            f"{len(configs)} of them"
        )
    configs = [*configs, configs[0]][:3]
    one = np.ones((), np.float32)
    wholes = tuple(one if c.global_scale is None else c.global_scale for c in configs)
    modes = tuple(c.mode for c in configs)
    out: Array = _scaled_dot_general(lhs, rhs, wholes, numbers=numbers, modes=modes, dtype=dtype)
    return out
