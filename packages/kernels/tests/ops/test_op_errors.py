"""Arguments that shipped kernels refuse."""

# ruff: noqa: E501  (a line of the table for each error)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_support import normal

from primax_core import jit
from primax_kernels import ops

F32, I32 = np.float32, np.int32
X, Q = normal(4, 6), normal(1, 5, 4, 8)
LABELS = np.zeros(4, I32)
PAGES = normal(2, 3, 4, 8)
LENGTHS, INDICES = np.ones(1, I32), np.zeros((1, 2), I32)
HALF = X.astype(np.float16)

REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "matmul shapes": (lambda: ops.matmul(X, X), ValueError,
                      "a has 6 and b has 4 elements along the summed axis"),
    "matmul rank": (lambda: ops.matmul(X[0], X), ValueError, "a has 2 axes, got the shape .6,.; use"),
    "matmul dtypes": (lambda: ops.matmul(X, HALF, transpose_b=True), TypeError,
                      "different dtypes .a: float32, b: float16.; convert"),
    "matmul complex": (lambda: ops.matmul(X.astype(np.complex64), X), TypeError,
                       "a has the dtype complex64; supported are bfloat16"),
    "matmul list": (lambda: ops.matmul([[1.0]], X), TypeError, "a is an array, got list"),
    "matmul block": (lambda: ops.matmul(X, X.T, block=(4, 4)), ValueError, "block is .rows, summed"),
    "matmul block size": (lambda: ops.matmul(X, X.T, block=(4, 0, 4)), ValueError,
                          r"block\[1\] is a positive integer, got 0"),
    "matmul block type": (lambda: ops.matmul(X, X.T, block=(4, 4, 2.0)), TypeError,
                          r"block\[2\] is a positive integer or None, got 2.0"),
    "matmul extras": (lambda: ops.matmul(X, X.T, X), ValueError, "1 extra operands without an epi"),
    "matmul extra": (lambda: ops.matmul(X, X.T, X, epilogue=lambda x, y: x), ValueError,
                     r"extras\[0\] has the shape .4, 6., which does not broadcast to .4, 4."),
    "matmul epilogue": (lambda: ops.matmul(X, X.T, epilogue=lambda x: x.shape[0]), ValueError,
                        "the epilogue returned 4 for a block of shape .4, 4."),
    "matmul epilogue type": (lambda: ops.matmul(X, X.T, epilogue=3), TypeError, "epilogue is a funct"),
    "softmax axis": (lambda: ops.softmax(X, axis=2), ValueError, "axis 2 of an array with 2 axes"),
    "softmax axis type": (lambda: ops.softmax(X, axis=None), TypeError, "axis is an integer"),
    "softmax integers": (lambda: ops.softmax(LABELS), TypeError, "x has the dtype int32"),
    "layer_norm scale": (lambda: ops.layer_norm(X, X), ValueError, r"scale has the shape \(6,\)"),
    "rms_norm eps": (lambda: ops.rms_norm(X, eps=0), ValueError, "eps is positive and finite, got 0"),
    "rms_norm traced": (lambda: jit(lambda e: ops.rms_norm(X, eps=e))(1.0), TypeError,
                        "eps is a number known while tracing"),
    "attention rank": (lambda: ops.flash_attention(X, X, X), ValueError, "the axes .batch, length"),
    "attention heads": (lambda: ops.flash_attention(Q, Q[:, :, :3], Q[:, :, :3]), ValueError,
                        "the number of key heads divides that of heads, got 3 and 4"),
    "attention keys": (lambda: ops.flash_attention(Q, Q, Q[:, :2]), ValueError, "k and v differ"),
    "attention d": (lambda: ops.flash_attention(Q, Q[..., :4], Q), ValueError, "q and k have the same"),
    "attention window": (lambda: ops.flash_attention(Q, Q, Q, window=-1), ValueError, "not negative"),
    "attention cap": (lambda: ops.flash_attention(Q, Q, Q, soft_cap=-1.0), ValueError, "soft_cap is"),
    "attention scale": (lambda: ops.flash_attention(Q, Q, Q, scale=float("nan")), ValueError,
                        "scale is finite"),
    "attention segments": (lambda: ops.flash_attention(Q, Q, Q, segment_ids=LABELS), ValueError,
                           r"segment_ids of the queries have the shape \(1, 5\), got \(4,\)"),
    "attention bias": (lambda: ops.flash_attention(Q, Q, Q, bias=normal(1, 4, 5, 1)), ValueError,
                       r"bias has the shape \(1, 4, 5, 5\), where"),
    "attention block": (lambda: ops.flash_attention(Q, Q, Q, block=8), ValueError, "block is .queries"),
    "attention offset": (lambda: ops.flash_attention(Q, Q, Q, query_offset=0.5), TypeError,
                         "query_offset is an integer"),
    "paged dtype": (lambda: ops.paged_attention(Q[0], PAGES, PAGES, X[:, 0], INDICES), TypeError,
                    "lengths has the dtype float32; supported are int32"),
    "paged batch": (lambda: ops.paged_attention(Q[0], PAGES, PAGES, LENGTHS, INDICES), ValueError,
                    "an entry for each of 5 sequences"),
    "paged d": (lambda: ops.paged_attention(Q[0, :1, :, :4], PAGES, PAGES, LENGTHS, INDICES), ValueError,
                "a different last axis: 4 and 8"),
    "grouped k": (lambda: ops.grouped_matmul(X, PAGES[0], LABELS[:3]), ValueError, "with k = 6"),
    "grouped sizes": (lambda: ops.grouped_matmul(X, normal(2, 6, 3), LABELS), ValueError,
                      "an entry for each of 2 groups"),
    "quantize dtype": (lambda: ops.quantize(X, np.int16), TypeError, "dtype is one of int8, float8"),
    "quantized pair": (lambda: ops.quantized_matmul(*_pair(np.int8, "float8_e5m2")), TypeError,
                       "both int8, both 8-bit floats"),
    "quantized scale": (lambda: ops.quantized_matmul(*_pair(np.int8, np.int8), X[0]), ValueError,
                        r"a_scale has the shape \(\) or \(4,\), got \(6,\)"),
    "rope odd": (lambda: ops.rope(Q[..., :7]), ValueError, "an even size, got 7"),
    "rope positions": (lambda: ops.rope(Q, LABELS), ValueError, r"positions has the shape \(5,\) or"),
    "rope base": (lambda: ops.rope(Q, base=-1), ValueError, "base is positive"),
    "loss labels": (lambda: ops.cross_entropy(X, X[:, 0]), TypeError, "labels has the dtype float32"),
    "loss shapes": (lambda: ops.cross_entropy(X, LABELS[:2]), ValueError, "labels the shape"),
    "loss weight": (lambda: ops.cross_entropy(X, LABELS, z_loss=-1), ValueError, "not negative"),
    "linear loss": (lambda: ops.linear_cross_entropy(X, X, LABELS), ValueError, "weights .d, classes"),
    "cumsum block": (lambda: ops.cumsum(X, block=3), ValueError, "block is .rows, elements."),
    "recurrence shapes": (lambda: ops.linear_recurrence(X, X.T), ValueError, "different shapes"),
    "recurrence initial": (lambda: ops.linear_recurrence(X, X, X), ValueError,
                           r"initial has the shape \(6,\), that of a without axis 0"),
    "top_k range": (lambda: ops.top_k(X, 7), ValueError, "k is 7, but the rows have 6 elements"),
    "top_k type": (lambda: ops.top_k(X, 2.0), TypeError, "k is an integer known while tracing"),
    "top_k scalar": (lambda: ops.top_k(np.float32(1), 1), ValueError, "got a scalar"),
}  # fmt: skip


def _pair(first: Any, second: Any) -> tuple[Any, Any]:
    return X.astype(np.dtype(first)), X.T.astype(np.dtype(second))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, error, pattern = REFUSED[name]
    with pytest.raises(error, match=pattern):
        call()
