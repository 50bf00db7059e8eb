"""Cross-entropy of logits."""

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
from .._typing import ArrayLike
from ..tpu import VMEM
from ._attention_masks import LOWEST
from ._backward_kernels import with_backward
from ._blocks import vocabulary_block
from ._common import (
    SIGNED_INTEGERS,
    accumulator,
    block_sizes,
    cast,
    filled,
    inside,
    operand,
    positions,
    row_max,
    row_sum,
)

_NAME = "cross_entropy"
INT32: Final = np.dtype(np.int32)
PARTS: Final = ("rows", "classes")
"""The sizes of a block."""


class _Config(NamedTuple):
    z_loss: float
    block: tuple[int, ...]


def cross_entropy(
    logits: ArrayLike, labels: ArrayLike, *, z_loss: float = 0.0,
    block: tuple[int | None, int | None] | None = None,
) -> Any:  # fmt: skip
    """Negative logarithm of the softmax of logits at the labels.

    One pass over the logits computes the logarithm of the sum of exponentials. The derivative is a
    second pass, which uses it and writes the derivative of the logits alone.

    Args:
      logits: array of floats of shape ``(..., classes)``.
      labels: integers of shape ``(...)``. Rows with a negative label have the loss 0.
      z_loss: weight of the square of that logarithm, which is added to the loss.
      block: rows and classes of a step; ``None`` stands for a default of the platform.

    Returns:
      Array of shape ``(...)``: ``float32``, or ``float64`` for such logits. A label that is no
      class has the logarithm of the sum as loss.

    Raises:
      TypeError, ValueError: for other dtypes and shapes, and a negative ``z_loss``.

    The reverse derivative is a kernel. Forward mode runs operations on arrays.

    >>> cross_entropy(np.zeros((2, 4), np.float32), np.array([1, -1], np.int32))
    Array([1.3862944, 0.       ], dtype=float32)
    """
    aval = operand(_NAME, "logits", logits)
    label = operand(_NAME, "labels", labels, kinds=SIGNED_INTEGERS)
    if not aval.ndim or not aval.shape[-1] or label.shape != aval.shape[:-1]:
        raise ValueError(
            f"{_NAME}: logits has the shape (..., classes) and labels the shape (...), got "
            f"{aval.shape} and {label.shape}"
        )
    n = aval.shape[-1]
    rows = aval.size // n
    sizes = block_sizes(_NAME, "block", block, PARTS, vocabulary_block(rows, n), (rows, n))
    return _losses(_Config(weight(_NAME, z_loss), sizes), logits, labels)


def weight(function: str, z_loss: Any) -> float:
    """The checked weight of the z-loss."""
    if isinstance(z_loss, bool) or not isinstance(z_loss, (int, float, np.floating, np.integer)):
        raise TypeError(
            f"{function}: z_loss is a number known while tracing, got {type(z_loss).__name__}"
        )
    if not 0 <= z_loss < float("inf"):
        raise ValueError(f"{function}: z_loss is not negative and finite, got {z_loss}")
    return float(z_loss)


@functools.partial(jit, static_argnums=0)
def _losses(config: _Config, logits: Any, labels: Any) -> Any:
    n = logits.shape[-1]
    if not logits.size:
        return filled(labels.shape, 0, accumulator(typeof(logits).dtype))
    rows = logits.size // n
    losses = _of_rows(
        config, lax.reshape(logits, (rows, n)), cast(lax.reshape(labels, (rows, 1)), INT32)
    )
    return lax.reshape(losses, labels.shape)


def _losses_of_rows(config: _Config, logits: Any, labels: Any) -> Any:
    return _results(config, logits, labels)[0]


class Statistics(NamedTuple):
    """Scratch memory of a pass over the classes, each of shape ``(rows, 1)``.

    Attributes:
      top: largest logits.
      total: sums of exponentials of the differences to them.
    """

    top: Any
    total: Any

    def start(self) -> None:
        """Write the values of no classes."""
        for ref, value in zip(self, (LOWEST, 0)):
            ref[...] = filled(ref.shape, value, ref.dtype)

    def add(self, logits: Any) -> None:
        """Add a block of logits."""
        largest = lax.max(self.top[...], row_max(logits))
        factor = lax.exp(self.top[...] - largest)
        self.total[...] = self.total[...] * factor + row_sum(lax.exp(logits - largest))
        self.top[...] = largest

    def logs(self) -> Any:
        """The logarithms of the sums of exponentials."""
        return self.top[...] + lax.log(self.total[...])


def losses_of(logs: Any, picked: Any, labels: Any, z_loss: float) -> Any:
    """The losses from the logarithms of sums and the logits at the labels."""
    losses = logs - picked
    if z_loss:
        losses = losses + logs * logs * logs.dtype.type(z_loss)
    return lax.select(labels >= 0, losses, filled(losses.shape, 0, losses.dtype))


def picked_from(logits: Any, labels: Any) -> Any:
    """The logits at the labels, 0 where they are no classes, of shape ``(rows, 1)``.

    A gather of one element of each row is cheaper than a comparison with each class in the kernel.
    """
    rows = lax.broadcasted_iota(np.int32, labels.shape, 0)
    dims = lax.GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0, 1)
    )
    index = lax.concatenate([rows, labels], 1)
    return lax.gather(logits, index, dims, (1, 1), mode="fill", fill_value=0)


def slopes_of(logits: Any, numbers: Any, labels: Any, logs: Any, ct: Any, z_loss: float) -> Any:
    """Derivatives of the losses with respect to a block of logits, times the cotangent."""
    number = logits.dtype.type
    ct = lax.select(labels >= 0, ct, filled(ct.shape, 0, ct.dtype))
    share = ct * (logs * number(2 * z_loss) + number(1)) if z_loss else ct
    slopes = lax.exp(logits - logs) * share
    own = lax.broadcast_in_dim(ct, logits.shape, (0, 1))
    hit = numbers == labels
    return slopes - lax.select(hit, own, filled(own.shape, 0, own.dtype))


def _specs(config: _Config) -> tuple[BlockSpec, BlockSpec]:
    """Blocks of the logits, and of numbers of each row."""
    rows, classes = config.block
    return (
        BlockSpec((rows, classes), lambda i, j: (i, j)),
        BlockSpec((rows, 1), lambda i, j: (i, 0)),
    )


def _results(config: _Config, logits: Any, labels: Any) -> tuple[Any, Any]:
    """The losses, and the logarithms of the sums of exponentials, both of shape ``(rows, 1)``."""
    (rows, n), wide = logits.shape, accumulator(typeof(logits).dtype)
    br, bn = config.block

    def kernel(logits_ref: Any, out: Any, *scratch: Any) -> None:
        i, j = program_id(0), program_id(1)
        statistics = Statistics(*scratch)
        when(j == 0)(statistics.start)
        x = cast(inside(logits_ref[...], (0, i, rows)), wide)
        statistics.add(inside(x, (1, j, n), fill=LOWEST))

        @when(j == num_programs(1) - 1)
        def _end() -> None:
            out[...] = statistics.logs()

    matrix, column = _specs(config)
    logs = pallas_call(
        kernel, ShapeDtypeStruct((rows, 1), wide), name=_NAME, grid=(cdiv(rows, br), cdiv(n, bn)),
        in_specs=[matrix], out_specs=column, scratch_shapes=[VMEM((br, 1), wide)] * 2,
    )(logits)  # fmt: skip
    picked = cast(picked_from(logits, labels), wide)
    return losses_of(logs, picked, labels, config.z_loss), logs


def _forward(config: _Config, logits: Any, labels: Any) -> tuple[Any, Any]:
    losses, logs = _results(config, logits, labels)
    return losses, (logits, labels, logs)


def _backward(config: _Config, residuals: Any, ct: Any) -> tuple[Any, None]:
    logits, labels, logs = residuals
    (rows, n), wide = logits.shape, accumulator(typeof(logits).dtype)
    br, bn = config.block

    def kernel(logits_ref: Any, labels_ref: Any, logs_ref: Any, ct_ref: Any, out: Any) -> None:
        i, j = program_id(0), program_id(1)
        x = cast(inside(logits_ref[...], (0, i, rows), (1, j, n)), wide)
        logs, ct = (inside(r[...], (0, i, rows)) for r in (logs_ref, ct_ref))
        numbers = positions(x.shape, 1, j * np.int32(bn))
        out[...] = cast(slopes_of(x, numbers, labels_ref[...], logs, ct, config.z_loss), out.dtype)

    matrix, column = _specs(config)
    slopes = pallas_call(
        kernel, ShapeDtypeStruct(logits.shape, typeof(logits).dtype), name=f"{_NAME}_backward",
        grid=(cdiv(rows, br), cdiv(n, bn)), in_specs=[matrix, column, column, column],
        out_specs=matrix,
    )(logits, labels, logs, ct)  # fmt: skip
    return slopes, None


_of_rows = with_backward(_losses_of_rows, _forward, _backward)
