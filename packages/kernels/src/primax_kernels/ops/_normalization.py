"""Layer normalisation and normalisation by the root mean square."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from primax_core import ShapeDtypeStruct, jit, lax
from primax_core.extend import typeof

from .._block_specs import BlockSpec
from .._call import pallas_call
from .._grid import program_id
from .._helpers import cdiv
from .._typing import ArrayLike
from ._backward_kernels import with_backward
from ._blocks import rows_block
from ._common import accumulator, block_size, cast, filled, inside, operand, positive, row_sum


class _Config(NamedTuple):
    name: str
    centered: bool
    eps: float
    block: int


def layer_norm(
    x: ArrayLike,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float = 1e-6,
    block_rows: int | None = None,
) -> Any:
    """Rows with mean 0 and variance 1, then scaled and shifted (Ba et al., 2016).

    Computed in ``float32`` for 16-bit floats.

    Args:
      x: array of floats of shape ``(..., n)``.
      scale, bias: vectors of shape ``(n,)``, or ``None``.
      eps: number that is added to the variance.
      block_rows: rows of a step, by default chosen for the platform.

    Returns:
      Array with the shape and dtype of ``x``.

    Raises:
      TypeError, ValueError: for other dtypes and shapes, and an ``eps`` that is not positive.

    The reverse derivative is a kernel too, which computes mean and variance again. Forward mode
    runs operations on arrays.

    >>> import numpy as np
    >>> y = layer_norm(np.array([[1, 3], [5, 5]], np.float32), bias=np.array([0, 10], np.float32))
    >>> np.asarray(y).round(3).tolist()
    [[-1.0, 11.0], [0.0, 10.0]]
    """
    return _normalized("layer_norm", True, x, scale, bias, eps, block_rows)


def rms_norm(
    x: ArrayLike,
    scale: ArrayLike | None = None,
    *,
    eps: float = 1e-6,
    block_rows: int | None = None,
) -> Any:
    """Rows divided by the root of their mean square, then scaled (Zhang and Sennrich, 2019).

    Arguments, result and errors are those of `layer_norm`, without ``bias``.

    >>> import numpy as np
    >>> y = rms_norm(np.array([[1, 7]], np.float32), np.array([5, 5], np.float32))
    >>> np.asarray(y).round(3).tolist()
    [[1.0, 7.0]]
    """
    return _normalized("rms_norm", False, x, scale, None, eps, block_rows)


def _normalized(
    name: str, centered: bool, x: Any, scale: Any, bias: Any, eps: Any, block_rows: Any
) -> Any:
    aval = operand(name, "x", x)
    if not aval.ndim:
        raise ValueError(f"{name}: x has the shape (..., n), got a scalar")
    n = aval.shape[-1]
    for label, vector in (("scale", scale), ("bias", bias)):
        if vector is not None and operand(name, label, vector).shape != (n,):
            raise ValueError(
                f"{name}: {label} has the shape ({n},), like the last axis of x, got {vector.shape}"
            )
    rows = aval.size // max(n, 1)
    block = block_size(name, "block_rows", block_rows, rows_block(rows, n), rows)
    return _on_rows(_Config(name, centered, positive(name, "eps", eps), block), x, scale, bias)


@functools.partial(jit, static_argnums=0)
def _on_rows(config: _Config, x: Any, scale: Any, bias: Any) -> Any:
    if 0 in x.shape:
        return filled(x.shape, 0, typeof(x).dtype)
    n = x.shape[-1]
    vectors = [None if v is None else lax.reshape(v, (1, n)) for v in (scale, bias)]
    return lax.reshape(_norm(config, lax.reshape(x, (x.size // n, n)), *vectors), x.shape)


def _standardized(config: _Config, x: Any) -> tuple[Any, Any]:
    """Rows divided by their deviation, and its inverse."""
    number = x.dtype.type
    if config.centered:
        x = x - row_sum(x) * number(1 / x.shape[-1])
    mean_square = row_sum(x * x) * number(1 / x.shape[-1])
    inverse = lax.rsqrt(mean_square + number(config.eps))
    return x * inverse, inverse


def _norm_of_arrays(config: _Config, x: Any, scale: Any, bias: Any) -> Any:
    rows, n = x.shape
    wide = accumulator(typeof(x).dtype)
    vectors = [v for v in (scale, bias) if v is not None]

    def kernel(x_ref: Any, *refs: Any) -> None:
        rest = list(refs)
        x = cast(inside(x_ref[...], (0, program_id(0), rows)), wide)
        y, _ = _standardized(config, x)
        if scale is not None:
            y = y * cast(rest.pop(0)[...], wide)
        if bias is not None:
            y = y + cast(rest.pop(0)[...], wide)
        rest[0][...] = cast(y, rest[0].dtype)

    spec, vector = _specs(config, n)
    return pallas_call(
        kernel, ShapeDtypeStruct(x.shape, typeof(x).dtype), name=config.name,
        grid=(cdiv(rows, config.block),), in_specs=[spec, *[vector] * len(vectors)], out_specs=spec,
    )(x, *vectors)  # fmt: skip


def _specs(config: _Config, n: int) -> tuple[BlockSpec, BlockSpec]:
    """Blocks of rows, and of vectors."""
    return (
        BlockSpec((config.block, n), lambda i: (i, 0)),
        BlockSpec((1, n), lambda i: (0, 0)),
    )


def _forward(config: _Config, x: Any, scale: Any, bias: Any) -> tuple[Any, Any]:
    return _norm(config, x, scale, bias), (x, scale, bias)


def _backward(config: _Config, residuals: Any, ct: Any) -> tuple[Any, Any, Any]:
    x, scale, bias = residuals
    rows, n = x.shape
    wide = accumulator(typeof(x).dtype)
    steps = cdiv(rows, config.block)

    def kernel(x_ref: Any, ct_ref: Any, *refs: Any) -> None:
        rest = list(refs)
        i = program_id(0)
        x, g = (cast(inside(r[...], (0, i, rows)), wide) for r in (x_ref, ct_ref))
        y, inverse = _standardized(config, x)
        weighted = g if scale is None else g * cast(rest.pop(0)[...], wide)
        number = wide.type(1 / n)
        dx = weighted - y * (row_sum(weighted * y) * number)
        if config.centered:
            dx = dx - row_sum(weighted) * number
        dx_ref = rest.pop(0)
        dx_ref[...] = cast(dx * inverse, dx_ref.dtype)
        if scale is not None:
            rest.pop(0)[...] = lax.expand_dims(lax.reduce_sum(g * y, (0,)), (0,))
        if bias is not None:
            rest.pop(0)[...] = lax.expand_dims(lax.reduce_sum(g, (0,)), (0,))

    spec, vector = _specs(config, n)
    # Sums over the rows of each step; a sum over all of them would make the steps sequential.
    partial = [ShapeDtypeStruct((steps, 1, n), wide) for v in (scale, bias) if v is not None]
    dx, *sums = pallas_call(
        kernel, [ShapeDtypeStruct(x.shape, typeof(x).dtype), *partial], grid=(steps,),
        name=f"{config.name}_backward", in_specs=[spec, spec, *([] if scale is None else [vector])],
        out_specs=[spec, *[BlockSpec((None, 1, n), lambda i: (i, 0, 0))] * len(partial)],
    )(x, ct, *([] if scale is None else [scale]))  # fmt: skip
    totals = iter(sums)
    return dx, *(
        None if v is None
        else cast(lax.reduce_sum(next(totals), (0,)), typeof(v).dtype)
        for v in (scale, bias)
    )  # fmt: skip


_norm = with_backward(_norm_of_arrays, _forward, _backward)
