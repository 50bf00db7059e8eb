"""Attention in blocks, whose scores are never in memory together: arguments and forward kernel."""

from __future__ import annotations

import functools
import math
from typing import Any

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
from ._attention_backward import backward
from ._attention_blocks import (
    bias_spec,
    heads_before,
    heads_behind,
    key_spec,
    query_spec,
    sizes_of,
    statistics_spec,
    statistics_type,
)
from ._attention_masks import LOWEST, Config, rows_in, scores_of, weights_of
from ._backward_kernels import with_backward
from ._blocks import attention_backward_block, attention_block, is_tpu
from ._common import (
    SIGNED_INTEGERS,
    accumulator,
    block_sizes,
    cast,
    filled,
    inside,
    operand,
    positive,
    product,
    row_max,
    row_sum,
    same_dtype,
)

_NAME = "flash_attention"


def flash_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    causal: bool = False,
    window: int | tuple[int, int] | None = None,
    segment_ids: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    bias: ArrayLike | None = None,
    soft_cap: float | None = None,
    scale: float | None = None,
    query_offset: int = 0,
    block: tuple[int | None, int | None] | None = None,
    block_backward: tuple[int | None, int | None] | None = None,
) -> Any:
    """Attention ``softmax(scale * q kᵀ) v`` in blocks (Dao et al., 2022; Dao, 2023).

    Memory grows with the length, not with its square, also in the derivative: the logarithm of the
    sum of each row's exponentials is kept, and the weights are computed again. Scores and sums are
    ``float32`` for 16-bit floats.

    Args:
      q: queries of shape ``(batch, queries, heads, d)``, or without the first axis.
      k: keys of shape ``(batch, keys, key heads, d)``. The number of key heads divides that of
        heads: ``heads / key heads`` consecutive heads share a key head.
      v: values of shape ``(batch, keys, key heads, d_v)``.
      causal: whether a query has only keys up to its own position.
      window: how many keys before and after its own position a query has, a number or a pair.
      segment_ids: integers of shape ``(batch, length)``, or a pair for queries and keys; a query
        has only keys of its own segment.
      bias: numbers added to the scaled scores, of shape ``(batch, heads, queries, keys)``, where
        the first three sizes may be 1.
      soft_cap: replace scores ``s`` by ``soft_cap * tanh(s / soft_cap)``.
      scale: factor of the scores, by default ``1 / sqrt(d)``.
      query_offset: position of the first query, for ``causal`` and ``window``.
      block: queries and keys of a step; ``None`` stands for a default of the platform.
      block_backward: the same for the derivative.

    Returns:
      Array of shape ``(batch, queries, heads, d_v)`` with the dtype of ``q``. A query without any
      key has the result 0.

    Raises:
      TypeError: for dtypes that are not floats, or different ones.
      ValueError: for shapes that do not match, or options out of range.

    The reverse derivative is two kernels, one for the queries, one for keys and values, and can be
    differentiated again. The derivative of ``bias`` needs memory for all scores. Forward mode
    runs operations on arrays, block by block.

    >>> import numpy as np
    >>> q = np.zeros((3, 1, 2), np.float32)
    >>> v = np.array([1, 2, 6], np.float32).reshape(3, 1, 1)
    >>> np.asarray(flash_attention(q, q, v, causal=True)).ravel().tolist()
    [1.0, 1.5, 3.0]
    """
    batched = operand(_NAME, "q", q).ndim == 4
    avals = [operand(_NAME, name, x) for name, x in (("q", q), ("k", k), ("v", v))]
    same_dtype(_NAME, q=avals[0], k=avals[1], v=avals[2])
    _check_shapes([a.shape for a in avals])
    arrays = [x if batched else lax.expand_dims(x, (0,)) for x in (q, k, v)]
    sizes = avals[0].shape[-3], avals[1].shape[-3]
    d = avals[0].shape[-1]
    segments = _segments(segment_ids, arrays[0].shape[0], sizes, batched)
    offsets = _bias(bias, arrays[0].shape, sizes, batched)
    parts = "queries", "keys"
    config = Config(
        1 / math.sqrt(max(d, 1)) if scale is None else _number("scale", scale),
        bool(causal), _window(window), _integer("query_offset", query_offset),
        None if soft_cap is None else positive(_NAME, "soft_cap", soft_cap), sizes,
        block_sizes(_NAME, "block", block, parts, attention_block(*sizes, d), sizes),
        block_sizes(
            _NAME, "block_backward", block_backward, parts,
            attention_backward_block(*sizes, d), sizes,
        ),
        is_tpu(),
    )  # fmt: skip
    return _heads(config, batched, *arrays, segments, offsets)


def _check_shapes(shapes: list[tuple[int, ...]]) -> None:
    q, k, v = shapes
    if len(q) not in (3, 4) or len(k) != len(q) or len(v) != len(q):
        raise ValueError(
            f"{_NAME}: q, k and v have the axes (batch, length, heads, d), or all of them the last "
            f"three, got the shapes {q}, {k} and {v}"
        )
    if k[:-1] != v[:-1]:
        raise ValueError(f"{_NAME}: k and v differ in other axes than the last: {k} and {v}")
    if q[:-3] != k[:-3] or q[-1] != k[-1]:
        raise ValueError(
            f"{_NAME}: q and k have the same batch and d (the last axis), got {q} and {k}"
        )
    if not k[-2] or q[-2] % k[-2]:
        raise ValueError(
            f"{_NAME}: the number of key heads divides that of heads, got {k[-2]} and {q[-2]}"
        )


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(
            f"{_NAME}: {name} is a number known while tracing, got {type(value).__name__}"
        )
    if not math.isfinite(value):
        raise ValueError(f"{_NAME}: {name} is finite, got {value}")
    return float(value)


def _integer(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(
            f"{_NAME}: {name} is an integer known while tracing, got {type(value).__name__}"
        )
    return int(value)


def _window(window: Any) -> tuple[int, int] | None:
    if window is None:
        return None
    pair = window if isinstance(window, (tuple, list)) else (window, window)
    if len(pair) != 2:
        raise ValueError(f"{_NAME}: window is a number or a pair, got {window!r}")
    before, after = (_integer("window", n) for n in pair)
    if before < 0 or after < 0:
        raise ValueError(f"{_NAME}: window is not negative, got {window!r}")
    return before, after


def _segments(segments: Any, batch: int, sizes: tuple[int, int], batched: bool) -> Any:
    """Segments of queries and of keys, matrices with the axes (batch, length)."""
    if segments is None:
        return None
    pair = segments if isinstance(segments, (tuple, list)) else (segments, segments)
    if len(pair) != 2:
        raise ValueError(f"{_NAME}: segment_ids is an array or a pair of arrays")
    results = []
    for x, n, what in zip(pair, sizes, ("queries", "keys")):
        aval = operand(_NAME, "segment_ids", x, kinds=SIGNED_INTEGERS)
        expected = (batch, n) if batched else (n,)
        if aval.shape != expected:
            raise ValueError(
                f"{_NAME}: segment_ids of the {what} have the shape {expected}, got {aval.shape}; "
                "pass a pair if queries and keys differ"
            )
        results.append(lax.reshape(x, (batch, n)))
    return tuple(results)


def _bias(bias: Any, q: tuple[int, ...], sizes: tuple[int, int], batched: bool) -> Any:
    if bias is None:
        return None
    aval = operand(_NAME, "bias", bias)
    full = (q[0], q[2], *sizes) if batched else (q[2], *sizes)
    if (
        aval.ndim != len(full) or aval.shape[-1] != full[-1]
        or any(n not in (1, m) for n, m in zip(aval.shape, full))
    ):  # fmt: skip
        raise ValueError(
            f"{_NAME}: bias has the shape {full}, where all sizes but the last may be 1, got "
            f"{aval.shape}"
        )
    return bias if batched else lax.expand_dims(bias, (0,))


@functools.partial(jit, static_argnums=(0, 1))
def _heads(config: Config, batched: bool, q: Any, k: Any, v: Any, segments: Any, bias: Any) -> Any:
    """Attention with the heads that share a key head as an axis."""
    batch, n, heads, d = q.shape
    shape = (batch, n, heads, v.shape[-1])
    if 0 in (*shape, d, k.shape[1]):
        result = filled(shape, 0, typeof(q).dtype)
    else:
        shared = k.shape[2]
        q = lax.reshape(q, (batch, n, shared, heads // shared, d))
        if bias is not None:
            split = (shared, heads // shared) if bias.shape[1] > 1 else (1, 1)
            bias = lax.reshape(bias, (bias.shape[0], *split, *bias.shape[2:]))
        if config.heads_first:
            q, k, v = heads_before(q), heads_before(k), heads_before(v)
        result = _attention(config, q, k, v, segments, bias)
        if config.heads_first:
            result = heads_behind(result)
        result = lax.reshape(result, shape)
    return result if batched else lax.squeeze(result, (0,))


def _attention_of_arrays(config: Config, q: Any, k: Any, v: Any, segments: Any, bias: Any) -> Any:
    return _results(config, q, k, v, segments, bias)[0]


def _results(config: Config, q: Any, k: Any, v: Any, segments: Any, bias: Any) -> tuple[Any, Any]:
    """Attention, and the logarithms of the sums of the rows' exponentials.

    Args:
      q: array with the axes (batch, queries, key heads, heads of each, d), or in the order of
        ``config.heads_first``.
    """
    (bq, bk), (n, m) = config.block, config.sizes
    batch, shared, group, d = sizes_of(config, q)
    dtype, wide, width = typeof(q).dtype, accumulator(typeof(q).dtype), v.shape[-1]

    def kernel(q_ref: Any, k_ref: Any, v_ref: Any, *refs: Any) -> None:
        rest = list(refs)
        i, j = program_id(3), program_id(4)
        pair = bias_block = None
        if segments is not None:
            pair = rest.pop(0)[...], rest.pop(0)[...]
        if bias is not None:
            bias_block = inside(rest.pop(0)[...], (1, j, m))
        out, logs, top, total, sums = rest

        @when(j == 0)
        def _start() -> None:
            top[...] = filled(top.shape, LOWEST, wide)
            total[...] = filled(total.shape, 0, wide)
            sums[...] = filled(sums.shape, 0, wide)

        scores = scores_of(
            config, rows_in(q_ref, i, n), rows_in(k_ref, j, m), (i, j), pair, bias_block
        )
        values = rows_in(v_ref, j, m)
        largest = lax.max(top[...], row_max(scores.values))
        weights = weights_of(scores, largest)
        factor = lax.exp(top[...] - largest)
        total[...] = total[...] * factor + row_sum(weights)
        sums[...] = sums[...] * factor + product(cast(weights, dtype), values, (1, 0), wide)
        top[...] = largest

        @when(j == num_programs(4) - 1)
        def _end() -> None:
            whole = total[...]
            whole = lax.select(whole == wide.type(0), filled(whole.shape, 1, wide), whole)
            out[...] = cast(sums[...] / whole, dtype)
            log = top[...] + lax.log(whole)
            logs[...] = log if config.heads_first else lax.squeeze(log, (1,))

    operands, specs = [q, k, v], [
        query_spec(config, bq, d, 3), key_spec(config, bk, d, 4), key_spec(config, bk, width, 4),
    ]  # fmt: skip
    if segments is not None:
        operands += [lax.expand_dims(segments[0], (2,)), lax.expand_dims(segments[1], (1,))]
        specs += [
            BlockSpec((None, bq, 1), lambda b, h, g, i, j: (b, i, 0)),
            BlockSpec((None, 1, bk), lambda b, h, g, i, j: (b, 0, j)),
        ]
    if bias is not None:
        operands.append(bias)
        specs.append(bias_spec(bias.shape, bq, bk, (3, 4)))
    return pallas_call(
        kernel,
        (
            ShapeDtypeStruct((*q.shape[:-1], width), dtype),
            statistics_type(config, (batch, shared, group, n), wide),
        ),
        name=_NAME, grid=(batch, shared, group, cdiv(n, bq), cdiv(m, bk)), in_specs=specs,
        out_specs=(query_spec(config, bq, width, 3), statistics_spec(config, bq, 3)),
        scratch_shapes=[VMEM((bq, 1), wide), VMEM((bq, 1), wide), VMEM((bq, width), wide)],
    )(*operands)  # fmt: skip


def _forward(config: Config, q: Any, k: Any, v: Any, segments: Any, bias: Any) -> tuple[Any, Any]:
    out, logs = _results(config, q, k, v, segments, bias)
    return out, (q, k, v, segments, bias, out, logs)


_attention = with_backward(_attention_of_arrays, _forward, backward)
