"""Functions of `primax_kernels.ops` with small, partial blocks, and plain code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import plain_ops as plain
from op_support import normal

from primax_core import lax
from primax_kernels import ops


class Case(NamedTuple):
    """A function of arrays, plain code, and operands.

    Attributes:
      derivatives: how many of the operands have derivatives.
      backward: whether kernels compute them.
    """

    fun: Callable[..., Any]
    plain: Callable[..., Any]
    args: tuple[Any, ...]
    derivatives: int = 0
    backward: bool = False


RNG = np.random.default_rng(0)
LABELS = np.array([0, 3, 9, -1, 5, 5, 2], np.int32)
SIZES = np.array([5, 0, 7, 3], np.int32)
LENGTHS = np.array([5, 0, 12], np.int32)
PAGES = np.array([[3, 1, -9], [99, 99, 99], [6, 0, 2]], np.int32)
POSITIONS = RNG.integers(0, 50, (2, 7)).astype(np.int32)
SEGMENTS = tuple(np.sort(RNG.integers(0, 3, (2, n)), 1).astype(np.int32) for n in (6, 7))
QKV = normal(2, 6, 2, 16), normal(2, 7, 1, 16), normal(2, 7, 1, 5)
BIAS = normal(2, 1, 6, 7)


def _attention(**options: Any) -> Callable[..., Any]:
    def fun(q: Any, k: Any, v: Any, bias: Any = None) -> Any:
        return ops.flash_attention(
            q, k, v, bias=bias, block=(4, 4), block_backward=(4, 4), **options
        )

    return fun


def _quantized(dtype: Any, wide: bool = False) -> Case:
    (a, rows), (b, columns) = (
        ops.quantize(normal(20, 40), dtype), ops.quantize(normal(40, 18, seed=1), dtype, axis=0)
    )  # fmt: skip
    a, b, rows, columns = (np.asarray(x) for x in (a, b, rows, columns))
    block = (16, 32, 16)
    if wide:
        a = normal(20, 40)

        def fun(a: Any, columns: Any) -> Any:
            return ops.quantized_matmul(a, b, None, columns, block=block)

        def weights(a: Any, columns: Any) -> Any:
            return lax.dot(a, b.astype(np.float32)) * lax.expand_dims(columns, (0,))

        return Case(fun, weights, (a, columns), 2)

    def scaled(rows: Any, columns: Any) -> Any:
        sums = lax.dot(a.astype(np.float32), b.astype(np.float32))
        return sums * lax.expand_dims(rows, (1,)) * lax.expand_dims(columns, (0,))

    return Case(
        lambda rows, columns: ops.quantized_matmul(a, b, rows, columns, block=block), scaled,
        (rows, columns), 2,
    )  # fmt: skip


def _rope(interleaved: bool) -> Case:
    return Case(
        lambda x: ops.rope(x, POSITIONS, interleaved=interleaved, block=4),
        lambda x: plain.rope(x, POSITIONS, interleaved), (normal(2, 7, 3, 8),),
    )  # fmt: skip


def _recurrence(reverse: bool) -> Case:
    args = normal(2, 7, 3), normal(2, 7, 3, seed=1), normal(2, 3)
    return Case(
        lambda a, b, h: ops.linear_recurrence(a, b, h, reverse=reverse, block=(3, 2)),
        partial(plain.linear_recurrence, reverse=reverse), args, 3, True,
    )  # fmt: skip


MASKS: dict[str, Any] = {
    "causal": True,
    "window": (2, 0),
    "segment_ids": SEGMENTS,
    "query_offset": 2,
}
CASES: dict[str, Case] = {
    "matmul": Case(
        lambda a, b, c: ops.matmul(a, b, c, epilogue=plain.relu, block=(4, 16, 4)), plain.matmul,
        (normal(10, 40), normal(40, 9), normal(9)), 3,
    ),
    "matmul transposed": Case(
        lambda a, b: ops.matmul(a, b, transpose_a=True, transpose_b=True, block=(4, 4, 4)),
        lambda a, b: lax.dot(lax.transpose(a, (1, 0)), lax.transpose(b, (1, 0))),
        (normal(7, 10), normal(9, 7)), 2,
    ),
    "softmax": Case(
        lambda x: ops.softmax(x, block_rows=4), plain.softmax, (normal(10, 12),), 1
    ),
    "layer_norm": Case(
        lambda x, s, b: ops.layer_norm(x, s, b, block_rows=4), plain.layer_norm,
        (normal(10, 12), normal(12), normal(12, seed=1)), 3, True,
    ),
    "rms_norm": Case(
        lambda x, s: ops.rms_norm(x, s, block_rows=4), plain.rms_norm, (normal(10, 12), normal(12)),
        2, True,
    ),
    "attention": Case(_attention(), plain.attention, QKV, 3, True),
    "attention with masks, cap and bias": Case(
        _attention(**MASKS, soft_cap=1.0), partial(plain.attention, **MASKS, soft_cap=1.0),
        (*QKV, BIAS), 4, True,
    ),
    "paged_attention": Case(
        ops.paged_attention, plain.paged_attention,
        (normal(3, 4, 16), normal(2, 7, 4, 16), normal(2, 7, 4, 16, seed=1), LENGTHS, PAGES),
    ),
    "grouped_matmul": Case(
        lambda x, w: ops.grouped_matmul(x, w, SIZES, block=(4, 16, 4)),
        lambda x, w: plain.grouped_matmul(x, w, SIZES), (normal(17, 20), normal(4, 20, 5)), 2, True,
    ),
    "quantized_matmul int8": _quantized(np.int8),
    "quantized_matmul float8": _quantized("float8_e5m2"),
    "quantized_matmul weights": _quantized(np.int8, wide=True),
    "rope": _rope(False),
    "rope interleaved": _rope(True),
    "cross_entropy": Case(
        lambda x: ops.cross_entropy(x, LABELS, z_loss=0.1, block=(4, 4)),
        lambda x: plain.cross_entropy(x, LABELS, 0.1), (normal(7, 10),), 1, True,
    ),
    "linear_cross_entropy": Case(
        lambda x, w: ops.linear_cross_entropy(x, w, LABELS, z_loss=0.1, block=(4, 4)),
        lambda x, w: plain.cross_entropy(lax.dot(x, w), LABELS, 0.1),
        (normal(7, 16), normal(16, 10)), 2, True,
    ),
    "cumsum": Case(
        lambda x: ops.cumsum(x, block=(2, 4)), lambda x: lax.cumsum(x, 1), (normal(5, 11),), 1
    ),
    "cumsum reverse": Case(
        lambda x: ops.cumsum(x, axis=0, reverse=True, block=(2, 4)),
        lambda x: lax.cumsum(x, 0, reverse=True), (normal(11, 5),), 1,
    ),
    "linear_recurrence": _recurrence(False),
    "linear_recurrence reverse": _recurrence(True),
    "top_k": Case(
        lambda x: ops.top_k(x, 3, block_rows=4)[0], lambda x: lax.top_k(x, 3)[0], (normal(7, 20),),
        1,
    ),
}  # fmt: skip
