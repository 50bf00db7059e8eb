"""Products of matrices of 8-bit numbers with scales."""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import ShapeDtypeStruct, jit, lax
from primax_core.extend import typeof

from .._block_specs import BlockSpec
from .._call import pallas_call
from .._control import when
from .._grid import num_programs, program_id
from .._helpers import cdiv
from .._typing import ArrayLike, DTypeLike, PrecisionLike
from ..tpu import VMEM
from ._blocks import matmul_block
from ._common import FLOATS, axis_in, block_sizes, cast, filled, inside, operand, product
from ._matmul import PARTS

_NAME = "quantized_matmul"
_NARROW: Final = tuple(
    np.dtype(name) for name in ("int8", "float8_e4m3fn", "float8_e5m2")
)  # fmt: skip
_LARGEST: Final = {"int8": 127.0, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


class _Config(NamedTuple):
    block: tuple[int, ...]
    out_dtype: Any
    precision: Any


def quantize(x: ArrayLike, dtype: DTypeLike = np.int8, *, axis: int | None = -1) -> tuple[Any, Any]:
    """Numbers of 8 bits and scales whose product is about ``x``.

    Args:
      x: array of floats.
      dtype: ``int8``, ``float8_e4m3fn`` or ``float8_e5m2``.
      axis: axis along which elements share a scale; ``None``: all elements share one.

    Returns:
      The numbers, and scales in ``float32`` with the shape of ``x`` without the axis.

    Raises:
      TypeError: for other dtypes.

    The derivative of the numbers is 0, as rounding has it.

    >>> values, scales = quantize(np.array([[1, -2], [0, 254]], np.float32))
    >>> values
    Array([[  64, -127],
           [   0,  127]], dtype=int8)
    >>> np.asarray(scales * 127).tolist()
    [2.0, 254.0]
    """
    aval = operand("quantize", "x", x)
    dtype = np.dtype(dtype)
    if dtype not in _NARROW:
        raise TypeError(
            f"quantize: dtype is one of {', '.join(d.name for d in _NARROW)}, got {dtype}"
        )
    axes = tuple(range(aval.ndim)) if axis is None else (axis_in("quantize", axis, aval.ndim),)
    return _quantize(dtype, axes, x)


@functools.partial(jit, static_argnums=(0, 1))
def _quantize(dtype: Any, axes: tuple[int, ...], x: Any) -> tuple[Any, Any]:
    x = cast(x, np.dtype(np.float32))
    largest = np.float32(_LARGEST[dtype.name])
    scales = lax.reduce_max(lax.abs(x), axes) / largest if x.size else filled(
        [n for a, n in enumerate(x.shape) if a not in axes], 0, np.float32
    )  # fmt: skip
    scales = lax.select(scales > 0, scales, filled(scales.shape, 1, np.float32))
    others = tuple(a for a in range(x.ndim) if a not in axes)
    x = lax.clamp(-largest, x / lax.broadcast_in_dim(scales, x.shape, others), largest)
    if dtype == np.int8:
        x = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    return cast(x, dtype), scales


def quantized_matmul(
    a: ArrayLike,
    b: ArrayLike,
    a_scale: ArrayLike | None = None,
    b_scale: ArrayLike | None = None,
    *,
    block: tuple[int | None, int | None, int | None] | None = None,
    out_dtype: DTypeLike | None = None,
    precision: PrecisionLike | None = None,
) -> Any:
    """Product of matrices of 8-bit numbers, multiplied with scales.

    Products of ``int8`` are summed in ``int32``, of 8-bit floats in ``float32``. If only ``b`` has
    8 bits (quantised weights), it is converted to the dtype of ``a``, block by block.

    Args:
      a: matrix of shape ``(m, k)``: ``int8``, ``float8_e4m3fn``, ``float8_e5m2``, or wider floats.
      b: matrix of shape ``(k, n)``: ``int8`` if ``a`` is ``int8``, an 8-bit float if ``a`` is one.
      a_scale: factors of the rows of ``a``, of shape ``(m,)``, or one of shape ``()``.
      b_scale: factors of the columns of ``b``, of shape ``(n,)``, or one of shape ``()``.
      block: rows, summed elements and columns of a step; ``None`` stands for a default of the
        platform.
      out_dtype: dtype of the result, by default that of ``a`` if it has more than 8 bits, else
        ``float32``.
      precision: precision of the products, as of ``lax.dot_general``.

    Returns:
      Matrix of shape ``(m, n)``: ``a_scale[:, None] * (a @ b) * b_scale``.

    Raises:
      TypeError: for other pairs of dtypes.
      ValueError: for shapes that do not match.

    Derivatives with respect to scales and wide operands are those of operations on arrays.

    >>> x = np.array([[1, 2], [3, 4]], np.float32)
    >>> (a, rows), (b, columns) = quantize(x), quantize(x, axis=0)
    >>> product = quantized_matmul(a, b, rows, columns)
    >>> bool(abs(np.asarray(product) - x @ x).max() < 0.1)
    True
    """
    x = operand(_NAME, "a", a, rank=2, kinds=(*_NARROW, *FLOATS))
    y = operand(_NAME, "b", b, rank=2, kinds=_NARROW)
    if x.dtype in _NARROW and (x.dtype == np.int8) != (y.dtype == np.int8):
        raise TypeError(
            f"{_NAME}: a and b are both int8, both 8-bit floats, or a is a wider float, got "
            f"{x.dtype} and {y.dtype}"
        )
    (m, k), (k_b, n) = x.shape, y.shape
    if k != k_b:
        raise ValueError(f"{_NAME}: the shapes {x.shape} and {y.shape} differ in the summed axis")
    if out_dtype is None:
        out_dtype = np.float32 if x.dtype in _NARROW else x.dtype
    default = matmul_block(m, k, n, 8)
    sizes = block_sizes(_NAME, "block", block, PARTS, default, (m, k, n))
    factors = [_scale("a_scale", a_scale, m, (m, 1)), _scale("b_scale", b_scale, n, (1, n))]
    return _quantized(_Config(sizes, np.dtype(out_dtype), precision), a, b, *factors)


def _scale(name: str, scale: Any, n: int, shape: tuple[int, int]) -> Any:
    """Scales as a matrix that broadcasts to the result, or ``None``."""
    if scale is None:
        return None
    aval = operand(_NAME, name, scale)
    if aval.shape not in ((), (n,)):
        raise ValueError(f"{_NAME}: {name} has the shape () or ({n},), got {aval.shape}")
    return lax.reshape(scale, shape if aval.shape else (1, 1))


@functools.partial(jit, static_argnums=0)
def _quantized(config: _Config, a: Any, b: Any, a_scale: Any, b_scale: Any) -> Any:
    (m, k), n = a.shape, b.shape[1]
    if 0 in (m, k, n):
        return filled((m, n), 0, config.out_dtype)
    bm, bk, bn = config.block
    steps = cdiv(k, bk)
    dtype = typeof(a).dtype
    wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    sums = np.dtype(np.int32) if dtype == np.int8 else wide
    scales = [s for s in (a_scale, b_scale) if s is not None]

    def kernel(a_ref: Any, b_ref: Any, *refs: Any) -> None:
        i, j, step = program_id(0), program_id(1), program_id(2)
        x, y = a_ref[...], b_ref[...]
        if dtype in FLOATS:
            y = cast(y, dtype)
        terms = product(
            inside(x, (0, i, m), (1, step, k)), inside(y, (0, step, k), (1, j, n)), (1, 0), sums,
            config.precision,
        )  # fmt: skip
        out = refs[len(scales)]

        def finish(total: Any) -> None:
            total = cast(total, wide)
            for ref, axis in zip(refs, limits):
                block = ref[...]
                if axis is not None:
                    block = inside(block, (axis, (i, j)[axis], (m, n)[axis]))
                total = total * cast(block, wide)
            out[...] = cast(total, config.out_dtype)

        if steps == 1:
            finish(terms)
            return
        total = refs[-1]

        @when(step == 0)
        def _start() -> None:
            total[...] = filled(total.shape, 0, sums)

        total[...] += terms

        @when(step == num_programs(2) - 1)
        def _end() -> None:
            finish(total[...])

    limits = [0 if s.shape[0] > 1 else 1 if s.shape[1] > 1 else None for s in scales]

    def scale_spec(axis: int | None) -> BlockSpec:
        if axis is None:
            return BlockSpec((1, 1), lambda i, j, k: (0, 0))
        if axis == 0:
            return BlockSpec((bm, 1), lambda i, j, k: (i, 0))
        return BlockSpec((1, bn), lambda i, j, k: (0, j))

    return pallas_call(
        kernel, ShapeDtypeStruct((m, n), config.out_dtype), name=_NAME,
        grid=(cdiv(m, bm), cdiv(n, bn), steps),
        in_specs=[
            BlockSpec((bm, bk), lambda i, j, k: (i, k)),
            BlockSpec((bk, bn), lambda i, j, k: (k, j)), *map(scale_spec, limits),
        ],
        out_specs=BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        scratch_shapes=[VMEM((bm, bn), sums)] if steps > 1 else [],
    )(a, b, *scales)  # fmt: skip
