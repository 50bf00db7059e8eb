"""Cross-entropy of logits that are a matrix product and never in memory together."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from primax_core import ShapeDtypeStruct, jit, lax
from primax_core.extend import typeof

from .._block_specs import BlockSpec
from .._call import pallas_call
from .._control import when
from .._grid import num_programs, program_id
from .._helpers import cdiv
from .._typing import ArrayLike
from ..tpu import VMEM
from ._attention_masks import LOWEST
from ._backward_kernels import with_backward
from ._blocks import linear_vocabulary_block
from ._common import (
    SIGNED_INTEGERS,
    accumulator,
    block_sizes,
    cast,
    filled,
    inside,
    operand,
    positions,
    product,
    row_sum,
    same_dtype,
)
from ._cross_entropy import INT32, PARTS, Statistics, losses_of, slopes_of, weight

_NAME = "linear_cross_entropy"


class _Config(NamedTuple):
    z_loss: float
    block: tuple[int, ...]


def linear_cross_entropy(
    x: ArrayLike, weights: ArrayLike, labels: ArrayLike, *, z_loss: float = 0.0,
    block: tuple[int | None, int | None] | None = None,
) -> Any:  # fmt: skip
    """`cross_entropy` of the logits ``x @ weights``, which are computed in blocks.

    For large vocabularies: logits are never in memory together, also in the derivative, which
    computes them again (Wijmans et al., 2024).

    Args:
      x: array of floats of shape ``(..., d)``.
      weights: matrix of shape ``(d, classes)`` of the same dtype.
      labels: integers of shape ``(...)``. Rows with a negative label have the loss 0.
      z_loss: weight of the square of the logarithm of the sum of exponentials.
      block: rows and classes of a step; ``None`` stands for a default of the platform.

    Returns:
      Array of shape ``(...)``: ``float32``, or ``float64`` for such operands.

    Raises:
      TypeError, ValueError: for other dtypes and shapes, and a negative ``z_loss``.

    The reverse derivative is two kernels. Forward mode runs operations on arrays.

    >>> x, weights = np.ones((1, 2), np.float32), np.zeros((2, 4), np.float32)
    >>> linear_cross_entropy(x, weights, np.array([3], np.int32))
    Array([1.3862944], dtype=float32)
    """
    aval, matrix = operand(_NAME, "x", x), operand(_NAME, "weights", weights, rank=2)
    same_dtype(_NAME, x=aval, weights=matrix)
    label = operand(_NAME, "labels", labels, kinds=SIGNED_INTEGERS)
    if not aval.ndim or label.shape != aval.shape[:-1] or aval.shape[-1] != matrix.shape[0]:
        raise ValueError(
            f"{_NAME}: x has the shape (..., d), weights (d, classes) and labels (...), got "
            f"{aval.shape}, {matrix.shape} and {label.shape}"
        )
    d, n = matrix.shape
    if not n or not d:
        raise ValueError(f"{_NAME}: weights has the shape {matrix.shape}, without elements")
    rows = aval.size // d
    default = linear_vocabulary_block(rows, n, d)
    sizes = block_sizes(_NAME, "block", block, PARTS, default, (rows, n))
    return _losses(_Config(weight(_NAME, z_loss), sizes), x, weights, labels)


@functools.partial(jit, static_argnums=0)
def _losses(config: _Config, x: Any, weights: Any, labels: Any) -> Any:
    if not x.size:
        return filled(labels.shape, 0, accumulator(typeof(x).dtype))
    d = x.shape[-1]
    rows = x.size // d
    losses = _of_rows(
        config, lax.reshape(x, (rows, d)), weights, cast(lax.reshape(labels, (rows, 1)), INT32)
    )
    return lax.reshape(losses, labels.shape)


def _losses_of_rows(config: _Config, x: Any, weights: Any, labels: Any) -> Any:
    return _results(config, x, weights, labels)[0]


class _Grid:
    """Blocks of a grid over rows and classes, in either order."""

    def __init__(self, config: _Config, x: Any, weights: Any, rows_first: bool):
        (rows, d), n = x.shape, weights.shape[1]
        self.sizes, self.block = (rows, n), config.block
        br, bn = config.block
        self.dims = (0, 1) if rows_first else (1, 0)
        steps = cdiv(rows, br), cdiv(n, bn)
        self.grid = steps[self.dims[0]], steps[self.dims[1]]
        i, j = self.dims
        self.rows = BlockSpec((br, d), lambda *ids: (ids[i], 0))
        self.weights = BlockSpec((d, bn), lambda *ids: (0, ids[j]))
        self.column = BlockSpec((br, 1), lambda *ids: (ids[i], 0))

    def read(self, x_ref: Any, weights_ref: Any) -> tuple[Any, Any, Any, Any]:
        """Blocks of the operands, the logits and the numbers of the classes."""
        i, j = (program_id(d) for d in self.dims)
        x = inside(x_ref[...], (0, i, self.sizes[0]))
        weights = inside(weights_ref[...], (1, j, self.sizes[1]))
        logits = product(x, weights, (1, 0), accumulator(typeof(x).dtype))
        return x, weights, logits, positions(logits.shape, 1, j * np.int32(self.block[1]))


def _results(config: _Config, x: Any, weights: Any, labels: Any) -> tuple[Any, Any]:
    """The losses, and the logarithms of the sums of exponentials, both of shape ``(rows, 1)``."""
    parts = _Grid(config, x, weights, True)
    wide, n = accumulator(typeof(x).dtype), weights.shape[1]

    def kernel(
        x_ref: Any, weights_ref: Any, labels_ref: Any, picked_ref: Any, logs_ref: Any,
        *scratch: Any,
    ) -> None:  # fmt: skip
        j = program_id(1)
        *pair, picked = scratch
        statistics = Statistics(*pair)

        @when(j == 0)
        def _start() -> None:
            statistics.start()
            picked[...] = filled(picked.shape, 0, wide)

        _, _, logits, numbers = parts.read(x_ref, weights_ref)
        statistics.add(inside(logits, (1, j, n), fill=LOWEST))
        hit = numbers == labels_ref[...]
        picked[...] += row_sum(lax.select(hit, logits, filled(logits.shape, 0, wide)))

        @when(j == num_programs(1) - 1)
        def _end() -> None:
            picked_ref[...], logs_ref[...] = picked[...], statistics.logs()

    shape = ShapeDtypeStruct((x.shape[0], 1), wide)
    picked, logs = pallas_call(
        kernel, (shape, shape), name=_NAME, grid=parts.grid,
        in_specs=[parts.rows, parts.weights, parts.column], out_specs=(parts.column, parts.column),
        scratch_shapes=[VMEM((config.block[0], 1), wide)] * 3,
    )(x, weights, labels)  # fmt: skip
    return losses_of(logs, picked, labels, config.z_loss), logs


def _forward(config: _Config, x: Any, weights: Any, labels: Any) -> tuple[Any, Any]:
    losses, logs = _results(config, x, weights, labels)
    return losses, (x, weights, labels, logs)


def _backward(config: _Config, residuals: Any, ct: Any) -> tuple[Any, Any, None]:
    return _derivative(config, residuals, ct, True), _derivative(config, residuals, ct, False), None


def _derivative(config: _Config, residuals: Any, ct: Any, of_rows: bool) -> Any:
    """The cotangent of the rows or of the weights."""
    x, weights, labels, logs = residuals
    parts = _Grid(config, x, weights, of_rows)
    (rows, n), wide = parts.sizes, accumulator(typeof(x).dtype)
    target = x if of_rows else weights
    spec = parts.rows if of_rows else parts.weights

    def kernel(
        x_ref: Any, weights_ref: Any, labels_ref: Any, logs_ref: Any, ct_ref: Any, out: Any,
        total: Any,
    ) -> None:  # fmt: skip
        i, j = (program_id(d) for d in parts.dims)
        step = program_id(1)

        @when(step == 0)
        def _start() -> None:
            total[...] = filled(total.shape, 0, wide)

        x, weights, logits, numbers = parts.read(x_ref, weights_ref)
        logs, ct = (inside(r[...], (0, i, rows)) for r in (logs_ref, ct_ref))
        slopes = slopes_of(logits, numbers, labels_ref[...], logs, ct, config.z_loss)
        # The matching rows or columns of the other operand are 0 outside of it.
        slopes = cast(inside(slopes, (1, j, n)), typeof(x).dtype)
        total[...] += (
            product(slopes, weights, (1, 1), wide) if of_rows else product(x, slopes, (0, 0), wide)
        )

        @when(step == num_programs(1) - 1)
        def _end() -> None:
            out[...] = cast(total[...], out.dtype)

    shape = tuple(spec.block_shape)
    return pallas_call(
        kernel, ShapeDtypeStruct(target.shape, typeof(target).dtype),
        name=f"{_NAME}_{'rows' if of_rows else 'weights'}", grid=parts.grid,
        in_specs=[parts.rows, parts.weights, parts.column, parts.column, parts.column],
        out_specs=spec, scratch_shapes=[VMEM(shape, wide)],
    )(x, weights, labels, logs, ct)  # fmt: skip


_of_rows = with_backward(_losses_of_rows, _forward, _backward)
